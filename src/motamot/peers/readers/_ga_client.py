"""What ga-client's chatService does around its parser: one way of reading, with the parser's way to a payload."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from motamot.peers.base import Got
from motamot.peers.building import Building
from motamot.peers.javascript import Blocks, NotJson, decoded, member, parse, shown, trim, truthy

__all__ = ["first_data_line", "read_as_chat_service", "take_json"]


def read_as_chat_service(reads: Iterable[bytes], payload_of: Callable[[str], str]) -> Got:
    """payload_of: an event's block in, its payload out; "" skips it."""
    built, blocks, done = Building(), Blocks(), False
    count = 0
    for at, text in decoded(reads):
        count = at + 1
        for block in blocks.feed(text):
            payload = payload_of(block)
            if payload == "[DONE]":
                done = True  # later events of this read still count
                built.other("done", payload, at)
            elif payload.startswith("{"):
                threw = take_json(payload, built, at)
                if threw is not None:
                    return built.got(threw=threw)
            elif payload:
                built.text(payload, at)
        if done:
            break
    rest = trim(blocks.rest)
    if rest:
        built.text(rest, count)  # as it stands on the wire, its `data: ` included
    return built.got()


def first_data_line(block: str) -> str:
    """The first line that begins with `data:`, without it and trimmed; "" where there is none."""
    line = next((line for line in block.split("\n") if line.startswith("data:")), "data:")
    return trim(line[5:])


def take_json(payload: str, built: Building, at: int) -> str | None:
    """A payload that begins with a brace: nothing of it is text. Returns: what is thrown, or None."""
    try:
        value = parse(payload)
    except NotJson as problem:
        return str(problem)
    error = member(value, "error")
    if truthy(error):
        built.other("error", shown(error), at)
        return shown(error)
    built.other("routing" if member(value, "type") == "routing" else "other", payload, at)
    return None
