"""What looks for a fault: told what a tape holds, in order, in the one pass over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from motamot.answer import Usage
from motamot.findings.finding import Evidence, Fault, Finding
from motamot.findings.reading import TEXT_BYTES
from motamot.findings.recognise import Recognised
from motamot.findings.wire import Block
from motamot.model.turn import Turn
from motamot.sse import Event
from motamot.tape.tape import Tape

__all__ = [
    "EVIDENCE_MOST",
    "LUMP_SECONDS",
    "QUOTE_CHARS",
    "Finder",
    "Lump",
    "Rule",
    "Scene",
    "Sightings",
    "overridden",
    "quoted",
]

EVIDENCE_MOST = 5
"""Places that a finding shows; how often it was seen is counted beyond them."""

QUOTE_CHARS = 200
"""Characters of the wire that one place shows."""

LUMP_SECONDS = 0.02
"""Deltas that arrive within this time of the first arrived together: no reader sees them apart."""

_LUMPS_MOST = 100_000
_QUOTE_BYTES = 4 * QUOTE_CHARS


class Lump:
    """Deltas of text that arrived together. at: of the first; last: of the last; deltas, characters: how many."""

    __slots__ = ("at", "characters", "deltas", "last")

    def __init__(self, at: float) -> None:
        self.at = self.last = at
        self.deltas = self.characters = 0


class Sightings:
    """What was seen of each fault, in bounded room."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Fault, str, list[Evidence], list[int]]] = {}

    def add(self, fault: Fault, message: str, evidence: Evidence | None) -> None:
        """One sighting. The message of the first one stands; a place counts once."""
        entry = self._seen.get(fault.id)
        if entry is None:
            entry = self._seen[fault.id] = (fault, message, [], [0])
        _, _, places, times = entry
        if evidence is not None and places and places[-1].offset == evidence.offset is not None:
            return
        times[0] += 1
        if evidence is not None and len(places) < EVIDENCE_MOST:
            places.append(evidence)

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def findings(self) -> list[Finding]:
        """All of them, in the order they were first seen."""
        return [
            Finding(fault=fault, message=message, evidence=tuple(places), times=times[0])
            for fault, message, places, times in self._seen.values()
        ]


class Scene:
    """What a finder may look at: the tape, and where in it the pass stands.

    tape, recognised, whole: as `examine` was given them, and what the tape was taken for.
    offset, at, raw: of the block (event, line) under way: its place, when the read that completed it arrived, its
                     bytes (of a long one the beginning).
    events, deltas:  events dispatched; deltas of text, reasoning or tool calls that were read.
    text_deltas, last_text: how many had text, and the last one.
    lumps:           when text arrived.
    began_at, first_delta_at: of the first byte, the first delta; last_byte_at: of the last byte.
    last_event_at:   when the last event (line) came that is no comment; over_at: when the body was over.
    silences:        the longest time without a byte: (seconds, from, offset).
    other_answer:    the whole answer has little in common with the stream's: the model answered twice.
    bytes:           of the body so far.
    ended:           the answer's own end has come; its word, or None.
    over:            the offset from which nothing was read, because an event was too large; None elsewhere.
    turn:            the completion, for an upstream protocol, at the end; usage: the tokens that were reported.
    """

    def __init__(self, tape: Tape, recognised: Recognised, whole: str | None) -> None:
        self.tape, self.recognised, self.whole = tape, recognised, whole
        self.protocol, self.shape = recognised.protocol, recognised.shape
        self.sightings = Sightings()
        self.offset = 0
        self.at: float | None = None
        self.raw = b""
        self.bytes = self.events = self.deltas = self.text_deltas = self.comments = 0
        self.last_text = ""
        self.lumps: list[Lump] = []
        self.first_delta_at: float | None = None
        self.silence: tuple[float, float, int] = (0.0, 0.0, 0)
        self.last_event_at: float | None = None
        self.over_at: float | None = None
        self.ended: str | None = None
        self.mark = False
        self.cr: int | None = None
        self.over: int | None = None
        self.turn: Turn | None = None
        self.usage: Usage | None = None
        self.other_answer = False
        self.truncated = False  # the text is longer than is kept
        self._texts: list[str] = []
        self._room = TEXT_BYTES

    @property
    def timed(self) -> bool:
        """Whether the times are those of the reads; in a HAR they are not (a held-back answer looks live there)."""
        return self.tape.timed and self.tape.source != "har"

    @property
    def left(self) -> bool:
        """Whoever recorded it left: that the end is missing says nothing of the server."""
        return self.tape.end == "left"

    @property
    def text(self) -> str:
        """The answer so far, as a right reader has it; at most `TEXT_BYTES` characters."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        return self._texts[0] if self._texts else ""

    def add_delta(self) -> None:
        """Something of the answer came, text or not."""
        self.deltas += 1
        if self.first_delta_at is None:
            self.first_delta_at = self.at

    def add_text(self, text: str) -> None:
        """One delta of the answer's text."""
        self.deltas += 1
        self.text_deltas += 1
        self.last_text = text
        if self._room >= len(text):
            self._room -= len(text)
            self._texts.append(text)
        else:
            self.truncated, self._room = True, 0
        at = self.at
        if at is not None:
            if self.first_delta_at is None:
                self.first_delta_at = at
            lump = self.lumps[-1] if self.lumps else None
            if lump is None or (at - lump.at > LUMP_SECONDS and len(self.lumps) < _LUMPS_MOST):
                lump = Lump(at)
                self.lumps.append(lump)
            lump.last = at
            lump.deltas += 1
            lump.characters += len(text)

    def here(self) -> Evidence:
        """The place the pass stands at."""
        return Evidence(offset=self.offset, at=self.at, quote=quoted(self.raw))


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault, and what looks for it. look: None where a protocol's own reader names it (`Scene` note by its id)."""

    fault: Fault
    look: type[Finder] | None = None


