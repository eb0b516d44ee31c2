"""`JSON.parse` of each line of each read, with a `catch` that ignores what it cannot read."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import NotJson, decoded, parse

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Lines of a read without a buffer: what a read cuts is not JSON on either side, and is skipped."""
    built = Building()
    for at, text in decoded(reads):
        for line in text.split("\n"):
            if not line.startswith("data: "):
                continue
            try:
                value = parse(line[6:])
            except NotJson:
                built.other("done" if line == "data: [DONE]" else "other", line[6:], at)
                continue
            if isinstance(value, dict) and isinstance(value.get("text"), str):
                built.text(value["text"], at)
            else:
                built.other("other", line[6:], at)
    return built.got()


READER = PeerReader(
    name="naive-json-per-line",
    title="naive: JSON.parse, catch {}",
    origin="answers to questions about fetch and event streams",
    read=read,
    habits=("An event that a read cuts is lost without a word.",),
    stream="json",
)
