"""Runs cases: the scripted model behind the chatbot, the visitor in front, and what each of them saw put together."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from motamot.answer import ToolCalled
from motamot.errors import MotamotError
from motamot.exam import resuming
from motamot.exam.case import LATE_SECONDS, Act, Case, own_word, scripts
from motamot.exam.ends import silent, wrong_end
from motamot.exam.judging import Passed, Seen, Verdict, judge
from motamot.exam.presets import Preset
from motamot.exam.tools import Tool, offered
from motamot.exam.visitor import ANSWER_SECONDS, Heard, Visitor
from motamot.scripted import Received, ScriptedModel
from motamot.tape import Request

__all__ = ["ExamError", "Examiner", "Silent", "Started"]

AT_ONCE = 6
"""Cases under way together; those that measure time run alone."""
_CONFIRMED = 3  # what needs a clock has failed only if it fails so often
_LAG_SECONDS = 0.25  # of our own loop: more, and a clock says nothing, unless what it measures is four times as long
_CALM_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0)  # before each try of a case that needs a clock: a busy machine may calm down
_SETTLE_SECONDS = 0.15  # for what a chatbot does after its answer: helpers, closing
_WARM_SECONDS = 60.0
_DYING_SECONDS = 1.0  # Node prints the error first: 0.2 to 0.9 s were measured
_MANY_LATE_SECONDS = 5.0  # for the first text of each of many: all of them come in the same moment


class Started(Protocol):
    """A chatbot that was started for the exam, and can be started again where it has ended by itself."""

    @property
    def status(self) -> int | None: ...
    def last_words(self) -> str: ...
    async def again(self) -> None: ...


class ExamError(MotamotError):
    """The exam could not begin; the message says which of the two ends went wrong, and what to set."""

    code = "exam"


class Silent(ExamError):
    """The chatbot took a question, and no text came in time."""


@dataclass(slots=True)
class Examiner:
    """One examination of one chatbot.

    url:     where visitors ask. preset: how. headers: of the owner's. stop: a route that stops, if there is one.
    model:   the scripted model, already listening at the address that the chatbot uses.
    told:    is given each verdict as it is known.
    started: the chatbot's process, where it is ours.
    call:    the name of the tool that the model calls; None: the first that is offered; "": none.
    tool:    that tool, as the warm-up's request to the model offered it.
    tries:   how often a case that measures time must fail before it has failed.
    """

    url: str
    preset: Preset
    model: ScriptedModel
    headers: Sequence[tuple[str, str]] = ()
    stop: Request | None = None
    told: Callable[[Verdict], None] = lambda _: None
    started: Started | None = None
    call: str | None = None
    tries: int = _CONFIRMED
    tool: Tool | None = field(default=None, init=False)
    _claims: frozenset[str] = field(default=frozenset(), init=False)

    async def warm_up(self) -> Heard:
        """Ask once, so that what is loaded lazily is loaded, and both ends are known to be there.

        Raises: ExamError with a sentence for the owner; Silent where time ran out.
        """
        before = len(self.model.requests)
        async with Visitor(self.url, self.preset, headers=self.headers, stop=self.stop) as visitor:
            (heard,) = visitor.ask("Please say warmup")
            await asyncio.wait_for(visitor.end(heard), _WARM_SECONDS)
        asked = self.model.requests[before:]
        if heard.timed_out and not heard.text:
            raise Silent(silent(heard, asked, self.url, self.model.url))
        if problem := wrong_end(heard, asked, self.url, self.model.url):
            raise ExamError(problem)
        self._claims = self.preset.claims | resuming.claims(self.preset.name)
        self.tool = None if self.call == "" else next(filter(None, (offered(o.body, self.call) for o in asked)), None)
        if self.call and self.tool is None:
            raise ExamError(f"the chatbot offers the model no tool {self.call!r}")
        if self.tool is not None:
            self._claims |= {"tool"}
        if any(one.path.partition("?")[0].rstrip("/").endswith("/chat/completions") for one in asked):
            self._claims |= {"upstream-chat"}
        return heard

    def calls(self, chosen: Sequence[Case]) -> int:
        """How many of these cases have the model call the chatbot's tool."""
        return sum("tool" in case.needs for case in chosen) if self.tool is not None else 0

    async def run(self, chosen: Sequence[Case], *, serial: bool = False) -> list[Verdict]:
        """All of these cases, in an order of our own, after `warm_up`. Returns: the verdicts, by number."""
        if self.calls(chosen):
            await self._try_tool(chosen)
        # A crowd may be refused what is over the limits, and takes it from whoever asks beside it.
        apart = [case for case in chosen if serial or case.alone or case.visitors > 1]
        together = [case for case in chosen if case not in apart]
        at_once = asyncio.Semaphore(AT_ONCE)

        async def one(case: Case) -> Verdict:
            async with at_once:
                return await self._case(case)

        verdicts = list(await asyncio.gather(*map(one, together)))
        # Word not seen: alone, whatever comes to the model belongs to it. Too late: alone, nothing else keeps it busy.
        missed = [n for n, one in enumerate(verdicts) if one.passed is Passed.COULD_NOT_RUN or _late(one)]
        if self.started is not None and await self._ended(verdicts) is not None:
            # One of the answers that did not end well ended the chatbot under all of them: alone, it shows which.
            missed = [n for n, verdict in enumerate(verdicts) if n in missed or not _well(verdict)]
            await self.started.again()
        for n in missed:
            verdicts[n] = await self._surely(together[n])
        for verdict in verdicts:
            self.told(verdict)
        for case in apart:
            verdict = await self._alone(case)
            verdicts.append(verdict)
            self.told(verdict)
        return sorted(verdicts, key=lambda verdict: verdict.case.number)

    async def _try_tool(self, chosen: Sequence[Case]) -> None:
        """Let the model call the tool once, to know whose it is: the chatbot's, or its visitor's to go on with."""
        self.model.play(scripts(tuple(chosen), self.tool))
        before = len(self.model.requests)
        async with Visitor(self.url, self.preset, headers=self.headers, stop=self.stop) as visitor:
            (heard,) = visitor.ask("Please say warmuptool")
            await visitor.end(heard)
        went_on = any(one.script == "warmuptool" and one.turn for one in self.model.requests[before:])
        # A visitor who is shown the call and no second turn may run it, or ask to go on, in the page's own code.
        if went_on or not any(isinstance(event, ToolCalled) for _, event in heard.events):
            self._claims |= {"tool-run"}

    async def _alone(self, case: Case) -> Verdict:
        """By itself; where it needs a clock and fails, again, until it is sure."""
        verdict = await self._surely(case)
        tries = 1
        while verdict.passed is Passed.FAILED and case.alone and tries < self.tries:
            verdict = await self._surely(case)
            tries += 1
        return verdict

    async def _surely(self, case: Case) -> Verdict:
        """By itself; a chatbot that it ends has failed it, and is started again for the next."""
        verdict = await self._case(case, alone=True)
        if verdict.passed is Passed.PASSED and verdict.seen is not None and not verdict.seen.requests:
            # Perhaps an answer that goes on for nobody kept the place in a queue: Gradio answers one by one.
            await self._quiet()
            verdict = await self._case(case, alone=True)
        if self.started is None or (status := await self._ended([verdict])) is None:
            return verdict
        problem = f"the chatbot ended by itself (status {status}) and took all its visitors' answers with it"
        notes = (*verdict.notes, self.started.last_words())
        await self.started.again()
        return replace(verdict, passed=Passed.FAILED, problems=(problem, *verdict.problems), notes=notes)

    async def _quiet(self) -> None:
        """Wait until the model has said all that it is at; not for ever."""
        until = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < until and any(one.ended is None for one in self.model.requests):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _ended(self, verdicts: Sequence[Verdict]) -> int | None:
        """The status with which the chatbot has ended by itself; a process takes its time to die of an error."""
        until = time.monotonic() + (_DYING_SECONDS if not all(map(_well, verdicts)) else 0.0)
        while self.started is not None and self.started.status is None and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # another process's end tells nobody
        return self.started.status if self.started is not None else None

    async def _case(self, case: Case, *, alone: bool = False) -> Verdict:
        if case.needs - self._claims:
            return judge(case, Seen(), self._claims)
        for patience in _CALM_SECONDS:
            await asyncio.sleep(patience)
            async with _lag() as lag:
                seen = await self._visit(case, alone=alone)
            verdict = judge(case, seen, self._claims)
            for heard in itertools.chain.from_iterable(seen.heard.values()):
                heard.forget()
            if not case.alone or lag() <= max(_LAG_SECONDS, _clock(case) / 4):
                return verdict
        return replace(verdict, passed=Passed.NOT_JUDGED, reason="this machine was too busy to measure time")

    async def _visit(self, case: Case, *, alone: bool) -> Seen:
        for gate in case.gates:
            self.model.hold(f"{case.word}.{gate}")
        began = len(self.model.requests)
        seen = Seen(tool=self.tool)
        async with contextlib.AsyncExitStack() as stack:
            visitors = [
                await stack.enter_async_context(
                    Visitor(self.url, self.preset, headers=self.headers, stop=self.stop, slow=case.slow)
                )
                for _ in range(case.visitors)
            ]
            watching = asyncio.create_task(self._open_gates(case, visitors, seen))
            try:
                if case.visitors > 1:
                    await _ask_together(case, visitors, seen)
                else:
                    await self._act(case, visitors[0], seen, began)
            finally:
                watching.cancel()
                await asyncio.wait({watching})
                for gate in case.gates:
                    self.model.release(f"{case.word}.{gate}")
            await asyncio.sleep(_SETTLE_SECONDS)
            await self._seen(case, seen, began, alone=alone)
        return seen

    async def _act(self, case: Case, visitor: Visitor, seen: Seen, began: int) -> None:
        heard: Heard | None = None
        for act in case.visit:
            match act.what:
                case "ask":
                    asked = visitor.ask(case.question(act.on), act.times, resumable=act.resumable)
                    seen.heard[act.on] = asked
                    heard = asked[0]
                case "wait":
                    if heard is not None:
                        await visitor.until_sent(heard)
                    await asyncio.sleep(act.seconds)
                case "turn" | "said":
                    await self._until_model(case, act, began)
                case _:
                    assert heard is not None, f"case {case.number} acts before it asks"
                    heard = await _go_on(case, act, visitor, heard, seen)

    async def _until_model(self, case: Case, act: Act, began: int) -> None:
        """Wait until the model has got, or has answered, so many requests of this case; not for ever."""
        until = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < until:
            asked = [one for one in self.model.requests[began:] if one.script == case.word]
            if act.what == "said":
                asked = [one for one in asked if one.done_at is not None]
            if len(asked) >= act.number:
                return
            await asyncio.sleep(0.01)

    async def _open_gates(self, case: Case, visitors: Sequence[Visitor], seen: Seen) -> None:
        """Open each gate once every visitor has the text before it, or has not got it in time."""
        seconds = LATE_SECONDS if len(visitors) == 1 else _MANY_LATE_SECONDS
        for gate, before in case.gates.items():
            name = f"{case.word}.{gate}"
            try:
                await self.model.wait_gate(name, timeout=ANSWER_SECONDS)  # the model has said what stands before
            except TimeoutError:
                return  # it was never asked, or left before
            asked = zip(visitors, seen.heard[""], strict=False)
            texts = (before.replace("{own}", own_word(n)) for n in range(1, len(visitors) + 1))
            there = await asyncio.gather(
                *(visitor.until(heard, text, seconds) for (visitor, heard), text in zip(asked, texts, strict=False))
            )
            if missing := there.count(False):
                seen.late[gate] = missing
            self.model.release(name)

    async def _seen(self, case: Case, seen: Seen, began: int, *, alone: bool) -> None:
        words = {case.word + ending for ending in case.played(self.tool)}

        def asked() -> list[Received]:
            return [one for one in self.model.requests[began:] if one.script in words]

        def going() -> bool:
            return not asked() or any(one.ended is None for one in asked())

        if case.expect.cancelled is not None and seen.stopped_at is not None:
            # A model that nobody told runs on: it is given the time it may take, and a little. Where a tool may run,
            # all of it: what it returns could make the model go on.
            until = seen.stopped_at + case.expect.cancelled + 0.2
            runs = "tool" in case.needs
            while time.monotonic() < until and (runs or going()):  # noqa: ASYNC110 - many
                await asyncio.sleep(0.02)
        seen.requests = asked()
        if alone:
            seen.helpers = [one for one in self.model.requests[began:] if one.script == "motamot-unknown"]


