"""A completion as a model's server sends it: read by the assembly that serves it, so that both name the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from motamot.answer import AnswerEvent, Text
from motamot.findings.reading import TEXT_BYTES, Hear, Reading, look_strictly
from motamot.findings.wire import EVENT_BYTES
from motamot.limits import Limits
from motamot.model.assembly import Kind, assembly_for
from motamot.model.base import Assembly
from motamot.model.events import json_values
from motamot.model.turn import Turn

__all__ = ["Completion"]

_LIMITS = Limits(event_bytes=EVENT_BYTES, answer_bytes=TEXT_BYTES, answer_events=10_000_000, tool_calls_per_turn=1_000)
_MINE = frozenset({"unterminated-last-event", "not-an-event-stream", "error-field", "cumulative-deltas"})
"""What an assembly names, too, and finders here name for every protocol."""
_WITH_TURN = "repeated-full-text"  # named at the end by comparing texts: likewise; met in the stream, it is told
_EMPTY_EVENT_BYTES = 12
_TAB = 9
_USAGE = re.compile(rb'"(?:usage|usageMetadata|usage_metadata|token_usage)"\s*:\s*\{')
_USAGE_KEYS = ("usage", "usageMetadata", "usage_metadata", "token_usage")
_USAGE_DEPTH = 4


class Completion(Reading):
    """A completion, as `motamot.model` puts it together; beside it, what that copes with and does not tell."""

    def __init__(self, hear: Hear, kind: Kind) -> None:
        super().__init__(hear)
        self._assembly: Assembly = assembly_for(kind, limits=_LIMITS)
        self._assembly.watch(self._note)
        # Lines have no blank line to end them: what is left of one is the assembly's to name.
        self._others = _MINE - {"unterminated-last-event"} if kind is Kind.OLLAMA_NDJSON else _MINE
        self._openai = kind is Kind.OPENAI_CHAT
        self._marked = False  # [DONE] has come
        self._usage_elsewhere = False
        self._deltas = 0
        self._raw = b""  # the block under way

    def _note(self, kind: str, sentence: str) -> None:
        if kind == "delta-missing" and b'"content_filter_' in self._raw and _only_filters(self._raw):
            return
        if kind not in self._others and not (kind == "usage-missing" and self._usage_elsewhere):
            self.hear.note(kind, sentence)

    def take(self, raw: bytes) -> None:
        self._raw = raw
        if len(raw) <= _EMPTY_EVENT_BYTES and raw.strip() == b"data:":
            self.hear.note("comment-as-data", "an empty event came, a keep-alive most likely")
        if _TAB in raw or b"NaN" in raw or b"Infinity" in raw:
            look_strictly(raw, self.hear)
        if self._openai and b'"usage' in raw and _USAGE.search(raw):
            self._look_for_usage(raw)
        if self._marked:
            self._look_behind_the_end(raw)
        self._tell(self._assembly.feed(raw))
        if self._openai and self._assembly.done and not self._marked:
            self._marked = raw.rstrip().endswith(b"[DONE]")

    def _look_behind_the_end(self, raw: bytes) -> None:
        """Events behind `[DONE]`."""
        if raw.startswith(b"data:") and b"[DONE]" not in raw:
            self.hear.note("done-in-text", "more data comes after `[DONE]`, where every client has stopped")

    def _look_for_usage(self, raw: bytes) -> None:
        """Places that the assembly does not look at, and a chunk that brings usage and no `choices`."""
        values, rest = json_values(raw.partition(b"data:")[2].decode("utf-8", "replace").strip())
        chunk = values[0] if len(values) == 1 and not rest else None
        if not isinstance(chunk, dict):
            return
        if not isinstance(chunk.get("choices"), list) and not chunk.get("error"):
            self.hear.note("choices-missing", "a chunk has no choices")
        place = _usage_place(chunk)
        if place is not None:
            self._usage_elsewhere = True
            self.hear.note("usage-nonstandard-place", f"usage came in {place[:60]}")

    def _tell(self, answers: Iterable[AnswerEvent]) -> None:
        texts = 0
        for answer in answers:
            if isinstance(answer, Text):
                texts += 1
                self.hear.text(answer.text)
        deltas = self._assembly.deltas
        for _ in range(deltas - self._deltas - texts):  # reasoning, and fragments of tool calls
            self.hear.delta()
        self._deltas = deltas

    def close(self) -> Turn:
        self._tell(self._assembly.close())
        told = set(self._assembly.noted)
        turn = self._assembly.turn()
        for deviation in turn.deviations:
            if deviation.kind not in told and deviation.kind != _WITH_TURN:
                self._note(deviation.kind, deviation.note)
        if "error-field" in told and not self._assembly.finished:
            # That line explains an end without a reason to the operator; a standard reader never sees it.
            self._note("finish-missing", "no finish reason came")
            if not self._assembly.done:
                self._note("done-missing", "the end marker did not come")
        if self._assembly.finished or self._assembly.done:
            self.hear.ended(turn.finish)
        return turn


def _only_filters(raw: bytes) -> bool:
    """Whether the choices without a delta are what Azure's asynchronous filter found, which belongs to no delta."""
    values, rest = json_values(raw.partition(b"data:")[2].decode("utf-8", "replace").strip())
    chunk = values[0] if len(values) == 1 and not rest else None
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    return isinstance(choices, list) and all(
        isinstance(choice, dict)
        and ("delta" in choice or ("text" not in choice and any(key.startswith("content_filter_") for key in choice)))
        for choice in choices
    )


def _usage_place(chunk: dict[str, Any], path: str = "", depth: int = 0) -> str | None:
    """Where in a chunk usage stands other than at its top, or None."""
    for key, value in chunk.items():
        if not isinstance(value, dict):
            if isinstance(value, list) and value and isinstance(value[0], dict) and depth < _USAGE_DEPTH:
                inside = _usage_place(value[0], f"{path}{key}[0].", depth + 1)
                if inside is not None:
                    return inside
            continue
        if key in _USAGE_KEYS and (depth or key != "usage") and any(type(count) is int for count in value.values()):
            return f"{path}{key}"
        if key not in _USAGE_KEYS and depth < _USAGE_DEPTH:
            inside = _usage_place(value, f"{path}{key}.", depth + 1)
            if inside is not None:
                return inside
    return None
