"""The scripted model's server: one protocol object per TCP connection, for control of every write and of the end.

A web framework would decide when bytes leave, join them, and tell late or never that the client has gone. Here each
piece is one write on a socket with TCP_NODELAY (asyncio sets it), the connection is always being read, and the
client's FIN or reset is seen while the script waits.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from motamot.scripted import bounds
from motamot.scripted.chat import ChatCompletions
from motamot.scripted.dialects import BadRequest, Dialect, Op, play_stream, play_whole
from motamot.scripted.embeddings import embeddings
from motamot.scripted.gates import Gates
from motamot.scripted.http import HttpRequest, RefusedRequest, RequestReader, response_head
from motamot.scripted.records import JsonLines, Observer, Piece, Received, dumped, request_event, shown
from motamot.scripted.script import Scripts, turn_of
from motamot.scripted.sockets import all_delivered, reset_on_close
from motamot.scripted.steps import Close, Gate, Head, How, Wait

__all__ = ["Connection", "Model"]

DIALECTS: tuple[Dialect, ...] = (ChatCompletions(),)
_JSON = ("content-type", "application/json")
_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_NO_BODY = frozenset({204, 304})


@dataclass(slots=True, kw_only=True)
class Model:
    """What all connections share: the scripts, what was received, gates, and who watches. Belongs to one event loop."""

    scripts: Scripts
    api_key: str | None = None
    observer: Observer | None = None
    keep_requests: bool = True
    keep_pieces: bool = True
    changed: Callable[[], None] = lambda: None
    gates: Gates = field(default_factory=Gates)
    requests: list[Received] = field(default_factory=list)  # to a model's completion routes, in order of arrival
    others: list[Received] = field(default_factory=list)
    connections: set[Connection] = field(default_factory=set)
    count: int = 0
    answered: int = 0  # completion requests that a script was looked for
    kept: int = 0  # bytes of pieces in memory

    def received(self, request: HttpRequest) -> Received:
        """Note a request, before anything is answered."""
        self.count += 1
        received = Received(
            number=self.count,
            method=request.method,
            path=request.path,
            headers=request.headers,
            raw=request.body,
            body=_decoded(request.body),
        )
        if self.keep_requests:
            completion = any(_route(request.path) == dialect.path for dialect in DIALECTS)
            (self.requests if completion else self.others).append(received)
        return received

    def tell(self, event: dict[str, Any]) -> None:
        if self.observer is not None:
            self.observer(event)

    def flush(self) -> None:
        if isinstance(self.observer, JsonLines):
            self.observer.flush()

    def answer(self, request: HttpRequest, received: Received) -> Iterable[Op]:
        """What is to be sent for this request."""
        path = _route(request.path)
        ops: Iterable[Op]
        try:
            self._allow(request.headers)
            ops = self._routed(path, request, received)
        except BadRequest as error:
            ops = _refused(_Refused(400, error.message, "invalid_request_error", None, error.param))
        except _Refused as refused:
            ops = _refused(refused)
        event = request_event(received)
        if received.script is not None:
            event |= {"script": received.script, "turn": received.turn, "stream": received.stream}
        self.tell(event)
        self.changed()
        return ops

    def _allow(self, headers: Mapping[str, str]) -> None:
        if self.api_key is None:
            return
        bearer = headers.get("authorization", "")
        given = bearer[7:] if bearer[:7].lower() == "bearer " else headers.get("x-api-key", headers.get("api-key", ""))
        if not hmac.compare_digest(given.encode(), self.api_key.encode()):
            raise _Refused(401, "the API key is wrong or missing", "invalid_request_error", "invalid_api_key")

    def _routed(self, path: str, request: HttpRequest, received: Received) -> Iterable[Op]:
        for dialect in DIALECTS:
            if path == dialect.path:
                _method(request, "POST")
                return self._completion(dialect, received)
        if path == "/embeddings":
            _method(request, "POST")
            return _json(embeddings(_body(received)))
        if path == "/models" or path.startswith("/models/"):
            _method(request, "GET")
            return _json(self._models(path[len("/models/") :]))
        if path.startswith("/scripted/gates/"):
            _method(request, "POST")
            return _json(self._gate(*path[len("/scripted/gates/") :].partition("/")[::2]))
        raise _Refused(404, f"there is nothing at {request.path[:200]}", "invalid_request_error", "unknown_url")

    def _models(self, name: str) -> dict[str, Any]:
        listed = [{"id": n, "object": "model", "created": 0, "owned_by": "motamot"} for n in self.scripts.models]
        if not name:
            return {"object": "list", "data": listed}
        for model in listed:
            if model["id"] == name:
                return model
        raise _Refused(404, f"there is no model {name[:200]}", "invalid_request_error", "model_not_found")

    def _gate(self, name: str, act: str) -> dict[str, Any]:
        if act not in ("release", "hold"):
            raise _Refused(404, "a gate knows release and hold", "invalid_request_error", "unknown_url")
        waiting = self.gates.waiting(name)
        (self.gates.release if act == "release" else self.gates.hold)(name)
        return {"gate": name, "open": act == "release", "waiting": waiting}

    def _completion(self, dialect: Dialect, received: Received) -> Iterable[Op]:
        asked = dialect.read(_body(received))
        script = self.scripts.choose(asked.question, self.answered)
        self.answered += 1
        received.stream = asked.stream
        if script is None:
            raise _Refused(500, self._nothing_to_say(), "server_error", "no_script")
        received.script = script.name
        received.turn, turn = turn_of(script, asked.round)
        received.cancel_seconds = turn.cancel_seconds
        play = play_stream if asked.stream or turn.raw else play_whole
        return play(turn, dialect, asked, received.number)

    def _nothing_to_say(self) -> str:
        if self.scripts.requests is not None:
            return f"the script has answers for {len(self.scripts.requests)} requests; this is number {self.answered}"
        return "no word of the last user message names a script, none matches, and there is no default"


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    status: int
    message: str
    type: str
    code: str | None = None
    param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def _refused(refused: _Refused) -> Iterator[Op]:
    error = {"message": refused.message, "type": refused.type, "param": refused.param, "code": refused.code}
    return _json({"error": error}, refused.status, refused.headers)


def _json(value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Iterator[Op]:
    body = dumped(value)
    yield Head(status, (_JSON, ("content-length", str(len(body))), *headers))
    yield body
    yield Close(How.CLEAN)


def _method(request: HttpRequest, method: str) -> None:
    if request.method != method:
        message = f"{request.path[:200]} takes {method} only"
        raise _Refused(405, message, "invalid_request_error", None, None, (("allow", method),))


def _route(target: str) -> str:
    """A request's path without its query, a trailing slash or the /v1 before it."""
    path = target.partition("?")[0]
    path = path.rstrip("/") or "/"
    return path.removeprefix("/v1") if path.startswith("/v1/") else path


