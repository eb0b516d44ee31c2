"""What is missing of an answer, counted as the course's lesson 6 counts it (`Compare` in Lesson6.cs).

The rule is kept to the letter, blind spots included: a line that stands glued in another counts as there, a line that
is there once counts for all its like, and what comes twice or elsewhere is not seen. `motamot.findings.difference`
stands beside it for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from motamot.peers.dotnet import blank, replace_line_endings, trim

__all__ = ["Count", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What the rule counts.

    exact: nothing differs. missing, lines: text lines that are nowhere in what was got, and all there are. breaks: line
    breaks that are missing; below zero where there are more.
    """

    exact: bool
    missing: int = 0
    lines: int = 0
    breaks: int = 0

    @property
    def told(self) -> str:
        """As the lesson's table says it; there is no singular."""
        if self.exact:
            return "exact"
        parts = [f"{self.missing} of {self.lines} lines missing"] if self.missing else []
        if self.breaks > 0:
            parts.append(f"{self.breaks} line breaks missing")
        return ", ".join(parts) or "differs"


def count(original: str, got: str) -> Count:
    """Compare two texts, both with .NET's line ends put to LF before."""
    original, got = replace_line_endings(original), replace_line_endings(got)
    if original == got:
        return Count(exact=True)
    lines = [trim(line) for line in original.split("\n") if not blank(line)]
    seen: dict[str, bool] = {}  # a line is looked for once, however often it stands there
    for line in lines:
        if line not in seen:
            seen[line] = line in got
    return Count(
        exact=False,
        missing=sum(not seen[line] for line in lines),
        lines=len(lines),
        breaks=original.count("\n") - got.count("\n"),
    )
