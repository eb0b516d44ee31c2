"""A writer that "cleans" each piece: `f"data: {chunk.strip()}\\n\\n"`."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import utf8
from motamot.peers.writers.gachatbot_api import DONE

__all__ = ["WRITER"]


def write(pieces: Sequence[str]) -> bytes:
    """Each piece without the white space at its ends; what is empty then is left out."""
    stripped = filter(None, (piece.strip() for piece in pieces))
    return b"".join(utf8(f"data: {piece}\n\n") for piece in stripped) + DONE


WRITER = PeerWriter(
    name="naive-strip",
    title='f"data: {chunk.strip()}"',
    origin="tutorials of every framework",
    write=write,
    habits=("The spaces and line breaks between two pieces are gone.", "A line break inside a piece ends the line."),
)
