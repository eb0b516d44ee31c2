"""openai-python 3.57.0: the events of its `Stream`, before their JSON is parsed."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import PeerReader
from motamot.peers.libraries.family import HABITS, Fields
from motamot.peers.libraries.lines import Lines
from motamot.peers.libraries.seen import Seen, SeenEvent, reading

__all__ = ["READER", "read"]


def read(reads: Iterable[bytes]) -> Seen:
    """Its events. A line that is not UTF-8 throws, and ends the answer."""
    lines, fields, events = Lines(), Fields(), list[SeenEvent]()
    at = -1
    try:
        for at, data in enumerate(reads):
            _take(lines.feed(data), fields, at, events)
        if lines.rest:
            _take([lines.rest], fields, at + 1, events)
    except UnicodeDecodeError as error:
        return Seen(events=tuple(events), threw=f"UnicodeDecodeError: {error}")
    return Seen(events=tuple(events))


def _take(lines: list[bytes], fields: Fields, at: int, events: list[SeenEvent]) -> None:
    for line in lines:
        event = fields.line(line.decode("utf-8"), at)
        if event is not None:
            events.append(event)


READER = PeerReader(
    name="openai-python",
    title="openai-python 3.57.0 (port)",
    origin="PyPI openai 3.57.0, the decoder of Stream",
    read=reading(read),
    habits=(*HABITS, "Bytes that are not UTF-8 throw."),
)
