"""What a recording is: by its content first, by its headers only where the content does not tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from motamot.errors import LimitExceeded
from motamot.findings.known import KNOWN
from motamot.model.events import json_values
from motamot.sse import Decoder, Event
from motamot.tape.tape import Tape

__all__ = ["PROTOCOLS", "Recognised", "Shape", "protocol_named", "recognise"]

_HEAD_BYTES = 1 << 20  # what is looked at: a first event of more says nothing that a smaller one would not
_HEAD_EVENTS = 50
_TAIL_BYTES = 4_096
_FIELDS = {"data", "event", "id", "retry", ""}


class Shape(StrEnum):
    """How a body is cut."""

    EVENTS = "events"  # an event stream
    LINES = "lines"  # a JSON value a line
    JSON = "json"  # one JSON document
    HTML = "html"
    TEXT = "text"
    EMPTY = "empty"


PROTOCOLS: dict[str, str] = {known.name: known.what for known in KNOWN.values()}
"""What can be recognised, and said: name, and what it is."""

_ALIASES = {alias: known.name for known in KNOWN.values() for alias in known.aliases}
_UI_MAYBE = {"start", "finish", "error", "abort"}  # only the header tells these from others' words
_JSON_BEGINS = re.compile(r'\s*(\{\s*["}]|\[\s*["{\[\]\d])')
_HTML = re.compile(r"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HTML_CHARS = 4_096  # where a page must have begun, behind comments


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What a recording is taken for.

    protocol: a name of `PROTOCOLS`; shape: how the body is cut.
    sure:     `given`, `certain` (nothing else looks so), `likely`, `guess`.
    why:      what it was known by, one clause.
    """

    protocol: str
    shape: Shape
    sure: str
    why: str


def protocol_named(name: str) -> str:
    """The protocol of that name, or of another name it goes by.

    Raises: ValueError for a name nothing goes by, with those there are.
    """
    known = _ALIASES.get(name, name)
    if known not in PROTOCOLS:
        raise ValueError(f"there is no protocol {name!r}: one of {', '.join(PROTOCOLS)}")
    return known


def recognise(tape: Tape, *, protocol: str | None = None) -> Recognised:
    """What `tape` holds.

    protocol: its name, where it is known (`protocol_named`); how the body is cut is still its content's to say.
    """
    head, whole = _head(tape)
    found = _by_content(tape, head, whole)
    if protocol is None:
        return found
    return Recognised(protocol=protocol_named(protocol), shape=found.shape, sure="given", why="you said so")


def _by_content(tape: Tape, head: bytes, whole: bool) -> Recognised:
    text = head.decode("utf-8-sig", "replace")
    kind = content_type(tape)
    if not text.strip():
        if kind == "text/event-stream":
            return _is("event-stream", Shape.EVENTS, "likely", "nothing came, and the content type is an event stream")
        return _is("empty", Shape.EMPTY, "certain", "the body is empty")
    events = _events(head)
    if events and _reads_as_events(text, kind):
        return _of_events(tape, events)
    if _is_page(text) or (kind == "text/html" and not events):
        return _is("html", Shape.HTML, "certain", "the body begins as an HTML page")
    if text.lstrip()[:1] in ("{", "["):
        found = _of_json(text, whole, kind)
        if found is not None:
            return found
    if _reads_as_events(text, kind) and (kind == "text/event-stream" or _begins_as_events(text)):
        return _of_events(tape, events or _events(head + b"\n\n"))
    return _is("text", Shape.TEXT, "certain" if kind.startswith("text/plain") else "guess", "no other form is in it")


def _is_page(text: str) -> bool:
    """Whether the body begins as an HTML page, comments aside."""
    text = text[:_HTML_CHARS].lstrip()
    while text.startswith("<!--"):
        text = text.partition("-->")[2].lstrip()
    return _HTML.match(text) is not None


def content_type(tape: Tape) -> str:
    """The response's content type, lower case, without its parameters; "" where none is known."""
    return (tape.header("content-type") or "").partition(";")[0].strip().lower()


def _is(protocol: str, shape: Shape, sure: str, why: str) -> Recognised:
    return Recognised(protocol=protocol, shape=shape, sure=sure, why=why)


def _head(tape: Tape) -> tuple[bytes, bool]:
    """The beginning of the body, and whether that is all of it."""
    head = bytearray()
    for piece in tape.pieces:
        head += piece.data[: _HEAD_BYTES - len(head)]
        if len(head) >= _HEAD_BYTES:
            break
    return bytes(head), len(head) == sum(len(piece.data) for piece in tape.pieces)


def _events(head: bytes) -> list[Event]:
    """The first events of the body, where it is read as an event stream."""
    decoder = Decoder(max_event_bytes=_HEAD_BYTES)
    events: list[Event] = []
    for at in range(0, len(head), 1 << 14):
        try:
            events += decoder.feed(head[at : at + (1 << 14)])
        except LimitExceeded:
            break
        if len(events) >= _HEAD_EVENTS:
            break
    return events[:_HEAD_EVENTS]


def _reads_as_events(text: str, kind: str) -> bool:
    """Whether the lines are those of an event stream: prose may hold a line that begins with `data:`, too."""
    lines = [line for line in text[: 1 << 16].replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip()]
    if not lines:
        return False
    fields = sum(line.partition(":")[0] in _FIELDS for line in lines)
    if fields * 2 >= len(lines):
        return True
    # A writer that breaks lines without escaping them leaves most of its lines without a field.
    return fields > 0 and (kind == "text/event-stream" or (not kind and _begins_as_events(text)))


