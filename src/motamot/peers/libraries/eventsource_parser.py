"""eventsource-parser 4.1.3: `EventSourceParserStream`, behind a `TextDecoderStream`, as Vercel's `ai` reads with it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from motamot.peers.base import PeerReader
from motamot.peers.libraries.javascript_text import TextStream
from motamot.peers.libraries.seen import Seen, SeenEvent, reading

__all__ = ["READER", "read"]

_END = re.compile("\r\n|\r|\n")
_MARKS = ("\ufeff", "\xef\xbb\xbf")  # decoded, and as bytes that somebody took for characters


def read(reads: Iterable[bytes]) -> Seen:
    """Its events; an id is told with the events of its own block only."""
    text, block, events = TextStream(), _Block(), []
    start: str | None = ""  # what may become a second byte-order mark; None once that is decided
    parts: list[str] = []
    skip_lf = False
    for at, data in enumerate(reads):
        piece = text.decode(data)
        if start is not None:
            start += piece
            if any(mark != start and mark.startswith(start) for mark in _MARKS):
                continue
            piece, start = _without_mark(start), None
        if skip_lf and piece:
            piece, skip_lf = piece.removeprefix("\n"), False
        if not piece:
            continue
        skip_lf = piece.endswith("\r")
        first, *more = _END.split(piece)
        parts.append(first)
        if more:
            *whole, last = more
            for line in ("".join(parts), *whole):
                event = block.line(line, at)
                if event is not None:
                    events.append(event)
            parts = [last]
    return Seen(events=tuple(events))


def _without_mark(text: str) -> str:
    return next((text.removeprefix(mark) for mark in _MARKS if text.startswith(mark)), text)


class _Block:
    """The fields of the block under way."""

    __slots__ = ("_data", "_event", "_id")

    def __init__(self) -> None:
        self._data: list[str] = []
        self._event = ""
        self._id: str | None = None

    def line(self, line: str, at: int) -> SeenEvent | None:
        """Take one line. Returns: the event that it ends, if any."""
        if not line:
            ended = SeenEvent("\n".join(self._data), self._event or "message", self._id, at) if self._data else None
            self._data, self._event, self._id = [], "", None
            return ended
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None


READER = PeerReader(
    name="eventsource-parser",
    title="eventsource-parser 4.1.3 (port)",
    origin="npm eventsource-parser 4.1.3, EventSourceParserStream behind TextDecoderStream",
    read=reading(read),
    habits=("A second byte-order mark at the start is dropped too.",),
)
