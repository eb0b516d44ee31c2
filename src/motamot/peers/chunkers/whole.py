"""The whole answer as one piece."""

from __future__ import annotations

from motamot.peers.base import Chunker

__all__ = ["CHUNKER"]


def cut(text: str) -> list[str]:
    """One piece, or none for no text."""
    return [text] if text else []


CHUNKER = Chunker(name="whole", title="in one piece", origin="servers that do not stream", cut=cut)
