"""Lines that are no field of the standard, and so are nothing to a reader."""

from __future__ import annotations

import re

from motamot.findings.faults.clauses import SSE_INTERPRET, SSE_PARSE
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Fault, Level, Promise
from motamot.findings.known import RAW
from motamot.findings.wire import Block, Skipped
from motamot.sse import Ignored

__all__ = ["ERROR_FIELD", "RAW_LINE_BREAK", "UNKNOWN_FIELD"]

_NAME = re.compile(rb"[A-Za-z][A-Za-z0-9_.\-]{0,40}")


def _is_field(skipped: Skipped) -> bool:
    """Whether an ignored line was meant as a field: a name and a colon, or a known name with spaces about it."""
    if skipped.kind is not Ignored.UNKNOWN_FIELD:
        return False
    name = skipped.line.partition(b":")[0]
    return _NAME.fullmatch(name) is not None or name.strip().lower() in (b"data", b"event", b"id", b"retry")


class _UnknownField(Finder):
    def on_block(self, block: Block) -> None:
        for skipped in block.skipped:
            if _is_field(skipped) and not skipped.line.startswith(b"error:"):
                name = skipped.line.partition(b":")[0].decode("utf-8", "replace")
                self.saw_at(
                    f"A line has the field name {name[:40]!r}, which the standard does not know: it is ignored.",
                    skipped.offset,
                    skipped.line,
                )


UNKNOWN_FIELD = Rule(
    Fault(
        id="unknown-field",
        promise=Promise.EXACT,
        level=Level.SHOULD,
        title="a line that is no field of the standard",
        clause=f"{SSE_INTERPRET}: a field that is not `event`, `data`, `id` or `retry` is ignored",
        remedy="Put what readers need into `data:`; field names are lower case, without a space before or after.",
        harm="What the line says reaches no standard reader.",
    ),
    _UnknownField,
)


class _ErrorField(Finder):
    def on_block(self, block: Block) -> None:
        for skipped in block.skipped:
            if skipped.kind is Ignored.UNKNOWN_FIELD and skipped.line.startswith(b"error:"):
                self.saw_at("An error came under the field name `error`.", skipped.offset, skipped.line)


ERROR_FIELD = Rule(
    Fault(
        id="error-field",
        promise=Promise.SAFE,
        level=Level.MUST,
        title="an error under the field name `error`",
        clause=f"{SSE_INTERPRET}: `error` is no field, and the line is ignored",
        remedy="Send the error as data, in an event of its own that a client cannot take for text.",
        harm="The client never sees the error: the answer just ends, and half of it looks like all of it.",
    ),
    _ErrorField,
)


class _RawLineBreak(Finder):
    """A line of the answer without `data: `. In raw text a line such as `Note: …` looks like a field, too."""

    def on_block(self, block: Block) -> None:
        for skipped in block.skipped:
            if skipped.kind is Ignored.NO_COLON:
                lost = bool(skipped.line.strip())
            elif skipped.kind is Ignored.UNKNOWN_FIELD:
                prose = self.scene.protocol in RAW and b" " in skipped.line.partition(b":")[2].strip()
                lost = not _is_field(skipped) or (prose and not skipped.line.startswith(b"error:"))
            else:
                lost = False
            if lost:
                self.saw_at(
                    "A line stands in the stream without a field, and is lost: most likely a line break of the text "
                    "was sent as it is.",
                    skipped.offset,
                    skipped.line,
                )


RAW_LINE_BREAK = Rule(
    Fault(
        id="raw-line-break",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="a line break in the text was not escaped",
        clause=f"{SSE_PARSE}: a line without `data:` before it is another field, or nothing",
        remedy="Write `data: ` before every line of the text, or send the text as JSON, where a line break is `\\n`.",
        harm="All of a piece after its first line break is lost: tables end after their head, lists have one item.",
    ),
    _RawLineBreak,
)
