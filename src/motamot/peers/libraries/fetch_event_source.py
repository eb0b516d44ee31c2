"""@microsoft/fetch-event-source 2.0.1: `fetchEventSource(url, { onmessage })`."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import PeerReader
from motamot.peers.libraries.lines import Lines
from motamot.peers.libraries.seen import Seen, SeenEvent, reading

__all__ = ["READER", "read"]


def read(reads: Iterable[bytes]) -> Seen:
    """Its messages: every blank line is one, whatever stood before it."""
    lines, events = Lines(), []
    data = event = own_id = ""
    for at, piece in enumerate(reads):
        for line in lines.feed(piece):
            if not line:
                events.append(SeenEvent(data, event or "message", own_id or None, at))
                data = event = own_id = ""
                continue
            name, colon, rest = line.partition(b":")
            if not (name and colon):
                continue
            field, value = _text(name), _text(rest.removeprefix(b" "))
            if field == "data":
                data = f"{data}\n{value}" if data else value
            elif field == "event":
                event = value
            elif field == "id":
                own_id = value
    return Seen(events=tuple(events))


def _text(data: bytes) -> str:
    """As a TextDecoder that is given a field by itself: a byte-order mark at its start is dropped."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


READER = PeerReader(
    name="fetch-event-source",
    title="fetch-event-source 2.0.1 (port)",
    origin="npm @microsoft/fetch-event-source 2.0.1, onmessage",
    read=reading(read),
    habits=(
        "Every blank line is a message with empty data: also after a comment, `retry`, `event` or `id` alone.",
        "Empty data lines at the start of an event are lost, and a line without a colon always.",
        "U+FEFF at the start of a value is lost.",
    ),
)
