"""AG-UI events."""

from __future__ import annotations

import re
from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.reading import JsonReading
from motamot.sse import Event

__all__ = ["AG_UI"]

_OWN = re.compile(
    r"(RUN|STEP|TEXT_MESSAGE|TOOL_CALL|STATE|MESSAGES|ACTIVITY|REASONING|THINKING|SUBAGENT)_[A-Z_]+|RAW|CUSTOM"
)
_TEXTS = ("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK")
_OTHERS = ("TOOL_CALL_ARGS", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CONTENT")
_ENDS = ("RUN_FINISHED", "RUN_ERROR")


class _AgUi(JsonReading):
    def text_of(self, value: dict[str, Any]) -> str | None:
        delta = value.get("delta")
        return delta if value.get("type") in _TEXTS and isinstance(delta, str) else None

    def is_delta(self, value: dict[str, Any]) -> bool:
        return value.get("type") in _OTHERS

    def end_of(self, value: dict[str, Any]) -> str | None:
        kind = value.get("type")
        return str(kind) if kind in _ENDS else None


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    del event
    kind = value.get("type") if value is not None else None
    return f"an event {kind}" if isinstance(kind, str) and _OWN.fullmatch(kind) else None


AG_UI = Known(
    name="ag-ui",
    what="AG-UI events",
    reading=_AgUi,
    by_event=_by_event,
    end="`RUN_FINISHED` or `RUN_ERROR`",
    lf_only=True,
)
