"""What providers' words mean: finish reasons, token counts, error objects. Tables and pure functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from motamot.answer import Source, SurrogateJoiner, Usage

__all__ = [
    "DETAIL_CHARS",
    "FINISH_WORDS",
    "Note",
    "brief",
    "clean",
    "detail_of",
    "json_text",
    "usage_of",
    "worse_finish",
]

Note = Callable[[str, str], object]
"""Takes the kind of a deviation and one sentence; only the first of a kind is kept."""

DETAIL_CHARS = 2_000  # of a provider's error, for the operator: a page of HTML says no more after that
_BRIEF = 40  # characters of a value in a note
_ERROR_DEPTH = 4  # gateways wrap a provider's error in their own, sometimes as text
_TOKENS_MAX = 10**12  # a count above is not one: a century of one model's output is less

# Lower case; the provider's word -> ours. A word that is not here is `unknown`, and reported.
FINISH_WORDS: dict[str, str] = {
    # OpenAI and those who copy it
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "function_call": "tool_calls",
    # Anthropic. A paused turn was cut by its server and can go on: to a reader, that is a cut answer.
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "pause_turn": "length",
    "refusal": "content_filter",
    "model_context_window_exceeded": "length",
    # Gemini, in capitals on the wire
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "image_safety": "content_filter",
    "malformed_function_call": "error",
    # Mistral, Cohere, DeepSeek, OpenRouter, vLLM, text-generation-inference
    "model_length": "length",
    "complete": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "tool_call": "tool_calls",
    "error": "error",
    "error_toxic": "content_filter",
    "error_limit": "length",
    "insufficient_system_resource": "error",
    "abort": "error",
    "cancelled": "error",
}

# Of two different reasons the worse one holds: a cut answer is not complete because a `stop` follows.
_WORSE = ("unknown", "stop", "tool_calls", "length", "content_filter", "error")


def worse_finish(one: str, other: str) -> str:
    """Of two of our finish words, the one that claims less."""
    return max(one, other, key=_WORSE.index)


def brief(value: object) -> str:
    """A value out of JSON, short enough for a note."""
    if isinstance(value, list | dict):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value[:_BRIEF] if isinstance(value, str) else value)[: _BRIEF + 2]


def clean(text: str) -> str:
    """`text` with joined surrogate pairs, and U+FFFD for orphans: always encodable."""
    joiner = SurrogateJoiner()
    return joiner.feed(text) + joiner.close()


def usage_of(report: object, note: Note = lambda _kind, _sentence: None) -> Usage | None:
    """Token counts as a provider reports them, or None where nothing usable is said.

    report: an OpenAI, Anthropic or Responses usage object. Counts may be strings; what is negative, huge or no
            number is left out. `source` is `reported` if prompt and completion are known, or follow from the
            total; `unknown` if only one of them is: the caller estimates the other.
    """
    if not isinstance(report, dict) or not report:
        return None
    counts = _Counts(report, note)
    prompt = counts.first("prompt_tokens", "input_tokens")
    completion = counts.first("completion_tokens", "output_tokens")
    total = counts.first("total_tokens")
    details = counts.inner("prompt_tokens_details", "input_tokens_details")
    cached = details.first("cached_tokens")
    if cached is None:
        cached = counts.first("prompt_cache_hit_tokens", "cached_tokens")
    reasoning = counts.inner("completion_tokens_details", "output_tokens_details").first(
        "reasoning_tokens", "thinking_tokens"
    )
    if reasoning is None:
        reasoning = counts.first("reasoning_tokens")
    if prompt is not None and "prompt_tokens" not in report:  # Anthropic counts cached tokens beside the input
        beside = counts.first("cache_read_input_tokens")
        prompt += (beside or 0) + (counts.first("cache_creation_input_tokens") or 0)
        cached = beside if cached is None else cached
    if total is not None:
        if completion is None and prompt is not None and total >= prompt:
            completion = total - prompt
        elif prompt is None and completion is not None and total >= completion:
            prompt = total - completion
        elif prompt is not None and completion is not None and reasoning and total == prompt + completion + reasoning:
            completion += reasoning  # xAI and Gemini count reasoning beside the completion; it is paid for
            note("usage-reasoning-apart", "the completion tokens do not hold the reasoning tokens, the total does")
    if prompt is None and completion is None:
        note("usage-incomplete", f"the usage report has neither prompt nor completion tokens (total {total})")
        return None
    known = prompt is not None and completion is not None
    if not known:
        note("usage-incomplete", "the usage report has only one of prompt and completion tokens")
    return Usage(
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=min(cached or 0, prompt or 0),
        reasoning_tokens=min(reasoning or 0, completion or 0),
        source=Source.REPORTED if known else Source.UNKNOWN,
    )


class _Counts:
    """Reads counts out of an object whose values nobody has checked."""

    def __init__(self, report: dict[str, Any], note: Note) -> None:
        self._report = report
        self._note = note

    def first(self, *names: str) -> int | None:
        """The first of these that is a plausible count."""
        for name in names:
            value = self._report.get(name)
            if value is None:
                continue
            count = _count(value)
            if count is not None:
                return count
            self._note("usage-invalid", f"{name} is no count of tokens: {brief(value)}")
        return None

    def inner(self, *names: str) -> _Counts:
        for name in names:
            value = self._report.get(name)
            if isinstance(value, dict):
                return _Counts(value, self._note)
        return _Counts({}, self._note)


def _count(value: object) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(_TOKENS_MAX))):
            return None
        value = int(text)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _TOKENS_MAX:
        return None
    return value


def detail_of(error: object) -> str:
    """What a provider's error says, for the operator: message, type and code, at most `DETAIL_CHARS`.

    error: the value of an `error` key, a whole error reply, or text that may be JSON.
    """
    for _ in range(_ERROR_DEPTH):
        if isinstance(error, str):
            try:
                parsed = json.loads(error)
            except (ValueError, RecursionError):
                break
            if not isinstance(parsed, dict):
                break
            error = parsed
        if not (isinstance(error, dict) and error.get("error")):
            break
        error = error["error"]
    if isinstance(error, str):
        return _bounded(error)
    if isinstance(error, dict):
        message = next((error[key] for key in ("message", "detail", "msg") if error.get(key)), None)
        if isinstance(message, str):
            marks = [str(error[key]) for key in ("type", "code", "status") if isinstance(error.get(key), str | int)]
            return _bounded(f"{message} ({', '.join(marks)})" if marks else message)
    return _bounded(json_text(error))


def json_text(value: object) -> str:
    """`value`, which came out of JSON, as JSON again; "" if it is nested deeper than can be written."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def _bounded(text: str) -> str:
    """Cut, encodable, and without control characters: it goes to a terminal and a log."""
    text = clean(text[:DETAIL_CHARS])
    return "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text).strip()
