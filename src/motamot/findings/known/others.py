"""Recordings of no protocol that is known: events, lines, a document, text, a page, nothing."""

from __future__ import annotations

import codecs
from typing import Any

from motamot.answer import SurrogateJoiner
from motamot.findings.known.base import Known
from motamot.findings.known.completion import Completion
from motamot.findings.known.gemini import Gemini, is_gemini
from motamot.findings.reading import DONE, Hear, Reading
from motamot.model.assembly import Kind
from motamot.model.events import json_values
from motamot.model.turn import Turn
from motamot.sse import Event

__all__ = ["EMPTY", "EVENT_STREAM", "HTML", "JSON", "JSON_LINES", "JSON_STRINGS", "TEXT"]

_JSON_BYTES = 16 << 20
_WHOLE_KEYS = ("text", "naturalLanguageAnswer", "answer", "content", "response", "output_text", "reply", "message")
_END_NAMES = frozenset({"done", "end", "finish", "finished", "complete", "completed"})
_END_FLAGS = ("done", "finished", "is_finished", "is_end")
_PIECE_KEYS = ("token", "delta", "text", "content", "chunk", "response", "answer", "output")


class _Ends:
    """The ends that protocols of one's own have: an event or a type of such a name, or a flag that comes to be true."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._flag = ""  # seen false: a true one must follow
        self._ended = False

    def named(self, name: str) -> None:
        """An event of that name came."""
        if name.lower() in _END_NAMES:
            self._end(name)

    def value(self, value: Any) -> None:
        """An event's JSON value."""
        if not isinstance(value, dict):
            return
        for key in ("type", "event"):
            if isinstance(value.get(key), str):
                self.named(value[key])
        for flag in _END_FLAGS:
            if value.get(flag) is True:
                self._end(flag)
            elif value.get(flag) is False:
                self._flag = flag

    def marked(self) -> None:
        """`[DONE]` came."""
        self._end(DONE)

    def _end(self, word: str) -> None:
        self._ended = True
        self._hear.ended(word)

    def close(self) -> None:
        """The body has ended: a flag that was false to the last promised an end that did not come."""
        if self._flag and not self._ended:
            self._hear.note(
                "missing-terminal-event", f"the stream ended without its end: `{self._flag}` was false to the last"
            )


class _Raw(Reading):
    """Events of no protocol that is known: their data is text as it stands, or an object with a piece of it."""

    wants_events = True

    def __init__(self, hear: Hear) -> None:
        super().__init__(hear)
        self._ends = _Ends(hear)

    def event(self, event: Event) -> None:
        if event.data == DONE:
            self._ends.marked()
            return
        self._ends.named(event.event)
        if event.data.startswith("{"):
            values, rest = json_values(event.data)
            if len(values) == 1 and not rest:
                self._ends.value(values[0])
                piece = _text_of(values[0], _PIECE_KEYS)
                if piece:
                    self.hear.text(piece)
                elif isinstance(values[0], dict) and values[0].get("error"):
                    self.hear.note("error-in-stream", "an error came among the data")
                return
        if event.data:
            self.hear.text(event.data)

    def close(self) -> None:
        self._ends.close()


class _Strings(_Raw):
    """Events whose data is a JSON string: a piece of the text."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(hear)
        self._joiner = SurrogateJoiner()

    def event(self, event: Event) -> None:
        values, rest = json_values(event.data) if event.data.startswith('"') else ([], "")
        if len(values) != 1 or rest or not isinstance(values[0], str):
            super().event(event)
            return
        self._ends.named(event.event)
        text = self._joiner.feed(values[0])
        if text:
            self.hear.text(text)

    def close(self) -> None:
        held = self._joiner.close()
        if held:
            self.hear.text(held)
        super().close()


class _Lines(Reading):
    """A JSON value a line, of no protocol that is known."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(hear)
        self._ends = _Ends(hear)

    def take(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace").strip()
        if line:
            values, rest = json_values(line)
            for value in values:
                self._ends.value(value)
                text = _text_of(value, _PIECE_KEYS)
                if text:
                    self.hear.text(text)
            if rest:
                self.hear.note("json-parse", "a line is not a JSON value")

    def close(self) -> None:
        self._ends.close()


class _Plain(Reading):
    """A body that is text and nothing else."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(hear)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    def take(self, raw: bytes) -> None:
        text = self._decoder.decode(raw)
        if text:
            self.hear.text(text)

    def close(self) -> None:
        text = self._decoder.decode(b"", True)
        if text:
            self.hear.text(text)


class _Document(Reading):
    """One JSON document: the whole answer, under one of the names it goes by."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(hear)
        self._body = bytearray()

    def take(self, raw: bytes) -> None:
        self._body += raw[: _JSON_BYTES - len(self._body)]

    def close(self) -> Turn | None:
        values, rest = json_values(self._body.decode("utf-8-sig", "replace").strip())
        if rest or not values:
            self.hear.note("json-parse", "the body is not whole JSON")
        value = values[0] if values else None
        if isinstance(value, dict) and (isinstance(value.get("choices"), list) or value.get("type") == "message"):
            kind = Kind.OPENAI_JSON if isinstance(value.get("choices"), list) else Kind.ANTHROPIC_MESSAGES
            upstream = Completion(self.hear, kind)
            upstream.take(bytes(self._body))
            return upstream.close()
        objects = value if isinstance(value, list) else [value]
        if any(is_gemini(one) for one in objects):
            gemini = Gemini(self.hear)
            for one in objects:
                if isinstance(one, dict):
                    gemini.read(one)
            gemini.close()
            self.usage = gemini.usage
        text = _text_of(value)
        if text:
            self.hear.text(text)
        if values and not rest:
            self.hear.ended("whole")
        return None


def _text_of(value: Any, keys: tuple[str, ...] = _WHOLE_KEYS) -> str:
    """The answer, or a piece of it, in JSON of an unknown kind: under the first of the usual names that holds text."""
    if isinstance(value, dict):
        for key in keys:
            if isinstance(value.get(key), str):
                return str(value[key])
    return value if isinstance(value, str) else ""


EVENT_STREAM = Known(
    name="event-stream", what="an event stream of a kind that is not known", aliases=("sse",), reading=_Raw, raw=True
)
JSON_STRINGS = Known(name="json-strings", what="an event stream whose data are JSON strings", reading=_Strings)
JSON_LINES = Known(name="json-lines", what="one JSON value a line", reading=_Lines)
JSON = Known(name="json", what="one JSON document", reading=_Document)
TEXT = Known(name="text", what="plain text", reading=_Plain)
HTML = Known(name="html", what="an HTML page", reading=Reading)
EMPTY = Known(name="empty", what="nothing", reading=Reading)
