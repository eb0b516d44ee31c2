"""Kill -9 at random moments under load, and look at the books afterwards.

In CI as tests/test_kill.py, 200 times; by hand: `python -m tests.kill 1000`.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

from motamot.answer import Text
from motamot.exchange.exchanges import Asking, Exchanges
from motamot.exchange.loop import ModelAnswer
from motamot.exchange.tools import tool_from
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.scripted.model import scripted_model
from motamot.store.prices import PriceBook
from motamot.store.store import Store

AT_ONCE = 12  # visitors who ask again as soon as they have an answer
WORKERS = 2
LONGEST = 2.4  # seconds until a process is killed, at most
SCRIPTS = {
    "scripts": {
        "talk": [{"say": " ".join(f"word{n}" for n in range(60)), "pace": 40}, {"finish": "stop"}],
        "brief": [{"say": "Short and quick."}, {"usage": {"prompt": 5, "completion": 4}}],
        "silent": [{"say": "Hello "}, {"hold_open_ms": 5000}],
        "tools": {
            "turns": [
                [{"say": "Let me see."}, {"call": {"name": "look", "arguments": {}}}, {"finish": "tool_calls"}],
                [{"say": "There it is. " * 20, "pace": 20}],
            ]
        },
    }
}


@dataclass
class Found:
    """What was seen over all rounds."""

    rounds: int = 0
    requests: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    longest_sweep: float = 0.0
    most_lost: float = 0.0  # seconds of shown text that a kill lost
    faults: list[str] = field(default_factory=list)


def look() -> str:
    """Looks."""
    return "found"


def load(database: str, url: str, shown: str) -> None:
    """Answer visitors until killed. `shown` gets a line for each batch sent: time, exchange, characters."""
    os.environ.pop("MOTAMOT_DATABASE", None)
    asyncio.run(_load(database, url, shown))


async def _load(database: str, url: str, shown: str) -> None:
    out = os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = Store.open(database)
    exchanges = Exchanges(store, Limits(exchanges_per_visitor=99))
    model = HttpModel(url, "scripted")
    answer = ModelAnswer(model=model, price=partial(PriceBook().cost, "default"), tools=[tool_from(look)])

    async def visitor(number: int) -> None:
        dice = random.Random(f"{number} {time.time()}")
        while True:
            word = dice.choice(["talk", "talk", "brief", "tools", "silent"])
            exchange = await exchanges.begin(Asking(message=word, visitor=str(number), model="scripted"), answer)
            follower = exchange.follow()
            characters = 0
            while batch := await follower.next():
                characters += sum(len(event.text) for _, event in batch if isinstance(event, Text))
                os.write(out, f"{time.monotonic()} {exchange.id} {characters}\n".encode())
                if word == "silent" and characters:
                    await exchange.stop()
            follower.close()

    await asyncio.gather(*(visitor(number) for number in range(AT_ONCE)))


def kill_rounds(rounds: int, folder: Path, seed: int, found: Found) -> None:
    """Start, kill, look, over and over, on one database."""
    dice = random.Random(seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["motamot.exchange.loop", "motamot.model.http", "motamot.store.store"])
    database = folder / "motamot.sqlite3"
    checked = 0
    with scripted_model(SCRIPTS, keep_pieces=False) as server:
        for number in range(rounds):
            shown = folder / f"shown-{number}"
            process = context.Process(target=load, args=(str(database), server.url, str(shown)), daemon=True)
            process.start()
            since = time.time()
            _let_it_work(process, shown, dice.uniform(0.0, LONGEST))
            process.kill()
            killed = time.monotonic()
            process.join()
            requests = server.requests
            sent = [request.headers["x-client-request-id"] for request in requests[checked:]]
            asyncio.run(_look(database, sent, since, found))
            checked = len(requests)
            asyncio.run(_compare(database, shown, killed, found))
            found.rounds += 1


def _let_it_work(process: BaseProcess, shown: Path, seconds: float) -> None:
    """Give the process so many seconds from its first answer on."""
    deadline = time.monotonic() + 20
    while not (shown.exists() and shown.stat().st_size):
        if time.monotonic() > deadline or not process.is_alive():
            raise RuntimeError("the process under test did not begin to answer")
        time.sleep(0.005)
    time.sleep(seconds)


async def _look(database: Path, requests: list[str], since: float, found: Found) -> None:
    """Each request that was made is booked once, and nothing stays open."""
    began = time.monotonic()
    store = await asyncio.to_thread(Store.open, database)
    try:
        while await store.completions(open_only=True):
            if time.monotonic() - began > 2:
                found.faults.append("a completion was open 2 s after the restart")
                break
            await asyncio.sleep(0.02)
        found.longest_sweep = max(found.longest_sweep, time.monotonic() - began)
        rows = await store.completions(since=since, limit=100_000)
        booked = Counter(row.id for row in rows)
        found.requests += len(requests)
        found.faults += [f"request {name} is booked {booked[name]} times" for name in requests if booked[name] != 1]
        found.outcomes += Counter(str(row.outcome) for row in rows)
        found.faults += [f"completion {row.id} has no tokens or no source" for row in rows if row.source is None]
        found.faults += [str(fault) for fault in await store.verify()]
    finally:
        await store.close()


async def _compare(database: Path, shown: Path, killed: float, found: Found) -> None:
    """What a visitor was shown more than a second before the kill must be in the store."""
    store = await asyncio.to_thread(Store.open, database)
    try:
        seen: dict[str, list[tuple[float, int]]] = {}
        for line in shown.read_text().splitlines():
            parts = line.split()
            if len(parts) == 3:
                seen.setdefault(parts[1], []).append((float(parts[0]), int(parts[2])))
        for name, times in seen.items():
            row = await store.exchange(name)
            if row is None or row.outcome is None:
                found.faults.append(f"exchange {name} was shown, and has no row or no end")
                continue
            lost = [killed - at for at, characters in times if characters > len(row.generated or "")]
            if lost:
                found.most_lost = max(found.most_lost, *lost)
                if max(lost) > 1:
                    found.faults.append(f"exchange {name} lost text shown {max(lost):.2f} s before the kill")
    finally:
        await store.close()


def run(rounds: int) -> Found:
    """All rounds, in two processes side by side, each with a database of its own."""
    results = [Found() for _ in range(WORKERS)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        jobs = []
        for number, found in enumerate(results):
            own = Path(folder) / str(number)
            own.mkdir()
            share = rounds // WORKERS + (number < rounds % WORKERS)
            jobs.append(pool.submit(kill_rounds, share, own, number, found))
        for job in jobs:
            job.result()
    total = Found()
    for found in results:
        total.rounds += found.rounds
        total.requests += found.requests
        total.outcomes += found.outcomes
        total.longest_sweep = max(total.longest_sweep, found.longest_sweep)
        total.most_lost = max(total.most_lost, found.most_lost)
        total.faults += found.faults
    return total


def main() -> int:
    """Run as many rounds as asked, and say what was found."""
    found = run(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    with contextlib.suppress(BrokenPipeError):
        print(
            f"{found.rounds} kills, {found.requests} upstream requests, {sum(found.outcomes.values())} rows "
            f"({', '.join(f'{count} {name}' for name, count in sorted(found.outcomes.items()))}); "
            f"nothing open after {found.longest_sweep:.2f} s; at most {found.most_lost:.2f} s of shown text lost; "
            f"{len(found.faults)} faults"
        )
        for fault in found.faults[:20]:
            print("fault:", fault)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
