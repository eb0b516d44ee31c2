"""How a completion ends: its reason, its end mark, its error, or nothing at all; and what it cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import Source, Usage
from motamot.errors import UpstreamError
from motamot.model.assembly import Kind, assembly_for
from motamot.model.turn import Turn
from tests.model.assembling import DONE, HEAD, USAGE, answer, assemble, call, chunk, every_way, said, sse, tools

REASONS = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "pause_turn": "length",
    "refusal": "content_filter",
    "model_context_window_exceeded": "length",
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "eos_token": "stop",
    "model_length": "length",
    "COMPLETE": "stop",
}


@pytest.mark.parametrize("word", REASONS)
def test_each_providers_reason_has_one_meaning(word: str) -> None:
    assembled = every_way(answer(said("Hi"), finish=word))
    assert assembled.turn.finish == REASONS[word]
    assert assembled.turn.error is None
    assert assembled.kinds == {"usage-missing"}


@pytest.mark.parametrize("word", ["tool_calls", "function_call", "tool_use"])
def test_each_word_for_a_tool_turn_lets_its_tools_run(word: str) -> None:
    assembled = every_way(tools(call(0, "t1", "f", "{}")) + chunk({}, word) + DONE)
    assert assembled.turn.finish == "tool_calls"
    assert len(assembled.turn.runnable) == 1


@pytest.mark.parametrize("word", ["finished", "BECAUSE", 5, True, {"a": 1}])
def test_an_unknown_reason_is_complete_and_reported(word: object) -> None:
    assembled = every_way(said("Hi") + chunk({}, word) + DONE)
    assert assembled.turn.finish == "unknown"
    assert "finish-unknown-word" in assembled.kinds


@pytest.mark.parametrize("word", ["error", "ERROR", "insufficient_system_resource", "abort", "MALFORMED_FUNCTION_CALL"])
def test_a_reason_that_means_an_error_is_one(word: str) -> None:
    assembled = every_way(answer(said("Hi"), finish=word))
    assert assembled.turn.finish == "error"
    assert word in assembled.detail


@pytest.mark.parametrize("empty", ["", " ", "null", None])
def test_an_empty_reason_is_none(empty: object) -> None:
    assembled = every_way(said("Hi") + chunk({"content": "!"}, empty) + chunk({}, "stop") + DONE)
    assert assembled.turn.finish == "stop"
    assert ("finish-empty-string" in assembled.kinds) == (empty is not None)
    assert every_way(said("Hi") + chunk({}, empty)).turn.finish == "incomplete"


@pytest.mark.parametrize(
    ("first", "second", "meaning"),
    [("stop", "length", "length"), ("length", "stop", "length"), ("stop", "content_filter", "content_filter")],
)
def test_of_two_reasons_the_worse_one_holds(first: str, second: str, meaning: str) -> None:
    assembled = every_way(said("Hi") + chunk({}, first) + chunk({}, second) + DONE)
    assert assembled.turn.finish == meaning
    assert "finish-repeated" in assembled.kinds


def test_the_same_reason_twice_is_no_deviation() -> None:
    assembled = every_way(said("Hi") + chunk({}, "stop", usage=USAGE) + chunk({}, "STOP") + DONE)
    assert assembled.turn.finish == "stop"
    assert assembled.kinds == set()


def test_an_end_mark_without_a_reason_is_complete() -> None:
    assembled = every_way(said("Hi") + DONE)
    assert (assembled.turn.finish, assembled.turn.error) == ("unknown", None)
    assert "finish-missing" in assembled.kinds
    assert "done-missing" not in assembled.kinds


def test_neither_a_reason_nor_an_end_mark_is_incomplete() -> None:
    """finish-never-and-no-done"""
    assembled = every_way(said("Do not take this medicine if"))
    assert assembled.turn.finish == "incomplete"
    assert assembled.turn.error is not None
    assert assembled.turn.error.code == "upstream_cut"
    assert {"finish-missing", "done-missing"} <= assembled.kinds


def test_a_reason_without_an_end_mark_is_complete() -> None:
    assembled = every_way(said("Hi") + chunk({}, "stop"))
    assert assembled.turn.finish == "stop"
    assert "done-missing" in assembled.kinds
    assert not assembled.done


@pytest.mark.parametrize("tail", ["data: [DONE]\n", "data: [DONE]", "data: {}", "data: x\nid: 1\n", "da"])
def test_an_unterminated_event_is_discarded_and_reported(tail: str) -> None:
    assembled = every_way(said("Hi") + chunk({}, "stop") + tail)
    assert assembled.turn.finish == "stop"
    assert {"unterminated-last-event", "done-missing"} <= assembled.kinds
    assert every_way(said("Hi") + tail).turn.finish == "incomplete"


@pytest.mark.parametrize("mark", ["data: [DONE]\n\n", "data:[DONE]\n\n", "data: [DONE] \r\n\r\n", 'data: "[DONE]"\n\n'])
def test_the_end_mark_says_that_nothing_more_is_wanted(mark: str) -> None:
    assert every_way(said("Hi") + chunk({}, "stop") + mark).done


def test_the_caller_is_told_of_the_reason_and_of_the_end() -> None:
    assembly = assembly_for("openai-chat")
    assembly.feed(said("Hi").encode())
    assert (assembly.finished, assembly.done) == (False, False)
    assembly.feed(chunk({}, "stop").encode())
    assert (assembly.finished, assembly.done) == (True, False)
    assembly.feed(sse({**HEAD, "choices": [], "usage": USAGE}).encode())
    assert (assembly.finished, assembly.done) == (True, False)
    assembly.feed(DONE.encode())
    assert (assembly.finished, assembly.done) == (True, True)


def test_a_reason_with_every_chunk_is_not_yet_the_end() -> None:
    assembly = assembly_for("openai-chat")
    finished = []
    for part in (chunk({"content": "Hel"}, "stop"), chunk({"content": "lo"}, "stop"), DONE):
        assembly.feed(part.encode())
        finished.append(assembly.finished)
    assert finished == [True, False, False]
    assert (assembly.done, assembly.turn().text, assembly.turn().finish) == (True, "Hello", "stop")


@pytest.mark.parametrize("kind", list(Kind))
def test_nothing_at_all_is_incomplete(kind: Kind) -> None:
    turn = assemble("", kind).turn
    assert (turn.finish, turn.started, turn.text) == ("incomplete", False, "")
    assert turn.error is not None


@pytest.mark.parametrize(
    "body", [":", ": ping\n\n: ping\n\n", "id: 1\n\n", "\n\n", "\ufeff", "event: ping\n\n", "data"]
)
def test_a_stream_without_an_event_is_incomplete(body: str) -> None:
    turn = every_way(body).turn
    assert (turn.finish, turn.started) == ("incomplete", True)


# What the transport says.

CUT = UpstreamError("The connection broke.", code="upstream_cut", detail="reset by peer")
LATE = UpstreamError("Too slow.", code="timeout")


@pytest.mark.parametrize(("error", "finish"), [(CUT, "incomplete"), (LATE, "error")])
def test_what_cut_an_unfinished_answer_is_its_error(error: UpstreamError, finish: str) -> None:
    turn = assemble(said("One. "), error=error).turn
    assert (turn.finish, turn.text) == (finish, "One. ")
    assert turn.error is not None
    assert turn.error.code == error.code


@pytest.mark.parametrize("end", [chunk({}, "stop"), DONE])
def test_an_answer_that_had_ended_is_whole_however_its_connection_was_closed(end: str) -> None:
    assert assemble(said("One. ") + end, error=CUT).turn.error is None


def test_a_snapshot_is_an_unfinished_turn() -> None:
    assembly = assembly_for("openai-chat")
    assembly.feed((said("Hi ") + tools(call(0, "t1", "f", '{"a":'))).encode())
    first = assembly.turn()
    assert (first.finish, first.text, first.runnable) == ("incomplete", "Hi ", ())
    assembly.feed((tools(call(0, None, None, "1}")) + said("there") + chunk({}, "tool_calls") + DONE).encode())
    assembly.close()
    last = assembly.turn()
    assert (last.finish, last.text, len(last.runnable)) == ("tool_calls", "Hi there", 1)
    assert {deviation.kind for deviation in last.deviations} == {"usage-missing"}


# Errors.

ERRORS = [
    sse({"error": {"message": "quota exceeded", "type": "insufficient_quota", "code": 429}}),
    sse({"error": "quota exceeded"}),
    sse({"error": {"error": {"message": "quota exceeded"}}}),
    sse({"error": json.dumps({"message": "quota exceeded"})}),
    sse([{"error": {"code": 429, "message": "quota exceeded", "status": "RESOURCE_EXHAUSTED"}}]),
    sse({"object": "error", "message": "quota exceeded", "code": 429}),
    sse({"type": "error", "error": {"type": "overloaded_error", "message": "quota exceeded"}}),
    "event: error\n" + sse({"message": "quota exceeded"}),
    "event: error\n" + sse("quota exceeded"),
    "event: error\n" + sse({"choices": [{"delta": {"content": "quota exceeded"}}]}),
    sse({**HEAD, "error": {"message": "quota exceeded"}, "choices": [{"index": 0, "delta": {"content": ""}}]}),
    sse({**HEAD, "choices": [{"index": 0, "delta": {}, "error": {"message": "quota exceeded"}}]}),
    chunk({}, "error", error={"message": "quota exceeded"}),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda value: value[:60])
@pytest.mark.parametrize("text", ["Hello ", ""])
def test_an_error_among_the_data_is_an_error_and_never_text(error: str, text: str) -> None:
    assembled = every_way((said(text) if text else "") + error + said("more") + DONE)
    assert assembled.text == text
    assert assembled.turn.finish == "error"
    assert "quota exceeded" in assembled.detail
    assert assembled.turn.error is not None
    assert "quota" not in assembled.turn.error.message
    assert assembled.done
    assert "error-in-stream" in assembled.kinds


def test_an_error_after_the_reason_is_still_one() -> None:
    assert every_way(said("Hi") + chunk({}, "stop") + ERRORS[0]).turn.finish == "error"


@pytest.mark.parametrize("nothing", [None, "", False, {}, []])
def test_an_empty_error_is_none(nothing: object) -> None:
    assert every_way(answer(chunk({"content": "Hi"}, error=nothing))).turn.finish == "stop"


def test_an_error_as_a_field_counts_unless_the_answer_finished() -> None:
    """error-as-sse-field"""
    field = 'error: {"code":400,"message":"the prompt is too long"}\n\n'
    for body in (said("Hel") + field + DONE, said("Hel") + field, field):
        assembled = every_way(body)
        assert assembled.turn.finish == "error"
        assert "too long" in assembled.detail
        assert "error-field" in assembled.kinds
    assert every_way(said("Hel") + field + chunk({}, "stop") + DONE).turn.finish == "stop"


PAGES = [
    "<html><body>502 Bad Gateway</body></html>",
    "upstream: 502 Bad Gateway\r\nsorry\r\n",
    '{"message":"502 Bad Gateway"}',
    '{"error":{"message":"502 Bad Gateway"}}',
    '[{"error":{"message":"502 Bad Gateway"}}]',
    '{\n  "detail": "502 Bad Gateway"\n}\n',
    '"502 Bad Gateway"',
    "\ufeff<!doctype html>\n\n<p>502 Bad Gateway</p>\n\n",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda value: value[:30])
@pytest.mark.parametrize("kind", ["openai-chat", "openai-json", "anthropic-messages"])
def test_a_body_that_is_no_completion_is_an_error(page: str, kind: str) -> None:
    """error-200-with-json-body"""
    assembled = every_way(page, kind)
    assert assembled.turn.finish == "error"
    assert assembled.text == ""
    assert "502 Bad Gateway" in assembled.detail


@pytest.mark.parametrize("data", ["garbage", "<html>", '{"choices":', "12", '"text"', "{} {", "[DONE]x"])
def test_data_that_is_no_json_object_is_an_error(data: str) -> None:
    assembled = every_way(said("Hel") + sse(data) + said("lo") + DONE)
    assert (assembled.text, assembled.turn.finish) == ("Hel", "error")
    assert "json-parse" in assembled.kinds


def test_a_page_in_the_middle_explains_the_cut() -> None:
    assembled = every_way(said("Hel") + "<html>504 Gateway Time-out</html>\n\n")
    assert (assembled.text, assembled.turn.finish) == ("Hel", "incomplete")
    assert "504 Gateway Time-out" in assembled.detail
    transport = assemble(said("Hel") + "<html>504 Gateway Time-out</html>\n\n", error=CUT).turn.error
    assert transport is not None
    assert (transport.code, transport.detail) == ("upstream_cut", "reset by peer; <html>504 Gateway Time-out</html>")
    assert CUT.detail == "reset by peer"


def test_data_without_choices_explains_the_cut() -> None:
    assembled = every_way(said("Hel") + sse({"message": "Internal error"}))
    assert assembled.turn.finish == "incomplete"
    assert "Internal error" in assembled.detail
    assert "choices-missing" in assembled.kinds


def test_the_detail_of_an_error_is_bounded_and_can_be_printed() -> None:
    assembled = every_way(sse({"error": {"message": "\x1b[2J\x00" + "x" * 10_000 + "\ud83d"}}))
    assert len(assembled.detail) <= 2_000
    assert "\x1b" not in assembled.detail
    assembled.detail.encode()


# A blank line that is missing.


def test_two_chunks_in_one_event_are_both_read() -> None:
    """frame-no-blank-line-between"""
    for joint in ("\n", "\r\n"):
        assembled = every_way(said("a") + said("Hel").strip() + joint + said("lo") + chunk({}, "stop") + DONE)
        assert (assembled.text, assembled.turn.finish) == ("aHello", "stop")
        assert "missing-blank-line" in assembled.kinds


def test_an_end_mark_without_its_blank_line_is_read() -> None:
    assembled = every_way(said("Hi") + chunk({}, "stop").strip() + "\n" + DONE)
    assert (assembled.text, assembled.turn.finish, assembled.done) == ("Hi", "stop", True)


def test_a_chunk_run_into_garbage_is_never_a_shorter_complete_answer() -> None:
    assembled = every_way(said("Hel").strip() + "\ndata: {broken\n\n" + chunk({}, "stop") + DONE)
    assert (assembled.text, assembled.turn.finish) == ("Hel", "error")


def test_json_over_several_data_lines_is_one_text() -> None:
    lines = json.dumps(json.loads(said("Hello")[6:]), indent=1).splitlines()
    assert every_way(answer("".join(f"data: {line}\n" for line in lines) + "\n")).text == "Hello"


# A reply in JSON where a stream was asked for.

REPLY: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": USAGE,
}


@pytest.mark.parametrize("kind", ["openai-json", "openai-chat"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_reply_is_taken_as_one_delta_and_reported(kind: str, indent: int | None) -> None:
    """fake-plain-json-body"""
    assembled = every_way(json.dumps(REPLY, indent=indent), kind)
    assert (assembled.text, assembled.turn.finish, assembled.turn.model) == ("Hello", "stop", "m")
    assert assembled.turn.usage == Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
    assert assembled.kinds == {"not-an-event-stream"}
    assert len(assembled.events) == 1


def test_a_json_reply_may_call_tools() -> None:
    """Its calls are numbered by their place."""
    calls = [call(None, "t1", "f", '{"a":1}'), call(None, "t2", "f", '{"a":1}')]
    message = {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "why"}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    assembled = every_way(json.dumps({**REPLY, "choices": [choice]}), "openai-json")
    assert assembled.calls == [("t1", "f", {"a": 1}), ("t2", "f", {"a": 1})]
    assert assembled.reasoning == "why"
    assert assembled.kinds == {"not-an-event-stream"}


def test_a_json_reply_without_a_reason_is_complete() -> None:
    choice = {"index": 0, "message": {"content": "Hello"}}
    assembled = every_way(json.dumps({**REPLY, "choices": [choice]}), "openai-json")
    assert (assembled.text, assembled.turn.finish) == ("Hello", "unknown")


def test_chunks_without_their_framing_have_no_end_of_their_own() -> None:
    """Lines of bare chunks, as behind a proxy that takes the stream apart."""
    lines = [event[6:-1] for event in (said("Hel"), said("lo"))]
    for body in (lines[0], "".join(lines)):
        assert every_way(body).turn.finish == "incomplete"
    assert every_way("".join(lines) + chunk({}, "stop")[6:]).text == "Hello"


def test_a_json_reply_that_was_cut_is_incomplete() -> None:
    assembled = every_way(json.dumps(REPLY)[:-20], "openai-json")
    assert (assembled.text, assembled.turn.finish) == ("", "incomplete")


def test_a_stream_that_was_announced_as_json_is_read_as_it_comes() -> None:
    assembly = assembly_for("openai-json")
    assert assembly.feed(said("Hel").encode()) != []
    assert every_way(answer(said("Hello")), "openai-json").text == "Hello"


# Usage.


def used(*parts: str) -> Turn:
    return every_way("".join(parts)).turn


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3}, (9, 3, 0, 0)),
        ({"prompt_tokens": "9", "completion_tokens": " 3 "}, (9, 3, 0, 0)),
        ({"prompt_tokens": 9.0, "completion_tokens": 3.0}, (9, 3, 0, 0)),
        ({"input_tokens": 9, "output_tokens": 3}, (9, 3, 0, 0)),
        ({"prompt_tokens": 9, "total_tokens": 12}, (9, 3, 0, 0)),
        ({"completion_tokens": 3, "total_tokens": 12}, (9, 3, 0, 0)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}, (9, 3, 4, 0)),
        ({**USAGE, "completion_tokens_details": {"reasoning_tokens": 2}}, (9, 3, 0, 2)),
        ({**USAGE, "prompt_tokens_details": None, "completion_tokens_details": []}, (9, 3, 0, 0)),
        ({**USAGE, "prompt_cache_hit_tokens": 5}, (9, 3, 5, 0)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 400}}, (9, 3, 9, 0)),
        ({**USAGE, "total_tokens": 16, "completion_tokens_details": {"reasoning_tokens": 4}}, (9, 7, 0, 4)),
        ({"input_tokens": 9, "cache_read_input_tokens": 5, "output_tokens": 3}, (14, 3, 5, 0)),
    ],
)
def test_usage_is_read_in_each_of_its_shapes(report: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    usage = used(said("Hi"), chunk({}, "stop"), sse({**HEAD, "choices": [], "usage": report}), DONE).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.reasoning_tokens) == expected
    assert usage.source is Source.REPORTED


@pytest.mark.parametrize(
    "report",
    [
        None,
        {},
        [],
        "x",
        5,
        {"total_tokens": 12},
        {"prompt_tokens": -1, "completion_tokens": -5},
        {"prompt_tokens": 10**30, "completion_tokens": "9" * 5000},
        {"prompt_tokens": True, "completion_tokens": False},
        {"prompt_tokens": "nine", "completion_tokens": [3]},
        {"prompt_tokens": 9.5, "completion_tokens": None},
        {"prompt_tokens": "²", "completion_tokens": "٣"},
    ],
)
def test_usage_that_says_nothing_usable_is_none(report: object) -> None:
    """Not zero: the caller estimates."""
    turn = used(said("Hi"), chunk({}, "stop"), sse({**HEAD, "choices": [], "usage": report}), DONE)
    assert turn.usage is None
    assert "usage-missing" in {deviation.kind for deviation in turn.deviations}


@pytest.mark.parametrize("report", [{"completion_tokens": 3}, {"completion_tokens": 3, "prompt_tokens": -9}])
def test_usage_that_is_half_known_says_so(report: object) -> None:
    turn = used(said("Hi"), chunk({}, "stop", usage=report), DONE)
    assert turn.usage == Usage(prompt_tokens=0, completion_tokens=3, source=Source.UNKNOWN)


def test_the_last_usage_counts_and_none_is_added() -> None:
    """usage-cumulative-each-chunk, and OpenRouter's two end chunks."""
    running = [chunk({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": count}) for count in (1, 2, 5)]
    last = {"prompt_tokens": 10, "completion_tokens": 5}
    assembled = every_way("".join(running) + chunk({}, "stop", usage=last) + chunk({}, "stop", usage=last) + DONE)
    assert assembled.turn.usage == Usage(prompt_tokens=10, completion_tokens=5, source=Source.REPORTED)
    assert "usage-in-every-chunk" in assembled.kinds


def test_zeros_and_nulls_replace_no_counts() -> None:
    none = {"prompt_tokens": 0, "completion_tokens": 0}
    turn = used(said("Hi"), chunk({}, "stop", usage=USAGE), chunk({}, usage=none), chunk({}, usage=None), DONE)
    assert turn.usage == Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)


def test_usage_behind_the_end_mark_is_not_waited_for() -> None:
    assert used(said("Hi"), chunk({}, "stop"), DONE, sse({**HEAD, "choices": [], "usage": USAGE})).usage is None


# The real recordings.

RECORDINGS = Path(__file__).parents[1] / "data" / "real-streams"
RECORDED: dict[str, tuple[str, str, tuple[int, int] | None]] = {
    "01-short-answer": ("stop", '"Good morning, welcome aboard!"', (44, 8)),
    "02-markdown-list": ("stop", "# Preparing for a Bus Trip\n\n## Tips", (66, 130)),
    "03-cut-by-max-tokens": ("length", "A bus network map is a visual", (44, 24)),
    "04-tool-call": ("tool_calls", "", (288, 41)),
    "05-error-context-too-long": ("error", "", None),
    "06-french": ("stop", "Bien sûr, merci pour votre voyage.", (60, 29)),
    "07-french-longer": ("stop", "1. Assurez-vous que votre vélo", (64, 102)),
    "08-tool-call-required": ("tool_calls", "", (276, 37)),
    "09-two-choices": ("stop", "Good morning! How can I assist you today?", (38, 11)),
    "10-emoji": ("stop", "Bus 12 → Place Bellecour, départ à 8 h 05 ✅ 👩🏽‍🦽 日", (67, 29)),
    "11-comment-pings": ("length", "The night bus leaves the square at ten", (677, 8)),
    "12-server-sigterm": ("incomplete", "As a night bus driver", None),
    "13-server-killed": ("incomplete", "Once upon a time", None),
}


def expected_text(body: bytes) -> str:
    """The answer, read in the most obvious way: these streams are by the book."""
    lines = [line[6:] for line in body.decode().split("\n") if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line).get("choices", []) if choice["index"] == 0]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize("name", RECORDED)
def test_a_real_recording_reads_right(name: str) -> None:
    body = (RECORDINGS / f"{name}.sse").read_bytes()
    meta = json.loads((RECORDINGS / f"{name}.json").read_text())
    assembled = every_way(body, reads=[part["offset"] for part in meta["http_chunks"]])
    finish, start, usage = RECORDED[name]
    assert assembled.turn.finish == finish
    assert assembled.text.startswith(start)
    assert assembled.text == expected_text(body)
    found = assembled.turn.usage
    assert (found and (found.prompt_tokens, found.completion_tokens)) == usage
    if finish == "error":
        assert "exceeds the available context size" in assembled.detail


def test_every_recording_is_read() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.sse")} == set(RECORDED)


def test_recorded_tool_calls_may_run() -> None:
    (made,) = assemble((RECORDINGS / "04-tool-call.sse").read_bytes()).turn.runnable
    assert (made.name, made.arguments) == ("lost_item_report", {"item": "parapluie", "line": "12"})
    (made,) = assemble((RECORDINGS / "08-tool-call-required.sse").read_bytes()).turn.runnable
    assert (made.name, made.arguments) == ("next_departures", {"stop": "Place Bellecour", "line": ""})
