"""CPU per exchange through the store, beside an async driver doing the same writes in the same run.

    python bench/store.py [exchanges] [at once]

An exchange is what a chatbot books for one answer: begin, open a completion, every fourth time a checkpoint, close
the completion, end with the times of its events, and that its last words were sent. What is done with it later counts,
too: its words become searchable. CPU is the process's own, all threads. Bar: 0.3 ms (docs/performance.md).
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event, insert, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from motamot.answer import Source, TurnEnded, Usage
from motamot.exchange.notes import ticks
from motamot.store.records import (
    Checkpoint,
    CompletionClosed,
    CompletionOpened,
    ExchangeBegun,
    ExchangeEnded,
    ExchangeSent,
    Noted,
)
from motamot.store.schema import boundaries, completions, conversations, exchanges, metadata
from motamot.store.store import Store

BAR = 0.3  # ms of CPU per exchange
QUESTION = "Where is the next stop, and when does the bus leave? " * 2
ANSWER = "The next stop is at the corner; the bus leaves in seven minutes. " * 12
USAGE = Usage(prompt_tokens=420, completion_tokens=180, source=Source.REPORTED)
TIMES = [n * 0.02 for n in range(151)]
NOTED = (Noted(149, True, 2.98, TurnEnded(turn=1, finish="stop", usage=USAGE)),)
BOUNDARIES = tuple((n, n * 5) for n in range(2, 150))

Write = Callable[[int], Awaitable[float]]


async def many(
    write: Write, number: int, at_once: int, after: Callable[[], Awaitable[None]] | None = None
) -> tuple[float, float, list[float]]:
    """Run `number` exchanges. Returns: CPU ms and wall ms per exchange, and the seconds each begin took, sorted.

    after: what is waited for in the end; its CPU counts, its wall time does not.
    """
    numbers = iter(range(number))
    waits: list[float] = []

    async def worker() -> None:
        waits.extend([await write(n) for n in numbers])

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*[worker() for _ in range(at_once)])
    took = time.perf_counter() - wall
    if after is not None:
        await after()
    return (time.process_time() - cpu) * 1000 / number, took * 1000 / number, sorted(waits)


async def ours(folder: Path, number: int, at_once: int) -> tuple[float, float, list[float]]:
    """The store."""
    store = Store.open(folder / "ours.db")

    async def write(n: int) -> float:
        now, exchange, completion = time.time(), f"exchange-{n}", f"completion-{n}"
        start = time.perf_counter()
        await store.begin(
            ExchangeBegun(
                id=exchange,
                conversation=f"conversation-{n % 1000}",
                assistant="bus",
                visitor=f"visitor-{n % 1000}",
                question=QUESTION,
                started_at=now,
                model="m",
                key=f"key-{n}",
                body_hash="h",
            )
        )
        waited = time.perf_counter() - start
        await store.open_completion(
            CompletionOpened(id=completion, exchange=exchange, turn=1, attempt=1, model="m", opened_at=now)
        )
        if n % 4 == 0:
            store.checkpoint(
                [Checkpoint(exchange=exchange, text=ANSWER, sent=149, boundaries=BOUNDARIES, completion=completion)]
            )
            await asyncio.sleep(0)
        store.close_completion(
            CompletionClosed(
                id=completion,
                closed_at=now,
                outcome="complete",
                finish="stop",
                usage=USAGE,
                completion_bytes=len(ANSWER),
                cost=0.01,
            )
        )
        store.end(
            ExchangeEnded(
                id=exchange,
                ended_at=now,
                outcome="complete",
                generated=ANSWER,
                shown=ANSWER,
                events=151,
                sent=148,
                boundaries=() if n % 4 == 0 else BOUNDARIES,
                noted=NOTED,
                times=ticks(TIMES, TIMES[0]),
                first_text=0.5,
            )
        )
        store.sent(ExchangeSent(id=exchange, sent=150))
        return waited

    async def searchable() -> None:
        while (await store.facets()).unsearchable:  # noqa: ASYNC110 - nothing tells when it is done
            await asyncio.sleep(0.1)

    figures = await many(write, number, at_once, searchable)
    await store.close()
    return figures


def async_engine(path: Path) -> AsyncEngine:
    """aiosqlite with the store's own settings."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 60, "isolation_level": None})

    @event.listens_for(engine.sync_engine, "connect")
    def _settings(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


async def driver(folder: Path, number: int, at_once: int) -> tuple[float, float, list[float]]:
    """SQLAlchemy's asyncio engine over aiosqlite: three transactions, and one for a checkpoint."""
    engine = async_engine(folder / "driver.db")
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)

    async def write(n: int) -> float:
        now, exchange, completion = time.time(), f"exchange-{n}", f"completion-{n}"
        conversation = {
            "id": f"conversation-{n % 1000}",
            "assistant": "bus",
            "visitor": f"visitor-{n % 1000}",
            "created_at": now,
        }
        start = time.perf_counter()
        async with engine.begin() as connection:
            await connection.execute(upsert(conversations).on_conflict_do_nothing(), conversation)
            await connection.execute(
                upsert(exchanges).on_conflict_do_nothing(),
                {
                    "id": exchange,
                    "conversation": conversation["id"],
                    "assistant": "bus",
                    "visitor": conversation["visitor"],
                    "key": f"key-{n}",
                    "body_hash": "h",
                    "question": QUESTION,
                    "model": "m",
                    "owner": "o",
                    "started_at": now,
                },
            )
        waited = time.perf_counter() - start
        async with engine.begin() as connection:
            await connection.execute(
                insert(completions),
                {
                    "id": completion,
                    "exchange": exchange,
                    "assistant": "bus",
                    "owner": "o",
                    "turn": 1,
                    "attempt": 1,
                    "model": "m",
                    "opened_at": now,
                },
            )
        if n % 4 == 0:
            async with engine.begin() as connection:
                await connection.execute(
                    update(exchanges)
                    .where(exchanges.c.id == exchange, exchanges.c.outcome.is_(None))
                    .values(generated=ANSWER, sent=149, events=149)
                )
                await connection.execute(
                    insert(boundaries), {"exchange": exchange, "first_event": 2, "pairs": bytes(8 * len(BOUNDARIES))}
                )
        async with engine.begin() as connection:
            await connection.execute(
                update(completions)
                .where(completions.c.id == completion, completions.c.outcome.is_(None))
                .values(
                    closed_at=now,
                    outcome="complete",
                    finish="stop",
                    prompt_tokens=420,
                    completion_tokens=180,
                    cached_tokens=0,
                    reasoning_tokens=0,
                    source="reported",
                    completion_bytes=len(ANSWER),
                    cost=0.01,
                )
            )
            if n % 4:
                await connection.execute(
                    insert(boundaries), {"exchange": exchange, "first_event": 2, "pairs": bytes(8 * len(BOUNDARIES))}
                )
            await connection.execute(
                update(exchanges)
                .where(exchanges.c.id == exchange, exchanges.c.outcome.is_(None))
                .values(ended_at=now, outcome="complete", generated=ANSWER, shown=ANSWER, events=151, sent=150)
            )
        return waited

    figures = await many(write, number, at_once)
    await engine.dispose()
    return figures


def line(name: str, figures: tuple[float, float, list[float]]) -> str:
    """One line of the report."""
    cpu, wall, waits = figures
    half, most = waits[len(waits) // 2] * 1000, waits[int(len(waits) * 0.99)] * 1000
    return f"{name:<28} {cpu:7.3f} ms CPU {wall:7.3f} ms wall, each; begin p50 {half:7.2f} ms, p99 {most:7.2f} ms"


def main() -> int:
    """Print both, and the ratio. Exit status 1 if the bar is missed."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    random.seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = asyncio.run(ours(folder, number, at_once))
        print(line(f"store, {number} at {at_once}", store))
        fewer = max(at_once, number // 10)  # it takes its time
        beside = asyncio.run(driver(folder, fewer, at_once))
        print(line(f"async driver, {fewer} at {at_once}", beside))
    print(f"the async driver takes {beside[0] / store[0]:.1f} times the CPU; bar {BAR} ms: ", end="")
    print("met" if store[0] <= BAR else "missed")
    return 0 if store[0] <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
