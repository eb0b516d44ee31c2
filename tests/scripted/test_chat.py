"""Steps rendered as chat completions: what is said is what a reader by the standard reads, in every form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.scripted import load_scripts
from motamot.scripted.chat import ChatCompletions
from motamot.scripted.dialects import Asked, BadRequest, Op, play_stream, play_whole
from motamot.scripted.steps import CallDialect, Close, FailHow, Gate, Head, How, Turn, UsagePlace, Wait

from .wire import chunks_of, data_of, deltas_of, text_of

CHAT = ChatCompletions()
HAZARDS = '\r\n\x00\ufeff\u0085\u2028\u2029 \t"\\/{}[]:😀é̈\ud83ddata: [DONE]'
TEXTS = st.text() | st.text(alphabet=HAZARDS)
CUTS = st.sampled_from(["whole", "words", "lines", "characters", "utf16", 1, 3, {"every": 2}])


def turn_of(*steps: Any) -> Turn:
    default = load_scripts(list(steps)).default
    assert default is not None
    return default.turns[0]


def asked(**more: Any) -> Asked:
    return CHAT.read({"model": "m", "messages": [{"role": "user", "content": "one two"}], **more})


def stream(turn: Turn, **more: Any) -> list[Op]:
    return list(play_stream(turn, CHAT, asked(stream=True, **more), 7))


def sent(ops: list[Op]) -> bytes:
    return b"".join(op for op in ops if isinstance(op, bytes))


def chunks(turn: Turn, **more: Any) -> list[dict[str, Any]]:
    return chunks_of(sent(stream(turn, **more)))


def whole(turn: Turn) -> Any:
    return json.loads(sent(list(play_whole(turn, CHAT, asked(), 7))))


def normal(text: str) -> str:
    """Halves of surrogate pairs that stand side by side are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@given(text=TEXTS, cut=CUTS, slice_bytes=st.integers(0, 3))
def test_any_text_in_any_cut_is_read_back_from_the_stream(text: str, cut: Any, slice_bytes: int) -> None:
    ops = stream(turn_of({"say": text, "cut": cut, "slice_bytes": slice_bytes}))
    assert text_of(sent(ops)) == normal(text)
    if slice_bytes:
        assert all(len(op) <= slice_bytes for op in ops[1:-3] if isinstance(op, bytes))


@given(text=TEXTS, cut=CUTS)
def test_any_text_in_any_cut_is_read_back_from_json(text: str, cut: Any) -> None:
    answer = whole(turn_of({"say": text, "cut": cut}))
    assert normal(answer["choices"][0]["message"]["content"]) == normal(text)


@given(pieces=st.lists(TEXTS, max_size=6))
def test_listed_pieces_are_the_deltas_even_empty_ones(pieces: list[str]) -> None:
    deltas = deltas_of(chunks(turn_of({"say": pieces})))
    assert [delta["content"] for delta in deltas[1:-1]] == [normal(piece) for piece in pieces]


def test_each_delta_is_one_piece_and_the_book_is_followed_around_them() -> None:
    ops = stream(turn_of({"say": "Hello there."}))
    assert [op for op in ops if isinstance(op, bytes)] == ops[:-1]
    assert ops[-1] == Close(How.CLEAN)
    first, *middle, last = chunks_of(sent(ops))
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert [chunk["choices"][0]["delta"] for chunk in middle] == [{"content": "Hello"}, {"content": " there."}]
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert {chunk["id"] for chunk in [first, *middle, last]} == {"chatcmpl-scripted-7"}
    assert {chunk["model"] for chunk in [first, *middle, last]} == {"m"}
    assert {chunk["object"] for chunk in [first, *middle, last]} == {"chat.completion.chunk"}
    assert len(ops) == 6


def test_pace_waits_between_pieces_and_not_around_them() -> None:
    ops = stream(turn_of({"say": ["a", "b", "c"], "pace": 10}))
    assert [type(op) for op in ops[1:6]] == [bytes, Wait, bytes, Wait, bytes]
    assert sum(isinstance(op, Wait) for op in ops) == 2
    assert Wait(0.02) in list(play_whole(turn_of({"say": ["a", "b", "c"], "pace": 10}), CHAT, asked(), 1))


def test_reasoning_stands_apart_from_the_answer() -> None:
    turn = turn_of({"think": "hm well", "field": "reasoning"}, {"say": "Yes"})
    deltas = deltas_of(chunks(turn))
    assert deltas[1:-1] == [{"reasoning": "hm"}, {"reasoning": " well"}, {"content": "Yes"}]
    assert whole(turn)["choices"][0]["message"] == {"role": "assistant", "content": "Yes", "reasoning": "hm well"}


