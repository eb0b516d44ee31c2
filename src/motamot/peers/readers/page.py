"""The page of GaChatbot.Api (`consumeSseStream` in wwwroot/index.html), and what its conversation keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import Blocks, NotJson, decoded, parse

__all__ = ["READER", "data_of", "is_routing", "kept"]


def read(reads: Iterable[bytes]) -> Got:
    """Everything is appended to the answer but a first routing event and `[DONE]`."""
    built, blocks, routed = Building(), Blocks(), False
    for at, text in decoded(reads):
        for block in blocks.feed(text):
            data = data_of(block)
            if data is None:
                continue
            if data == "[DONE]":
                built.other("done", data, at)
                return built.got()
            if not routed and is_routing(data):
                routed = True
                built.other("routing", data, at)
            else:
                built.text(data, at)
    return built.got()


def data_of(block: str) -> str | None:
    """The `data: ` lines of an event, joined with LF, or None where it has none."""
    lines = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
    return "\n".join(lines) if lines else None


def is_routing(data: str) -> bool:
    """Whether the page takes this for the routing: JSON whose `type` is `routing`."""
    if not data.startswith("{") or '"type"' not in data:
        return False
    try:
        value: Any = parse(data)
    except NotJson:
        return False
    return isinstance(value, dict) and value.get("type") == "routing"


def kept(got: Got) -> str | None:
    """The assistant's turn that every later request sends: the answer, or a stand-in; None where reading threw."""
    return None if got.threw is not None else got.text or "(empty response)"


READER = PeerReader(
    name="page",
    title="GaChatbot page",
    origin="GuitarAlchemist/ga at a826864, Apps/GaChatbot.Api/wwwroot/index.html 740-809",
    read=read,
    habits=(
        "Only LF LF ends an event: a stream with CRLF gives an empty answer.",
        "Only lines that begin with `data: `, with the space, count.",
        "An error event is appended to the answer, and kept in the history.",
        "An end without `[DONE]` is taken for the end of the answer.",
        "A character that the end of the body cuts disappears.",
    ),
)
