"""What is written, and how: a batch of records becomes a few statements, each run over all rows of its kind at once.

Within a batch the order is: conversations and exchanges, completions opened, completions closed, checkpoints, ends.
Every statement may be repeated (a batch is tried again after an error), and closes only what is open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, exists, select

from motamot.answer import Source
from motamot.errors import Conflict, MotamotError, NotFound, StoreError
from motamot.store import details as kept_details
from motamot.store import statements
from motamot.store.cleaning import clean
from motamot.store.reading import exchange_by_id, exchange_by_key, pack
from motamot.store.records import (
    Begun,
    Checkpoint,
    CompletionClosed,
    CompletionOpened,
    ExchangeBegun,
    ExchangeEnded,
    ExchangeSent,
)
from motamot.store.schema import completions, conversations, exchanges
from motamot.store.statements import Row

__all__ = ["Batch", "Record", "undo_begin", "undo_open"]

Record = ExchangeBegun | CompletionOpened | CompletionClosed | Checkpoint | ExchangeEnded | ExchangeSent

_e, _c, _v = exchanges.c, completions.c, conversations.c

MOST = 10**12
"""No count of tokens or events is larger: a provider may report any number, and a sum of them must fit 63 bits."""


def _count(number: int) -> int:
    return max(0, min(number, MOST))


def _real(number: float | None) -> float | None:
    """A finite number or None: SQLite makes NULL of NaN, and a sum with infinity is no sum."""
    return number if number is None or math.isfinite(number) else None


@dataclass(slots=True)
class Batch:
    """Records to be written in one transaction. `owner`: the id under which running rows stand."""

    owner: str
    begun: list[Row] = field(default_factory=list)
    opened: list[CompletionOpened] = field(default_factory=list)
    closed: list[Row] = field(default_factory=list)
    checkpoints: dict[str, Row] = field(default_factory=dict)
    marks: list[Row] = field(default_factory=list)
    unmarked: list[Row] = field(default_factory=list)
    guesses: dict[str, Row] = field(default_factory=dict)
    ended: list[Row] = field(default_factory=list)
    details: list[Row] = field(default_factory=list)
    sent: list[Row] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Take one record in."""
        match record:
            case ExchangeBegun():
                self.begun.append(_begun(record, self.owner))
            case CompletionOpened():
                self.opened.append(record)
            case CompletionClosed():
                self.closed.append(_closed(record))
            case Checkpoint():
                self._add_checkpoint(record)
            case ExchangeEnded():
                self._add_marks(record.id, record.boundaries, record.whole)
                self.ended.append(_ended(record))
                if record.noted or record.times:
                    self.details.append(_detailed(record))
            case ExchangeSent():
                self.sent.append({"k_id": record.id, "v_sent": _count(record.sent)})

    def _add_checkpoint(self, record: Checkpoint) -> None:
        self._add_marks(record.exchange, record.boundaries, record.whole)
        last = max((event for event, _ in record.boundaries), default=0)
        self.checkpoints[record.exchange] = {
            "k_id": record.exchange,
            "v_generated": clean(record.text),
            "v_sent": _count(record.sent),
            "v_events": _count(max(record.sent, last)),
        }
        if record.completion is not None:
            self.guesses[record.completion] = {
                "k_id": record.completion,
                "v_prompt_tokens": _count(record.prompt_tokens),
                "v_completion_tokens": _count(record.completion_tokens),
            }

    def _add_marks(self, exchange: str, pairs: tuple[tuple[int, int], ...], whole: bool) -> None:
        if whole:
            self.marks = [row for row in self.marks if row["v_exchange"] != exchange]
            self.unmarked.append({"k_id": exchange})
        if pairs:
            self.marks.append({"v_exchange": exchange, "v_first_event": pairs[0][0], "v_pairs": pack(pairs)})

    def write(self, connection: Connection) -> dict[str, Begun | MotamotError]:
        """Run the statements.

        Returns: by id of an exchange begun or a completion opened, what became of it where that is not simply
                 "it is new": an exchange that its key already named, or the error to raise.
        """
        all_begun = not self.begun or self._write_begun(connection)
        all_opened = not self.opened or self._write_opened(connection)
        for statement, rows in (
            (statements.CLOSE, self.closed),
            (statements.SUM_UP, self.closed),
            (statements.CHECKPOINT, list(self.checkpoints.values())),
            (statements.UNMARK, self.unmarked),
            (statements.MARK, self.marks),
            (statements.GUESS, list(self.guesses.values())),
            (statements.END, self.ended),
            (statements.TO_SEARCH, self.ended),
            (statements.DETAIL, self.details),
            (statements.SENT, self.sent),
        ):
            if rows:
                statement.run(connection, rows)
        # Last, so that an exchange that is joined is told of as it is now.
        special = {} if all_begun else self._not_begun(connection)
        return special if all_opened else special | self._not_opened(connection)

    def _write_begun(self, connection: Connection) -> bool:
        made = [
            {
                "v_id": row["v_conversation"],
                "v_assistant": row["v_assistant"],
                "v_visitor": row["v_visitor"],
                "v_created_at": row["v_started_at"],
            }
            for row in self.begun
        ]
        statements.MAKE_CONVERSATION.run(connection, made)
        return statements.BEGIN.run(connection, self.begun) == len(self.begun)

    def _write_opened(self, connection: Connection) -> bool:
        rows = [_opened(record, self.owner) for record in self.opened]
        return statements.OPEN.run(connection, rows) == len(rows)

    def _not_begun(self, connection: Connection) -> dict[str, Begun | MotamotError]:
        special = {}
        for row in self.begun:
            if (why := _why_not_begun(connection, row)) is not None:
                special[row["v_id"]] = why
                _drop_empty(connection, row["v_conversation"])
        return special

    def _not_opened(self, connection: Connection) -> dict[str, Begun | MotamotError]:
        return {
            record.id: StoreError(
                f"exchange {record.exchange} is not open here (any more): it has ended, or its owner was taken for dead"
            )
            for record in self.opened
            if connection.execute(select(_c.id).where(_c.id == record.id)).first() is None
        }


