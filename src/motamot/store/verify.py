"""Deriving again what the books say twice: text and boundaries, ends and times, owners and open rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection, or_, select

from motamot.answer import Source
from motamot.store.reading import boundaries_of
from motamot.store.schema import boundaries, completions, conversations, exchanges, owners

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
    found = [Inconsistency(kind=kind, id=id_, note=note) for kind, id_, note in _file(connection)]
    found += [Inconsistency(kind=kind, id=id_, note=note) for kind, id_, note in _exchanges(connection)]
    found += [Inconsistency(kind=kind, id=id_, note=note) for kind, id_, note in _completions(connection)]
    return found


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
            if left or pairs or row.deleted_at is None or row.question is not None:
                yield "deleted", row.id, f"deleted at {row.deleted_at!r}, and left: {', '.join(left) or 'boundaries'}"
            continue
        generated = row.generated or ""
        if not generated.startswith(row.shown or ""):
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
