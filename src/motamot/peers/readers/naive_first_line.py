"""The first `data:` line of each event, trimmed; JSON is not looked at."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import Blocks, decoded
from motamot.peers.readers._ga_client import first_data_line

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """One line per event."""
    built, blocks = Building(), Blocks()
    for at, text in decoded(reads):
        for block in blocks.feed(text):
            payload = first_data_line(block)
            if payload == "[DONE]":
                built.other("done", payload, at)
                return built.got()
            if payload:
                built.text(payload, at)
    return built.got()


READER = PeerReader(
    name="naive-first-line",
    title="naive: first line, trim",
    origin="answers to questions about fetch and event streams",
    read=read,
    habits=("Further lines of an event are lost, and the blanks at both ends.", "Only LF LF ends an event."),
)
