"""Each network read by itself, split at LF: `decoder.decode(value).split("\\n")`, without a buffer."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Every line of a read that begins with `data: `; a new decoder for each read."""
    built = Building()
    for at, data in enumerate(reads):
        for line in _text(data).split("\n"):
            if line == "data: [DONE]":
                built.other("done", "[DONE]", at)
                return built.got()
            if line.startswith("data: "):
                built.text(line[6:], at)
    return built.got()


def _text(data: bytes) -> str:
    """The bytes of one read alone: a character that is cut becomes U+FFFD on both sides."""
    whole = data.decode("utf-8", "replace")
    return whole.removeprefix("\ufeff")


READER = PeerReader(
    name="naive-per-read",
    title="naive: each read by itself",
    origin="answers to questions about fetch and event streams",
    read=read,
    habits=(
        "What a read cuts is lost: the rest of a line, a character.",
        "Lines, not events: every line break of the answer is gone.",
    ),
)
