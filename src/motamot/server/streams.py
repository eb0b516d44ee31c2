"""One HTTP response following one exchange: what waits goes out in one write, silence is filled with comments."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from starlette.types import Message, Receive, Send

from motamot.exchange.exchange import Follower
from motamot.protocols.base import Writer

__all__ = ["Heartbeats", "leaves", "stream"]


class Heartbeats:
    """One timer for all open streams: a stream that wrote nothing for `seconds` is nudged to write a comment.

    A look every third of the time costs nothing per delta: it compares event numbers.
    """

    def __init__(self, seconds: float) -> None:
        self._every = seconds / 3
        self._streams: dict[Follower, tuple[int, int]] = {}  # event number at the last look, silent looks
        self._timer: asyncio.TimerHandle | None = None

    def add(self, follower: Follower) -> None:
        """Watch over a stream."""
        self._streams[follower] = (follower.number, 0)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every, self._look)

    def remove(self, follower: Follower) -> None:
        """The stream is over."""
        self._streams.pop(follower, None)

    def _look(self) -> None:
        self._timer = None
        for follower, (number, silent) in self._streams.items():
            silent = silent + 1 if follower.number == number else 0
            if silent == 3:
                follower.nudge()
                silent = 0
            self._streams[follower] = (follower.number, silent)
        if self._streams:
            self._timer = asyncio.get_running_loop().call_later(self._every, self._look)


async def stream(
    follower: Follower,
    writer: Writer,
    receive: Receive,
    send: Send,
    *,
    headers: Mapping[str, str],
    heartbeats: Heartbeats,
    first: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    """Send the head at once, then the answer as it comes. The follower is closed when the client has left.

    first: further header fields (a new visitor's cookie).
    """
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    watcher = asyncio.ensure_future(leaves(follower, receive))
    heartbeats.add(follower)
    write = writer.write
    try:
        if not await _sent(send, {"type": "http.response.start", "status": 200, "headers": [*raw, *first]}):
            return
        while True:
            batch = await follower.next()
            if len(batch) == 1:
                data = write(*batch[0])
            elif batch:
                data = b"".join([write(number, event) for number, event in batch])
            elif follower.over:
                break
            else:
                data = writer.heartbeat()
            if data and not await _sent(send, {"type": "http.response.body", "body": data, "more_body": True}):
                return
        await _sent(send, {"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        heartbeats.remove(follower)
        watcher.cancel()
        follower.close()


async def _sent(send: Send, message: Message) -> bool:
    """Whether the message went out. Servers raise what they like for a client that is gone: any of it means that."""
    try:
        await send(message)
    except Exception:  # noqa: BLE001
        return False
    return True


async def leaves(follower: Follower, receive: Receive) -> None:
    """Close the follower when the client has left."""
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            follower.close()
            return