def _begins_as_events(text: str) -> bool:
    return text.startswith(("data:", "event:", "id:", "retry:", ":"))


def _of_json(text: str, whole: bool, kind: str) -> Recognised | None:
    """JSON: lines of it, or one document; None for something that only begins like it."""
    lines = [line for line in text.split("\n") if line.strip()]
    firsts = [_object(line) for line in lines[: _HEAD_EVENTS if whole or len(lines) > 1 else 0]]
    ndjson = "ndjson" in kind or "jsonl" in kind or "json-seq" in kind
    good = sum(value is not None for value in firsts)
    if good and good * 2 >= len(firsts):  # the last may be cut
        for known in KNOWN.values():
            why = next((why for value in firsts if value is not None and (why := known.by_line(value))), None)
            if why is not None:
                return _is(known.name, Shape.LINES, "certain", why)
        if good > 1 or ndjson:
            return _is("json-lines", Shape.LINES, "likely", "each line is a JSON object")
    values, rest = json_values(text.strip()) if whole else ([], "")
    if values and not rest:
        why = "the body is one JSON document"
        if isinstance(values[0], dict) and str(values[0].get("object", "")).startswith("chat.completion"):
            why += ", an OpenAI chat completion"
        return _is("json", Shape.JSON, "certain", why)
    if kind.endswith("json") or (not whole and _JSON_BEGINS.match(text)):
        return _is("json", Shape.JSON, "likely", "the body begins as JSON")
    return None


def _object(text: str) -> dict[str, Any] | None:
    values, rest = json_values(text.strip())
    return values[0] if len(values) == 1 and not rest and isinstance(values[0], dict) else None


def _of_events(tape: Tape, events: list[Event]) -> Recognised:
    """An event stream: what its events hold."""
    told = [_object(event.data) if event.data.lstrip().startswith("{") else None for event in events]
    first = next((value for event, value in zip(events, told, strict=True) if event.data.strip()), None)
    for known in KNOWN.values():
        why = known.by_first(first) if first is not None else None
        if why is None and known.header is not None and tape.header(known.header) is not None:
            why = f"the header {known.header}"
        if why is not None:
            return _is(known.name, Shape.EVENTS, "certain", why)
    votes: dict[str, tuple[int, str]] = {}
    for event, value in zip(events, told, strict=True):
        for known in KNOWN.values():
            why = known.by_event(event, value)
            if why is not None:
                count, reason = votes.get(known.name, (0, why))
                votes[known.name] = (count + 1, reason)
    if votes:
        # The most frequent; of equals the one that was met first.
        name = max(votes, key=lambda name: votes[name][0])
        return _is(name, Shape.EVENTS, "certain", votes[name][1])
    return _of_text_events(tape, events, told)


def _of_text_events(tape: Tape, events: list[Event], told: list[dict[str, Any] | None]) -> Recognised:
    """No event says what it belongs to: text, an error alone, or something of its own."""
    error = next((value for value in told if value is not None and set(value) == {"error"}), None)
    if error is not None and all(value is not None for value in told):
        if isinstance(error["error"], dict):
            return _is("openai", Shape.EVENTS, "guess", "an error object as OpenAI's servers send it")
        return _is("ga-text", Shape.EVENTS, "guess", "an error text alone, as Guitar Alchemist's hosts send it")
    if _are_strings(events, told):
        return _is("json-strings", Shape.EVENTS, "likely", "the data of each event is a JSON string")
    jsons = sum(value is not None for value in told)
    kinds = {value.get("type") for value in told if value is not None}
    if kinds & _UI_MAYBE and jsons * 2 > len(events):
        return _is("ui-message", Shape.EVENTS, "guess", "parts of type start, finish, error or abort only")
    if {"text"} & kinds and jsons * 2 > len(events):
        return _is("motamot", Shape.EVENTS, "guess", "data of type text")
    if jsons * 2 <= sum(event.data.strip() != "[DONE]" for event in events):
        if error is not None:
            return _is("ga-text", Shape.EVENTS, "likely", "raw text, and an error object among it")
        if any(event.data.strip() == "[DONE]" for event in events) or b"[DONE]" in _tail(tape):
            return _is("ga-text", Shape.EVENTS, "likely", "raw text in the data, and `[DONE]`")
    return _is("event-stream", Shape.EVENTS, "certain", "events of a kind that is not known")


def _are_strings(events: list[Event], told: list[dict[str, Any] | None]) -> bool:
    """Whether the data of each event is a JSON string; objects, `[DONE]` and blank data aside."""
    datas = [event.data.strip() for event, value in zip(events, told, strict=True) if value is None]
    datas = [data for data in datas if data not in ("", "[DONE]")]
    return bool(datas) and all(_is_string(data) for data in datas)


def _is_string(data: str) -> bool:
    values, rest = json_values(data) if data.startswith('"') else ([], "")
    return len(values) == 1 and not rest and isinstance(values[0], str)


def _tail(tape: Tape) -> bytes:
    tail = b""
    for piece in reversed(tape.pieces):
        tail = piece.data[-_TAIL_BYTES:] + tail
        if len(tail) >= _TAIL_BYTES:
            break
    return tail[-_TAIL_BYTES:]
