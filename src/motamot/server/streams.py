"""Responses that follow one exchange: what waits goes out in one write, silence is filled with comments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from motamot.answer import AnswerEvent, Ended
from motamot.exchange.exchange import Exchange, Follower
from motamot.protocols.base import Protocol, Writer
from motamot.server import guards
from motamot.server.visitors import Visitor
from motamot.server.wire import LEAVING, Leaving

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["Heartbeats", "Streamed", "primed", "whole"]

_WRITE_BYTES = 65_536  # of one write: what a slow client has not taken yet waits in the log, which all share


class Heartbeats:
    """One timer for all open streams: a stream that wrote nothing for `seconds` at most is nudged to write a comment.

    A look every third of the time costs nothing per delta: it compares event numbers.
    """

    def __init__(self, seconds: float) -> None:
        self._every = seconds / 3
        self._streams: dict[Follower, tuple[int, int]] = {}  # event number at the last look, thirds of silence
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def add(self, follower: Follower) -> None:
        """Watch over a stream."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a site may be started again on another: what was here is gone with the last one
            self._loop, self._timer = loop, None
            self._streams.clear()
        self._streams[follower] = (follower.number, 0)
        if self._timer is None:
            self._timer = loop.call_later(self._every, self._look)

    def remove(self, follower: Follower) -> None:
        """The stream is over."""
        self._streams.pop(follower, None)

    def _look(self) -> None:
        self._timer = None
        for follower, (number, silent) in self._streams.items():
            silent = silent + 1 if follower.number == number else 1  # some of the last third was silent
            if silent == 3:
                follower.nudge()
                silent = 0
            self._streams[follower] = (follower.number, silent)
        if self._streams and self._loop is not None:
            self._timer = self._loop.call_later(self._every, self._look)


class Streamed(Response):
    """A stream that follows an exchange. The follower is closed when the client has left, or the answer is over.

    held: where given, the head waits for the first bytes of the answer, one heartbeat at most; for an answer that
          fails before any, this makes the response instead, or None.
    """

    def __init__(
        self,
        site: Site,
        request: Request,
        follower: Follower,
        writer: Writer,
        protocol: Protocol,
        visitor: Visitor,
        *,
        headers: Mapping[str, str] | None = None,
        held: Callable[[Ended], Response | None] | None = None,
    ) -> None:
        sent = {"Content-Type": protocol.content_type, **protocol.headers, **guards.cors(request, site.origins)}
        sent.update(headers or {})
        # What `Response` makes of them, less a length, which nobody knows.
        self.status_code = 200
        self.background = None
        self.raw_headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()]
        self.raw_headers.extend(visitor.cookie)
        self._follower = follower
        self._writer = writer
        self._heartbeats = site.heartbeats
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Follow to the end, or until the client has left."""
        follower = self._follower
        leaving: Leaving | None = scope.get(LEAVING)
        watcher = None
        if leaving is not None:
            leaving.then(follower.close)
        else:  # somebody else's server
            watcher = asyncio.ensure_future(_leaves(follower, receive))
        self._heartbeats.add(follower)
        try:
            first = await self._hold(self._held) if self._held is not None else b""
            if isinstance(first, Response):
                await first(scope, receive, send)
            else:
                await self._follow(first, send)
        finally:
            self._heartbeats.remove(follower)
            if watcher is not None:
                watcher.cancel()
            if leaving is not None:
                leaving.then(None)
            follower.close()

    async def _hold(self, held: Callable[[Ended], Response | None]) -> bytes | Response:
        """The first bytes; or what to answer instead."""
        while True:
            batch = await self._follower.next()
            if not batch:  # a heartbeat is due, or the client has left
                return b"" if self._follower.over else self._writer.heartbeat()
            data = b""
            for number, event in batch:
                if not data and isinstance(event, Ended) and (instead := held(event)) is not None:
                    return instead
                data += self._writer.write(number, event)
            if data:
                return data

    async def _follow(self, data: bytes, send: Send) -> None:
        """Send the head and the answer.

        Servers raise what they like from `send` for a client that is gone: any exception means that.
        """
        follower, write = self._follower, self._writer.write
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            # Some servers and middlewares hold the head until the first piece of a body, though it be empty.
            if data or not follower.behind:
                await send({"type": "http.response.body", "body": data, "more_body": True})
        except Exception:  # noqa: BLE001
            return
        more = True
        while more:
            batch = await follower.next()
            if len(batch) == 1:  # the path of nearly every delta
                data = write(*batch[0])
            elif batch:
                sent = await self._send_run(batch, send)
                if sent is None:
                    return
                data = sent
            else:
                data = b"" if follower.over else self._writer.heartbeat()
            more = not follower.over and not follower.at_end
            if data or not more:
                try:
                    await send({"type": "http.response.body", "body": data, "more_body": more})
                except Exception:  # noqa: BLE001
                    return
        if not follower.closed:  # of what was given to one that then left, nobody knows
            follower.delivered(follower.number)

    async def _send_run(self, batch: list[tuple[int, AnswerEvent]], send: Send) -> bytes | None:
        """Send many events in writes of a bounded size. Returns what is left to send; None where the client is gone."""
        parts: list[bytes] = []
        size = 0
        for number, event in batch:
            parts.append(self._writer.write(number, event))
            size += len(parts[-1])
            if size < _WRITE_BYTES:
                continue
            try:
                await send({"type": "http.response.body", "body": b"".join(parts), "more_body": True})
            except Exception:  # noqa: BLE001
                return None
            if self._follower.closed:
                return None
            self._follower.delivered(number)
            parts.clear()
            size = 0
        return b"".join(parts)


def primed(writer: Writer, exchange: Exchange, after: int) -> Writer:
    """`writer`, told of the events up to `after`: it goes on as if it had written them."""
    for number, event in enumerate(exchange.log.events[:after], 1):
        if event is not None:
            writer.prime(number, event)
    return writer


async def whole(follower: Follower, receive: Receive) -> list[AnswerEvent]:
    """All events of an answer, for a response that is one document; leaving before its end is leaving, here too."""
    watcher = asyncio.ensure_future(_leaves(follower, receive))
    got: list[AnswerEvent] = []
    try:
        while batch := await follower.next():
            got += [event for _, event in batch]
    finally:
        watcher.cancel()
        follower.close()
    return got


async def _leaves(follower: Follower, receive: Receive) -> None:
    """Close the follower when the client has left. What it still sends is read, as its leaving comes after it."""
    while True:
        try:
            message = await receive()
        except Exception:  # noqa: BLE001 - no server tells more by it than that nobody is there
            message = {"type": "http.disconnect"}
        if message["type"] == "http.disconnect":
            follower.close()
            return
