"""Ollama's own API: a JSON object a line."""

from __future__ import annotations

from typing import Any

from motamot.findings.known.base import Known
from motamot.findings.known.completion import Completion
from motamot.model.assembly import Kind

__all__ = ["OLLAMA"]


def _by_line(value: dict[str, Any]) -> str | None:
    if "done" in value and ("message" in value or "response" in value):
        return "lines of JSON with `message` or `response`, and `done`"
    return None


OLLAMA = Known(
    name="ollama",
    what="Ollama's own API, one JSON object a line",
    aliases=("ollama-ndjson",),
    reading=lambda hear: Completion(hear, Kind.OLLAMA_NDJSON),
    by_line=_by_line,
    upstream=True,
)
