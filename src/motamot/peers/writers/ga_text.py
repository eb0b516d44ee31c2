"""motamot's own `ga-text`, an answer event per piece."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.writers._own import written
from motamot.protocols.ga_text import PROTOCOL

__all__ = ["WRITER"]


def write(pieces: Sequence[str]) -> bytes:
    """As the server writes it, but for the routing event, which the other writers have not either."""
    stream = written(PROTOCOL.writer(), pieces)
    return stream.partition(b"\n\n")[2]


WRITER = PeerWriter(
    name="ga-text",
    title="motamot ga-text",
    origin="motamot.protocols.ga_text",
    write=write,
    habits=(
        "CR and CRLF come out as LF.",
        "A piece ends with its line, and the last character of one may come with the next.",
    ),
)
