"""Pieces that were cut or wrapped wrongly before they were sent."""

from __future__ import annotations

import re

from motamot.findings.faults.clauses import SSE_INTERPRET, SSE_PARSE
from motamot.findings.finder import Finder, Rule, Scene
from motamot.findings.finding import Evidence, Fault, Level, Promise
from motamot.findings.known import KNOWN, RAW
from motamot.sse import Event

__all__ = ["GLUED_PIECES", "WIRE_IN_TEXT"]

_JOINS_MIN = 2
_PIECE_CHARS = 15  # on average: tokens are shorter, and end with a sentence only now and then
_SHARE = 0.8  # of all joins
_BEGINS = re.compile(r"[A-ZÀ-ÞА-Я\d*#>«“\"'(\[]|- ")
_ENDS = re.compile(r"[.!?:;)*\"”»]$")


class _GluedPieces(Finder):
    """Sentences that follow each other without white space: whoever cut the answer at white space dropped it.

    Tokens do not do so: most of them neither end nor begin a sentence. In a stream of no known protocol, events may
    be messages of their own.
    """

    protocols = frozenset(KNOWN) - {"event-stream", "json-lines"}

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._before = ""
        self._joins = self._glued = self._characters = 0
        self._first: tuple[str, Evidence] | None = None

    def on_text(self, text: str) -> None:
        before, self._before = self._before, text[-30:]
        self._characters += len(text)
        if not before:
            return
        self._joins += 1
        if _ENDS.search(before[-1:]) and _BEGINS.match(text):
            self._glued += 1
            if self._first is None:
                self._first = (before + text[:30], self.scene.here())

    def at_end(self) -> None:
        if "raw-line-break" in self.scene.sightings:
            return  # what stood between the pieces came, and was lost as that says
        if self._first is None or self._glued < max(_JOINS_MIN, _SHARE * self._joins):
            return
        if self._characters >= _PIECE_CHARS * (self._joins + 1):
            shown, place = self._first
            self.saw(
                f"{self._glued} of {self._joins} pieces begin a sentence or an item right behind the last one's end, "
                f"as {shown!r}: the white space between them is gone.",
                place,
            )


GLUED_PIECES = Rule(
    Fault(
        id="glued-pieces",
        promise=Promise.EXACT,
        level=Level.SHOULD,
        title="sentences follow each other without white space",
        clause=f"{SSE_INTERPRET}: readers add nothing between events; "
        "[GuitarAlchemist/ga #743](https://github.com/GuitarAlchemist/ga/pull/743) mended such a splitter",
        remedy="Cut behind the white space, not at it: the pieces put end to end must give the answer back.",
        harm="Lists become one bullet, paragraphs one block, and words of two sentences one.",
    ),
    _GluedPieces,
)


class _WireInText(Finder):
    """Data that begins with `data:` again, more often than a text about event streams would."""

    def __init__(self, fault: Fault, scene: Scene) -> None:
        super().__init__(fault, scene)
        self._raw = scene.protocol in RAW
        self._places: list[Evidence] = []
        self._times = 0

    def on_event(self, event: Event) -> None:
        if self._raw and event.data.startswith("data:"):
            self._count()

    def on_note(self, kind: str) -> None:
        if kind == "json-parse" and self.scene.raw.startswith((b"data: data:", b"data:data:")):
            self.saw("An event's data begins with `data:` again.")

    def _count(self) -> None:
        self._times += 1
        if len(self._places) < 2:
            self._places.append(self.scene.here())

    def at_end(self) -> None:
        if self._times > 1 and self._times * 2 >= self.scene.events - 1:
            for place in self._places:
                self.saw("Events' data begin with `data:` again.", place)


WIRE_IN_TEXT = Rule(
    Fault(
        id="wire-in-text",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="an event stream inside the data of another",
        clause=f"{SSE_PARSE}: what stands behind the first `data: ` is the data",
        remedy="Give the writer of the framework bare data, or write the bytes yourself; relay a stream by reading it.",
        harm="Visitors read `data: ` before each piece; clients that expect JSON fail.",
    ),
    _WireInText,
)
