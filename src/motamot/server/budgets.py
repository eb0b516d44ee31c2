"""What strangers may spend: requests and tokens an hour by visitor and by address, money a day by assistant."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from motamot.errors import LimitExceeded
from motamot.exchange.exchange import Exchange
from motamot.server.options import Options
from motamot.store.store import Store

__all__ = ["Budgets"]

_HOUR = 3600.0
_MOST_NAMES = 100_000  # visitors and addresses remembered; the oldest are forgotten first


class _Spent:
    """What one visitor or one address had in the last hour: the time of each request, and each answer's tokens."""

    __slots__ = ("answers", "requests", "tokens")

    def __init__(self) -> None:
        self.requests: deque[float] = deque()
        self.answers: deque[tuple[float, int]] = deque()
        self.tokens = 0

    def drop_old(self, now: float) -> None:
        while self.requests and now - self.requests[0] >= _HOUR:
            self.requests.popleft()
        while self.answers and now - self.answers[0][0] >= _HOUR:
            self.tokens -= self.answers.popleft()[1]

    def add_tokens(self, now: float, tokens: int) -> None:
        self.answers.append((now, tokens))
        self.tokens += tokens


class Budgets:
    """In memory, by the hour; money from the ledger, which outlives a restart."""

    def __init__(self, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._by_name: dict[str, _Spent] = {}
        self._money: dict[str, float] = {}
        self._day = 0
        self._store: Store | None = None

    async def remember(self, store: Store) -> None:
        """Use this store's ledger for money."""
        self._store = store

    async def admit(self, visitor: str, address: str, assistant: str) -> None:
        """Count one request. Raises: LimitExceeded where an hour's or a day's share is used up."""
        options = self._options
        now = self._clock()
        spent = [(self._spent(visitor, now), 1), (self._spent("address:" + address, now), options.address_factor)]
        for of, factor in spent:
            if len(of.requests) >= options.requests_per_hour * factor:
                raise _used_up("requests_per_hour", options.requests_per_hour * factor, "requests", of.requests[0], now)
            if of.tokens >= options.tokens_per_hour * factor:
                raise _used_up("tokens_per_hour", options.tokens_per_hour * factor, "tokens", of.answers[0][0], now)
        for of, _ in spent:  # counted before anything is awaited: many at once can't all see the same count
            of.requests.append(now)
        await self._check_money(assistant)

    def watch(self, exchange: Exchange, visitor: str, address: str) -> None:
        """Count an exchange's tokens when it has ended."""

        def count() -> None:
            tokens = exchange.usage.prompt_tokens + exchange.usage.completion_tokens
            now = self._clock()
            for of in (self._spent(visitor, now), self._spent("address:" + address, now)):
                of.add_tokens(now, tokens)

        exchange.at_end(count)

    def _spent(self, name: str, now: float) -> _Spent:
        spent = self._by_name.pop(name, None) or _Spent()
        self._by_name[name] = spent  # the latest last
        if len(self._by_name) > _MOST_NAMES:
            del self._by_name[next(iter(self._by_name))]
        spent.drop_old(now)
        return spent

    async def _check_money(self, assistant: str) -> None:
        limit = self._options.money_per_day
        if limit is None or self._store is None:
            return
        midnight = time.time() // 86_400 * 86_400
        spent = await self._store.spent(assistant, midnight)
        if sum(spent.cost.values()) >= limit:
            raise LimitExceeded(
                "this assistant has spent its money for today; come back tomorrow",
                limit="money_per_day",
                maximum=limit,
                unit="money",
            )


def _used_up(limit: str, maximum: int, unit: str, oldest: float, now: float) -> LimitExceeded:
    minutes = max(1, -int(-(_HOUR - (now - oldest)) // 60))
    return LimitExceeded(
        f"that was a lot: {maximum} {unit} an hour are the most; come back in {minutes} min",
        limit=limit,
        maximum=maximum,
        unit=unit,
    )
