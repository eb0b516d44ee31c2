"""What scripts are made of: the steps of a turn, as plain frozen values.

Raw steps (`Head`, `Send`, `SendRepeat`, `Wait`, `Repeat`, `Close`, `ExpectCancel`) mean the same in every dialect;
`Say`, `Think`, `Call`, `Finish`, `ReportUsage` and `Fail` are rendered in the dialect that was asked for.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from types import UnionType

from motamot.scripted.patterns import Pattern

__all__ = [
    "Call",
    "CallDialect",
    "Calls",
    "Close",
    "ExpectCancel",
    "Fail",
    "FailHow",
    "Finish",
    "Gate",
    "Head",
    "How",
    "Repeat",
    "ReportUsage",
    "Say",
    "Script",
    "Send",
    "SendRepeat",
    "Step",
    "Think",
    "Turn",
    "UsagePlace",
    "Wait",
]


class How(enum.StrEnum):
    """How a response is closed."""

    CLEAN = "clean"  # the body is ended as HTTP says; the connection may be used again
    RESET = "reset"  # TCP reset, no final HTTP chunk
    FIN = "fin"  # TCP closed in order, no final HTTP chunk
    HALF_CHUNK = "half-chunk"  # an HTTP chunk is announced and not written to its end, then TCP is closed in order


class CallDialect(enum.StrEnum):
    """How the fragments of a tool call look, as servers "compatible with OpenAI" send them."""

    STANDARD = "standard"  # index on each fragment; id, name and empty arguments first, then arguments in pieces
    WHOLE = "whole"  # one fragment with everything
    NO_INDEX = "no-index"  # one fragment with everything but the index
    NO_INDEX_FRAGMENTS = "no-index-fragments"  # as standard, without an index
    SAME_INDEX = "same-index"  # as standard, every call at index 0
    SAME_INDEX_WHOLE = "same-index-whole"  # as whole, every call at index 0
    INDEX_FROM_ONE = "index-from-one"
    NAME_REPEATED = "name-repeated"  # the name on every fragment
    ID_REPEATED = "id-repeated"  # the id on every fragment
    ID_AND_NAME_REPEATED = "id-and-name-repeated"
    NAME_LATE = "name-late"  # id first, the name in the next fragment
    NAME_IN_PIECES = "name-in-pieces"
    NO_ID = "no-id"
    EMPTY_ID = "empty-id"
    ARGUMENTS_OBJECT = "arguments-object"  # arguments are an object where a string belongs
    ARGUMENTS_TWICE = "arguments-twice"  # in pieces, then once more whole
    FUNCTION_CALL = "function-call"  # the older delta.function_call


class UsagePlace(enum.StrEnum):
    """Where the token counts of a stream stand. All but `chunk` are sent whether they were asked for or not."""

    CHUNK = "chunk"  # a chunk of its own before [DONE], with empty choices, if include_usage asked for it
    ALWAYS = "always"  # the same, asked for or not
    FINISH = "finish"  # on the chunk with the finish reason
    BOTH = "both"  # on the chunk with the finish reason, and in a chunk of its own
    EVERY = "every"  # running totals on each chunk
    EVERY_SAME = "every-same"  # the final totals on each chunk
    CHOICE = "choice"  # inside the choice of the last chunk (not OpenAI's place)
    NONE = "none"  # never, also if asked for


class FailHow(enum.StrEnum):
    """What an error looks like once the head has left."""

    DATA = "data"  # data: {"error": {...}}
    STRING = "string"  # data: {"error": "..."}
    EVENT = "event"  # event: error, data: {"error": {...}}
    EVENT_BARE = "event-bare"  # event: error, data: {"message": ...} without an "error" key
    FIELD = "field"  # an SSE field named error, which no reader of the standard sees


@dataclass(frozen=True, slots=True)
class Head:
    """The response head. headers are added to, or replace, those a stream has (`content-type: text/event-stream`)."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes written as they are, in one write."""

    data: bytes


