"""The books of one exchange: each upstream request has a row before it leaves, closed once whatever happens."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from motamot.answer import Code, Outcome, Source, Usage
from motamot.model.turn import Turn, TurnRequest
from motamot.store.records import Checkpoint, CompletionClosed, CompletionOpened

if TYPE_CHECKING:
    from motamot.exchange.exchange import Exchange

__all__ = ["Completion", "Price", "Watched"]

_logger = logging.getLogger("motamot.completions")

Price = Callable[[str, Usage], tuple[float, str] | None]
"""Cost and currency of a model's usage; None where no price is known."""

_OUTCOMES = {
    "stop": Outcome.COMPLETE,
    "tool_calls": Outcome.COMPLETE,
    "unknown": Outcome.COMPLETE,
    "length": Outcome.TRUNCATED,
    "content_filter": Outcome.FILTERED,
}


class Watched(Protocol):
    """A request under way, as the books look at it: `motamot.model.turn.Attempt`, or somebody's own."""

    def snapshot(self) -> Turn:
        """The turn as far as it has come."""
        ...

    @property
    def first_delta_at(self) -> float | None:
        """`time.monotonic()` of the first delta, or None."""
        ...


class Completion:
    """One upstream request of an exchange, from the row opened before it leaves to the row closed."""

    def __init__(
        self, exchange: Exchange, *, turn: int, attempt: int, model: str, price: Price, free: bool = False
    ) -> None:
        """free: nothing is generated and nothing is spent (recorded samples)."""
        self.exchange = exchange
        self.id = secrets.token_urlsafe(12)
        self.turn = turn
        self.number = attempt
        self.model = model
        self._price = price
        self._free = free
        self._estimate = exchange.store.estimate(model)
        self._prompt_tokens = 0
        self._opened_at = time.time()
        self._opened = time.monotonic()
        self._attempt: Watched | None = None

    def row(self, request: TurnRequest) -> CompletionOpened:
        """What is to be written before the request leaves."""
        self._prompt_tokens = sum(self._estimate(part) for part in _parts(request))
        return CompletionOpened(
            id=self.id,
            exchange=self.exchange.id,
            turn=self.turn,
            attempt=self.number,
            model=self.model,
            opened_at=self._opened_at,
            prompt_estimate=self._prompt_tokens,
        )

    async def open(self, request: TurnRequest) -> None:
        """Write the row; only then may the request leave. Raises StoreError: the request must not leave."""
        row = self.row(request)
        try:
            await self.exchange.store.open_completion(row)
        except BaseException:
            # The row may have been written all the same (a cancelled wait): close it as never sent.
            ending = self.exchange.ending
            outcome = ending.outcome if ending else Outcome.FAILED
            self._close(Turn(finish="not_sent"), Usage(source=Source.REPORTED), outcome, None)
            raise

    def watch(self, attempt: Watched) -> None:
        """`attempt` is this completion's request: checkpoints look at it from here on."""
        self._attempt = attempt
        self.exchange.underway = self._checkpoint

    def close(self, turn: Turn) -> Usage:
        """Book what came back."""
        if turn.error is not None:
            outcome, code = Outcome.FAILED, turn.error.code
        elif turn.finish == "incomplete":
            outcome, code = Outcome.FAILED, Code.UPSTREAM_CUT
        else:
            outcome, code = _OUTCOMES.get(turn.finish, Outcome.FAILED), None
        return self._close(turn, self._usage(turn), outcome, code)

    def given_up(self, otherwise: Outcome) -> None:
        """Book what had come when the attempt was cancelled or raised. otherwise: where the exchange has no ending."""
        turn = self._attempt.snapshot() if self._attempt else Turn(finish="not_sent")
        ending = self.exchange.ending
        outcome = ending.outcome if ending else otherwise
        self._close(turn, self._usage(turn), outcome, ending.code if ending else None)

    def _usage(self, turn: Turn) -> Usage:
        """The provider's own figures where the turn came to its end; else our estimate of what was spent."""
        if turn.finish == "not_sent" or self._free:
            return Usage(source=Source.REPORTED)
        ended = turn.finish not in ("incomplete", "error")
        if turn.usage is not None and turn.usage.source is Source.REPORTED and ended:
            return turn.usage
        if turn.error is not None and not turn.started:
            return turn.usage or Usage(source=Source.REPORTED if turn.error.safe_to_retry else Source.UNKNOWN)
        generated = self._generated(turn)
        if turn.usage is not None:  # a report so far (Anthropic's first event, running totals), or half of one
            return msgspec.structs.replace(
                turn.usage,
                prompt_tokens=turn.usage.prompt_tokens or self._prompt_tokens,
                completion_tokens=max(generated, turn.usage.completion_tokens),
                source=Source.ESTIMATED,
            )
        return Usage(prompt_tokens=self._prompt_tokens, completion_tokens=generated, source=Source.ESTIMATED)

    def _generated(self, turn: Turn) -> int:
        return sum(self._estimate(part) for part in _generated(turn))

    def _checkpoint(self) -> Checkpoint | None:
        if self._attempt is None:
            return None
        return Checkpoint(
            exchange=self.exchange.id,
            text="",
            sent=0,
            completion=self.id,
            completion_tokens=self._generated(self._attempt.snapshot()),
            prompt_tokens=self._prompt_tokens,
        )

    def _close(self, turn: Turn, usage: Usage, outcome: Outcome, code: str | None) -> Usage:
        exchange = self.exchange
        exchange.underway = None
        exchange.usage = exchange.usage + usage
        first = self._attempt.first_delta_at if self._attempt else None
        cost = self._price(turn.model or self.model, usage) or self._price(self.model, usage)
        closed = CompletionClosed(
            id=self.id,
            closed_at=time.time(),
            outcome=outcome,
            finish=turn.finish,
            usage=usage,
            code=code,
            detail=turn.error.detail if turn.error else None,
            first_delta=first - self._opened if first is not None else None,
            duration=time.monotonic() - self._opened,
            model_reported=turn.model,
            cost=cost[0] if cost else None,
            currency=cost[1] if cost else "USD",
            completion_bytes=sum(len(part.encode()) for part in _generated(turn)),
        )
        exchange.store.close_completion(closed, redact=exchange.redact)
        if _logger.isEnabledFor(logging.INFO):
            _logger.info("%s", self._line(closed))
        return usage

    def _line(self, closed: CompletionClosed) -> str:
        """One line of JSON: figures and ids, never a word of the conversation."""
        line = {
            "completion": self.id,
            "exchange": self.exchange.id,
            "turn": self.turn,
            "attempt": self.number,
            "model": self.model,
            "outcome": closed.outcome,
            "finish": closed.finish,
            "code": closed.code,
            "prompt_tokens": closed.usage.prompt_tokens,
            "completion_tokens": closed.usage.completion_tokens,
            "source": closed.usage.source,
            "first_delta_ms": None if closed.first_delta is None else round(closed.first_delta * 1000, 1),
            "duration_ms": round(closed.duration * 1000, 1),
        }
        return msgspec.json.encode(line).decode()


def _generated(turn: Turn) -> list[str]:
    """All that was generated: what is paid for as completion tokens."""
    parts = [turn.text, turn.reasoning, *(part for call in turn.tool_calls for part in (call.name, call.raw))]
    return [part for part in parts if part]


def _parts(request: TurnRequest) -> list[str]:
    parts = [message.content for message in request.messages if message.content]
    parts += [call.raw for message in request.messages for call in message.tool_calls]
    parts += [tool.description + msgspec.json.encode(tool.parameters).decode() for tool in request.tools]
    return parts
