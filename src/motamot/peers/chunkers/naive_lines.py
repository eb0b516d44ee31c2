"""Lines without their ends (`text.splitlines()`), each a piece."""

from __future__ import annotations

from motamot.peers.base import Chunker

__all__ = ["CHUNKER"]


def cut(text: str) -> list[str]:
    """A piece per line, blank ones included."""
    return text.splitlines()


CHUNKER = Chunker(
    name="naive-lines",
    title="text.splitlines()",
    origin="tutorials of every framework",
    cut=cut,
    habits=(
        "Every line break is lost, and what Python takes for one: U+0085, U+2028, U+2029, VT, FF, U+001C to U+001E.",
    ),
)
