"""Completions that are not in OpenAI's dialect: Anthropic's messages and Ollama's lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from motamot.answer import Reasoning, Source, Text, Usage
from motamot.limits import Limits
from motamot.model.assembly import Kind, assembly_for
from tests.model.assembling import Assembled, assemble, every_way

# Anthropic


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


START = event("message_start", message={"model": "m", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}})
STOP = event("message_stop")


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> str:
    middle = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return (
        event("content_block_start", index=index, content_block=start)
        + "".join(middle)
        + event("content_block_stop", index=index)
    )


def text(*parts: str, index: int = 0) -> str:
    return block(index, {"type": "text", "text": ""}, *[{"type": "text_delta", "text": part} for part in parts])


def tool(index: int, id_: str, name: str, *parts: str, **start: Any) -> str:
    pieces = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return block(index, {"type": "tool_use", "id": id_, "name": name, "input": {}, **start}, *pieces)


def ended(reason: str | None, **usage: Any) -> str:
    return event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 5, **usage}) + STOP


def claude(body: str, **more: Any) -> Assembled:
    return every_way(body, "anthropic-messages", **more)


def test_a_message_is_text_thinking_and_tool_calls() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": ""},
        {"type": "thinking_delta", "thinking": "why"},
        {"type": "signature_delta", "signature": "abc"},
    )
    body = START + thinking + text("Hel", "lo", index=1) + tool(2, "t1", "f", '{"a":', "1}") + ended("tool_use")
    assembled = claude(body)
    assert assembled.events == [Reasoning("why"), Text("Hel"), Text("lo")]
    assert assembled.calls == [("t1", "f", {"a": 1})]
    assert (assembled.turn.finish, assembled.turn.model) == ("tool_calls", "m")
    assert assembled.turn.usage == Usage(prompt_tokens=9, completion_tokens=5, source=Source.REPORTED)
    assert assembled.kinds == set()
    assert assembled.done


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("stop_sequence", "stop"),
        ("pause_turn", "length"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "length"),
    ],
)
def test_each_stop_reason_has_its_meaning(reason: str, finish: str) -> None:
    assert claude(START + text("Hi") + ended(reason)).turn.finish == finish


def test_parallel_tool_blocks_are_parallel_calls() -> None:
    body = START + tool(0, "t1", "f", '{"a":1}') + tool(1, "t2", "f") + tool(2, "t3", "g", "", "{}") + ended("tool_use")
    assert claude(body).calls == [("t1", "f", {"a": 1}), ("t2", "f", {}), ("t3", "g", {})]


def test_input_that_comes_whole_with_its_start_is_taken() -> None:
    assert claude(START + tool(0, "t1", "f", input={"a": 1}) + ended("tool_use")).calls == [("t1", "f", {"a": 1})]


def test_tools_the_provider_runs_are_no_calls_of_ours() -> None:
    server = block(
        0,
        {"type": "server_tool_use", "id": "s1", "name": "web_search"},
        {"type": "input_json_delta", "partial_json": "{"},
    )
    result = block(
        1, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "x"}]}
    )
    assembled = claude(START + server + result + text("Hi", index=2) + ended("end_turn"))
    assert (assembled.calls, assembled.text, assembled.turn.finish) == ([], "Hi", "stop")


def test_the_input_is_known_exactly_before_the_output() -> None:
    """Stopped in the first second: the input is booked as reported, the output is only a first count."""
    assembly = assembly_for(Kind.ANTHROPIC_MESSAGES)
    assembly.feed(START.encode())
    assert assembly.turn().usage == Usage(prompt_tokens=9, completion_tokens=1, source=Source.UNKNOWN)


def test_usage_is_cumulative_and_counts_cached_input() -> None:
    start = event(
        "message_start",
        message={"usage": {"input_tokens": 9, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}},
    )
    assembled = claude(start + text("Hi") + ended("end_turn", output_tokens=7))
    assert assembled.turn.usage == Usage(
        prompt_tokens=129, completion_tokens=7, cached_tokens=100, source=Source.REPORTED
    )


def test_an_answer_that_breaks_off_is_incomplete_and_runs_no_tools() -> None:
    for body in (START + text("Hi"), START + tool(0, "t1", "f", "{}")):
        assembled = claude(body)
        assert assembled.turn.finish == "incomplete"
        assert assembled.turn.runnable == ()
        assert {"finish-missing", "done-missing"} <= assembled.kinds


def test_a_stop_reason_without_message_stop_is_complete() -> None:
    assembled = claude((START + text("Hi") + ended("end_turn")).removesuffix(STOP))
    assert (assembled.turn.finish, assembled.done) == ("stop", False)
    assert "done-missing" in assembled.kinds


@pytest.mark.parametrize(
    "error",
    [
        event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
        'data: {"type":"error","error":{"message":"Overloaded"}}\n\n',
        'data: {"error":{"message":"Overloaded"}}\n\n',
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    ],
)
def test_an_error_event_is_an_error(error: str) -> None:
    start = START + text("Hi") if error.endswith("\n\n") else ""
    assembled = claude(start + error)
    assert assembled.turn.finish == "error"
    assert "Overloaded" in assembled.detail


def test_unknown_blocks_deltas_and_events_are_skipped() -> None:
    odd = block(0, {"type": "new_block", "text": "no"}, {"type": "new_delta", "text": "no"})
    assembled = claude(
        START + odd + event("brand_new", text="no") + "event: x\ndata: y\n\n" + text("Hi") + ended("end_turn")
    )
    assert (assembled.text, assembled.turn.finish) == ("Hi", "stop")


def test_a_message_in_json_is_taken_whole() -> None:
    content = [{"type": "text", "text": "Hello"}, {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}]
    usage = {"input_tokens": 9, "output_tokens": 3}
    reply = {"type": "message", "model": "m", "content": content, "stop_reason": "tool_use", "usage": usage}
    assembled = claude(json.dumps(reply))
    assert (assembled.text, assembled.calls, assembled.turn.finish) == ("Hello", [("t1", "f", {"a": 1})], "tool_calls")
    assert assembled.turn.usage == Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
    assert assembled.kinds == {"not-an-event-stream"}


# Ollama


def lines(*objects: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in objects)


def part(content: str = "", **message: Any) -> dict[str, Any]:
    return {"model": "m", "message": {"role": "assistant", "content": content, **message}, "done": False}


LAST = {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop"}
COUNTS = {"prompt_eval_count": 9, "eval_count": 3}


def ollama(body: str, **more: Any) -> Assembled:
    return every_way(body, "ollama-ndjson", **more)


def test_lines_are_text_thinking_and_counts() -> None:
    assembled = ollama(lines(part(thinking="why"), part("Hel"), part("lo"), {**LAST, **COUNTS}))
    assert assembled.events == [Reasoning("why"), Text("Hel"), Text("lo")]
    assert (assembled.turn.finish, assembled.turn.model, assembled.done) == ("stop", "m", True)
    assert assembled.turn.usage == Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
    assert assembled.kinds == set()


def test_generated_text_is_text() -> None:
    assert ollama(lines({"response": "Hel"}, {"response": "lo", "done": True})).text == "Hello"


@pytest.mark.parametrize("end", ["\n", "", "\r\n", " \n\n\n"])
def test_the_last_line_may_do_without_its_end(end: str) -> None:
    body = lines(part("Hi"), {**LAST, **COUNTS})
    assert ollama(body.rstrip("\n") + end).turn.finish == "stop"


def test_its_tool_calls_are_by_its_own_book() -> None:
    """No ids, no indexes, arguments as objects, two equal calls, and `stop` at the end."""
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "f", "arguments": {"a": 1}}}]
    more = [{"function": {"name": "g", "arguments": {}, "index": 2}}]
    assembled = ollama(lines(part(tool_calls=calls), part(tool_calls=more), {**LAST, **COUNTS}))
    assert [(name, made) for _, name, made in assembled.calls] == [("f", {"a": 1}), ("f", {"a": 1}), ("g", {})]
    assert assembled.turn.finish == "tool_calls"
    assert len(assembled.turn.runnable) == 3
    assert assembled.kinds == set()


@pytest.mark.parametrize(
    ("reason", "finish"), [("length", "length"), ("stop", "stop"), ("load", "unknown"), (None, "unknown")]
)
def test_done_with_its_reason_is_the_end(reason: str | None, finish: str) -> None:
    assembled = ollama(lines(part("Hi"), {**LAST, "done_reason": reason}))
    assert (assembled.turn.finish, assembled.done) == (finish, True)


def test_lines_that_break_off_are_incomplete() -> None:
    for body in (lines(part("Hi")), lines(part("Hi")) + '{"model":"m","mess', lines(part("Hi")) + "}"):
        assembled = ollama(body)
        assert (assembled.text, assembled.turn.finish) == ("Hi", "incomplete")
        assert {"finish-missing", "done-missing"} <= assembled.kinds


@pytest.mark.parametrize("start", ["", lines(part("Hi"))])
def test_an_error_line_is_an_error(start: str) -> None:
    assembled = ollama(start + lines({"error": "model 'x' not found"}))
    assert assembled.turn.finish == "error"
    assert "not found" in assembled.detail


@pytest.mark.parametrize("body", ["<html>502</html>", "upstream failed: 502\n", "502\n", '"502"\n', "[502]\n"])
def test_a_line_that_is_no_object_is_an_error(body: str) -> None:
    assembled = ollama(body)
    assert (assembled.text, assembled.turn.finish) == ("", "error")
    assert "502" in assembled.detail


def test_a_line_without_end_is_a_limit() -> None:
    assembled = ollama("x" * 3000, limits=Limits(event_bytes=1000))
    assert assembled.turn.error is not None
    assert assembled.turn.error.code == "limit"
    assert assembled.done


def test_a_long_line_is_read_in_time_that_grows_with_its_length() -> None:
    body = lines(part("x" * 200_000), LAST).encode()
    assert len(assemble(body, "ollama-ndjson", cuts=range(1, len(body))).text) == 200_000


def test_there_is_no_other_kind() -> None:
    with pytest.raises(ValueError, match="ftp"):
        assembly_for("ftp")
