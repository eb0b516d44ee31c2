"""What a visitor sees beside the text of an answer: its sources, and the tools that ran. Runs in reader threads."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, bindparam, select

from motamot.answer import AnswerEvent, Cited, ToolCalled, ToolReturned
from motamot.store.details import Details, unpacked
from motamot.store.schema import details, exchanges
from motamot.store.views import Beside

__all__ = ["beside_of"]

NEVER_RETURNED = "cancelled"
"""The status of a tool that was under way when its exchange ended."""

_e = exchanges.c

_query = (
    select(_e.id, _e.outcome, _e.sent, _e.seen, details.c.times, details.c.events)
    .join_from(exchanges, details, details.c.number == _e.number)
    .where(_e.conversation == bindparam("conversation"), _e.visitor == bindparam("visitor"))
    .order_by(_e.number.desc())
    .limit(bindparam("limit"))
)


def beside_of(connection: Connection, conversation: str, visitor: str, limit: int) -> dict[str, Beside]:
    """By exchange, of the latest `limit` of a conversation: what was shown beside the text."""
    rows = connection.execute(_query, {"conversation": conversation, "visitor": visitor, "limit": limit})
    return {row.id: _beside(unpacked(row.times, row.events)) for row in rows}


def _beside(kept: Details) -> Beside:
    sources: list[Cited] = []
    tools: dict[str, tuple[str, str]] = {}
    for event in _shown(kept):
        match event:
            case Cited() if event not in sources:
                sources.append(event)
            case ToolCalled():
                tools[event.id] = (event.name, NEVER_RETURNED)
            case ToolReturned():
                tools[event.id] = (event.name, event.status)
    return Beside(sources=tuple(sources), tools=tuple(tools.values()))


def _shown(kept: Details) -> Iterator[AnswerEvent]:
    hidden_from, hidden_to = kept.hidden
    for noted in kept.events:
        if noted.numbered and not hidden_from <= noted.after + 1 <= hidden_to:
            yield noted.event
