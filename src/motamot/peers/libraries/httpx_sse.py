"""httpx-sse 0.4.3: `EventSource(response).iter_sse()`."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from motamot.peers.base import PeerReader
from motamot.peers.libraries.family import HABITS, Fields
from motamot.peers.libraries.seen import Seen, reading

__all__ = ["READER", "read"]

_END = re.compile("\r\n|\r|\n")


def read(reads: Iterable[bytes]) -> Seen:
    """Its events. Text is decoded before it is cut into lines, and a CR at the end of a read waits for the next."""
    fields, events = Fields(), []
    for at, line in _lines(reads):
        event = fields.line(line, at)
        if event is not None:
            events.append(event)
    return Seen(events=tuple(events))


def _lines(reads: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    parts: list[str] = []
    held, at = "", -1
    for at, data in enumerate(reads):
        text = held + decoder.decode(data)
        held = "\r" if text.endswith("\r") else ""
        first, *more = _END.split(text.removesuffix("\r"))
        parts.append(first)
        if more:
            yield at, "".join(parts)
            *whole, last = more
            yield from ((at, line) for line in whole)
            parts = [last]
    rest = "".join(parts)
    if rest or held:
        yield at + 1, rest


READER = PeerReader(
    name="httpx-sse",
    title="httpx-sse 0.4.3 (port)",
    origin="PyPI httpx-sse 0.4.3, EventSource.iter_sse",
    read=reading(read),
    habits=HABITS,
)
