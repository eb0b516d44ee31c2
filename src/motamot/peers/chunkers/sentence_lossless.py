"""Guitar Alchemist's SseChunker after #743: split after the white space behind a sentence, which stays."""

from __future__ import annotations

import re
from itertools import pairwise

from motamot.peers.base import Chunker
from motamot.peers.dotnet import BLANKS, blank

__all__ = ["CHUNKER"]

_BLANK = re.escape(BLANKS)
# .NET looks behind as far as it likes, Python does not: the end of this match is where that expression cuts.
_END = re.compile(f"(?<=[.!?])[{_BLANK}]+(?=[^{_BLANK}])")


def cut(text: str) -> list[str]:
    """Pieces that make the text again; none for a blank text."""
    if blank(text):
        return []
    ends = [0, *(found.end() for found in _END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


CHUNKER = Chunker(
    name="sentence-lossless",
    title="chunks after #743",
    origin="GuitarAlchemist/ga #743, 43e0eae, SseChunker.cs",
    cut=cut,
    habits=("It also cuts after `e.g.` and `3.`: nothing is lost, the sentence comes in two.",),
)
