"""What a model's interface is to the scripted model: how it is asked, and how the steps of a turn are rendered.

A dialect is one object with a path, a reader of requests, a writer of streams and a writer of whole answers. The
server knows nothing else about it: a further interface is a further entry in the server's table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from motamot.scripted import bounds
from motamot.scripted.records import dumped
from motamot.scripted.steps import (
    Call,
    Calls,
    Close,
    ExpectCancel,
    Fail,
    FailHow,
    Finish,
    Gate,
    Head,
    How,
    Repeat,
    ReportUsage,
    Say,
    Send,
    SendRepeat,
    Step,
    Think,
    Turn,
    Wait,
)

__all__ = [
    "Asked",
    "BadRequest",
    "Dialect",
    "Op",
    "StreamWriter",
    "Whole",
    "call_id",
    "objects",
    "odd_error",
    "paced",
    "play_stream",
    "play_whole",
    "rounds",
    "streamed",
    "text_of",
]

Op = bytes | Head | Wait | Gate | Close
"""What the server does next: write these bytes at once, set the head, wait, wait at a gate, or close."""


class BadRequest(Exception):
    """A request that the dialect refuses. param: the field it is about."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A completion request as a script sees it.

    question: text of the last user message. round: how many times tool results have followed it.
    prompt:   tokens of the request, counted as its words.
    """

    model: str
    stream: bool
    include_usage: bool
    question: str
    round: int
    prompt: int


@dataclass(slots=True)
class Whole:
    """An answer in one piece, gathered from the steps of a turn."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    reasoning_name: str = "reasoning_content"
    calls: list[Call] = field(default_factory=list)
    finish: Finish | None = None


class StreamWriter(Protocol):
    """Renders the steps of one streamed answer, in order."""

    def say(self, step: Say) -> Iterator[Op]: ...
    def think(self, step: Think) -> Iterator[Op]: ...
    def call(self, calls: tuple[Call, ...]) -> Iterator[Op]: ...
    def finish(self, step: Finish) -> Iterator[Op]: ...
    def fail(self, step: Fail) -> Iterator[Op]:
        """The error once bytes of the stream have left."""
        ...


class Dialect(Protocol):
    """One model interface."""

    name: str
    path: str  # below the base URL, with and without /v1

    def read(self, body: Any) -> Asked:
        """Raises BadRequest."""
        ...

    def writer(self, asked: Asked, turn: Turn, number: int) -> StreamWriter: ...
    def whole(self, answer: Whole, asked: Asked, turn: Turn, number: int) -> bytes: ...
    def error(self, message: str, *, kind: str, code: str | None = None, param: str | None = None) -> bytes: ...


