"""One lazy watchdog per event loop for every time limit: no timer per delta, no task of its own.

A limit that is renewed by each delta must cost next to nothing per delta: `asyncio.timeout` around each read
was measured at 7 µs, as much as all the rest of the path. A watch is renewed by one attribute write
(`watch.at = time.monotonic()`); the watchdog looks at it again only when it would have been due. One timer
runs at a time, and none while nothing is watched.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable
from itertools import count
from time import monotonic

__all__ = ["Watch", "Watchdog"]

_BREATH = 0.02
"""Seconds between finding a watch due and letting it expire. After a blocked loop the timers run before the
tasks that the waiting bytes wake: a round of the loop in between lets them say that they live."""

_LONGEST_SLEEP = 3600.0
"""Seconds of the longest single timer: event loops refuse or overflow on very long ones."""


class Watch:
    """One time limit, running from `at` (`time.monotonic()`) for `seconds`.

    To say that something lives, write `watch.at = time.monotonic()`, or call `touch()`.
    """

    __slots__ = ("_due", "_on_expired", "_suspected", "_watchdog", "at", "expired", "seconds")

    def __init__(self, watchdog: Watchdog, seconds: float, on_expired: Callable[[], object]) -> None:
        self._watchdog = watchdog
        self._on_expired: Callable[[], object] | None = on_expired
        self._suspected: float | None = None
        self._due = float("inf")
        self.at = monotonic()
        self.seconds = seconds
        self.expired = False

    @property
    def active(self) -> bool:
        """It has neither expired nor been cancelled."""
        return self._on_expired is not None

    def touch(self) -> None:
        """Start the time again from now."""
        self.at = monotonic()

    def rearm(self, seconds: float) -> None:
        """Give another limit, running from now. Without effect once expired or cancelled."""
        if self._on_expired is not None:
            self.at = monotonic()
            self.seconds = seconds
            self._watchdog._queue(self)

    def cancel(self) -> None:
        """Watch no longer. Harmless when it has expired or was cancelled before."""
        if self._on_expired is not None:
            self._on_expired = None
            self._watchdog._forget()

    def _expire(self) -> None:
        on_expired, self._on_expired = self._on_expired, None
        self.expired = True
        if on_expired is not None:
            on_expired()


class Watchdog:
    """Watches time limits on the running event loop: `Watchdog.here().watch(10, on_expired)`.

    Precision: never early; late by the loop's own lateness and at most 0.05 s. Not thread-safe: a watch
    belongs to the loop it was made on. What is watched is looked at when due, O(log n) each time.
    """

    __slots__ = ("_active", "_loop", "_number", "_queued", "_timer", "_wakes_at")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queued: list[tuple[float, int, Watch]] = []  # a heap; entries whose time is not `_due` are stale
        self._number = count()
        self._active = 0
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = float("inf")

    @staticmethod
    def here() -> Watchdog:
        """The running loop's watchdog, made on first use.

        Raises: RuntimeError when no event loop runs in this thread.
        """
        loop = asyncio.get_running_loop()
        if getattr(_of_thread, "loop", None) is not loop:
            _of_thread.loop = loop
            _of_thread.watchdog = Watchdog(loop)
        watchdog: Watchdog = _of_thread.watchdog
        return watchdog

    def __len__(self) -> int:
        """How many watches are active."""
        return self._active

    def watch(self, seconds: float, on_expired: Callable[[], object]) -> Watch:
        """Call `on_expired()` on the loop when `seconds` have passed without a sign of life.

        seconds:    0 or more; infinity never expires.
        on_expired: must not block; what it raises goes to the loop's exception handler.
        Raises:     ValueError for negative seconds or NaN; RuntimeError when no event loop runs.
        """
        if not seconds >= 0:
            raise ValueError(f"a time limit is 0 seconds or more, not {seconds!r}")
        watch = Watch(self, seconds, on_expired)
        self._active += 1
        self._queue(watch)
        return watch

    def _queue(self, watch: Watch) -> None:
        """Look at `watch` when its limit will have passed, if it is not looked at sooner anyway."""
        watch._suspected = None
        due = watch.at + watch.seconds
        if due < watch._due:
            watch._due = due
            heapq.heappush(self._queued, (due, next(self._number), watch))
            self._set_timer()

    def _forget(self) -> None:
        """A watch is over: throw out the dead before they outnumber the living, and rest when none lives."""
        self._active -= 1
        if self._active == 0:
            self._queued.clear()
        elif len(self._queued) > 64 and len(self._queued) > 2 * self._active:
            self._queued = [entry for entry in self._queued if entry[2].active and entry[0] == entry[2]._due]
            heapq.heapify(self._queued)
        else:
            return
        self._set_timer()

    def _set_timer(self) -> None:
        wakes_at = self._queued[0][0] if self._queued else float("inf")
        if self._timer is not None:
            if wakes_at >= self._wakes_at and self._queued:
                return  # it wakes before that anyway, and looks again
            self._timer.cancel()
            self._timer = None
        self._wakes_at = wakes_at
        if wakes_at != float("inf") and not self._loop.is_closed():
            # A delay, not a moment: uvloop's clock is not time.monotonic().
            delay = min(max(wakes_at - monotonic(), 0.0), _LONGEST_SLEEP)
            self._timer = self._loop.call_later(delay, self._look)

    def _look(self) -> None:
        self._timer = None
        now = monotonic()
        try:
            while self._queued and self._queued[0][0] <= now:
                due, _, watch = heapq.heappop(self._queued)
                if watch.active and due == watch._due:
                    watch._due = float("inf")
                    self._look_at(watch, now)
        finally:
            if not self._active:
                self._queued.clear()
            self._set_timer()

    def _look_at(self, watch: Watch, now: float) -> None:
        due = watch.at + watch.seconds
        if due > now:
            watch._suspected = None
        elif watch._suspected != watch.at:
            watch._suspected = watch.at
            due = now + _BREATH
        else:
            self._active -= 1
            try:
                watch._expire()
            except Exception as error:  # noqa: BLE001  (one limit's callback must not end the watch over the others)
                self._loop.call_exception_handler({"message": "a time limit's callback failed", "exception": error})
            return
        watch._due = due
        heapq.heappush(self._queued, (due, next(self._number), watch))


_of_thread = threading.local()
