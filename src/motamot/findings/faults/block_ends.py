"""Blocks that do not end where they should: two run into one, or the last cut."""

from __future__ import annotations

import re

from motamot.findings.faults.clauses import SSE_INTERPRET
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Fault, Level, Promise
from motamot.findings.known import RAW
from motamot.findings.wire import Block
from motamot.model.events import json_values
from motamot.sse import Event

__all__ = ["MISSING_BLANK_LINE", "UNTERMINATED_LAST_EVENT"]

_FIELD = re.compile(rb"(?:data|event|id)(?::|$)|(?:d|da|dat|e|ev|eve|even|i)$")


class _MissingBlankLine(Finder):
    """Two names or two ids in one block; in raw text, the protocol's own words on a line of the text.

    In JSON, two values in one event: the reader of the protocol names that.
    """

    def on_block(self, block: Block) -> None:
        for field in (b"event:", b"id:"):
            if block.raw.count(field) < 2:
                continue
            if sum(line.startswith(field) for line in block.lines) > 1:
                name = field.decode()[:-1]
                self.saw(f"One block has two `{name}` lines: a blank line is missing between two events.")
                return

    def on_event(self, event: Event) -> None:
        if self.scene.protocol not in RAW or "\n" not in event.data:
            return
        first, _, rest = event.data.partition("\n")
        if rest.endswith("\n[DONE]") or rest == "[DONE]":
            self.saw("`[DONE]` stands on the last line of a text: a blank line is missing before it.")
        elif first.startswith("{") and self.scene.protocol == "ga-text":
            values, left = json_values(first)
            if not left and isinstance(values[0], dict) and values[0].get("type") == "routing":
                self.saw("Text stands in the routing event: a blank line is missing after it.")
        elif first.startswith("{"):
            values, left = json_values(event.data)
            if len(values) > 1 and not left and all(isinstance(value, dict) for value in values):
                self.saw(f"One event holds {len(values)} JSON objects: blank lines are missing between events.")


MISSING_BLANK_LINE = Rule(
    Fault(
        id="missing-blank-line",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="two events run into one",
        clause=f"{SSE_INTERPRET}: an event ends at an empty line, and only there",
        remedy="End every event with an empty line: `data: …` LF LF.",
        harm="A reader gets one event it cannot parse: both pieces are lost, or the whole answer fails.",
    ),
    _MissingBlankLine,
)


class _UnterminatedLastEvent(Finder):
    """A comment or a `retry` that was cut is nothing to a reader, and not named."""

    def on_block(self, block: Block) -> None:
        if block.closed or self.scene.left:
            return
        if any(_FIELD.match(line.removeprefix(b"\xef\xbb\xbf")) for line in block.lines):
            self.saw("The stream ends inside an event: no blank line ends it, and a standard reader drops it.")


UNTERMINATED_LAST_EVENT = Rule(
    Fault(
        id="unterminated-last-event",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the stream ends inside an event",
        clause=f"{SSE_INTERPRET}: once the end is reached, an incomplete event is discarded",
        remedy="End the last event, `[DONE]` too, with an empty line before the connection is closed.",
        harm="Browsers drop it, other readers deliver it: some visitors miss the last words, or the end itself.",
    ),
    _UnterminatedLastEvent,
)
