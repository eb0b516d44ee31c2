"""The two answers of the course's lesson, as its chatbot's skills compute them."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["IMPROVISATION", "VOICINGS"]


def _text(name: str) -> str:
    return (files("motamot.peers") / "data" / name).read_bytes().decode()


IMPROVISATION = _text("improvisation.txt")
"""558 characters: a sentence, a list of four, and a sentence."""
VOICINGS = _text("voicings.txt")
"""199 characters: two chords, each with a block of tablature."""
