"""How long the server takes for each page of the dashboard, over a large book.

    python -m bench.dashboard [EXCHANGES] [FILE]

FILE: one of `bench.dashboard_data`; without it one is made for the run. Bar: 200 ms for every page, at 100,000
exchanges (docs/performance.md). A page is asked in this process, through the whole site, by `motamot.testing.call`:
what is measured is from the request to the last byte of the answer. Each page several times: the first, and the median
of the others, with the processor time of all threads beside, as a busy machine has less of it.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from bench.dashboard_data import book
from motamot.assistant import Assistant
from motamot.server.options import Options
from motamot.server.site import Site
from motamot.testing import Answered, call

BAR = 200.0  # ms
ROUNDS = 9
KEY = "the-operator's-key"


def pages(number: int) -> dict[str, str]:
    """Addresses below /dashboard, by name. number: of exchanges in the book."""
    today = datetime.now(UTC).date()
    week = f"from={today - timedelta(50)}&to={today - timedelta(43)}"
    quarter = f"from={today - timedelta(89)}&to={today}"
    return {
        "overview": "",
        "conversations": "/conversations",
        "… from the middle": f"/conversations?before={number // 2}",
        "… that failed": "/conversations?outcome=failed",
        "… of one assistant and model": "/conversations?assistant=bus&model=gpt-4o",
        "… of one week": f"/conversations?{week}",
        "… with a common word": "/conversations?text=bus",
        "… with a word, that failed": "/conversations?text=bus&outcome=failed",
        "… with quoted words": "/conversations?text=%22bus+stop%22",
        "… with a word that is nowhere": "/conversations?text=zebra",
        "… that were dear": "/conversations?cost_from=0.019",
        "conversation": "/conversations/conversation-100",
        "exchange": f"/exchanges/exchange-{number // 2}",
        "figures of 30 days": "/figures",
        "figures of 90 days": f"/figures?{quarter}",
        "… of one assistant": f"/figures?{quarter}&assistant=bus",
        "visitor": "/visitor?name=visitor-100",
    }


async def _asked(site: Site, address: str, cookie: str) -> Answered:
    headers = {"Cookie": cookie, "Accept": "text/html", "Host": "localhost"}
    return await call(site, f"GET /dashboard{address}", headers=headers)


async def _signed_in(site: Site) -> str:
    kind = "application/x-www-form-urlencoded"
    body = f"key={quote(KEY)}"
    answered = await call(site, "POST /dashboard/sign-in", headers={"Content-Type": kind}, body=body)
    return "; ".join(cookie.partition(";")[0] for cookie in answered.headers.getlist("set-cookie"))


async def measure(path: Path, number: int) -> bool:
    """Print a line for each page. Returns: every page is within the bar."""
    names = ("help", "bus", "aide")
    chats = [Assistant(upstream="http://127.0.0.1:1/v1", model="none", name=name) for name in names]
    site = Site(chats, store=path, options=Options(operator_key=KEY))
    within = True
    async with site.lifespan():
        cookie = await _signed_in(site)
        print(f"{'page':<32}{'first':>9}{'median':>9}{'CPU':>9}   ms, over {number:,} exchanges")
        for name, address in pages(number).items():
            walls, cpus = [], []
            for _ in range(ROUNDS):
                wall, cpu = time.perf_counter(), time.process_time()
                answered = await _asked(site, address, cookie)
                walls.append((time.perf_counter() - wall) * 1000)
                cpus.append((time.process_time() - cpu) * 1000)
                assert answered.status == 200 and not re.search(rb'name="key"', answered.body), (name, answered.status)
            median = statistics.median(walls[1:])
            within &= median <= BAR
            used = statistics.median(cpus[1:])
            print(f"{name:<32}{walls[0]:>9.1f}{median:>9.1f}{used:>9.1f}   {len(answered.body):,} bytes")
    print("every page is within" if within else "NOT every page is within", f"{BAR:g} ms")
    return within


def main() -> int:
    """Make the book, or take the one that is named; 0 where every page is within the bar."""
    with book() as (path, number):
        return 0 if asyncio.run(measure(path, number)) else 1


if __name__ == "__main__":
    sys.exit(main())
