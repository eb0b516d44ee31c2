"""GaApi's `WriteSseLineAsync`: the piece as it is behind one `data: `, which is also what most people write first."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import utf8
from motamot.peers.writers.gachatbot_api import DONE

__all__ = ["WRITER", "event"]


def event(text: str) -> bytes:
    """One piece as the host writes it."""
    return utf8(f"data: {text}\n\n")


def write(pieces: Sequence[str]) -> bytes:
    """Each piece as an event of its own, whatever is in it."""
    return b"".join(map(event, pieces)) + DONE


WRITER = PeerWriter(
    name="gaapi",
    title="GaApi",
    origin="GuitarAlchemist/ga at a826864, Apps/ga-server/GaApi/Controllers/ChatbotController.cs 318-322",
    write=write,
    habits=(
        "Of a piece with line breaks, what follows the first is a field that every reader ignores, or an event more.",
        "Text can make events: `data: …` at the start of a line is read as the server's own.",
    ),
)
