"""motamot's own reader of its native protocol."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.readers._own import read_as
from motamot.protocols.native import PROTOCOL

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Text, the end, and how it ended."""
    return read_as(PROTOCOL, reads)


READER = PeerReader(
    name="motamot", title="motamot native", origin="motamot.protocols.native", read=read, stream="motamot"
)
