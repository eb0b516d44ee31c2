"""Vercel's UI message stream."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.reading import JsonReading
from motamot.sse import Event

__all__ = ["UI_MESSAGE"]

_OWN = {
    *("start-step", "finish-step", "text-start", "text-delta", "text-end", "message-metadata", "source-url"),
    *("reasoning-start", "reasoning-delta", "reasoning-end"),
    *("tool-input-start", "tool-input-delta", "tool-input-available", "tool-output-available"),
}
_OTHERS = ("reasoning-delta", "tool-input-delta", "tool-input-available")
_ENDS = ("finish", "error", "abort")


class _UiMessage(JsonReading):
    def text_of(self, value: dict[str, Any]) -> str | None:
        delta = value.get("delta")
        return delta if value.get("type") == "text-delta" and isinstance(delta, str) else None

    def is_delta(self, value: dict[str, Any]) -> bool:
        return value.get("type") in _OTHERS

    def end_of(self, value: dict[str, Any]) -> str | None:
        kind = value.get("type")
        return str(kind) if kind in _ENDS else None


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    del event
    kind = value.get("type") if value is not None else None
    return f"a part of type {kind}" if isinstance(kind, str) and kind in _OWN else None


UI_MESSAGE = Known(
    name="ui-message",
    what="Vercel's UI message stream",
    reading=_UiMessage,
    by_event=_by_event,
    header="x-vercel-ai-ui-message-stream",
    end="a part `finish`, `error` or `abort`",
)