async def _ask_together(case: Case, visitors: Sequence[Visitor], seen: Seen) -> None:
    """Each visitor asks its own question, in the same moment, and reads to the end."""
    seen.heard[""] = [
        visitor.ask(case.question(ending))[0] for visitor, ending in zip(visitors, case.played(), strict=True)
    ]
    await asyncio.gather(*(visitor.end(heard) for visitor, heard in zip(visitors, seen.heard[""], strict=True)))


async def _go_on(case: Case, act: Act, visitor: Visitor, heard: Heard, seen: Seen) -> Heard:
    """Do what is done with an answer. Returns: the answer that is read from here on."""
    match act.what:
        case "until":
            await visitor.until(heard, act.on)
        case "end":
            for one in next(asked for asked in seen.heard.values() if heard in asked):
                await visitor.end(one)
        case "stop":
            seen.stopped_at = time.monotonic()
            await visitor.stop(heard, act.on)
        case "leave":
            seen.stopped_at = time.monotonic()
            await visitor.leave(heard)
        case "resume":
            heard = await visitor.resume(heard)
            seen.heard[""] = [heard]
        case other:
            raise ValueError(f"case {case.number}: a visitor cannot {other!r}")
    return heard


def _clock(case: Case) -> float:
    """The seconds that this case measures; 0 where it is not one of those that say."""
    if case.expect.cancelled is not None:
        return case.expect.cancelled
    return _MANY_LATE_SECONDS if case.gates and case.visitors > 1 else 0.0


def _late(verdict: Verdict) -> bool:
    """Whether its text, or its end, did not come in time."""
    if verdict.seen is None:
        return False
    return bool(verdict.seen.late) or any(one.timed_out for asked in verdict.seen.heard.values() for one in asked)


def _well(verdict: Verdict) -> bool:
    """Whether all its answers that were read to their end came to a good one."""
    if verdict.passed is Passed.COULD_NOT_RUN:
        return False
    heard = [one for asked in (verdict.seen.heard if verdict.seen else {}).values() for one in asked]
    return all(one.whole or one.left for one in heard)


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
