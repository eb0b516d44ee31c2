"""The tools of a chatbot under examination: found in its requests, called by their schema, found again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from motamot.exam.tools import Tool, offered, problems, told

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]},
        {"functions": [{"name": "weather", "parameters": SCHEMA}]},
        {"tools": [{"type": "web_search"}, {"type": "function", "name": "weather", "parameters": SCHEMA}]},
        {"tools": [{"name": "weather", "input_schema": SCHEMA}]},
        {"tools": [{"type": "custom", "name": "weather", "input_schema": SCHEMA}]},
    ],
    ids=["chat", "functions", "responses", "messages", "messages-typed"],
)
def test_the_first_tool_is_found_in_every_interface_of_models(body: dict[str, Any]) -> None:
    found = offered(body)
    assert found == Tool("weather", SCHEMA) and found == offered(body, "weather")
    assert offered(body, "other") is None
    assert found.arguments() == {"city": "first"} and found.arguments(2) == {"city": "second"}


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"tools": None},
        {"tools": [7, {"name": 7}]},
        {"tools": {"name": "a"}},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "custom", "name": "code", "format": {"type": "text"}}]},
    ],
)
def test_where_no_tool_is_offered_none_is_found(body: Any) -> None:
    assert offered(body) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "enum": ["c", "f"]}, "c"),
        ({"const": 7}, 7),
        ({"type": "string", "format": "date"}, "2030-01-01"),
        ({"type": "string", "minLength": 8}, "firstxxx"),
        ({"type": "string", "maxLength": 2}, "fi"),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "number", "exclusiveMinimum": 10}, 11),
        ({"type": "integer", "maximum": 0}, 0),
        ({"type": "boolean"}, True),
        ({"type": ["null", "string"]}, "first"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
        ({"$ref": "#/$defs/Place"}, {"name": "first"}),
        ({"$ref": "#/$defs/Nowhere"}, {}),
        ({"$ref": "#/$defs/Round"}, {}),
    ],
    ids=str,
)
def test_arguments_are_of_the_kinds_that_the_schema_wants(schema: dict[str, Any], value: Any) -> None:
    whole = {
        "type": "object",
        "properties": {"it": schema, "free": {"type": "string"}},
        "required": ["it"],
        "$defs": {
            "Place": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "Round": {"$ref": "#/$defs/Round"},
        },
    }
    assert Tool("t", whole).arguments() == {"it": value}


def test_cut_arguments_are_no_json() -> None:
    for schema in (SCHEMA, {}, {"type": "object"}):
        with pytest.raises(json.JSONDecodeError):
            json.loads(Tool("t", schema).fills()["{arguments cut}"])


CHAT = [
    {"role": "user", "content": "before"},
    {"role": "assistant", "tool_calls": [{"id": "0", "function": {"name": "old", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "0", "content": "x"},
    {"role": "user", "content": "now"},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": '{"city": "first"}'}}]},
    {"role": "tool", "tool_call_id": "a", "content": "x"},
]
INPUT = [
    {"role": "user", "content": "now"},
    {"type": "function_call", "call_id": "a", "name": "t", "arguments": '{"city": "first"}'},
    {"type": "function_call_output", "call_id": "a", "output": "x"},
]
MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "now"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {"city": "first"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
]


@pytest.mark.parametrize(
    "body", [{"messages": CHAT}, {"input": INPUT}, {"messages": MESSAGES}], ids=["chat", "responses", "messages"]
)
def test_calls_and_results_since_the_last_question_are_found_in_every_interface(body: dict[str, Any]) -> None:
    found = told(body)
    (call,) = found.calls
    assert call.is_of(Tool("t", SCHEMA), 1) and not call.is_of(Tool("t", SCHEMA), 2)
    assert list(found.results) == [call.id] == ["a"]


def test_a_call_may_have_gained_defaults_and_may_have_lost_nothing() -> None:
    def call(arguments: str) -> bool:
        message = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": arguments}}]}
        return told({"messages": [message]}).calls[0].is_of(Tool("t", SCHEMA), 1)

    assert call('{"unit": "c", "city": "first"}')
    assert not call("{}") and not call('{"city": "firs"}') and not call('{"city": "first"') and not call("[]")


def asked(*calls: tuple[str, str], results: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    """A request that tells the model of calls of `t`, by id and arguments."""
    told_calls = [{"id": name, "function": {"name": "t", "arguments": arguments}} for name, arguments in calls]
    answers = [{"role": "tool", "tool_call_id": name, "content": "x"} for name in results]
    return {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": told_calls}, *answers]}


FIRST, SECOND = '{"city": "first"}', '{"city": "second"}'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "was not asked again"),
        (
            asked(("a", FIRST)),
            'the model called t({"city": "second"}), and the next turn tells it of t({"city": "first"})',
        ),
        (asked(("a", FIRST + SECOND)), "tells it of t(?)"),
        (asked(("a", FIRST), ("b", SECOND), ("c", SECOND), results=("a", "b", "c")), "the model called t 2 times"),
        (asked(("", FIRST), ("", SECOND), results=("",)), "cannot be told apart by their ids"),
        (asked(("a", FIRST), ("a", SECOND)), "cannot be told apart by their ids"),
        (asked(("a", FIRST), ("b", SECOND), results=("a",)), "1 of 2 calls have no result"),
    ],
)
def test_what_was_lost_of_two_calls_is_told(body: dict[str, Any] | None, words: str) -> None:
    assert words in " ".join(problems(Tool("t", SCHEMA), 2, body))


def test_two_calls_with_their_results_have_lost_nothing_in_whichever_order() -> None:
    assert not list(problems(Tool("t", SCHEMA), 2, asked(("b", SECOND), ("a", FIRST))))


def test_of_two_calls_of_a_tool_without_arguments_one_is_not_enough() -> None:
    assert list(problems(Tool("t"), 2, asked(("a", "{}")))) and not list(
        problems(Tool("t"), 2, asked(("a", "{}"), ("b", "{}")))
    )


def test_a_cut_call_was_run_where_its_arguments_were_made_whole() -> None:
    tool = Tool("t", SCHEMA)
    assert "was run" in " ".join(problems(tool, 0, asked(("a", '{"city": "firs"}'))))
    # An error for a result: with what came, with nothing, or in pydantic-ai's own object.
    for arguments in ('{"city": "firs', "{}", '{"INVALID_JSON": "{\\"city\\": \\"firs"}'):
        assert not list(problems(tool, 0, asked(("a", arguments))))
    assert not list(problems(tool, 0, asked(("a", '{"city": "firs"}'), results=()))) and not list(
        problems(tool, 0, None)
    )
