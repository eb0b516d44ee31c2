"""Many streams at once: what `bench.relay` does with thousands, at a size for every run of the tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from motamot.assistant import Assistant
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.sse import Event
from tests.server.reading import run
from tests.server.support import Served, serving

PLENTY = {"address_factor": 1_000, "requests_per_hour": 100_000, "tokens_per_hour": 1_000_000_000}


def piece(stream: int, number: int) -> str:
    """No two are the same: one that came to the wrong reader would be seen."""
    return f" {stream}·{number}é\n"


def text(stream: int, count: int) -> str:
    return "".join(piece(stream, number) for number in range(count))


class Model:
    """A model's server that answers `stream 7` with pieces no other stream has.

    `gate` is waited for before the pieces from `silent_after` on.
    """

    def __init__(self, count: int, *, pause: float = 0, silent_after: int | None = None) -> None:
        self.count = count
        self.pause = pause
        self.silent_after = silent_after
        self.gate = asyncio.Event()
        self.asked: list[int] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
            found = re.search(r"stream (\d+)", json.loads(body)["messages"][-1]["content"])
            assert found is not None
            stream = int(found[1])
            self.asked.append(stream)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for number in range(self.count):
                if number == self.silent_after:
                    await self.gate.wait()
                writer.write(self._chunk({"content": piece(stream, number)}, None))
                await writer.drain()
                await asyncio.sleep(self.pause)
            writer.write(self._chunk({}, "stop") + b"data: [DONE]\n\n")
            await writer.drain()
        writer.close()

    def _chunk(self, delta: dict[str, str], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: %s\n\n" % json.dumps({"choices": [choice]}, ensure_ascii=False).encode()


@asynccontextmanager
async def served(folder: Path, model: Model, limits: Limits) -> AsyncIterator[Served]:
    async with await asyncio.start_server(model.answer, "127.0.0.1", 0, backlog=1000) as upstream:
        url = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/v1"
        own = HttpModel(url, "m", limits=limits)

        def assistants(_url: str) -> list[Assistant]:
            return [Assistant(upstream=own, limits=limits)]

        async with serving(folder, [], assistants=assistants, options=PLENTY, limits=limits, cookies=False) as s:
            yield s
        await own.close()


def shown(events: list[Event]) -> tuple[str, str]:
    """Text and outcome; the events are numbered from 1 without a gap, and the end is the last."""
    assert [int(event.id.rpartition(".")[2]) for event in events] == list(range(1, len(events) + 1))
    assert len({event.id.rpartition(".")[0] for event in events}) == 1
    told = [json.loads(event.data) for event in events]
    assert [one["type"] for one in told].count("ended") == 1
    return "".join(one["text"] for one in told if one["type"] == "text"), told[-1]["outcome"]


async def ask(s: Served, stream: int) -> tuple[str, str]:
    async with s.client.post(f"{s.url}/api/chat/stream", json={"message": f"stream {stream}"}) as response:
        assert response.status == 200
        return shown(await s.events(response))


def test_of_many_streams_at_once_each_gets_its_own_text_whole_and_in_order(tmp_path: Path) -> None:
    streams, count = 90, 40  # aiohttp's client opens a hundred connections at most

    async def scenario() -> None:
        model = Model(count, pause=0.005)
        async with served(tmp_path, model, Limits()) as s:
            got = await asyncio.gather(*(ask(s, stream) for stream in range(streams)))
            assert got == [(text(stream, count), "complete") for stream in range(streams)]
            assert sorted(model.asked) == list(range(streams))
            spent = await s.site.exchanges.store.spent(None, 0)
            assert spent.completions == streams
            assert s.site.exchanges.running == []
            assert s.site.heartbeats.open == 0

    run(scenario())


def test_many_streams_that_were_silent_all_go_on(tmp_path: Path) -> None:
    streams, count = 90, 6

    async def scenario() -> None:
        model = Model(count, silent_after=2)
        async with served(tmp_path, model, Limits(heartbeat_seconds=0.2)) as s:
            asking = [asyncio.create_task(ask(s, stream)) for stream in range(streams)]
            async with asyncio.timeout(20):
                while len(model.asked) < streams:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.7)  # some heartbeats
            assert s.site.heartbeats.open == streams
            model.gate.set()
            got = await asyncio.gather(*asking)
            assert got == [(text(stream, count), "complete") for stream in range(streams)]

    run(scenario())
