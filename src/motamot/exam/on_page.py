"""Cases with a browser for a visitor: what is compared is what somebody reads, and what the page sends as history.

Each case is a visit of its own, in a fresh browser: it types the question, waits for the answer's end, and reads. Only
cases whose file says `page: true` are run so; what a page cannot show (when a piece came, how an answer ended) is not
asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from motamot.answer import Ended, Outcome, Text
from motamot.errors import MotamotError
from motamot.exam.case import Case, Expect
from motamot.exam.compare import Compared, compare
from motamot.exam.examiner import ExamError
from motamot.exam.judging import Passed, Seen, Verdict, judge
from motamot.exam.page import Heard, Plan, visit
from motamot.exam.visitor import Heard as Answer
from motamot.findings import Level
from motamot.scripted import Received, ScriptedModel
from motamot.tape import Piece, Request

__all__ = ["PageExaminer"]

_CLAIMS = frozenset({"history", "memory", "ends", "errors"})
_SECONDS = 30.0  # for one answer
_VAIN = 3  # visits one after the other that come to nothing: so would the others, half a minute each


@dataclass(slots=True)
class PageExaminer:
    """One examination of a chatbot's page.

    url:   of the page. model: the scripted model, already listening at the address that the chatbot uses.
    plan:  where to type, what sends, and where answers stand: see `Plan`.
    told:  is given each verdict as it is known.
    """

    url: str
    model: ScriptedModel
    plan: Plan = field(default_factory=Plan)
    told: Callable[[Verdict], None] = lambda _: None

    async def warm_up(self) -> None:
        """Ask once. Raises: MotamotError where there is no browser or no page to ask; ExamError naming the end."""
        before = len(self.model.requests)
        heard = await self._visit(("Please say warmup",))
        if len(self.model.requests) == before:
            raise ExamError(
                f"the page asked, and its chatbot did not ask the model at {self.model.url}: set its base URL to that"
            )
        if not any("Ready." in look.text for one in heard for look in one.looks):
            raise ExamError("the model's answer was not found on the page: name its place with --answer SELECTOR")

    async def run(self, chosen: Sequence[Case]) -> list[Verdict]:
        """Those of these cases that a page can be asked, one after the other. Returns: their verdicts, by number."""
        verdicts: list[Verdict] = []
        for case in filter(lambda case: case.page, chosen):
            last = verdicts[-_VAIN:]
            if len(last) == _VAIN and all(one.passed is Passed.COULD_NOT_RUN for one in last):
                reason = f"not asked: the {_VAIN} before it could not be, either"
                verdicts.append(Verdict(case=case, passed=Passed.COULD_NOT_RUN, reason=reason))
            else:
                verdicts.append(await self._case(case))
            self.told(verdicts[-1])
        return verdicts

    async def _case(self, case: Case) -> Verdict:
        began = len(self.model.requests)
        endings = [act.on for act in case.visit if act.what == "ask"]
        try:
            heard = await self._visit(tuple(map(case.question, endings)))
        except MotamotError as error:
            return Verdict(case=case, passed=Passed.COULD_NOT_RUN, reason=str(error))
        words = {case.word + ending for ending in endings}
        requests = [one for one in self.model.requests[began:] if one.script in words]
        return _judged(case, heard, requests)

    async def _visit(self, questions: tuple[str, ...]) -> list[Heard]:
        plan = replace(self.plan, sends=questions, seconds=_SECONDS)
        return await visit(self.url, plan, stop=asyncio.Event(), tell=lambda _: None)


def _judged(case: Case, heard: Sequence[Heard], requests: list[Received]) -> Verdict:
    """The verdict on a visit: what the page made of the first answer, and what reached the model."""
    shown = "\n".join(look.text for look in heard[0].looks) if heard else ""
    answer = Answer(request=Request(method="POST", url=""), status=200)
    answer.events = [(0.0, Text(shown)), (0.0, Ended(outcome=Outcome.COMPLETE))]
    answer.pieces = [Piece(0.0, shown.encode("utf-8", "replace"))]
    seen = Seen(heard={"": [answer]}, requests=requests)
    wanted = case.expect
    kept = Expect(never=wanted.never, secret=wanted.secret, completions=wanted.completions, following=wanted.following)
    verdict = replace(judge(replace(case, expect=kept), seen, _CLAIMS), case=case)
    if verdict.passed is Passed.COULD_NOT_RUN or wanted.text is None:
        return verdict
    if not heard:
        return replace(verdict, passed=Passed.NOT_JUDGED, reason="the page read no answer that the browser could hear")
    compared = compare(heard[0], wanted.text)
    problems = (*verdict.problems, *_lost(compared))
    if not problems:
        if compared.where:
            return verdict
        return replace(verdict, passed=Passed.NOT_JUDGED, reason="; ".join(compared.reasons))
    failed = Passed.NOTED if case.level is Level.NOTE else Passed.FAILED
    return replace(verdict, passed=failed, problems=problems)


def _lost(compared: Compared) -> list[str]:
    """What a visitor does not read, or reads and nobody said. Whether it came live is not a case's of a page."""
    found = []
    for one in compared.findings:
        if one.fault.level is not Level.NOTE and one.fault.promise in ("exact", "once", "safe"):
            quotes = "; ".join(repr(place.quote) for place in one.evidence[:2] if place.quote)
            found.append(f"on the page: {one.message}" + (f" ({quotes})" if quotes else ""))
    return found
