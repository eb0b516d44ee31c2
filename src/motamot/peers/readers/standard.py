"""The HTML standard, read with `motamot.sse`, and the end mark and routing that everybody knows put aside."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.errors import LimitExceeded
from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.sse import Decoder

__all__ = ["EVENT_BYTES", "READER", "is_routing"]

EVENT_BYTES = 1 << 30
"""The largest event a port takes: its stream is in memory already, so that no event is larger than what was given."""


def is_routing(data: str) -> bool:
    """Whether an event is Guitar Alchemist's routing, by how it begins: the way the course tells it."""
    return data.startswith('{"type":"routing"')


def read(reads: Iterable[bytes]) -> Got:
    """Every event is text but `[DONE]` and a routing event that comes first."""
    built, decoder, done, first = Building(), Decoder(max_event_bytes=EVENT_BYTES), False, True
    for at, data in enumerate(reads):
        try:
            events = decoder.feed(data)
        except LimitExceeded as error:
            return built.got(threw=error.message)
        for event in events:
            if event.data == "[DONE]":
                done = True
                built.other("done", event.data, at)
            elif first and is_routing(event.data):
                built.other("routing", event.data, at)
            else:
                built.text(event.data, at)
            first = False
    return built.got(complete=done)


READER = PeerReader(
    name="standard",
    title="HTML standard",
    origin="WHATWG HTML, Server-sent events; motamot.sse",
    read=read,
)
