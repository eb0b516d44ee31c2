"""Removing text for good: a conversation's, a visitor's, what is older than it may become. Figures stay.

All of these run in the writer's transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, null, or_, select, update

from motamot.store import searching
from motamot.store.schema import boundaries, completions, conversations, details, exchanges

__all__ = ["ERASED", "forget_older", "forget_theirs", "forget_visitor"]

ERASED = "erased "
"""What the name of a visitor begins with who was deleted; a random word follows."""

_e, _c, _v = exchanges.c, completions.c, conversations.c


def _forget_texts(connection: Connection, where: ColumnElement[bool]) -> None:
    """Remove the text of these exchanges; a running one finds no place for its text any more."""
    # What the index holds must be taken out while the text is there to say what that is.
    with_text = select(_e.number).where(where, _e.question.is_not(None))
    searching.remove(connection, list(connection.scalars(with_text)))
    mine = select(_e.id).where(where)
    connection.execute(delete(details).where(details.c.number.in_(select(_e.number).where(where))))
    connection.execute(delete(boundaries).where(boundaries.c.exchange.in_(mine)))
    connection.execute(update(completions).where(_c.exchange.in_(mine)).values(detail=null()))
    # The hash goes too: a short question can be guessed from it.
    texts = (_e.question, _e.generated, _e.shown, _e.detail, _e.body_hash)
    connection.execute(update(exchanges).where(where).values({column: null() for column in texts}))


def _forget(connection: Connection, wanted: Sequence[str], at: float) -> None:
    for conversation in wanted:
        _forget_texts(connection, _e.conversation == conversation)
        connection.execute(
            update(conversations).where(_v.id == conversation, _v.deleted_at.is_(None)).values(deleted_at=at)
        )


def forget_theirs(connection: Connection, conversation: str, visitor: str, at: float) -> bool:
    """Remove a conversation's text, if it is this visitor's and still there."""
    theirs = select(_v.id).where(_v.id == conversation, _v.visitor == visitor, _v.deleted_at.is_(None))
    if connection.execute(theirs).first() is None:
        return False
    _forget(connection, [conversation], at)
    return True


def forget_visitor(connection: Connection, visitor: str, at: float, limit: int) -> int:
    """Remove the text of up to `limit` conversations of a visitor. Returns: how many there were.

    Where none is left, what they are called goes too: a host may have given us the name of its user. Their rows still
    belong together, under a word that nobody else has.
    """
    theirs = select(_v.id).where(_v.visitor == visitor, _v.deleted_at.is_(None)).limit(limit)
    found = connection.scalars(theirs).all()
    _forget(connection, found, at)
    if len(found) < limit:
        name = ERASED + secrets.token_urlsafe(9)
        connection.execute(update(conversations).where(_v.visitor == visitor).values(visitor=name))
        connection.execute(update(exchanges).where(_e.visitor == visitor).values(visitor=name))
    return len(found)


def forget_older(connection: Connection, before: float, at: float, limit: int) -> tuple[int, int]:
    """Remove the text of what was asked before a moment, and does not run.

    Returns: how many conversations went as a whole, nothing having been asked in them since; and how many single
             exchanges went, of those that go on. No more than `limit` of each.
    """
    recent = exists().where(_e.conversation == _v.id, or_(_e.started_at >= before, _e.outcome.is_(None)))
    old = select(_v.id).where(_v.created_at < before, _v.deleted_at.is_(None), ~recent).limit(limit)
    found = connection.scalars(old).all()
    _forget(connection, found, at)
    single = and_(_e.started_at < before, _e.question.is_not(None), _e.outcome.is_not(None))
    numbers = connection.scalars(select(_e.number).where(single).limit(limit)).all()
    if numbers:
        _forget_texts(connection, _e.number.in_(numbers))
    return len(found), len(numbers)
