"""How a chatbot's URL is asked: the request of each protocol, and the same answer as JSON."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from motamot.errors import InvalidRequest
from motamot.exam.asking import WAYS, answer_in, ask_whole, question, way_of
from motamot.limits import Limits
from motamot.protocols import PROTOCOLS
from motamot.tape import Request

HARD = "a & b = “ç” #?\n😀"


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("http://h/api/chat/stream", "motamot"),
        ("https://h/chat/api/chat/stream/", "motamot"),
        ("http://h/api/chat", "motamot"),
        ("http://h/api/chatbot/chat/stream?x=1", "ga-text"),
        ("http://h/api/chatbot/chat", "ga-text"),
        ("http://h/v1/chat/completions", "openai"),
        ("http://h/flux", "morceaux"),
        ("http://h/api/ui-message", "ui-message"),
        ("http://h/api/ag-ui", "ag-ui"),
        ("http://h/events", None),
        ("http://h/", None),
        ("http://[h/api/chat", None),
    ],
)
def test_the_path_of_an_address_names_the_protocol(url: str, protocol: str | None) -> None:
    way = way_of(url)
    assert (way and way.protocol) == protocol


@pytest.mark.parametrize("protocol", sorted(set(WAYS) & set(PROTOCOLS)))
def test_what_is_asked_is_what_the_protocols_own_server_reads(protocol: str) -> None:
    asked = question("http://h/somewhere", message=HARD, protocol=protocol, model="assistant")
    if asked.method == "POST":
        assert PROTOCOLS[protocol].parse(asked.body, Limits()).message == HARD
        assert dict(asked.headers)["Content-Type"] == "application/json"
    else:
        query = {name: values[0] for name, values in parse_qs(urlsplit(asked.url).query).items()}
        assert PROTOCOLS[protocol].parse(query, Limits()).message == HARD
        assert dict(asked.headers)["Accept"] == "text/event-stream"


@pytest.mark.parametrize("url", ["http://[::1/api/chat", "http://[x]/api/chat", "http://[/flux"])
def test_what_is_no_address_is_told_and_no_fault(url: str) -> None:
    assert way_of(url) is None
    with pytest.raises(InvalidRequest, match="is no address"):
        question(url, message="x", protocol="morceaux")


def test_an_openai_question_wants_a_stream_and_its_usage() -> None:
    asked = question("http://h/v1/chat/completions", message="hi", model="m")
    told = json.loads(asked.body)
    assert (told["model"], told["stream"], told["stream_options"]) == ("m", True, {"include_usage": True})


def test_a_ui_message_question_has_the_form_of_ai_sdks_transport() -> None:
    told = json.loads(question("http://h/api/ui-message", message="hi").body)
    assert told["trigger"] == "submit-message"
    assert told["messages"][0]["role"] == "user"
    assert told["messages"][0]["parts"] == [{"type": "text", "text": "hi"}]
    assert told["id"] != json.loads(question("http://h/api/ui-message", message="hi").body)["id"]


def test_an_ag_ui_question_has_all_that_run_agent_input_requires() -> None:
    told = json.loads(question("http://h/api/ag-ui", message="hi").body)
    assert told["messages"][0]["content"] == "hi"
    assert {"threadId", "runId", "messages", "tools", "context", "state", "forwardedProps"} <= set(told)


def test_a_body_goes_as_it_is_and_headers_take_the_place_of_ours() -> None:
    asked = question("http://h/x", body=b'{"q":1}', headers=(("content-type", "application/x-chat"), ("X-A", "1")))
    assert (asked.method, asked.body) == ("POST", b'{"q":1}')
    assert asked.headers == (("content-type", "application/x-chat"), ("X-A", "1"))


def test_a_query_keeps_what_the_address_says_already() -> None:
    asked = question("http://h/flux?assistant=guide&message=old", message="new")
    assert parse_qs(urlsplit(asked.url).query) == {"assistant": ["guide"], "message": ["new"]}


def test_a_plain_event_stream_is_asked_with_get_where_nothing_is_said() -> None:
    assert question("http://h/events").method == "GET"
    assert question("http://h/flux").body == b""


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("http://h/api/chat/stream", {}, "--message TEXT"),
        ("http://h/unknown", {"message": "hi"}, "give the body with -d"),
        ("http://h/unknown", {"message": "hi", "protocol": "anthropic"}, "give the body with -d"),
        ("http://h/v1/chat/completions", {"message": "hi"}, "--model NAME"),
        ("http://[h/flux", {"message": "hi", "protocol": "morceaux"}, "is no address"),
    ],
)
def test_what_is_missing_from_a_question_is_said(url: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        question(url, **given)


class TestWhole:
    def test_the_same_body_is_asked_without_its_stream(self) -> None:
        stream = question("http://h/v1/chat/completions", message="hi", model="m")
        told = json.loads(ask_whole("http://h/v1/chat/completions", stream).body)
        assert told["stream"] is False
        assert "stream_options" not in told
        assert told["messages"] == json.loads(stream.body)["messages"]

    def test_another_protocols_address_is_asked_in_its_own_way(self) -> None:
        stream = question("http://h/flux", message="hi")
        whole = ask_whole("http://h/api/chat", stream, message="hi")
        assert (whole.method, json.loads(whole.body)) == ("POST", {"message": "hi"})
        assert dict(whole.headers)["Accept"] == "application/json"

    def test_a_body_that_is_no_json_stays(self) -> None:
        asked = ask_whole("http://h/x", Request(method="POST", url="http://h/y", body=b"\xffhello"))
        assert asked.body == b"\xffhello"

    @pytest.mark.parametrize(
        ("document", "text", "path"),
        [
            ({"naturalLanguageAnswer": "a", "text": "b"}, "a", "naturalLanguageAnswer"),
            ({"choices": [{"message": {"content": "a"}}]}, "a", "choices.0.message.content"),
            ({"message": {"role": "assistant", "content": "a"}}, "a", "message.content"),
            ({"text": "", "outcome": "complete"}, "", "text"),
            ({"content": [{"type": "text", "text": "a"}]}, "a", "content.0.text"),
            ("a", "a", ""),
        ],
    )
    def test_the_answer_is_found_where_known_chatbots_have_it(self, document: Any, text: str, path: str) -> None:
        found = answer_in(json.dumps(document).encode())
        assert (found.text, found.path) == (text, path)

    def test_the_answer_is_found_where_it_is_said_to_be(self) -> None:
        document = b'{"text": "no", "data": {"parts": ["x", {"said": "yes"}]}}'
        assert answer_in(document, "data.parts.1.said").text == "yes"

    def test_plain_text_is_an_answer(self) -> None:
        assert answer_in("déjà vu\n".encode()).text == "déjà vu\n"

    def test_half_a_surrogate_pair_can_be_written_on(self) -> None:
        assert answer_in(b'{"text": "a\\ud83d"}').text == "a\ufffd"

    @pytest.mark.parametrize(
        ("document", "path", "words"),
        [
            (b'{"data": {"reply": {"said": "x"}}}', None, "--whole-path; texts there: data.reply.said"),
            (b'{"text": "x"}', "answer", "no text at 'answer'"),
            (b'{"text": 7}', None, "texts there: none"),
            (b'{"error": {"message": "no model"}}', None, "an error: no model"),
            (b"<!doctype html><title>x</title>", None, "an HTML page"),
            (b'{"text": "cut', None, "no JSON"),
            (b"[" * 100_000, None, "no JSON"),
        ],
    )
    def test_a_document_without_the_answer_says_what_it_has(
        self, document: bytes, path: str | None, words: str
    ) -> None:
        with pytest.raises(InvalidRequest) as refused:
            answer_in(document, path)
        assert words in refused.value.message
