"""The statements of each booking, compiled once and run over many rows by the driver itself.

SQLAlchemy writes them, so that another database is another dialect here. It does not run them: preparing the values of
these eight statements took more CPU than SQLite takes to carry them out (measured: half of what an exchange's bookings
cost).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
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
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert

from motamot.store.schema import boundaries, completions, conversations, details, exchanges, unsearchable

__all__ = [
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "DETAIL",
    "END",
    "GUESS",
    "MAKE_CONVERSATION",
    "MARK",
    "OPEN",
    "SENT",
    "SUM_UP",
    "TO_SEARCH",
    "UNMARK",
    "Row",
    "Statement",
    "cost_of",
]

Row = dict[str, Any]
"""Values by the names of a statement's parameters: `v_` and a column's name, or `k_id` for what an update looks for."""


class Statement:
    """An INSERT, UPDATE or DELETE. All its parameters are named in each row it is run with."""

    def __init__(self, clause: Any) -> None:
        compiled = clause.compile(dialect=sqlite.dialect())
        self._sql = str(compiled)
        names = compiled.positiontup
        # Of one name, `itemgetter` gives the value itself.
        self._values: Callable[[Row], tuple[Any, ...]] = (
            itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
        )

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Run it once for each row, within the connection's transaction. Returns: how many rows it changed.

        Raises: sqlite3.Error.
        """
        driver: Any = connection.connection.driver_connection
        changed: int = driver.executemany(self._sql, map(self._values, rows)).rowcount
        return changed


def _bind(column: Column[Any]) -> ColumnElement[Any]:
    return bindparam(f"v_{column.name}", type_=column.type)


def _insert(table: Any, given: Sequence[Column[Any]], source: Select[Any], copied: Sequence[Column[Any]] = ()) -> Any:
    """INSERT … SELECT the bound values (and what `source` copies) where `source` finds a row; repeating is harmless."""
    chosen = source.add_columns(*[_bind(column) for column in given])
    names = [column.name for column in (*copied, *given)]
    return insert(table).from_select(names, chosen).on_conflict_do_nothing()


_e, _c, _v = exchanges.c, completions.c, conversations.c

MAKE_CONVERSATION = Statement(
    insert(conversations)
    .values({name: bindparam(f"v_{name}") for name in ("id", "assistant", "visitor", "created_at")})
    .on_conflict_do_nothing()
)

BEGIN = Statement(
    _insert(
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
)

OPEN = Statement(
    _insert(
        completions,
        [_c.id, _c.exchange, _c.owner, _c.turn, _c.attempt, _c.model, _c.opened_at, _c.prompt_tokens],
        select(_e.assistant).where(
            _e.id == bindparam("v_exchange"), _e.owner == bindparam("v_owner"), _e.outcome.is_(None)
        ),
        [_c.assistant],
    )
)

_erased = exists().where(_e.id == _c.exchange, _e.question.is_(None))

CLOSE = Statement(
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

CHECKPOINT = Statement(
    update(exchanges)
    .where(_running)
    .values(
        generated=_unless_erased(_e.generated),
        sent=func.max(_e.sent, _bind(_e.sent)),
        events=func.max(_e.events, _bind(_e.events)),
    )
)

MARK = Statement(
    _insert(
        boundaries,
        list(boundaries.c),
        select().where(
            exists().where(_e.id == bindparam("v_exchange"), _e.outcome.is_(None), _e.question.is_not(None))
        ),
    )
)

GUESS = Statement(
    update(completions)
    .where(_c.id == bindparam("k_id"), _c.outcome.is_(None))
    .values(
        prompt_tokens=func.max(func.coalesce(_c.prompt_tokens, literal_column("0")), _bind(_c.prompt_tokens)),
        completion_tokens=func.max(
            func.coalesce(_c.completion_tokens, literal_column("0")), _bind(_c.completion_tokens)
        ),
    )
)

UNMARK = Statement(delete(boundaries).where(boundaries.c.exchange == select(_e.id).where(_running).scalar_subquery()))

cost_of = select(func.sum(_c.cost)).where(_c.exchange == _e.id).scalar_subquery()
"""What the completions of an exchange cost, for an UPDATE of its row."""

END = Statement(
    update(exchanges)
    .where(_running)
    .values(
        {
            column.name: _bind(column)
            for column in (
                _e.ended_at,
                _e.outcome,
                _e.code,
                _e.by,
                _e.message,
                _e.events,
                _e.sent,
                _e.seen,
                _e.marks,
                _e.first_text,
                _e.stop_asked,
                _e.stop_closed,
            )
        }
        | {column.name: _unless_erased(column) for column in (_e.detail, _e.generated, _e.shown)}
        | {"cost": cost_of}
    )
)

_kept = and_(_e.id == bindparam("k_id"), _e.outcome.is_not(None), _e.question.is_not(None))

TO_SEARCH = Statement(
    insert(unsearchable).from_select(["number"], select(_e.number).where(_kept)).on_conflict_do_nothing()
)

# Where another end stands (a sweeper's), these details are not its.
_of_this_end = and_(_kept, _e.ended_at == bindparam("k_ended_at"))

DETAIL = Statement(
    _insert(details, [details.c.times, details.c.events], select(_e.number).where(_of_this_end), [_e.number])
)

SENT = Statement(
    update(details)
    .where(details.c.number == select(_e.number).where(_e.id == bindparam("k_id")).scalar_subquery())
    .values(sent=func.max(func.coalesce(details.c.sent, literal_column("0")), _bind(details.c.sent)))
)

# A completion that is closed after its exchange's end: an answer of somebody's own may not have waited for it.
SUM_UP = Statement(
    update(exchanges)
    .where(
        _e.id == select(_c.exchange).where(_c.id == bindparam("k_id")).scalar_subquery(),
        _e.outcome.is_not(None),
    )
    .values(cost=cost_of)
)
