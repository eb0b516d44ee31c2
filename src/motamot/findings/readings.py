"""How the text of an answer is got out of each protocol, with what its own reader finds wrong.

Upstream dialects go through the assembly that serves them (`motamot.model`), motamot's own protocols through their
readers; the others are read here, from their JSON.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from motamot.answer import AnswerEvent, Ended, Reasoning, SurrogateJoiner, Text, ToolCalled
from motamot.findings.finder import TEXT_BYTES, Scene
from motamot.findings.recognise import Shape
from motamot.findings.wire import EVENT_BYTES
from motamot.limits import Limits
from motamot.model.assembly import Kind, assembly_for
from motamot.model.base import Assembly
from motamot.model.events import json_values
from motamot.model.turn import Turn
from motamot.protocols.base import Reader
from motamot.protocols.ga_text import PROTOCOL as GA_TEXT
from motamot.protocols.morceaux import PROTOCOL as MORCEAUX
from motamot.protocols.native import PROTOCOL as NATIVE
from motamot.sse import Event

__all__ = ["Hear", "Reading", "reading_for"]

_LIMITS = Limits(event_bytes=EVENT_BYTES, answer_bytes=TEXT_BYTES, answer_events=10_000_000, tool_calls_per_turn=1_000)
_PINGS = {"ping", "keep-alive", "keepalive", "heartbeat"}
_DONE = "[DONE]"
_JSON_BYTES = 16 << 20
_EMPTY_EVENT_BYTES = 12
_TAB = 9
_USAGE = re.compile(rb'"(?:usage|usageMetadata|usage_metadata|token_usage)"\s*:\s*\{')
_USAGE_KEYS = ("usage", "usageMetadata", "usage_metadata", "token_usage")
_USAGE_DEPTH = 4
_LINE_BYTES = EVENT_BYTES
_WHOLE_KEYS = ("text", "naturalLanguageAnswer", "answer", "content", "response", "output_text", "reply", "message")
_PIECE_KEYS = ("token", "delta", "text", "content", "chunk", "response", "answer", "output")
_MINE = frozenset({"unterminated-last-event", "not-an-event-stream", "error-field", "cumulative-deltas"})
"""What an assembly names, too, and finders here name for every protocol."""
_BROKEN = frozenset({"error-in-stream", "json-parse"})
_WITH_TURN = "repeated-full-text"  # named at the end by comparing texts: likewise; met in the stream, it is told


class Hear:
    """What a reading tells: texts, other deltas, JSON values, and what it finds wrong."""

    def __init__(
        self,
        *,
        text: Callable[[str], None],
        delta: Callable[[], None],
        value: Callable[[Any], None],
        note: Callable[[str, str], None],
        ended: Callable[[str], None],
    ) -> None:
        self.text, self.delta, self.value, self.note, self.ended = text, delta, value, note, ended


class Reading:
    """Reads one tape. wants_events: it is given events, else the bytes of whole blocks, parts of them, lines."""

    wants_events = False

    def __init__(self, hear: Hear) -> None:
        self.hear = hear

    def take(self, raw: bytes) -> None:
        """The next bytes of the body; blank lines and comments between blocks may have been left out."""

    def event(self, event: Event) -> None:
        """The next event."""

    def close(self) -> Turn | None:
        """The body has ended. Gives the completion, where there is one."""
        return None


class _Upstream(Reading):
    """A completion, as `motamot.model` puts it together; beside it, what that copes with and does not tell."""

    def __init__(self, hear: Hear, kind: Kind) -> None:
        super().__init__(hear)
        self._assembly: Assembly = assembly_for(kind, limits=_LIMITS)
        self._assembly.watch(self._note)
        # Lines have no blank line to end them: what is left of one is the assembly's to name.
        self._others = _MINE - {"unterminated-last-event"} if kind is Kind.OLLAMA_NDJSON else _MINE
        self._openai = kind is Kind.OPENAI_CHAT
        self._usage_elsewhere = False
        self._deltas = 0

    def _note(self, kind: str, sentence: str) -> None:
        if kind not in self._others and not (kind == "usage-missing" and self._usage_elsewhere):
            self.hear.note(kind, sentence)

    def take(self, raw: bytes) -> None:
        if len(raw) <= _EMPTY_EVENT_BYTES and raw.strip() == b"data:":
            self.hear.note("comment-as-data", "an empty event came, a keep-alive most likely")
        if _TAB in raw or b"NaN" in raw or b"Infinity" in raw:
            _look_strictly(raw, self.hear)
        if self._openai and b'"usage' in raw and _USAGE.search(raw):
            self._look_for_usage(raw)
        if self._openai and self._assembly.done:
            self._look_behind_the_end(raw)
        self._tell(self._assembly.feed(raw))

    def _look_behind_the_end(self, raw: bytes) -> None:
        """Events behind `[DONE]`; behind an error nothing is expected, and nothing read."""
        if raw.startswith(b"data:") and b"[DONE]" not in raw and not self._assembly.noted & _BROKEN:
            self.hear.note("done-in-text", "more data comes after `[DONE]`, where every client has stopped")

    def _look_for_usage(self, raw: bytes) -> None:
        """Places that the assembly does not look at, and a chunk that brings usage and no `choices`."""
        values, rest = json_values(raw.partition(b"data:")[2].decode("utf-8", "replace").strip())
        chunk = values[0] if len(values) == 1 and not rest else None
        if not isinstance(chunk, dict):
            return
        if not isinstance(chunk.get("choices"), list) and not chunk.get("error"):
            self.hear.note("choices-missing", "a chunk has no choices")
        place = _usage_place(chunk)
        if place is not None:
            self._usage_elsewhere = True
            self.hear.note("usage-nonstandard-place", f"usage came in {place[:60]}")

    def _tell(self, answers: Iterable[AnswerEvent]) -> None:
        texts = 0
        for answer in answers:
            if isinstance(answer, Text):
                texts += 1
                self.hear.text(answer.text)
        deltas = self._assembly.deltas
        for _ in range(deltas - self._deltas - texts):  # reasoning, and fragments of tool calls
            self.hear.delta()
        self._deltas = deltas

    def close(self) -> Turn:
        self._tell(self._assembly.close())
        told = set(self._assembly.noted)
        turn = self._assembly.turn()
        for deviation in turn.deviations:
            if deviation.kind not in told and deviation.kind != _WITH_TURN:
                self._note(deviation.kind, deviation.note)
        if self._assembly.finished or self._assembly.done:
            self.hear.ended(turn.finish)
        return turn


class _Ours(Reading):
    """One of motamot's own protocols, by its reader; the JSON of its events is looked at beside it."""

    wants_events = True

    def __init__(self, hear: Hear, reader: Reader, *, json: bool) -> None:
        super().__init__(hear)
        self._reader = reader
        self._json = json

    def take(self, raw: bytes) -> None:
        self._tell(self._reader.feed(raw))

    def event(self, event: Event) -> None:
        if not self._json:
            if not event.data.startswith("{"):
                return
            values, rest = json_values(event.data)
            if len(values) == 1 and not rest:
                self.hear.value(values[0])
        elif event.event in ("message", "erreur", "marques"):
            _values(event, self.hear)

    def _tell(self, answers: Iterable[AnswerEvent]) -> None:
        for answer in answers:
            if isinstance(answer, Text):
                self.hear.text(answer.text)
            elif isinstance(answer, Reasoning | ToolCalled):
                self.hear.delta()
            elif isinstance(answer, Ended):
                self.hear.ended(str(answer.outcome))

    def close(self) -> None:
        self._tell(answer for answer in self._reader.close() if not isinstance(answer, Ended))


