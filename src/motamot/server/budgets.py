"""What strangers may spend: requests and tokens an hour by visitor and by address, money a day by assistant.

What is under way counts as what it may still spend, so that many who ask at once do not all see the same room left.
What is spent beyond a budget is then at most what a question costs beyond `max_tokens`: its prompt, and further turns.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from types import TracebackType
from typing import Self

from motamot.answer import Source, Usage
from motamot.assistant import Assistant
from motamot.errors import LimitExceeded
from motamot.exchange.exchange import Exchange
from motamot.server.options import Options
from motamot.store.days import DAY
from motamot.store.store import Store

__all__ = ["Budgets", "MoneyToday", "Ticket"]

_HOUR = 3600.0
_MOST_NAMES = 100_000  # visitors and addresses remembered; those longest away are forgotten first
_MONEY_SECONDS = 1.0  # how long what the ledger said is believed: it is read once for all who ask meanwhile
_PROMPT_BYTES_PER_TOKEN = 3


class _Spent:
    """What one visitor or one address had in the last hour: the time of each request, and each answer's tokens."""

    __slots__ = ("answers", "kept", "requests", "tokens", "under_way")

    def __init__(self) -> None:
        self.requests: list[float] = []  # lists, as an empty deque takes 760 bytes, and most visitors ask once
        self.answers: list[tuple[float, int]] = []
        self.tokens = 0
        self.kept = 0  # tokens that answers under way may still have
        self.under_way = 0

    def check(self, options: Options, factor: int, now: float) -> None:
        """Raises: LimitExceeded where the hour's share is used up."""
        if self.requests and now - self.requests[0] >= _HOUR:
            del self.requests[: bisect_right(self.requests, now - _HOUR)]
        if self.answers and now - self.answers[0][0] >= _HOUR:
            over = bisect_right(self.answers, now - _HOUR, key=itemgetter(0))
            self.tokens -= sum(tokens for _, tokens in self.answers[:over])
            del self.answers[:over]
        most = options.requests_per_hour * factor
        if len(self.requests) >= most:
            raise _used_up("requests_per_hour", most, "questions", _HOUR - (now - self.requests[0]))
        most = options.tokens_per_hour * factor
        if self.tokens + self.kept >= most:
            wait = _HOUR - (now - self.answers[0][0]) if self.answers else 60
            raise _used_up("tokens_per_hour", most, "tokens", wait)


class _Money:
    """What one assistant has spent today: what the ledger says, and what it does not know yet."""

    def __init__(self) -> None:
        self.read_at = float("-inf")
        self.day = 0
        self.booked = 0.0
        self.reading: asyncio.Task[None] | None = None
        self.kept: dict[Ticket, float] = {}  # by ticket, what it may cost; ended ones until the ledger knows them

    def total(self) -> float:
        return self.booked + sum(self.kept.values())


@dataclass(frozen=True, slots=True)
class MoneyToday:
    """What one assistant may spend today, has spent by the ledger, and what is kept for answers under way."""

    limit: float
    booked: float
    kept: float

    @property
    def left(self) -> float:
        """What new answers may still use."""
        return max(0.0, self.limit - self.booked - self.kept)