@dataclass(frozen=True, slots=True)
class SendRepeat:
    """Bytes written `times` times (joined into writes of up to 64 kB)."""

    data: bytes
    times: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is sent for `seconds`; the connection stays open."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Nothing is sent until the gate is released; after `seconds` the script goes on, and the record says so."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """The steps, `times` times."""

    times: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the response. Without one, a turn ends `clean`."""

    how: How


@dataclass(frozen=True, slots=True)
class ExpectCancel:
    """Sends nothing: says that the client is to leave before the script runs out, within `seconds` of its stop."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Say:
    """Answer text, piece by piece.

    pace:        seconds between two pieces.
    slice_bytes: each piece's bytes are written in slices of so many bytes; 0: in one write.
    """

    pieces: tuple[str, ...]
    pace: float = 0.0
    slice_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning, piece by piece. name: the delta's field (`reasoning_content` or `reasoning`)."""

    pieces: tuple[str, ...]
    pace: float = 0.0
    name: str = "reasoning_content"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. arguments: JSON text, or whatever the script wants to be there, in `pieces` as they are sent.

    id: None for one made up here.
    """

    name: str
    pieces: tuple[str, ...]
    id: str | None = None
    dialect: CallDialect = CallDialect.STANDARD
    pace: float = 0.0

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Calls:
    """Tool calls whose fragments are sent in turn: the first of each, the second of each, …"""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a turn. reason: any text, or None for a turn without one.

    done: usage and the end mark (`[DONE]`) follow. False: nothing follows.
    with_text: the last piece of text, on the chunk that holds the reason.
    """

    reason: str | None
    done: bool = True
    with_text: str = ""


@dataclass(frozen=True, slots=True)
class ReportUsage:
    """The token counts of this turn, wherever in the turn the step stands. Without one they are counted: see docs."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    place: UsagePlace = UsagePlace.CHUNK


@dataclass(frozen=True, slots=True)
class Fail:
    """An error: with a status while the head has not left, else in the stream, which then ends without `[DONE]`."""

    message: str
    status: int = 500
    type: str = "server_error"
    code: str | None = None
    how: FailHow = FailHow.DATA
    headers: tuple[tuple[str, str], ...] = ()


Step = (
    Head
    | Send
    | SendRepeat
    | Wait
    | Gate
    | Repeat
    | Close
    | ExpectCancel
    | Say
    | Think
    | Call
    | Calls
    | Finish
    | ReportUsage
    | Fail
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What answers one completion request: steps, and what there is to know of them.

    raw:            it writes bytes of its own, which are sent whether a stream or JSON was asked for.
    calls:          it calls tools.
    unended:        it says, thinks or calls something and neither finishes, fails nor closes.
    usage:          the token counts it reports, or None.
    tokens:         what is counted where it reports none: a token for each piece of text or reasoning, for each call
                    and for each piece of its arguments.
    cancel_seconds: the client is to leave within so many seconds of its stop, before the script has run out.
    """

    steps: tuple[Step, ...]
    raw: bool = field(init=False)
    calls: bool = field(init=False)
    unended: bool = field(init=False)
    usage: ReportUsage | None = field(init=False)
    tokens: int = field(init=False)
    cancel_seconds: float | None = field(init=False)

    def __post_init__(self) -> None:
        flat = self.flat()

        def has(kinds: type | UnionType) -> bool:
            return any(isinstance(step, kinds) for step in flat)

        known: dict[str, object] = {
            "raw": has(Send | SendRepeat),
            "calls": has(Call | Calls),
            "unended": has(Say | Think | Call | Calls | ReportUsage) and not has(Finish | Fail | Close),
            "usage": next((step for step in flat if isinstance(step, ReportUsage)), None),
            "tokens": _tokens(self.steps),
            "cancel_seconds": min((step.seconds for step in flat if isinstance(step, ExpectCancel)), default=None),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)  # frozen from here on

    def flat(self) -> list[Step]:
        """Every step once, those inside repeats too."""
        found: list[Step] = []
        waiting = list(reversed(self.steps))
        while waiting:
            step = waiting.pop()
            found.append(step)
            if isinstance(step, Repeat):
                waiting.extend(reversed(step.steps))
        return found


def _tokens(steps: tuple[Step, ...]) -> int:
    count = 0
    for step in steps:
        match step:
            case Say() | Think():
                count += len(step.pieces)
            case Call():
                count += 1 + len(step.pieces)
            case Calls(calls):
                count += _tokens(calls)
            case Repeat(times, inner):
                count += times * _tokens(inner)
            case Finish(_, _, with_text):
                count += bool(with_text)
            case _:
                pass
    return count


@dataclass(frozen=True, slots=True)
class Script:
    """A named answer: its turns in order. The n-th tool round of an exchange gets turn n; the last one repeats."""

    name: str
    turns: tuple[Turn, ...]
    contains: tuple[str, ...] = ()
    pattern: Pattern | None = None
