"""A stream through a reader of our own protocols."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.answer import AnswerEvent, Ended, Outcome, Routed, Text
from motamot.peers.base import Got
from motamot.peers.building import Building
from motamot.peers.readers.standard import EVENT_BYTES
from motamot.protocols.base import Protocol

__all__ = ["read_as"]


def read_as(protocol: Protocol, reads: Iterable[bytes]) -> Got:
    """What our reader gives; a failed answer keeps its text, and throws the error's message."""
    reader, built, count = protocol.reader(max_event_bytes=EVENT_BYTES), Building(), 0
    ended = None
    for at, data in enumerate(reads):
        count = at + 1
        ended = _take(reader.feed(data), built, at) or ended
    ended = _take(reader.close(), built, count) or ended
    complete = ended is not None and ended.outcome is Outcome.COMPLETE
    return built.got(threw=ended.message if ended is not None else None, complete=complete)


def _take(events: Iterable[AnswerEvent], built: Building, at: int) -> Ended | None:
    ended = None
    for event in events:
        if isinstance(event, Text):
            built.text(event.text, at)
        elif isinstance(event, Routed):
            built.other("routing", event.agent, at)
        elif isinstance(event, Ended):
            ended = event
            built.other("done" if event.code is None else "error", event.message or str(event.outcome), at)
    return ended
