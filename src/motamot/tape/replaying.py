"""Serving a tape again: its status, headers, pieces and times, and its end, to whoever asks."""

from __future__ import annotations

import asyncio
import contextlib
import http
import os
import re
from collections.abc import Callable
from types import TracebackType
from typing import Self

import httptools

from motamot.errors import TapeError
from motamot.tape import bounds
from motamot.tape.sockets import all_delivered, reset_on_close
from motamot.tape.tape import Tape

__all__ = ["Replay", "replay"]

# What describes one connection, or a body that was unpacked on its way onto the tape.
_NOT_AGAIN = frozenset(
    {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "trailer", "te", "alt-svc"}
)
_NO_BODY = frozenset({204, 304})
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


async def replay(
    tape: Tape, host: str = "127.0.0.1", port: int = 0, *, speed: float | None = 1.0, cors: str | None = None
) -> Replay:
    """Start serving `tape`; the caller closes it (`async with await replay(…) as server: …`).

    Raises: TapeError where the port cannot be had.
    """
    server = Replay(tape, host, port, speed=speed, cors=cors)
    await server.start()
    return server


class Replay:
    """An HTTP server that gives one tape to every request, whatever its method and path.

    url:      where it answers, once started.
    requests: how many were answered, or begun to be (a browser's CORS questions are not counted).
    speed:    2 is twice as fast; None waits for nothing.
    cors:     the origin whose pages may read the answer, or `*`; None for none but the own.
    asked:    told of each request: method and path.

    A tape that was `reset`, or `left` by its recorder, ends with a broken connection: it has no end to show.
    """

    def __init__(
        self,
        tape: Tape,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        speed: float | None = 1.0,
        cors: str | None = None,
        asked: Callable[[str, str], None] | None = None,
    ) -> None:
        if speed is not None and not 0 < speed < 1e9:
            raise ValueError(f"speed is {speed}; it must be more than 0")
        self.requests = 0
        self.url = ""
        self._tape = tape
        self._host, self._port = host, port
        self._speed = speed
        self._cors = cors
        self._asked = asked
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Raises: TapeError where the port cannot be had."""
        try:
            self._server = await asyncio.start_server(self._connected, self._host, self._port)
        except (OSError, OverflowError) as error:
            told = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            raise TapeError(f"cannot listen on {self._host} port {self._port}: {told}") from error
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    async def close(self) -> None:
        """Stop: whoever is being answered sees the connection break."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> Self:
        if self._server is None:
            await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= bounds.CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._handle(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, httptools.HttpParserError):
            pass  # whoever asked left, or speaks no HTTP: there is nobody to tell
        finally:
            writer.transport.abort() if self._breaks(writer) else writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _breaks(self, writer: asyncio.StreamWriter) -> bool:
        return writer.transport.is_closing() or self._tape.end in ("reset", "left")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = _Asked()
        async with asyncio.timeout(bounds.REQUEST_SECONDS):
            await request.read(reader, writer)
        if not request.complete:
            return
        started = asyncio.get_running_loop().time()
        if self._cors is not None and request.method == "OPTIONS":
            writer.write(_head(204, [*self._cors_headers(request), ("Connection", "close")]))
            await writer.drain()
            return
        self.requests += 1
        if self._asked is not None:
            self._asked(request.method, request.path)
        playing = asyncio.ensure_future(self._play(writer, request, started))
        leaving = asyncio.ensure_future(_until_left(reader))
        try:
            await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in (playing, leaving):
                part.cancel()
            await asyncio.wait({playing, leaving})
        if not playing.cancelled():
            playing.result()

    async def _play(self, writer: asyncio.StreamWriter, request: _Asked, started: float) -> None:
        tape = self._tape
        status = tape.status or 200
        headers, chunked = self._headers(request)
        bodiless = request.method == "HEAD" or status in _NO_BODY
        first = next((piece.at for piece in tape.pieces), None)
        await self._wait(tape.head_at if tape.head_at is not None else first, started)
        writer.write(_head(status, headers))
        await writer.drain()
        if not bodiless:
            for at, data in tape.pieces:
                await self._wait(at, started)
                if data:
                    writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
                    await writer.drain()
            await self._wait(tape.ended_at, started)
        if tape.end in ("reset", "left"):
            await all_delivered(writer.transport, bounds.DELIVERY_SECONDS)
            reset_on_close(writer.transport)
            return
        if chunked and not bodiless:
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _wait(self, at: float | None, started: float) -> None:
        """Until the moment `at` seconds after the request, at the chosen speed."""
        if at is None or self._speed is None:
            return
        await asyncio.sleep(max(0.0, started + at / self._speed - asyncio.get_running_loop().time()))

    def _headers(self, request: _Asked) -> tuple[list[tuple[str, str]], bool]:
        """The headers, and whether the body goes out in chunks."""
        tape = self._tape
        left_out = set(_NOT_AGAIN)
        if tape.header("content-encoding") is not None:
            left_out |= {"content-encoding", "content-length"}
        if self._cors is not None:
            left_out |= {name.lower() for name, _ in tape.headers if name.lower().startswith("access-control-")}
        headers = [
            (name, value)
            for name, value in tape.headers
            if name.lower() not in left_out and _NAME.fullmatch(name) and not _CONTROL.search(value)
        ]
        status = tape.status or 200
        sized = any(name.lower() == "content-length" for name, _ in headers)
        chunked = not sized and not request.http_1_0 and status not in _NO_BODY
        if tape.status is None:
            headers.append(("Content-Type", "text/event-stream"))
        if chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        headers.append(("Connection", "close"))
        return [*headers, *self._cors_headers(request)], chunked

    def _cors_headers(self, request: _Asked) -> list[tuple[str, str]]:
        """What lets the pages of one origin read the answer (Fetch, 3.2)."""
        if self._cors is None:
            return []
        headers = [("Access-Control-Allow-Origin", self._cors), ("Access-Control-Expose-Headers", "*")]
        if self._cors != "*":
            headers += [("Access-Control-Allow-Credentials", "true"), ("Vary", "Origin")]
        if request.method == "OPTIONS":
            asked = request.headers.get("access-control-request-headers", "")
            method = request.headers.get("access-control-request-method", "")
            headers.append(("Access-Control-Allow-Methods", method if _NAME.fullmatch(method) else "*"))
            if asked and not _CONTROL.search(asked):
                headers.append(("Access-Control-Allow-Headers", asked))
            if "access-control-request-private-network" in request.headers:
                headers.append(("Access-Control-Allow-Private-Network", "true"))
        return headers


class _Asked:
    """One request, as httptools reads it; its body is thrown away."""

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.headers: dict[str, str] = {}
        self.http_1_0 = False
        self.complete = False
        self._size = 0
        self._parser = httptools.HttpRequestParser(self)

    async def read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read it whole. Raises: httptools.HttpParserError, ConnectionError where it is too large."""
        while not self.complete:
            data = await reader.read(1 << 16)
            self._size += len(data)
            if not data or self._size > bounds.REQUEST_BYTES:
                raise ConnectionError("no whole request")
            with contextlib.suppress(httptools.HttpParserUpgrade):
                self._parser.feed_data(data)
            if self.headers.pop("expect", "").lower() == "100-continue" and not self.complete:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # What httptools calls

    def on_url(self, url: bytes) -> None:
        self.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.method = self._parser.get_method().decode("latin-1")
        self.http_1_0 = self._parser.get_http_version() == "1.0"

    def on_message_complete(self) -> None:
        self.complete = True


async def _until_left(reader: asyncio.StreamReader) -> None:
    """Back when whoever asked has closed; what else comes is thrown away."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 16):
            pass


def _head(status: int, headers: list[tuple[str, str]]) -> bytes:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {status} {phrase}".rstrip(), *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("utf-8", "replace")
