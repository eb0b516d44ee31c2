"""Ends: missing, of another protocol, or in the text; and errors that are read as text."""

from __future__ import annotations

import json
from typing import Any

from motamot.findings.faults.clauses import AG_UI, GEMINI, OPENAI, RESPONSES, SSE_PROCESS, UI_MESSAGE
from motamot.findings.finder import Finder, Rule, Scene, quoted
from motamot.findings.finding import Evidence, Fault, Level, Promise
from motamot.findings.known import KNOWN, RAW
from motamot.findings.recognise import Shape
from motamot.sse import Event

__all__ = ["DONE_IN_TEXT", "EMPTY_STREAM", "ERROR_AS_TEXT", "FOREIGN_END_MARK", "MISSING_TERMINAL_EVENT"]

_DONE = "[DONE]"
_ERROR = '{"error"'
_TAIL_CHARS = 4_000


class _MissingTerminalEvent(Finder):
    protocols = frozenset(known.name for known in KNOWN.values() if known.end)

    def at_end(self) -> None:
        scene = self.scene
        if scene.shape is Shape.EVENTS and scene.ended is None and not scene.left and scene.over is None:
            self.saw(f"The stream ended without {KNOWN[scene.protocol].end}.")


MISSING_TERMINAL_EVENT = Rule(
    Fault(
        id="missing-terminal-event",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the stream ends without the protocol's end",
        clause=f"{UI_MESSAGE}: `finish`; {AG_UI}: `RUN_FINISHED`; {RESPONSES}: `response.completed`; "
        f"{GEMINI}: `finishReason`; "
        f"{SSE_PROCESS}: an EventSource whose stream just ends connects again",
        remedy="Send the end in every case: done, cut, stopped and failed, also out of an exception handler.",
        harm="Clients take a cut answer for a whole one; a browser's EventSource asks, and pays, again.",
    ),
    _MissingTerminalEvent,
)


class _EmptyStream(Finder):
    """No event at all, comments aside. What a body that is no event stream lacks is not named here."""

    def at_end(self) -> None:
        scene = self.scene
        if scene.shape is not Shape.EVENTS or scene.events or scene.left or scene.over is not None:
            return
        if scene.tape.status in (None, 200) and "unterminated-last-event" not in scene.sightings:
            self.saw("The stream ended without a single event.")


EMPTY_STREAM = Rule(
    Fault(
        id="empty-stream",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="an event stream without an event",
        clause=f"{SSE_PROCESS}: a stream that ends is connected to again; status 204 says that there is nothing",
        remedy="Send the end of the answer in every case; where nothing is to be sent, answer with 204 or an error.",
        harm="Clients show an empty answer, and take it for a complete one; a browser asks again and again.",
    ),
    _EmptyStream,
)


class _DoneInText(Finder):
    """The marker as the last of the text, or text after the marker. In the middle of the text it is the model's."""

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._over = False

    def on_event(self, event: Event) -> None:
        if self._over and event.data.strip() not in ("", _DONE):
            self.saw("More text comes after `[DONE]`, where every client has stopped.")
        elif event.data == _DONE:
            self._over = True

    def at_end(self) -> None:
        if _last_words(self.scene).rstrip().endswith(_DONE) and "missing-blank-line" not in self.scene.sightings:
            self.saw("The text of the answer ends with `[DONE]`.")


DONE_IN_TEXT = Rule(
    Fault(
        id="done-in-text",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="`[DONE]` in the text, or text after it",
        clause=f"{OPENAI}: the marker is an event whose whole data is `[DONE]`",
        remedy="Send the marker as an event of its own, last, and no marker of the model's stream as text; in raw "
        "text, cut `[DONE]` in two where the model wrote it.",
        harm="Visitors read «[DONE]», or the answer stops at words of its own.",
    ),
    _DoneInText,
)


class _ForeignEndMark(Finder):
    protocols = frozenset({"ag-ui"})

    def on_event(self, event: Event) -> None:
        if event.data.strip() == _DONE:
            self.saw("`[DONE]` came, which AG-UI does not have.")


FOREIGN_END_MARK = Rule(
    Fault(
        id="foreign-end-mark",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="an end marker of another protocol",
        clause=f"{AG_UI}: every event is JSON, and the last one is `RUN_FINISHED`",
        remedy="Leave `[DONE]` out.",
        harm="@ag-ui/client rejects the whole run with a JSON error, after the answer has come.",
    ),
    _ForeignEndMark,
)


class _ErrorAsText(Finder):
    """An error object where text is raw, with nothing after it; or as the last words of the text itself.

    Followed by more, or by `[DONE]`, it is an answer that shows such an object.
    """

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._raw = scene.protocol in RAW
        self._pending: Evidence | None = None

    def on_event(self, event: Event) -> None:
        self._pending = None
        if self._raw and event.data.lstrip().startswith(_ERROR) and _is_error(event.data):
            self._pending = self.scene.here()

    def at_end(self) -> None:
        scene = self.scene
        if self._pending is not None:
            self.saw("An error came as data that readers of raw text take for text.", self._pending)
            return
        tail = _last_words(scene)
        at = tail.rfind(_ERROR)
        marked = scene.protocol in RAW and scene.ended is not None
        if at >= 0 and not marked and _is_error(tail[at:]):
            place = Evidence(offset=None, at=scene.at, quote=quoted(tail[at:].encode("utf-8", "replace")))
            self.saw("The text of the answer ends with an error object.", place)


def _last_words(scene: Scene) -> str:
    """The last piece of the answer, or the end of a text that has no pieces but its reads."""
    return (scene.text if scene.shape is Shape.TEXT else scene.last_text)[-_TAIL_CHARS:]


def _is_error(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(value) == {"error"}


ERROR_AS_TEXT = Rule(
    Fault(
        id="error-as-text",
        promise=Promise.SAFE,
        level=Level.MUST,
        title="an error that clients show as the answer",
        clause="an error is no answer, and what a client cannot tell from one is: "
        "[GuitarAlchemist/ga #760](https://github.com/GuitarAlchemist/ga/issues/760)",
        remedy="Give errors an event of their own that cannot be taken for text: an event name, or JSON all through.",
        harm='Visitors read `{"error":"…"}` as the answer, and the model reads it in the next request.',
    ),
    _ErrorAsText,
)