class _Json(Reading):
    """Events, each of one JSON value; `deltas` and `ends` tell which of them are text, and which the end."""

    wants_events = True

    def __init__(
        self,
        hear: Hear,
        deltas: Callable[[dict[str, Any]], str | None],
        ends: Callable[[dict[str, Any]], str | None],
        others: Callable[[dict[str, Any]], bool],
        *,
        upstream: bool = False,
    ) -> None:
        super().__init__(hear)
        self._deltas, self._ends, self._others = deltas, ends, others
        self._upstream = upstream
        self._joiner = SurrogateJoiner()

    def event(self, event: Event) -> None:
        if event.data.strip() == _DONE:
            return
        for value in _values(event, self.hear):
            if not isinstance(value, dict):
                continue
            text = self._deltas(value)
            if text is not None:
                text = self._joiner.feed(text)
                if text:
                    self.hear.text(text)
            elif self._others(value):
                self.hear.delta()
            end = self._ends(value)
            if end is not None:
                self.hear.ended(end)
                if end in ("error", "response.failed") and self._upstream:
                    self.hear.note("error-in-stream", "an error came among the events")

    def close(self) -> None:
        held = self._joiner.close()
        if held:
            self.hear.text(held)


class _Raw(Reading):
    """Events of no protocol that is known: their data is text as it stands, or an object with a piece of it."""

    wants_events = True

    def event(self, event: Event) -> None:
        if event.data == _DONE:
            self.hear.ended(_DONE)
            return
        if event.data.startswith("{"):
            values, rest = json_values(event.data)
            if len(values) == 1 and not rest:
                self.hear.value(values[0])
                piece = _text_of(values[0], _PIECE_KEYS)
                if piece:
                    self.hear.text(piece)
                elif isinstance(values[0], dict) and values[0].get("error"):
                    self.hear.note("error-in-stream", "an error came among the data")
                return
        if event.data:
            self.hear.text(event.data)


