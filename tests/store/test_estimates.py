"""How many tokens a text has: learnt from what the model reported, robust, and marked as an estimate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.answer import Source, Usage
from motamot.store.contract import closed, completion, ended, exchange
from motamot.store.estimates import MODELS, Estimates, Estimator
from motamot.store.store import Store

ENGLISH = "The next stop is at the corner; the bus leaves in seven minutes. " * 10


def reported(tokens: int, **changes: int) -> Usage:
    return Usage(prompt_tokens=5, completion_tokens=tokens, source=Source.REPORTED, **changes)


@given(st.text())
def test_any_text_has_tokens_and_only_an_empty_one_has_none(text: str) -> None:
    for estimator in (Estimator(), Estimator(bytes_per_token=0.5), Estimator(bytes_per_token=32.0)):
        assert (estimator(text) > 0) == bool(text)
        assert estimator(text) <= 2 * len(text.encode()) + 1


def test_without_reports_four_bytes_are_a_token() -> None:
    estimator = Estimates().of("m")
    assert not estimator.calibrated
    assert estimator("x" * 400) == 100
    assert estimator("é" * 400) == 200, "bytes of UTF-8, not characters"
    assert estimator("half \ud83d") > 0, "also a text that cannot be encoded"


def test_an_estimated_usage_says_so() -> None:
    usage = Estimator().usage("x" * 40, "y" * 80)
    assert usage == Usage(prompt_tokens=10, completion_tokens=20, source=Source.ESTIMATED)


def test_a_model_is_judged_by_its_own_reports() -> None:
    estimates = Estimates()
    for _ in range(5):
        estimates.learn("dense", [(100, 200)])
        estimates.learn("light", [(100, 600)])
    assert estimates.of("dense")("x" * 100) == 50
    assert estimates.of("light")("x" * 600) == 100
    assert not estimates.of("other").calibrated


def test_one_absurd_report_among_many_changes_little() -> None:
    estimates = Estimates()
    estimates.learn("m", [(100, 400)] * 9 + [(10**12, 400), (1, 4_000_000)])
    assert estimates.of("m")("x" * 400) == 100
    estimates = Estimates()
    estimates.learn("m", [(10**12, 400)] * 9)
    assert estimates.of("m").bytes_per_token >= 0.5, "and many of them cannot make a word a fortune"


def test_too_few_or_too_short_reports_teach_nothing() -> None:
    estimates = Estimates()
    estimates.learn("m", [(100, 200), (100, 200)])
    estimates.learn("m", [(0, 500), (-3, 500), (60, 10)])
    assert not estimates.of("m").calibrated
    estimates.learn("m", [(100, 200)])
    assert estimates.of("m").calibrated


def test_strangers_model_names_do_not_fill_the_memory() -> None:
    estimates = Estimates()
    for n in range(3 * MODELS):
        estimates.learn(f"m{n}", [(100, 200)] * 3)
        estimates.of(f"m{n}")
    assert len(estimates._ratios) == len(estimates._made) == MODELS


def test_a_store_learns_from_what_it_books_and_remembers_it(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        assert store.estimate("small")(ENGLISH) == round(len(ENGLISH) / 4)
        usages = [
            reported(len(ENGLISH) // 2),
            reported(len(ENGLISH) // 2),
            reported(len(ENGLISH) // 2),
            # Reasoning was paid for and not sent; estimates and unknown usage are no reports.
            *[reported(len(ENGLISH) * 9, reasoning_tokens=len(ENGLISH) * 8)] * 5,
            *[Usage(completion_tokens=9999, source=Source.ESTIMATED)] * 5,
            *[Usage()] * 5,
        ]
        await store.begin(exchange("e"))
        for n, usage in enumerate(usages):
            await store.open_completion(completion(f"p{n}", "e"))
            store.close_completion(closed(f"p{n}", usage=usage, completion_bytes=len(ENGLISH)))
        store.end(ended("e"))
        assert store.estimate("small")("x" * 100) == 50
        await store.close()
        store = Store.open(tmp_path / "store.db")
        assert store.estimate("small")("x" * 100) == 50, "also when it is opened again"
        assert not store.estimate("other").calibrated
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("text", ["", "a", "mot à mot", "\N{BUS}" * 1000])
def test_an_estimate_costs_no_more_than_one_pass(text: str) -> None:
    assert Estimator()(text) == Estimator().tokens(len(text.encode()))
