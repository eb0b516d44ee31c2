"""Four characters a piece, as a model's tokens are long: nothing is lost, and cuts fall anywhere."""

from __future__ import annotations

from motamot.peers.base import Chunker

__all__ = ["CHUNKER"]

_LENGTH = 4


def cut(text: str) -> list[str]:
    """Pieces that make the text again."""
    return [text[start : start + _LENGTH] for start in range(0, len(text), _LENGTH)]


CHUNKER = Chunker(name="characters", title="4 characters", origin="about the length of a model's token", cut=cut)
