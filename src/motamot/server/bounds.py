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

_REASONS = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


def bounded(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol that uvicorn makes for each connection, with these limits."""
    return type("Bounded", (_Bounded,), {"limits": limits})


class _HeadTooLarge(Exception):
    """Ends the parsing of a request."""


class _Bounded(Http):
    limits: Limits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head_bytes = 0  # of a head that is not whole: what came since it began
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._status = 400

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_whole()
        self.resume_writing()
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
            self._status = 431
            raise _HeadTooLarge
        self._in_head = False
        self._head_whole()
        super().on_headers_complete()

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
        told = "the request's head is too large" if self._status == 431 else "this is no HTTP request"
        self._refuse(self._status, told)

    def _refuse(self, status: int, message: str) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()  # in the middle of an answer: not a byte that is not the answer's
            return
        code = "limit" if status == 431 else "timeout" if status == 408 else "bad_request"
        content = msgspec.json.encode({"error": {"code": code, "message": message}})
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
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
