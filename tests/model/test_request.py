"""The address and the body of a question."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import SettingsError
from motamot.model.request import body, check_headers, endpoint, redirected
from motamot.model.turn import Message, ToolSpec, TurnRequest


@pytest.mark.parametrize(
    ("given_url", "asked"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        (" https://api.openai.com/v1/ ", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/chat/completions/", "https://api.openai.com/v1/chat/completions"),
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
        ("HTTP://Localhost:8080/v1", "http://Localhost:8080/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        ),
        (
            "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
        ("https://bücher.example/v1", "https://bücher.example/v1/chat/completions"),
    ],
)
def test_the_address_is_found_from_whatever_form_of_it_is_given(given_url: str, asked: str) -> None:
    assert endpoint(given_url) == asked


@pytest.mark.parametrize("given_url", ["https://api.openai.com", "http://h/base/", "http://h/x/chat/completions?a=b"])
def test_an_address_found_is_found_again_from_itself(given_url: str) -> None:
    assert endpoint(endpoint(given_url)) == endpoint(given_url)


@pytest.mark.parametrize(
    ("nonsense", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("localhost:8080/v1", "http://"),
        ("127.0.0.1:8080", "http://"),
        ("api.openai.com/v1", "http://"),
        ("/v1", "http://"),
        ("ftp://h/v1", "http://"),
        ("http:/h/v1", "http://"),
        ("http:h", "http://"),
        ("http://", "no host"),
        ("http:///v1", "no host"),
        ("http://:80", "no host"),
        ("http://...", "no host"),
        ("http://h:0/v1", "port 0"),
        ("http://h:99999/v1", "cannot be read"),
        ("http://h:x/v1", "cannot be read"),
        ("http://[::1/v1", "cannot be read"),
        ("http://h/v1#part", "after #"),
        ("http://h/v1#", "after #"),
        ("http://a b/v1", "character"),
        ("http://h/v1\nHost: evil", "character"),
        ("http://h\\@evil/v1", "user or a key"),
        ("http://user:secret-word@h/v1", "user or a key"),
        ("http://sk-secret-word@h/v1", "user or a key"),
        ("http://h/v1/models", "another interface"),
        ("http://h/v1/completions", "another interface"),
        ("http://h/v1/responses", "another interface"),
        ("http://localhost:11434/api/chat", "another interface"),
        ("https://api.anthropic.com/v1/messages", "another interface"),
    ],
)
def test_an_address_that_cannot_work_is_refused_with_the_way_out(nonsense: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        endpoint(nonsense)
    assert "secret-word" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_is_refused_in_a_sentence(text: str) -> None:
    for url in (text, f"http://{text}", f"https://host/{text}"):
        try:
            assert endpoint(url).startswith(("http://", "https://"))
        except SettingsError as error:
            assert "address" in error.message


@pytest.mark.parametrize(
    ("location", "target", "same"),
    [
        ("/x", "http://h:80/x", True),
        ("http://h/x", "http://h/x", True),
        ("//h/x", "http://h/x", True),
        ("http://H:80/x", "http://H:80/x", True),
        ("https://h/x", "https://h/x", False),
        ("http://h:81/x", "http://h:81/x", False),
        ("http://h@evil/x", "http://h@evil/x", False),
        ("http://evil/x", "http://evil/x", False),
        ("http://h:bad/x", "http://h:bad/x", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(location: str, target: str, same: bool) -> None:
    assert redirected("http://h:80/v1/chat/completions", location) == (target, same)


def asked(request: TurnRequest) -> dict[str, object]:
    made: dict[str, object] = json.loads(body(request, "m", token_field="max_tokens", ask_usage=True))
    return made


@given(st.text(st.characters(codec=None), max_size=50))
def test_any_text_can_be_asked_and_what_utf8_cannot_hold_is_replaced(text: str) -> None:
    made = asked(TurnRequest(messages=[Message(role="user", content=text)], max_tokens=1, extra={"user": text}))
    expected = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert made["messages"] == [{"role": "user", "content": expected}]
    assert made["user"] == expected


def test_tools_and_their_choice_are_left_out_where_there_are_none() -> None:
    made = asked(TurnRequest(messages=[], max_tokens=1, tool_choice="auto"))
    assert "tools" not in made
    assert "tool_choice" not in made


def test_a_choice_of_one_tool_goes_out_as_it_is() -> None:
    choice = {"type": "function", "function": {"name": "f"}}
    tool = ToolSpec(name="f", description="", parameters={})
    assert asked(TurnRequest(messages=[], max_tokens=1, tools=[tool], tool_choice=choice))["tool_choice"] == choice


def test_extra_fields_that_go_in_a_circle_are_refused() -> None:
    circle: dict[str, object] = {}
    circle["again"] = circle
    with pytest.raises(SettingsError, match="JSON"):
        asked(TurnRequest(messages=[], max_tokens=1, extra=circle))


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_header_that_passes_can_be_sent(name: str, value: str) -> None:
    try:
        check_headers({name: value})
    except SettingsError as error:
        assert value not in error.message or value in name or len(value) < 3
    else:
        assert name.isascii()
        assert not set(f"{name}{value}") & set("\r\n\0")
        value.encode("latin-1")
