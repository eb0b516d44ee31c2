"""Guitar Alchemist's SseChunker at a826864: split at the white space after a sentence, which is then gone."""

from __future__ import annotations

import re

from motamot.peers.base import Chunker
from motamot.peers.dotnet import BLANKS, blank

__all__ = ["CHUNKER"]

_BETWEEN = re.compile(f"(?<=[.!?])[{re.escape(BLANKS)}]+")


def cut(text: str) -> list[str]:
    """The pieces that are not blank."""
    return [piece for piece in _BETWEEN.split(text) if not blank(piece)]


CHUNKER = Chunker(
    name="sentence",
    title="chunks at a826864",
    origin="GuitarAlchemist/ga at a826864, SseChunker.cs 19-29",
    cut=cut,
    habits=("Every run of white space after `.`, `!` or `?` is lost: line breaks, and the space between sentences.",),
)
