"""GaApi's writer mended better than the exercise asks: a `data: ` line per line of text, whatever ended it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from motamot.peers.base import PeerWriter
from motamot.peers.dotnet import utf8
from motamot.peers.writers.gachatbot_api import DONE

__all__ = ["WRITER", "event"]

_LINE_END = re.compile("\r\n|[\r\n]")


def event(text: str) -> bytes:
    """One piece."""
    return utf8("".join(f"data: {line}\n" for line in _LINE_END.split(text))) + b"\n"


def write(pieces: Sequence[str]) -> bytes:
    """Each piece as an event."""
    return b"".join(map(event, pieces)) + DONE


WRITER = PeerWriter(
    name="gaapi-lines",
    title="GaApi, CRLF CR LF",
    origin="WHATWG HTML, Server-sent events: what ends a line",
    write=write,
    habits=("CR and CRLF come out as LF; a CRLF cut between two pieces as two.",),
)
