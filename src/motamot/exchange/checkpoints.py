"""Checkpoints of the exchanges that run: a killed process loses at most `checkpoint_seconds` of shown text.

They are spread over that time. Taken of all exchanges at once they held up every stream, in this thread and again by
what the store's thread then wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from motamot.exchange.exchange import Exchange
from motamot.store.store import Store

__all__ = ["Checkpoints"]

_SLICES = 5
_IN_TIME = 0.75  # of the limit: a checkpoint takes its time to reach the disk


class Checkpoints:
    """Looks at a fifth of the `running` exchanges at a time, the same fifth each time round; rests while none runs."""

    def __init__(self, store: Store, running: Mapping[str, Exchange], seconds: float) -> None:
        self._store = store
        self._running = running
        self._every = seconds * _IN_TIME / _SLICES
        self._round = 0
        self._timer: asyncio.TimerHandle | None = None

    def keep_on(self) -> None:
        """An exchange runs."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every, self._look)

    def stop(self) -> None:
        """Nothing runs any more, or what does is about to end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        self._round = (self._round + 1) % _SLICES
        due = [exchange for name, exchange in self._running.items() if hash(name) % _SLICES == self._round]
        for redact in {id(exchange.redact): exchange.redact for exchange in due}.values():
            theirs = [exchange for exchange in due if exchange.redact is redact]
            if checkpoints := [kept for exchange in theirs if (kept := exchange.checkpoint()) is not None]:
                self._store.checkpoint(checkpoints, redact=redact)
        if self._running:
            self.keep_on()
