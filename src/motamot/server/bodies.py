"""Request bodies that are still coming in: what they hold together, and that nobody waits for them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from motamot.errors import LimitExceeded
from motamot.limits import Limits

__all__ = ["IN_SCOPE", "Bodies"]

IN_SCOPE = "motamot.bodies"
"""Where a request's scope has the site's."""


class Bodies:
    """The bodies under way of one site. Each is bounded by itself; 10,000 connections may send one each."""

    def __init__(self, limits: Limits) -> None:
        self._maximum = limits.bodies_bytes
        self._of_one = limits.bodies_address_bytes
        self._bytes = 0
        self._by_address: dict[str, int] = {}
        self._waiting: set[asyncio.Timeout] = set()
        self.ended = False  # what is not whole is not waited for

    @contextmanager
    def coming(self, waiting: asyncio.Timeout, address: str) -> Iterator[Callable[[int], None]]:
        """For as long as one body is read within `waiting`, which also runs out when the site ends.

        Yields: what counts its bytes, and raises LimitExceeded when those of `address` are too many
        (`bodies_address_bytes`), or all together (`bodies_bytes`).
        """
        held = 0

        def count(size: int) -> None:
            nonlocal held
            of_one = self._by_address.get(address, 0) + size
            if of_one > self._of_one:
                raise _too_many("bodies_address_bytes", self._of_one, " from your address")
            if self._bytes + size > self._maximum:
                raise _too_many("bodies_bytes", self._maximum, "")
            self._by_address[address] = of_one
            self._bytes += size
            held += size

        self._waiting.add(waiting)
        if self.ended:
            waiting.reschedule(0)  # what is here in full is still read
        try:
            yield count
        finally:
            self._waiting.discard(waiting)
            self._bytes -= held
            if (left := self._by_address.get(address, 0) - held) > 0:
                self._by_address[address] = left
            else:
                self._by_address.pop(address, None)

    def end(self) -> None:
        """Wait for no body any more."""
        self.ended = True
        for waiting in self._waiting:
            if not waiting.expired():
                waiting.reschedule(0)


def _too_many(limit: str, maximum: int, whose: str) -> LimitExceeded:
    told = f"questions of more than {maximum} bytes are coming in{whose} at once; try again in a moment"
    return LimitExceeded(told, limit=limit, maximum=maximum)
