"""Runs cases: the scripted model behind the chatbot, the visitor in front, and what each of them saw put together."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from motamot.errors import MotamotError
from motamot.exam.case import LATE_SECONDS, Case
from motamot.exam.judging import Passed, Seen, Verdict, judge
from motamot.exam.presets import Preset
from motamot.exam.visitor import ANSWER_SECONDS, Heard, Visitor
from motamot.scripted import Received, ScriptedModel
from motamot.tape import Request

__all__ = ["ExamError", "Examiner"]

AT_ONCE = 6
"""Cases under way together; those that measure time run alone."""
_CONFIRMED = 3  # what needs a clock has failed only if it fails so often
_LAG_SECONDS = 0.25  # of our own loop: more, and a clock says nothing
_SETTLE_SECONDS = 0.15  # for what a chatbot does after its answer: helpers, closing
_WARM_SECONDS = 60.0


class ExamError(MotamotError):
    """The exam could not begin; the message says which of the two ends went wrong, and what to set."""

    code = "exam"


@dataclass(slots=True)
class Examiner:
    """One examination of one chatbot.

    url:     where visitors ask. preset: how. headers: of the owner's. stop: a route that stops, if there is one.
    model:   the scripted model, already listening at the address that the chatbot uses.
    told:    is given each verdict as it is known.
    """

    url: str
    preset: Preset
    model: ScriptedModel
    headers: Sequence[tuple[str, str]] = ()
    stop: Request | None = None
    told: Callable[[Verdict], None] = lambda _: None

    async def warm_up(self) -> Heard:
        """Ask once, so that what is loaded lazily is loaded, and both ends are known to be there.

        Raises: ExamError with a sentence for the owner.
        """
        before = len(self.model.requests)
        async with Visitor(self.url, self.preset, headers=self.headers, stop=self.stop) as visitor:
            (heard,) = visitor.ask("Please say warmup")
            await asyncio.wait_for(visitor.end(heard), _WARM_SECONDS)
        asked = self.model.requests[before:]
        if problem := _wrong_end(heard, asked, self.url, self.model.url):
            raise ExamError(problem)
        return heard

    async def run(self, chosen: Sequence[Case], *, serial: bool = False) -> list[Verdict]:
        """All of these cases, in an order of our own. Returns: the verdicts, by number."""
        together = [] if serial else [case for case in chosen if not case.alone]
        apart = [case for case in chosen if serial or case.alone]
        at_once = asyncio.Semaphore(AT_ONCE)

        async def one(case: Case) -> Verdict:
            async with at_once:
                return await self._case(case)

        verdicts = list(await asyncio.gather(*map(one, together)))
        # Word not seen: alone, whatever comes to the model belongs to it.
        missed = [n for n, verdict in enumerate(verdicts) if verdict.passed is Passed.COULD_NOT_RUN]
        for n in missed:
            verdicts[n] = await self._case(together[n], alone=True)
        for verdict in verdicts:
            self.told(verdict)
        for case in apart:
            verdict = await self._alone(case)
            verdicts.append(verdict)
            self.told(verdict)
        return sorted(verdicts, key=lambda verdict: verdict.case.number)

    async def _alone(self, case: Case) -> Verdict:
        """By itself; where it needs a clock and fails, again, until it is sure."""
        verdict = await self._case(case, alone=True)
        tries = 1
        while verdict.passed is Passed.FAILED and case.alone and tries < _CONFIRMED:
            verdict = await self._case(case, alone=True)
            tries += 1
        return verdict

    async def _case(self, case: Case, *, alone: bool = False) -> Verdict:
        for _ in range(_CONFIRMED):
            async with _lag() as lag:
                seen = await self._visit(case, alone=alone)
            if not (case.alone and lag() > _LAG_SECONDS):
                return judge(case, seen, self.preset.claims)
        reason = "this machine was too busy to measure time"
        return replace(judge(case, seen, self.preset.claims), passed=Passed.NOT_JUDGED, reason=reason)

    async def _visit(self, case: Case, *, alone: bool) -> Seen:
        for gate in case.gates:
            self.model.hold(f"{case.word}.{gate}")
        began = len(self.model.requests)
        seen = Seen()
        async with Visitor(self.url, self.preset, headers=self.headers, stop=self.stop) as visitor:
            watching = asyncio.create_task(self._open_gates(case, visitor, seen))
            try:
                await self._act(case, visitor, seen)
            finally:
                watching.cancel()
                await asyncio.wait({watching})
                for gate in case.gates:
                    self.model.release(f"{case.word}.{gate}")
            await asyncio.sleep(_SETTLE_SECONDS)
            await self._seen(case, seen, self.model.requests[began:], alone=alone)
        return seen

    async def _act(self, case: Case, visitor: Visitor, seen: Seen) -> None:
        heard: Heard | None = None
        for act in case.visit:
            if act.what == "ask":
                asked = visitor.ask(case.question(act.on), act.times)
                seen.heard[act.on] = asked
                heard = asked[0]
                continue
            if act.what == "wait":
                await asyncio.sleep(act.seconds)
                continue
            assert heard is not None, f"case {case.number} acts before it asks"
            match act.what:
                case "until":
                    await visitor.until(heard, act.on)
                case "end":
                    for one in next(asked for asked in seen.heard.values() if heard in asked):
                        await visitor.end(one)
                case "stop":
                    seen.stopped_at = time.monotonic()
                    await visitor.stop(heard)
                case "leave":
                    seen.stopped_at = time.monotonic()
                    await visitor.leave(heard)
                case other:
                    raise ValueError(f"case {case.number}: a visitor cannot {other!r}")

    async def _open_gates(self, case: Case, visitor: Visitor, seen: Seen) -> None:
        """Open each gate once the visitor has the text before it, or has not got it in time."""
        for gate, before in case.gates.items():
            name = f"{case.word}.{gate}"
            await self.model.wait_gate(name, timeout=ANSWER_SECONDS)  # the model has said what stands before
            asked = seen.heard[""]
            if not await visitor.until(asked[0], before, LATE_SECONDS):
                seen.late.append(gate)
            self.model.release(name)

    async def _seen(self, case: Case, seen: Seen, requests: list[Received], *, alone: bool) -> None:
        words = {case.word + ending for ending in case.scripts}
        seen.requests = [one for one in requests if one.script in words]
        if alone:
            seen.helpers = [one for one in requests if one.script == "motamot-unknown"]
        if case.expect.cancelled is None or seen.stopped_at is None:
            return
        # A model that nobody told runs on: it is given the time it may take, and a little.
        until = seen.stopped_at + case.expect.cancelled + 0.2
        while time.monotonic() < until and any(one.ended is None for one in seen.requests):  # noqa: ASYNC110 - many
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _lag() -> AsyncIterator[Callable[[], float]]:
    """How late our own event loop was at worst, meanwhile."""
    worst = 0.0

    async def look() -> None:
        nonlocal worst
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.02)
            worst = max(worst, time.monotonic() - before - 0.02)

    looking = asyncio.create_task(look())
    try:
        yield lambda: worst
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking


def _wrong_end(heard: Heard, asked: list[Received], url: str, model: str) -> str:
    """Which of the two ends went wrong, in a sentence; "" if neither did."""
    if heard.status is None:
        return f"nothing answers at {url}: {heard.broke or 'no response'}; is the chatbot running?"
    if heard.status in (401, 403):
        return f"the chatbot wants a login ({heard.refused[:200]}): give the header that its page sends, with -H"
    if heard.status in (404, 405, 410):
        return f"{url} is not where the chatbot is asked ({heard.refused[:200]})"
    if heard.status in (400, 415, 422):
        return (
            f"the chatbot does not take this kind of question ({heard.refused[:200]}): another --preset, or --request"
        )
    if heard.status == 429:
        return f"the chatbot lets nobody ask so much ({heard.refused[:200]}): raise its limits for the exam"
    if not asked:
        why = (
            f"; it answered {heard.text[:100]!r}"
            if heard.text
            else f" ({heard.refused[:200]})"
            if heard.refused
            else ""
        )
        return f"the chatbot answered, and did not ask the model at {model}: set its base URL to that address{why}"
    if heard.refused or heard.broke:
        return f"the chatbot asked the model, and failed: {(heard.refused or heard.broke)[:200]}"
    if heard.text.strip() != "Ready." and not heard.text:
        return "no text was found in the chatbot's response: is --preset right, or --read?"
    return ""
