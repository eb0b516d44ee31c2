"""A connection that broke before the answer had come to its end."""

from __future__ import annotations

from motamot.findings.faults.clauses import HTTP_INCOMPLETE
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Evidence, Fault, Level, Promise

__all__ = ["CONNECTION_BROKEN"]


class _ConnectionBroken(Finder):
    """In every protocol, known or not. What broke after the answer's own end has lost nothing of it."""

    def at_end(self) -> None:
        scene = self.scene
        if scene.tape.end == "reset" and scene.ended is None:
            told = f"after {scene.bytes:,} bytes, before the answer's end" if scene.bytes else "before anything came"
            self.saw(f"The connection broke {told}.", Evidence(offset=scene.bytes, at=scene.at))


CONNECTION_BROKEN = Rule(
    Fault(
        id="connection-broken",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the connection broke in the middle of the answer",
        clause=f"{HTTP_INCOMPLETE}: a message whose end did not come is incomplete",
        remedy="Look for what ended it: a crash or a restart of the server, a time limit of a proxy or of the model's "
        "client. Catch what fails while the answer is written, and send the protocol's error and end.",
        harm="Visitors keep half an answer, and do not learn that it is one.",
    ),
    _ConnectionBroken,
)
