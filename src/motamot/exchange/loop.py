"""The loop over turns: stream a turn, pass its deltas on as they come, run the tools it asked for, next turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from motamot.answer import Code, Outcome, ToolCalled, ToolReturned, TurnEnded
from motamot.errors import UpstreamError
from motamot.exchange.books import Completion, Price
from motamot.exchange.exchange import Ending, Exchange
from motamot.exchange.history import conversation, merged, recent
from motamot.exchange.sources import Library, Sourced
from motamot.exchange.tools import Tool, ToolContext, ToolResult, run_tool
from motamot.model import retries
from motamot.model.turn import Emit, Message, Model, ToolCall, Turn, TurnRequest
from motamot.store.records import CompletionOpened, ExchangeRow

__all__ = ["ModelAnswer", "opening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """Answers an exchange with a model and its tools: exactly one completion per turn, no probe.

    extra:    further fields of each request. price: cost of a usage, None where unknown.
    fallback: answers, marked, where the model could not even be asked.
    library:  what the assistant knows from pages; left aside where a caller's own tools take the place of its own.
    """

    model: Model
    price: Price
    system: str | None = None
    tools: Sequence[Tool] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    fallback: Model | None = None
    library: Library | None = None

    async def __call__(self, exchange: Exchange, emit: Emit | None = None, *, before: int = 0) -> Ending:
        """Answer `exchange`, and say how it ended. Events go into its log, or to `emit` where it is given.

        before: turns that somebody's own answer has had already.
        """
        emit = emit or exchange.emit
        limits, wishes = exchange.limits, exchange.wishes
        booked, exchange.booked = exchange.booked, None
        completion, request = booked or (None, await self._asked(exchange))
        messages = request.messages
        for number in range(1, limits.max_turns + 1):
            turn = await self._turn(exchange, emit, before + number, request, self.model, completion)
            completion = None
            if number == 1 and self.fallback is not None and turn.error is not None and not turn.started:
                return await self._fall_back(exchange, emit, before + 2, request, turn.error)
            calls = turn.tool_calls if turn.finish == "tool_calls" else ()
            if not calls:
                return _ending(turn)
            if wishes.tools:  # the caller runs them, and asks again with their results
                exchange.given_back |= {call.id for call in calls}
                emit([ToolCalled(id=call.id, name=call.name, arguments=call.arguments) for call in calls])
                return Ending(outcome=Outcome.COMPLETE)
            if len(calls) > limits.tool_calls_per_turn:
                return _budget(f"one turn asked for {len(calls)} tool calls (tool_calls_per_turn)")
            asked = Message(role="assistant", content=turn.text, tool_calls=calls)
            messages = [*messages, asked, *await self._run_tools(exchange, emit, calls)]
            request = replace(request, messages=messages)
        return _budget(f"still asking for tools after {limits.max_turns} turns (max_turns)")

    def first(self, exchange: Exchange) -> CompletionOpened | None:
        """The completion that the exchange begins with, to be booked with its question.

        Returns: None where the conversation's past, or what the pages say, must be read before. What is prepared is
        left in `exchange.booked`.
        """
        reads_first = self.library is not None and self.library.reads_first
        if reads_first or (not exchange.opens and exchange.wishes.past is None):
            return None
        request = self._request(exchange, _opening(exchange, self._instructions(exchange), ()))
        completion = self._completion(exchange, 1, 1, self.model)
        exchange.booked = completion, request
        return completion.row(request)

    async def _asked(self, exchange: Exchange) -> TurnRequest:
        """The first request, with what must be read for it."""
        library, background = self.library, None
        if (
            library is not None
            and library.reads_first
            and (background := await library.look_up(exchange.begun.question))
        ):
            exchange.give(background.sources)
        messages = await opening(exchange, self._instructions(exchange), background)
        return self._request(exchange, messages)

    def _instructions(self, exchange: Exchange) -> str | None:
        library = self.library
        if library is None or (exchange.wishes.tools and not library.reads_first):
            return self.system
        return "\n\n".join(part for part in (self.system, library.instructions()) if part)

    def _request(self, exchange: Exchange, messages: Sequence[Message]) -> TurnRequest:
        limits, wishes = exchange.limits, exchange.wishes
        return TurnRequest(
            messages=messages,
            max_tokens=min(limits.max_tokens, wishes.max_tokens or limits.max_tokens),
            tools=wishes.tools or [tool.spec for tool in self.tools],
            tool_choice=wishes.tool_choice,
            extra={**self.extra, **wishes.options},
        )

    def _completion(self, exchange: Exchange, number: int, attempt: int, model: Model) -> Completion:
        free = model.origin == "recorded"
        return Completion(exchange, turn=number, attempt=attempt, model=model.name, price=self.price, free=free)

    async def _fall_back(
        self, exchange: Exchange, emit: Emit, number: int, request: TurnRequest, why: UpstreamError
    ) -> Ending:
        assert self.fallback is not None
        exchange.marks = (*exchange.marks, *self.fallback.marks)
        ending = _ending(await self._turn(exchange, emit, number, replace(request, tools=()), self.fallback))
        return replace(ending, message=ending.message or why.message, detail=why.detail)

    async def _turn(
        self,
        exchange: Exchange,
        emit: Emit,
        number: int,
        request: TurnRequest,
        model: Model,
        booked: Completion | None = None,
    ) -> Turn:
        """One turn: one completion, or more attempts where none surely started. Each is a row of the ledger.

        booked: the first one, where its row is written.
        """
        waited = 0.0
        attempts = 0
        while True:
            attempts += 1
            completion = booked or self._completion(exchange, number, attempts, model)
            if booked is None:
                await completion.open(request)
            booked = None
            turn = await _complete(emit, model, completion, request)
            usage = completion.close(turn)
            delay = None
            if turn.error is not None and not turn.started:
                delay = retries.delay(turn.error, attempts, waited, exchange.limits)
            if delay is None:
                emit([TurnEnded(turn=number, finish=turn.finish, usage=usage)])
                return turn
            waited += delay
            await asyncio.sleep(delay)

    async def _run_tools(self, exchange: Exchange, emit: Emit, calls: Sequence[ToolCall]) -> list[Message]:
        """Run the calls side by side, and give the model their results in the order of the calls."""
        begun = exchange.begun
        context = ToolContext(
            visitor=begun.visitor, exchange=begun.id, conversation=begun.conversation, assistant=begun.assistant
        )
        emit([ToolCalled(id=call.id, name=call.name, arguments=call.arguments) for call in calls])

        async def run(call: ToolCall) -> ToolResult:
            result = await run_tool(self.tools, call, context, exchange.limits)
            emit([ToolReturned(id=call.id, name=call.name, status=result.status, result=result.content)])
            return result

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(call)) for call in calls]
        for task in tasks:
            exchange.give(task.result().sources)
        return [
            Message(role="tool", content=task.result().content, tool_call_id=call.id)
            for call, task in zip(calls, tasks, strict=True)
        ]


async def opening(exchange: Exchange, system: str | None = None, background: Sourced | None = None) -> list[Message]:
    """The messages that open an exchange: instructions, the past that fits, the question.

    background: what stands before the question, in the same message.
    """
    begun = exchange.begun
    # A conversation's first question has no past to look for: a tenth of what a request costs.
    known = exchange.opens or exchange.wishes.past is not None
    rows = () if known else await exchange.store.history(begun.conversation, begun.visitor)
    return _opening(exchange, system, rows, background)


def _opening(
    exchange: Exchange, system: str | None, rows: Sequence[ExchangeRow], background: Sourced | None = None
) -> list[Message]:
    """rows: the conversation so far, where the client does not keep it."""
    begun, wishes = exchange.begun, exchange.wishes
    asked = f"{background.content}\n\n{begun.question}" if background is not None else begun.question
    instructions = "\n\n".join(part for part in (system, wishes.system) if part) or None
    if wishes.past is not None:
        past: Sequence[Message] = wishes.past
        if wishes.past_tokens is not None:
            past = recent(past, tokens=wishes.past_tokens, count=exchange.store.estimate(begun.model))
        first = [Message(role="system", content=instructions)] if instructions else []
        question = Message(role="user", content=asked)
        return merged([*first, *past, question, *wishes.followed])
    return conversation(
        [row for row in rows if row.id != begun.id and row.id != begun.replaces],
        asked,
        system=instructions,
        tokens=exchange.limits.history_tokens,
        count=exchange.store.estimate(begun.model),
    )


async def _complete(emit: Emit, model: Model, completion: Completion, request: TurnRequest) -> Turn:
    """One upstream request, whose row is written. Whatever happens, the row is closed."""
    try:
        named = {**request.headers, "X-Client-Request-Id": completion.id}
        attempt = model.attempt(replace(request, headers=named))
        completion.watch(attempt)
        return await attempt.run(emit)
    except BaseException as error:
        going_down = isinstance(error, asyncio.CancelledError)
        completion.given_up(Outcome.INTERRUPTED if going_down else Outcome.FAILED)
        raise


def _ending(turn: Turn) -> Ending:
    error = turn.error
    if error is not None or turn.finish in ("error", "incomplete"):
        cut = turn.finish == "incomplete"
        code = Code(error.code) if error else Code.UPSTREAM_CUT if cut else Code.UPSTREAM_ERROR
        message = error.message if error else "The model's answer broke off."
        return Ending(outcome=Outcome.FAILED, code=code, message=message, detail=error.detail if error else None)
    match turn.finish:
        case "length":
            return Ending(outcome=Outcome.TRUNCATED)
        case "content_filter":
            return Ending(outcome=Outcome.FILTERED)
    return Ending(outcome=Outcome.COMPLETE)


def _budget(detail: str) -> Ending:
    message = "The assistant used its tools too often to answer."
    return Ending(outcome=Outcome.FAILED, code=Code.TOOL_BUDGET, message=message, detail=detail)
