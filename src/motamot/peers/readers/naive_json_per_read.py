"""`JSON.parse` of each network read: `JSON.parse(chunk.replace("data: ", ""))`."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import NotJson, decoded, parse

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """A read is taken for one event. What is not JSON throws, but for the end mark."""
    built = Building()
    for at, text in decoded(reads):
        payload = text.replace("data: ", "", 1)
        if payload.strip() == "[DONE]":
            built.other("done", "[DONE]", at)
            return built.got()
        try:
            value = parse(payload)
        except NotJson as error:
            return built.got(threw=str(error))
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            built.text(value["text"], at)
        else:
            built.other("other", payload, at)
    return built.got()


READER = PeerReader(
    name="naive-json-per-read",
    title="naive: JSON.parse per read",
    origin="answers to questions about fetch and event streams",
    read=read,
    habits=("Two events in one read, or one in two, throw: it works until the network is fast, or slow.",),
    stream="json",
)