# Tool calls

TWO = [{"name": "read", "arguments": {"path": "a b", "n": 1}}, {"name": "now", "arguments": {}}]


def two_calls(dialect: str) -> Turn:
    return turn_of(*({"call": {**call, "dialect": dialect}} for call in TWO))


def fragments(turn: Turn) -> list[dict[str, Any]]:
    return [call for delta in deltas_of(chunks(turn)) for call in delta.get("tool_calls", [])]


@pytest.mark.parametrize("dialect", [d for d in CallDialect if d != "function-call"])
def test_the_fragments_of_every_dialect_hold_both_calls_and_differ_as_they_say(dialect: CallDialect) -> None:
    found = fragments(two_calls(dialect))
    indexes = [fragment.get("index") for fragment in found]
    ids = [fragment["id"] for fragment in found if "id" in fragment]
    names = [fragment["function"]["name"] for fragment in found if "name" in fragment.get("function", {})]
    arguments = [fragment.get("function", {}).get("arguments") for fragment in found]
    joined = "".join(part for part in arguments if isinstance(part, str))
    both = '{"path": "a b", "n": 1}{}'

    if dialect in ("no-index", "no-index-fragments"):
        assert set(indexes) == {None}
    elif dialect.startswith("same-index"):
        assert set(indexes) == {0}
    else:
        assert set(indexes) == ({1, 2} if dialect == "index-from-one" else {0, 1})
    if dialect == "no-id":
        assert ids == []
    elif dialect == "empty-id":
        assert set(ids) == {""}
    else:
        assert set(ids) == {"call_7_0", "call_7_1"}
    assert (len(ids) > 2) is (dialect in ("id-repeated", "id-and-name-repeated"))
    assert (len(names) > 2) is (dialect in ("name-repeated", "id-and-name-repeated", "name-in-pieces"))
    assert "".join(names).count("read") == (4 if dialect in ("name-repeated", "id-and-name-repeated") else 1)
    if dialect == "arguments-object":
        assert arguments == [{"path": "a b", "n": 1}, {}]
    elif dialect == "arguments-twice":
        assert joined == '{"path": "a b", "n": 1}' * 2 + "{}" * 2
    else:
        assert joined == both
    assert (len(found) == 2) is (dialect in ("whole", "no-index", "same-index-whole", "arguments-object"))
    if dialect == "name-late":
        assert "function" not in found[0]


def test_the_older_function_call_is_written_too() -> None:
    deltas = deltas_of(chunks(two_calls("function-call")))
    calls = [delta["function_call"] for delta in deltas if "function_call" in delta]
    assert [call["name"] for call in calls if "name" in call] == ["read", "now"]


def test_listed_calls_send_their_fragments_in_turn() -> None:
    found = fragments(turn_of({"call": TWO}))
    assert [fragment["index"] for fragment in found][:4] == [0, 1, 0, 1]


def test_a_turn_with_calls_finishes_with_tool_calls_unless_it_says_otherwise() -> None:
    assert chunks(two_calls("standard"))[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks(turn_of({"call": {"name": "f"}}, {"finish": "stop"}))[-1]["choices"][0]["finish_reason"] == "stop"


def test_calls_in_json_are_whole_and_the_content_is_null() -> None:
    choice = whole(two_calls("standard"))["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [
        {"id": "call_7_0", "type": "function", "function": {"name": "read", "arguments": '{"path": "a b", "n": 1}'}},
        {"id": "call_7_1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    assert "id" not in whole(two_calls("no-id"))["choices"][0]["message"]["tool_calls"][0]
    assert whole(two_calls("empty-id"))["choices"][0]["message"]["tool_calls"][0]["id"] == ""


# Finish and usage


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "", "odd"])
def test_a_finish_reason_is_sent_as_it_is(reason: str) -> None:
    turn = turn_of({"say": "x"}, {"finish": reason})
    assert chunks(turn)[-1]["choices"][0]["finish_reason"] == reason
    assert whole(turn)["choices"][0]["finish_reason"] == reason


def test_a_turn_may_end_without_reason_without_done_or_without_both() -> None:
    without_reason = chunks(turn_of({"say": "x"}, {"finish": None}))
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in without_reason)
    without_done = data_of(sent(stream(turn_of({"say": "x"}, {"finish": "stop", "done": False}))))
    assert json.loads(without_done[-1])["choices"][0]["finish_reason"] == "stop"
    bare = data_of(sent(stream(turn_of({"say": "x"}, {"close": "clean"}))))
    assert json.loads(bare[-1])["choices"][0]["delta"] == {"content": "x"}


