"""For tests of your own: a model that plays scripts, an app called without a network, and the contract of a store.

from motamot.testing import ScriptedModel, call

async def test_a_visitor_who_leaves_stops_the_model() -> None:
    async with ScriptedModel([[{"say": ["Hello", ", ", "world."], "pace": 50}]]) as model:
        chat = Assistant(upstream=model.url, model="scripted", store=folder / "books.sqlite3")
        answer = await call(chat.asgi, "GET /flux", stop_after=2)
        assert answer.pieces == ["Hello", ", "]
        await model.wait_left(0)
"""

# ruff: noqa: ASYNC109 - a timeout of a test helper is a parameter: callers read `call(app, "GET /", timeout=2)`

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from motamot.protocols.base import READER_EVENT_BYTES
from motamot.scripted import ScriptedModel, ThreadedScriptedModel, scripted_model
from motamot.sse import Decoder, Event
from motamot.store.contract import StoreContract

__all__ = ["Answered", "ScriptedModel", "StoreContract", "ThreadedScriptedModel", "call", "running", "scripted_model"]

_GRACE_SECONDS = 1.0
"""For an app that is cancelled because its time is over."""

_TARGET = "/?&=%+:@!$'()*,;~[]"  # what may stand in a request's address as it is; all else is percent-encoded
_VERSION = {"version": "3.0", "spec_version": "2.3"}  # uvicorn's: an app that trusts `send` to raise is not helped


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an app answered.

    headers: by name, whatever its case. body: the bytes that were read.
    pieces:  the text, piece by piece as it was sent. Of an event stream, what its events add to the text: the `morceau`
             of `morceaux`, the text of the `motamot` and `openai` protocols, else the data of an event that has no
             name; an event that adds none is no piece. Of any other response, each write that had something in it.
    events:  of an event stream, all of them; else none.
    left:    the client left before the end, as `stop_after` says.
    """

    status: int
    headers: Headers
    body: bytes
    pieces: list[str]
    events: list[Event]
    left: bool

    @property
    def text(self) -> str:
        """All pieces in one."""
        return "".join(self.pieces)

    def json(self) -> Any:
        """The body as JSON. Raises: ValueError."""
        return json.loads(self.body)


async def call(
    app: ASGIApp,
    request: str,
    *,
    stop_after: int | None = None,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    body: object = b"",
    root_path: str = "",
    client: tuple[str, int] = ("127.0.0.1", 50_000),
    timeout: float = 30.0,
) -> Answered:
    """Ask an ASGI app as one client would, without a network, and read its answer as it comes.

    request:    method and address: `"GET /flux?message=Bonjour"`.
    stop_after: close the connection once so many pieces (see `Answered`) were read; what came behind the last of them
                is not read any more. Back when the app has noticed and has come to its end. The app sees what uvicorn
                shows it: `receive` says `http.disconnect`, `send` goes nowhere.
    headers:    besides `Host: localhost` and `Accept: text/event-stream, */*`; one of the same name takes their place.
    body:       bytes or text; anything else goes as JSON, with its Content-Type.
    root_path:  where the app is mounted; the request's address begins with it then. client: address and port.
    timeout:    seconds for all of it.
    Raises:     TimeoutError, with what had come; RuntimeError where the app breaks off or sends what no server takes;
                ValueError for a request that is none; and whatever the app raises. The app's lifespan is not run: see
                `running`.
    """
    method, _, target = request.partition(" ")
    if not method.isalpha() or not target.startswith("/"):
        raise ValueError(f'a request is a method and an address, as "GET /flux"; this is {request!r}')
    if stop_after is not None and stop_after < 1:
        raise ValueError("a client can stop after one piece or more: stop_after is 1 at least")
    sent, kind = _encoded(body)
    path, _, query = quote(target, safe=_TARGET).partition("?")
    scope: Scope = {
        "type": "http",
        "asgi": _VERSION,
        "http_version": "1.1",
        "method": method.upper(),
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": root_path,
        "headers": _head(headers, sent, kind),
        "client": client,
        "server": ("localhost", 80),
    }
    visitor = _Client(method.upper(), sent, stop_after)
    task = asyncio.ensure_future(app(scope, visitor.receive, visitor.send))
    try:
        await asyncio.wait({task}, timeout=timeout)
    finally:
        late = not task.done()
        if late:
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE_SECONDS)
    if late:
        still = "did not notice that the client had left" if visitor.left.is_set() else "was not done"
        raise TimeoutError(f"the app {still} within {timeout:g} s; it had sent {bytes(visitor.body[-200:])!r}")
    task.result()
    return visitor.answered()


@asynccontextmanager
async def running(app: ASGIApp, *, timeout: float = 30.0) -> AsyncIterator[ASGIApp]:
    """Run an app's lifespan around calls, as a server does: `async with running(app) as app: await call(app, …)`.

    An app that has none is taken as it is. timeout: seconds for its start, and for its end.
    Raises: RuntimeError where it says that it cannot start or stop; TimeoutError.
    """
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message | None] = asyncio.Queue()
    state: dict[str, Any] = {}
    scope: Scope = {"type": "lifespan", "asgi": _VERSION, "state": state}
    task = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    task.add_done_callback(lambda _: from_app.put_nowait(None))

    async def started(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": dict(state)}, receive, send)

    async def step(name: str) -> bool:
        """Whether the app took it. One that ends or raises instead has no lifespan, as servers see it."""
        to_app.put_nowait({"type": f"lifespan.{name}"})
        async with asyncio.timeout(timeout):
            said = await from_app.get()
        if said is not None and said["type"].endswith(".failed"):
            raise RuntimeError(f"the app's {name} failed: {said.get('message', '')}")
        return said is not None

    try:
        if not await step("startup"):
            yield app
        else:
            yield started
            await step("shutdown")
            await asyncio.wait({task}, timeout=timeout)
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE_SECONDS)
        if not task.cancelled():
            task.exception()  # told already, by its `failed` or by its absence


@dataclass(slots=True)
class _Client:
    """The other end of one request."""

    method: str
    request_body: bytes
    stop_after: int | None
    status: int | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    reader: _Reader = field(default_factory=lambda: _Reader(events=False))
    left: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)  # the answer is whole, or the client has left
    asked: bool = False

    async def receive(self) -> Message:
        if not self.asked:
            self.asked = True
            return {"type": "http.request", "body": self.request_body, "more_body": False}
        await self.over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await asyncio.sleep(0)  # a network lets others have their turn, too
        if self.left.is_set():
            return
        expected = "http.response.start" if self.status is None else "http.response.body"
        if self.over.is_set() or message["type"] != expected:
            expected = "nothing" if self.over.is_set() else expected
            raise RuntimeError(f"the app sent {message['type']} where {expected} may come")
        if self.status is None:
            self.status = message["status"]
            self.headers = list(message.get("headers", ()))
            kind = Headers(raw=self.headers).get("content-type", "")
            self.reader = _Reader(events=kind.partition(";")[0].strip().lower() == "text/event-stream")
            return
        if self.method != "HEAD":
            self._read(message.get("body", b""))
        if not message.get("more_body", False):
            self.over.set()

    def _read(self, data: bytes) -> None:
        if self.stop_after is None or not self.reader.decoder:
            parts = [data] if data else []
        else:
            parts = data.splitlines(keepends=True)  # the client may leave in the middle of what came at once
        for part in parts:
            self.body += part
            self.reader.feed(part)
            if self.stop_after is not None and len(self.reader.pieces) >= self.stop_after:
                self.left.set()
                self.over.set()
                return

    def answered(self) -> Answered:
        if self.status is None or not self.over.is_set():
            raise RuntimeError(f"the app ended before its answer did; it had sent {bytes(self.body[-200:])!r}")
        return Answered(
            status=self.status,
            headers=Headers(raw=self.headers),
            body=bytes(self.body),
            pieces=self.reader.pieces,
            events=self.reader.events,
            left=self.left.is_set(),
        )


class _Reader:
    """Finds pieces and events in a body."""

    def __init__(self, *, events: bool) -> None:
        self.pieces: list[str] = []
        self.events: list[Event] = []
        self.decoder = Decoder(max_event_bytes=READER_EVENT_BYTES) if events else None
        self._text = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        if self.decoder is None:
            found = [self._text.decode(data)]
        else:
            events = self.decoder.feed(data)
            self.events += events
            found = [_added(event) for event in events]
        self.pieces += [piece for piece in found if piece]


def _added(event: Event) -> str:
    """What an event adds to the text of the answer; "" for nothing."""
    if event.event != "message" or event.data == "[DONE]":
        return ""
    try:
        told = json.loads(event.data)
    except (ValueError, RecursionError):
        return event.data
    match told:
        case {"morceau": str(text)} | {"type": "text", "text": str(text)}:
            return text
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            return text
        case {"morceau": _} | {"type": _} | {"choices": _} | {"error": _}:
            return ""
    return event.data


def _encoded(body: object) -> tuple[bytes, str | None]:
    """The body's bytes, and the Content-Type that goes with them."""
    if isinstance(body, bytes):
        return body, None
    if isinstance(body, str):
        return body.encode(), None
    return json.dumps(body).encode(), "application/json"


def _head(
    headers: Mapping[str, str] | Iterable[tuple[str, str]], body: bytes, kind: str | None
) -> list[tuple[bytes, bytes]]:
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    ours = {"host": "localhost", "accept": "text/event-stream, */*"}
    if body:
        ours["content-length"] = str(len(body))
    if kind:
        ours["content-type"] = kind
    for name, _ in pairs:
        ours.pop(name.lower(), None)
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in [*ours.items(), *pairs]]
