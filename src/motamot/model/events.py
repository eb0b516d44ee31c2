"""What completions that come as an event stream have in common, whatever their events hold."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Any

from motamot.answer import AnswerEvent
from motamot.errors import LimitExceeded, UpstreamError
from motamot.limits import Limits
from motamot.model.base import Assembly, Dialect
from motamot.model.words import DETAIL_CHARS, detail_of
from motamot.sse import Decoder, Event, Ignored

__all__ = ["EventStreamAssembly", "json_values", "shown"]

_FIELDS = {"", "data", "event", "id", "retry"}  # "": a comment
_PINGS = {"ping", "keep-alive", "keepalive", "heartbeat"}  # comments sent as data
_DONE = "[DONE]"
_CHUNK = "chat.completion.chunk"
_DIGITS_MAX = 400
_VALUES_MAX = 100  # JSON texts run into one event


class EventStreamAssembly(Assembly):
    """A completion in an event stream, or in one JSON reply where the server does not stream. The body tells which."""

    __slots__ = ("_decoder", "_error_field", "_head", "_heard")

    def __init__(self, *, dialect: Dialect | None = None, limits: Limits | None = None) -> None:
        super().__init__(dialect=dialect, limits=limits)
        self._decoder = Decoder(max_event_bytes=self._limits.event_bytes, observer=_Listener(self))
        self._head: bytearray | None = bytearray()  # the body, as long as no event has come
        self._error_field = ""
        self._heard = ""  # the first line that no event stream has

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Take the next bytes of the body; see `Assembly.feed`."""
        out: list[AnswerEvent] = []
        for event in self._events(chunk):
            if self._done:
                break
            self._event(event, out)
        self._check_limit()
        return out

    @abstractmethod
    def _value(self, value: Any, out: list[AnswerEvent]) -> None:
        """The JSON value in an event's data, or a whole JSON reply."""

    def _skips(self, event: Event, value: Any) -> bool:
        """Whether an event of this name is none of ours."""
        del event, value
        return False

    # The body.

    def _events(self, chunk: bytes) -> list[Event]:
        if self._closed:
            return []
        if self._head is not None:
            self._begin(chunk)
        try:
            events = self._decoder.feed(chunk)
        except LimitExceeded:
            if not self._done:
                self._fail_event_limit()
            return []
        if events:
            self._head = None
        return events

    def _check_limit(self) -> None:
        """The decoder gives the events before one that is too long, and raises only when it is called again."""
        if not (self._done or self._closed):
            self._events(b"")

    def _begin(self, chunk: bytes) -> None:
        """Keep the body's beginning until the first event: it may be a JSON reply, or a page."""
        self._started = self._started or bool(chunk)
        head = self._head
        assert head is not None
        room = self._limits.event_bytes + 1 - len(head)
        head += chunk[: max(room, 0)]

    def _end_body(self, out: list[AnswerEvent]) -> None:
        if self._done:
            return
        try:
            residue = self._decoder.close()
        except LimitExceeded:
            self._fail_event_limit()
            return
        if self._head is not None:
            self._end_without_events(bytes(self._head), out)
            self._head = None
        elif residue:  # frame-done-without-blank-line; the standard discards it, and so do we
            self._note("unterminated-last-event", "the stream ended inside an event")

    def _end_without_events(self, head: bytes, out: list[AnswerEvent]) -> None:
        """The body had no event in it: a JSON reply, an error in JSON (error-200-with-json-body), a page, nothing."""
        text = head.decode("utf-8-sig", "replace").strip()
        if text.startswith(("{", "[")) and len(head) > self._limits.event_bytes:
            self._fail_event_limit()
            return
        values, rest = json_values(text) if text.startswith(("{", "[")) else ([], text)
        if values and not rest:
            self._note("not-an-event-stream", "a stream was asked for, and JSON came")
            for value in values:
                if not self._done:
                    self._value(value, out)
            if self._error is None and self._finish is None and not self.deltas:
                self._fail("The model's server answered something else.", detail=detail_of(values[0]))
            first = values[0]  # a reply that is whole has an end; a chunk that lost its framing has none
            self._end_mark = len(values) == 1 and not (isinstance(first, dict) and first.get("object") == _CHUNK)
            return
        if self._error_field:
            return
        if text.startswith(("{", "[")):  # JSON that was cut
            self._note("json-parse", "the reply is not whole JSON")
            self._clue = self._clue or shown(text)
        elif not _is_cut_event_stream(text):
            self._fail("The model's server answered something else.", detail=shown(text))
        elif text:
            self._note("unterminated-last-event", "the stream ended inside an event")

    def _hear(self, kind: Ignored, line: bytes) -> None:
        """The event-stream standard ignores this line; it may tell why the stream ends early."""
        if kind is Ignored.UNKNOWN_FIELD and line.startswith(b"error:"):  # error-as-sse-field
            self._note("error-field", "an error came under the field name error")
            self._error_field = self._error_field or line[len(b"error:") :].decode("utf-8", "replace").strip()
        elif kind in (Ignored.UNKNOWN_FIELD, Ignored.NO_COLON):
            self._heard = self._heard or shown(line.decode("utf-8", "replace"))

    def _clue_of_end(self) -> str:
        return self._clue or self._heard

    def _explained(self) -> UpstreamError | None:
        if not self._error_field:
            return None
        return UpstreamError("The model's server reported an error.", detail=detail_of(self._error_field))

    # One event.

    def _event(self, event: Event, out: list[AnswerEvent]) -> None:
        """Any event, the tolerant way."""
        if event.event == "error":
            self._note("error-in-stream", "an event named error came")
            self._fail("The model's server reported an error.", detail=detail_of(event.data))
            return
        data = event.data.strip()
        if data == _DONE:
            self._end()
            return
        if data.startswith(":") or data.lower() in _PINGS:
            self._note("comment-as-data", f"a keep-alive came as data: {data[:40]!r}")
            return
        values, rest = json_values(data)
        if len(values) + bool(rest) > 1:  # frame-no-blank-line-between
            self._note("missing-blank-line", "two events ran into one")
        for value in values:
            if self._done:
                return
            if not self._skips(event, value):
                self._value(value, out)
        if self._done or (rest and self._skips(event, rest)):
            return
        if rest == _DONE:
            self._end()
        elif rest:
            self._note("json-parse", "the data of an event is not JSON")
            self._fail("The model's server sent something that is no answer.", detail=shown(rest))

    def _end(self) -> None:
        self._end_mark = True
        self._done = True


class _Listener:
    """Is told what the event-stream standard ignores."""

    def __init__(self, assembly: EventStreamAssembly) -> None:
        self._assembly = assembly

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        del offset
        self._assembly._hear(kind, line)


def _is_cut_event_stream(text: str) -> bool:
    """Whether all of `text` is lines of an event stream, the last one perhaps cut."""
    *whole, last = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not all(not line or line.partition(":")[0] in _FIELDS for line in whole):
        return False
    name, colon, _ = last.partition(":")
    return name in _FIELDS if colon else any(field.startswith(name) for field in _FIELDS)


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) < _DIGITS_MAX else float(digits)  # Python refuses 4,300 digits with an error


_TOLERANT = json.JSONDecoder(strict=False, parse_int=_whole_number)


def json_values(text: str) -> tuple[list[Any], str]:
    """The JSON values that stand one after the other in `text`, and what is left that is none.

    Bare control characters inside strings are taken as text, numbers of any length as numbers.
    """
    values: list[Any] = []
    at = 0
    while at < len(text) and len(values) < _VALUES_MAX:
        try:
            value, at = _TOLERANT.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
    return values, text[at:]


def shown(text: str) -> str:
    return detail_of(text[:DETAIL_CHARS])
