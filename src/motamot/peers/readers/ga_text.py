"""motamot's own reader of `ga-text`."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.readers._own import read_as
from motamot.protocols.ga_text import PROTOCOL

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Routing, text, the end or an error."""
    return read_as(PROTOCOL, reads)


READER = PeerReader(name="ga-text", title="motamot ga-text", origin="motamot.protocols.ga_text", read=read)