def test_text_may_come_with_the_reason_and_after_it() -> None:
    turn = turn_of({"say": "Hel"}, {"finish": "stop", "text": "lo"})
    assert chunks(turn)[-1]["choices"][0] | {"logprobs": None} == {
        "index": 0, "delta": {"content": "lo"}, "logprobs": None, "finish_reason": "stop"
    }  # fmt: skip
    assert text_of(sent(stream(turn))) == whole(turn)["choices"][0]["message"]["content"] == "Hello"
    late = turn_of({"say": "a"}, {"finish": "stop", "done": False}, {"say": "b"}, {"finish": "length"})
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks(late)] == [None, None, "stop", None, "length"]


def usages(place: str, **more: Any) -> list[Any]:
    turn = turn_of({"say": ["a", "b"]}, {"usage": {"prompt": 10, "completion": 5, "place": place}})
    found = []
    for chunk in chunks(turn, **more):
        choices = chunk["choices"]
        usage = choices[0].get("usage") if choices and "usage" in choices[0] else chunk.get("usage")
        found.append(usage and (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]))
    return found


ASKED: dict[str, Any] = {"stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("place", "options", "expected"),
    [  # role, a, b, finish, and perhaps a chunk of its own
        ("chunk", {}, [None] * 4),
        ("chunk", ASKED, [None, None, None, None, (10, 5, 15)]),
        ("always", {}, [None, None, None, None, (10, 5, 15)]),
        ("finish", {}, [None, None, None, (10, 5, 15)]),
        ("both", {}, [None, None, None, (10, 5, 15), (10, 5, 15)]),
        ("every", {}, [None, (10, 2, 12), (10, 5, 15), (10, 5, 15)]),
        ("every-same", {}, [None, (10, 5, 15), (10, 5, 15), (10, 5, 15)]),
        ("choice", {}, [None, None, None, (10, 5, 15)]),
        ("none", ASKED, [None] * 4),
    ],
)
def test_usage_stands_where_the_script_puts_it(place: str, options: dict[str, Any], expected: list[Any]) -> None:
    assert usages(place, **options) == expected


def test_every_usage_place_is_tested() -> None:
    (mark,) = test_usage_stands_where_the_script_puts_it.pytestmark
    assert {row[0] for row in mark.args[1]} == set(UsagePlace)


def test_asked_for_usage_the_chunks_before_say_null() -> None:
    found = chunks(turn_of({"say": "a"}), **ASKED)
    assert [chunk["usage"] for chunk in found[:-1]] == [None] * 3
    assert found[-1]["choices"] == []
    assert all("usage" not in chunk for chunk in chunks(turn_of({"say": "a"})))


def test_without_a_usage_step_words_asked_and_pieces_sent_are_counted_alike_in_both_forms() -> None:
    turn = turn_of({"think": "x y"}, {"say": "a b c"}, {"repeat": 2, "steps": [{"call": {"name": "f"}}]})
    in_stream = chunks(turn, **ASKED)[-1]["usage"]
    assert in_stream == whole(turn)["usage"] == {"prompt_tokens": 2, "completion_tokens": 9, "total_tokens": 11}


def test_cached_and_reasoning_tokens_stand_in_their_details() -> None:
    usage = whole(turn_of({"say": "x"}, {"usage": {"cached": 1, "reasoning": 2}}))["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 1}
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 2}
    assert "usage" not in whole(turn_of({"say": "x"}, {"usage": "none"}))


# Failing


def test_a_failure_before_anything_has_a_status_in_both_forms() -> None:
    turn = turn_of({"wait_ms": 5}, {"fail": {"message": "slow down", "status": 429, "retry_after": 3, "code": "rate"}})
    for ops in (stream(turn), list(play_whole(turn, CHAT, asked(), 1))):
        assert ops[0] == Wait(0.005)
        assert isinstance(ops[1], Head)
        assert ops[1].status == 429
        assert ("retry-after", "3") in ops[1].headers
        assert json.loads(sent(ops)) == {
            "error": {"message": "slow down", "type": "server_error", "param": None, "code": "rate"}
        }


