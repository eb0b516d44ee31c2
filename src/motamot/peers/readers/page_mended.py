"""The page of GaChatbot.Api with the third exercise done: an error event ends the stream with an error."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.javascript import NotJson, parse
from motamot.peers.readers.page import read_as_page

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """As the page, until an error event: its message is thrown, and the history keeps neither turn."""
    return read_as_page(reads, _error)


def _error(data: str) -> str | None:
    """The message of an event in the hosts' shape: an object whose one member is `error`, a string.

    Other JSON is text: an answer may well consist of it.
    """
    if not data.startswith("{"):
        return None
    try:
        value = parse(data)
    except NotJson:
        return None
    alone = isinstance(value, dict) and list(value) == ["error"] and isinstance(value["error"], str)
    return value["error"] if alone else None


READER = PeerReader(
    name="page-mended",
    title="GaChatbot page, exercise 3",
    origin="the lesson's third exercise, on the page's reader",
    read=read,
    habits=(
        "An event that is an object with nothing but a string `error` throws its message.",
        "An answer that is just such an object cannot be told apart.",
        "The rest as the page: only LF LF, only `data: `, no need of `[DONE]`.",
    ),
)
