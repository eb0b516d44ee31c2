"""A client of the server that hides nothing: bytes as they come, and what each protocol's own reader makes of them."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvloop

from motamot.answer import AnswerEvent, Ended, Text
from motamot.protocols import PROTOCOLS
from motamot.sse import Decoder, Event
from tests.scripted.wire import Client, Response

__all__ = ["Stream", "Visitor", "request", "run"]

T = TypeVar("T")


def run(scenario: Coroutine[Any, Any, T], *, seconds: float = 50, loop: str = "uvloop") -> T:
    """Run to the end on the event loop of `motamot serve`, or on asyncio's own."""
    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(asyncio.wait_for(scenario, seconds))


def request(
    method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None, raw: bytes | None = None
) -> bytes:
    """The bytes of a request; `body` is sent as JSON."""
    data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    fields = {"Host": "localhost"}
    if body is not None:
        fields["Content-Type"] = "application/json"
    if data or method == "POST":
        fields["Content-Length"] = str(len(data))
    head = "".join(f"{name}: {value}\r\n" for name, value in {**fields, **(headers or {})}.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + data


@dataclass
class Stream:
    """A streamed response, read as it comes."""

    client: Client
    protocol: str = "motamot"
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    pieces: list[tuple[float, bytes]] = field(default_factory=list)  # `time.monotonic()` of each read
    blocks: list[Event] = field(default_factory=list)  # as a standard reader gives them
    events: list[AnswerEvent] = field(default_factory=list)
    asked_at: float = field(default_factory=time.monotonic)
    over: bool = False  # the body has ended, in order

    def __post_init__(self) -> None:
        self._decoder = Decoder(max_event_bytes=64 << 20)
        self._reader = PROTOCOLS[self.protocol].reader()

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Text))

    @property
    def ended(self) -> Ended | None:
        return next((event for event in self.events if isinstance(event, Ended)), None)

    @property
    def exchange(self) -> str:
        return self.last_id.partition(".")[0]

    @property
    def last_id(self) -> str:
        return self._decoder.last_event_id

    async def to_head(self) -> Stream:
        """Read the head."""
        await asyncio.wait_for(self.head(), 10)
        return self

    async def head(self) -> int:
        self.status, self.headers = await self.client.head()
        return self.status

    async def piece(self) -> bytes:
        """The next chunk of the body; b"" at its end."""
        data = await self.client.chunk()
        self.over = not data
        self.body += data
        self.pieces.append((time.monotonic(), data))
        self.blocks += self._decoder.feed(data)
        self.events += self._reader.feed(data)
        return data

    async def until(self, wanted: str | Callable[[Stream], object], seconds: float = 10) -> Stream:
        """Read until the text contains it, or it holds. AssertionError where the answer ends before."""
        async with asyncio.timeout(seconds):
            while not (wanted in self.text if isinstance(wanted, str) else wanted(self)):
                assert not self.over, f"the answer ended before: {self.body!r}"
                await self.piece()
        return self

    async def to_end(self, seconds: float = 30) -> Stream:
        """Read to the end of the body."""
        async with asyncio.timeout(seconds):
            while not self.over:
                await self.piece()
        return self

    async def close(self) -> None:
        """Leave."""
        await self.client.close()


class Visitor:
    """A visitor with a secret of their own. Every request is on a connection of its own."""

    def __init__(self, port: int, secret: str | None = None) -> None:
        self.port = port
        self.secret = secret or secrets.token_urlsafe(16)
        self.headers = {"Authorization": f"Bearer {self.secret}"}

    async def fetch(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Response:
        """The whole response."""
        client = await Client.to(self.port)
        try:
            await client.send(request(method, path, body, headers={**self.headers, **(headers or {})}, **more))
            return await asyncio.wait_for(client.response(bodiless=method == "HEAD"), 30)
        finally:
            await client.close()

    async def open(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        protocol: str = "motamot",
        head: bool = True,
        **more: Any,
    ) -> Stream:
        """A request whose response is a stream. head: back when its head has come."""
        client = await Client.to(self.port)
        stream = Stream(client, protocol)
        await client.send(request(method, path, body, headers={**self.headers, **(headers or {})}, **more))
        if head:
            await asyncio.wait_for(stream.head(), 10)
        return stream

    async def ask(self, message: str = "Hello", *, headers: Mapping[str, str] | None = None, **body: Any) -> Stream:
        """A native question."""
        return await self.open("POST", "/api/chat/stream", {"message": message, **body}, headers=headers)

    async def stop(self, name: str, seen: int | None = None) -> Response:
        """Press stop."""
        return await self.fetch("POST", f"/api/exchanges/{name}/stop", {"seen": seen})
