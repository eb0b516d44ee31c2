"""What tests of recordings are made with: HARs, and a server that writes any bytes."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["Answers", "answering", "entry", "har"]


def entry(
    text: str | None = "data: Hello\n\n",
    *,
    kind: str = "text/event-stream",
    url: str = "https://chat.example.com/api/chat/stream",
    method: str = "POST",
    status: int = 200,
    size: int = 13,
    **content: Any,
) -> dict[str, Any]:
    """One entry of a HAR."""
    body = {"size": size, "mimeType": kind, **content}
    if text is not None:
        body["text"] = text
    return {
        "startedDateTime": "2026-11-29T20:00:00.000Z",
        "time": 300.5,
        "request": {
            "method": method,
            "url": url,
            "headers": [{"name": "Accept", "value": "*/*"}, {"name": "Cookie", "value": "visitor=geheim"}],
            "postData": {"mimeType": "application/json", "text": '{"message":"Hi"}'},
        },
        "response": {
            "status": status,
            "headers": [{"name": "content-type", "value": kind}, {"name": "set-cookie", "value": "visitor=geheim"}],
            "content": body,
        },
        "timings": {"send": 0, "wait": 120.5, "receive": 180},
    }


def har(*entries: dict[str, Any]) -> dict[str, Any]:
    """A HAR of these entries."""
    return {"log": {"version": "1.2", "creator": {"name": "a browser", "version": "1"}, "entries": list(entries)}}


class Answers:
    """A server on a real socket that gives each connection the next list of steps: bytes to send, seconds to wait, or
    `reset`; and keeps what it was asked."""

    def __init__(self, answers: Sequence[Sequence[bytes | float | str]]) -> None:
        self._answers = list(answers)
        self.asked: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = asyncio.Event()

    def __enter__(self) -> Answers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.create_task(self._answer(reader, writer)))

        server = await asyncio.start_server(connected, sock=self._listening)
        await self._ended.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        steps = self._answers.pop(0)
        try:
            asked = b""
            while b"\r\n\r\n" not in asked:
                if not (more := await reader.read(65_536)):
                    return
                asked += more
            self.asked.append(asked)
            for step in steps:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif isinstance(step, str):
                    sock = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                else:
                    await asyncio.sleep(step)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@contextmanager
def answering(*answers: Sequence[bytes | float | str]) -> Iterator[Answers]:
    """`Answers`, running."""
    with Answers(answers) as server:
        yield server
