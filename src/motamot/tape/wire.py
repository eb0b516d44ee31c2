"""A tape as people read it: its lines, and what a reader that follows the HTML standard makes of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from motamot.errors import LimitExceeded
from motamot.sse import Decoder, Event, Ignored, Residue
from motamot.tape import bounds
from motamot.tape.tape import Tape

__all__ = ["IgnoredLine", "Kinds", "Line", "Read", "Seen", "looks_like_event_stream", "read_as_standard", "wire_lines"]

_STEP = 1 << 20  # bytes read at once: a bound on what comes of them before it is counted
_FIELD = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*(?:(?:data|event|id|retry)(?::|[\r\n])|:)")
_LINE = re.compile(rb"(?!\Z)([^\r\n]*+)(\r\n|\r|\n|\Z)")
_decode = msgspec.json.Decoder().decode


class Line(NamedTuple):
    """A line of the wire.

    data:     without its line end; end: that, or "" for a last line without one.
    offset:   of its first byte in the body.
    at:       seconds from the request to the read that completed it, or None.
    new_read: no line before it was completed by that read.
    """

    data: bytes
    offset: int
    end: str
    at: float | None
    new_read: bool


class Seen(NamedTuple):
    """An event as the standard dispatches it.

    kind: in a word (`Kinds`); lines: of its data; at: seconds from the request to the read that completed it, or None.
    """

    event: Event
    kind: str
    lines: int
    at: float | None


class IgnoredLine(NamedTuple):
    """A line that the standard tells its readers to ignore. offset: of its first byte in the body."""

    kind: Ignored
    line: bytes
    offset: int


class Read(NamedTuple):
    """What the standard makes of a tape.

    ignored: the first `bounds.EVENTS` of them; ignored_count: how many there are.
    residue: what it discards at the end; problem: why it was not read on, a sentence, or "".
    """

    events: list[Seen]
    ignored: list[IgnoredLine]
    ignored_count: int
    residue: Residue
    problem: str


def wire_lines(tape: Tape) -> Iterator[Line]:
    """The lines of a tape's body, which end at CR, LF or CRLF."""
    reads = iter(tape.pieces)
    come, at = 0, None
    for found in _LINE.finditer(tape.body):
        data, end = found[1], found[2]
        offset = found.end()
        new_read = False
        while come < offset:
            piece = next(reads)
            come, at = come + len(piece.data), piece.at
            new_read = True
        yield Line(data, found.start(), end.decode(), at, new_read)


def looks_like_event_stream(tape: Tape) -> bool:
    """Whether its type says so or, where it names none, its first line is one of an event stream."""
    declared = tape.header("content-type")
    if declared is not None:
        return "event-stream" in declared.lower()
    return _FIELD.match(b"".join(piece.data for piece in tape.pieces[:100])[:1000]) is not None


def read_as_standard(tape: Tape) -> Read:
    """The events, what was ignored on the way, and what was discarded at the end."""
    watch = _Watch()
    decoder = Decoder(max_event_bytes=bounds.BODY_BYTES, observer=watch)
    kinds = Kinds()
    seen: list[Seen] = []
    residue, problem = Residue(), ""
    try:
        for at, found in _found(tape, decoder):
            seen += [Seen(event, kinds.of(event), event.data.count("\n") + 1, at) for event in found]
            if len(seen) > bounds.EVENTS:
                del seen[bounds.EVENTS :]
                problem = f"it has more than {bounds.EVENTS:,} events"
                break
        else:
            residue = decoder.close()
    except LimitExceeded as error:
        problem = error.message
    return Read(seen, watch.lines, watch.count, residue, problem)


def _found(tape: Tape, decoder: Decoder) -> Iterator[tuple[float | None, list[Event]]]:
    for at, data in tape.pieces:
        for start in range(0, len(data), _STEP):
            yield at, decoder.feed(data[start : start + _STEP])


class _Watch:
    def __init__(self) -> None:
        self.lines: list[IgnoredLine] = []
        self.count = 0

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        self.count += 1
        if self.count <= bounds.EVENTS:
            self.lines.append(IgnoredLine(kind, line, offset))


class Kinds:
    """Says in a word what each event of a stream is: `routing`, `text`, `[DONE]`, `error`, or its type's name.

    After a routing event the stream is text, whatever a piece of it looks like (facts of `ga-text`): only an object
    with nothing but `error` is one.
    """

    def __init__(self) -> None:
        self._first = True
        self._plain_text = False

    def of(self, event: Event) -> str:
        """The kind of the next event."""
        first, self._first = self._first, False
        data = event.data
        if data == "[DONE]":
            return "[DONE]"
        told = _object(data)
        if told is None:
            return "text" if event.event == "message" else event.event
        if first and told.get("type") == "routing":
            self._plain_text = True
        elif self._plain_text:
            return "error" if list(told) == ["error"] else "text"
        kind = _kind(told)
        return kind if event.event in ("message", kind) or kind == "error" else event.event

    def of_json(self, line: bytes) -> str:
        """The kind of a line that is a JSON object, as of `application/x-ndjson`; `text` for any other line."""
        told = _object(line.decode("utf-8", "replace"))
        return "text" if told is None else _kind(told)


def _object(data: str) -> dict[str, Any] | None:
    if not data.startswith("{"):
        return None
    try:
        told = _decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None
    return told if isinstance(told, dict) else None


def _kind(told: dict[str, Any]) -> str:
    if told.get("error"):
        return "error"
    if isinstance(told.get("type"), str):
        return str(told["type"])[:60]
    if isinstance(told.get("choices"), list):
        return _chunk_kind(told)
    if "morceau" in told:
        return "text"
    if "done" in told and ("message" in told or "response" in told):  # Ollama
        return "done" if told["done"] is True else "text"
    return "json"


def _chunk_kind(told: dict[str, Any]) -> str:
    """Of a chat completion chunk: what it brings, and why it ends."""
    choice = next((choice for choice in told["choices"] if isinstance(choice, dict)), None)
    if choice is None:
        return "usage" if told.get("usage") else "chunk"
    delta = choice.get("delta") or choice.get("message")
    delta = delta if isinstance(delta, dict) else {}
    words = []
    if delta.get("content"):
        words.append("text")
    if delta.get("reasoning_content") or delta.get("reasoning"):
        words.append("reasoning")
    if delta.get("tool_calls"):
        words.append("tool call")
    if isinstance(reason := choice.get("finish_reason"), str) and reason:
        words.append(f"end: {reason[:20]}")
    if told.get("usage"):
        words.append("usage")
    return ", ".join(words) or ("role" if "role" in delta else "chunk")
