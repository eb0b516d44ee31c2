"""How long each of the dashboard's readings takes, over a large book.

    python -m bench.browsing [EXCHANGES] [FILE]

FILE: one of `bench.dashboard_data`; without it one is made for the run. Bar: 100 ms of wall time each, at 100,000
exchanges (docs/performance.md). Each reading is done several times: the first, and the median of the others.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.dashboard_data import book
from motamot.store.store import Store
from motamot.store.views import Filter

BAR = 100.0  # ms
ROUNDS = 7

Reading = Callable[[Store], Awaitable[Any]]


def readings(number: int, now: float) -> dict[str, Reading]:
    """What is read, by name. number: of exchanges in the book; now: its last moment."""
    filters = {
        "the newest": Filter(),
        "failed ones": Filter(outcome="failed"),
        "running ones (none)": Filter(outcome="running"),
        "of one assistant and model": Filter(assistant="bus", model="gpt-4o"),
        "of one week": Filter(since=now - 50 * 86_400, until=now - 43 * 86_400),
        "dear ones": Filter(cost_from=0.019),
        "dear ones that do not exist": Filter(cost_from=1.0),
        "of one visitor": Filter(visitor="visitor-500"),
        "of one conversation": Filter(conversation="conversation-500"),
        "with a common word": Filter(text="bus"),
        "with two beginnings": Filter(text="reserv arr"),
        "with quoted words": Filter(text='"bus stop"'),
        "with one letter": Filter(text="a"),
        "with a word that is nowhere": Filter(text="zebra"),
        "with a common word, failed": Filter(text="bus", outcome="failed"),
        "with a common word, and dear": Filter(text="l", cost_from=0.019, assistant="bus"),
        "all at once": Filter(
            text="bus", outcome="complete", assistant="bus", model="gpt-4o", since=now - 60 * 86_400, cost_to=0.005
        ),
    }

    def browse(wanted: Filter, before: int | None = None) -> Reading:
        return lambda store: store.browse(wanted, before=before)

    async def one_page(store: Store) -> None:
        number = 0
        async for _ in store.export(Filter(text="bus")):
            number += 1
            if number == 200:
                return

    async def of_visitor(store: Store) -> None:
        async for _ in store.export_visitor("visitor-500"):
            pass

    return {
        **{f"a page {name}": browse(wanted) for name, wanted in filters.items()},
        "a page from the middle": browse(Filter(), number // 2),
        "a page of failed ones from the end": browse(Filter(outcome="failed"), number // 20),
        "one exchange": lambda store: store.detail(f"exchange-{number // 2}"),
        "90 days": lambda store: store.days(now - 90 * 86_400, now),
        "7 days of one assistant": lambda store: store.days(now - 7 * 86_400, now, assistant="bus"),
        "assistants and models": lambda store: store.facets(),
        "a visitor's conversations": lambda store: store.visitor_conversations("visitor-500"),
        "a visitor's record": of_visitor,
        "200 lines of an export": one_page,
        "what was spent today": lambda store: store.spent(None, now // 86_400 * 86_400),
    }


async def measure(path: Path, number: int) -> bool:
    """Print the figures. Returns: all of them are within the bar."""
    store = Store.open(path)
    (newest,) = (await store.browse(Filter(), limit=1)).rows
    met = True
    print(f"| {'reading':<40} | first ms | median ms |\n| {'-' * 40} | -------: | --------: |")
    for name, read in readings(number, newest.started_at).items():
        took = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await read(store)
            took.append((time.perf_counter() - began) * 1000)
        half = statistics.median(took[1:])
        print(f"| {name:<40} | {took[0]:8.1f} | {half:9.1f} |{'' if half <= BAR else ' missed'}")
        met = met and half <= BAR
    await store.close()
    return met


def main() -> int:
    """Exit status 1 if the bar is missed."""
    with book() as (path, number):
        met = asyncio.run(measure(path, number))
    print(f"bar {BAR:.0f} ms each: {'met' if met else 'missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
