"""One exchange: a task and an end of its own, outside any HTTP response."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from motamot.answer import (
    AnswerEvent,
    By,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Source,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Usage,
)
from motamot.errors import LimitExceeded, MotamotError, StoreError
from motamot.exchange.log import Batch, Log
from motamot.exchange.notes import Notes, ticks
from motamot.exchange.sources import Given, cited
from motamot.exchange.states import MOVES, Move, State
from motamot.limits import Limits
from motamot.model.turn import Message, ToolSpec, TurnRequest
from motamot.store.records import Checkpoint, ExchangeBegun, ExchangeEnded, ExchangeSent
from motamot.store.redaction import Redact
from motamot.store.store import Store

if TYPE_CHECKING:
    from motamot.exchange.books import Completion

__all__ = ["Answer", "Ending", "Exchange", "Follower", "Visible", "Wishes"]

_logger = logging.getLogger("motamot.exchange")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an exchange is to end. message: for the visitor; detail: for the operator."""

    outcome: Outcome
    code: Code | None = None
    message: str | None = None
    detail: str | None = None
    by: By | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """What a visitor may see beyond text, tool names and their status; by default nothing."""

    tool_arguments: bool = False
    tool_results: bool = False
    reasoning: bool = False
    trace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a client brings to an exchange where its protocol has no other way.

    past:     the history as the client keeps it; None where ours counts. followed: what came after the question.
    past_tokens: how much of that past is taken, the latest; None: all of it.
    system:   the caller's own instructions; they follow the assistant's.
    tools:    the caller's own tools: one turn is asked, its calls are returned, and nothing is run here.
    max_tokens: the caller's bound, beside ours. options: further fields of the request, checked.
    """

    past: tuple[Message, ...] | None = None
    past_tokens: int | None = None
    followed: tuple[Message, ...] = ()
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | dict[str, Any] | None = None
    max_tokens: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


Answer = Callable[["Exchange"], Awaitable[Ending]]
"""What answers: emits events into the exchange and says how it ended. Cancelled when the exchange is to end."""


class Exchange:
    """A running or ended exchange. Made by `Exchanges.begin`; use `follow` and `stop`.

    log, state and the numbers may be read at any time. opens: it is the first of its conversation.
    redact: what its texts go through before they are written.
    """

    def __init__(
        self,
        begun: ExchangeBegun,
        *,
        store: Store,
        limits: Limits,
        visible: Visible = Visible(),
        wishes: Wishes = Wishes(),
        marks: tuple[str, ...] = (),
        opens: bool = False,
        redact: Redact | None = None,
    ) -> None:
        self.begun = begun
        self.redact = redact
        self.began = time.monotonic()
        self.opens = opens
        self.store = store
        self.limits = limits
        self.visible = visible
        self.wishes = wishes
        self.marks = marks
        self.log = Log()
        self._most_characters = limits.answer_bytes // 4  # that many are surely within the limit
        self._most_events = limits.answer_events
        self.state = State.OPENING
        self.ended: Ended | None = None
        self.ending: Ending | None = None
        self.sent = 0  # number of the last event that a follower has handed on
        self.booked_sent = 0  # the same, as the books have it since the end
        self.seen: int | None = None  # the client's claim, clamped to `sent`
        self.usage = Usage(source=Source.REPORTED)  # the sum over the completions booked so far
        self.underway: Callable[[], Checkpoint | None] | None = None  # the completion under way, for checkpoints
        self.given_back: frozenset[str] = frozenset()  # calls of the client's own tools: it needs their arguments
        self.given: list[Given] = []  # the sources that the model has, whether it cites them or not
        self.resumable = False
        self.ended_at = 0.0  # on the monotonic clock
        self.booked: tuple[Completion, TurnRequest] | None = None  # with the question, and not taken up yet
        self._at_end: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._followers = 0
        self._resume_timer: asyncio.TimerHandle | None = None
        self._notes = Notes(self.began, limits.details_bytes)
        self._stop_asked: float | None = None  # on the monotonic clock
        self._gap: str | None = None  # what the text so far ends with, while a new turn's text is awaited
        self._marked = (0, 0)  # what the last checkpoint held: events, characters of text
        self._finished: asyncio.Event | None = None  # made for the first who waits: it takes a kilobyte

    @property
    def id(self) -> str:
        """Random; never a permission."""
        return self.begun.id

    @property
    def started(self) -> bool:
        """It is answered, or was."""
        return self.state is not State.OPENING

    # Life

    def start(self, answer: Answer) -> None:
        """Begin to answer. The exchange runs on by itself from here to its end."""
        self._move(Move.OPENED)
        begun = self.begun
        started = Started(
            exchange=begun.id, conversation=begun.conversation, assistant=begun.assistant, model=begun.model
        )
        self.log.append(started)
        self._task = asyncio.get_running_loop().create_task(self._run(answer), name=f"exchange {begun.id}")
        self._task.add_done_callback(self._surely_finished)

    async def _run(self, answer: Answer) -> None:
        try:
            ending = await answer(self)
        except asyncio.CancelledError:
            if self.ending is None:  # the loop itself is going down
                self.ending = Ending(outcome=Outcome.INTERRUPTED)
            ending = self.ending
        except MotamotError as error:
            ending = Ending(
                outcome=Outcome.FAILED, code=_failure(error), message=error.message, detail=error.detail or str(error)
            )
        except Exception as error:  # the answer's own fault: it may not leave the exchange without an end
            _logger.exception("the answer of exchange %s raised", self.id)
            ending = Ending(
                outcome=Outcome.FAILED,
                code=Code.UPSTREAM_ERROR,
                message="The assistant could not answer.",
                detail=f"{type(error).__name__}: {error}",
            )
        self.finish(self.ending or ending)

    def _surely_finished(self, _: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step never enters `_run`."""
        self._task = None  # what has ended is kept for long, and needs no task for that
        self.finish(self.ending or Ending(outcome=Outcome.INTERRUPTED))

    def finish(self, ending: Ending, *, closed: bool = True) -> None:
        """Write the end, once: into the log, and into the books. closed: what answered is over, and its upstream."""
        if self.ended is not None:
            return
        self._cancel_resume()
        self._move(Move.DONE)
        if self.booked is not None:  # ended before its answer's first step: the request never left
            self.booked[0].given_up(ending.outcome)
        upto = len(self.log.events)
        shown = self._cite(ending)
        self.ended = Ended(
            outcome=ending.outcome,
            code=ending.code,
            message=ending.message,
            by=ending.by,
            shown=shown,
            usage=self.usage,
            marks=self.marks,
        )
        hidden = (max(shown, 1) + 1, upto) if shown < upto else (0, 0)
        self._book_end(ending, shown, hidden, closed=closed)
        self.log.forget(shown, upto)  # whoever comes back sees what the transcript shows
        self.log.append(self.ended)
        self.log.close()
        del self.log.times[:]
        self.settle()

    def give(self, sources: Sequence[Cited]) -> None:
        """The model has these sources from now on: those that the text cites from here on are told at its end."""
        if sources:
            room = self.limits.sources_per_exchange - len(self.given)
            after = len(self.log.text())
            self.given += [Given(source, after) for source in sources[: max(room, 0)]]

    def _cite(self, ending: Ending) -> int:
        """Put the sources of what is shown behind it. Returns: the number of the last event that counts as shown."""
        shown = self._shown(ending)
        if self.given:
            # An answer of somebody's own may have told some itself.
            told = {event.url or event.title for event in self.log.events if isinstance(event, Cited)}
            for source in cited(self.log.text(shown), self.given):
                if (source.url or source.title) not in told:
                    self.log.append(source)
                    self._note(source, numbered=True)
            self.given = []
        return self._shown(ending)

    def _book_end(self, ending: Ending, shown: int, hidden: tuple[int, int], *, closed: bool) -> None:
        log, now = self.log, time.monotonic()
        since, characters = (0, 0) if self.redact is not None else self._marked
        first = next((at for at, event in zip(log.times, log.events, strict=False) if type(event) is Text), None)
        stopped = self._stop_asked
        ended = ExchangeEnded(
            id=self.id,
            ended_at=time.time(),
            outcome=ending.outcome,
            generated=log.text(),
            shown=log.text(shown),
            events=len(log.events) + 1,
            sent=self.sent,
            seen=self.seen,
            code=ending.code,
            by=ending.by,
            message=ending.message,
            detail=ending.detail,
            marks=self.marks,
            boundaries=log.boundaries(since, characters),
            whole=self.redact is not None,
            noted=self._notes.taken(),
            omitted=self._notes.omitted,
            hidden=hidden,
            times=ticks([*log.times, now], self.began),
            first_text=None if first is None else first - self.began,
            stop_asked=None if stopped is None else stopped - self.began,
            stop_closed=now - self.began if closed and stopped is not None else None,
        )
        log.aside = 0
        self.booked_sent = self.sent
        self.store.end(ended, redact=self.redact)

    def _book_sent(self, ended: Ended) -> None:
        """The last words are sent after the end is booked; of a stopped answer nothing more is."""
        since, self.booked_sent = self.booked_sent, max(self.booked_sent, self.sent)
        if ended.outcome in (Outcome.STOPPED, Outcome.ABANDONED):
            return
        if any(type(event) is Text for event in self.log.events[since : self.sent]):
            with contextlib.suppress(StoreError):  # closed meanwhile: the server is going down
                self.store.sent(ExchangeSent(id=self.id, sent=self.sent))

    def at_end(self, call: Callable[[], None]) -> None:
        """Call this once the exchange has ended."""
        self._at_end.append(call)

    def settle(self) -> None:
        """The end is in the log: tell everybody who waits for it."""
        self.ended_at = time.monotonic()
        if self._finished is not None:
            self._finished.set()
        for call in self._at_end:
            call()
        self._at_end.clear()

    @property
    def followed(self) -> bool:
        """Somebody is reading."""
        return self._followers > 0

    def _shown(self, ending: Ending) -> int:
        """Number of the last event that counts as shown: the row of docs/design.md's table of outcomes."""
        match ending.outcome:
            case Outcome.STOPPED:
                return self.sent if self.seen is None else self.seen
            case Outcome.ABANDONED:
                return self.sent
            case _:
                return len(self.log.events)

    async def end(self, ending: Ending) -> None:
        """Bring the exchange to an end; back when its upstream is closed and the end is in the log. Idempotent."""
        if self.ended is None and self.ending is None:
            self.begin_end(ending)
        if self._task is not None and self.ended is None:
            await asyncio.wait({self._task}, timeout=max(self.limits.stop_seconds, 1))
            if self.ended is None:  # an answer of somebody's own that swallows its cancellation: don't wait for it
                self.finish(self.ending or ending, closed=False)

    def begin_end(self, ending: Ending) -> None:
        """Decide how the exchange ends, and cancel the answer; the first decision stands."""
        if self.ended is not None or self.ending is not None:
            return
        self.ending = ending
        if ending.outcome is Outcome.STOPPED:
            self._stop_asked = time.monotonic()
        self._cancel_resume()
        self._move(Move.END)
        if self._task is not None:
            self._task.cancel()

    async def stop(self, *, seen: int | None = None, by: By = By.VISITOR) -> Ended:
        """Stop the model. Answered after the upstream is closed; stopping again, or what has ended, changes nothing.

        seen: number of the last event the client showed; clamped to what was sent.
        """
        if seen is not None and self.ended is None:
            self.seen = max(0, min(seen, self.sent))
        await self.end(Ending(outcome=Outcome.STOPPED, by=by))
        return await self.wait()

    async def wait(self) -> Ended:
        """The end, when it has come."""
        if not self.ended_at:
            self._finished = self._finished or asyncio.Event()
            await self._finished.wait()
        assert self.ended is not None
        return self.ended

    def _move(self, move: Move) -> None:
        self.state = MOVES[self.state, move]

    # Events in

    def emit(self, events: Sequence[AnswerEvent]) -> None:
        """Put events into the log the moment they are known. After the end they are dropped."""
        if self.ended is not None or self.ending is not None:
            return
        log = self.log
        if len(events) == 1 and type(event := events[0]) is Text and self._gap is None and event.text:
            log.append(event, len(event.text))  # the path of nearly every delta
        else:
            for event in events:
                admitted = self._admit(event)
                for one in admitted:
                    log.append(one, len(one.text) if isinstance(one, Text | Reasoning) else 0)
                if type(event) is not Text:
                    self._note(event, numbered=bool(admitted))
        if log.characters > self._most_characters or len(log.events) > self._most_events:
            self._check_limits()

    def _admit(self, event: AnswerEvent) -> list[AnswerEvent]:
        visible = self.visible
        match event:
            case Text():
                if not event.text:
                    return []
                return [event] if self._gap is None else self._after_gap(event)
            case Reasoning():
                return [event] if visible.reasoning and event.text else []
            case ToolCalled() if not visible.tool_arguments and event.id not in self.given_back:
                return [ToolCalled(id=event.id, name=event.name)]
            case ToolReturned() if not visible.tool_results:
                return [ToolReturned(id=event.id, name=event.name, status=event.status)]
            case Routed() if not visible.trace:
                return [Routed(agent=event.agent, confidence=event.confidence, method=event.method)]
            case TurnEnded():
                self._turn_over()
            case Started() | Ended():
                raise TypeError(f"{type(event).__name__} is the exchange's own event, an answer may not give it")
        return [event]

    def _note(self, event: AnswerEvent, *, numbered: bool) -> None:
        log = self.log
        at = log.times[-1] if numbered else time.monotonic()
        self._notes.add(event, after=len(log.events) - numbered, numbered=numbered, at=at)
        log.aside = self._notes.held

    def _turn_over(self) -> None:
        """From here on text belongs to another turn: two LF are to stand between it and the text before."""
        if self._gap is None:
            text = self.log.text()
            self._gap = text[len(text.rstrip("\r\n")) :] if text else None

    def _after_gap(self, event: Text) -> list[AnswerEvent]:
        """Only LF so far: wait for the first text that is more, so that none is added that the model sends itself."""
        assert self._gap is not None
        text = event.text
        leading = text[: len(text) - len(text.lstrip("\r\n"))]
        self._gap += leading
        if leading == text:
            return [event]
        missing = 2 - self._gap.count("\n")
        self._gap = None
        return [Text("\n" * missing), event] if missing > 0 else [event]

    def _check_limits(self) -> None:
        self._most_characters += max(self.limits.answer_bytes // 64, 1)  # counting is linear: not for every delta
        size = len(self.log.text().encode())
        if size > self.limits.answer_bytes or len(self.log.events) > self.limits.answer_events:
            message = "The answer grew longer than this assistant gives."
            detail = f"{size} bytes (answer_bytes), {len(self.log.events)} events (answer_events)"
            self.begin_end(Ending(outcome=Outcome.FAILED, code=Code.LIMIT, message=message, detail=detail))

    # Readers

    def follow(self, after: int = 0, *, resumable: bool = False) -> Follower:
        """Read the answer from behind event `after`. Close the follower when done: that is how leaving is noticed.

        resumable: the reader says that it can come back; believed where the exchange has a key to come back with.
        Raises:    LimitExceeded (`readers_per_exchange`).
        """
        if self._followers >= self.limits.readers_per_exchange:
            raise LimitExceeded(
                "this answer is being read too often already; close one of its pages",
                limit="readers_per_exchange",
                maximum=self.limits.readers_per_exchange,
                unit="readers",
            )
        self._followers += 1
        if resumable and self.begun.key is not None:
            self.resumable = True
        if self.state is State.UNWATCHED:
            self._move(Move.RETURNED)
            self._cancel_resume()
        return Follower(self, max(0, after))

    def left(self) -> None:
        """A follower has closed. When it was the last: the end, at once or after the resume window."""
        self._followers -= 1
        if self.ended is not None:
            self._book_sent(self.ended)
        if self._followers or self.ended is not None or self.ending is not None:
            return
        if not self.resumable:
            self.begin_end(Ending(outcome=Outcome.STOPPED, by=By.DISCONNECT))
            return
        if self.state is State.ANSWERING:
            self._move(Move.LEFT)
        self._resume_timer = asyncio.get_running_loop().call_later(
            self.limits.resume_seconds, self.begin_end, Ending(outcome=Outcome.ABANDONED)
        )

    def _cancel_resume(self) -> None:
        if self._resume_timer is not None:
            self._resume_timer.cancel()
            self._resume_timer = None

    # Checkpoints

    def checkpoint(self) -> Checkpoint | None:
        """What a killed process must not lose, or None where nothing has come since the last one."""
        since, characters = self._marked
        events = len(self.log.events)
        if self.ended is not None or events == since:
            return None
        if self.redact is not None:  # what it changes in the whole text may be anywhere
            since, characters = 0, 0
        boundaries = self.log.boundaries(since, characters)
        self._marked = (events, boundaries[-1][1] if boundaries else characters)
        underway = self.underway() if self.underway is not None else None
        return Checkpoint(
            exchange=self.id,
            text=self.log.text(),
            sent=self.sent,
            boundaries=boundaries,
            completion=underway.completion if underway else None,
            completion_tokens=underway.completion_tokens if underway else 0,
            prompt_tokens=underway.prompt_tokens if underway else 0,
            whole=self.redact is not None,
        )


class Follower:
    """One reader of an exchange. Not for two tasks at once."""

    def __init__(self, exchange: Exchange, after: int) -> None:
        self.exchange = exchange
        self.number = min(after, len(exchange.log.events))  # of the last event given out
        self.over = False  # nothing comes any more
        self._given = 0
        self._nudged = False
        self._closed = False

    async def next(self) -> Batch:
        """The events that have come since, with their numbers; empty when it is `over`, or after a `nudge`.

        Asking for more says that what was given before has been sent.
        """
        if self._given and not self._closed:  # of what was given to one that then left, nobody knows
            self.delivered(self._given)
        log = self.exchange.log
        while not self._closed:
            if len(log.events) > self.number and (batch := log.after(self.number)):
                self.number = self._given = batch[-1][0]
                return batch
            if log.closed:
                self.over = True
                return []
            if self._nudged:
                self._nudged = False
                return []
            await log.changed()
        self.over = True
        return []

    @property
    def closed(self) -> bool:
        """The reader is gone."""
        return self._closed

    @property
    def behind(self) -> bool:
        """Something has come that was not given out yet."""
        return self.number < len(self.exchange.log.events)

    @property
    def at_end(self) -> bool:
        """The answer is over, and all of it was given out."""
        return self.exchange.log.closed and not self.behind

    def nudge(self) -> None:
        """Let `next` return though nothing has come: its caller wants to write a heartbeat."""
        self._nudged = True
        self.exchange.log.wake()

    def delivered(self, number: int) -> None:
        """Events up to `number` have been sent. Only what was given out here can have been."""
        exchange = self.exchange
        if exchange.sent < number <= self._given:
            exchange.sent = number

    def close(self) -> None:
        """The reader is gone; a `next` that waits returns. Idempotent."""
        if not self._closed:
            self._closed = True
            self.exchange.log.wake()
            self.exchange.left()

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _failure(error: MotamotError) -> Code:
    return Code(error.code) if error.code in list(Code) else Code.UPSTREAM_ERROR
