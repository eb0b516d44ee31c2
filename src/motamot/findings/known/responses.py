"""OpenAI's Responses API."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.reading import JsonReading
from motamot.model.words import usage_of
from motamot.sse import Event

__all__ = ["RESPONSES"]

_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
_FAILED = ("response.failed", "error")


class _Responses(JsonReading):
    def text_of(self, value: dict[str, Any]) -> str | None:
        delta = value.get("delta")
        return delta if value.get("type") in _TEXTS and isinstance(delta, str) else None

    def is_delta(self, value: dict[str, Any]) -> bool:
        kind = value.get("type")
        return isinstance(kind, str) and kind.endswith(".delta")

    def end_of(self, value: dict[str, Any]) -> str | None:
        kind = value.get("type")
        if kind in _FAILED:
            self.hear.note("error-in-stream", "an error came among the events")
        if kind in _ENDS and isinstance(value.get("response"), dict):
            self.usage = usage_of(value["response"].get("usage")) or self.usage
        return str(kind) if kind in _ENDS else None


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    kind = value.get("type") if value is not None else None
    ours = isinstance(kind, str) and kind.startswith("response.") and event.event in ("message", kind)
    return f"an event {kind}" if ours else None


RESPONSES = Known(
    name="openai-responses",
    what="OpenAI's Responses API",
    reading=_Responses,
    by_event=_by_event,
    end="`response.completed`, `.incomplete`, `.failed` or `error`",
    strict=True,
)
