"""OpenAI chat completion chunks, and those who call themselves compatible."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.known.completion import Completion
from motamot.model.assembly import Kind
from motamot.sse import Event

__all__ = ["OPENAI"]


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    del event
    if value is None:
        return None
    chunk = value.get("object") == "chat.completion.chunk" or isinstance(value.get("choices"), list)
    return "chunks with `choices`" if chunk else None


OPENAI = Known(
    name="openai",
    what="OpenAI chat completion chunks",
    aliases=("openai-chat", "openai-json"),
    reading=lambda hear: Completion(hear, Kind.OPENAI_CHAT),
    by_event=_by_event,
    upstream=True,
    strict=True,
)
