"""Which completions belong to one exchange, and which of them should not be there.

What a request says of itself decides (a header, its metadata, its trace). Where it says nothing, the messages do: the
same question under the same history is the same exchange, for as long as a machine may be asking and not a visitor.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from motamot.answer import Source
from motamot.exam.meter.completion import Completion

__all__ = ["Exchange", "Exchanges", "Kind", "Metered"]

EXCHANGES = 10_000
"""Remembered; the longest quiet ones are forgotten first."""
COMPLETIONS = 200
"""Of one exchange that are remembered: a name that is sent with everything is no exchange's."""
AGAIN_SECONDS = 2.0
"""After the end of an answer: who asks the same by then is no visitor. A probing loop takes milliseconds."""
RETRY_SECONDS = 60.0
"""After a failure: client libraries wait up to 8 s between tries, ask twice, and mean the same question."""
TURN_SECONDS = 600.0
"""Between two turns of one exchange: a tool runs meanwhile."""
TYPING_SECONDS = 0.7
"""Nobody reads an answer and types the next question in less."""
HELPER_SECONDS = 60.0
_QUOTED = 12  # characters of a question that make a quotation of it
_HELPED = 100  # exchanges, the newest, that a completion may be a helper of


class Kind(StrEnum):
    """What a completion is to its exchange."""

    ANSWER = "answer"  # the first, or the one a retry was for
    TURN = "turn"  # a further turn, after tools
    RETRY = "retry"  # the same again, after one that failed before anything came
    AGAIN = "again"  # the same again, after one that had answered: paid twice
    HELPER = "helper"  # not the answer: a title, suggestions, a summary


@dataclass(slots=True, eq=False)
class Exchange:
    """One question and the completions made for it. by: `header`, `metadata`, `traceparent` or `inferred`."""

    id: str
    by: str
    completions: list[Completion] = field(default_factory=list)

    @property
    def last_at(self) -> float:
        """When something last happened in it."""
        return max(one.ended_at or time.monotonic() for one in self.completions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """A completion and what is thought of it. of: the earlier completion it repeats, or None."""

    completion: Completion
    exchange: Exchange
    kind: Kind
    of: Completion | None = None

    def notes(self) -> list[str]:
        """What an owner should know of it, in words. Complete once the completion has ended."""
        one = self.completion
        notes = list(one.notes)
        if self.kind is Kind.AGAIN and self.of is not None:
            how = {(False, True): ", first whole and then as a stream: a probe"}.get((self.of.stream, one.stream), "")
            notes.append(f"the same messages as #{self.of.number}, which had answered{how}: paid twice")
        elif self.kind is Kind.RETRY and self.of is not None:
            hidden = ", by the client library itself" if one.retried else ""
            notes.append(f"asks again what #{self.of.number} had failed at{hidden}")
        elif self.kind is Kind.HELPER:
            notes.append("no answer for the visitor: a title, suggestions or the like")
        if one.ended == "left":
            what = "before anything came" if one.failed else f"after {one.usage.completion_tokens} tokens or so"
            notes.append(f"the chatbot left {what}; the model was stopped")
        elif one.ended in ("cut", "reset"):
            notes.append("the model's server broke off" if one.ended == "reset" else "the response has no end")
        if one.usage.source is not Source.REPORTED and one.ended == "complete" and not one.failed:
            asked = "" if one.usage_asked else ": stream_options.include_usage was not asked for"
            notes.append(f"its usage was never reported{asked}")
        return notes


class Exchanges:
    """Puts completions together as they come.

    header: the request header that names the exchange, where the chatbot sends one.
    """

    def __init__(self, header: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._header = header
        self._now = clock
        self._by_id: OrderedDict[str, Exchange] = OrderedDict()  # the one that began something last, last
        self._by_users: OrderedDict[bytes, Exchange] = OrderedDict()

    def begun(self, completion: Completion) -> Metered:
        """Find the exchange of a completion whose request is whole."""
        completion.read()
        if (marked := completion.marked(self._header)) is not None:
            name, by = marked
            exchange = self._by_id.get(name) or Exchange(name, by)
            kind, of = self._kind_in(exchange, completion)
        else:
            exchange, kind, of = self._inferred(completion)
        completion.forget()
        exchange.completions.append(completion)
        del exchange.completions[:-COMPLETIONS]
        _remember(self._by_id, exchange.id, exchange)
        if completion.messages is not None and kind is not Kind.HELPER:
            _remember(self._by_users, completion.messages.users, exchange)
        return Metered(completion=completion, exchange=exchange, kind=kind, of=of)

    def _kind_in(self, exchange: Exchange, completion: Completion) -> tuple[Kind, Completion | None]:
        """What it is to the exchange that its request names."""
        messages = completion.messages
        if not exchange.completions or messages is None:
            return Kind.ANSWER, None
        for earlier in reversed(exchange.completions):
            if earlier.messages is not None and earlier.messages.all == messages.all:
                return (Kind.RETRY if _failed(earlier) else Kind.AGAIN), earlier
        first = exchange.completions[0].messages
        if messages.after and first is not None and first.users == messages.users:
            return Kind.TURN, None
        return Kind.HELPER, None

    def _inferred(self, completion: Completion) -> tuple[Exchange, Kind, Completion | None]:
        messages = completion.messages
        now = self._now()
        if messages is not None and messages.users:
            exchange = self._by_users.get(messages.users)
            if exchange is not None and (found := self._again(completion, exchange, now)) is not None:
                return exchange, *found
            for exchange in itertools.islice(reversed(self._by_id.values()), _HELPED):
                if self._helps(completion, exchange, now):
                    return exchange, Kind.HELPER, None
        return Exchange("~" + secrets.token_urlsafe(6), "inferred"), Kind.ANSWER, None

    @staticmethod
    def _again(completion: Completion, exchange: Exchange, now: float) -> tuple[Kind, Completion | None] | None:
        """What it is to an exchange of the same question; None where it is the question of somebody else, or anew."""
        messages = completion.messages
        assert messages is not None
        for earlier in reversed(exchange.completions):
            since = 0.0 if earlier.ended_at is None else now - earlier.ended_at
            if (before := earlier.messages) is None:
                continue
            if messages.all == before.all:
                kind, within = (Kind.RETRY, RETRY_SECONDS) if _failed(earlier) else (Kind.AGAIN, AGAIN_SECONDS)
                return (kind, earlier) if since <= within else None
            if messages.users == before.users and messages.after > before.after:
                return (Kind.TURN, None) if since <= TURN_SECONDS else None
        return None

    @staticmethod
    def _helps(completion: Completion, exchange: Exchange, now: float) -> bool:
        """Whether it is asked about the exchange, and not by its visitor."""
        messages = completion.messages
        main = exchange.completions[0].messages
        if messages is None or main is None or now - exchange.last_at > HELPER_SECONDS:
            return False
        under_way = any(one.ended_at is None for one in exchange.completions)
        if messages.users[: len(main.users)] == main.users:  # the conversation goes on
            return len(messages.users) > len(main.users) and not under_way and now - exchange.last_at < TYPING_SECONDS
        question = main.question.strip()
        return len(question) >= _QUOTED and question in completion.texts


def _failed(earlier: Completion) -> bool:
    """Whether it had ended without anything that could have been shown."""
    return earlier.ended_at is not None and earlier.failed


_K = TypeVar("_K")


def _remember(found: OrderedDict[_K, Exchange], key: _K, exchange: Exchange) -> None:
    found[key] = exchange
    found.move_to_end(key)
    if len(found) > EXCHANGES:
        found.popitem(last=False)
