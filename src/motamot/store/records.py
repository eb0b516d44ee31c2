"""What the store is told and what it tells: plain records. Times are UTC, seconds since the epoch."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from motamot.answer import AnswerEvent, Source, Usage

__all__ = [
    "Begun",
    "Checkpoint",
    "CompletionClosed",
    "CompletionOpened",
    "CompletionRow",
    "ConversationRow",
    "ExchangeBegun",
    "ExchangeEnded",
    "ExchangeRow",
    "ExchangeSent",
    "Noted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeBegun:
    """A question that was admitted.

    visitor: the hash of the visitor's secret. key: the client's name for this exchange, unique per visitor, or None.
    body_hash: of what was asked under that key: the same key with another body is a conflict.
    replaces: the exchange this one is asked again for (regenerate), or None.
    """

    id: str
    conversation: str
    assistant: str
    visitor: str
    question: str
    started_at: float
    model: str = ""
    key: str | None = None
    body_hash: str | None = None
    replaces: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The answer to `begin`: a new exchange, or (`existing`) the one that this visitor's key already names."""

    existing: ExchangeRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOpened:
    """An upstream request about to leave. turn and attempt count from 1."""

    id: str
    exchange: str
    turn: int
    attempt: int
    model: str
    opened_at: float
    prompt_estimate: int = 0  # tokens, should the process be killed before anything is known


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionClosed:
    """What became of an upstream request. first_delta and duration: seconds since it was opened.

    outcome: `complete`, `truncated`, `filtered`, `stopped`, `abandoned`, `failed`, `interrupted`;
             a completion that asked for tools is `complete`.
    code:    of a failure, else None. detail: the provider's own words, for the operator.
    cost:    in `currency`, or None where no price is known.
    completion_bytes: UTF-8 bytes of all that was generated (text, reasoning, tool calls), 0 if not counted:
             estimates are calibrated by it.
    """

    id: str
    closed_at: float
    outcome: str
    finish: str
    usage: Usage
    code: str | None = None
    detail: str | None = None
    first_delta: float | None = None
    duration: float = 0.0
    model_reported: str = ""
    cost: float | None = None
    currency: str = "USD"
    completion_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A running exchange's text so far, with the boundaries that make event numbers mean something.

    text:       the whole answer text generated so far.
    boundaries: `(event number, characters of text up to and with that event)`, only those since the last
                checkpoint; a store appends them.
    sent:       number of the last event sent to a follower.
    completion: the completion under way, with the tokens it has generated so far as far as we can tell.
    whole:      `boundaries` are all there are: they replace those of earlier checkpoints.
    """

    exchange: str
    text: str
    sent: int
    boundaries: tuple[tuple[int, int], ...] = ()
    completion: str | None = None
    completion_tokens: int = 0
    prompt_tokens: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Noted:
    """An event that is no text, for the operator: arguments and results whole, whatever the visitor could see.

    after: how many numbered events came before it. numbered: it is one itself, number `after + 1`.
    at:    seconds after the question.
    """

    after: int
    numbered: bool
    at: float
    event: AnswerEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeEnded:
    """How an exchange ended. generated: all text the model made; shown: what the transcript shows of it.

    sent, seen: event numbers; seen is None where the client never said. events: how many there were.
    boundaries: as in `Checkpoint`, those since the last one: a client that comes back after a restart of ours
                says an event number, and gets the text behind it. whole: as in `Checkpoint`.
    noted:      the events that are no text. omitted: of how many of them arguments, result or text were too long.
    times:      when each numbered event came, in units of 0.1 ms after the question; empty where nobody measured.
    hidden:     numbers of the first and the last event that came and that the visitor was not shown; (0, 0): none.
    first_text, stop_asked, stop_closed: seconds after the question; None: it did not happen, or is not known.
    """

    id: str
    ended_at: float
    outcome: str
    generated: str
    shown: str
    events: int
    sent: int
    seen: int | None = None
    code: str | None = None
    by: str | None = None
    message: str | None = None
    detail: str | None = None
    marks: tuple[str, ...] = ()
    boundaries: tuple[tuple[int, int], ...] = ()
    whole: bool = False
    noted: tuple[Noted, ...] = ()
    omitted: int = 0
    hidden: tuple[int, int] = (0, 0)
    times: array[int] = field(default_factory=lambda: array("I"))
    first_text: float | None = None
    stop_asked: float | None = None
    stop_closed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSent:
    """How much of an exchange's answer was sent after its end had been booked. sent: number of the last event."""

    id: str
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """An exchange as stored. outcome is None while it runs; shown is then the last checkpoint's text."""

    id: str
    conversation: str
    assistant: str
    visitor: str
    key: str | None
    body_hash: str | None
    question: str | None  # None once its text was removed
    model: str
    started_at: float
    ended_at: float | None
    outcome: str | None
    code: str | None
    by: str | None
    message: str | None
    detail: str | None
    generated: str | None
    shown: str | None
    events: int
    sent: int
    seen: int | None
    replaces: str | None
    marks: tuple[str, ...]
    boundaries: tuple[tuple[int, int], ...] = ()  # all of them, in order; empty where a list of rows was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRow:
    """A completion as booked. outcome is None while it is open."""

    id: str
    exchange: str
    turn: int
    attempt: int
    model: str
    opened_at: float
    closed_at: float | None
    outcome: str | None
    finish: str | None
    code: str | None
    detail: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    source: Source | None
    cost: float | None
    currency: str
    first_delta: float | None
    duration: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """A conversation as stored."""

    id: str
    assistant: str
    visitor: str
    created_at: float
    deleted_at: float | None
