"""uvicorn's reading of HTTP/1.1, except that a client which leaves is noticed whatever it sent before.

uvicorn tells only the request it read last that the client has gone, and stops reading while a second request waits
behind an answer: an answer that is being streamed would run on to its end for nobody, paid for by the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ["LEAVING", "Http", "Leaving"]

_AHEAD = 8  # requests that may wait behind one being answered
LEAVING = "motamot.leaving"
"""Where a request's scope has its `Leaving`."""


class Leaving:
    """Tells one who asks that the client of a request has left: a stream needs no task that waits for nothing else."""

    __slots__ = ("_call", "_left")

    def __init__(self) -> None:
        self._call: Callable[[], None] | None = None
        self._left = False

    def then(self, call: Callable[[], None] | None) -> None:
        """Call this when the client has left, at once if it has; None: nothing any more."""
        self._call = call
        if self._left:
            self.left()

    def left(self) -> None:
        """The client has left."""
        self._left = True
        call, self._call = self._call, None
        if call is not None:
            call()


class Http(HttpToolsProtocol):
    """One connection, of a server that takes no WebSockets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cycles: list[tuple[RequestResponseCycle, Leaving]] = []  # not answered in full, oldest first

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._cycles = [pair for pair in self._cycles if not pair[0].response_complete]
        leaving = Leaving()
        self.scope[LEAVING] = leaving  # type: ignore[literal-required]  # a key of our own
        self._cycles.append((self.cycle, leaving))
        if self.pipeline:
            self._go_on_reading()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.pipeline:
            self._go_on_reading()

    def _go_on_reading(self) -> None:
        """The end of the connection is found by reading only; who sends much ahead meanwhile is cut off."""
        if len(self.pipeline) > _AHEAD or sum(len(cycle.body) for cycle, _ in self._cycles) > HIGH_WATER_LIMIT:
            self.transport.abort()
        else:
            self.flow.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        cycles, self._cycles = self._cycles, []
        for cycle, _ in cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)
        for cycle, leaving in cycles:
            if not cycle.response_complete:
                leaving.left()
