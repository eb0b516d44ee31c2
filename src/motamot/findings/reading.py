"""How the text of an answer is got out of what a tape holds: what a reading is, and how it reads JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from motamot.answer import SurrogateJoiner, Usage
from motamot.model.events import json_values
from motamot.model.turn import Turn
from motamot.sse import Event

__all__ = ["DONE", "TEXT_BYTES", "Hear", "JsonReading", "Reading", "look_strictly", "reported", "values_of"]

TEXT_BYTES = 16 << 20
"""How much of the answer's text is kept, four times what motamot lets an answer grow to."""

DONE = "[DONE]"
_TOKENS_MOST = 1 << 53
_PINGS = {"ping", "keep-alive", "keepalive", "heartbeat"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hear:
    """What a reading tells: texts, other deltas, JSON values, what it finds wrong (fault, sentence), the end's word."""

    text: Callable[[str], None]
    delta: Callable[[], None]
    value: Callable[[Any], None]
    note: Callable[[str, str], None]
    ended: Callable[[str], None]


class Reading:
    """Reads one tape; nothing of it raises, whatever comes.

    wants_events: it is given each event, too, beside the bytes.
    usage:        the tokens that were reported, where that is read and `close` gives no completion.
    """

    wants_events = False
    usage: Usage | None = None

    def __init__(self, hear: Hear) -> None:
        self.hear = hear

    def take(self, raw: bytes) -> None:
        """The next bytes: a block of an event stream (of a long one, a part), a line, or else a read.

        Blank lines and comments between blocks may have been left out.
        """

    def event(self, event: Event) -> None:
        """The next event."""

    def close(self) -> Turn | None:
        """The body has ended. Gives the completion, where there is one."""
        return None


class JsonReading(Reading):
    """Events, each of one JSON object. A protocol says which of them are text, other deltas, and the end."""

    wants_events = True

    def __init__(self, hear: Hear) -> None:
        super().__init__(hear)
        self._joiner = SurrogateJoiner()

    def text_of(self, value: dict[str, Any]) -> str | None:
        """The text that an event adds to the answer, or None."""
        raise NotImplementedError

    def is_delta(self, value: dict[str, Any]) -> bool:
        """Whether it adds something else: reasoning, a piece of a tool call."""
        raise NotImplementedError

    def end_of(self, value: dict[str, Any]) -> str | None:
        """The word of the answer's end, or None."""
        raise NotImplementedError

    def event(self, event: Event) -> None:
        if event.data.strip() == DONE:
            return
        for value in values_of(event, self.hear):
            if isinstance(value, dict):
                self.read(value)

    def read(self, value: dict[str, Any]) -> None:
        """The object of one event."""
        text = self.text_of(value)
        if text is not None:
            text = self._joiner.feed(text)
            if text:
                self.hear.text(text)
        elif self.is_delta(value):
            self.hear.delta()
        end = self.end_of(value)
        if end is not None:
            self.hear.ended(end)

    def close(self) -> None:
        held = self._joiner.close()
        if held:
            self.hear.text(held)


def values_of(event: Event, hear: Hear) -> list[Any]:
    """The JSON values of one event; what is off is told."""
    data = event.data.strip()
    if not data:
        hear.note("comment-as-data", "an empty event came, a keep-alive most likely")
    if data.startswith(":") or data.lower() in _PINGS:
        hear.note("comment-as-data", f"a keep-alive came as data: {data[:40]!r}")
        return []
    values, rest = json_values(data)
    if len(values) + bool(rest) > 1:
        hear.note("missing-blank-line", "two events ran into one")
    if rest and not (values and rest.strip() == DONE):
        hear.note("json-parse", "the data of an event is not JSON")
    if "\t" in data or "NaN" in data or "Infinity" in data:
        look_strictly(data.encode("utf-8", "surrogatepass"), hear)
    for value in values:
        hear.value(value)
    return values


def reported(count: Any) -> int:
    """A count of tokens as it was reported; 0 for what is none."""
    return count if type(count) is int and 0 <= count <= _TOKENS_MOST else 0


def look_strictly(raw: bytes, hear: Hear) -> None:
    """Name JSON that the tolerant parsers of some take and the others refuse: NaN, a bare control character."""
    data = b"\n".join(line[5:] for line in raw.splitlines() if line.startswith(b"data:")) or raw
    try:
        json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        values, rest = json_values(data.decode("utf-8", "replace").strip())
        if values and not rest:
            hear.note("json-parse", "the data is JSON to tolerant parsers only: NaN, or a bare control character")


def _refuse(name: str) -> None:
    raise ValueError(name)
