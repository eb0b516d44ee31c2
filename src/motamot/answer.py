"""What an answer is made of, before any wire format.

An exchange's answer is a list of frozen events, numbered from 1 by their place in it: `Started` (and `Routed`),
then per turn `Text`, `Reasoning`, `ToolCalled`, `ToolReturned`, `Cited`, `TurnEnded`, and exactly one `Ended`,
always last. Readers skip kinds and fields they do not know: new ones may be added.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

__all__ = [
    "AnswerEvent",
    "By",
    "Cited",
    "Code",
    "Ended",
    "Outcome",
    "Reasoning",
    "Routed",
    "Source",
    "Started",
    "SurrogateJoiner",
    "Text",
    "ToolCalled",
    "ToolReturned",
    "TurnEnded",
    "Usage",
]


class Outcome(StrEnum):
    """How an exchange ended (docs/design.md, the table of outcomes)."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    STOPPED = "stopped"
    ABANDONED = "abandoned"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Code(StrEnum):
    """Why an exchange failed."""

    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_CUT = "upstream_cut"
    TIMEOUT = "timeout"
    TOOL_BUDGET = "tool_budget"
    LIMIT = "limit"


class By(StrEnum):
    """Who stopped an exchange: the visitor's stop, the operator, or a client that left and cannot come back."""

    VISITOR = "visitor"
    OPERATOR = "operator"
    DISCONNECT = "disconnect"


class Source(StrEnum):
    """Where a token count comes from: the provider's own report, our estimate, or nowhere."""

    REPORTED = "reported"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one completion, or the sum over an exchange's completions.

    A sum is `reported` only if all its parts are; one unknown part makes the sum `unknown`.
    `cached_tokens` are part of `prompt_tokens`, `reasoning_tokens` of `completion_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    source: Source = Source.UNKNOWN

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            source=max(self.source, other.source, key=_TRUST.index),
        )


_TRUST = [Source.REPORTED, Source.ESTIMATED, Source.UNKNOWN]


class AnswerEvent(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """The base of all answer events. Encoded by msgspec, each carries its kind as `"type"`."""


class Started(AnswerEvent, frozen=True, tag="started", kw_only=True):
    """The exchange was admitted; ids are random and never count as permission."""

    exchange: str
    conversation: str
    assistant: str = ""
    model: str = ""


class Routed(AnswerEvent, frozen=True, tag="routed", kw_only=True):
    """Which skill or agent answers, and why. `confidence` is 0 to 1."""

    agent: str
    confidence: float = 0.0
    method: str = ""
    trace: Any = None


class Text(AnswerEvent, frozen=True, tag="text"):
    """A piece of the answer, as the model wrote it; always encodable as UTF-8, never empty."""

    text: str


class Reasoning(AnswerEvent, frozen=True, tag="reasoning"):
    """A piece of the model's reasoning, kept apart from the answer."""

    text: str


class ToolCalled(AnswerEvent, frozen=True, tag="tool_called", kw_only=True):
    """A tool is about to run. `arguments` is None where the visitor may not see them."""

    id: str
    name: str
    arguments: Any = None


class ToolReturned(AnswerEvent, frozen=True, tag="tool_returned", kw_only=True):
    """A tool has run. status: `ok`, `error`, `timeout`, `invalid_arguments`, `unknown_tool` or `cancelled`."""

    id: str
    name: str
    status: str
    result: str | None = None


class Cited(AnswerEvent, frozen=True, tag="cited", kw_only=True):
    """A source the answer rests on. mark: what stands for it in the answer's text, as `[12]`."""

    title: str
    url: str | None = None
    quote: str | None = None
    mark: str | None = None


class TurnEnded(AnswerEvent, frozen=True, tag="turn_ended", kw_only=True):
    """One completion is over. finish: `stop`, `length`, `tool_calls`, `content_filter`, `unknown`, `error`
    or `incomplete` (the stream ended with neither a reason nor an end mark)."""

    turn: int
    finish: str
    usage: Usage | None = None


class Ended(AnswerEvent, frozen=True, tag="ended", kw_only=True):
    """The end of the exchange, always last, exactly once.

    code, message: why it failed, in our words, for the visitor; None where it did not fail.
    by:            who stopped it.
    shown:         number of the last event the visitor was shown.
    marks:         words a page shows beside the answer: `recorded`, `test_model`, ….
    """

    outcome: Outcome
    code: Code | None = None
    message: str | None = None
    by: By | None = None
    shown: int = 0
    usage: Usage | None = None
    marks: tuple[str, ...] = ()


_SURROGATE = re.compile("[\ud800-\udfff]")
_ORPHAN = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


class SurrogateJoiner:
    """Makes a run of deltas encodable as UTF-8 whatever halves they were cut into.

    JSON may cut an astral character into `\\ud83d` and `\\ude00` in two deltas; each half alone cannot be
    encoded. A high surrogate at the end of a delta waits for the next one; an orphan becomes U+FFFD.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    @property
    def holding(self) -> bool:
        """Whether half a character waits for its other half."""
        return bool(self._held)

    def feed(self, delta: str) -> str:
        """The encodable text that `delta` completes; may be empty."""
        if not self._held and (delta.isascii() or not _SURROGATE.search(delta)):
            return delta
        text = self._held + delta
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return _joined(text)

    def close(self) -> str:
        """What was still held: U+FFFD for a half that never met its other, else nothing."""
        held, self._held = self._held, ""
        return "\ufffd" if held else ""


def _joined(text: str) -> str:
    text = _ORPHAN.sub("\ufffd", text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
