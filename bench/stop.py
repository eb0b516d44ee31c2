"""From a stop, or from the last reader's leaving, to the upstream connection closed: over real sockets.

Run: `python -m bench.stop`. The model has sent one word and is silent: there is no next write that could fail.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from motamot.exchange.exchanges import Asking, Exchanges
from motamot.exchange.loop import ModelAnswer
from motamot.model.http import HttpModel
from motamot.scripted.model import ScriptedModel
from motamot.store.prices import PriceBook
from motamot.store.store import Store

TIMES = 100
SILENT = [{"say": "Hello "}, {"hold_open_ms": 60_000}]


async def measure(folder: Path) -> dict[str, list[float]]:
    """Seconds until the scripted model saw its connection closed, and until a stop was answered."""
    found: dict[str, list[float]] = {
        "stop to upstream closed": [],
        "stop to its answer": [],
        "leave to upstream closed": [],
    }
    async with ScriptedModel([SILENT] * TIMES * 2) as server:
        store = Store.open(folder / "bench.sqlite3")
        exchanges = Exchanges(store)
        model = HttpModel(server.url, "scripted")
        answer = ModelAnswer(model=model, price=partial(PriceBook().cost, "default"))
        for number in range(TIMES * 2):
            exchange = await exchanges.begin(Asking(message="?", visitor="v", model="scripted"), answer)
            follower = exchange.follow()
            while not exchange.log.text():
                await follower.next()
            began = time.monotonic()
            if number % 2:
                await exchange.stop()
                found["stop to its answer"].append(time.monotonic() - began)
                follower.close()
            else:
                follower.close()
            request = await server.wait_left(number)
            assert request.left_at is not None
            name = "stop to upstream closed" if number % 2 else "leave to upstream closed"
            found[name].append(request.left_at - began)
        await exchanges.close()
        await model.close()
        await store.close()
    return found


def main() -> None:
    """Print medians and worst, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder)))
    print("| | median ms | worst ms | bar ms |\n| --- | ---: | ---: | ---: |")
    bars = {"stop to upstream closed": 100, "stop to its answer": 100, "leave to upstream closed": 1000}
    for name, times in found.items():
        print(f"| {name} | {statistics.median(times) * 1000:.1f} | {max(times) * 1000:.1f} | {bars[name]} |")


if __name__ == "__main__":
    main()
