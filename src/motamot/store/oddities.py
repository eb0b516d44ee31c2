"""Completions that should not be there. The promise is one completion a turn; what is beyond that is named."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.answer import Outcome
from motamot.store.records import CompletionRow

__all__ = ["judge"]

SLACK = 1.0  # seconds between two readings of the wall clock, before one is said to be after the other


def judge(completions: Sequence[CompletionRow], ended_at: float | None) -> tuple[dict[str, str], dict[str, str]]:
    """Look at the completions of one exchange, in the order of booking. ended_at: of the exchange; None: it runs.

    Returns: by id, a sentence why a completion should not be there; and why one was honestly asked again: a request
             that was refused, or never reached the model, is repeated under the same turn's number.
    """
    odd: dict[str, str] = {}
    retries: dict[str, str] = {}
    latest: dict[int, CompletionRow] = {}
    for row in completions:
        before = latest.get(row.turn)
        latest[row.turn] = row
        if before is not None:
            if _came_to_nothing(before):
                why = f": {before.detail or before.code}" if before.detail or before.code else ""
                retries[row.id] = f"turn {row.turn} was asked again, as attempt {before.attempt} gave nothing{why}"
            else:
                odd[row.id] = f"turn {row.turn} had a completion already, which had begun to answer"
        if ended_at is not None and (late := _late(row, ended_at)) is not None:
            odd[row.id] = late
    return odd, retries


def _came_to_nothing(row: CompletionRow) -> bool:
    if row.finish == "not_sent":
        return True
    return row.outcome == Outcome.FAILED and row.first_delta is None and not row.completion_tokens


def _late(row: CompletionRow, ended_at: float) -> str | None:
    if row.opened_at > ended_at + SLACK:
        return f"it was asked {row.opened_at - ended_at:.1f} s after the exchange had ended"
    if row.closed_at is None:
        return "it is open, and the exchange has ended"
    if row.closed_at > ended_at + SLACK:
        return f"it ran on for {row.closed_at - ended_at:.1f} s after the exchange had ended"
    return None
