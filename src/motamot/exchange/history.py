"""What the model is told of the past: user texts and shown assistant texts, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from motamot.model.turn import Message
from motamot.store.records import ExchangeRow

__all__ = ["conversation", "merged", "recent"]


def conversation(
    rows: Sequence[ExchangeRow],
    question: str,
    *,
    system: str | None = None,
    tokens: int,
    count: Callable[[str], int],
) -> list[Message]:
    """The messages of the next request: the system prompt, the past that fits, the question.

    rows:   the conversation's earlier exchanges, oldest first. One that was asked again is left out.
    tokens: how much of the past fits. Exchanges are left out whole, oldest first, never cut.
    count:  tokens of a text.
    """
    replaced = {row.replaces for row in rows if row.replaces}
    kept: list[list[Message]] = []
    for row in reversed(rows):
        if row.id in replaced or not row.question:  # its text was removed, or never written
            continue
        past = [Message(role="user", content=row.question)]
        if row.shown:
            past.append(Message(role="assistant", content=row.shown))
        tokens -= sum(count(message.content) for message in past)
        if tokens < 0:
            break
        kept.append(past)
    messages = [Message(role="system", content=system)] if system else []
    messages += [message for past in reversed(kept) for message in past]
    return merged([*messages, Message(role="user", content=question)])


def recent(past: Sequence[Message], *, tokens: int, count: Callable[[str], int]) -> Sequence[Message]:
    """The latest of a past that a client keeps, as much as fits, from something the user said: no message is cut.

    Many models refuse an answer whose question is not there.
    """
    first = len(past)
    while first and (tokens := tokens - count(past[first - 1].content)) >= 0:
        first -= 1
    while first < len(past) and past[first].role != "user":
        first += 1
    return past[first:]


def merged(messages: Iterable[Message]) -> list[Message]:
    """Messages of one role that follow each other become one, with a blank line between: many models refuse two."""
    result: list[Message] = []
    for message in messages:
        last = result[-1] if result else None
        if last is not None and last.role == message.role and not last.tool_calls and message.role != "tool":
            result[-1] = Message(
                role=last.role, content=f"{last.content}\n\n{message.content}", tool_calls=message.tool_calls
            )
        else:
            result.append(message)
    return result
