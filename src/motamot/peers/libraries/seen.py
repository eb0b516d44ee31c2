"""What a client library hands to its user, and the answer that its user makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from motamot.peers.base import Got, Step
from motamot.peers.javascript import joined

__all__ = ["Seen", "SeenEvent", "answer", "reading"]

_DONE = "[DONE]"  # what OpenAI, and every protocol made after it, sends in place of a last event
_ERRORS = ("error", "RUN_ERROR")


class SeenEvent(NamedTuple):
    """One event as a library hands it over.

    data:  its text; of a library that parses JSON itself, the value it hands over, as JSON again.
    event: its type; "message" where the library gives none.
    id:    the id it gives, or None where it gives none.
    at:    the number of the read (from 0) that completed it; the number of reads at the end of the body.
    """

    data: str
    event: str = "message"
    id: str | None = None
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a library makes of a stream. threw: the name and message of what it threw, or None."""

    events: tuple[SeenEvent, ...] = ()
    threw: str | None = None


def answer(seen: Seen, *, values: bool = False) -> Got:
    """The answer that a user of the library has: the texts of its events, joined, up to `[DONE]`.

    values: the library parses JSON itself; what it gives are values, and the text is taken from where the protocols
            have it. Otherwise the data is the text, whatever it looks like: an event-stream reader knows no more.

    A routing event (`{"type":"routing",…}`) that comes first is none of the text. Complete is an answer that `[DONE]`
    ended; a library that parses JSON keeps that mark to itself, and is believed when it throws nothing.
    """
    steps: list[Step] = []
    for event in seen.events:
        kind, text = _kind(event.data, values=values, first=not steps)
        steps.append(Step(kind, text, event.at))
        if kind in ("done", "error"):
            break
    ends = [step.kind for step in steps[-1:]]
    complete = seen.threw is None and (ends == ["done"] or (values and ends != ["error"]))
    text = joined("".join(step.text for step in steps if step.kind == "text"))
    return Got(text=text, steps=tuple(steps), threw=seen.threw, complete=complete)


def reading(read: Callable[[Iterable[bytes]], Seen], *, values: bool = False) -> Callable[[Iterable[bytes]], Got]:
    """Make the `read` of a `PeerReader` from a library's."""
    return lambda reads: answer(read(reads), values=values)


def _kind(data: str, *, values: bool, first: bool) -> tuple[str, str]:
    """What an event is to the answer, and its content."""
    if data == _DONE:
        return "done", data
    if first and data.startswith('{"type":"routing"'):
        return "routing", data
    if not values:
        return "text", data
    value = _parsed(data)
    if isinstance(value, dict) and (value.get("error") or value.get("type") in _ERRORS):
        return "error", data
    text = _text(value)
    return ("other", data) if text is None else ("text", text)


def _parsed(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str | None:
    """The piece of answer text in an event's JSON, or None: where OpenAI, Anthropic, AG-UI, the UI message stream and
    motamot's own protocols have it."""
    match value:
        case str() as text:
            return text
        case {"choices": [{"delta": {"content": str() as text}}, *_]}:
            return text
        case {"type": "content_block_delta", "delta": {"text": str() as text}}:
            return text
        case {"type": "TEXT_MESSAGE_CONTENT" | "text-delta", "delta": str() as text}:
            return text
        case {"text": str() as text} | {"morceau": str() as text}:
            return text
    return None
