"""`openai`: chat completion chunks as OpenAI's clients read them, and what those clients may ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from motamot.answer import (
    AnswerEvent,
    By,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Source,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Usage,
)
from motamot.errors import Conflict, InvalidRequest, LimitExceeded, MotamotError, NotFound, StoreError
from motamot.limits import Limits
from motamot.protocols import Asked
from motamot.protocols.base import OfferedTool, PastCall, PastMessage
from motamot.protocols.openai import PROTOCOL
from motamot.sse import Decoder
from tests.protocols.strategies import read, written

STARTED = Started(exchange="Xq3", conversation="c1", assistant="helper", model="m")
COMPLETE = Ended(outcome=Outcome.COMPLETE)
USAGE = Usage(prompt_tokens=9, completion_tokens=3, cached_tokens=2, reasoning_tokens=1, source=Source.REPORTED)
WITH_USAGE = Asked(message="?", assistant="helper", include_usage=True)
WITH_TOOLS = Asked(message="?", assistant="helper", tools=(OfferedTool(name="clock"),))
HEAD = '{"id":"chatcmpl-Xq3","object":"chat.completion.chunk","created":5,"model":"helper"'


def wire(*events: AnswerEvent, asked: Asked | None = None) -> bytes:
    writer = PROTOCOL.writer(asked, now=5)
    return b"".join(writer.write(number, event) for number, event in enumerate((STARTED, *events), 1))


def chunks(data: bytes) -> list[Any]:
    events = Decoder().feed(data)
    assert events[-1].data == "[DONE]"
    return [json.loads(event.data) for event in events[:-1]]


def test_a_stream_is_a_role_then_contents_then_a_reason_then_done() -> None:
    def chunk(delta: str, finish: str) -> str:
        return f'data: {HEAD},"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}\n\n'

    expected = (
        chunk('{"role":"assistant","content":""}', "null")
        + chunk('{"content":"Bon"}', "null")
        + chunk('{"content":"jour é\\u2028"}', "null")
        + chunk("{}", '"stop"')
        + "data: [DONE]\n\n"
    )
    assert wire(Text("Bon"), Text("jour é\u2028"), COMPLETE).decode() == expected


def test_nothing_is_written_before_the_first_delta() -> None:
    writer = PROTOCOL.writer(now=5)
    assert writer.write(1, STARTED) == b""
    assert writer.write(2, TurnEnded(turn=1, finish="stop")) == b""
    assert b'"role"' in writer.write(3, Text("a"))


def test_there_is_never_an_id_line() -> None:
    data = wire(Text("a\nid: 1"), Ended(outcome=Outcome.STOPPED, usage=USAGE), asked=WITH_USAGE)
    assert not any(line.startswith(b"id:") for line in data.split(b"\n"))


@pytest.mark.parametrize(
    ("end", "reason", "beside"),
    [
        (COMPLETE, "stop", None),
        (Ended(outcome=Outcome.TRUNCATED), "length", None),
        (Ended(outcome=Outcome.FILTERED), "content_filter", None),
        (Ended(outcome=Outcome.STOPPED, by=By.OPERATOR), "stop", {"outcome": "stopped", "by": "operator"}),
        (Ended(outcome=Outcome.ABANDONED), "stop", {"outcome": "abandoned"}),
        (Ended(outcome=Outcome.COMPLETE, marks=("recorded",)), "stop", {"marks": ["recorded"]}),
    ],
)
@pytest.mark.parametrize("asked", [None, WITH_USAGE])
def test_the_reason_says_the_end_and_our_field_what_it_cannot(
    end: Ended, reason: str, beside: object, asked: Asked | None
) -> None:
    [*_, last] = chunks(wire(Text("a"), end, asked=asked))
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": reason}]
    assert last.get("motamot") == beside


def test_an_answer_without_text_still_has_a_role_and_a_reason() -> None:
    first, last = chunks(wire(COMPLETE))
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert last["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("before", [[], [Text("partial")]])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.INTERRUPTED])
def test_a_failure_is_an_error_object_and_never_done(before: list[AnswerEvent], outcome: Outcome) -> None:
    code = Code.TIMEOUT if outcome is Outcome.FAILED else None
    data = wire(*before, Ended(outcome=outcome, code=code, message="Too slow."))
    last = Decoder().feed(data)[-1]
    error = {"message": "Too slow.", "type": "server_error", "param": None, "code": code or "interrupted"}
    assert json.loads(last.data) == {"error": error}
    assert b"[DONE]" not in data
    assert b"stop" not in data


def test_usage_comes_in_a_chunk_of_its_own_when_it_was_asked_for() -> None:
    data = chunks(wire(Text("a"), Ended(outcome=Outcome.COMPLETE, usage=USAGE), asked=WITH_USAGE))
    assert data[-1]["choices"] == []
    assert data[-1]["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    assert [chunk["usage"] for chunk in data[:-1]] == [None] * (len(data) - 1)


def test_usage_that_was_not_asked_for_is_not_sent() -> None:
    data = wire(Text("a"), Ended(outcome=Outcome.COMPLETE, usage=USAGE))
    assert b"usage" not in data


@pytest.mark.parametrize("usage", [None, Usage()])
def test_usage_that_is_not_known_is_left_out_not_made_up(usage: Usage | None) -> None:
    assert len(chunks(wire(Text("a"), Ended(outcome=Outcome.COMPLETE, usage=usage), asked=WITH_USAGE))) == 3


def test_an_estimate_says_that_it_is_one() -> None:
    usage = Usage(prompt_tokens=1, source=Source.ESTIMATED)
    data = wire(Text("a"), Ended(outcome=Outcome.COMPLETE, usage=usage), asked=WITH_USAGE)
    assert chunks(data)[-1]["motamot"] == {"usage_source": "estimated"}
    assert read(PROTOCOL.reader(), [data])[-1] == Ended(outcome=Outcome.COMPLETE, usage=usage)


CALLS = (
    ToolCalled(id="c1", name="clock", arguments={"zone": "Europe/Paris"}),
    ToolCalled(id="c2", name="clock", arguments=None),
    ToolCalled(id="c3", name="clock", arguments='{"zone":'),
)


def test_calls_of_the_callers_own_tools_are_returned_to_the_caller() -> None:
    data = wire(Text("Let me look."), *CALLS, TurnEnded(turn=1, finish="tool_calls"), COMPLETE, asked=WITH_TOOLS)
    *_, one, two, three, last = chunks(data)
    assert [chunk["choices"][0]["delta"]["tool_calls"] for chunk in (one, two, three)] == [
        [
            {
                "index": index,
                "id": f"c{index + 1}",
                "type": "function",
                "function": {"name": "clock", "arguments": arguments},
            }
        ]
        for index, arguments in enumerate(['{"zone":"Europe/Paris"}', "{}", '{"zone":'])
    ]
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert read(PROTOCOL.reader(), [data])[2:-1] == [
        ToolCalled(id="c1", name="clock", arguments={"zone": "Europe/Paris"}),
        ToolCalled(id="c2", name="clock", arguments={}),
        ToolCalled(id="c3", name="clock", arguments='{"zone":'),
    ]


def test_calls_of_the_assistants_own_tools_are_not_the_callers_to_run() -> None:
    returned = ToolReturned(id="c1", name="clock", status="ok")
    data = wire(CALLS[0], returned, Text("It is noon."), COMPLETE)
    assert b"tool_calls" not in data
    assert b'"finish_reason":"stop"' in data


def test_a_call_cut_by_the_token_limit_is_not_a_reason_to_run_it() -> None:
    *_, last = chunks(wire(CALLS[2], Ended(outcome=Outcome.TRUNCATED), asked=WITH_TOOLS))
    assert last["choices"][0]["finish_reason"] == "length"


def test_the_whole_answer_is_a_chat_completion() -> None:
    events = [STARTED, Reasoning("hm"), Text("Bon"), Text("jour"), Ended(outcome=Outcome.TRUNCATED, usage=USAGE)]
    document = PROTOCOL.whole(events, WITH_USAGE, now=5)
    assert json.loads(document) == {
        "id": "chatcmpl-Xq3",
        "object": "chat.completion",
        "created": 5,
        "model": "helper",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Bonjour",
                    "refusal": None,
                    "reasoning_content": "hm",
                },
                "logprobs": None,
                "finish_reason": "length",
            }
        ],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    }


def test_a_whole_answer_of_calls_has_no_content() -> None:
    document = json.loads(PROTOCOL.whole([STARTED, CALLS[0], COMPLETE], WITH_TOOLS, now=5))
    [choice] = document["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"zone":"Europe/Paris"}'
    assert "usage" not in document


def test_a_whole_answer_that_was_stopped_or_estimated_says_so_beside() -> None:
    usage = Usage(completion_tokens=1, source=Source.ESTIMATED)
    end = Ended(outcome=Outcome.STOPPED, by=By.DISCONNECT, usage=usage, marks=("test_model",))
    assert json.loads(PROTOCOL.whole([STARTED, end]))["motamot"] == {
        "outcome": "stopped",
        "by": "disconnect",
        "marks": ["test_model"],
        "usage_source": "estimated",
    }


def test_a_whole_answer_that_failed_is_an_error() -> None:
    document = json.loads(PROTOCOL.whole([STARTED, Text("a"), Ended(outcome=Outcome.FAILED, code=Code.UPSTREAM_CUT)]))
    assert list(document) == ["error"]
    assert document["error"]["code"] == "upstream_cut"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InvalidRequest("No.", field="n"), ("invalid_request_error", "invalid_request", "n")),
        (Conflict("No."), ("invalid_request_error", "conflict", None)),
        (NotFound("No."), ("invalid_request_error", "model_not_found", None)),
        (StoreError("No."), ("server_error", "store", None)),
        (LimitExceeded("No.", limit="exchanges_running", maximum=1), ("server_error", "limit", None)),
        (LimitExceeded("No.", limit="body_bytes", maximum=1), ("invalid_request_error", "limit", None)),
        (
            LimitExceeded("No.", limit="tokens_per_hour", maximum=1),
            ("rate_limit_error", "rate_limit_exceeded", None),
        ),
        (LimitExceeded("No.", limit="money_per_day", maximum=1), ("insufficient_quota", "insufficient_quota", None)),
    ],
)
def test_a_refusal_has_the_shape_that_openais_clients_read(error: MotamotError, told: tuple[object, ...]) -> None:
    refusal = json.loads(PROTOCOL.refusal(error))["error"]
    assert (refusal["type"], refusal["code"], refusal["param"]) == told
    assert refusal["message"] == "No."


# --- streams of other servers


def chunk(delta: object, finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c1", "model": "m", "choices": [choice], **more}).encode() + b"\n\n"


def test_an_ordinary_servers_stream_is_read() -> None:
    fragments = [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "a", "arguments": ""}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "b", "arguments": '{"x"'}},
        {"index": 0, "function": {"arguments": '{"y":1}'}},
        {"index": 1, "function": {"arguments": ":2}"}},
    ]
    data = (
        b": ping\n\n"
        + chunk({"role": "assistant", "content": ""})
        + chunk({"reasoning": "hm"})
        + chunk({"content": "a\ud83d"})
        + chunk({"content": "\ude00"})
        + b"".join(chunk({"tool_calls": [fragment]}) for fragment in fragments)
        + chunk({}, "tool_calls", usage={"prompt_tokens": 1})
        + b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\ndata: [DONE]\n\n'
    )
    usage = Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
    assert read(PROTOCOL.reader(), [data]) == [
        Started(exchange="c1", conversation="", model="m"),
        Reasoning("hm"),
        Text("a"),
        Text("😀"),
        ToolCalled(id="c1", name="a", arguments={"y": 1}),
        ToolCalled(id="c2", name="b", arguments={"x": 2}),
        Ended(outcome=Outcome.COMPLETE, usage=usage),
    ]


def test_a_second_choice_is_not_this_answer() -> None:
    other = b'data: {"choices":[{"index":1,"delta":{"content":"B"}}]}\n\n'
    got = read(PROTOCOL.reader(), [chunk({"content": "A"}) + other + b"data: [DONE]\n\n"])
    assert [event.text for event in got if isinstance(event, Text)] == ["A"]


@pytest.mark.parametrize(
    ("tail", "end"),
    [
        (b"data: [DONE]\n\n", (Outcome.COMPLETE, None)),
        (b"", (Outcome.FAILED, Code.UPSTREAM_CUT)),
        (chunk({}, "length"), (Outcome.TRUNCATED, None)),  # no [DONE], as some servers end
        (b'data: {"error":"overloaded"}\n\n', (Outcome.FAILED, Code.UPSTREAM_ERROR)),
        (b'data: {"error":{"message":"overloaded","code":529}}\n\n', (Outcome.FAILED, Code.UPSTREAM_ERROR)),
        (b'event: error\ndata: {"error":{"code":"timeout"}}\n\n', (Outcome.FAILED, Code.TIMEOUT)),
    ],
)
def test_each_way_a_stream_may_end_is_read(tail: bytes, end: tuple[Outcome, Code | None]) -> None:
    got = read(PROTOCOL.reader(), [chunk({"content": "a"}) + tail])[-1]
    assert isinstance(got, Ended)
    assert (got.outcome, got.code) == end


def test_fragments_of_calls_without_end_are_cut_off() -> None:
    fragment = chunk({"tool_calls": [{"index": 0, "function": {"arguments": "x" * 100}}]})
    reader = PROTOCOL.reader(max_event_bytes=10_000)
    got = read(reader, [fragment] * 200)
    assert isinstance(got[-1], Ended)
    assert got[-1].code is Code.LIMIT


# --- what is asked


def asked(**fields: object) -> Asked:
    body = {"model": "helper", "messages": [{"role": "user", "content": "Bonjour"}], **fields}
    return PROTOCOL.parse(json.dumps(body).encode(), Limits())


def test_a_plain_question_is_understood() -> None:
    got = asked(stream=True, stream_options={"include_usage": True}, max_tokens=50, temperature=0.5, user="u1")
    assert got == Asked(
        message="Bonjour",
        assistant="helper",
        history=(),
        stream=True,
        include_usage=True,
        max_tokens=50,
        options={"temperature": 0.5},
    )
    assert not asked().stream


def test_the_callers_instructions_are_kept_apart_from_the_history() -> None:
    got = asked(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": "three"},
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "four \ud83d"},
        ]
    )
    assert got.system == "Be brief.\n\nBe kind."
    assert got.history == (PastMessage(role="user", content="one\ntwo"), PastMessage(role="assistant", content="three"))
    assert got.message == "four \ufffd"


CALL = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": '{"zone":"UTC"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "content": "12:00"}
USER = {"role": "user", "content": "What time is it?"}


def test_the_results_of_the_callers_tools_follow_the_question() -> None:
    got = asked(messages=[USER, CALLED, ANSWERED])
    assert got.message == "What time is it?"
    assert got.followed == (
        PastMessage(role="assistant", calls=(PastCall(id="c1", name="clock", arguments='{"zone":"UTC"}'),)),
        PastMessage(role="tool", content="12:00", call_id="c1"),
    )


TOOL = {
    "type": "function",
    "function": {"name": "clock", "description": "Tells time.", "parameters": {"type": "object"}},
}


def test_the_callers_tools_are_taken() -> None:
    got = asked(tools=[TOOL], tool_choice="required", parallel_tool_calls=False)
    assert got.tools == (OfferedTool(name="clock", description="Tells time.", parameters={"type": "object"}),)
    assert (got.tool_choice, got.options) == ("required", {"parallel_tool_calls": False})
    one = {"type": "function", "function": {"name": "clock"}}
    assert asked(tools=[TOOL], tool_choice=one).options == {"tool_choice": one}
    assert asked(tool_choice="none").tool_choice is None


@pytest.mark.parametrize(
    "harmless",
    [
        {"n": 1},
        {"n": None},
        {"logprobs": False},
        {"modalities": ["text"]},
        {"functions": []},
        {"stream_options": None},
        {"temperature": None},
        {"stop": None},
        {"tools": None},
        {"tools": []},
        {"metadata": {"a": "b"}},
        {"unheard_of": [1, {"x": None}]},
    ],
    ids=json.dumps,
)
def test_what_asks_for_nothing_is_taken(harmless: dict[str, object]) -> None:
    assert asked(**harmless) == asked()


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Bonjour"}, "messages"),
        ({"messages": ["Bonjour"]}, "messages[0]"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 33_000}]}, "messages"),
        ({"messages": [USER, {"role": "function", "content": "x"}]}, "messages[1].role"),
        ({"messages": [USER, {"role": ["user"], "content": "x"}]}, "messages[1].role"),
        ({"messages": [USER, {"role": "System", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "system", "content": {"a": 1}}, USER]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0]",
        ),
        ({"messages": [USER, ANSWERED]}, "messages[1].tool_call_id"),
        ({"messages": [USER, CALLED]}, "messages"),
        ({"messages": [USER, CALLED, USER]}, "messages[2]"),
        ({"messages": [USER, CALLED, ANSWERED, ANSWERED]}, "messages[3].tool_call_id"),
        ({"messages": [USER, {**CALLED, "tool_calls": [CALL, CALL]}]}, "messages[1].tool_calls"),
        ({"messages": [USER, {**CALLED, "tool_calls": {}}]}, "messages[1].tool_calls"),
        ({"messages": [USER, {**CALLED, "tool_calls": [{"id": "c1"}]}]}, "messages[1].tool_calls[0].function"),
        ({"messages": [USER, {"role": "assistant", "function_call": {}}]}, "messages[1].function_call"),
        ({"model": 7}, "model"),
        ({"model": "x" * 201}, "model"),
        ({"model": "a\nb"}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": []}, "stream_options"),
        ({"stream_options": {"include_usage": 1}}, "include_usage"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1e3}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": 10**12}, "max_completion_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": [7]}, "stop"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"reasoning_effort": 3}, "reasoning_effort"),
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {}}, "audio"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"tools": {}}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": []}}]},
            "tools[0].function.parameters",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "description": 1}}]},
            "tools[0].function.description",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "always"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"function": {"name": ["clock"]}}}, "tool_choice"),
        ({"tools": [TOOL], "parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_is_refused_with_its_place(fields: dict[str, object], place: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        asked(**fields)
    assert refused.value.field == place
    assert refused.value.message.endswith(".")


def test_the_laws_answers_name_the_model_that_was_asked_for() -> None:
    got = read(PROTOCOL.reader(), [written(PROTOCOL, [STARTED, Text("a"), COMPLETE], WITH_USAGE)])
    assert got[0] == Started(exchange="Xq3", conversation="", model="helper")
