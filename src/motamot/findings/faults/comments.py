"""Keep-alives in the wrong place: as data, or inside an event."""

from __future__ import annotations

import re

from motamot.findings.faults.clauses import SSE_AUTHORING, SSE_PARSE
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Fault, Level, Promise
from motamot.findings.known import RAW
from motamot.findings.wire import Block
from motamot.sse import Event, Ignored

__all__ = ["COMMENT_AS_DATA", "KEEPALIVE_INSIDE_EVENT"]

_PING = r"keep-?alive|ping|heartbeat|hb|processing|OPENROUTER PROCESSING"
_AS_TEXT = re.compile(rf":\s*(?:{_PING})\b.{{0,80}}|(?:keep-?alive|ping|heartbeat)", re.IGNORECASE)
_CUT_BY = re.compile(rf'[^\r\n]: ?(?:(?:{_PING})\b[^"\r\n]{{0,60}})?[ \t]*\r?$'.encode(), re.IGNORECASE | re.MULTILINE)
_FIELDS = (b"data", b"event", b"id")


class _CommentAsData(Finder):
    """In raw text only what is no word of an answer; in JSON the protocol's reader names it."""

    protocols = RAW

    def on_event(self, event: Event) -> None:
        if _AS_TEXT.fullmatch(event.data):
            self.saw(f"A keep-alive came as data: {event.data[:40]!r}.")


COMMENT_AS_DATA = Rule(
    Fault(
        id="comment-as-data",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="a comment sent as data",
        clause=f"{SSE_PARSE}: a comment is a line that begins with a colon; {SSE_AUTHORING} tells of keep-alives",
        remedy="Send `:` or `: keep-alive` as a line of its own, without `data:` before it.",
        harm="The keep-alive is read as a piece of the answer: it stands in the text, or its JSON fails.",
    ),
    _CommentAsData,
)


class _KeepaliveInsideEvent(Finder):
    """A comment after a field of the same block, or in the middle of a data line, which then is no JSON."""

    def on_block(self, block: Block) -> None:
        for skipped in block.skipped:
            if skipped.kind is Ignored.COMMENT:
                before = block.raw[: max(skipped.offset - block.offset, 0)].removeprefix(b"\xef\xbb\xbf").splitlines()
                if any(line.startswith(_FIELDS) for line in before):
                    self.saw_at("A comment stands inside an event.", skipped.offset, skipped.line)

    def on_note(self, kind: str) -> None:
        if kind == "json-parse" and _CUT_BY.search(self.scene.raw.rstrip()):
            self.saw("A keep-alive stands in the middle of a data line.")


KEEPALIVE_INSIDE_EVENT = Rule(
    Fault(
        id="keepalive-inside-event",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="a keep-alive in the middle of an event",
        clause=f"{SSE_AUTHORING}: keep-alive comments go between events; {SSE_PARSE}: a blank line ends the event",
        remedy="Write each event with one write, and keep alive from the same place, between two events only.",
        harm="The event is cut in two: its text is lost, or its JSON fails.",
    ),
    _KeepaliveInsideEvent,
)
