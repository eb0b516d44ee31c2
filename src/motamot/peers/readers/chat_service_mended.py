"""ga-client's chatService with the second exercise done: it joins the `data:` lines of an event, and trims nothing."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.readers._ga_client import read_as_chat_service

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """As chatService, with all of an event's `data:` lines as they are."""
    return read_as_chat_service(reads, _payload)


def _payload(block: str) -> str:
    lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
    return "\n".join(lines)


READER = PeerReader(
    name="chat-service-mended",
    title="ga-client chatService, exercise 2",
    origin="the lesson's second exercise, on chatService",
    read=read,
    habits=(
        "Only LF LF ends an event, and CR stays in the text.",
        "A payload that begins with `{` is still never text.",
        "What no LF LF has ended is still appended as it stands.",
    ),
)
