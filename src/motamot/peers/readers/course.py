"""The reader of the course's lesson 6 (`Standard` in Lesson6.cs): five rules of the standard, one of them broken."""

from __future__ import annotations

import re
from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.readers.standard import is_routing

__all__ = ["READER", "events"]

_LINE_END = re.compile("\r\n|[\r\n]")


def events(stream: str) -> list[str]:
    """The data of each event. What follows the last line end counts as a line, also where it is nothing."""
    found: list[str] = []
    data: list[str] = []
    for line in _LINE_END.split(stream):
        if not line:
            if data:
                found.append("\n".join(data))
                data = []
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
    return found


def read(reads: Iterable[bytes]) -> Got:
    """The whole body as one text, its events joined but for `[DONE]`."""
    got = list(reads)
    built, done = Building(), False
    for place, data in enumerate(events(b"".join(got).decode("utf-8", "replace"))):
        if data == "[DONE]":
            done = True
            built.other("done", data, len(got))
        elif place == 0 and is_routing(data):
            built.other("routing", data, len(got))
        else:
            built.text(data, len(got))
    return built.got(complete=done)


READER = PeerReader(
    name="course",
    title="the course's reader",
    origin="spareilleux/learn, code/ga-ai/GaAi/Lesson6.cs, Standard",
    read=read,
    habits=(
        "It reads the whole body at once.",
        "A stream that ends just after one line end dispatches its last event, which no blank line has ended.",
        "A byte-order mark stays, and spoils the first field's name.",
        "Fields other than `data` are not read, so that no event has a type.",
    ),
)
