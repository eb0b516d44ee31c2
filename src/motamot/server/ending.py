"""Hearing that the process is asked to end, beside the server that runs it.

A server waits for open streams before it ends a lifespan, and streams wait for their answers: unless the answers are
ended at the signal itself, nothing ends for as long as somebody reads one (uvicorn, by default, waits for ever).
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["Signals"]

_ENDING = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Calls `begin_end` on the running event loop at the first SIGTERM or SIGINT that a server has asked to hear.

    The server's own handler is called as before. A signal that no server handles is left alone, and so are all of them
    outside the main thread, where Python hears none.
    """

    def __init__(self, begin_end: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._begin_end = begin_end
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ENDING:
            before = signal.getsignal(number)
            # The default handler raises KeyboardInterrupt in whatever runs, a notebook's cell: no server is ending.
            if callable(before) and before is not signal.default_int_handler:
                self._before[number] = before
                signal.signal(number, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin_end)
        self._before[number](number, frame)

    def forget(self) -> None:
        """Hear no more; handlers that others have set meanwhile stay."""
        for number, before in self._before.items():
            if signal.getsignal(number) == self._hear:
                signal.signal(number, before)
        self._before.clear()
