"""What `motamot check` reports: of each recording what it is, what got lost, and what could not be judged. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from motamot.cli.console import Exit
from motamot.errors import InvalidRequest
from motamot.exam.compare import Compared
from motamot.exam.page_faults import PAGE_FAULTS
from motamot.findings import Examination, Fault, Finding, Level, Promise
from motamot.findings.faults import FAULTS
from motamot.findings.recognise import Shape
from motamot.tape import Tape

__all__ = ["Checked", "Report", "State", "Whole", "every_fault", "filtered"]


class State(StrEnum):
    """How the check of a recording ended; `skipped` for what is no stream, beside others that are."""

    KEPT = "nothing lost"
    LOST = "lost"
    UNCHECKED = "not checked"
    SKIPPED = "no stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The same answer in one piece. path: where in its JSON it stood; equal: to the stream's text, line ends as LF."""

    characters: int
    path: str
    equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One recording, checked.

    name:     what it is, as a heading: a file, or method and address.
    examined: None where there was nothing to examine.
    problem:  why it could not be checked, or None.
    failed:   the code and words of an answer that says it failed, perhaps ""; None for one that does not.
    unjudged: there is a stream, and that nothing was found in it says nothing: why, or None.
    skipped:  it is no stream, and others of the same recording are.
    findings: of the wire and of the page, those that are reported.
    compared: with the page, where a page was visited.
    """

    name: str
    tape: Tape | None = None
    examined: Examination | None = None
    problem: str | None = None
    failed: str | None = None
    unjudged: str | None = None
    skipped: bool = False
    findings: tuple[Finding, ...] = ()
    compared: Compared | None = None
    whole: Whole | None = None

    @property
    def state(self) -> State:
        if self.losses:
            return State.LOST
        if self.skipped:
            return State.SKIPPED
        return State.KEPT if self.problem is None and self.unjudged is None else State.UNCHECKED

    @property
    def part(self) -> bool:
        """What came is a part of the answer: whoever read it left before the end."""
        return (
            self.tape is not None and self.tape.end == "left" and self.examined is not None and not self.examined.ended
        )

    @property
    def losses(self) -> int:
        """Findings that count: those of level must or should."""
        return sum(finding.fault.level is not Level.NOTE for finding in self.findings)

    def judged(self, promise: Promise) -> str:
        """`lost`, `kept`, or `not judged: ` and why."""
        if any(one.fault.promise is promise and one.fault.level is not Level.NOTE for one in self.findings):
            return "lost"
        if self.examined is None or self.problem is not None:
            return f"not judged: {self.problem or 'there is no stream'}"
        if promise is Promise.EXACT and self.unjudged is not None:
            return f"not judged: {self.unjudged}"
        told = self.examined.judged[promise]
        if told == "lost":
            return "not judged: what was found is left out of this report"
        if promise is Promise.ONCE and self.compared is not None:
            return "not judged: the page asked once; how often its server asked the model is not seen from here"
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All recordings of one check."""

    recordings: tuple[Checked, ...]

    @property
    def exit(self) -> Exit:
        """1 where something is lost; 2 where something, or everything, could not be checked; else 0."""
        states = [recording.state for recording in self.recordings]
        if State.LOST in states:
            return Exit.FAILED
        if State.UNCHECKED in states or State.KEPT not in states:
            return Exit.NOT_STARTED
        return Exit.DONE

    def count(self, level: Level) -> int:
        """Findings of a level."""
        return sum(finding.fault.level is level for one in self.recordings for finding in one.findings)


def every_fault() -> dict[str, Fault]:
    """All faults that a check can name, of the wire and of pages, by their names."""
    return {**FAULTS, **PAGE_FAULTS}


def filtered(recordings: Sequence[Checked], *, only: Collection[str], ignore: Collection[str]) -> Report:
    """The report with only some findings, or without some.

    Raises: InvalidRequest for a name that no fault has.
    """
    known = every_fault()
    for name in (*only, *ignore):
        if name not in known:
            like = [fault for fault in known if fault.split("-")[0] == name.split("-")[0]]
            hint = f": there is {', '.join(like)}" if like else "; docs/findings.md has all names"
            raise InvalidRequest(f"no finding is called {name!r}{hint}", field="only" if name in only else "ignore")

    def wanted(finding: Finding) -> bool:
        return (not only or finding.id in only) and finding.id not in ignore

    kept = [replace(one, findings=tuple(filter(wanted, one.findings))) for one in recordings]
    streams = any(one.problem is None and not _is_no_stream(one) for one in kept)
    return Report(recordings=tuple(replace(one, skipped=streams and _is_no_stream(one)) for one in kept))


def _is_no_stream(one: Checked) -> bool:
    """What a browser's recording holds beside its answers: a whole page or document that came properly, or, of a page
    that was visited, a stream of news that holds no answer.
    """
    if one.examined is None or one.tape is None:
        return False
    if one.problem is None:
        return one.compared is not None and one.failed is None and not one.examined.deltas
    fine = one.tape.status is None or one.tape.status < 300
    return fine and one.examined.recognised.shape in (Shape.HTML, Shape.JSON)
