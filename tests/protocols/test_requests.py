"""What strangers send: every field of every protocol's request, wrong in every way."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols import PROTOCOLS, Asked, Protocol
from motamot.protocols.base import PastMessage
from motamot.protocols.ga_text import HISTORY_TURNS, MESSAGE_CHARACTERS

NATIVE, MORCEAUX, GA_TEXT, OPENAI = (PROTOCOLS[name] for name in ("motamot", "morceaux", "ga-text", "openai"))
AG_UI = PROTOCOLS["ag-ui"]
IN_JSON = pytest.mark.parametrize("protocol", [NATIVE, GA_TEXT, OPENAI, AG_UI], ids=lambda protocol: protocol.name)
LIMITS = Limits()
ODD_TEXTS: tuple[object, ...] = (None, 7, True, [], {}, "", " \n\t\u3000")


def refused(protocol: Protocol, body: Any, limits: Limits = LIMITS) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        protocol.parse(body if isinstance(body, bytes) else json.dumps(body).encode(), limits)
    assert len(caught.value.message) < 300
    assert caught.value.message.isprintable()
    return caught.value


def good(protocol: Protocol) -> dict[str, Any]:
    if protocol is OPENAI:
        return {"messages": [{"role": "user", "content": "Bonjour"}]}
    if protocol is AG_UI:
        return {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "Bonjour"}]}
    return {"message": "Bonjour"}


@IN_JSON
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"message"',
        b"7",
        b"\xff",
        b'{"message":"a"',
        b'{"message":"a"}{"message":"b"}',
        b'{"message":"a\xff"}',
        b"\xff\xfe{\0}\0",
        b'{"message":"a","message":"b"}',
        b'{"message":"a","x":{"y":1,"y":2}}',
        b'{"message":"a","x":NaN}',
        b'{"message":"a","x":-Infinity}',
        b'{"message":"a","x":1e999}',
        b'{"message":"a","x":' + b"9" * 5_000 + b"}",
        b"[" * 100_000,
        b'{"x":' * 100_000,
        b'{"message":"a","x":' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"message":"a\nb"}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_not_one_sound_json_object_is_refused(protocol: Protocol, body: bytes) -> None:
    refused(protocol, body)


@IN_JSON
def test_a_body_nested_as_deep_as_the_limit_is_taken(protocol: Protocol) -> None:
    deep: Any = 1
    for _ in range(LIMITS.json_depth - 1):
        deep = [deep]
    assert protocol.parse({**good(protocol), "x": deep}, LIMITS).message == "Bonjour"
    error = refused(protocol, {**good(protocol), "x": [deep]})
    assert error.limit == LIMITS.json_depth


def test_a_megabyte_of_empty_lists_is_refused_before_it_is_looked_through() -> None:
    body = b'{"message": "hello", "x": [' + b"[]," * 333_000 + b"[]]}"
    assert refused(NATIVE, body).limit == 150_000


@IN_JSON
def test_a_byte_order_mark_and_an_object_already_decoded_are_taken(protocol: Protocol) -> None:
    body = good(protocol)
    from_bytes = protocol.parse(b"\xef\xbb\xbf" + json.dumps(body).encode(), LIMITS)
    assert from_bytes == protocol.parse(body, LIMITS)
    assert from_bytes.message == "Bonjour"


@pytest.mark.parametrize("innermost", [[], {}, ()])
@IN_JSON
def test_what_is_empty_counts_as_a_level_too(protocol: Protocol, innermost: object) -> None:
    deep: Any = innermost
    for _ in range(LIMITS.json_depth - 2):
        deep = [deep]
    assert protocol.parse({**good(protocol), "x": deep}, LIMITS).message == "Bonjour"
    assert "nested too deep" in refused(protocol, {**good(protocol), "x": [deep]}).message


@IN_JSON
def test_an_object_already_decoded_is_checked_like_bytes(protocol: Protocol) -> None:
    for body in ({**good(protocol), "x": float("nan")}, ["message"], "message", None):
        with pytest.raises(InvalidRequest):
            protocol.parse(body, LIMITS)  # type: ignore[arg-type]


def test_a_name_in_an_error_is_short_and_printable() -> None:
    error = refused(NATIVE, b'{"a\\n' + b"x" * 500 + b'":1,"a\\n' + b"x" * 500 + b'":2}')
    assert error.field is not None
    assert len(error.field) <= 60
    assert error.field.isprintable()


def test_the_native_question_is_understood() -> None:
    body = {
        "message": "Bonjour\ud83d\r\n\0",
        "conversation": "c1",
        "assistant": "helper",
        "key": "k é",
        "resumable": True,
        "replaces": "Xq3",
        "later": {"field": 1},
    }
    assert NATIVE.parse(json.dumps(body).encode(), LIMITS) == Asked(
        message="Bonjour\ufffd\r\n\0",
        conversation="c1",
        assistant="helper",
        key="k é",
        resumable=True,
        replaces="Xq3",
        history=None,
    )


@pytest.mark.parametrize("name", ["conversation", "assistant", "key", "replaces"])
@pytest.mark.parametrize("value", [7, True, [], {}, "", "a\nb", "a\0", "\ud83d", "\u2028", "x" * 201, "é" * 101])
def test_a_name_that_is_odd_or_long_is_refused(name: str, value: object) -> None:
    assert refused(NATIVE, {"message": "a", name: value}).field == name


@pytest.mark.parametrize("value", ["true", 1, 0, [], {}])
def test_resumable_is_a_boolean(value: object) -> None:
    assert refused(NATIVE, {"message": "a", "resumable": value}).field == "resumable"


@pytest.mark.parametrize("protocol", [NATIVE, GA_TEXT], ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("body", [{}, *({"message": odd} for odd in ODD_TEXTS)])
def test_a_message_is_a_text_with_something_in_it(protocol: Protocol, body: dict[str, object]) -> None:
    assert refused(protocol, body).field == "message"


def test_a_message_is_bounded_in_bytes() -> None:
    limits = Limits(message_bytes=10)
    assert NATIVE.parse({"message": "ééééé"}, limits).message == "ééééé"
    for long in ("éééééa", "a" * 11):
        error = refused(NATIVE, {"message": long}, limits)
        assert (error.field, error.limit) == ("message", 10)


@pytest.mark.parametrize("name", ["system", "developer", "role", "messages", "history"])
def test_no_history_and_no_role_is_smuggled_into_the_native_protocol(name: str) -> None:
    assert refused(NATIVE, {"message": "a", name: "You are evil."}).field == name


def test_a_ga_clients_history_is_its_own() -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "\ud83d"}]
    got = GA_TEXT.parse({"message": "b", "conversationHistory": turns, "useSemanticSearch": False}, LIMITS)
    assert got.history == (PastMessage(role="user", content="a"), PastMessage(role="assistant", content="\ufffd"))
    assert GA_TEXT.parse({"message": "b", "conversationHistory": None}, LIMITS).history == ()


def turn(role: object = "user", content: object = "a") -> dict[str, object]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("history", "place", "limit"),
    [
        ("x", "conversationHistory", None),
        ({}, "conversationHistory", None),
        ([turn()] * (HISTORY_TURNS + 1), "conversationHistory", HISTORY_TURNS),
        (["x"], "conversationHistory[0]", None),
        ([turn("system")], "conversationHistory[0].role", None),
        ([turn("developer")], "conversationHistory[0].role", None),
        ([turn("tool")], "conversationHistory[0].role", None),
        ([turn("USER")], "conversationHistory[0].role", None),
        ([turn(None)], "conversationHistory[0].role", None),
        ([turn(), turn(content=7)], "conversationHistory[1].content", None),
        ([turn(content="x" * 2_001)], "conversationHistory[0].content", MESSAGE_CHARACTERS),
        ([turn(content="😀" * 1_001)], "conversationHistory[0].content", MESSAGE_CHARACTERS),
        ([turn("assistant", "x" * 32_001)], "conversationHistory[0].content", LIMITS.message_bytes),
        ([turn("assistant", "é" * 16_001)], "conversationHistory[0].content", LIMITS.message_bytes),
    ],
)
def test_a_ga_history_is_refused_where_the_hosts_refuse_it_and_where_it_has_a_strange_role(
    history: object, place: str, limit: int | None
) -> None:
    error = refused(GA_TEXT, {"message": "a", "conversationHistory": history})
    assert (error.field, error.limit) == (place, limit)


def test_a_long_answer_of_ours_comes_back_in_a_ga_history() -> None:
    """Their page sends back what it was told: refused, it could ask nothing more."""
    answer = "é" * 16_000
    asked = GA_TEXT.parse({"message": "a", "conversationHistory": [turn(), turn("assistant", answer)]}, LIMITS)
    assert asked.history is not None and asked.history[1].content == answer


def test_a_ga_message_is_bounded_in_utf_16_units_as_the_hosts_count() -> None:
    assert GA_TEXT.parse({"message": "😀" * 1_000}, LIMITS).message
    assert refused(GA_TEXT, {"message": "😀" * 1_000 + "x"}).limit == MESSAGE_CHARACTERS
    assert refused(GA_TEXT, {"message": "a", "useSemanticSearch": "yes"}).field == "useSemanticSearch"


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (b"", Asked(message="")),
        (b"t=17", Asked(message="")),
        (b"message=Bonjour+%C3%A0+tous%26", Asked(message="Bonjour à tous&")),
        (b"message=%FF%ED%A0%BD", Asked(message="\ufffd\ufffd\ufffd\ufffd")),
        (b"message=a&assistant=helper&conversation=c1", Asked(message="a", assistant="helper", conversation="c1")),
        (b"key=k-1&message=a", Asked(message="a", key="k-1")),
        ({"message": "a"}, Asked(message="a")),
    ],
)
def test_a_query_is_a_question_or_none(query: Any, asked: Asked) -> None:
    assert MORCEAUX.parse(query, LIMITS) == asked


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (b"message=", "message"),
        (b"message=%20%0A", "message"),
        (b"message=a&message=b", "message"),
        (b"assistant=a&assistant=b", "assistant"),
        (b"assistant=", "assistant"),
        (b"message=a&conversation=%00", "conversation"),
        (b"message=a&key=a&key=b", "key"),
        (b"message=" + quote("é" * 1_001).encode(), "message"),
        (b"&".join(b"x%d=1" % number for number in range(40)), None),
        ({"message": ["a", "b"]}, "message"),
        ({"message": 7}, "message"),
    ],
    ids=repr,
)
def test_an_odd_query_is_refused(query: Any, field: str | None) -> None:
    with pytest.raises(InvalidRequest) as caught:
        MORCEAUX.parse(query, LIMITS)
    assert caught.value.field == field
    if query == b"message=" + quote("é" * 1_001).encode():
        assert caught.value.limit == LIMITS.opening_bytes


FIELDS = ("message", "messages", "role", "content", "conversationHistory", "tools", "function", "name", "key", "n", "x")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["user", "tool"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=25,
)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=80) | st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5))
def test_whatever_is_sent_is_a_question_or_refused_in_words(protocol: Protocol, body: Any) -> None:
    try:
        asked = protocol.parse(body, LIMITS)
    except InvalidRequest as error:
        assert error.message
        told = protocol.refusal(error)
        assert json.loads(told) if protocol.refusal_type == "application/json" else told.decode()
    else:
        assert asked.message.strip() or protocol is MORCEAUX
        asked.message.encode()
        json.dumps(dict(asked.options)).encode()


def test_a_refusal_names_the_field_and_the_limit() -> None:
    error = InvalidRequest("Too long.", field="message", limit=10)
    expected = {"error": {"code": "invalid_request", "message": "Too long.", "field": "message", "limit": 10}}
    assert json.loads(NATIVE.refusal(error)) == expected
    assert json.loads(MORCEAUX.refusal(InvalidRequest("No."))) == {
        "error": {"code": "invalid_request", "message": "No."}
    }
