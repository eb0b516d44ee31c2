"""What the writer's thread does when nothing waits for it: the index of texts, days that are over, texts too old.

Each step is one transaction of some 20 to 100 ms, so that bookings come between.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sqlalchemy import Connection

from motamot.store import searching
from motamot.store.days import DAY, count_next
from motamot.store.forgetting import forget_older

__all__ = ["FORGOTTEN_AT_ONCE", "Chores"]

_logger = logging.getLogger("motamot.store")

DAYS_SECONDS = 300.0  # how often is looked for a day that is over
FORGET_SECONDS = 3_600.0  # and for texts that are too old
FORGOTTEN_AT_ONCE = 100  # conversations in one transaction


class Chores:
    """retention: seconds that a text is kept; None: until somebody deletes it."""

    def __init__(self, clock: Callable[[], float], retention: float | None) -> None:
        self._clock = clock
        self._retention = retention
        self._forget_at = 0.0
        self._count_at = 0.0

    def due(self, connection: Connection) -> bool:
        """Whether `step` has anything to do. connection: one that reads."""
        now = time.monotonic()
        forgets = self._retention is not None and now >= self._forget_at
        return forgets or now >= self._count_at or searching.due(connection)

    def step(self, connection: Connection) -> tuple[bool, bool]:
        """Do some of it. Within a transaction.

        Returns: more is due; text, or its words, were removed: the write-ahead log still holds them.
        """
        now = time.monotonic()
        forgotten = False
        if self._retention is not None and now >= self._forget_at:
            more, forgotten = self._forget(connection, self._retention)
            if more:
                return True, forgotten
            self._forget_at = now + FORGET_SECONDS
        if now >= self._count_at:
            if count_next(connection, self._clock()):
                return True, forgotten
            self._count_at = now + DAYS_SECONDS
        more, merged = searching.step(connection)
        return more, forgotten or (merged and not more)

    def _forget(self, connection: Connection, retention: float) -> tuple[bool, bool]:
        """Returns: more is too old; something was removed."""
        at = self._clock()
        whole, single = forget_older(connection, at - retention, at, FORGOTTEN_AT_ONCE)
        removed = whole + single > 0
        if removed:
            told = "texts older than %g days were removed: of %d conversations, and of %d questions in others"
            _logger.info(told, retention / DAY, whole, single)
        return FORGOTTEN_AT_ONCE in (whole, single), removed
