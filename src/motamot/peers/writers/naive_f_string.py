"""The first writer of most tutorials: `yield f"data: {chunk}\\n\\n"`, and nothing at the end."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import utf8

__all__ = ["WRITER"]


def write(pieces: Sequence[str]) -> bytes:
    """Each piece that is not empty, as it is."""
    return b"".join(utf8(f"data: {piece}\n\n") for piece in pieces if piece)


WRITER = PeerWriter(
    name="naive-f-string",
    title='f"data: {chunk}"',
    origin="tutorials of every framework",
    write=write,
    habits=("A line break in a piece ends the line or the event.", "Nothing marks the end."),
)