class Ticket:
    """A question that was let in. What it may spend is kept back until it is known what it did.

    Use it as a context around the exchange's beginning: left without `spend`, what was kept back is free again.
    """

    def __init__(self, budgets: Budgets, spent: tuple[_Spent, ...], tokens: int, money: _Money | None) -> None:
        self._budgets = budgets
        self._spent = spent
        self._tokens = tokens
        self._money = money
        self._attached = False
        self.ended_at: float | None = None

    def spend(self, exchange: Exchange) -> None:
        """This exchange is what it was for; one that has ended, or was joined, needs no second ticket."""
        if exchange.ended is None and self._budgets.first_for(exchange):
            self._attached = True
            exchange.at_end(lambda: self._end(exchange))

    def _end(self, exchange: Exchange) -> None:
        self.release(exchange.usage.prompt_tokens + exchange.usage.completion_tokens)
        self._budgets.ended(exchange)

    def release(self, tokens: int = 0) -> None:
        """Count what was used, and free the rest."""
        now = self._budgets.now()
        for of in self._spent:
            of.kept -= self._tokens
            of.under_way -= 1
            if tokens:
                of.answers.append((now, tokens))
                of.tokens += tokens
        self.ended_at = now
        if self._money is not None and not tokens:
            self._money.kept.pop(self, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._attached:
            self.release()


class Budgets:
    """In memory, by the hour, for this process; money from the ledger, which outlives it and knows of other ones.

    ended: told of every exchange that was let in here, when it has ended.
    """

    def __init__(
        self,
        options: Options,
        ended: Callable[[Exchange], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.ended_exchange = ended
        self.now = clock
        self._options = options
        self._wall = wall
        self._by_name: dict[str, _Spent] = {}
        self._money: dict[str, _Money] = {}
        self._under_way: set[str] = set()  # exchanges that have a ticket
        self._store: Store | None = None

    async def remember(self, store: Store) -> None:
        """Use this store's ledger for money."""
        self._store = store
        self._money.clear()

    async def admit(
        self, visitor: str | None, address: str | None, assistant: Assistant, *, brought: int = 0
    ) -> Ticket:
        """Count one question. Raises: LimitExceeded where an hour's or a day's share is used up.

        visitor, address: None for a caller who holds a key of the operator's: only money bounds those.
        brought: bytes that the client adds to what a prompt of ours has: tools, their results, a history of any length.
        """
        money = await self._read_money(assistant)
        # From here to the end nothing is awaited: many at once can't all see the same count.
        options = self._options
        now = self.now()
        names = []
        if address is not None:
            names.append(("address:" + address, options.address_factor))
        if visitor is not None:
            names.append(("visitor:" + visitor, 1))  # a login may have users of any name
        spent = []
        for name, factor in names:
            of = self._by_name.get(name) or _Spent()
            of.check(options, factor, now)
            most = assistant.limits.exchanges_per_visitor * factor
            if of.under_way >= most:  # else a few addresses, with a new visitor for each question, shut all others out
                raise LimitExceeded(
                    f"{most} answers are under way for you or your address; wait for one or stop it",
                    limit="exchanges_per_visitor",
                    maximum=most,
                    unit="exchanges",
                )
            spent.append(of)
        if money is not None:
            self._check_money(money)
        for (name, _), of in zip(names, spent, strict=True):
            self._remember(name, of)
            of.requests.append(now)
            of.kept += assistant.limits.max_tokens
            of.under_way += 1
        ticket = Ticket(self, tuple(spent), assistant.limits.max_tokens, money)
        if money is not None:
            money.kept[ticket] = _dearest(assistant, brought)
        return ticket

    def first_for(self, exchange: Exchange) -> bool:
        """Whether this exchange has no ticket yet."""
        if exchange.id in self._under_way:
            return False
        self._under_way.add(exchange.id)
        return True

    def ended(self, exchange: Exchange) -> None:
        """An exchange that had a ticket has ended."""
        self._under_way.discard(exchange.id)
        self.ended_exchange(exchange)

    def _remember(self, name: str, of: _Spent) -> None:
        self._by_name.pop(name, None)
        self._by_name[name] = of  # the latest last
        if len(self._by_name) > _MOST_NAMES:
            del self._by_name[next(iter(self._by_name))]

    # Money

    async def money(self, assistant: Assistant) -> MoneyToday | None:
        """An assistant's money of today; None where nothing bounds it."""
        money, limit = await self._read_money(assistant), self._options.money_per_day
        if money is None or limit is None:
            return None
        return MoneyToday(limit, money.booked, sum(money.kept.values()))

    async def _read_money(self, assistant: Assistant) -> _Money | None:
        if self._options.money_per_day is None:
            return None
        money = self._money.setdefault(assistant.name, _Money())
        while money.day != int(self._wall() // DAY) or self.now() - money.read_at >= _MONEY_SECONDS:
            if money.reading is None:
                money.reading = asyncio.get_running_loop().create_task(self._read_ledger(money, assistant.name))
            await asyncio.shield(money.reading)  # for all who wait: one of them may leave
        return money

    async def _read_ledger(self, money: _Money, assistant: str) -> None:
        try:
            assert self._store is not None
            began, day = self.now(), int(self._wall() // DAY)
            spent = await self._store.spent(assistant, day * DAY)
            money.booked = sum(spent.cost.values())
            money.read_at, money.day = self.now(), day
            for ticket in [one for one in money.kept if one.ended_at is not None and one.ended_at < began]:
                del money.kept[ticket]  # the ledger knows what it cost
        finally:
            money.reading = None

    def _check_money(self, money: _Money) -> None:
        limit = self._options.money_per_day
        assert limit is not None
        if money.total() < limit:
            return
        if money.booked >= limit:
            words, wait = "this assistant has spent its money for today; come back tomorrow", DAY - self._wall() % DAY
        else:
            words, wait = "what is left of this assistant's money for today is in use; try again in a minute", 60.0
        raise LimitExceeded(words, limit="money_per_day", maximum=limit, unit="money", retry_after=wait)


def _dearest(assistant: Assistant, brought: int) -> float:
    """What one turn can cost: a whole history, the longest question, the longest answer. 0 where there is no price."""
    limits = assistant.limits
    size = limits.message_bytes + len(assistant.system or "") + brought
    prompt = limits.history_tokens + size // _PROMPT_BYTES_PER_TOKEN
    usage = Usage(prompt_tokens=prompt, completion_tokens=limits.max_tokens, source=Source.ESTIMATED)
    cost = assistant.price(usage)
    return cost[0] if cost is not None else 0.0


def _used_up(limit: str, maximum: int, unit: str, wait: float) -> LimitExceeded:
    minutes = max(1, -int(-wait // 60))
    return LimitExceeded(
        f"that was a lot: {maximum} {unit} an hour are the most; come back in {minutes} min",
        limit=limit,
        maximum=maximum,
        unit=unit,
        retry_after=wait,
    )
