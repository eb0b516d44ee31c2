"""ga-client's `streamChat` (src/services/chatApi.ts): line by line, without events."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import decoded
from motamot.peers.readers._ga_client import take_json

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Each finished `data: ` line is a piece."""
    built = Building()
    rest: list[str] = []
    for at, text in decoded(reads):
        if "\n" not in text:
            rest.append(text)
            continue
        *lines, last = ("".join(rest) + text).split("\n")
        rest = [last]
        for line in lines:
            data = line[6:] if line.startswith("data: ") else ""
            if data == "[DONE]":
                built.other("done", data, at)  # and goes on
            elif data.startswith("{"):
                threw = take_json(data, built, at)
                if threw is not None:
                    return built.got(threw=threw)
            elif data:
                built.text(data, at)
    return built.got()


READER = PeerReader(
    name="chat-api",
    title="ga-client chatApi",
    origin="GuitarAlchemist/ga at a826864, Apps/ga-client/src/services/chatApi.ts 73-172",
    read=read,
    habits=(
        "Lines, not events: every line break of the answer is gone, but no `data: ` line.",
        "Only LF ends a line: with CRLF each piece keeps a CR, and `[DONE]` becomes text.",
        "A line that begins with `{` is never text: `error` throws, other JSON is dropped, what is not JSON throws.",
        "`[DONE]` is skipped; the reading ends with the body.",
    ),
)
