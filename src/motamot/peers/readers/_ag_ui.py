"""ga-client's frames of AG-UI events, as both of its readers find them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from motamot.peers.javascript import NotJson, parse
from motamot.peers.readers._ga_client import first_data_line

__all__ = ["frames"]


def frames(text: str) -> Iterator[tuple[str, Any]]:
    """Each frame's payload and value; one that is not JSON is skipped without a word."""
    for block in text.split("\n\n"):
        payload = first_data_line(block)
        if not payload:
            continue
        try:
            yield payload, parse(payload)
        except NotJson:
            continue
