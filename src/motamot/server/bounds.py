"""What one connection may make us hold and wait for, before any request is there to be refused.

uvicorn with httptools bounds none of it: a head that never ends is kept in memory, one that trickles in keeps its
connection, and so does a client that takes nothing of its answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from motamot.limits import Limits
from motamot.server.wire import Http

__all__ = ["bounded"]

_REASONS = {
    400: ("Bad Request", "bad_request"),
    408: ("Request Timeout", "timeout"),
    431: ("Request Header Fields Too Large", "limit"),
    503: ("Service Unavailable", "limit"),
}


def bounded(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol that uvicorn makes for each connection, with these limits."""
    return type("Bounded", (_Bounded,), {"limits": limits, "ahead": _Ahead()})


class _Ahead:
    """Bodies that wait, unread, behind the answers to requests before them: of all connections together."""

    def __init__(self) -> None:
        self.bytes = 0


class _NotTaken(Exception):
    """Ends the parsing of a request that is refused by its head."""


class _Bounded(Http):
    limits: Limits
    ahead: _Ahead

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._ahead_bytes = 0  # of bodies that wait behind an answer
        self._head_bytes = 0  # of a head that is not whole: what came since it began
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._refusal = (400, "this is no HTTP request")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_whole()
        self.resume_writing()
        self._nothing_ahead()
        super().connection_lost(exc)

    # The head

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                self._refuse(431, f"the request's head has more than {self.limits.head_bytes} bytes")
        if self._head_timer is None and (self._in_head or self.cycle.response_complete):
            self._wait_for_head()  # also for one who sends empty lines, or the rest of a body nobody wants

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.head_bytes:  # it came in one piece
            self._refusal = (431, f"the request's head has more than {self.limits.head_bytes} bytes")
            raise _NotTaken
        if len(self.connections) > self.limits.connections:
            self._refusal = (503, "too many connections are open; try again in a moment")
            raise _NotTaken
        self._in_head = False
        self._head_whole()
        super().on_headers_complete()

    # The body

    def on_body(self, body: bytes) -> None:
        if self.scope["method"] != "POST":  # nobody reads it, and it would be held for as long as the answer lasts
            return
        super().on_body(body)
        if self.pipeline:
            self._ahead_bytes += len(body)
            self.ahead.bytes += len(body)
            if self.ahead.bytes > self.limits.bodies_bytes:
                self.transport.abort()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline:
            self._nothing_ahead()

    def _nothing_ahead(self) -> None:
        self.ahead.bytes -= self._ahead_bytes
        self._ahead_bytes = 0

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self._head_late)

    def _head_whole(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_late(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
            return
        if self._in_head and self._head_bytes:
            self._refuse(408, f"the request's head did not come within {self.limits.head_seconds:g} s")
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """What uvicorn calls for bytes that are no request."""
        self._refuse(*self._refusal)

    def _refuse(self, status: int, message: str) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()  # in the middle of an answer: not a byte that is not the answer's
            return
        reason, code = _REASONS[status]
        content = msgspec.json.encode({"error": {"code": code, "message": message}})
        head = (
            f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
            f"cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
            + ("retry-after: 5\r\n" if status == 503 else "")
            + "\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()

    # The answer

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(self.limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()
