"""Words with a space after each (`for word in text.split()`), as mock answers are streamed."""

from __future__ import annotations

from motamot.peers.base import Chunker

__all__ = ["CHUNKER"]


def cut(text: str) -> list[str]:
    """A piece per word."""
    return [f"{word} " for word in text.split()]


CHUNKER = Chunker(
    name="naive-words",
    title="text.split()",
    origin="tutorials of every framework",
    cut=cut,
    habits=("Every line break becomes a space; one space is added at the end.",),
)
