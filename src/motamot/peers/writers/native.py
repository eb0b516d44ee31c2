"""motamot's native protocol, an answer event per piece."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.writers._own import written
from motamot.protocols.native import PROTOCOL

__all__ = ["WRITER"]


def write(pieces: Sequence[str]) -> bytes:
    """As the server writes it."""
    return written(PROTOCOL.writer(), pieces)


WRITER = PeerWriter(
    name="motamot",
    title="motamot native",
    origin="motamot.protocols.native",
    write=write,
    stream="motamot",
)
