"""What is written, and how: a batch of records becomes a few statements, each run over all rows of its kind at once.

Within a batch the order is: conversations and exchanges, completions opened, completions closed, checkpoints, ends.
Every statement may be repeated (a batch is tried again after an error), and closes only what is open.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    null,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql.base import Executable

from motamot.answer import Source
from motamot.errors import Conflict, MotamotError, NotFound, StoreError
from motamot.store.reading import exchange_by_id, exchange_by_key, pack
from motamot.store.records import (
    Begun,
    Checkpoint,
    CompletionClosed,
    CompletionOpened,
    ExchangeBegun,
    ExchangeEnded,
)
from motamot.store.schema import boundaries, completions, conversations, exchanges

__all__ = ["Batch", "Record", "forget", "undo_begin", "undo_open"]

Row = dict[str, Any]
Record = ExchangeBegun | CompletionOpened | CompletionClosed | Checkpoint | ExchangeEnded

MOST = 10**12
"""No count of tokens or events is larger: a provider may report any number, and a sum of them must fit 63 bits."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def _count(number: int) -> int:
    return max(0, min(number, MOST))


def _real(number: float | None) -> float | None:
    """A finite number or None: SQLite makes NULL of NaN, and a sum with infinity is no sum."""
    return number if number is None or math.isfinite(number) else None


def _clean(text: str | None) -> str | None:
    """Text that can be encoded: half a character must not keep a booking out."""
    return text if text is None or text.isascii() else _SURROGATE.sub("\ufffd", text)


def _bind(column: Column[Any]) -> ColumnElement[Any]:
    return bindparam(f"v_{column.name}", type_=column.type)


def _insert(table: Any, given: Sequence[Column[Any]], source: Select[Any], copied: Sequence[Column[Any]] = ()) -> Any:
    """INSERT … SELECT the bound values (and what `source` copies) where `source` finds a row; repeating is harmless."""
    chosen = source.add_columns(*[_bind(column) for column in given])
    names = [column.name for column in (*copied, *given)]
    statement = insert(table).from_select(names, chosen).on_conflict_do_nothing()
    return statement.execution_options(preserve_rowcount=True)


_e, _c, _v = exchanges.c, completions.c, conversations.c

_make_conversation = (
    insert(conversations)
    .values({name: bindparam(f"v_{name}") for name in ("id", "assistant", "visitor", "created_at")})
    .on_conflict_do_nothing()
)

_begin = _insert(
    exchanges,
    [
        _e.id,
        _e.conversation,
        _e.assistant,
        _e.visitor,
        _e.key,
        _e.body_hash,
        _e.question,
        _e.model,
        _e.replaces,
        _e.owner,
        _e.started_at,
    ],
    select().where(
        exists().where(
            _v.id == bindparam("v_conversation"),
            _v.visitor == bindparam("v_visitor"),
            _v.assistant == bindparam("v_assistant"),
            _v.deleted_at.is_(None),
        )
    ),
)

_open = _insert(
    completions,
    [_c.id, _c.exchange, _c.owner, _c.turn, _c.attempt, _c.model, _c.opened_at, _c.prompt_tokens],
    select(_e.assistant).where(
        _e.id == bindparam("v_exchange"), _e.owner == bindparam("v_owner"), _e.outcome.is_(None)
    ),
    [_c.assistant],
)

_erased = exists().where(_e.id == _c.exchange, _e.question.is_(None))

_close = (
    update(completions)
    .where(_c.id == bindparam("k_id"), _c.outcome.is_(None))
    .values(
        {
            column.name: _bind(column)
            for column in (
                _c.closed_at,
                _c.outcome,
                _c.finish,
                _c.code,
                _c.prompt_tokens,
                _c.completion_tokens,
                _c.cached_tokens,
                _c.reasoning_tokens,
                _c.source,
                _c.completion_bytes,
                _c.cost,
                _c.currency,
                _c.first_delta,
                _c.duration,
                _c.model_reported,
            )
        }
        | {"detail": case((_bind(_c.detail).is_(None) | _erased, null()), else_=_bind(_c.detail))}
    )
)


def _unless_erased(column: Column[Any]) -> ColumnElement[Any]:
    return case((_e.question.is_(None), null()), else_=_bind(column))


_running = and_(_e.id == bindparam("k_id"), _e.outcome.is_(None))

_checkpoint = (
    update(exchanges)
    .where(_running)
    .values(
        generated=_unless_erased(_e.generated),
        sent=func.max(_e.sent, _bind(_e.sent)),
        events=func.max(_e.events, _bind(_e.events)),
    )
)

_mark = _insert(
    boundaries,
    list(boundaries.c),
    select().where(exists().where(_e.id == bindparam("v_exchange"), _e.outcome.is_(None), _e.question.is_not(None))),
)

