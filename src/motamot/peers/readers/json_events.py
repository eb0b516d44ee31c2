"""A right reader of JSON in events, `{"text": …}`: the standard's events, each parsed."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building
from motamot.peers.javascript import NotJson, parse
from motamot.peers.readers.standard import read as read_standard

__all__ = ["READER"]


def read(reads: Iterable[bytes]) -> Got:
    """Objects without a `text` are no text; what is not JSON throws."""
    built = Building()
    standard = read_standard(reads)
    for step in standard.steps:
        if step.kind != "text":
            built.other(*step)
            continue
        try:
            value = parse(step.text)
        except NotJson as error:
            return built.got(threw=str(error))
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            built.text(value["text"], step.at)
        else:
            built.other("other", step.text, step.at)
    return built.got(threw=standard.threw, complete=standard.complete)


READER = PeerReader(
    name="json", title="JSON per event", origin="WHATWG HTML, Server-sent events; JSON.parse", read=read, stream="json"
)
