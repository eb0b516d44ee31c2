"""Deriving again what the books say twice: text and boundaries, ends and times, days, costs, owners and open rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
from sqlalchemy import Connection, func, or_, select

from motamot.answer import Source
from motamot.store import searching
from motamot.store.days import Counted, counted, recount
from motamot.store.details import unpacked
from motamot.store.reading import boundaries_of
from motamot.store.redaction import REDACTED
from motamot.store.schema import boundaries, completions, conversations, details, exchanges, owners, past_days

__all__ = ["Inconsistency", "inconsistencies"]

_e, _c, _v = exchanges.c, completions.c, conversations.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconsistency:
    """A contradiction in the books. kind: a stable word; id: of the row; note: what contradicts what."""

    kind: str
    id: str
    note: str


def inconsistencies(connection: Connection) -> list[Inconsistency]:
    """All contradictions, as of one moment. Reads everything: for the operator, not for each start."""
    looks = (_file, _exchanges, _completions, _details, _costs, _days, _search)
    found = (one for look in looks for one in look(connection))
    return [Inconsistency(kind=kind, id=id_, note=note) for kind, id_, note in found]


Found = Iterator[tuple[str, str, str]]


def _file(connection: Connection) -> Found:
    for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars():
        if line != "ok":
            yield "file", "", line
    for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield "orphan", f"{table} {row}", f"its row in {parent} is missing"


def _exchanges(connection: Connection) -> Found:
    living = set(connection.scalars(select(owners.c.id)))
    query = select(exchanges, _v.visitor.label("theirs"), _v.assistant.label("its"), _v.deleted_at).outerjoin(
        conversations, _v.id == _e.conversation
    )
    for row in connection.execute(query.execution_options(yield_per=50)):
        if (row.outcome is None) != (row.ended_at is None):
            yield "end", row.id, f"outcome {row.outcome!r}, but ended at {row.ended_at!r}"
        if row.outcome is None and row.owner not in living:
            yield "owner", row.id, f"open, and its owner {row.owner} is in the books no more"
        if (row.theirs, row.its) != (row.visitor, row.assistant):
            yield "conversation", row.id, "another visitor's or assistant's than its conversation"
        if not (row.seen or 0) <= row.sent <= row.events:
            yield "numbers", row.id, f"seen {row.seen}, sent {row.sent}, of {row.events} events"
        pairs = boundaries_of(connection, row.id)
        if row.deleted_at is not None or row.question is None:
            left = [name for name in ("question", "generated", "shown", "detail") if getattr(row, name) is not None]
            if left or pairs:
                yield "deleted", row.id, f"its text was removed, and left: {', '.join(left) or 'boundaries'}"
            continue
        generated = row.generated or ""
        # Of what a redaction changed, the beginning by itself may look otherwise than within the whole.
        if not generated.startswith(row.shown or "") and REDACTED not in row.marks.split("\n"):
            yield "shown", row.id, "what was shown is not how the generated text begins"
        if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(pairs)):
            yield "boundaries", row.id, "not in ascending order"
        if pairs and (pairs[-1][1] > len(generated) or pairs[-1][0] > row.events):
            yield "boundaries", row.id, f"{pairs[-1]} is beyond {len(generated)} characters or {row.events} events"
    adrift = select(boundaries.c.exchange).where(boundaries.c.exchange.not_in(select(_e.id))).distinct()
    for exchange in connection.scalars(adrift):
        yield "orphan", exchange, "boundaries without an exchange"


def _completions(connection: Connection) -> Found:
    living = set(connection.scalars(select(owners.c.id)))
    query = select(completions, _e.outcome.label("end"), _e.assistant.label("its")).join(
        exchanges, _e.id == _c.exchange
    )
    suspicious = or_(
        _c.outcome.is_(None),
        _c.closed_at.is_(None),
        _c.source.is_(None),
        _c.prompt_tokens.is_(None),
        _c.completion_tokens.is_(None),
        _c.assistant != _e.assistant,
    )
    for row in connection.execute(query.where(suspicious).execution_options(yield_per=50)):
        if (row.outcome is None) != (row.closed_at is None):
            yield "end", row.id, f"outcome {row.outcome!r}, but closed at {row.closed_at!r}"
        if row.outcome is None and row.end is not None:
            yield "open", row.id, f"open, and its exchange has ended as {row.end}"
        if row.outcome is None and row.owner not in living:
            yield "owner", row.id, f"open, and its owner {row.owner} is in the books no more"
        if row.outcome is not None and row.source is None:
            yield "source", row.id, "closed, and nothing says where its figures come from"
        if row.source in (Source.REPORTED, Source.ESTIMATED) and None in (row.prompt_tokens, row.completion_tokens):
            yield "tokens", row.id, f"{row.source}, and a figure is missing"
        if row.assistant != row.its:
            yield "assistant", row.id, f"booked for {row.assistant!r}, asked by {row.its!r}"


def _details(connection: Connection) -> Found:
    query = select(details, _e.id, _e.question, _e.outcome, _e.events.label("number_of_events")).outerjoin(
        exchanges, _e.number == details.c.number
    )
    for row in connection.execute(query.execution_options(yield_per=50)):
        if row.id is None:
            yield "orphan", f"details {row.number}", "details without an exchange"
        elif row.question is None:
            yield "deleted", row.id, "its text was removed, and left: details"
        elif row.outcome is None:
            yield "details", row.id, "of an exchange that runs"
        else:
            try:
                kept = unpacked(row.times, row.events)
            except ValueError as error:
                yield "details", row.id, str(error)
                continue
            if len(kept.times) not in (0, row.number_of_events):
                yield "details", row.id, f"{len(kept.times)} times of {row.number_of_events} events"


def _costs(connection: Connection) -> Found:
    spent = select(_c.exchange, func.sum(_c.cost).label("spent")).group_by(_c.exchange).subquery()
    costs = select(_e.id, _e.cost, spent.c.spent).outerjoin(spent, spent.c.exchange == _e.id)
    unlike = costs.where(_e.outcome.is_not(None), _e.cost.is_distinct_from(spent.c.spent))
    for id_, cost, total in connection.execute(unlike):
        if cost is None or total is None or abs(cost - total) > 1e-9 * max(abs(cost), abs(total)):
            yield "cost", id_, f"{cost!r}, and its completions cost {total!r} together"


def _days(connection: Connection) -> Found:
    for day in connection.scalars(select(past_days.c.day).order_by(past_days.c.day)):
        if _plain(counted(connection, day, day), day) != _plain(recount(connection, day, day), day):
            yield "day", str(day), "what was counted for good is not what its rows say"


def _plain(days: Counted, day: int) -> list[Any]:
    """Figures of a day, in an order that does not depend on the rows', costs to a millionth."""
    figures: list[Any] = sorted(msgspec.to_builtins(days.get(day, [])))
    return [
        [{key: round(one, 6) for key, one in value.items()} if isinstance(value, dict) else value for value in group]
        for group in figures
    ]


def _search(connection: Connection) -> Found:
    if not searching.made(connection):
        return
    kept = set(connection.exec_driver_sql("SELECT id FROM search_docsize").scalars())
    with_text = set(connection.exec_driver_sql("SELECT number FROM searchable").scalars())
    awaiting = set(connection.exec_driver_sql("SELECT number FROM unsearchable WHERE number > 0").scalars())
    for number in sorted(kept - with_text):
        yield "search", str(number), "its text was removed, and its words can be searched"
    for number in sorted(with_text - kept - awaiting):
        yield "search", str(number), "its text cannot be searched, and does not wait for it"
