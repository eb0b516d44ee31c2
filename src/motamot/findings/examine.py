"""One pass over a tape: what the answer in it is, and what got lost on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from motamot.answer import Source, Usage
from motamot.findings.faults import RULES
from motamot.findings.finder import Rule, Scene, overridden
from motamot.findings.finding import Finding, Level, Promise
from motamot.findings.known import KNOWN, STRICT, UPSTREAM
from motamot.findings.reading import Hear, Reading
from motamot.findings.recognise import Recognised, Shape, recognise
from motamot.findings.wire import BLOCK_BYTES, EVENT_BYTES, Block, Wire
from motamot.sse import Event
from motamot.tape.tape import Tape

__all__ = ["KEPT", "LOST", "NOT_JUDGED", "Examination", "Times", "examine"]

LOST = "lost"
KEPT = "kept"
NOT_JUDGED = "not judged: "
"""How a promise was judged; what follows `NOT_JUDGED` says why it was not."""

_NO_EVENTS = frozenset({"json-lines", "json", "text", "html", "empty"})
_MARKED = (Shape.EVENTS, Shape.LINES)  # bodies that may have an end mark of their own
_FAILED = 400  # the first HTTP status of an error
_DELTAS_MIN = 4  # fewer say nothing of whether an answer was live
_LIVE_SECONDS = 0.5  # an answer that took less was as good as there at once
_MISSING_AT_END = frozenset(
    {"finish-missing", "done-missing", "usage-missing", "tool-args-truncated", "unterminated-last-event"}
    | {"missing-terminal-event"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When things came, seconds since the request; None where the tape does not know.

    head, first_byte, first_delta, first_text, last_text, end: the head of the response, the first byte of its body,
           the first delta (reasoning and tool calls are deltas, too), text, the end of the body.
    silence, silence_from: the longest time without a byte, and when it began.
    """

    head: float | None = None
    first_byte: float | None = None
    first_delta: float | None = None
    first_text: float | None = None
    last_text: float | None = None
    end: float | None = None
    silence: float | None = None
    silence_from: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What a tape shows.

    recognised: what it was taken for, how sure, and why. protocol: its name.
    findings:   ordered by promise, then by place.
    text:       the answer as a right reader has it, at most 16 MiB of it.
    ended:      the word of the answer's own end, or None: it did not come.
    text_found: something of an answer was found in it: text, reasoning or a piece of a tool call.
    judged:     of each promise `lost`, `kept` or `not judged: ` and why.
    usage:      the tokens, where an upstream protocol reported them.
    bytes, events, comments, deltas: of the body; what was dispatched; pieces of text, reasoning or tool calls.
    times:      when things came.
    notes:      what a reader of this must know: of the tape, and of bounds that were met.
    """

    recognised: Recognised
    findings: tuple[Finding, ...]
    text: str
    ended: str | None
    judged: Mapping[Promise, str]
    usage: Usage | None = None
    bytes: int = 0
    events: int = 0
    comments: int = 0
    deltas: int = 0
    text_found: bool = True
    times: Times = field(default_factory=Times)
    notes: tuple[str, ...] = ()

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return self.recognised.protocol


def examine(tape: Tape, *, protocol: str | None = None, whole: str | None = None) -> Examination:
    """What `tape` shows of each promise. Pure; one pass, in time and memory bounded by the tape's size.

    protocol: its name (`PROTOCOLS`), where it is known; else it is recognised.
    whole:    the same answer as the server gives it in one piece (as JSON), to compare the stream's text with.
    Raises:   ValueError for a protocol that does not exist. Nothing in the tape raises.
    """
    return _Pass(tape, recognise(tape, protocol=protocol), whole, RULES).run()


class _Pass:
    """Drives the one pass: the bytes to the wire and the reading, what they tell to the finders."""

    def __init__(self, tape: Tape, recognised: Recognised, whole: str | None, rules: tuple[Rule, ...]) -> None:
        self.scene = scene = Scene(tape, recognised, whole)
        self._rules = {rule.fault.id: rule for rule in rules}
        finders = [
            rule.look(rule.fault, scene)
            for rule in rules
            if rule.look is not None and (rule.look.protocols is None or scene.protocol in rule.look.protocols)
        ]
        self._finders = finders
        self._on_block: list[Callable[[Block], None]] = overridden(finders, "on_block")
        # Not for upstream dialects: their assembly reads them, and an event made for nobody costs more than that.
        events = [] if scene.protocol in UPSTREAM else overridden(finders, "on_event")
        self._on_event: list[Callable[[Event], None]] = events
        self._on_value: list[Callable[[Any], None]] = overridden(finders, "on_value")
        self._on_text: list[Callable[[str], None]] = overridden(finders, "on_text")
        self._on_rare_text: list[Callable[[str], None]] = overridden(finders, "on_rare_text")
        self._on_note: list[Callable[[str], None]] = overridden(finders, "on_note")
        self._on_escape: list[Callable[[bytes], None]] = overridden(finders, "on_escape")
        hear = Hear(text=self._text, delta=scene.add_delta, value=self._value, note=self._note, ended=self._ended)
        self._reading: Reading = _reading(scene, hear)
        self._events_wanted = self._reading.wants_events or bool(self._on_event)
        before = (b"event: ",) if scene.protocol in STRICT else (b"event: ", b"id: ")
        self._wire = Wire(plain=self._plain, part=self._part, block=self._block, before=before)
        self._notes: list[str] = list(tape.notes)

    def run(self) -> Examination:
        """Take the tape from its first byte to its last."""
        scene, shape = self.scene, self.scene.shape
        lines = _Lines(self._line) if shape is Shape.LINES or scene.protocol == "ollama" else None
        last = scene.tape.head_at or 0.0
        for piece in scene.tape.pieces:
            scene.at = piece.at
            if piece.at is not None:
                if piece.at - last > scene.silence[0]:
                    scene.silence = (piece.at - last, last, scene.bytes)
                last = piece.at
            if lines is not None:
                lines.feed(piece.data)
            elif shape is Shape.EVENTS:
                self._wire.feed(piece.data)
            else:
                scene.offset, scene.raw = scene.bytes, piece.data[:1024]
                self._reading.take(piece.data)
            scene.bytes += len(piece.data)
        ended = scene.tape.ended_at
        if ended is not None and scene.timed and ended - last > scene.silence[0]:
            scene.silence = (ended - last, last, scene.bytes)
        scene.over_at = ended if ended is not None else last
        self._close(lines)
        return self._examination()

    def _close(self, lines: _Lines | None) -> None:
        scene, wire = self.scene, self._wire
        if lines is not None:
            lines.close()
        elif scene.shape is Shape.EVENTS:
            wire.close()
            scene.mark, scene.cr, scene.over = wire.mark, wire.cr, wire.over
            scene.comments = wire.comments
        if scene.over is not None:
            self._notes.append(
                f"An event from byte {scene.over:,} on holds more than {EVENT_BYTES:,} bytes: nothing from there on "
                "was read."
            )
        scene.offset, scene.raw = scene.bytes, b""
        if scene.tape.ended_at is not None:
            scene.at = scene.tape.ended_at
        scene.turn = turn = self._reading.close()
        scene.usage = turn.usage if turn is not None else self._reading.usage
        if turn is not None and turn.error is not None and turn.error.code == "limit":
            scene.truncated = True
        for finder in self._finders:
            finder.at_end()
        if scene.timed and scene.left and scene.ended is None and scene.deltas and scene.shape in _MARKED:
            since = (scene.over_at or 0.0) - (scene.last_event_at or 0.0)
            self._notes.append(
                f"No end mark had come when whoever recorded it left, {since:.1f} s after the last event: whether more "
                "would have come, and whether the server ever closes, is not known."
            )
        if scene.truncated:
            self._notes.append("The answer is longer than 16 MiB: its text was kept up to there.")

    # What the wire tells.

    def _plain(self, offset: int, raw: bytes) -> None:
        """A block that is one `data: ` line, perhaps with a line before it: nine of ten."""
        scene = self.scene
        scene.offset, scene.raw = offset, raw
        scene.events += 1
        scene.last_event_at = scene.at
        if b"\\ud" in raw or b"\\uD" in raw:
            self._escape(raw)
        self._reading.take(raw)
        if self._events_wanted:
            name = ""
            if raw[:1] != b"d":
                head, _, raw = raw.partition(b"\n")
                name = head[7:].decode("utf-8", "replace") if head[:1] == b"e" else ""
            self._event(Event(event=name or "message", data=raw[6:-2].decode("utf-8", "replace")))

    def _part(self, offset: int, part: bytes) -> None:
        scene = self.scene
        scene.offset, scene.raw = offset, part
        self._reading.take(part)

    def _block(self, block: Block) -> None:
        scene = self.scene
        scene.offset, scene.raw = block.offset, block.raw
        if b"\\ud" in block.raw or b"\\uD" in block.raw:
            self._escape(block.raw)
        for look in self._on_block:
            look(block)
        for event in block.events:
            scene.events += 1
            scene.last_event_at = scene.at
            if self._events_wanted:
                self._event(event)

    def _escape(self, raw: bytes) -> None:
        """A block with an escaped surrogate; one that was kept in part may end inside a pair."""
        if len(raw) < BLOCK_BYTES:
            data = b"\n".join(line for line in raw.splitlines() if line.startswith(b"data"))
            for look in self._on_escape:
                look(data)

    def _event(self, event: Event) -> None:
        for look in self._on_event:
            look(event)
        self._reading.event(event)

    def _line(self, offset: int, line: bytes) -> None:
        scene = self.scene
        scene.offset, scene.raw = offset, line[:1024]
        if line.strip():
            scene.events += 1
            scene.last_event_at = scene.at
        self._reading.take(line)

    # What the reading tells.

    def _text(self, text: str) -> None:
        self.scene.add_text(text)
        for look in self._on_text:
            look(text)
        if not text.isascii():
            for look in self._on_rare_text:
                look(text)

    def _value(self, value: Any) -> None:
        for look in self._on_value:
            look(value)

    def _note(self, kind: str, sentence: str) -> None:
        for look in self._on_note:
            look(kind)
        rule = self._rules.get(kind)
        document = self.scene.shape is Shape.JSON
        if rule is None or (self.scene.left and (kind in _MISSING_AT_END or (document and kind == "json-parse"))):
            return
        if kind == "error-in-stream" and document and (self.scene.tape.status or 200) >= _FAILED:
            return  # an error with its own status and document is where it belongs
        message = sentence[:1].upper() + sentence[1:] + "."
        self.scene.sightings.add(rule.fault, message, self.scene.here())

    def _ended(self, word: str) -> None:
        if self.scene.ended is None:
            self.scene.ended = word

    # The end.

    def _examination(self) -> Examination:
        scene = self.scene
        order = list(Promise)
        findings = sorted(
            scene.sightings.findings(),
            key=lambda finding: (order.index(finding.fault.promise), _place(finding), finding.id),
        )
        usage = scene.usage
        return Examination(
            recognised=scene.recognised,
            findings=tuple(findings),
            text=scene.text,
            ended=scene.ended,
            judged={promise: _judge(promise, scene, findings) for promise in Promise},
            usage=usage if usage is not None and usage.source is Source.REPORTED else None,
            bytes=scene.bytes,
            events=scene.events,
            comments=scene.comments,
            deltas=scene.deltas,
            text_found=scene.deltas > 0,
            times=_times(scene),
            notes=tuple(dict.fromkeys(self._notes)),
        )


def _reading(scene: Scene, hear: Hear) -> Reading:
    """What reads the answer: as its protocol says, or by its shape where the body cannot be what was given."""
    known = KNOWN[scene.protocol]
    by_shape = {Shape.JSON: "json", Shape.LINES: "json-lines", Shape.TEXT: "text", Shape.HTML: "html"}
    if not known.upstream and scene.shape in by_shape:  # a completion may be JSON, and names by itself what it is not
        known = KNOWN[by_shape[scene.shape]]
    elif scene.shape is Shape.EVENTS and scene.protocol in _NO_EVENTS:
        known = KNOWN["event-stream"]
    return known.reading(hear)


class _Lines:
    """Cuts a body at LF; a line that grows past what is read is dropped from there on."""

    def __init__(self, line: Callable[[int, bytes], None]) -> None:
        self._line = line
        self._pending = bytearray()
        self._at = 0  # of the chunk under way in the body
        self._offset = 0  # of the line under way

    def feed(self, chunk: bytes) -> None:
        at = 0
        while True:
            stop = chunk.find(b"\n", at)
            if stop < 0:
                self._pending += chunk[at : at + max(EVENT_BYTES + 1 - len(self._pending), 0)]
                self._at += len(chunk)
                return
            line = bytes(self._pending) + chunk[at : stop + 1] if self._pending else chunk[at : stop + 1]
            self._pending.clear()
            at = stop + 1
            self._line(self._offset, line)
            self._offset = self._at + at

    def close(self) -> None:
        if self._pending:
            self._line(self._offset, bytes(self._pending))


def _place(finding: Finding) -> int:
    """Where a finding stands among those of its promise: what is in no place of the body comes first."""
    offset = finding.evidence[0].offset if finding.evidence else None
    return -1 if offset is None else offset


def _times(scene: Scene) -> Times:
    tape = scene.tape
    if not scene.timed:
        return Times(head=tape.head_at, end=tape.ended_at)
    seconds, since, _ = scene.silence
    return Times(
        head=tape.head_at,
        first_byte=tape.pieces[0].at,
        first_delta=scene.first_delta_at,
        first_text=scene.lumps[0].at if scene.lumps else None,
        last_text=scene.lumps[-1].last if scene.lumps else None,
        end=tape.ended_at if tape.ended_at is not None else tape.pieces[-1].at,
        silence=seconds,
        silence_from=since,
    )


def _judge(promise: Promise, scene: Scene, findings: list[Finding]) -> str:
    """A promise is lost where a finding says so; it is kept only where the tape shows it."""
    if any(one.fault.promise is promise and one.fault.level is not Level.NOTE for one in findings):
        return LOST
    why = _JUDGES[promise](scene)
    return KEPT if why is None else NOT_JUDGED + why


def _exact(scene: Scene) -> str | None:
    if not scene.deltas and scene.events:
        return "no text was found in the events"
    if not scene.deltas and scene.shape is Shape.JSON and scene.bytes:
        return "no text was found in the document"
    if not scene.deltas:
        return "there is no answer in it"
    if scene.over is not None or scene.truncated:
        return "it is too large to be read to its end"
    if scene.other_answer:
        return "the whole answer is another answer"
    if scene.ended is None:
        return "the recording does not hold the answer's end"
    if scene.turn is not None and scene.turn.finish in ("error", "incomplete"):
        return "the model broke the answer off"
    if scene.protocol in UPSTREAM or scene.whole is not None:
        return None
    return "the wire loses nothing, and only the same answer in one piece shows whether its writer did"


def _live(scene: Scene) -> str | None:
    if not scene.text_deltas:
        return "there is no text in it"
    if not scene.timed:
        return "the recording holds no times"
    if scene.text_deltas < _DELTAS_MIN:
        return "the answer came in too few pieces to tell"
    first, last = scene.lumps[0].at, scene.lumps[-1].last
    if scene.tape.upstream_at:
        return None
    if last - first < _LIVE_SECONDS:
        return "the answer was too short to tell, and when the model produced it is not known"
    if first > last - first:
        return "the wait was longer than the answer took: only the model's times show whether it was held back"
    return None


def _once(_: Scene) -> str | None:
    return "one recording shows one answer, not how often the model was asked"


def _stoppable(_: Scene) -> str | None:
    return "nothing in it shows what a stop does to the model"


def _accounted(scene: Scene) -> str | None:
    if scene.usage is not None and scene.usage.source is Source.REPORTED:
        return None
    if scene.protocol not in UPSTREAM:
        return "what was booked is not on this wire"
    return "the recording does not hold the tokens"


def _safe(_: Scene) -> str | None:
    return "it shows the wire, not what a page makes of it"


_JUDGES: Mapping[Promise, Callable[[Scene], str | None]] = {
    Promise.EXACT: _exact,
    Promise.LIVE: _live,
    Promise.ONCE: _once,
    Promise.STOPPABLE: _stoppable,
    Promise.ACCOUNTED: _accounted,
    Promise.SAFE: _safe,
}
