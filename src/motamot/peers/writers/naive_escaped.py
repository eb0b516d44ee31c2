"""A writer that puts a backslash and an n where the line breaks were: `chunk.replace("\\n", "\\\\n")`."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import utf8
from motamot.peers.writers.gachatbot_api import DONE

__all__ = ["WRITER"]


def write(pieces: Sequence[str]) -> bytes:
    """Each piece on one line, which only a reader that turns it back reads right."""
    lines = (piece.replace("\n", "\\n") for piece in pieces)
    return b"".join(utf8(f"data: {line}\n\n") for line in lines) + DONE


WRITER = PeerWriter(
    name="naive-escaped",
    title="line breaks as \\n",
    origin="answers to questions about lost line breaks",
    write=write,
    habits=(
        "No reader of the standard turns it back, and one that does spoils `\\n` in code.",
        "CR still ends a line.",
    ),
)
