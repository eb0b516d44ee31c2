"""Pieces for a plain `EventSource`."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.known.own import OwnReading
from motamot.findings.wire import EVENT_BYTES
from motamot.protocols.morceaux import PROTOCOL
from motamot.sse import Event

__all__ = ["MORCEAUX"]

_NAMES = ("fin", "arret", "erreur")


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    if event.event in _NAMES:
        return f"an event named {event.event}"
    return "data with `morceau`" if value is not None and isinstance(value.get("morceau"), str) else None


MORCEAUX = Known(
    name="morceaux",
    what="pieces for a plain `EventSource`",
    reading=lambda hear: OwnReading(hear, PROTOCOL.reader(max_event_bytes=EVENT_BYTES), json=True),
    by_event=_by_event,
    end="an event `fin`, `arret` or `erreur`",
)