def _begun(record: ExchangeBegun, owner: str) -> Row:
    return {
        "v_id": record.id,
        "v_conversation": clean(record.conversation),
        "v_assistant": clean(record.assistant),
        "v_visitor": clean(record.visitor),
        "v_key": clean(record.key),
        "v_body_hash": record.body_hash,
        "v_question": clean(record.question),
        "v_model": clean(record.model),
        "v_replaces": record.replaces,
        "v_owner": owner,
        "v_started_at": record.started_at,
    }


def _opened(record: CompletionOpened, owner: str) -> Row:
    return {
        "v_id": record.id,
        "v_exchange": record.exchange,
        "v_owner": owner,
        "v_turn": record.turn,
        "v_attempt": record.attempt,
        "v_model": clean(record.model),
        "v_opened_at": record.opened_at,
        "v_prompt_tokens": _count(record.prompt_estimate),
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
        "v_detail": clean(record.detail),
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
        "v_model_reported": clean(record.model_reported),
    }


def _ended(record: ExchangeEnded) -> Row:
    return {
        "k_id": record.id,
        "v_ended_at": record.ended_at,
        "v_outcome": str(record.outcome),
        "v_code": record.code,
        "v_by": record.by,
        "v_message": clean(record.message),
        "v_detail": clean(record.detail),
        "v_events": _count(record.events),
        "v_sent": _count(record.sent),
        "v_seen": None if record.seen is None else _count(record.seen),
        "v_marks": "\n".join(record.marks),
        "v_generated": clean(record.generated),
        "v_shown": None if record.shown == record.generated else clean(record.shown),
        "v_first_text": _real(record.first_text),
        "v_stop_asked": _real(record.stop_asked),
        "v_stop_closed": _real(record.stop_closed),
    }


def _detailed(record: ExchangeEnded) -> Row:
    times, events = kept_details.packed(record)
    return {"k_id": record.id, "k_ended_at": record.ended_at, "v_times": times, "v_events": events}


def _why_not_begun(connection: Connection, row: Row) -> Begun | MotamotError | None:
    """Why this exchange is not in the books as a new one; None: it is."""
    if exchange_by_id(connection, row["v_id"]) is not None:
        return None
    existing = None if row["v_key"] is None else exchange_by_key(connection, row["v_visitor"], row["v_key"])
    if existing is None or existing.question is None:
        return NotFound("there is no such conversation")
    if existing.body_hash != row["v_body_hash"]:
        return Conflict("this key already names another question; ask under a new key")
    return Begun(existing=existing)


def _drop_empty(connection: Connection, conversation: str) -> None:
    used = exists().where(_e.conversation == conversation)
    connection.execute(delete(conversations).where(_v.id == conversation, _v.deleted_at.is_(None), ~used))


def undo_begin(connection: Connection, record: ExchangeBegun, owner: str) -> None:
    """Take an exchange out again whose caller was told that it could not be begun."""
    asked = exists().where(_c.exchange == _e.id)
    connection.execute(delete(exchanges).where(_e.id == record.id, _e.owner == owner, _e.outcome.is_(None), ~asked))
    _drop_empty(connection, clean(record.conversation))


def undo_open(connection: Connection, record: CompletionOpened, owner: str) -> None:
    """Take a completion out again whose request never left, because its caller was told that it could not be booked."""
    connection.execute(delete(completions).where(_c.id == record.id, _c.owner == owner, _c.outcome.is_(None)))
