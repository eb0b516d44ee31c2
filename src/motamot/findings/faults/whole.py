"""The stream against the same answer in one piece."""

from __future__ import annotations

from motamot.findings.diff import compare
from motamot.findings.faults.clauses import SSE_INTERPRET
from motamot.findings.finder import Finder, Rule
from motamot.findings.finding import Evidence, Fault, Level, Promise

__all__ = ["WHOLE_DIFFERS"]


class _WholeDiffers(Finder):
    def at_end(self) -> None:
        scene = self.scene
        if scene.whole is None or scene.truncated or scene.over is not None:
            return
        found = compare(scene.whole, scene.text)
        if found is None:
            return
        how = "" if found.exact else " (words counted, not put in order)"
        self.saw(
            f"The stream gives {len(scene.text):,} characters, the whole answer has {len(scene.whole):,}: "
            f"{found.sentence}{how}; first after character {found.at:,}: {found.before!r} became {found.after!r}.",
            Evidence(quote=found.after),
        )


WHOLE_DIFFERS = Rule(
    Fault(
        id="whole-differs",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the stream is not the answer as the server gives it whole",
        clause=f"[The promise](design.md): the text the visitor receives is the text the model wrote; {SSE_INTERPRET}",
        remedy="Look at what cuts the answer into pieces (pieces put end to end must give it back), at line breaks, "
        "and at the end.",
        harm="Lists become one bullet, words are glued, lines are missing.",
    ),
    _WholeDiffers,
)
