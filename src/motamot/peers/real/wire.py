"""A local HTTP server that sends given reads: client libraries get their streams from a real connection."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

__all__ = ["SECONDS", "Stream", "Wire"]

SECONDS = 10.0
"""What one stream may take, from the request to the last event: they come from this machine, within milliseconds."""

_HEAD_BYTES = 1 << 16  # of a request: what client libraries send is under 2 kB
_PATH = re.compile(rb"[A-Z]+ /(\d+)[/ ?]")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)
_NO_MORE = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"  # tells an EventSource not to come back


class Stream:
    """One stream to be served. sent: reads that have left; asked: requests for it.

    more: released for each read that may leave, where reads leave one by one; else None.
    """

    def __init__(self, url: str, reads: Sequence[bytes], *, one_by_one: bool) -> None:
        self.url = url
        self.reads = tuple(read for read in reads if read)  # a chunk of no bytes is the end of a body
        self.more = threading.Semaphore(0) if one_by_one else None
        self.sent = 0
        self.asked = 0

    @property
    def at(self) -> int:
        """The number of the last read that has left."""
        return max(0, self.sent - 1)


class Wire:
    """The server; use as a context manager, from any thread.

    Each read is an HTTP chunk and a write of its own, so a library that is handed chunks is handed these reads. Only
    the first request for a stream gets it; a reconnection gets 204 (No Content), which ends an `EventSource`.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._address = self._listener.getsockname()
        self._streams: dict[int, Stream] = {}
        self._numbers = itertools.count(1)
        self._thread = threading.Thread(target=self._accept, name="wire", daemon=True)
        self._closed = False
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening. What is being sent ends within `SECONDS`."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):  # wakes `accept`: closing alone would not, everywhere
            socket.create_connection(self._address, timeout=1).close()
        self._thread.join(SECONDS)
        self._listener.close()

    @contextlib.contextmanager
    def stream(self, reads: Sequence[bytes], *, one_by_one: bool = False) -> Iterator[Stream]:
        """Serve these reads at the `url` of what is given, and at any path below it, until the block ends.

        one_by_one: each read, and the end of the body, waits for a release of `more`: Node's `fetch` joins what has
                    come by the time it looks.
        """
        number = next(self._numbers)
        stream = Stream(f"http://127.0.0.1:{self._address[1]}/{number}", reads, one_by_one=one_by_one)
        self._streams[number] = stream
        try:
            yield stream
        finally:
            del self._streams[number]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self._closed:
                connection.close()
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # a library that has left
            connection.settimeout(SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = _asked(connection.recv)
            stream = self._streams.get(number) if number is not None else None
            if stream is None:
                connection.sendall(_NO_MORE)
                return
            stream.asked += 1
            if stream.asked > 1:
                connection.sendall(_NO_MORE)
                return
            connection.sendall(_HEAD)
            for read in (*stream.reads, b""):
                if stream.more is not None and not stream.more.acquire(timeout=SECONDS):
                    return
                connection.sendall(b"%x\r\n%s\r\n" % (len(read), read))
                stream.sent += bool(read)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):  # closing with anything unread would reset what the library still reads
                pass


def _asked(receive: Callable[[int], bytes]) -> int | None:
    """Read a request to its end. Returns: the number its path begins with, or None."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = receive(4096)
        data += piece
        if not piece or len(data) > _HEAD_BYTES:
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    left = min(int(length[1]), _HEAD_BYTES) - len(body) if length else 0
    while left > 0 and (piece := receive(4096)):
        left -= len(piece)
    found = _PATH.match(head)
    return int(found[1]) if found else None
