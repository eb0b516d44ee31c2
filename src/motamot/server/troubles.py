"""One line for the operator when answers fail: the page tells its visitor, and nobody else hears of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from motamot.answer import Code, Outcome
from motamot.exchange.exchange import Exchange

__all__ = ["Trouble", "Troubles"]

_logger = logging.getLogger("motamot.server")
_SECONDS = 60.0  # a model that is down fails every question: the first is told at once, then their number


@dataclass(frozen=True, slots=True)
class Trouble:
    """What has failed, how often since this server's start, and when last (seconds since the epoch)."""

    assistant: str
    code: Code | None
    count: int
    last_at: float


class Troubles:
    """Tells failed exchanges, by assistant and code at most once a minute.

    What the provider said is left to the ledger: it may quote the conversation, and no log may hold a word of it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._now = clock
        self._wall = wall
        self._seen: dict[tuple[str, Code | None], Trouble] = {}
        self._told: dict[tuple[str, Code | None], tuple[float, int]] = {}  # when last, and how many since

    @property
    def seen(self) -> list[Trouble]:
        """What has failed so far, the latest first: at most a line for each assistant and code."""
        return sorted(self._seen.values(), key=lambda trouble: -trouble.last_at)

    def ended(self, exchange: Exchange) -> None:
        """An exchange has ended."""
        end = exchange.ended
        if end is None or end.outcome is not Outcome.FAILED:
            return
        kind = (exchange.begun.assistant, end.code)
        before = self._seen.get(kind)
        self._seen[kind] = Trouble(*kind, before.count + 1 if before else 1, self._wall())
        last, silent = self._told.get(kind, (float("-inf"), 0))
        if self._now() - last < _SECONDS:
            self._told[kind] = (last, silent + 1)
            return
        self._told[kind] = (self._now(), 0)
        more = f", and {silent} more in the last minutes" if silent else ""
        _logger.warning(
            "an answer of %r failed: %s%s; `motamot ledger --exchange %s` tells why",
            kind[0],
            end.code,
            more,
            exchange.id,
        )
