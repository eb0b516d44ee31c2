"""Completions that should not be there are named; honest retries are called that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from motamot.answer import Source
from motamot.store.oddities import judge
from motamot.store.records import CompletionRow

ROW = CompletionRow(
    id="p1",
    exchange="e",
    turn=1,
    attempt=1,
    model="m",
    opened_at=100.0,
    closed_at=102.0,
    outcome="complete",
    finish="stop",
    code=None,
    detail=None,
    prompt_tokens=10,
    completion_tokens=5,
    cached_tokens=0,
    reasoning_tokens=0,
    source=Source.REPORTED,
    cost=None,
    currency="USD",
    first_delta=0.5,
    duration=2.0,
)
REFUSED: dict[str, Any] = {
    "outcome": "failed",
    "finish": "error",
    "code": "upstream_error",
    "detail": "429 slow down",
    "first_delta": None,
    "completion_tokens": 0,
}


def row(id_: str, **changes: Any) -> CompletionRow:
    return replace(ROW, id=id_, **changes)


def test_one_completion_a_turn_is_right() -> None:
    assert judge([row("p1", finish="tool_calls"), row("p2", turn=2)], 102.1) == ({}, {})


def test_a_turn_that_is_asked_again_after_a_refusal_is_a_retry() -> None:
    odd, retries = judge([row("p1", **REFUSED), row("p2", attempt=2), row("p3", turn=2)], 102.1)
    assert odd == {}
    assert retries == {"p2": "turn 1 was asked again, as attempt 1 gave nothing: 429 slow down"}


def test_a_request_that_never_left_is_no_completion_to_be_counted() -> None:
    first = row("p1", outcome="failed", finish="not_sent", first_delta=None, completion_tokens=0)
    odd, retries = judge([first, row("p2", attempt=2)], 102.1)
    assert (odd, list(retries)) == ({}, ["p2"])


@pytest.mark.parametrize(
    "first",
    [
        {},
        {"outcome": "failed", "code": "upstream_cut", "finish": "incomplete"},  # it had begun
        {"outcome": "complete", "first_delta": None, "completion_tokens": 0},  # an empty answer is an answer
        {"outcome": "stopped"},
    ],
)
def test_a_second_completion_of_a_turn_that_had_one_is_odd(first: dict[str, Any]) -> None:
    odd, retries = judge([row("p1", **first), row("p2", attempt=2)], 102.1)
    assert odd == {"p2": "turn 1 had a completion already, which had begun to answer"}
    assert retries == {}


def test_a_completion_asked_after_the_end_is_odd() -> None:
    odd, _ = judge([row("p1"), row("p2", turn=2, opened_at=110.0, closed_at=111.0)], 102.0)
    assert odd == {"p2": "it was asked 8.0 s after the exchange had ended"}


def test_a_completion_that_ran_on_after_the_end_is_odd_and_one_still_open_too() -> None:
    odd, _ = judge([row("p1", closed_at=107.5), row("p2", turn=2, closed_at=None, outcome=None)], 102.0)
    assert odd == {
        "p1": "it ran on for 5.5 s after the exchange had ended",
        "p2": "it is open, and the exchange has ended",
    }


def test_of_a_running_exchange_an_open_completion_is_right() -> None:
    assert judge([row("p1", closed_at=None, outcome=None)], None) == ({}, {})


def test_clocks_that_are_read_a_moment_apart_make_nothing_odd() -> None:
    assert judge([row("p1", closed_at=102.9)], 102.0) == ({}, {})
