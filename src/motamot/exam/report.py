"""What an examination found, as a whole: sums by promise, and how it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from motamot.exam.judging import Passed, Verdict
from motamot.findings import Level, Promise

__all__ = ["Report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An examination.

    url, preset: of the chatbot. verdicts: by number. took: seconds. command: repeats it, without `--case`.
    """

    url: str
    preset: str
    verdicts: Sequence[Verdict]
    took: float
    command: str

    @property
    def status(self) -> int:
        """0: what was judged is kept; 1: something is lost; 2: something could not run, or nothing was judged."""
        counted = self.count()
        if counted[Passed.FAILED]:
            return 1
        return 2 if counted[Passed.COULD_NOT_RUN] or not counted[Passed.PASSED] else 0

    def count(self, promise: Promise | None = None) -> Counter[Passed]:
        """How many verdicts of each kind, of one promise or of all."""
        return Counter(one.passed for one in self.verdicts if promise is None or one.case.promise is promise)

    def of(self, *kinds: Passed) -> Iterator[Verdict]:
        """The verdicts of these kinds, the worst first."""
        order = {Level.MUST: 0, Level.SHOULD: 1, Level.NOTE: 2}
        found = [one for one in self.verdicts if one.passed in kinds]
        yield from sorted(found, key=lambda one: (order[one.case.level], one.case.number))

    @property
    def wasted(self) -> int:
        """Tokens that were paid for nothing, in the cases' own counting."""
        return sum(one.wasted for one in self.verdicts)

    def again(self, verdict: Verdict) -> str:
        """The command that runs this case alone."""
        return f"{self.command} --case {verdict.case.number}"
