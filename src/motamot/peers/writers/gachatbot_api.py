"""GaChatbot.Api's `WriteSseLineAsync`: a `data: ` line per line of text."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import blank, utf8

__all__ = ["DONE", "WRITER", "event"]

DONE = b"data: [DONE]\n\n"


def event(text: str) -> bytes:
    """One piece as the host writes it."""
    lines = text.replace("\r", "").split("\n")
    return utf8("".join(f"data: {line}\n" for line in lines)) + b"\n"


def write(pieces: Sequence[str]) -> bytes:
    """Its controller passes on no piece of white space alone."""
    return b"".join(event(piece) for piece in pieces if not blank(piece)) + DONE


WRITER = PeerWriter(
    name="gachatbot-api",
    title="GaChatbot.Api",
    origin="GuitarAlchemist/ga at a826864, Apps/GaChatbot.Api/Controllers/ChatbotController.cs 449-474",
    write=write,
    habits=(
        "Every CR is deleted, so that a lone one glues what stands on its two sides.",
        "A piece of white space alone is left out.",
        "Text stands in the data as it is: a piece `[DONE]` is the end, and an error is JSON like any other text.",
    ),
)
