"""Single questions put to `motamot serve`: how soon a stop stops, how a slow reader is served, how soon it listens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from bench.http.targets import TARGETS, Running, free_port, motamot_settings, serving
from motamot.sse import Decoder

__all__ = ["Slow", "slow_reader", "start_up", "stops"]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_END = b"data: [DONE]\n\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[object, object, None]]


@dataclass(frozen=True, slots=True)
class Slow:
    """How a slow reader was served. directly_seconds: what the model took with a reader that is fast."""

    model_seconds: float
    directly_seconds: float
    client_seconds: float
    kb_grown: int
    exact: bool


def _chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


@contextlib.asynccontextmanager
async def _upstream(talk: Talk) -> AsyncIterator[int]:
    """A model's server; each request is read, and `talk` answers it."""

    async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await _request(reader)
            writer.write(_HEAD)
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(asked, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))


async def _post(
    port: int, path: str, body: dict[str, object], secret: str, *, read_buffer: int = 0
) -> asyncio.StreamReader:
    """Send a request on a connection of its own. read_buffer: bytes that the system takes in ahead of the reader."""
    connection = socket.socket()
    if read_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, read_buffer)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=read_buffer or 1 << 16)
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {secret}\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    _open.add(writer)
    return reader


_open: set[asyncio.StreamWriter] = set()
"""A writer that is collected closes its connection."""


async def stops(folder: Path, times: int) -> list[float]:
    """Seconds from sending a stop to the model's server seeing its connection closed. The model is silent meanwhile."""
    closed: asyncio.Queue[float] = asyncio.Queue()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_chunk("Hello "))
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.put_nowait(time.monotonic())

    found = []
    async with _upstream(talk) as upstream:
        with serving(TARGETS["motamot"], folder, upstream, None) as relay:
            for number in range(times):
                secret = secrets.token_urlsafe(24)
                key = f"key-{number}"
                answer = await _post(relay.port, "/api/chat/stream", {"message": "?", "key": key}, secret)
                await answer.readuntil(b"Hello ")
                began = time.monotonic()
                stopped = await _post(relay.port, f"/api/exchanges/{key}/stop", {}, secret)
                found.append(await asyncio.wait_for(closed.get(), 10) - began)
                await stopped.readuntil(b"stopped")
                for writer in _open:
                    writer.close()
                _open.clear()
    return found


async def slow_reader(folder: Path, size: int, per_second: int) -> Slow:
    """Read an answer of `size` bytes at `per_second`, after a fast reader had the same."""
    pieces = [f"{number:06d} " + "mot à mot, " * 80 for number in range(size // 888)]
    text = "".join(pieces)
    done: asyncio.Queue[float] = asyncio.Queue()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:  # noqa: ARG001
        began = time.monotonic()
        for piece in pieces:
            writer.write(_chunk(piece))
            await writer.drain()
        writer.write(_chunk("", "stop") + _END)
        await writer.drain()
        done.put_nowait(time.monotonic() - began)

    async with _upstream(talk) as upstream:
        with serving(TARGETS["motamot"], folder, upstream, None) as relay:
            fast = await _post(relay.port, "/api/chat/stream", {"message": "?"}, secrets.token_urlsafe(24))
            await fast.read()
            directly = await done.get()
            before = _memory(relay)
            most = before
            began = time.monotonic()
            slow = await _post(
                relay.port, "/api/chat/stream", {"message": "?"}, secrets.token_urlsafe(24), read_buffer=32_768
            )
            raw = b""
            while piece := await slow.read(per_second // 10):
                raw += piece
                most = max(most, _memory(relay))
                await asyncio.sleep(max(0.0, began + len(raw) / per_second - time.monotonic()))
            took = time.monotonic() - began
            return Slow(await done.get(), directly, took, most - before, _text(raw) == text)


def _text(raw: bytes) -> str:
    """The answer in a chunked response."""
    body = raw.partition(b"\r\n\r\n")[2]
    decoder = Decoder()
    found = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        for event in decoder.feed(rest[: int(size, 16)]):
            told = json.loads(event.data)
            found.append(told["text"] if told["type"] == "text" else "")
        body = rest[int(size, 16) + 2 :]
    return "".join(found)


def _memory(relay: Running) -> int:
    """kB of its own that the relay holds."""
    status = Path(f"/proc/{relay.pids[0]}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def start_up(folder: Path, times: int) -> list[float]:
    """Seconds from starting `motamot serve` to its port taking a connection. The first one makes the database."""
    folder.mkdir()
    settings = motamot_settings(folder, free_port())
    found = []
    for _ in range(times):
        port = free_port()
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "motamot", "serve", "--settings", str(settings), "--port", str(port)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:  # the socket is there before anybody answers: this is said once it serves
            if "motamot serves" in line:
                break
        socket.create_connection(("127.0.0.1", port)).close()
        found.append(time.monotonic() - began)
        process.terminate()
        process.communicate()
    return found
