"""Figures by day: counted right, counted once, and the same when they are counted again."""

from __future__ import annotations

import asyncio
import datetime as dt
import random
import sqlite3
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.answer import Source, Usage
from motamot.store.contract import closed, completion, ended, exchange
from motamot.store.store import Store
from motamot.store.views import Day, Spread, bucket_of
from tests.store import support

DAY = 86_400.0

with_store = partial(support.with_store, now=40 * DAY)


def spread(*seconds: float) -> Spread:
    buckets: dict[int, int] = {}
    for one in seconds:
        buckets[bucket_of(one)] = buckets.get(bucket_of(one), 0) + 1
    return Spread(buckets)


@given(st.lists(st.floats(min_value=0.001, max_value=1_000), min_size=1, max_size=200))
def test_a_percentile_is_within_one_percent(seconds: list[float]) -> None:
    seconds.sort()
    found = spread(*seconds)
    for part, told in ((0.5, found.p50), (0.95, found.p95)):
        true = seconds[max(0, -(-int(part * 1_000) * len(seconds) // 1_000) - 1)]
        assert abs(told - true) <= 0.0101 * true


def test_a_spread_of_many_agrees_with_the_standard_library() -> None:
    generator = random.Random(3)
    seconds = [generator.lognormvariate(-0.7, 0.6) for _ in range(20_000)]
    found, cuts = spread(*seconds), quantiles(seconds, n=20)
    assert found.p50 == pytest.approx(cuts[9], rel=0.015)
    assert found.p95 == pytest.approx(cuts[18], rel=0.015)


def test_spreads_are_put_together() -> None:
    one = Spread.together([spread(1.0, 1.0), None, spread(3.0)])
    assert one is not None
    assert (one.count, round(one.p95, 1)) == (3, 3.0)
    assert Spread.together([None]) is None


def test_nothing_lasts_less_than_a_tenth_of_a_millisecond() -> None:
    assert spread(0.0, -1.0).p50 == pytest.approx(1e-4, rel=0.02)


async def booked(store: Store, id_: str, at: float, *, close: dict[str, Any] | None = None, **end: Any) -> None:
    asked = {name: end.pop(name) for name in ("assistant", "model") if name in end}
    await store.begin_with_completion(
        exchange(id_, started_at=at, **asked),
        completion(f"{id_}.1", id_, opened_at=at, model=asked.get("model", "small")),
    )
    store.close_completion(closed(f"{id_}.1", **(close or {})))
    store.end(ended(id_, **end))


def test_a_day_has_its_figures_by_assistant_and_model(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        at = 10 * DAY
        await booked(store, "a", at, close={"cost": 0.5}, first_text=0.5)
        await booked(
            store,
            "b",
            at + DAY - 0.001,
            close={"cost": 0.25},
            first_text=2.0,
            outcome="stopped",
            stop_asked=1.0,
            stop_closed=1.05,
        )
        estimated = Usage(prompt_tokens=100, completion_tokens=10, source=Source.ESTIMATED)
        await booked(
            store, "c", at + 5, close={"usage": estimated, "cost": 1.0, "currency": "EUR"}, outcome="interrupted"
        )
        await booked(store, "d", at + 6, close={"usage": Usage()}, assistant="aide", model="large", outcome="failed")
        await booked(store, "e", at + DAY)  # the next day's first moment
        await store.begin_with_completion(
            exchange("f", started_at=at + 7), completion("f.1", "f", opened_at=at + 7, prompt_estimate=9)
        )
        large, small = await store.days(at, at + DAY)
        assert (small.day, small.assistant, small.model) == (dt.date(1970, 1, 11), "bus", "small")
        assert (small.exchanges, small.outcomes) == (4, {"complete": 1, "stopped": 1, "interrupted": 1, "running": 1})
        assert (small.prompt_tokens, small.completion_tokens) == (184, 44)
        assert (small.estimated_tokens, small.unknown, small.completions) == (110, 0, 4)
        assert small.cost == {"USD": 0.75, "EUR": 1.0}
        assert small.first_text is not None
        assert small.stop is not None
        assert (small.first_text.count, small.stop.count) == (2, 1)
        assert small.stop.p50 == pytest.approx(0.05, rel=0.01)
        assert (large.assistant, large.model, large.unknown, large.first_text) == ("aide", "large", 1, None)
        assert large.outcomes == {"failed": 1}
        store.close_completion(closed("f.1"))
        store.end(ended("f"))

    with_store(tmp_path, scenario)


def test_days_are_those_that_have_a_moment_in_the_span_and_filters_hold(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        for day in range(5):
            await booked(store, f"e{day}", (20 + day) * DAY + 7)
        await booked(store, "other", 21 * DAY, assistant="aide", model="large")

        async def told(since: float, until: float, **wanted: str) -> list[int]:
            return [(one.day - dt.date(1970, 1, 1)).days for one in await store.days(since, until, **wanted)]

        assert await told(21 * DAY, 23 * DAY) == [21, 21, 22]
        assert await told(21.5 * DAY, 22.5 * DAY) == [21, 21, 22]
        assert await told(21 * DAY, 22 * DAY, assistant="bus") == [21]
        assert await told(0, 1e12, model="large") == [21]
        assert await told(25 * DAY, 1e12) == []
        assert await told(23 * DAY, 23 * DAY) == []
        assert await told(24 * DAY, 23 * DAY) == []

    with_store(tmp_path, scenario)


def kept(path: Path) -> list[int]:
    connection = sqlite3.connect(path / "store.db")
    days = [day for (day,) in connection.execute("SELECT day FROM past_days ORDER BY day")]
    connection.close()
    return days


def test_a_day_that_is_over_is_counted_once_and_tells_the_same(tmp_path: Path) -> None:
    """Not the day that is not over for an hour, nor one of which something runs, nor what comes behind it."""
    before: list[tuple[Day, ...]] = []

    async def prepared(store: Store) -> None:
        for day in (3, 4, 6, 7):
            await booked(store, f"e{day}", day * DAY + 7, first_text=0.5, close={"cost": 0.5})
        await store.begin(exchange("runs", started_at=6 * DAY + 9))
        before.append(await store.days(0, 30 * DAY))
        assert kept(tmp_path) == []

    with_store(tmp_path, prepared, now=7 * DAY + 60)  # closing it ends what runs

    async def scenario(store: Store) -> None:
        async with asyncio.timeout(20):
            while kept(tmp_path) != [3, 4]:
                await asyncio.sleep(0.02)
        told = await store.days(0, 30 * DAY)
        assert [one for one in told if one.outcomes.keys() <= {"complete"}] == [
            one for one in before[0] if one.outcomes.keys() <= {"complete"}
        ]
        await asyncio.sleep(0.2)
        assert kept(tmp_path) == [3, 4]

    with_store(tmp_path, scenario, now=7 * DAY + 60)

    async def later(store: Store) -> None:
        async with asyncio.timeout(20):
            while kept(tmp_path) != [3, 4, 6, 7]:
                await asyncio.sleep(0.02)
        await store.delete_conversation("conversation of e6", "visitor")  # figures stay
        assert [one.exchanges for one in await store.days(6 * DAY, 7 * DAY)] == [2]

    with_store(tmp_path, later, now=9 * DAY)
