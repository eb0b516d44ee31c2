"""GaApi's writer with the second exercise done: a `data: ` line per LF; CR stays."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import utf8
from motamot.peers.writers.gachatbot_api import DONE

__all__ = ["WRITER", "event"]


def event(text: str) -> bytes:
    """One piece."""
    return utf8("".join(f"data: {line}\n" for line in text.split("\n"))) + b"\n"


def write(pieces: Sequence[str]) -> bytes:
    """Each piece as an event."""
    return b"".join(map(event, pieces)) + DONE


WRITER = PeerWriter(
    name="gaapi-mended",
    title="GaApi, exercise 2",
    origin="the lesson's second exercise, on GaApi's writer",
    write=write,
    habits=(
        "A CR before the LF stays: readers that end lines at LF alone have it in the text; a lone one still loses.",
    ),
)
