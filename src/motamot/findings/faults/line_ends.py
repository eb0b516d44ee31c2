"""Line ends that a protocol's own readers do not know."""

from __future__ import annotations

from motamot.findings.faults.clauses import AG_UI, SSE_PARSE
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Fault, Level, Promise
from motamot.findings.known import KNOWN

__all__ = ["CRLF_FOR_LF_ONLY_READER"]


class _CrLf(Finder):
    """Only where the readers are known to end events at LF LF and nowhere else; the standard's take any."""

    protocols = frozenset(known.name for known in KNOWN.values() if known.lf_only)

    def at_end(self) -> None:
        if self.scene.cr is not None:
            self.scene.offset, self.scene.raw = self.scene.cr, b"\r"
            self.saw("Lines end with CR or CRLF, and this protocol's clients end events at LF LF only.")


CRLF_FOR_LF_ONLY_READER = Rule(
    Fault(
        id="crlf-for-lf-only-reader",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="CR or CRLF line ends, where the clients know LF only",
        clause=f"{SSE_PARSE} allows all three; {AG_UI}: its client ends events at LF LF, as Guitar Alchemist's do",
        remedy="End lines with LF, on Windows, too, and take CR out of the text.",
        harm="@ag-ui/client rejects the answer, Guitar Alchemist's page shows none, its chatService shows the wire.",
    ),
    _CrLf,
)
