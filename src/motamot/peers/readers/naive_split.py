"""Split the buffer at LF LF and cut six characters off: `part.replace("data: ", "")` or `part.slice(6)`."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import Blocks, decoded

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """What stands behind the `data: ` an event begins with; its further lines keep theirs."""
    built, blocks = Building(), Blocks()
    for at, text in decoded(reads):
        for block in blocks.feed(text):
            if not block.startswith("data: "):
                continue
            if block == "data: [DONE]":
                built.other("done", "[DONE]", at)
                return built.got()
            built.text(block[6:], at)
    return built.got()


READER = PeerReader(
    name="naive-split",
    title="naive: split at LF LF",
    origin="answers to questions about fetch and event streams",
    read=read,
    habits=("An event's second line keeps its `data: `.", "Only LF LF ends an event.", "Errors are text."),
)
