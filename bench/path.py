"""CPU per delta of the in-process path, beside the bare codec work and the `openai` client's, in one run.

Run: `python -m bench.path`. The path: bytes of one upstream read -> Assembly -> `Exchange.emit` -> log -> a follower
that waits -> bytes of our native wire. The bare path: split at blank lines, decode with a typed msgspec struct, take
the text, encode a small event; no rules of the standard, no log, no reader.
The `openai` client: its decoder and its chunk objects.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from motamot.answer import Outcome
from motamot.exchange.exchange import Ending, Exchange
from motamot.limits import Limits
from motamot.model.assembly import assembly_for
from motamot.protocols import PROTOCOLS
from motamot.store.records import ExchangeBegun
from motamot.store.store import Store

ROUNDS = 7
DELTAS = 20_000


def chunks(count: int = DELTAS) -> list[bytes]:
    """Chunks of the shape and size OpenAI sends, 260 bytes each, one delta a chunk."""
    return [
        b'data: {"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1764446400,'
        b'"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_0123456789",'
        b'"choices":[{"index":0,"delta":{"content":" w%05d"},"logprobs":null,"finish_reason":null}]}\n\n' % number
        for number in range(count)
    ]


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice]


class _Event(msgspec.Struct):
    type: str
    text: str


def bare(stream: list[bytes]) -> int:
    """Split at blank lines, decode, take the text, encode: what a relay that parses can't do without."""
    decode = msgspec.json.Decoder(_Chunk).decode
    encode = msgspec.json.Encoder().encode
    size = 0
    rest = b""
    for chunk in stream:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: "):
                for choice in decode(block[6:]).choices:
                    if choice.delta.content:
                        size += len(b"data: " + encode(_Event("text", choice.delta.content)) + b"\n\n")
    return size


def openai_client(stream: list[bytes]) -> int:
    """The `openai` client's own decoder and chunk objects, fed the same bytes."""
    from openai._models import construct_type
    from openai._streaming import SSEDecoder
    from openai.types.chat import ChatCompletionChunk

    size = 0
    for event in SSEDecoder().iter_bytes(iter(stream)):
        chunk = construct_type(type_=ChatCompletionChunk, value=event.json())
        assert isinstance(chunk, ChatCompletionChunk)
        size += len(chunk.choices[0].delta.content or "")
    return size


async def _whole_path(stream: list[bytes], store: Store) -> tuple[float, int]:
    """Seconds of CPU, and bytes written. One delta a read, the follower woken for each."""
    limits = Limits(answer_bytes=1 << 30, answer_events=1 << 30)
    begun = ExchangeBegun(
        id="bench", conversation="c", assistant="a", visitor="v", question="q", started_at=time.time()
    )
    exchange = Exchange(begun, store=store, limits=limits)
    assembly = assembly_for("openai-chat", limits=limits)
    size = 0

    async def answer(exchange: Exchange) -> Ending:
        feed, emit = assembly.feed, exchange.emit
        for chunk in stream:
            emit(feed(chunk))
            await asyncio.sleep(0)  # the next read: the follower runs in between
        return Ending(outcome=Outcome.COMPLETE)

    exchange.start(answer)
    follower = exchange.follow()
    write = PROTOCOLS["motamot"].writer(exchange=begun.id).write
    began = time.process_time()
    while batch := await follower.next():
        if len(batch) == 1:
            size += len(write(*batch[0]))
        else:
            size += len(b"".join([write(number, event) for number, event in batch]))
    spent = time.process_time() - began
    follower.close()
    return spent, size


async def _sleeps(count: int) -> float:
    """What yielding to the loop costs by itself: no part of our path, so it is taken off."""
    began = time.process_time()
    for _ in range(count):
        await asyncio.sleep(0)
    return time.process_time() - began


def _timed(work: Callable[[list[bytes]], int], stream: list[bytes]) -> float:
    began = time.process_time()
    work(stream)
    return time.process_time() - began


def main() -> None:
    """Print the medians, in microseconds and as ratios to the bare path."""
    stream = chunks()
    spent: dict[str, list[float]] = {"bare msgspec path": [], "motamot, the whole path": [], "openai client": []}
    with TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "bench.sqlite3")
        for _ in range(ROUNDS):
            spent["bare msgspec path"].append(_timed(bare, stream) / DELTAS)
            whole, _size = asyncio.run(_whole_path(stream, store))
            spent["motamot, the whole path"].append((whole - asyncio.run(_sleeps(DELTAS))) / DELTAS)
            few = stream[: DELTAS // 10]
            spent["openai client"].append(_timed(openai_client, few) / len(few))
        store.close_sync()
    base = spent["bare msgspec path"]
    print("| path | µs a delta | x bare |\n| --- | ---: | ---: |")
    for name, seconds in spent.items():
        ratio = statistics.median(mine / bare for mine, bare in zip(seconds, base, strict=True))
        print(f"| {name} | {statistics.median(seconds) * 1e6:.1f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
