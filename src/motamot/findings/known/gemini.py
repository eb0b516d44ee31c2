"""Google's Gemini API: an event stream (`alt=sse`), or else a JSON array of the same objects."""

from __future__ import annotations

from typing import Any

from motamot.answer import Source, Usage
from motamot.findings.known.base import Known
from motamot.findings.reading import JsonReading, reported
from motamot.sse import Event

__all__ = ["GEMINI", "Gemini", "is_gemini"]

_NO_REASON = "FINISH_REASON_UNSPECIFIED"


class Gemini(JsonReading):
    """Text is `candidates[0].content.parts[].text`; parts with `thought` are reasoning."""

    def text_of(self, value: dict[str, Any]) -> str | None:
        texts = [
            part["text"]
            for part in _parts(value)
            if isinstance(part.get("text"), str) and part.get("thought") is not True
        ]
        return "".join(texts) or None

    def is_delta(self, value: dict[str, Any]) -> bool:
        return any("functionCall" in part or part.get("text") for part in _parts(value))

    def end_of(self, value: dict[str, Any]) -> str | None:
        self._count(value.get("usageMetadata"))
        if value.get("error"):
            self.hear.note("error-in-stream", "an error came among the events")
            return "error"
        candidate = _candidate(value)
        reason = candidate.get("finishReason") if candidate is not None else None
        feedback = value.get("promptFeedback")
        if reason is None and isinstance(feedback, dict):
            reason = feedback.get("blockReason")
        return reason if isinstance(reason, str) and reason != _NO_REASON else None

    def _count(self, usage: Any) -> None:
        """Each chunk brings the totals so far: the last report stands. Thoughts are counted beside the candidates."""
        if isinstance(usage, dict):
            told = [usage.get(f"{name}TokenCount") for name in ("prompt", "candidates", "thoughts", "cachedContent")]
            prompt, completion, thoughts, cached = map(reported, told)
            self.usage = Usage(
                prompt_tokens=prompt,
                completion_tokens=completion + thoughts,
                cached_tokens=cached,
                reasoning_tokens=thoughts,
                source=Source.REPORTED,
            )


def _candidate(value: Any) -> dict[str, Any] | None:
    """The first candidate, where there is one."""
    candidates = value.get("candidates") if isinstance(value, dict) else None
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, dict) else None


def _parts(value: dict[str, Any]) -> list[dict[str, Any]]:
    content = (_candidate(value) or {}).get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def is_gemini(value: Any) -> bool:
    """Whether it is an object of this API's: a candidate with its content or the reason of its end."""
    candidate = _candidate(value)
    return candidate is not None and (isinstance(candidate.get("content"), dict) or "finishReason" in candidate)


def _by_event(event: Event, value: dict[str, Any] | None) -> str | None:
    del event
    return "an event with `candidates`" if is_gemini(value) else None


GEMINI = Known(
    name="gemini",
    what="Google's Gemini API (`alt=sse`)",
    reading=Gemini,
    by_event=_by_event,
    end="a `finishReason`",
)
