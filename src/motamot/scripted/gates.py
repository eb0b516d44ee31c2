"""Gates: places where scripts wait until somebody lets them on."""

from __future__ import annotations

import asyncio

__all__ = ["Gates"]


class Gates:
    """The gates of one scripted model, closed until released. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def release(self, name: str) -> None:
        """Let everybody who waits at this gate on, and everybody who comes later."""
        self._open.add(name)
        for waiter in self._waiting.get(name, ()):
            if not waiter.done():
                waiter.set_result(None)

    def hold(self, name: str) -> None:
        """Close the gate again for those who come later."""
        self._open.discard(name)

    def waiting(self, name: str) -> int:
        """How many scripts stand at this gate."""
        return len(self._waiting.get(name, ()))

    def enter(self, name: str) -> asyncio.Future[None]:
        """Stand at the gate, to `wait` there."""
        waiter = asyncio.get_running_loop().create_future()
        if name in self._open:
            waiter.set_result(None)
        self._waiting.setdefault(name, set()).add(waiter)
        return waiter

    async def wait(self, name: str, waiter: asyncio.Future[None], seconds: float) -> bool:
        """Wait until the gate opens; False if `seconds` have passed and nobody opened it."""
        try:
            await asyncio.wait_for(waiter, seconds)
        except TimeoutError:
            return False
        finally:
            self._waiting[name].discard(waiter)
            if not self._waiting[name]:
                del self._waiting[name]
        return True
