"""What the ledger's list is made of: exchanges with their completions, read from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Select, exists, or_, select
from sqlalchemy.exc import DBAPIError

from motamot.answer import Source, Usage
from motamot.errors import NotFound
from motamot.store.database import Database, explain
from motamot.store.schema import REVISION, VERSION_TABLE, completions, conversations, exchanges

__all__ = ["Booked", "Entry", "conversation_of", "is_current", "read"]

_COLUMNS = [
    exchanges.c[name]
    for name in (
        "id conversation assistant model started_at ended_at outcome code by message detail marks".split()  # noqa: SIM905
    )
]

_AT_ONCE = 500
"""Exchanges whose completions one statement asks for; SQLite takes a few thousand parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """One completion as booked. usage is None while it is open; times as in `motamot.store.records`."""

    id: str
    turn: int
    attempt: int
    model: str
    opened_at: float
    outcome: str | None
    finish: str | None
    code: str | None
    detail: str | None
    usage: Usage | None
    cost: float | None
    currency: str
    first_delta: float | None
    duration: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One exchange with its completions, in the order in which they were asked.

    question, shown: None unless asked for, and where the conversation was deleted.
    """

    id: str
    conversation: str
    assistant: str
    model: str
    started_at: float
    ended_at: float | None
    outcome: str | None
    code: str | None
    by: str | None
    message: str | None
    detail: str | None
    marks: tuple[str, ...]
    question: str | None
    shown: str | None
    completions: tuple[Booked, ...]

    @property
    def usage(self) -> Usage | None:
        """The sum over the closed completions; None where there is none."""
        known = [booked.usage for booked in self.completions if booked.usage is not None]
        return sum(known[1:], known[0]) if known else None

    @property
    def cost(self) -> dict[str, float]:
        """What is known of the cost, by currency."""
        total: dict[str, float] = {}
        for booked in self.completions:
            if booked.cost is not None:
                total[booked.currency] = total.get(booked.currency, 0.0) + booked.cost
        return total

    @property
    def turns(self) -> int:
        """How many turns were asked for."""
        return len({booked.turn for booked in self.completions})

    @property
    def surplus(self) -> list[str]:
        """Why there are more completions than turns: each one a phrase."""
        phrases = []
        for turn in sorted({booked.turn for booked in self.completions}):
            tries = [booked for booked in self.completions if booked.turn == turn]
            answered = [booked for booked in tries if booked.outcome in ("complete", "truncated", "filtered")]
            for before, again in pairwise(tries):
                how = f"{before.outcome or 'open'}{f' ({before.code})' if before.code else ''}"
                phrases.append(f"turn {turn}: attempt {before.attempt} {how}, asked again as attempt {again.attempt}")
            if len(answered) > 1:
                phrases.append(f"turn {turn}: answered {len(answered)} times")
        return phrases


def is_current(database: Database) -> bool:
    """Whether the file can be read as it is, by this version of motamot."""
    engine = database.reading()
    try:
        with engine.connect() as connection:
            found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608
            return bool(found == REVISION)
    except (DBAPIError, sqlite3.Error):
        return False
    finally:
        engine.dispose()


def read(
    database: Database,
    *,
    exchange: str | None = None,
    open_only: bool = False,
    since: float | None = None,
    limit: int = 20,
    assistant: str | None = None,
    text: bool = False,
) -> list[Entry]:
    """The newest `limit` exchanges that fit, newest first, all as of one moment, while others write.

    since: seconds since the epoch. Raises: StoreError.
    """
    e = exchanges.c
    texts = (e.question, e.generated, e.shown) if text else ()
    query = select(*_COLUMNS, *texts).order_by(e.number.desc()).limit(limit)
    if exchange is not None:
        query = query.where(e.id == exchange)
    if open_only:
        still_open = exists().where(completions.c.exchange == e.id, completions.c.outcome.is_(None))
        query = query.where(or_(e.outcome.is_(None), still_open))
    if since is not None:
        query = query.where(e.started_at >= since)
    if assistant is not None:
        query = query.where(e.assistant == assistant)
    engine = database.reading()
    try:
        with engine.connect() as connection, connection.begin():
            rows = connection.execute(query).all()
            booked = _completions(connection, [row.id for row in rows])
    except (DBAPIError, sqlite3.Error) as error:
        raise explain(error, database.path) from error
    finally:
        engine.dispose()
    return [_entry(row, booked.get(row.id, []), text=text) for row in rows]


def conversation_of(url: str, assistant: str, visitor: str, named: str) -> str:
    """The id of the conversation of this visitor's with this assistant that is `named`: `last`, or by its id.

    Raises: NotFound where there is none, StoreError.
    """
    database = Database(url)
    c = conversations.c
    query = select(c.id).where(c.assistant == assistant, c.visitor == visitor, c.deleted_at.is_(None)).limit(1)
    if named == "last":
        query = query.join(exchanges, exchanges.c.conversation == c.id).order_by(exchanges.c.number.desc())
    else:
        query = query.where(c.id == named)
    found = _fetched(database, query) if database.path.is_file() else []
    if found:
        return str(found[0].id)
    if named == "last":
        raise NotFound(f"there is no conversation with {assistant!r} yet that could go on")
    raise NotFound(
        f"there is no conversation {named!r} with {assistant!r} that could go on\n"
        "`motamot ledger --json` names all of them, `-c last` is the latest"
    )


def _fetched(database: Database, query: Select[Any]) -> Sequence[Any]:
    engine = database.reading()
    try:
        with engine.connect() as connection:
            return connection.execute(query).all()
    except (DBAPIError, sqlite3.Error) as error:
        raise explain(error, database.path) from error
    finally:
        engine.dispose()


def _completions(connection: Connection, ids: Sequence[str]) -> dict[str, list[Booked]]:
    found: dict[str, list[Booked]] = {}
    for start in range(0, len(ids), _AT_ONCE):
        query = select(completions).where(completions.c.exchange.in_(ids[start : start + _AT_ONCE]))
        for row in connection.execute(query.order_by(completions.c.number)):
            found.setdefault(row.exchange, []).append(_booked(row))
    return found


def _booked(row: Any) -> Booked:
    usage = None
    if row.outcome is not None:  # what is guessed while it is open is nobody's figure yet
        usage = Usage(
            prompt_tokens=row.prompt_tokens or 0,
            completion_tokens=row.completion_tokens or 0,
            cached_tokens=row.cached_tokens or 0,
            reasoning_tokens=row.reasoning_tokens or 0,
            source=Source(row.source) if row.source else Source.UNKNOWN,
        )
    return Booked(
        id=row.id,
        turn=row.turn,
        attempt=row.attempt,
        model=row.model_reported or row.model,
        opened_at=row.opened_at,
        outcome=row.outcome,
        finish=row.finish,
        code=row.code,
        detail=row.detail,
        usage=usage,
        cost=row.cost,
        currency=row.currency,
        first_delta=row.first_delta,
        duration=row.duration,
    )


def _entry(row: Any, booked: Sequence[Booked], *, text: bool) -> Entry:
    values = {column.name: getattr(row, column.name) for column in _COLUMNS}
    values["marks"] = tuple(row.marks.split("\n")) if row.marks else ()
    question = shown = None
    if text:
        question, shown = row.question, row.generated if row.shown is None else row.shown  # None: all of it
    return Entry(**values, question=question, shown=shown, completions=tuple(booked))
