"""GaApi's made-up tokens (`ProductionOrchestrator.AnswerStreamingAsync`): split at spaces, one space added to each."""

from __future__ import annotations

from motamot.peers.base import Chunker

__all__ = ["CHUNKER"]


def cut(text: str) -> list[str]:
    """A piece per run without U+0020."""
    return [f"{piece} " for piece in text.split(" ") if piece]


CHUNKER = Chunker(
    name="tokens",
    title="space tokens",
    origin="GuitarAlchemist/ga at a826864, ProductionOrchestrator.cs 209-298",
    cut=cut,
    habits=("Several spaces become one, so that indentation is lost; one space is added at the end.",),
)
