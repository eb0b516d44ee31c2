"""The page of GaChatbot.Api (`consumeSseStream` in wwwroot/index.html), and what its conversation keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import Blocks, NotJson, decoded, member, parse, truthy

__all__ = ["READER", "data_of", "kept", "read_as_page", "routing_in", "undrawable"]


def read(reads: Iterable[bytes]) -> Got:
    """Everything is appended to the answer but a first routing event and `[DONE]`."""
    return read_as_page(reads, lambda _: None)


def read_as_page(reads: Iterable[bytes], error_in: Callable[[str], str | None]) -> Got:
    """error_in: the message that an event's data makes the reader throw, or None."""
    built, blocks, routing = Building(), Blocks(), None
    for at, text in decoded(reads):
        for block in blocks.feed(text):
            data = data_of(block)
            if data is None:
                continue
            if data == "[DONE]":
                built.other("done", data, at)
                return built.got(threw=undrawable(routing))
            message = error_in(data)
            if message is not None:
                built.other("error", message, at)
                return built.got(threw=message)
            if routing is None and (routing := routing_in(data)) is not None and not undrawable(routing):
                built.other("routing", data, at)
            else:
                built.text(data, at)
    return built.got(threw=undrawable(routing))


def data_of(block: str) -> str | None:
    """The `data: ` lines of an event, joined with LF, or None where it has none."""
    lines = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
    return "\n".join(lines) if lines else None


def routing_in(data: str) -> dict[str, Any] | None:
    """What the page takes for the routing: JSON whose `type` is `routing`."""
    if not data.startswith("{") or '"type"' not in data:
        return None
    try:
        value: Any = parse(data)
    except NotJson:
        return None
    return value if isinstance(value, dict) and value.get("type") == "routing" else None


def undrawable(routing: dict[str, Any] | None) -> str | None:
    """What drawing this trace throws, or None.

    The first time that makes the event text; the second time, once the stream has ended, the whole request fails.
    """
    trace = routing.get("trace") if routing is not None else None
    steps = trace.get("steps") if isinstance(trace, dict) else None
    if isinstance(steps, dict) and truthy(member(steps, "length")):
        return "trace.steps is not iterable"
    if isinstance(steps, list) and None in steps:
        return "Cannot read properties of null (reading 'status')"
    return None


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
        "A trace that cannot be drawn makes the routing event text, and fails the request when all has been read.",
        "An end without `[DONE]` is taken for the end of the answer.",
        "A character that the end of the body cuts disappears.",
    ),
)