_guess = (
    update(completions)
    .where(_c.id == bindparam("k_id"), _c.outcome.is_(None))
    .values(
        prompt_tokens=func.max(func.coalesce(_c.prompt_tokens, 0), _bind(_c.prompt_tokens)),
        completion_tokens=func.max(func.coalesce(_c.completion_tokens, 0), _bind(_c.completion_tokens)),
    )
)

_end = (
    update(exchanges)
    .where(_running)
    .values(
        {
            column.name: _bind(column)
            for column in (_e.ended_at, _e.outcome, _e.code, _e.by, _e.message, _e.events, _e.sent, _e.seen, _e.marks)
        }
        | {column.name: _unless_erased(column) for column in (_e.detail, _e.generated, _e.shown)}
    )
)


@dataclass(slots=True)
class Batch:
    """Records to be written in one transaction. `owner`: the id under which running rows stand."""

    owner: str
    begun: list[ExchangeBegun] = field(default_factory=list)
    opened: list[CompletionOpened] = field(default_factory=list)
    closed: list[Row] = field(default_factory=list)
    checkpoints: dict[str, Row] = field(default_factory=dict)
    marks: list[Row] = field(default_factory=list)
    guesses: dict[str, Row] = field(default_factory=dict)
    ended: list[Row] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Take one record in."""
        match record:
            case ExchangeBegun():
                self.begun.append(record)
            case CompletionOpened():
                self.opened.append(record)
            case CompletionClosed():
                self.closed.append(_closed(record))
            case Checkpoint():
                self._add_checkpoint(record)
            case ExchangeEnded():
                self._add_marks(record.id, record.boundaries)
                self.ended.append(_ended(record))

    def _add_checkpoint(self, record: Checkpoint) -> None:
        self._add_marks(record.exchange, record.boundaries)
        last = max((event for event, _ in record.boundaries), default=0)
        self.checkpoints[record.exchange] = {
            "k_id": record.exchange,
            "v_generated": _clean(record.text),
            "v_sent": _count(record.sent),
            "v_events": _count(max(record.sent, last)),
        }
        if record.completion is not None:
            self.guesses[record.completion] = {
                "k_id": record.completion,
                "v_prompt_tokens": _count(record.prompt_tokens),
                "v_completion_tokens": _count(record.completion_tokens),
            }

    def _add_marks(self, exchange: str, pairs: tuple[tuple[int, int], ...]) -> None:
        if pairs:
            self.marks.append({"v_exchange": exchange, "v_first_event": pairs[0][0], "v_pairs": pack(pairs)})

    def write(self, connection: Connection) -> dict[str, Begun | MotamotError]:
        """Run the statements.

        Returns: by id of an exchange begun or a completion opened, what became of it where that is not simply
                 "it is new": an exchange that its key already named, or the error to raise.
        """
        special: dict[str, Begun | MotamotError] = {}
        if self.begun:
            special |= self._write_begun(connection)
        if self.opened:
            special |= self._write_opened(connection)
        for statement, rows in (
            (_close, self.closed),
            (_checkpoint, list(self.checkpoints.values())),
            (_mark, self.marks),
            (_guess, list(self.guesses.values())),
            (_end, self.ended),
        ):
            if rows:
                connection.execute(statement, rows)
        return special

    def _write_begun(self, connection: Connection) -> dict[str, Begun | MotamotError]:
        rows = [_begun(record, self.owner) for record in self.begun]
        connection.execute(
            _make_conversation,
            [
                {
                    "v_id": row["v_conversation"],
                    "v_assistant": row["v_assistant"],
                    "v_visitor": row["v_visitor"],
                    "v_created_at": row["v_started_at"],
                }
                for row in rows
            ],
        )
        if _rows_written(connection, _begin, rows) == len(rows):
            return {}
        special = {}
        for record in self.begun:
            if (found := _not_begun(connection, record)) is not None:
                special[record.id] = found
                _drop_empty(connection, record.conversation)
        return special

    def _write_opened(self, connection: Connection) -> dict[str, Begun | MotamotError]:
        rows = [
            {
                "v_id": record.id,
                "v_exchange": record.exchange,
                "v_owner": self.owner,
                "v_turn": record.turn,
                "v_attempt": record.attempt,
                "v_model": _clean(record.model),
                "v_opened_at": record.opened_at,
                "v_prompt_tokens": _count(record.prompt_estimate),
            }
            for record in self.opened
        ]
        if _rows_written(connection, _open, rows) == len(rows):
            return {}
        return {
            record.id: StoreError(
                f"exchange {record.exchange} is not open here (any more): its owner was taken for dead, or it has ended"
            )
            for record in self.opened
            if connection.execute(select(_c.id).where(_c.id == record.id)).first() is None
        }


def _rows_written(connection: Connection, statement: Executable, rows: list[Row]) -> int:
    return connection.execute(statement, rows).rowcount


def _begun(record: ExchangeBegun, owner: str) -> Row:
    return {
        "v_id": record.id,
        "v_conversation": record.conversation,
        "v_assistant": record.assistant,
        "v_visitor": record.visitor,
        "v_key": _clean(record.key),
        "v_body_hash": record.body_hash,
        "v_question": _clean(record.question),
        "v_model": _clean(record.model),
        "v_replaces": record.replaces,
        "v_owner": owner,
        "v_started_at": record.started_at,
    }


def _closed(record: CompletionClosed) -> Row:
    usage = record.usage
    known = usage.source is not Source.UNKNOWN
    return {
        "k_id": record.id,
        "v_closed_at": record.closed_at,
        "v_outcome": str(record.outcome),
        "v_finish": record.finish,
        "v_code": record.code,
        "v_detail": _clean(record.detail),
        # What nobody knows is NULL, not 0.
        "v_prompt_tokens": _count(usage.prompt_tokens) if known or usage.prompt_tokens else None,
        "v_completion_tokens": _count(usage.completion_tokens) if known or usage.completion_tokens else None,
        "v_cached_tokens": _count(usage.cached_tokens) if known else None,
        "v_reasoning_tokens": _count(usage.reasoning_tokens) if known else None,
        "v_source": usage.source.value,
        "v_completion_bytes": _count(record.completion_bytes),
        "v_cost": _real(record.cost),
        "v_currency": record.currency,
        "v_first_delta": _real(record.first_delta),
        "v_duration": _real(record.duration),
        "v_model_reported": _clean(record.model_reported),
    }


def _ended(record: ExchangeEnded) -> Row:
    return {
        "k_id": record.id,
        "v_ended_at": record.ended_at,
        "v_outcome": str(record.outcome),
        "v_code": record.code,
        "v_by": record.by,
        "v_message": _clean(record.message),
        "v_detail": _clean(record.detail),
        "v_events": _count(record.events),
        "v_sent": _count(record.sent),
        "v_seen": None if record.seen is None else _count(record.seen),
        "v_marks": "\n".join(record.marks),
        "v_generated": _clean(record.generated),
        "v_shown": _clean(record.shown),
    }


def _not_begun(connection: Connection, record: ExchangeBegun) -> Begun | MotamotError | None:
    """Why this exchange is not in the books as a new one; None: it is."""
    if exchange_by_id(connection, record.id) is not None:
        return None
    existing = None
    if record.key is not None:
        existing = exchange_by_key(connection, record.visitor, _clean(record.key) or "")
    if existing is None or existing.question is None:
        return NotFound("there is no such conversation")
    if existing.body_hash != record.body_hash:
        return Conflict("this key already names another question; ask under a new key")
    return Begun(existing=existing)


def _drop_empty(connection: Connection, conversation: str) -> None:
    used = exists().where(_e.conversation == conversation)
    connection.execute(delete(conversations).where(_v.id == conversation, _v.deleted_at.is_(None), ~used))


def undo_begin(connection: Connection, record: ExchangeBegun, owner: str) -> None:
    """Take an exchange out again whose caller was told that it could not be begun."""
    asked = exists().where(_c.exchange == _e.id)
    connection.execute(delete(exchanges).where(_e.id == record.id, _e.owner == owner, _e.outcome.is_(None), ~asked))
    _drop_empty(connection, record.conversation)


def undo_open(connection: Connection, record: CompletionOpened, owner: str) -> None:
    """Take a completion out again whose request never left, because its caller was told that it could not be booked."""
    connection.execute(delete(completions).where(_c.id == record.id, _c.owner == owner, _c.outcome.is_(None)))


def forget(connection: Connection, conversation: str, at: float) -> None:
    """Remove a conversation's text. Its token rows stay; a running exchange of it finds no place for its text."""
    connection.execute(
        update(conversations).where(_v.id == conversation, _v.deleted_at.is_(None)).values(deleted_at=at)
    )
    mine = select(_e.id).where(_e.conversation == conversation)
    connection.execute(delete(boundaries).where(boundaries.c.exchange.in_(mine)))
    connection.execute(update(completions).where(_c.exchange.in_(mine)).values(detail=null()))
    # The hash goes too: a short question can be guessed from it.
    connection.execute(
        update(exchanges)
        .where(_e.conversation == conversation)
        .values({column: null() for column in (_e.question, _e.generated, _e.shown, _e.detail, _e.body_hash)})
    )
