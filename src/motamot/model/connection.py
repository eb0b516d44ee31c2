"""What we must know of aiohttp's connections and what it does not tell: which one a request got, whether it was used
before, and how many bytes came back on it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_proto import ResponseHandler

if TYPE_CHECKING:
    from aiohttp.client import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

__all__ = ["Connector", "Wire", "asking", "unread"]

asking: ContextVar[Callable[[Connection], None]] = ContextVar("asking")
"""Who is told of the connection that a request made in this task gets."""


class Wire(ResponseHandler):
    """aiohttp's end of a connection, which also counts: how often it was used, and what came back this time."""

    uses = 0
    received = 0
    head_too_large = False
    _head_expected = False
    _head_bytes = 0
    _body: aiohttp.StreamReader | None = None
    _lost = False

    def begin(self, head_bytes: int) -> None:
        """Another request goes out on this connection."""
        self.uses += 1
        self.received = 0
        self._body = None
        self._head_expected = True
        self._head_bytes = head_bytes

    def head_came(self, body: aiohttp.StreamReader) -> None:
        """The head has been read, and `body` is what follows it."""
        self._head_expected = False
        self._body = body
        if self._lost:
            self._tell()

    def data_received(self, data: bytes) -> None:
        if self._head_expected and self.received > self._head_bytes:
            self.head_too_large = True
            self.abort()
            return
        self.received += len(data)
        super().data_received(data)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._lost = True
        self._tell()

    def _tell(self) -> None:
        """aiohttp 3.14 closes the connection on a malformed chunk and forgets to tell who reads the body."""
        body, self._body = self._body, None
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("the body is malformed"))


class Connector(aiohttp.TCPConnector):
    """aiohttp's pool, which tells who asks (`asking`) what connection it got, before the request is written."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        wire: type[ResponseHandler] = Wire
        self._factory = partial(wire, loop=self._loop)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  (aiohttp's own signature)
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        asking.get()(connection)
        return connection


def unread(content: aiohttp.StreamReader) -> bytes:
    """What arrived before the error that `content` now raises first. It was sent, so it is shown: text and the end
    of the connection can come in one round of the loop, or in several while we were inflating what came before."""
    content.set_exception(None)  # type: ignore[arg-type]
    return content.read_nowait(-1)
