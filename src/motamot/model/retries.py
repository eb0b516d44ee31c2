"""When a failed completion may be asked again, and after how long. Pure: the loop over attempts is the exchange's.

No client library below us retries. With their defaults the usual ones turn one slow first token into three paid
completions. We ask again only where the model surely did not start: the connection was never made, a kept
connection turned out closed before a byte of the answer came, or the server itself refused (429, 503) and said
when to come back. Never once anything of an answer has come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from motamot.errors import UpstreamError
from motamot.limits import Limits

__all__ = ["delay", "retry_after"]

_COME_BACK = (429, 503, 529)
"""Refusals that pass: too many requests, not available, overloaded (Anthropic). Any other would come again."""

_FIRST_PAUSE = 0.25
"""Seconds before asking again where no server said a time; doubled each time. A restarting server needs
about that long, and a visitor does not notice it."""


def delay(error: UpstreamError, attempt: int, waited: float, limits: Limits) -> float | None:
    """How long to wait before asking again, or None: do not.

    error:   how the attempt ended; only one marked `safe_to_retry` is ever tried again.
    attempt: its number, from 1; `limits.attempts` are made at most.
    waited:  seconds this turn has spent waiting between attempts; all waits together stay within
             `limits.retry_wait_seconds`. A server that wants more than what is left of it is not asked again.
    Returns: seconds, 0 or more. A refusal (an HTTP status) without a `Retry-After` is not tried again: a quota
             that is used up looks just like that, and a visitor who waits for nothing is worse off.
    """
    if not error.safe_to_retry or attempt >= limits.attempts:
        return None
    if error.status is None:
        pause = _FIRST_PAUSE * 2 ** (attempt - 1)
    elif error.status in _COME_BACK and error.retry_after is not None:
        pause = error.retry_after
    else:
        return None
    return pause if waited + pause <= limits.retry_wait_seconds else None


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds a response asks us to wait, or None where it says nothing that can be understood.

    headers: of the response; looked up as given, so pass a case-insensitive mapping. `retry-after-ms`
             (OpenAI, Azure) is more exact and comes first; `Retry-After` is seconds or an HTTP date, read by
             the server's own clock (`Date`) where it gives one.
    now:     our clock, UTC, for a date without a `Date` beside it.
    Source:  RFC 9110, 10.2.3.
    """
    milliseconds = _seconds(headers.get("Retry-After-Ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("Retry-After")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    moment = _date(value)
    if moment is None:
        return None
    clock = _date(headers.get("Date", "")) or now or datetime.now(UTC)
    return max(0.0, (moment - clock).total_seconds())


def _seconds(value: str | None) -> float | None:
    if value is None or not value.strip().isascii():
        return None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