def objects(body: Any, name: str) -> list[dict[str, Any]]:
    """The list of objects that a request holds under `name`. Raises: BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    given = body.get(name)
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise BadRequest(f"'{name}' must be a list of objects", name)
    if not given:
        raise BadRequest(f"'{name}' must hold at least one message", name)
    return given


def streamed(body: dict[str, Any]) -> bool:
    """Whether a stream is asked for. Raises: BadRequest."""
    stream = body.get("stream")
    if not isinstance(stream, bool | None):
        raise BadRequest("'stream' must be true, false or absent", "stream")
    return bool(stream)


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def rounds(results: list[bool]) -> int:
    """How often tool results stand together behind the question, if they come last. results: message by message."""
    if not results or not results[-1]:
        return 0
    return sum(1 for before, now in zip([False, *results], results, strict=False) if now and not before)


def call_id(call: Call, place: int, number: int) -> str:
    """The id of a call. place: how many calls of its turn came before it; number: of the request."""
    return call.id if call.id is not None else f"call_{number}_{place}"


def odd_error(how: FailHow, error: dict[str, Any], told: dict[str, Any]) -> bytes:
    """An error in a stream as no interface has it, and some servers send it.

    error: the interface's error object. told: the data in which `FailHow.STRING` has words in its place.
    """
    match how:
        case FailHow.STRING:
            return b"data: " + dumped(told) + b"\n\n"
        case FailHow.EVENT_BARE:
            return b"event: error\ndata: " + dumped(error) + b"\n\n"
        case FailHow.FIELD:
            return b"error: " + dumped(error) + b"\n\n"
        case _:
            raise ValueError(f"{how} is each interface's own")


def paced(pieces: Iterable[bytes], pace: float, slice_bytes: int = 0) -> Iterator[Op]:
    """Pieces with their pauses, each in one write or in slices."""
    for place, piece in enumerate(pieces):
        if place and pace:
            yield Wait(pace)
        if slice_bytes:
            for at in range(0, len(piece), slice_bytes):
                yield piece[at : at + slice_bytes]
        else:
            yield piece


def play_stream(turn: Turn, dialect: Dialect, asked: Asked, number: int) -> Iterator[Op]:
    """The ops of a streamed turn. The last one is a `Close`."""
    player = _Stream(dialect, dialect.writer(asked, turn, number))
    yield from player.steps(turn.steps)
    if turn.unended:
        yield from player.one(Finish("tool_calls" if turn.calls else "stop"))
    yield Close(How.CLEAN)


class _Stream:
    def __init__(self, dialect: Dialect, writer: StreamWriter) -> None:
        self._dialect = dialect
        self._writer = writer
        self._sent = False

    def steps(self, steps: tuple[Step, ...]) -> Iterator[Op]:
        for step in steps:
            for op in self.one(step):
                if not self._sent and isinstance(op, bytes):
                    self._sent = True
                yield op
                if isinstance(op, Close):
                    return

    def one(self, step: Step) -> Iterator[Op]:
        match step:
            case Send(data):
                yield data
            case SendRepeat():
                yield from _blocks(step)
            case Repeat(times, steps):
                for _ in range(times):
                    yield from self.steps(steps)
            case Head() | Wait() | Gate() | Close():
                yield step
            case Say():
                yield from self._writer.say(step)
            case Think():
                yield from self._writer.think(step)
            case Call():
                yield from self._writer.call((step,))
            case Calls(calls):
                yield from self._writer.call(calls)
            case Finish():
                yield from self._writer.finish(step)
            case Fail():
                yield from self._writer.fail(step) if self._sent else _refusal(step, self._dialect)
                yield Close(How.CLEAN)
            case ReportUsage() | ExpectCancel():
                pass


def _refusal(step: Fail, dialect: Dialect) -> Iterator[Op]:
    """An error with its status, while the head has not left."""
    body = dialect.error(step.message, kind=step.type, code=step.code)
    yield Head(step.status, (("content-type", "application/json"), ("content-length", str(len(body))), *step.headers))
    yield body


def _blocks(step: SendRepeat) -> Iterator[bytes]:
    per_block = max(1, bounds.BLOCK_BYTES // max(1, len(step.data)))
    block = step.data * min(per_block, step.times)
    for _ in range(step.times // per_block):
        yield block
    if rest := step.times % per_block:
        yield step.data * rest


def play_whole(turn: Turn, dialect: Dialect, asked: Asked, number: int) -> Iterator[Op]:
    """The ops of a turn asked for in one piece: its waits, then one JSON body. The last one is a `Close`."""
    answer = Whole()
    head: Head | None = None
    for step in _unrolled(turn.steps):
        match step:
            case Wait() | Gate():
                yield step
            case Head():
                head = step
            case Say(pieces, pace):
                yield from _passing(pieces, pace)
                answer.text += pieces
            case Think(pieces, pace, name):
                yield from _passing(pieces, pace)
                answer.reasoning += pieces
                answer.reasoning_name = name
            case Call():
                yield from _passing(step.pieces, step.pace)
                answer.calls.append(step)
            case Calls(calls):
                for call in calls:
                    yield from _passing(call.pieces, call.pace)
                answer.calls += calls
            case Finish(_, _, with_text):
                answer.text.append(with_text)
                answer.finish = step
            case Fail():
                yield from _refusal(step, dialect)
                yield Close(How.CLEAN)
                return
            case Close(How.CLEAN):
                break
            case Close():
                yield step
                return
            case _:
                pass
    if answer.finish is None:
        answer.finish = Finish("tool_calls" if answer.calls else "stop")
    body = dialect.whole(answer, asked, turn, number)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    yield Head(head.status if head else 200, headers + (head.headers if head else ()))
    yield body
    yield Close(How.CLEAN)


def _unrolled(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Repeat):
            for _ in range(step.times):
                yield from _unrolled(step.steps)
        else:
            yield step


def _passing(pieces: tuple[str, ...], pace: float) -> Iterator[Op]:
    if pace and len(pieces) > 1:
        yield Wait(pace * (len(pieces) - 1))
