"""motamot's own event stream."""

from __future__ import annotations

import re
from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.known.own import OwnReading
from motamot.findings.wire import EVENT_BYTES
from motamot.protocols.native import PROTOCOL
from motamot.sse import Event

__all__ = ["MOTAMOT"]

_TYPES = {"started", "routed", "text", "reasoning", "tool_called", "tool_returned", "cited", "turn_ended", "ended"}
_ALONE = ("started", "turn_ended", "ended")  # enough without an id of ours: other words others write, too
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\.[0-9]{1,9}")


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    kind = value.get("type") if value is not None else None
    if isinstance(kind, str) and kind in _TYPES and (kind in _ALONE or _ID.fullmatch(event.id)):
        return f"an event of type {kind}"
    return None


MOTAMOT = Known(
    name="motamot",
    what="motamot's own event stream",
    aliases=("native",),
    reading=lambda hear: OwnReading(hear, PROTOCOL.reader(max_event_bytes=EVENT_BYTES), json=True),
    by_event=_by_event,
    end="an `ended` event",
)