class _Lines(Reading):
    """A JSON value a line, of no protocol that is known."""

    def take(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace").strip()
        if line:
            values, rest = json_values(line)
            for value in values:
                self.hear.value(value)
                text = _text_of(value, _PIECE_KEYS)
                if text:
                    self.hear.text(text)
            if rest:
                self.hear.note("json-parse", "a line is not a JSON value")


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
            upstream = _Upstream(self.hear, kind)
            upstream.take(bytes(self._body))
            return upstream.close()
        text = _text_of(value)
        if text:
            self.hear.text(text)
        if values and not rest:
            self.hear.ended("whole")
        return None


class _Nothing(Reading):
    """Nothing that could be an answer."""


def reading_for(scene: Scene, hear: Hear) -> Reading:
    """What reads the answer of a scene's tape."""
    protocol, shape = scene.protocol, scene.shape
    upstream = {"openai": Kind.OPENAI_CHAT, "anthropic": Kind.ANTHROPIC_MESSAGES, "ollama": Kind.OLLAMA_NDJSON}
    if protocol in upstream:
        return _Upstream(hear, upstream[protocol])
    if shape is Shape.JSON:
        return _Document(hear)
    if shape is Shape.LINES:
        return _Lines(hear)
    if shape is Shape.TEXT:
        return _Plain(hear)
    if shape is not Shape.EVENTS:
        return _Nothing(hear)
    match protocol:
        case "motamot":
            return _Ours(hear, NATIVE.reader(max_event_bytes=EVENT_BYTES), json=True)
        case "morceaux":
            return _Ours(hear, MORCEAUX.reader(max_event_bytes=EVENT_BYTES), json=True)
        case "ga-text":
            return _Ours(hear, GA_TEXT.reader(max_event_bytes=EVENT_BYTES), json=False)
        case "ui-message":
            return _Json(hear, _ui_delta, _ui_end, _ui_other)
        case "ag-ui":
            return _Json(hear, _ag_ui_delta, _ag_ui_end, _ag_ui_other)
        case "openai-responses":
            return _Json(hear, _responses_delta, _responses_end, _responses_other, upstream=True)
        case _:
            return _Raw(hear)


def _look_strictly(raw: bytes, hear: Hear) -> None:
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


def _usage_place(chunk: dict[str, Any], path: str = "", depth: int = 0) -> str | None:
    """Where in a chunk usage stands other than at its top, or None."""
    for key, value in chunk.items():
        if not isinstance(value, dict):
            if isinstance(value, list) and value and isinstance(value[0], dict) and depth < _USAGE_DEPTH:
                inside = _usage_place(value[0], f"{path}{key}[0].", depth + 1)
                if inside is not None:
                    return inside
            continue
        if key in _USAGE_KEYS and (depth or key != "usage") and any(type(count) is int for count in value.values()):
            return f"{path}{key}"
        if key not in _USAGE_KEYS and depth < _USAGE_DEPTH:
            inside = _usage_place(value, f"{path}{key}.", depth + 1)
            if inside is not None:
                return inside
    return None


def _values(event: Event, hear: Hear) -> list[Any]:
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
    if rest and not (values and rest.strip() == _DONE):
        hear.note("json-parse", "the data of an event is not JSON")
    if "\t" in data or "NaN" in data or "Infinity" in data:
        _look_strictly(data.encode("utf-8", "surrogatepass"), hear)
    for value in values:
        hear.value(value)
    return values


def _text_of(value: Any, keys: tuple[str, ...] = _WHOLE_KEYS) -> str:
    """The answer, or a piece of it, in JSON of an unknown kind: under the first of the usual names that holds text."""
    if isinstance(value, dict):
        for key in keys:
            if isinstance(value.get(key), str):
                return str(value[key])
    return value if isinstance(value, str) else ""


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _ui_delta(value: dict[str, Any]) -> str | None:
    return _string(value.get("delta")) if value.get("type") == "text-delta" else None


def _ui_end(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    return str(kind) if kind in ("finish", "error", "abort") else None


def _ui_other(value: dict[str, Any]) -> bool:
    return value.get("type") in ("reasoning-delta", "tool-input-delta", "tool-input-available")


def _ag_ui_delta(value: dict[str, Any]) -> str | None:
    kinds = ("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK")
    return _string(value.get("delta")) if value.get("type") in kinds else None


def _ag_ui_end(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    return str(kind) if kind in ("RUN_FINISHED", "RUN_ERROR") else None


def _ag_ui_other(value: dict[str, Any]) -> bool:
    return value.get("type") in ("TOOL_CALL_ARGS", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CONTENT")


def _responses_delta(value: dict[str, Any]) -> str | None:
    kinds = ("response.output_text.delta", "response.refusal.delta")
    return _string(value.get("delta")) if value.get("type") in kinds else None


def _responses_end(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    return str(kind) if kind in ("response.completed", "response.incomplete", "response.failed", "error") else None


def _responses_other(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind.endswith(".delta")
