"""A protocol as an examination knows it: how it is recognised and read, and what its own clients are like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from motamot.findings.reading import Hear, Reading
from motamot.sse import Event

__all__ = ["Known"]


def _no_event(event: Event, value: dict[str, Any] | None) -> str | None:
    del event, value
    return None


def _no_value(value: dict[str, Any]) -> str | None:
    del value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One protocol.

    name, what: as a report says them. aliases: what else it may be called where it is given.
    reading:    reads one tape of it.
    by_event:   why an event (with its JSON object, or None) is this protocol's, one clause; None for words that
                others write, too. by_first: the same of the first event, where that alone decides. by_line: of a line
                of JSON. header: of the response, which decides, too.
    end:        the event that ends it, in words; "" where the reading names a missing end by itself.
    upstream:   a model's server writes it: its text is what the model wrote.
    strict:     its own clients take for an event what the standard passes over (a `retry` alone, a ping's name).
    raw:        text stands in its data as it is.
    lf_only:    its own clients know no other line end.
    """

    name: str
    what: str
    reading: Callable[[Hear], Reading]
    aliases: tuple[str, ...] = ()
    by_event: Callable[[Event, dict[str, Any] | None], str | None] = _no_event
    by_first: Callable[[dict[str, Any]], str | None] = _no_value
    by_line: Callable[[dict[str, Any]], str | None] = _no_value
    header: str | None = None
    end: str = ""
    upstream: bool = False
    strict: bool = False
    raw: bool = False
    lf_only: bool = False