class Finder:
    """Looks for one fault. Only the methods that a finder overrides are called.

    protocols: the protocols it looks at; None for all.
    """

    fault: Fault
    protocols: frozenset[str] | None = None

    def __init__(self, fault: Fault, scene: Scene) -> None:
        self.fault = fault
        self.scene = scene

    def saw(self, message: str, evidence: Evidence | None = None) -> None:
        """The fault was seen, here or at `evidence`."""
        self.scene.sightings.add(self.fault, message, evidence or self.scene.here())

    def saw_nowhere(self, message: str, *, at: float | None = None) -> None:
        """The fault was seen in no place of the body: in the headers, in times, in something that is missing."""
        self.scene.sightings.add(self.fault, message, None if at is None else Evidence(at=at))

    def saw_at(self, message: str, offset: int, quote: bytes) -> None:
        """The fault was seen at one place of the block under way."""
        self.saw(message, Evidence(offset=offset, at=self.scene.at, quote=quoted(quote)))

    def on_block(self, block: Block) -> None:
        """A block of an event stream that is more than one `data: ` line."""

    def on_event(self, event: Event) -> None:
        """An event, without its id; not called for upstream dialects, whose assembly reads them."""

    def on_value(self, value: Any) -> None:
        """The JSON value of an event, of the protocols whose events are JSON; not for upstream dialects either."""

    def on_text(self, text: str) -> None:
        """A delta of the answer's text."""

    def on_rare_text(self, text: str) -> None:
        """A delta of the answer's text that is not all ASCII."""

    def on_note(self, kind: str) -> None:
        """The protocol's own reader found something wrong: the id of a fault."""

    def on_escape(self, raw: bytes) -> None:
        """The bytes of a block that holds an escaped surrogate."""

    def at_end(self) -> None:
        """The tape has ended."""


def overridden(finders: Sequence[Finder], method: str) -> list[Any]:
    """The bound methods of those finders that have one of their own."""
    base = getattr(Finder, method)
    return [getattr(finder, method) for finder in finders if getattr(type(finder), method) is not base]


def quoted(raw: bytes) -> str:
    """Bytes of the wire as a finding shows them: decoded, at most `QUOTE_CHARS` characters."""
    text = raw[:_QUOTE_BYTES].decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= QUOTE_CHARS else text[: QUOTE_CHARS - 1] + "…"
