"""Raw text in `data:` lines, as Guitar Alchemist's chatbot sends it."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.known.own import OwnReading
from motamot.findings.wire import EVENT_BYTES
from motamot.protocols.ga_text import PROTOCOL

__all__ = ["GA_TEXT"]


def _by_first(value: dict[str, Any]) -> str | None:
    routing = value.get("type") == "routing" and "routingMethod" in value
    return "the first event is a routing object" if routing else None


GA_TEXT = Known(
    name="ga-text",
    what="raw text in `data:` lines, ended by `[DONE]`, as Guitar Alchemist's chatbot sends it",
    reading=lambda hear: OwnReading(hear, PROTOCOL.reader(max_event_bytes=EVENT_BYTES), json=False),
    by_first=_by_first,
    end="`[DONE]` or an error object",
    raw=True,
    lf_only=True,
)
