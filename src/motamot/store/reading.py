"""What is read: rows as records. Runs in reader threads, each with a connection that cannot write."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, select

from motamot.answer import Source
from motamot.store.records import CompletionRow, ConversationRow, ExchangeRow
from motamot.store.schema import boundaries, completions, conversations, exchanges

__all__ = [
    "Spent",
    "boundaries_of",
    "completions_of",
    "completions_where",
    "conversation_by_id",
    "exchange_by_id",
    "exchange_by_key",
    "exchange_row",
    "history_of",
    "pack",
    "reports",
    "spent_by",
    "unpack",
]


LATEST = 2_000  # completions looked at for what models reported: opening must be quick however long the book


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What completions opened since a moment have cost so far, the open ones with what is guessed of them.

    cost:     per currency. unpriced: completions with tokens and without a known price.
    unknown:  completions of which nothing is known, not even an estimate.
    """

    completions: int
    open: int
    prompt_tokens: int
    completion_tokens: int
    cost: dict[str, float]
    unpriced: int
    unknown: int


def pack(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Boundaries as bytes: two unsigned 32-bit little-endian integers each."""
    flat = [number for pair in pairs for number in pair]
    return struct.pack(f"<{len(flat)}I", *flat)


def unpack(packed: bytes) -> list[tuple[int, int]]:
    """What `pack` was given."""
    return list(struct.iter_unpack("<II", packed))


_EXCHANGE = [exchanges.c[f.name] for f in fields(ExchangeRow) if f.name != "boundaries"]
_COMPLETION = [completions.c[f.name] for f in fields(CompletionRow)]
_CONVERSATION = [conversations.c[f.name] for f in fields(ConversationRow)]

_by_id = select(*_EXCHANGE).where(exchanges.c.id == bindparam("id"))
_by_key = select(*_EXCHANGE).where(exchanges.c.visitor == bindparam("visitor"), exchanges.c.key == bindparam("key"))
_history = (
    select(*_EXCHANGE)
    .where(exchanges.c.conversation == bindparam("conversation"), exchanges.c.visitor == bindparam("visitor"))
    .order_by(exchanges.c.number.desc())
    .limit(bindparam("limit"))
)
_conversation = select(*_CONVERSATION).where(conversations.c.id == bindparam("id"))
_boundaries = (
    select(boundaries.c.pairs).where(boundaries.c.exchange == bindparam("exchange")).order_by(boundaries.c.first_event)
)


def exchange_row(row: Row[Any], pairs: tuple[tuple[int, int], ...] = ()) -> ExchangeRow:
    """A row of the columns that this module selects, as a record."""
    values = dict(row._mapping)
    values["marks"] = tuple(values["marks"].split("\n")) if values["marks"] else ()
    if values["shown"] is None:
        values["shown"] = values["generated"]
    return ExchangeRow(**values, boundaries=pairs)


def boundaries_of(connection: Connection, exchange: str) -> tuple[tuple[int, int], ...]:
    """An exchange's boundaries, in order."""
    return tuple(pair for packed in connection.scalars(_boundaries, {"exchange": exchange}) for pair in unpack(packed))


def _whole(connection: Connection, row: Row[Any] | None) -> ExchangeRow | None:
    return None if row is None else exchange_row(row, boundaries_of(connection, row.id))


def exchange_by_id(connection: Connection, exchange: str) -> ExchangeRow | None:
    """One exchange with its boundaries."""
    return _whole(connection, connection.execute(_by_id, {"id": exchange}).first())


def exchange_by_key(connection: Connection, visitor: str, key: str) -> ExchangeRow | None:
    """The exchange that this visitor's key names, with its boundaries."""
    return _whole(connection, connection.execute(_by_key, {"visitor": visitor, "key": key}).first())


def history_of(connection: Connection, conversation: str, visitor: str, limit: int) -> list[ExchangeRow]:
    """The latest `limit` exchanges of a conversation, oldest first."""
    rows = connection.execute(_history, {"conversation": conversation, "visitor": visitor, "limit": limit}).all()
    return [exchange_row(row) for row in reversed(rows)]


def conversation_by_id(connection: Connection, conversation: str) -> ConversationRow | None:
    """One conversation, also a deleted one."""
    row = connection.execute(_conversation, {"id": conversation}).first()
    return None if row is None else ConversationRow(**row._mapping)


def completions_where(
    connection: Connection, exchange: str | None, open_only: bool, since: float | None, limit: int
) -> list[CompletionRow]:
    """The latest `limit` completions that fit, oldest first."""
    query = select(*_COMPLETION).order_by(completions.c.number.desc()).limit(limit)
    if exchange is not None:
        query = query.where(completions.c.exchange == exchange)
    if open_only:
        query = query.where(completions.c.outcome.is_(None))
    if since is not None:
        query = query.where(completions.c.opened_at >= since)
    return [_completion_row(row) for row in reversed(connection.execute(query).all())]


def completions_of(connection: Connection, exchanges: Sequence[str]) -> list[CompletionRow]:
    """All completions of these exchanges, in the order of booking."""
    query = select(*_COMPLETION).where(completions.c.exchange.in_(exchanges)).order_by(completions.c.number)
    return [_completion_row(row) for row in connection.execute(query)]


def _completion_row(row: Row[Any]) -> CompletionRow:
    values = dict(row._mapping)
    values["source"] = Source(values["source"]) if values["source"] else None
    if values["outcome"] is None:  # what is guessed while it is open is nobody's figure yet
        values["prompt_tokens"] = values["completion_tokens"] = None
    return CompletionRow(**values)


def spent_by(connection: Connection, assistant: str | None, since: float) -> Spent:
    """What an assistant (or, with None, all of them) has spent since then."""
    c = completions.c
    tokens = func.coalesce(c.prompt_tokens, 0) + func.coalesce(c.completion_tokens, 0)
    closed = c.outcome.is_not(None)
    query = select(
        c.currency,
        func.count(),
        func.sum(case((c.outcome.is_(None), 1), else_=0)),
        func.sum(func.coalesce(c.prompt_tokens, 0)),
        func.sum(func.coalesce(c.completion_tokens, 0)),
        func.sum(c.cost),
        func.sum(case((closed & c.cost.is_(None) & (tokens > 0), 1), else_=0)),
        func.sum(case((c.source == Source.UNKNOWN.value, 1), else_=0)),
    ).where(c.opened_at >= since)
    if assistant is not None:
        query = query.where(c.assistant == assistant)
    rows = connection.execute(query.group_by(c.currency)).all()

    def total(column: int) -> int:
        return sum(int(row[column]) for row in rows)

    return Spent(
        completions=total(1),
        open=total(2),
        prompt_tokens=total(3),
        completion_tokens=total(4),
        cost={row[0]: float(row[5]) for row in rows if row[5] is not None},
        unpriced=total(6),
        unknown=total(7),
    )


def reports(connection: Connection) -> dict[str, list[tuple[int, int]]]:
    """By model, (tokens, bytes) of those of the latest completions that were reported and whose size is known."""
    c = completions.c
    latest = select(func.max(c.number) - LATEST).scalar_subquery()
    query = (
        select(c.model, c.completion_tokens, c.completion_bytes)
        .where(c.number > latest, c.source == Source.REPORTED.value)
        .where(c.completion_bytes > 0, func.coalesce(c.reasoning_tokens, 0) == 0)
        .order_by(c.number)
    )
    found: dict[str, list[tuple[int, int]]] = {}
    for model, tokens, size in connection.execute(query):
        found.setdefault(model, []).append((tokens, size))
    return found
