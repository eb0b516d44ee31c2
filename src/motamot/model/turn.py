"""The words between an exchange and a model: what one completion is asked, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from motamot.answer import AnswerEvent, Usage
from motamot.errors import UpstreamError

__all__ = [
    "Attempt",
    "Deviation",
    "Emit",
    "Message",
    "Model",
    "ToolCall",
    "ToolSpec",
    "Turn",
    "TurnRequest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call put together from its fragments.

    id:         the model's, or one made up here; never empty, unique in its turn.
    raw:        the arguments as JSON text, as they go back to the model ("{}" for none).
    arguments:  the decoded arguments object, or None where `raw` is not one JSON object.
    problem:    why this call may not run (cut off, not JSON, ambiguous), or None: it may.
    """

    id: str
    name: str
    raw: str
    arguments: dict[str, Any] | None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message to the model. role: `system`, `user`, `assistant` or `tool`.

    tool_calls:   on an assistant message that called tools (content may then be "").
    tool_call_id: on a tool message, the call it answers.
    """

    role: str
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model is told of it. parameters: a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One completion to be asked for.

    tool_choice: `auto`, `none`, `required`, `{"type": "function", …}` for one tool, or None to say nothing.
    extra:       further fields of the request body (temperature, …), as the assistant's settings give them.
    headers:     further request headers: an HTTP model sends them as they are (the completion's id, to find it
                 again in a provider's log: `X-Client-Request-Id`).
    """

    messages: Sequence[Message]
    max_tokens: int
    tools: Sequence[ToolSpec] = ()
    tool_choice: str | dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Something in a completion that is not by the book, and was coped with.

    kind: a word of `cases` (`tool-index-missing`, `usage-in-every-chunk`, …); note: what was seen, one sentence.
    """

    kind: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One completion, as far as it came.

    finish:  `stop`, `length`, `tool_calls`, `content_filter`, `unknown` (an end mark without a reason),
             `incomplete` (neither), `error`. `tool_calls` also where the model said `stop` and had called tools.
    text:    the answer text of this turn; reasoning: kept apart.
    usage:   as reported, or None: the caller estimates.
    error:   why it failed, where finish is `error` or `incomplete`; None otherwise.
    model:   the model's name as its server says it, "" if it does not.
    tool_calls: in order of appearance. Those with a `problem` never run.
    started: a byte of the response's body came: the model may have been paid.
    """

    finish: str
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    error: UpstreamError | None = None
    deviations: tuple[Deviation, ...] = ()
    model: str = ""
    started: bool = False

    @property
    def runnable(self) -> tuple[ToolCall, ...]:
        """The calls that may be run: none unless the turn really ended, and not by the token limit."""
        if self.finish != "tool_calls":
            return ()
        return tuple(call for call in self.tool_calls if call.problem is None)


Emit = Callable[[Sequence[AnswerEvent]], None]
"""Takes `Text` and `Reasoning` events the moment they are known. Never blocks, never raises."""


class Attempt(Protocol):
    """One upstream request: one row of the ledger."""

    async def run(self, emit: Emit) -> Turn:
        """Ask, pass on what comes, and give the turn, also where it failed (`turn.error`).

        Cancelling it closes the upstream connection before the cancellation gets out.
        """
        ...

    def snapshot(self) -> Turn:
        """The turn as far as it has come: for checkpoints, and for what a cancelled attempt had cost."""
        ...

    @property
    def first_delta_at(self) -> float | None:
        """`time.monotonic()` of the first delta (text, reasoning or tool call), or None."""
        ...


class Model(Protocol):
    """Where answers come from: an HTTP server, the embedded model, or recorded samples."""

    name: str  # the model as it is asked for
    origin: str  # `http`, `local` or `recorded`
    marks: tuple[str, ...]  # shown beside each answer: `recorded`, `test_model`; empty for a real model

    def attempt(self, request: TurnRequest) -> Attempt:
        """A completion that has not been asked for yet; no I/O happens here."""
        ...

    async def close(self) -> None:
        """Let go of connections and child processes."""
        ...
