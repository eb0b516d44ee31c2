"""Bring your own answer: an async generator of answer events takes the loop's place and keeps everything else."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from motamot.answer import AnswerEvent, Outcome, SurrogateJoiner, Text, TurnEnded, Usage
from motamot.exchange.books import Completion, Price
from motamot.exchange.exchange import Ending, Exchange
from motamot.exchange.loop import ModelAnswer, opening
from motamot.model.turn import Message, Turn, TurnRequest

__all__ = ["OwnAnswer", "OwnCompletion", "Question"]

Generator = Callable[["Question"], AsyncIterator[AnswerEvent]]


@dataclass(slots=True, kw_only=True)
class Question:
    """What an answer of your own is asked.

    message:      the question. visitor: who asks, as your `identify` named them, else the hash of their secret.
    conversation, exchange, assistant: ids, and the assistant's name.
    """

    message: str
    visitor: str
    conversation: str
    exchange: str
    assistant: str
    _exchange: Exchange
    _model_answer: ModelAnswer | None
    _price: Price
    _ending: Ending | None = field(default=None, init=False)
    _booked: list[AnswerEvent] = field(default_factory=list, init=False)
    _turns: int = field(default=0, init=False)

    async def history(self) -> list[Message]:
        """The conversation so far and this question, as a model is told of it (docs/design.md, outcomes)."""
        return await opening(self._exchange)

    async def model_answer(self) -> AsyncIterator[AnswerEvent]:
        """The answer of the assistant's own model, with its tools, booked as ever: yield it on where you like.

        If this answer ends badly (cut, filtered, failed), so does the exchange.
        """
        if self._model_answer is None:
            raise RuntimeError("this assistant has no model: give it one with upstream= or model=")
        queue: asyncio.Queue[Sequence[AnswerEvent] | None] = asyncio.Queue()
        answering = asyncio.ensure_future(self._model_answer(self._exchange, queue.put_nowait, before=self._turns))
        answering.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (events := await queue.get()) is not None:
                for event in events:
                    if isinstance(event, TurnEnded):
                        self._turns = event.turn
                        self._booked.append(event)
                    yield event
            self._ending = await answering
        finally:
            answering.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({answering})

    @contextlib.asynccontextmanager
    async def completion(self, model: str, *, prompt: str = "") -> AsyncIterator[OwnCompletion]:
        """Book one request to a model that you make yourself, or that a framework of yours makes.

            async with question.completion("small", prompt=question.message) as completion:
                async for piece in my_model(question.message):
                    completion.add(piece)
                    yield Text(piece)
                yield completion.done(usage=Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED))

        Its row is written before the block begins, and closed once however the block ends: with the usage that `done`
        was given; else, after a stop, a failure or a kill, with an estimate from `prompt` and what was added.

        model:  its name, as prices know it. prompt: all text that goes to it.
        Raises: StoreError: it cannot be booked, and must not be asked.
        """
        self._turns += 1
        row = Completion(self._exchange, turn=self._turns, attempt=1, model=model, price=self._price)
        await row.open(TurnRequest(messages=(Message(role="user", content=prompt),), max_tokens=0))
        completion = OwnCompletion(self, self._turns, row)
        row.watch(completion)
        try:
            yield completion
        except BaseException as error:
            if not completion.ended:
                going_down = isinstance(error, asyncio.CancelledError)  # a stop is the exchange's own ending
                row.given_up(Outcome.INTERRUPTED if going_down else Outcome.FAILED)
            raise
        if not completion.ended:
            completion.done()


class OwnCompletion:
    """A completion under way: add what comes, and say how it ended. Made by `Question.completion`."""

    def __init__(self, question: Question, turn: int, row: Completion) -> None:
        self._question = question
        self._turn = turn
        self._row = row
        self._pieces: list[str] = []
        self.first_delta_at: float | None = None
        self.ended = False

    def add(self, piece: str) -> None:
        """A piece of what the model generated: text, reasoning or a tool's arguments; what is paid for."""
        if not isinstance(piece, str):
            raise TypeError(f"a piece of an answer is text, not {type(piece).__name__}")
        if self.first_delta_at is None:
            self.first_delta_at = time.monotonic()
        self._pieces.append(piece)

    def done(self, finish: str = "stop", usage: Usage | None = None) -> TurnEnded:
        """Book it, and give the event to yield. finish: see `TurnEnded`. usage: as reported; without, an estimate.

        Raises: RuntimeError when it is done already.
        """
        if self.ended:
            raise RuntimeError("this completion is booked already")
        self.ended = True
        booked = self._row.close(Turn(finish=finish, text="".join(self._pieces), usage=usage, started=True))
        event = TurnEnded(turn=self._turn, finish=finish, usage=booked)
        self._question._booked.append(event)
        return event

    def snapshot(self) -> Turn:
        """What has come so far, for the books."""
        return Turn(finish="incomplete", text="".join(self._pieces), started=bool(self._pieces))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAnswer:
    """Answers an exchange with somebody's generator.

    Usage they report in a `TurnEnded` of their own is booked as a completion, when it comes; `Question.completion`
    books it before it is spent.
    """

    generator: Generator
    price: Price
    model_answer: ModelAnswer | None = None

    async def __call__(self, exchange: Exchange) -> Ending:
        """Emit what the generator yields. It is closed before this returns, also when cancelled."""
        begun = exchange.begun
        question = Question(
            message=begun.question,
            visitor=begun.visitor,
            conversation=begun.conversation,
            exchange=begun.id,
            assistant=begun.assistant,
            _exchange=exchange,
            _model_answer=self.model_answer,
            _price=self.price,
        )
        joiner = SurrogateJoiner()
        events = self.generator(question)
        if not hasattr(events, "__aiter__"):
            raise TypeError("@chat.answer takes an async generator function: async def with yield")
        try:
            async for event in events:
                if exchange.ending is not None:  # its cancellation was swallowed
                    break
                await self._take(exchange, question, event, joiner)
            if rest := joiner.close():
                exchange.emit([Text(rest)])
        finally:
            if (close := getattr(events, "aclose", None)) is not None:
                await close()
        return exchange.ending or question._ending or Ending(outcome=Outcome.COMPLETE)

    async def _take(self, exchange: Exchange, question: Question, event: object, joiner: SurrogateJoiner) -> None:
        match event:
            case Text():
                if text := joiner.feed(event.text):
                    exchange.emit([event if text is event.text else Text(text)])
            case TurnEnded():
                if event.usage is not None and not any(event is booked for booked in question._booked):
                    await self._book(exchange, event)
                exchange.emit([event])
            case AnswerEvent():
                exchange.emit([event])
            case _:
                kind = type(event).__name__
                raise TypeError(f"an answer yields answer events, as Text('…'); this one yielded {kind}")

    async def _book(self, exchange: Exchange, event: TurnEnded) -> None:
        completion = Completion(
            exchange, turn=event.turn, attempt=1, model=exchange.begun.model or "own", price=self.price
        )
        await completion.open(TurnRequest(messages=(), max_tokens=0))
        completion.close(Turn(finish=event.finish, usage=event.usage, started=True))
