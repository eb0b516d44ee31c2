"""Small things that several pages show: how an exchange ended, its tokens, its cost."""

from __future__ import annotations

from collections.abc import Mapping

from motamot.answer import Source
from motamot.server.dashboard.markup import Child, Html, bdi, el, join
from motamot.server.dashboard.visit import Visit
from motamot.store.records import ExchangeRow
from motamot.store.views import RUNNING, Listed

__all__ = ["cost_of", "end_of", "marks_of", "outcome_of", "tokens_of"]

_KINDS = {"complete": "good", "failed": "bad", "interrupted": "bad", RUNNING: ""}


def outcome_of(visit: Visit, outcome: str | None, code: str | None, by: str | None) -> Html:
    """How an exchange ended, with who ended it, or why it failed."""
    words = visit.words
    name = outcome or RUNNING
    mark = el("span", words.outcome_words.get(name, name), class_=f"mark {_KINDS.get(name, 'note')}")
    told = words.by_words.get(by, by) if by else words.code_words.get(code, code) if code else None
    return join(mark, [" ", el("span", told, class_="soft")] if told else None)


def marks_of(visit: Visit, marks: tuple[str, ...]) -> list[Html]:
    """What an answer is marked with."""
    return [el("span", bdi(visit.words.mark_words.get(mark, mark)), class_="mark note") for mark in marks]


def end_of(visit: Visit, row: ExchangeRow | Listed) -> list[Child]:
    """How an exchange ended, and what its answer is marked with."""
    marks: Child = [" ", marks_of(visit, row.marks)] if row.marks else None
    return [outcome_of(visit, row.outcome, row.code, row.by), marks]


def tokens_of(
    visit: Visit, prompt: int | None, completion: int | None, source: Source | None, *, always: bool = False
) -> Html:
    """Tokens read and written, and who counted them: `always`, or where it was not the provider."""
    words = visit.words
    if source is None or (source is Source.UNKNOWN and not (prompt or completion)):
        return el("span", words.unknown if source else words.nothing, class_="soft")
    counted = None if source is Source.REPORTED and not always else f" ({words.source_words[source]})"
    shown = f"{words.count(prompt or 0)} + {words.count(completion or 0)}"
    return join(el("span", shown, class_="number"), counted)


def cost_of(visit: Visit, cost: Mapping[str, float]) -> Html:
    """Money by currency; a dash where none is booked."""
    return el("span", visit.words.money_of(cost) or "–", class_="number")
