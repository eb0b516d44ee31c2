"""JSON in each event, `{"text": …}`, with `json.dumps`: what carries any text with the least trouble."""

from __future__ import annotations

import json
from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.writers.gachatbot_api import DONE

__all__ = ["WRITER"]


def write(pieces: Sequence[str]) -> bytes:
    """One object per piece, ASCII on one line."""
    return b"".join(f"data: {json.dumps({'text': piece})}\n\n".encode("ascii") for piece in pieces) + DONE


WRITER = PeerWriter(
    name="json",
    title="JSON per event",
    origin="json.dumps of Python",
    write=write,
    stream="json",
)
