"""Closing what dead owners left open: booked as `interrupted`, once, with what the last checkpoint knew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from sqlalchemy import Connection, and_, bindparam, case, delete, func, select, union, update
from sqlalchemy.dialects.sqlite import insert

from motamot.answer import Outcome, Source, Usage
from motamot.store.owners import Owner
from motamot.store.schema import completions, exchanges, owners, unsearchable
from motamot.store.statements import cost_of

__all__ = ["close_rows", "lapsed", "others", "register", "release", "renew"]

PriceOf = Callable[[str, str, Usage], tuple[float, str] | None]
"""Cost and currency of a usage, by assistant and model; None where no price is known."""

_e, _c, _o = exchanges.c, completions.c, owners.c

_renew = (
    update(owners)
    .where(_o.id == bindparam("k_id"))
    .values(renewals=bindparam("v_renewals"), renewed_at=bindparam("v_renewed_at"))
    .execution_options(preserve_rowcount=True)
)
_others = select(_o.id, _o.host, _o.place, _o.pid, _o.started, _o.renewals).where(_o.id != bindparam("me"))
_open_owners = union(
    select(_e.owner).where(_e.outcome.is_(None), _e.owner != bindparam("me")),
    select(_c.owner).where(_c.outcome.is_(None), _c.owner != bindparam("me")),
)


def register(connection: Connection, owner: Owner, at: float) -> None:
    """Enter this owner."""
    connection.execute(insert(owners).values(**asdict(owner), opened_at=at, renewed_at=at))


def renew(connection: Connection, owner: Owner, at: float) -> bool:
    """Renew this owner's lease; its count must be a new one each time, also where it is entered anew.

    Returns: False where it had been taken for dead and its rows closed: it is in the books again.
    """
    if connection.execute(_renew, {"k_id": owner.id, "v_renewals": owner.renewals, "v_renewed_at": at}).rowcount:
        return True
    register(connection, owner, at)
    return False


def release(connection: Connection, owner: str) -> None:
    """Strike this owner off."""
    connection.execute(delete(owners).where(_o.id == owner))


def others(connection: Connection, me: str) -> list[Owner]:
    """All other owners."""
    return [Owner(**row._mapping) for row in connection.execute(_others, {"me": me})]


def lapsed(connection: Connection, me: str, known: list[Owner]) -> list[str]:
    """Owners of open rows that are in the books no more: whoever struck them off was itself killed before it swept."""
    ids = {owner.id for owner in known}
    return [owner for owner in connection.scalars(_open_owners, {"me": me}) if owner not in ids]


def close_rows(connection: Connection, dead: list[str], at: float, price: PriceOf) -> int:
    """Close all open rows of these owners and strike them off.

    Returns: how many completions and exchanges were closed.
    """
    closed = 0
    guessed = func.coalesce(_c.prompt_tokens, 0) + func.coalesce(_c.completion_tokens, 0) > 0
    for owner in dead:
        _price_guesses(connection, owner, price)
        left = and_(_e.owner == owner, _e.outcome.is_(None))
        connection.execute(
            insert(unsearchable)
            .from_select(["number"], select(_e.number).where(left, _e.question.is_not(None)))
            .on_conflict_do_nothing()
        )
        mine = connection.execute(
            update(completions)
            .where(_c.owner == owner, _c.outcome.is_(None))
            .values(
                outcome=Outcome.INTERRUPTED.value,
                finish="incomplete",
                closed_at=at,
                source=case((guessed, Source.ESTIMATED.value), else_=Source.UNKNOWN.value),
                prompt_tokens=func.nullif(_c.prompt_tokens, 0),
                completion_tokens=case((guessed, func.coalesce(_c.completion_tokens, 0))),
                duration=func.max(at - _c.opened_at, 0.0),
            )
            .execution_options(preserve_rowcount=True)
        )
        theirs = connection.execute(
            update(exchanges)
            .where(left)
            .values(
                outcome=Outcome.INTERRUPTED.value,
                ended_at=at,
                cost=cost_of,
                events=_e.events + 1,  # the end is an event too
            )
            .execution_options(preserve_rowcount=True)
        )
        closed += mine.rowcount + theirs.rowcount
        release(connection, owner)
    return closed


def _price_guesses(connection: Connection, owner: str, price: PriceOf) -> None:
    rows = connection.execute(
        select(_c.id, _c.assistant, _c.model, _c.prompt_tokens, _c.completion_tokens).where(
            _c.owner == owner, _c.outcome.is_(None)
        )
    ).all()
    priced = []
    for row in rows:
        usage = Usage(
            prompt_tokens=row.prompt_tokens or 0,
            completion_tokens=row.completion_tokens or 0,
            source=Source.ESTIMATED,
        )
        known = usage.prompt_tokens or usage.completion_tokens
        if known and (cost := price(row.assistant, row.model, usage)) is not None:
            priced.append({"k_id": row.id, "v_cost": cost[0], "v_currency": cost[1]})
    if priced:
        connection.execute(
            update(completions)
            .where(_c.id == bindparam("k_id"))
            .values(cost=bindparam("v_cost"), currency=bindparam("v_currency")),
            priced,
        )