def _decoded(data: bytes) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _body(received: Received) -> Any:
    if received.body is None:
        raise BadRequest("the body is not JSON")
    return received.body


class Connection(asyncio.Protocol):
    """One TCP connection: reads requests one after the other, plays an answer for each."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._reader = RequestReader()
        self.transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._current: Received | None = None  # the last request of this connection
        self._writable: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._model.connections.add(self)
        if len(self._model.connections) > bounds.CONNECTIONS:
            self._refuse(503, f"more than {bounds.CONNECTIONS} connections")
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._reader.feed(data)
        if self._task is None:
            self._next()
        elif self._reader.held > bounds.HEAD_BYTES:
            # Nobody sends so much before the answer to the last request; and reading on is how a leaving is seen.
            self.transport.abort()

    def eof_received(self) -> bool:
        # A client that has closed and one that has only ended its side look alike: model servers take both as gone.
        self._left("closed")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closing:
            self._left("reset" if exc is not None else "closed")
        self._model.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Requests

    def shut(self) -> asyncio.Task[None] | None:
        """Cut the connection because the server closes. Gives the task that still has to see it."""
        task = self._task
        if task is not None:
            task.cancel()
        self.hang_up(abort=True)
        return task

    def hang_up(self, *, abort: bool = False) -> None:
        """Close the connection from this side, after what was written or at once: no leaving of the client."""
        self._closing = True
        if abort:
            self.transport.abort()
        else:
            self.transport.close()

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
        self._current = self._model.received(request)
        ops = self._model.answer(request, self._current)
        response = _Response(self, self._model, self._current, request)
        self._task = self._loop.create_task(response.play(ops))
        self._task.add_done_callback(self._played)

    def _played(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "the scripted model failed", "exception": error})
            self.hang_up(abort=True)
        if not self._closing:
            self._next()

    def _watch(self) -> None:
        """One timer: for the rest of a request, or for the next one."""
        if self._timer is not None:
            self._timer.cancel()
        seconds = bounds.HEAD_SECONDS if self._reader.started else bounds.IDLE_SECONDS
        self._timer = self._loop.call_later(seconds, self.hang_up)

    def _refuse(self, status: int, message: str) -> None:
        body = dumped({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        self.transport.write(response_head(status, headers) + body)
        self.hang_up()

    def _left(self, how: str) -> None:
        """The client has gone: note it at once, and end the script."""
        received = self._current
        if received is None or received.left_at is not None:
            return
        received.left_at = time.monotonic()
        received.left_how = how
        self._model.tell(
            {
                "event": "client_left",
                "request": received.number,
                "ms": _ms(received, received.left_at),
                "how": how,
                "script_done": received.done_at is not None,
            }
        )
        self._model.flush()
        if self._task is not None:
            self._task.cancel()
        self._model.changed()

    async def drained(self) -> None:
        """Let others have a turn, and wait until the client takes what was written."""
        if self._writable is not None:
            await self._writable
        else:
            await asyncio.sleep(0)


class _Response:
    """Plays one answer on a connection."""

    def __init__(
        self,
        connection: Connection,
        model: Model,
        received: Received,
        request: HttpRequest,
    ) -> None:
        self._connection = connection
        self._model = model
        self._transport = connection.transport
        self._received = received
        self._request = request
        self._head = Head(200)
        self._chunked = False
        self._body_left: int | None = None  # bytes that `content-length` still promises
        self._keep_alive = request.keep_alive

    async def play(self, ops: Iterable[Op]) -> None:
        received = self._received
        try:
            how = await self._ops(ops)
        except asyncio.CancelledError:
            self._end("left" if received.left_at is not None else "server-closed")
            raise
        self._end(how)

    async def _ops(self, ops: Iterable[Op]) -> str:
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
                    self._model.flush()
                    await asyncio.sleep(seconds)
                case Gate():
                    await self._gate(op)
                case Head():
                    self._head = op
                case Close(how):
                    await self._close(how)
                    return how.value
        raise AssertionError("the ops of an answer end with a Close")

    def _write(self, data: bytes) -> None:
        received = self._received
        if received.status is None:
            self._send_head()
        if not data or self._head.status in _NO_BODY:
            return
        if self._chunked:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self._transport.write(data)
            if self._body_left is not None:
                self._body_left -= len(data)
        now = time.monotonic()
        received.sent_pieces += 1
        received.sent_bytes += len(data)
        model = self._model
        if model.keep_pieces:
            model.kept += len(data)
            received.pieces.append(Piece(now, len(data), data if model.kept <= bounds.KEPT_BYTES else None))
        if model.observer is not None:
            event = {"event": "piece", "request": received.number, "ms": _ms(received, now), "bytes": len(data)}
            model.observer(event | shown(data))
        model.changed()

    def _send_head(self) -> None:
        headers = dict(_STREAM)
        headers.update(self._head.headers)
        if "close" in headers.get("connection", "").lower():
            self._keep_alive = False
        if self._head.status in _NO_BODY:
            headers.pop("content-type", None)
        elif "content-length" in headers:
            self._body_left = int(headers["content-length"])
        elif self._request.http_1_0:
            self._keep_alive = False
        else:
            self._chunked = True
            headers["transfer-encoding"] = "chunked"
        if not self._keep_alive:
            headers["connection"] = "close"
        elif self._request.http_1_0:
            headers["connection"] = "keep-alive"
        self._transport.write(response_head(self._head.status, headers))
        received = self._received
        received.status = self._head.status
        at = time.monotonic()
        self._tell({"event": "head", "status": received.status}, at)

    async def _gate(self, gate: Gate) -> None:
        self._tell({"event": "gate", "gate": gate.name, "state": "waiting"}, time.monotonic())
        self._model.flush()
        self._model.changed()
        opened = await self._model.gates.wait(gate.name, gate.seconds)
        state = "passed" if opened else "timed out"
        self._tell({"event": "gate", "gate": gate.name, "state": state}, time.monotonic())

    async def _close(self, how: How) -> None:
        """End the response. The script has run out: the client's leaving after this cancels nothing."""
        received = self._received
        if how is How.CLEAN:
            if received.status is None:
                self._send_head()
            if self._chunked:
                self._transport.write(b"0\r\n\r\n")
            received.done_at = time.monotonic()
            if not self._keep_alive or self._body_left:
                self._connection.hang_up()
            return
        if how is How.HALF_CHUNK and self._chunked:
            self._transport.write(b"400\r\n")
        if how is How.RESET:
            await all_delivered(self._transport, bounds.DELIVERY_SECONDS)
        received.done_at = time.monotonic()
        if how is How.RESET:
            reset_on_close(self._transport)
        self._connection.hang_up(abort=how is How.RESET)

    def _end(self, how: str) -> None:
        received = self._received
        received.ended = how
        event = {"event": "end", "how": how, "pieces": received.sent_pieces, "bytes": received.sent_bytes}
        if received.cancel_seconds is not None:
            event["expected_cancel"] = received.cancelled
        self._tell(event, time.monotonic())
        self._model.flush()
        self._model.changed()

    def _tell(self, event: dict[str, Any], at: float) -> None:
        if self._model.observer is not None:
            name = event.pop("event")
            place = {"event": name, "request": self._received.number, "ms": _ms(self._received, at)}
            self._model.observer(place | event)


def _ms(received: Received, at: float) -> float:
    return round((at - received.started_at) * 1000, 3)
