"""Every `stream` case from practice that a model's server sends, at every cut (tests/data/cases.jsonl)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from motamot.model.assembly import Dialect
from tests.model.assembling import Assembled, every_way

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data" / "cases.jsonl").read_text().splitlines()]
STREAMS = [case for case in CASES if case["given"]["type"] == "stream" and case["given"]["dialect"] != "sse"]

# What is better still and not required: with which dialect it holds, and why that is not the default.
WISHES: dict[str, tuple[Dialect, str]] = {
    "chunk-cumulative-deltas": (
        Dialect(cumulative=True),
        "repaired only where the assistant says so: 'ha', 'haha' may be honest, and text once shown stays shown",
    ),
    "tool-arguments-sent-twice": (Dialect(), "always: the same JSON object twice can mean nothing else"),
    "error-as-sse-field": (
        Dialect(),
        "always: the line is no text, and the stream has no finish reason to contradict it",
    ),
    "dialect-think-tags": (
        Dialect(think_tags=True),
        "only where the assistant says so: nothing on the wire tells a template's tag from one the model was asked for",
    ),
}


def utf16(text: str) -> str:
    """The file is ASCII: characters beyond the first plane stand there as two halves that JSON has joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def calls_of(assembled: Assembled, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in assembled.turn.tool_calls]
    for ours, theirs in zip(made, expected, strict=False):
        if theirs["id"] == "*":
            ours["id"] = "*"
    return made


def error_matches(assembled: Assembled, expected: dict[str, Any] | None) -> bool:
    error = assembled.turn.error
    if expected is None or error is None:
        return (error is None) == (expected is None)
    kept = f"{error.code} {error.message} {error.detail}"
    wanted = expected.get("contains_any", [expected.get("contains", "")])
    return any(word in kept for word in wanted)


def usage_of(assembled: Assembled) -> dict[str, int] | None:
    usage = assembled.turn.usage
    if usage is None:
        return None
    return {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}


def source_of(assembled: Assembled) -> str:
    return assembled.turn.usage.source if assembled.turn.usage else "unknown"  # None: the caller estimates


def runs(assembled: Assembled) -> list[Any]:
    return [call.arguments for call in assembled.turn.runnable]


CHECKS: dict[str, Callable[[Assembled, Any], bool]] = {
    "text": lambda a, e: a.turn.text == utf16(e),
    "text_stripped": lambda a, e: a.turn.text.strip() == e,
    "text_or_error": lambda a, e: a.turn.text == e or a.turn.finish in {"error", "incomplete"},
    "text_length": lambda a, e: len(a.turn.text) == e,
    "text_is_start_of": lambda a, e: e.startswith(a.turn.text),
    "text_min_chars": lambda a, e: len(a.turn.text) >= e,
    "reasoning": lambda a, e: a.turn.reasoning == e,
    "reasoning_stripped": lambda a, e: a.turn.reasoning.strip() == e,
    "role": lambda a, e: e == "assistant",  # a turn has no other
    "finish": lambda a, e: a.turn.finish == e,
    "finish_any_of": lambda a, e: a.turn.finish in e,
    "shown_as_complete": lambda a, e: e or a.turn.finish not in {"stop", "unknown", "tool_calls"},
    "usage": lambda a, e: usage_of(a) == e,
    "usage_source": lambda a, e: source_of(a) == e,
    "usage_source_any_of": lambda a, e: source_of(a) in e,
    "tool_calls": lambda a, e: calls_of(a, e) == e,
    "tool_calls_any_order": lambda a, e: sorted(calls_of(a, e), key=str) == sorted(e, key=str),
    "tool_ids_unique": lambda a, e: len({call.id for call in a.turn.tool_calls} - {""}) == len(a.turn.tool_calls),
    "tools_runnable": lambda a, e: [call.name for call in a.turn.runnable] == e,
    "tools_run": lambda a, e: [call.name for call in a.turn.runnable] == e,
    "tool_runs_max": lambda a, e: len(runs(a)) <= e,
    "tool_arguments_any_of": lambda a, e: all(arguments in e for arguments in runs(a)),
    "error": error_matches,
    "never_show": lambda a, e: not any(text in a.text for text in e),
    "encodable": lambda a, e: bool(a.turn.text.encode()) == e,
    "must_not_raise": lambda a, e: True,  # getting here is the check
    "findings": lambda a, e: set(e) <= a.kinds,
    "no_findings": lambda a, e: not set(e) & a.kinds,
}


def read(case: dict[str, Any], dialect: Dialect | None = None) -> Assembled:
    given = case["given"]
    body = given["text"].encode() if "text" in given else base64.b64decode(given["base64"])
    reads = given.get("reads", [])
    return every_way(body, given["dialect"], reads=[] if reads == "every_byte" else reads, dialect=dialect)


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case["id"])
def test_a_case_from_practice_reads_right_at_every_cut(case: dict[str, Any]) -> None:
    assembled = read(case)
    for key, expected in case["expect"].items():
        assert CHECKS[key](assembled, expected), f"{key}: {expected!r}, got {assembled.turn}"


@pytest.mark.parametrize("case", [case for case in STREAMS if "wish" in case], ids=lambda case: case["id"])
def test_a_wish_is_granted_where_its_dialect_is_named(case: dict[str, Any]) -> None:
    dialect, _ = WISHES[case["id"]]
    assembled = read(case, dialect)
    for key, expected in (case["expect"] | case["wish"]).items():
        assert CHECKS[key](assembled, expected), f"{key}: {expected!r}, got {assembled.turn}"


def test_every_wish_is_decided() -> None:
    assert set(WISHES) == {case["id"] for case in STREAMS if "wish" in case}
