"""Hand-written servers on real sockets, and a way to ask them that lets nothing leak."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from motamot.answer import AnswerEvent, Reasoning, Text
from motamot.model.http import HttpModel
from motamot.model.turn import Message, Turn, TurnRequest

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}\n\n'
DONE = b"data: [DONE]\n\n"
LAST = b"0\r\n\r\n"
QUESTION = TurnRequest(messages=[Message(role="user", content="What is the weather in Lyon?")], max_tokens=50)


def said(text: str) -> bytes:
    """An event with a delta of text."""
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    """A chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def reply(status: int, body: bytes, **headers: str) -> bytes:
    """A whole reply with a length."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


ANSWER = HEAD + chunk(said("Hel")) + chunk(said("lo")) + chunk(FINISH) + chunk(USAGE) + chunk(DONE) + LAST


@dataclass
class Request:
    """A request as it came in. Header names are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Peer:
    """The server's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    came: bytearray = field(default_factory=bytearray)
    gone_at: float | None = None

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self._pump = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while data := await self.reader.read(65536):
                self.came += data
                self._news.set()
        except OSError:
            pass
        finally:
            self.gone_at = time.monotonic()
            self._news.set()

    async def gone(self) -> float:
        """Wait until the client has closed or reset; gives when that was seen."""
        while self.gone_at is None:
            self._news.clear()
            await self._news.wait()
        return self.gone_at

    async def take(self, enough: Callable[[bytearray], int]) -> bytes:
        """Bytes as soon as `enough` says how many of those that came make a whole; b"" when they never will."""
        while not (size := enough(self.came)):
            if self.gone_at is not None:
                return b""
            self._news.clear()
            await self._news.wait()
        taken = bytes(self.came[:size])
        del self.came[:size]
        return taken

    async def request(self) -> Request | None:
        head = await self.take(lambda data: data.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in data else 0)
        if not head:
            return None
        line, *lines = head.decode().strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
        size = int(headers.get("content-length", 0))
        body = await self.take(lambda data: size if len(data) >= size else 0) if size else b""
        return Request(line, headers, body)

    async def send(self, *pieces: bytes, pause: float = 0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if pause:
                await asyncio.sleep(pause)

    def reset(self) -> None:
        """Cut the connection so that the client gets a reset."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.transport.abort()
        self._pump.cancel()


Script = Callable[[Peer], Awaitable[None]]


def sends(*pieces: bytes, pause: float = 0) -> Script:
    """A script that writes these, and leaves the connection open for the next request."""

    async def script(peer: Peer) -> None:
        await peer.send(*pieces, pause=pause)

    return script


def sends_and_closes(*pieces: bytes) -> Script:
    async def script(peer: Peer) -> None:
        await peer.send(*pieces)
        peer.writer.close()

    return script


def sends_and_resets(*pieces: bytes) -> Script:
    async def script(peer: Peer) -> None:
        await peer.send(*pieces)
        await asyncio.sleep(0.05)  # let them arrive: a reset overtakes what waits
        peer.reset()

    return script


class Upstream:
    """A model's server that answers the n-th request by the n-th script, and counts what reaches it."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.scripts = scripts
        self.requests: list[Request] = []
        self.peers: list[Peer] = []
        self.asked = asyncio.Event()
        self._tls = tls
        self._host = host
        self._handlers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, self._host, 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self._tls else ''}://{self._host}:{self.port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        task = asyncio.create_task(self._serve(peer))
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    async def _serve(self, peer: Peer) -> None:
        try:
            await self._answer(peer)
        except OSError:
            pass
        finally:
            peer.close()

    async def _answer(self, peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            self.requests.append(request)
            self.asked.set()
            number = len(self.requests)
            script = self.scripts[number - 1] if number <= len(self.scripts) else sends(reply(500, b"no such script"))
            await script(peer)


@dataclass
class Answer:
    """What an attempt gave."""

    turn: Turn
    events: list[AnswerEvent]

    @property
    def text(self) -> str:
        return self.turn.text


async def ask(model: HttpModel, request: TurnRequest = QUESTION) -> Answer:
    """Run one attempt. What was emitted is what the turn says, always."""
    events: list[AnswerEvent] = []

    def emit(more: Sequence[AnswerEvent]) -> None:
        assert more, "nothing was emitted"
        events.extend(more)

    turn = await model.attempt(request).run(emit)
    assert turn.text == "".join(event.text for event in events if isinstance(event, Text))
    assert turn.reasoning == "".join(event.text for event in events if isinstance(event, Reasoning))
    return Answer(turn, events)


async def ask_once(upstream: Upstream, **settings: Any) -> Answer:
    """Ask a model at `upstream` and let go of it; whatever happened, one request at most has reached the server."""
    before = len(upstream.requests)
    model = HttpModel(upstream.url, "m", **settings)
    try:
        return await ask(model)
    finally:
        await model.close()
        assert len(upstream.requests) - before <= 1, "something asked again in secret"


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test; no task, socket or exception may be left behind."""
    told: list[dict[str, Any]] = []

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        async with asyncio.timeout(50):
            await main
        await asyncio.sleep(0.01)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"left running: {left}"
        gc.collect()

    asyncio.run(watched())
    gc.collect()
    assert not told, f"told to nobody: {told}"
