"""@ag-ui/client 1.0.0: `parseSSEStream`, which its `HttpAgent` reads with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from motamot.peers.base import PeerReader
from motamot.peers.javascript import Blocks, NotJson, parse
from motamot.peers.libraries.javascript_text import TextStream
from motamot.peers.libraries.seen import Seen, SeenEvent, reading

__all__ = ["BUFFER_UNITS", "READER", "read"]

BUFFER_UNITS = 10 * 1024 * 1024
"""UTF-16 units that may wait for a blank line; one more throws."""


def read(reads: Iterable[bytes]) -> Seen:
    """The values of its events, as JSON; the first that is not JSON throws, and is the last."""
    events = []
    try:
        for at, block in _blocks(reads):
            lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
            if lines:
                value = parse("\n".join(lines))
                events.append(SeenEvent(json.dumps(value, ensure_ascii=False, separators=(",", ":")), at=at))
    except NotJson as error:
        return Seen(events=tuple(events), threw=str(error))
    except OverflowError as error:
        return Seen(events=tuple(events), threw=f"Error: {error}")
    return Seen(events=tuple(events))


def _blocks(reads: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """What stands before each LF LF; and at the end, what is left."""
    text, pending, waiting = TextStream(), Blocks(), 0
    at = -1
    for at, data in enumerate(reads):
        piece = text.decode(data)
        blocks = pending.feed(piece)
        yield from ((at, block) for block in blocks)
        waiting = _units(pending.rest) if blocks else waiting + _units(piece)
        if waiting > BUFFER_UNITS:
            raise OverflowError("SSE buffer size exceeded maximum limit of 10 MB")
    if pending.rest:
        yield at + 1, pending.rest + text.end()


def _units(text: str) -> int:
    """Length as JavaScript counts: a character beyond U+FFFF is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


READER = PeerReader(
    name="ag-ui-client",
    title="@ag-ui/client 1.0.0 (port)",
    origin="npm @ag-ui/client 1.0.0, parseSSEStream",
    read=reading(read, values=True),
    habits=(
        "Only LF LF ends an event, and only LF a line: a stream with CRLF or CR throws at its end.",
        "What no blank line ended is an event at the end of the body.",
        "`[DONE]` is not JSON, and throws.",
    ),
    stream="ag-ui",
)
