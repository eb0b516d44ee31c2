"""Anthropic's messages API."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.known.completion import Completion
from motamot.model.assembly import Kind
from motamot.sse import Event

__all__ = ["ANTHROPIC"]

_TYPES = {
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
}


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    del event
    kind = value.get("type") if value is not None else None
    return f"an event {kind}" if isinstance(kind, str) and kind in _TYPES else None


ANTHROPIC = Known(
    name="anthropic",
    what="Anthropic's messages API",
    aliases=("anthropic-messages",),
    reading=lambda hear: Completion(hear, Kind.ANTHROPIC_MESSAGES),
    by_event=_by_event,
    upstream=True,
    strict=True,
)
