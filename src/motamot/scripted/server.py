"""The scripted model's connections: one protocol object per TCP connection, for control of every write and of the end.

A web framework would decide when bytes leave, join them, and tell late or never that the client has gone. Here each
piece is one write on a socket with TCP_NODELAY (asyncio sets it), the connection is always being read, and the
client's FIN or reset is seen while the script waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, cast

from motamot.scripted import bounds
from motamot.scripted.dialects import Op
from motamot.scripted.http import HttpRequest, RefusedRequest, RequestReader, response_head
from motamot.scripted.records import Piece, Received, dumped, shown
from motamot.scripted.service import Service
from motamot.scripted.steps import Close, Gate, Head, How, Wait
from motamot.tape.sockets import all_delivered, reset_on_close

__all__ = ["Connection"]

_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_NO_BODY = frozenset({204, 304})


class Connection(asyncio.Protocol):
    """One TCP connection: reads requests one after the other, plays an answer to each.

    all_open: the open connections of the same server; this one is in it from its first moment to its last.
    """

    transport: asyncio.Transport

    def __init__(self, service: Service, all_open: set[Connection]) -> None:
        self._service = service
        self._all_open = all_open
        self._reader = RequestReader()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[str] | None = None
        self._current: Received | None = None  # the last request of this connection
        self._writable: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for_request = False
        self._hung_up = False

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._all_open.add(self)
        if len(self._all_open) > bounds.CONNECTIONS:
            self._refuse(503, f"more than {bounds.CONNECTIONS} connections")
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        if self._hung_up:
            return
        self._reader.feed(data)
        if self._task is None:
            self._next()
        elif self._reader.held > bounds.HEAD_BYTES:
            # Nobody sends so much before the last answer has come, and not reading would hide the client's leaving.
            self.shut()

    def eof_received(self) -> bool:
        # A client that has closed and one that has only ended its side look alike: model servers take both as gone.
        self._left("closed")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._left("closed" if exc is None else "reset")
        self._all_open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # For the server and for the answer under way

    async def drained(self) -> None:
        """Give others a turn, and wait until the client takes what was written."""
        if self._writable is not None:
            await self._writable
        else:
            await asyncio.sleep(0)

    def hang_up(self, *, abort: bool = False) -> None:
        """Close from this side, after what was written or at once. What the client does then is no leaving."""
        self._hung_up = True
        if abort:
            self.transport.abort()
        else:
            self.transport.close()

    def shut(self) -> asyncio.Task[str] | None:
        """Hang up at once, also on a script under way. Gives the answer's task, which still has to see it."""
        self.hang_up(abort=True)
        if self._task is not None:
            self._task.cancel()
        return self._task

    # Requests

    def _next(self) -> None:
        """Begin to answer the next request, if it is there."""
        try:
            request = self._reader.next()
        except RefusedRequest as refused:
            self._refuse(refused.status, refused.message)
            return
        if request is None:
            if self._reader.wants_continue:
                self._reader.wants_continue = False
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._watch()
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        received = self._service.received(request)
        self._current = received
        ops = self._service.answer(request, received)
        self._task = self._loop.create_task(_Answer(self, self._service, received, request).play(ops))
        self._task.add_done_callback(self._played)

    def _played(self, task: asyncio.Task[str]) -> None:
        self._task = None
        received = self._current
        assert received is not None
        if task.cancelled():
            received.ended = "left" if received.left_at is not None else "server-closed"
        elif (error := task.exception()) is not None:
            received.ended = "failed"
            self._loop.call_exception_handler({"message": "the scripted model failed", "exception": error})
            self.hang_up(abort=True)
        else:
            received.ended = task.result()
        fields: dict[str, Any] = {
            "how": received.ended,
            "pieces": received.sent_pieces,
            "bytes": received.sent_bytes,
            "cancelled": received.cancelled,
        }
        if received.cancel_seconds is not None:
            fields["expected_cancel_within_ms"] = received.cancel_seconds * 1000
        self._service.tell(received, "end", time.monotonic(), fields)
        self._service.flush()
        self._service.changed()
        if not self.transport.is_closing():
            self._next()

    def _watch(self) -> None:
        """Keep one timer: for the next request to begin, or for the one that has begun to be whole."""
        begun = self._reader.started
        if self._timer is not None:
            if begun and self._timer_for_request:
                return  # or a client could send a byte now and then for ever
            self._timer.cancel()
        self._timer_for_request = begun
        seconds = bounds.REQUEST_SECONDS if begun else bounds.IDLE_SECONDS
        self._timer = self._loop.call_later(seconds, self.hang_up)

    def _refuse(self, status: int, message: str) -> None:
        body = dumped({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        self.transport.write(response_head(status, headers) + body)
        self.hang_up()

    def _left(self, how: str) -> None:
        """The client has gone: note it at once, and end the script."""
        received = self._current
        if received is None or received.left_at is not None or self._hung_up:
            return
        received.left_at = time.monotonic()
        received.left_how = how
        script_done = received.done_at is not None
        self._service.tell(received, "client_left", received.left_at, {"how": how, "script_done": script_done})
        self._service.flush()
        if self._task is not None:
            self._task.cancel()
        self._service.changed()


class _Answer:
    """Plays one answer on a connection."""

    def __init__(self, connection: Connection, service: Service, received: Received, request: HttpRequest) -> None:
        self._connection = connection
        self._transport = connection.transport
        self._service = service
        self._received = received
        self._http_1_0 = request.http_1_0
        self._keep_alive = request.keep_alive
        self._bodiless = request.method == "HEAD"
        self._head = Head(200)
        self._chunked = False
        self._promised: int | None = None  # bytes that `content-length` still promises

    async def play(self, ops: Iterable[Op]) -> str:
        """Send it all. Returns how it was closed."""
        since_look = 0
        for op in ops:
            if isinstance(op, bytes):
                self._write(op)
                since_look += 1
                if since_look >= bounds.PIECES_BETWEEN_LOOKS or self._transport.get_write_buffer_size():
                    since_look = 0
                    await self._connection.drained()
                continue
            since_look = 0
            match op:
                case Wait(seconds):
                    self._service.flush()
                    await asyncio.sleep(seconds)
                case Gate():
                    await self._wait_at(op)
                case Head():
                    self._head = op
                case Close(how):
                    await self._close(how)
                    return how.value
        raise AssertionError("the last op of an answer is a Close")

    def _write(self, data: bytes) -> None:
        received = self._received
        if received.status is None:
            self._send_head()
        if not data or self._bodiless:
            return
        if self._chunked:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self._transport.write(data)
            if self._promised is not None:
                self._promised -= len(data)
        now = time.monotonic()
        received.sent_pieces += 1
        received.sent_bytes += len(data)
        service = self._service
        if service.keep_pieces:
            service.kept += len(data)
            received.pieces.append(Piece(now, len(data), data if service.kept <= bounds.KEPT_BYTES else None))
        if service.observer is not None:
            service.tell(received, "piece", now, {"bytes": len(data), **shown(data)})
        service.changed()

    def _send_head(self) -> None:
        headers = dict(_STREAM)
        headers.update(self._head.headers)
        status = self._head.status
        if "close" in headers.get("connection", "").lower():
            self._keep_alive = False
        if status in _NO_BODY:
            self._bodiless = True
            del headers["content-type"]
        elif "content-length" in headers:
            self._promised = 0 if self._bodiless else int(headers["content-length"])
        elif self._http_1_0:
            self._keep_alive = False  # RFC 9112 6.3: only the end of the connection ends such a body
        elif not self._bodiless:
            self._chunked = True
            headers["transfer-encoding"] = "chunked"
        if not self._keep_alive:
            headers["connection"] = "close"
        elif self._http_1_0:
            headers["connection"] = "keep-alive"
        self._transport.write(response_head(status, headers))
        self._received.status = status
        self._service.tell(self._received, "head", time.monotonic(), {"status": status})

    async def _wait_at(self, gate: Gate) -> None:
        service, received = self._service, self._received
        service.tell(received, "gate", time.monotonic(), {"gate": gate.name, "state": "waiting"})
        service.flush()
        waiting = service.gates.enter(gate.name)
        service.changed()
        passed = await service.gates.wait(gate.name, waiting, gate.seconds)
        state = "passed" if passed else "timed out"
        service.tell(received, "gate", time.monotonic(), {"gate": gate.name, "state": state})

    async def _close(self, how: How) -> None:
        """End the response. The script has run out then: the client's leaving after this cancels nothing."""
        received = self._received
        if how is How.CLEAN:
            if received.status is None:
                self._send_head()
            if self._chunked:
                self._transport.write(b"0\r\n\r\n")
            received.done_at = time.monotonic()
            if not self._keep_alive or self._promised:
                self._connection.hang_up()
            return
        if how is How.HALF_CHUNK and self._chunked:
            self._transport.write(b"400\r\n")
        if how is How.RESET:
            await all_delivered(self._transport, bounds.DELIVERY_SECONDS)
            reset_on_close(self._transport)
        received.done_at = time.monotonic()
        self._connection.hang_up(abort=how is How.RESET)
