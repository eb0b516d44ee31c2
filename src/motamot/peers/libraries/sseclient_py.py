"""sseclient-py 1.9.0: `SSEClient(response).events()`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from motamot.peers.base import PeerReader
from motamot.peers.libraries.seen import Seen, SeenEvent, reading

__all__ = ["READER", "read"]

_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


def read(reads: Iterable[bytes]) -> Seen:
    """Its events. A line that is not UTF-8 throws, and ends the answer."""
    events = []
    try:
        for at, block in _blocks(reads):
            event = _event(block, at)
            if event is not None:
                events.append(event)
    except UnicodeDecodeError as error:
        return Seen(events=tuple(events), threw=f"UnicodeDecodeError: {error}")
    return Seen(events=tuple(events))


def _blocks(reads: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """What stands between two line ends of one kind in a row; and at the end, what is left."""
    block = bytearray()
    at = -1
    for at, data in enumerate(reads):
        for line in data.splitlines(keepends=True):
            block += line
            if block.endswith(_ENDS):
                yield at, bytes(block)
                block.clear()
    if block:
        yield at + 1, bytes(block)


def _event(block: bytes, at: int) -> SeenEvent | None:
    data: list[str] = []
    event, last_id = "message", None
    for raw in block.splitlines():
        line = raw.decode("utf-8")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            event = value
        elif field == "id":
            last_id = value
    return SeenEvent("\n".join(data), event or "message", last_id, at) if data else None


READER = PeerReader(
    name="sseclient-py",
    title="sseclient-py 1.9.0 (port)",
    origin="PyPI sseclient-py 1.9.0, SSEClient.events",
    read=reading(read),
    habits=(
        "An event ends at two line ends of the same kind only: a stream that mixes them is one event.",
        "What no blank line ended is an event at the end of the body.",
        "A byte-order mark at the start makes its first line unknown: the first event is lost.",
        "Bytes that are not UTF-8 throw.",
    ),
)
