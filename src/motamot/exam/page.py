"""A visitor of a page in a real browser: asks, hears the wire, and reads what the page shows of it.

The wire is heard at the browser's network layer (`exam/wire.py`), what is shown by a script in the page (`page.js`),
both with times. What to make of the two is for `exam/compare.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from motamot.errors import MotamotError
from motamot.exam.browser import opened
from motamot.exam.hands import FIND_SECONDS, FRAMES, STEP_SECONDS, Hands
from motamot.exam.wire import RECONNECT_SECONDS, Stream, Wire, asks_anew, same_requests
from motamot.tape import Tape

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Frame, Page

__all__ = ["Heard", "Look", "Plan", "visit"]

CANDIDATES = 40  # elements of a page that may hold the answer
POST_BYTES = 1_000_000  # of a request's body: two requests are told apart by it
PLAIN_SECONDS = 3  # a POST whose answer is no stream is taken for the chat's if no stream has begun by then
LOAD_SECONDS = 15  # for all that a page has in it; then it is used as it is
WINDOWS = 5  # of one page; more are closed
USUAL = 3  # dialogs, windows, or moves elsewhere, that need no word
QUIET_SECONDS = 20  # a stream that stays open and says nothing for so long has said all it had to say
SETTLE_SECONDS = (0.7, 4.0)  # after an answer's end: as long as the page must not change, and no longer than this


@dataclass(frozen=True, slots=True)
class Look:
    """An element of the page that may hold an answer. where: it, as a selector would name it; text: as laid out.

    samples: seconds since the epoch, and the characters it held then.
    """

    where: str
    text: str
    samples: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One answer: what came over the wire, and what the page showed when it had ended.

    began:    seconds since the epoch at which it was asked for.
    asked:    how many times the page asked for the same answer, where one question was put.
    streamed: its content type is one of streams.
    looks:    the elements that changed since, those that grew most first; the one that was named where one was. ()
              where the answer had not ended, or the page was gone.
    totals:   samples of all of the page's text together.
    named:    the place of the answer was named, and not looked for.
    unfit:    nothing on the page fits that name.
    """

    tape: Tape
    began: float
    asked: int = 1
    streamed: bool = True
    looks: tuple[Look, ...] = ()
    totals: tuple[tuple[float, int], ...] = ()
    named: bool = False
    unfit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the visitor does.

    sends:   typed and sent, one after the other, each when the answer before has ended. (): somebody chats by hand,
             or the page asks by itself.
    into:    selector of the place to type in; None for the only one there is.
    button:  selector of what sends; None for the Enter key.
    answer:  selector of answers, the last of which is read; None to look for what grows as the wire does.
    opens:   selector of what opens the chat; None for the only button that says it opens something, where there is no
             place to type in.
    window:  a window that somebody can chat in; it ends when it is closed, or when `stop` is set.
    seconds: that one answer may take.
    """

    sends: tuple[str, ...] = ()
    into: str | None = None
    button: str | None = None
    answer: str | None = None
    opens: str | None = None
    window: bool = False
    seconds: float = 120


async def visit(url: str, plan: Plan, *, stop: asyncio.Event, tell: Callable[[str], None]) -> list[Heard]:
    """Visit a page, and hear its answers.

    stop: set to end it; what was heard by then is returned. tell: is given what is going on, a sentence at a time.
    Raises: BrowserMissing; MotamotError where the page cannot be opened or asked; InvalidRequest for a selector that
            is none, or finds nothing.
    """
    async with opened(window=plan.window) as browser:
        from playwright.async_api import Error

        context = await browser.new_context(no_viewport=plan.window or None, accept_downloads=plan.window)
        async with _visitor(context, plan, stop, tell) as visitor:
            try:
                await visitor.open(url)
                if plan.sends:
                    for text in plan.sends:
                        if not stop.is_set():
                            await visitor.ask(text)
                elif plan.window:
                    await visitor.watch()
                else:
                    await visitor.hear_one()
            except Error as error:
                if not visitor.gone:
                    told = f"the page could not be visited{visitor.odd()}"
                    raise MotamotError(told, detail=_first(error.message)) from error
            except MotamotError as error:
                error.message += visitor.odd()
                raise
            return await visitor.heard_all()


@contextlib.asynccontextmanager
async def _visitor(
    context: BrowserContext, plan: Plan, stop: asyncio.Event, tell: Callable[[str], None]
) -> AsyncIterator[_Visitor]:
    await context.add_init_script((resources.files("motamot.exam") / "page.js").read_text("utf-8"))
    page = await context.new_page()
    hands = Hands(context, page, plan.into, plan.button, plan.answer, plan.opens)
    visitor = _Visitor(context, page, hands, plan, stop, tell)
    page.on("close", lambda _: visitor.left())
    context.on("dialog", lambda dialog: visitor.do(visitor.dismiss(dialog)))
    context.on("page", lambda other: visitor.do(visitor.opened(other)))
    page.on("framenavigated", lambda frame: visitor.do(visitor.went(frame)))
    await visitor.attach(page)
    try:
        yield visitor
    finally:
        await visitor.close()


@dataclass(slots=True)
class _Visitor:
    context: BrowserContext
    page: Page
    hands: Hands
    plan: Plan
    stop: asyncio.Event
    tell: Callable[[str], None]
    gone: bool = False
    late: bool = False  # an answer has had all of its time
    heard: list[Heard] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _frames: set[Frame] = field(default_factory=set)
    _odd: Counter[str] = field(default_factory=Counter)  # what a page may do once, and does not go on to do

    # --- the network

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """What an event of the browser leads to; the browser may be gone by then."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # of a page or frame that is gone: nothing more is heard of it

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def left(self) -> None:
        self.gone = True
        self.stop.set()

    async def attach(self, page: Page) -> None:
        """Hear the network of a page."""
        await self._listen(await self.context.new_cdp_session(page))

    async def opened(self, page: Page) -> None:
        """A window that the page opened: heard, too, unless it opens one after the other."""
        self._odd["opened {} windows"] += 1
        if len(self.context.pages) > WINDOWS and not self.plan.window:
            await page.close()
        else:
            await self.attach(page)

    async def dismiss(self, dialog: Dialog) -> None:
        """No visitor is there to press anything."""
        self._odd["showed {} dialogs"] += 1
        await dialog.dismiss()

    async def went(self, frame: Frame) -> None:
        """Hear a frame that has a process of its own, as a widget of another site has."""
        if frame.parent_frame is None:
            self._odd["went elsewhere {} times"] += 1
            return
        if frame in self._frames or len(self._frames) > FRAMES:
            return
        session = await self.context.new_cdp_session(frame)  # refused where it shares its page's
        self._frames.add(frame)
        await self._listen(session)

    async def _listen(self, session: CDPSession) -> None:
        async def send(method: str, given: dict[str, Any]) -> Mapping[str, Any]:
            told: Mapping[str, Any] = await session.send(method, given)
            return told

        wire = Wire(send, self.streams)
        session.on("Network.requestWillBeSent", wire.request_will_be_sent)
        session.on("Network.responseReceived", lambda event: self.do(wire.response_received(event)))
        session.on("Network.dataReceived", wire.data_received)
        session.on("Network.loadingFinished", lambda event: self.do(wire.loading_finished(event)))
        session.on("Network.loadingFailed", wire.loading_failed)
        await session.send("Network.enable", {"maxPostDataSize": POST_BYTES})

    def odd(self) -> str:
        """What the page did again and again, as the end of a sentence: it may be why it could not be visited."""
        told = [what.format(times) for what, times in self._odd.items() if times > USUAL]
        return f"; it {' and '.join(told)}" if told else ""

    # --- the page

    async def open(self, url: str) -> None:
        from playwright.async_api import Error

        try:
            response = await self.page.goto(url, wait_until="domcontentloaded", timeout=self.plan.seconds * 1000)
        except Error as error:
            raise MotamotError(f"the page {url} cannot be opened", detail=_first(error.message)) from error
        with contextlib.suppress(Error):  # an image that never ends holds nobody up
            await self.page.wait_for_load_state("load", timeout=LOAD_SECONDS * 1000)
        if response is not None and response.status >= 400 and not self.plan.window:
            login = ": it wants a login; chat in a window, where you can log in (without --send and --headless)"
            wants = login if response.status in (401, 403) else ""
            raise MotamotError(f"the page {url} answered {response.status} {response.status_text}".rstrip() + wants)

    async def ask(self, text: str) -> None:
        """Type, send, and hear the answer to its end."""
        box = await self.hands.box()
        asked_at = time.time()
        for stream in self.streams:
            stream.note()  # what comes on it from here on belongs to this question
        await self.hands.send(box, text)
        self.tell(f"asked: {text}")
        if not await self._answered(asked_at) and not self.stop.is_set():
            hint = "; if Enter does not send there, name the button: --button SELECTOR" if not self.plan.button else ""
            raise MotamotError(f"the page asked nothing within {FIND_SECONDS} s of the question{hint}")
        await self._note(one_question=True)

    async def hear_one(self) -> None:
        """Hear what a page asks by itself."""
        if not await self._answered(time.time()) and not self.stop.is_set():
            raise MotamotError(
                f"the page asked nothing by itself within {FIND_SECONDS} s: say what to send (--send TEXT --into "
                "SELECTOR), or chat by hand in a window"
            )
        await self._note(one_question=True)

    async def watch(self) -> None:
        """Hear all answers until the window is closed or `stop` is set."""
        while not self.stop.is_set():
            await asyncio.sleep(STEP_SECONDS)
            answers = self._answers()
            if answers and self._all_said() and await self._settled():
                await self._note(one_question=False)
                self.tell(f"heard {len(self.heard)} {'answer' if len(self.heard) == 1 else 'answers'}")

    async def heard_all(self) -> list[Heard]:
        """All answers, with those that had not ended when the visit did."""
        if self._answers():
            await self._note(one_question=False)
        return self.heard

    # --- the end of an answer

    def _news(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.news]

    def _answers(self) -> list[Stream]:
        """What may be an answer of what is new: streams begun for it, else one that goes on, else whole documents."""
        streams = [stream for stream in self._news() if stream.streams]
        fresh = [stream for stream in streams if stream.fresh]
        return fresh or streams or [stream for stream in self._news() if _is_document(stream)]

    def _said(self, stream: Stream) -> bool:
        """It has ended, or stays open and has said nothing for long."""
        if not stream.open:
            lasts = RECONNECT_SECONDS if stream.kind == "EventSource" and stream.end != "left" else 0.0
            return time.time() - stream.wall(stream.ended_at or 0.0) >= lasts
        return bool(stream.tape().pieces) and time.time() - stream.wall(stream.last_at) > QUIET_SECONDS

    def _all_said(self) -> bool:
        """The answers have, and no request waits for its response; behind a stream's end, not for ever."""
        answers = self._answers()
        ends = [stream.wall(stream.last_at) for stream in answers if stream.streams]
        waiting = any(stream.status is None and stream.open for stream in self._news())
        if waiting and time.time() - max(ends, default=time.time()) < PLAIN_SECONDS:
            return False
        return all(map(self._said, answers))

    async def _answered(self, asked_at: float) -> bool:
        """Wait for the end of what was asked. Returns: whether anything was asked at all."""
        deadline = asked_at + self.plan.seconds
        while not self.stop.is_set():
            answers = self._answers()
            # What is no stream may be something else that the page tells its server while somebody types; or the
            # answer comes on a stream that has been open all along.
            others = any(stream.streams and stream.open for stream in self.streams)
            patience = QUIET_SECONDS if others else PLAIN_SECONDS
            sure = any(stream.streams for stream in answers) or time.time() - asked_at > patience
            if answers and sure and self._all_said() and await self._settled():
                return True
            if time.time() > deadline:
                self.late = True
                return bool(answers)
            if not self._news() and time.time() - asked_at > FIND_SECONDS:
                return False
            await asyncio.sleep(STEP_SECONDS)
        return bool(self._news())

    async def _settled(self) -> bool:
        least, most = SETTLE_SECONDS
        ends = [stream.wall(stream.ended_at or stream.last_at) for stream in self._answers()]
        ended = max(ends, default=0.0)
        if time.time() - ended < least:
            return False
        quiet = [told for told in await self.hands.ask_pages("quiet()") if isinstance(told, int | float)]
        return time.time() - ended > most or min(quiet, default=0.0) >= least * 1000

    # --- what is shown

    async def _note(self, *, one_question: bool) -> None:
        """Make something of what is new."""
        answers = self._answers()
        looks, totals = await self._looks(min((stream.began for stream in answers), default=0.0))
        for group in same_requests(answers, one_question=one_question):
            told = max(group, key=lambda stream: (stream.status == 200, len(stream.tape().body)))
            said, named = self._said(told), self.plan.answer is not None
            tape = told.tape()
            if self.late and told.open:
                note = f"It had not ended after {self.plan.seconds:g} s, and was left."  # as a recorder says it
                tape = replace(tape, notes=(*tape.notes, note))
            self.heard.append(
                Heard(
                    tape=tape,
                    began=told.began,
                    asked=max(1, sum(map(asks_anew, group))),
                    streamed=told.streams,
                    looks=looks if said else (),  # in the middle, the page is behind the wire by right
                    totals=totals,
                    named=named,
                    unfit=named and said and not looks and not self.gone,
                )
            )
        self.late = False
        for stream in self.streams:
            stream.note()

    async def _looks(self, since: float) -> tuple[tuple[Look, ...], tuple[tuple[float, int], ...]]:
        if self.gone:
            return (), ()
        call = "last(answer)" if self.plan.answer is not None else f"grown(since, {CANDIDATES})"
        told = await self.hands.ask_pages(call, since)
        looks = [
            Look(str(one["where"]), str(one["text"]), _samples(one["samples"]))
            for frame in told
            if isinstance(frame, dict)
            for one in frame["elements"]
        ]
        totals = [_samples(frame["totals"]) for frame in told if isinstance(frame, dict)]
        # Of several frames, the one whose text grew most: the others hold no chat.
        return tuple(looks), max(totals, key=lambda samples: samples[-1][1] if samples else 0, default=())


def _is_document(stream: Stream) -> bool:
    return stream.request.method == "POST" and stream.status is not None


def _samples(told: Any) -> tuple[tuple[float, int], ...]:
    return tuple((float(at) / 1000, int(length)) for at, length in told)


def _first(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0] if lines else ""