@pytest.mark.parametrize(
    ("how", "start"),
    [
        ("data", b'data: {"error":{"message":"boom"'),
        ("string", b'data: {"error":"boom"}\n\n'),
        ("event", b'event: error\ndata: {"error":{"message":"boom"'),
        ("event-bare", b'event: error\ndata: {"message":"boom"'),
        ("field", b'error: {"message":"boom"'),
    ],
)
def test_a_failure_after_text_is_in_the_stream_which_ends_without_done(how: str, start: bytes) -> None:
    ops = stream(turn_of({"say": "x"}, {"fail": {"message": "boom", "how": how}}))
    last = ops[-3]
    assert isinstance(last, bytes)
    assert last.startswith(start)
    assert b"[DONE]" not in sent(ops)
    assert not any(isinstance(op, Head) for op in ops)
    assert ops[-2] == Close(How.CLEAN)


def test_every_way_to_fail_is_tested() -> None:
    (mark,) = test_a_failure_after_text_is_in_the_stream_which_ends_without_done.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in mark.args[1]} == set(FailHow)


def test_a_failure_after_the_head_was_sent_alone_is_in_the_stream() -> None:
    assert sent(stream(turn_of({"send": ""}, {"fail": "boom"}))).startswith(b"data: {")


def test_a_failure_after_text_is_a_status_where_json_was_asked_for() -> None:
    ops = list(play_whole(turn_of({"say": "x"}, {"fail": "boom"}), CHAT, asked(), 1))
    assert isinstance(ops[0], Head)
    assert ops[0].status == 500


# Raw steps and JSON


def test_steps_of_time_are_kept_where_json_is_asked_for() -> None:
    turn = turn_of({"gate": "g", "timeout": 10}, {"say": "a"}, {"wait": 20}, {"repeat": 2, "steps": [{"say": "b"}]})
    ops = list(play_whole(turn, CHAT, asked(), 1))
    assert ops[:2] == [Gate("g", 0.01), Wait(0.02)]
    assert json.loads(sent(ops))["choices"][0]["message"]["content"] == "abb"


def test_a_script_that_cuts_the_connection_cuts_it_before_json_too() -> None:
    assert list(play_whole(turn_of({"say": "a"}, {"close": "reset"}), CHAT, asked(), 1)) == [Close(How.RESET)]
    closed = list(play_whole(turn_of({"say": "a"}, {"close": "clean"}), CHAT, asked(), 1))
    assert json.loads(sent(closed))["choices"][0]["message"]["content"] == "a"


def test_status_and_headers_of_a_script_stand_on_json_too() -> None:
    turn = turn_of({"status": 203, "headers": {"x-a": "b"}}, {"say": "a"})
    head = next(iter(play_whole(turn, CHAT, asked(), 1)))
    assert isinstance(head, Head)
    assert head.status == 203
    assert dict(head.headers)["x-a"] == "b"
    assert dict(head.headers)["content-type"] == "application/json"


# Requests


def test_a_request_is_read_for_what_a_script_needs() -> None:
    read = CHAT.read(
        {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "You are kind"},
                {"role": "user", "content": "first"},
                {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "image_url"}, {"text": "two"}]},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "r"},
                {"role": "tool", "content": "s"},
            ],
        }
    )
    assert read == Asked(model="m", stream=True, include_usage=True, question="one two", round=1, prompt=8)


@pytest.mark.parametrize(
    ("roles", "number"),
    [
        ("u", 0),
        ("uat", 1),
        ("uattat", 2),
        ("uatatat", 3),
        ("uata", 0),  # the last message is no tool result
        ("uatu", 0),  # a new question
        ("uatuat", 1),
        ("at", 1),  # nobody asked: still a result
    ],
)
def test_tool_rounds_are_counted_since_the_last_question(roles: str, number: int) -> None:
    names = {"u": "user", "a": "assistant", "t": "tool"}
    messages = [{"role": names[role], "content": "x"} for role in roles]
    assert CHAT.read({"messages": messages}).round == number


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages"),
        ({"messages": [{}], "stream": "yes"}, "stream"),
        ({"messages": [{}], "stream_options": True}, "stream_options"),
    ],
)
def test_a_request_that_is_none_is_refused_with_its_field(body: Any, param: str | None) -> None:
    with pytest.raises(BadRequest) as refused:
        CHAT.read(body)
    assert refused.value.param == param


@given(body=st.dictionaries(st.sampled_from(["messages", "stream", "model", "stream_options"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["role", "content", "text"]), inner, max_size=3),
    max_leaves=8,
)))  # fmt: skip
def test_any_json_is_a_request_or_refused(body: Any) -> None:
    try:
        assert isinstance(CHAT.read(body), Asked)
    except BadRequest as refused:
        assert refused.message
