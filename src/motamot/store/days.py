"""What was done day by day. A day that is over is counted once, and kept: a page of ninety days reads ninety rows.

A day may be counted for good when it is over for an hour (clocks differ) and nothing of it runs any more: nothing that
is counted changes then, also where texts are removed.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import msgspec
from sqlalchemy import Connection, Integer, Row, Select, case, cast, func, insert, select

from motamot.answer import Source
from motamot.store.schema import completions, exchanges, past_days
from motamot.store.views import RUNNING, Day, Spread, bucket_of

__all__ = ["DAY", "Counted", "count_next", "counted", "days_between", "recount"]

DAY = 86_400
SETTLED = 3_600  # seconds after its end
_AT_ONCE = 10  # days counted in one transaction

_e, _c = exchanges.c, completions.c


class _Figures(msgspec.Struct, array_like=True):
    """Of one assistant and model on one day. first_text, stop: how many by bucket of a `Spread`."""

    assistant: str
    model: str
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    first_text: dict[int, int] = msgspec.field(default_factory=dict)
    stop: dict[int, int] = msgspec.field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    unknown: int = 0
    cost: dict[str, float] = msgspec.field(default_factory=dict)
    completions: int = 0


_decoder = msgspec.json.Decoder(list[_Figures])

Counted = dict[int, list[_Figures]]
"""Figures by day since the epoch."""


def days_between(
    connection: Connection, since: float, until: float, assistant: str | None, model: str | None
) -> tuple[Day, ...]:
    """The days that have a moment in [since, until), in order; of each, what fits, by assistant and model."""
    if not until > since:
        return ()
    first, last = math.floor(since / DAY), math.ceil(until / DAY) - 1
    found = counted(connection, first, last)
    found |= recount(connection, max(first, _edge(connection)), last)
    return tuple(
        _day(day, figures)
        for day in sorted(found)
        for figures in sorted(found[day], key=lambda one: (one.assistant, one.model))
        if assistant in (None, figures.assistant) and model in (None, figures.model)
    )


def count_next(connection: Connection, now: float) -> bool:
    """Count some days for good that are over, and settled. Returns: more of them are. Within a transaction."""
    for _ in range(_AT_ONCE):
        begin = _edge(connection) * DAY
        firsts = [
            connection.scalar(select(func.min(time)).where(time >= begin)) for time in (_e.started_at, _c.opened_at)
        ]
        known = [first for first in firsts if first is not None]
        if not known:
            return False
        day = int(min(known) // DAY)
        end = (day + 1) * DAY
        if now < end + SETTLED or _runs(connection, end):
            return False
        figures = recount(connection, day, day).get(day, [])
        connection.execute(insert(past_days).values(day=day, figures=msgspec.json.encode(figures)))
    return True


def _runs(connection: Connection, before: float) -> bool:
    """Whether something runs that was begun before then."""
    running = select(_e.number).where(_e.outcome.is_(None), _e.started_at < before)
    open_ = select(_c.number).where(_c.outcome.is_(None), _c.opened_at < before)
    return any(connection.execute(query.limit(1)).first() is not None for query in (running, open_))


def _edge(connection: Connection) -> int:
    """The first day that was not counted: of those before, each was, or had nothing to count."""
    last = connection.scalar(select(func.max(past_days.c.day)))
    return 0 if last is None else int(last) + 1


def counted(connection: Connection, first: int, last: int) -> Counted:
    """The days of this span that were counted for good."""
    query = select(past_days.c.day, past_days.c.figures).where(past_days.c.day.between(first, last))
    return {row.day: _decoder.decode(row.figures) for row in connection.execute(query)}


def recount(connection: Connection, first: int, last: int) -> Counted:
    """The days of this span, counted from the rows themselves."""
    found: dict[int, dict[tuple[str, str], _Figures]] = {}

    def of(day: int, assistant: str, model: str) -> _Figures:
        return found.setdefault(day, {}).setdefault((assistant, model), _Figures(assistant, model))

    begin, end = first * DAY, (last + 1) * DAY
    asked = select(
        _e.started_at, _e.assistant, _e.model, _e.outcome, _e.first_text, _e.stop_asked, _e.stop_closed
    ).where(_e.started_at >= begin, _e.started_at < end)
    for at, assistant, model, outcome, first_text, stop_asked, stop_closed in connection.execute(asked):
        figures = of(int(at // DAY), assistant, model)
        outcome = outcome or RUNNING
        figures.outcomes[outcome] = figures.outcomes.get(outcome, 0) + 1
        if first_text is not None:
            _measure(figures.first_text, first_text)
        if stop_asked is not None and stop_closed is not None:
            _measure(figures.stop, stop_closed - stop_asked)
    for row in connection.execute(_spent(begin, end)):
        _add(of(row.day, row.assistant, row.model), row)
    return {day: list(groups.values()) for day, groups in found.items()}


def _spent(begin: float, end: float) -> Select[Any]:
    closed = _c.outcome.is_not(None)  # what is guessed of an open one is nobody's figure yet
    day = cast(_c.opened_at / DAY, Integer)
    return (
        select(
            day.label("day"),
            _c.assistant,
            _c.model,
            _c.source,
            _c.currency,
            func.count().label("number"),
            func.sum(case((closed, func.coalesce(_c.prompt_tokens, 0)), else_=0)).label("prompt"),
            func.sum(case((closed, func.coalesce(_c.completion_tokens, 0)), else_=0)).label("completion"),
            func.sum(_c.cost).label("cost"),
        )
        .where(_c.opened_at >= begin, _c.opened_at < end)
        .group_by(day, _c.assistant, _c.model, _c.source, _c.currency)
    )


def _add(figures: _Figures, row: Row[Any]) -> None:
    figures.completions += row.number
    figures.prompt_tokens += row.prompt
    figures.completion_tokens += row.completion
    if row.source == Source.ESTIMATED.value:
        figures.estimated_tokens += row.prompt + row.completion
    elif row.source == Source.UNKNOWN.value:
        figures.unknown += row.number
    if row.cost is not None:
        figures.cost[row.currency] = figures.cost.get(row.currency, 0.0) + row.cost


def _measure(buckets: dict[int, int], seconds: float) -> None:
    bucket = bucket_of(seconds)
    buckets[bucket] = buckets.get(bucket, 0) + 1


def _day(day: int, figures: _Figures) -> Day:
    return Day(
        day=dt.date(1970, 1, 1) + dt.timedelta(days=day),
        assistant=figures.assistant,
        model=figures.model,
        exchanges=sum(figures.outcomes.values()),
        outcomes=figures.outcomes,
        first_text=Spread(figures.first_text) if figures.first_text else None,
        stop=Spread(figures.stop) if figures.stop else None,
        prompt_tokens=figures.prompt_tokens,
        completion_tokens=figures.completion_tokens,
        estimated_tokens=figures.estimated_tokens,
        unknown=figures.unknown,
        cost=figures.cost,
        completions=figures.completions,
    )
