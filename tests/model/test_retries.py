"""When a failed completion may be asked again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from motamot.errors import UpstreamError
from motamot.limits import Limits
from motamot.model.retries import delay, retry_after

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


def refused(status: int | None, *, safe: bool = True, after: float | None = None) -> UpstreamError:
    return UpstreamError("no", status=status, safe_to_retry=safe, retry_after=after)


def test_a_connection_never_made_is_tried_again_after_growing_pauses_up_to_the_number_of_attempts() -> None:
    assert [delay(refused(None), attempt, 0, Limits()) for attempt in (1, 2, 3)] == [0.25, 0.5, None]
    assert delay(refused(None), 1, 0, Limits(attempts=1)) is None


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_refusal_that_says_when_to_come_back_is_obeyed(status: int) -> None:
    assert delay(refused(status, after=1.5), 1, 0, Limits()) == 1.5
    assert delay(refused(status, after=0), 1, 0, Limits()) == 0


@pytest.mark.parametrize("status", [429, 503, 400, 500])
def test_a_refusal_that_does_not_say_when_is_not_asked_again(status: int) -> None:
    assert delay(refused(status), 1, 0, Limits()) is None


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 407, 413, 500, 502, 504])
def test_a_refusal_that_would_come_again_is_not_asked_again_whatever_it_says(status: int) -> None:
    assert delay(refused(status, after=1), 1, 0, Limits()) is None


def test_all_waits_of_a_turn_together_stay_within_the_limit() -> None:
    limits = Limits(retry_wait_seconds=5)
    assert delay(refused(429, after=5), 1, 0, limits) == 5
    assert delay(refused(429, after=5.1), 1, 0, limits) is None
    assert delay(refused(429, after=3), 2, 2.5, limits) is None


def test_what_may_have_started_is_never_asked_again() -> None:
    assert delay(refused(None, safe=False), 1, 0, Limits()) is None
    assert delay(refused(429, safe=False, after=1), 1, 0, Limits()) is None


@given(
    st.booleans(),
    st.none() | st.floats(0, 1e9),
    st.none() | st.sampled_from([400, 429, 500, 503]),
    st.integers(1, 10),
    st.floats(0, 10),
)
def test_a_pause_is_never_negative_and_never_past_what_is_left(
    safe: bool, after: float | None, status: int | None, attempt: int, waited: float
) -> None:
    pause = delay(refused(status, safe=safe, after=after), attempt, waited, Limits())
    assert pause is None or (safe and pause >= 0 and waited + pause <= 5 and attempt < 3)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "-4"}, 0.0),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "１"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "Sun, 29 Nov 2026 12:00:04 GMT"}, 4.0),
        ({"Retry-After": "Sunday, 29-Nov-26 12:00:04 GMT"}, 4.0),
        ({"Retry-After": "Sun, 29 Nov 2026 11:59:00 GMT"}, 0.0),
        ({"Retry-After": "Sun, 29 Nov 2026 12:00:04 GMT", "Date": "Sun, 29 Nov 2026 12:00:03 GMT"}, 1.0),
        ({"Retry-After": "Sun, 29 Nov 2026 12:00:04 GMT", "Date": "nonsense"}, 4.0),
        ({"Retry-After": "Sun, 99 Nov 2026 12:00:04 GMT"}, None),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"retry-after-ms": "x", "Retry-After": "1"}, 1.0),
    ],
)
def test_the_time_to_come_back_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(CIMultiDict(headers), NOW) == seconds


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_header_value_makes_reading_it_fail(value: str, date: str) -> None:
    seconds = retry_after(CIMultiDict({"Retry-After": value, "Date": date}), NOW)
    assert seconds is None or seconds >= 0
