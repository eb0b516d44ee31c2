"""What a recording is taken for: by its content first, by its headers where the content does not tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from motamot.findings import PROTOCOLS, Promise, examine
from motamot.findings.recognise import Shape, protocol_named, recognise
from motamot.tape.tape import Piece, Tape
from tests.findings.examples import AG_TEXT, FIN, MORCEAUX, ROUTING, UI_END, UI_TEXT, ag, ui
from tests.findings.tapes import CASES, DATA, DIALECTS, DONE, END, chunk, delta, events, of_case, tape, text

NATIVE = "".join(
    f"id: Xq3.{number}\ndata: {json.dumps(value)}\n\n"
    for number, value in enumerate(
        (
            {"type": "started", "exchange": "Xq3", "conversation": "c", "assistant": "a", "model": "m"},
            {"type": "text", "text": "Hi"},
            {"type": "ended", "outcome": "complete", "shown": 2},
        ),
        1,
    )
)
RESPONSES = "".join(
    f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"
    for value in (
        {"type": "response.created", "sequence_number": 0, "response": {}},
        {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Hi"},
        {"type": "response.output_text.done", "sequence_number": 2, "text": "Hi"},
        {"type": "response.completed", "sequence_number": 3, "response": {}},
    )
)
ANTHROPIC = "".join(
    f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"
    for value in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
)
GEMINI = events(
    {"candidates": [{"content": {"parts": [{"text": "think", "thought": True}], "role": "model"}, "index": 0}]},
    {
        "candidates": [{"content": {"parts": [{"text": "H"}], "role": "model"}}],
        "usageMetadata": {"promptTokenCount": 4},
    },
    {
        "candidates": [{"content": {"parts": [{"text": "i"}], "role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 5},
    },
)
GEMINI_ARRAY = "[" + ",\n".join(line[6:] for line in GEMINI.splitlines() if line) + "]"
OLLAMA = (
    '{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    '{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",'
    '"prompt_eval_count":1,"eval_count":1}\n'
)
PAGE = "<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>"

BODIES: dict[str, tuple[str, Shape, str, str]] = {
    # name of the test: body, shape, protocol, text
    "motamot": (NATIVE, Shape.EVENTS, "motamot", "Hi"),
    "morceaux": (MORCEAUX + FIN, Shape.EVENTS, "morceaux", "Hi"),
    "ga-text": (events(ROUTING, "Hi", "[DONE]"), Shape.EVENTS, "ga-text", "Hi"),
    "ga-text without routing": (events("Hi", "[DONE]"), Shape.EVENTS, "ga-text", "Hi"),
    "ga-text whose text is JSON": (events(ROUTING, {"x": 1}, "[DONE]"), Shape.EVENTS, "ga-text", '{"x": 1}'),
    "ga-text that speaks of chunks": (
        events(ROUTING, '{"choices":[]}', '{"choices":[]}', "[DONE]"),
        Shape.EVENTS,
        "ga-text",
        '{"choices":[]}{"choices":[]}',
    ),
    "ga-text that failed": (events({"error": "Service is busy."}), Shape.EVENTS, "ga-text", ""),
    "ga-text with raw line breaks": ("data: a\nb\nc\nd\n\ndata: [DONE]\n\n", Shape.EVENTS, "ga-text", "a"),
    "openai": (text("Hi") + END, Shape.EVENTS, "openai", "Hi"),
    "openai, Azure's first chunk": (chunk(choices=[], object="") + text("Hi") + END, Shape.EVENTS, "openai", "Hi"),
    "openai, comments first": (": x\n\n" * 9 + text("Hi") + END, Shape.EVENTS, "openai", "Hi"),
    "openai that failed": (events({"error": {"message": "no"}}), Shape.EVENTS, "openai", ""),
    "openai whose text is a routing object": (
        text(json.dumps(ROUTING)) + END,
        Shape.EVENTS,
        "openai",
        json.dumps(ROUTING),
    ),
    "openai with events of another name": (
        "event: tool.progress\n" + events({"type": "text-delta"}) + text("H", "i") + END,
        Shape.EVENTS,
        "openai",
        "Hi",
    ),
    "openai cut in its only event": (text("Hi").rstrip(), Shape.EVENTS, "openai", ""),
    "responses": (RESPONSES, Shape.EVENTS, "openai-responses", "Hi"),
    "anthropic": (ANTHROPIC, Shape.EVENTS, "anthropic", "Hi"),
    "anthropic, pings first": (
        'event: ping\ndata: {"type": "ping"}\n\n' * 3 + ANTHROPIC,
        Shape.EVENTS,
        "anthropic",
        "Hi",
    ),
    "gemini": (GEMINI, Shape.EVENTS, "gemini", "Hi"),
    "gemini as an array": (GEMINI_ARRAY, Shape.JSON, "json", "Hi"),
    "JSON strings": (events('"He said "', '"\\"Hi\\"\\n"'), Shape.EVENTS, "json-strings", 'He said "Hi"\n'),
    "JSON strings with a mark": (events('"H"', '"i"', "[DONE]"), Shape.EVENTS, "json-strings", "Hi"),
    "JSON strings with an object": (events('"H"', '"i"', {"done": True}), Shape.EVENTS, "json-strings", "Hi"),
    "JSON strings of half pairs": (events('"\\ud83d"', '"\\ude00"'), Shape.EVENTS, "json-strings", "\U0001f600"),
    "text with a quotation": (events('"Hi"', " she said", "[DONE]"), Shape.EVENTS, "ga-text", '"Hi" she said'),
    "ollama": (OLLAMA, Shape.LINES, "ollama", "Hi"),
    "ollama in one line": (OLLAMA.split("\n")[1].replace('""', '"Hi"'), Shape.LINES, "ollama", "Hi"),
    "ui-message": (ui(*UI_TEXT, *UI_END), Shape.EVENTS, "ui-message", "Hi"),
    "ag-ui": (ag("RUN_STARTED", *AG_TEXT, "RUN_FINISHED"), Shape.EVENTS, "ag-ui", "Hi"),
    "json lines": ('{"text":"a"}\n{"text":"b"}\n', Shape.LINES, "json-lines", "ab"),
    "text": ("Hello there.\nHow are you?\n", Shape.TEXT, "text", "Hello there.\nHow are you?\n"),
    "text with a line like a field": (
        "Fields of the standard are:\n\ndata: the text\n\nand others, in any order.\nThat is all.\n",
        Shape.TEXT,
        "text",
        "Fields of the standard are:\n\ndata: the text\n\nand others, in any order.\nThat is all.\n",
    ),
    "text that begins with a brace": ("{this is no JSON", Shape.TEXT, "text", "{this is no JSON"),
    "a whole answer": ('{"text": "Hi", "outcome": "complete"}', Shape.JSON, "json", "Hi"),
    "a whole completion": (
        json.dumps({"object": "chat.completion", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}),
        Shape.JSON,
        "json",
        "Hi",
    ),
    "a whole answer, indented": ('{\n  "naturalLanguageAnswer": "Hi"\n}\n', Shape.JSON, "json", "Hi"),
    "a list of chunks": ('[{"text": "a"},\n{"text": "b"}]', Shape.JSON, "json", ""),
    "a page": (PAGE, Shape.HTML, "html", ""),
    "a page behind a comment": ("<!-- made by x -->\n" + PAGE, Shape.HTML, "html", ""),
    "a page that speaks of an event stream": (PAGE.replace("502", "data: x\n\n502"), Shape.HTML, "html", ""),
    "events of no protocol": (events("Hello", " there"), Shape.EVENTS, "event-stream", "Hello there"),
    "JSON events of no protocol": (events({"token": "a"}, {"token": "b"}), Shape.EVENTS, "event-stream", "ab"),
    "one JSON event and a mark": (events({"token": "a"}, "[DONE]"), Shape.EVENTS, "event-stream", "a"),
    "nothing": ("", Shape.EMPTY, "empty", ""),
    "blank lines": ("\n\n  \n", Shape.EMPTY, "empty", ""),
}


@pytest.mark.parametrize("name", BODIES)
def test_content_alone_tells_what_it_is(name: str) -> None:
    body, shape, protocol, answer = BODIES[name]
    bare = Tape(pieces=(Piece(None, body.encode()),) if body else ())
    found = recognise(bare)
    assert (found.protocol, found.shape) == (protocol, shape)
    assert found.sure in ("certain", "likely", "guess") and found.why
    assert examine(bare).text == answer


@pytest.mark.parametrize("name", BODIES)
def test_a_byte_order_mark_and_crlf_change_nothing(name: str) -> None:
    body, shape, protocol, _ = BODIES[name]
    if not body.strip():
        return
    marked = Tape(pieces=(Piece(None, b"\xef\xbb\xbf" + body.encode()),))
    assert (recognise(marked).protocol, recognise(marked).shape) == (protocol, shape)
    windows = Tape(pieces=(Piece(None, body.replace("\n", "\r\n").encode()),))
    assert (recognise(windows).protocol, recognise(windows).shape) == (protocol, shape)


def test_a_wrong_content_type_does_not_hide_what_came() -> None:
    for kind in ("application/json", "text/plain", "text/html; charset=utf-8"):
        assert recognise(tape(text("Hi") + END, headers=(("content-type", kind),))).protocol == "openai"
    assert recognise(tape(PAGE)).protocol == "html"
    assert recognise(tape('{"text": "Hi"}')).protocol == "json"


def test_the_header_of_the_ai_sdk_tells_its_stream_where_the_parts_do_not() -> None:
    body = events({"type": "start"}, {"type": "error", "errorText": "no"})
    header = ("x-vercel-ai-ui-message-stream", "v1")
    assert recognise(tape(body, headers=(("content-type", "text/event-stream"), header))).sure == "certain"
    assert recognise(tape(body)).sure == "guess"


def test_nothing_with_the_type_of_an_event_stream_is_one() -> None:
    assert recognise(tape("")).protocol == "event-stream"


def test_a_first_event_of_a_megabyte_is_still_seen() -> None:
    body = chunk(choices=[], padding="x" * 900_000) + text("Hi") + END
    assert recognise(tape(body)).protocol == "openai"


def test_a_long_text_that_begins_with_a_bracket_is_no_document() -> None:
    assert recognise(tape("[Note] " + "words " * 300_000, headers=())).protocol == "text"
    assert recognise(tape('[{"text": "' + "words " * 300_000 + '"}]', headers=())).protocol == "json"


def test_what_is_given_is_taken_and_what_is_unknown_refused() -> None:
    found = recognise(tape(events("Hi")), protocol="ga-text")
    assert (found.protocol, found.sure) == ("ga-text", "given")
    assert {protocol_named(name) for name in DIALECTS.values()} <= PROTOCOLS.keys()
    assert protocol_named("openai-chat") == "openai" and protocol_named("native") == "motamot"
    with pytest.raises(ValueError, match="there is no protocol 'smtp': one of motamot, "):
        examine(tape(""), protocol="smtp")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_any_body_can_be_examined_as_any_protocol(name: str) -> None:
    for body, *_ in BODIES.values():
        examine(tape(body), protocol=name)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["given"]["type"] in ("stream", "timed_stream")],
    ids=lambda case: str(case["id"]),
)
def test_the_cases_are_recognised_without_being_told(case: dict[str, object]) -> None:
    for protocol, one in of_case(case):
        found = recognise(one)
        assert found.protocol == protocol or (protocol == "event-stream" and found.protocol == "ga-text")


@pytest.mark.parametrize("path", sorted((DATA / "real-streams").glob("*.sse")), ids=lambda path: path.stem)
def test_real_streams_are_recognised(path: Path) -> None:
    body = path.read_bytes()
    found = recognise(Tape(pieces=(Piece(None, body),)))
    assert found.protocol == ("json" if path.stem.startswith("05") else "openai")


def test_a_delta_that_looks_like_another_protocol_is_text() -> None:
    for value in ({"morceau": "x"}, {"type": "text-delta"}, {"type": "RUN_STARTED"}, {"type": "message_start"}):
        assert recognise(tape(delta(content=json.dumps(value)) + END)).protocol == "openai"
        assert recognise(tape(events(ROUTING, value, "[DONE]"))).protocol == "ga-text"
        assert recognise(tape("id: x.1\n" + events({"morceau": json.dumps(value)}) + FIN)).protocol == "morceaux"
    assert recognise(tape(events("[DONE]", "more") + DONE)).protocol == "ga-text"


def test_the_tokens_of_gemini_and_of_responses_are_read() -> None:
    for body in (GEMINI, GEMINI_ARRAY):
        examined = examine(tape(body))
        assert examined.usage is not None and examined.ended == "STOP"
        assert (examined.usage.prompt_tokens, examined.usage.completion_tokens) == (4, 7)
        assert examined.usage.reasoning_tokens == 5 and examined.judged[Promise.ACCOUNTED] == "kept"
    usage = {"input_tokens": 7, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}}
    told = RESPONSES.replace('"sequence_number": 3, "response": {}', f'"response": {{"usage": {json.dumps(usage)}}}')
    examined = examine(tape(told))
    assert examined.usage is not None and examined.judged[Promise.ACCOUNTED] == "kept"
    assert (examined.usage.prompt_tokens, examined.usage.completion_tokens) == (7, 3)
    assert examined.usage.reasoning_tokens == 1


def test_a_stream_of_gemini_that_ends_without_a_reason_has_no_end() -> None:
    body = GEMINI.replace(', "finishReason": "STOP"', "")
    assert "missing-terminal-event" in {finding.id for finding in examine(tape(body)).findings}
    assert examine(tape(GEMINI)).findings == ()


def test_what_gemini_should_not_send_is_read_without_harm() -> None:
    odd: tuple[object, ...] = ([], [1], [{"content": 1}], [{"content": {"parts": 7}}], [{"content": {"parts": [1]}}])
    for candidates in odd:
        body = events({"candidates": candidates, "usageMetadata": {"promptTokenCount": -1}, "promptFeedback": 3})
        assert examine(tape(GEMINI + body)).text == "Hi"


def test_json_strings_are_no_difference_to_the_whole_answer() -> None:
    assert examine(tape(events('"He"', '"llo\\n"')), whole="Hello\n").findings == ()


def test_events_without_a_text_that_is_found_are_said_to_be_so() -> None:
    examined = examine(tape(events({"zz": {"deep": "Hello"}}, {"zz": {"deep": " you"}})))
    assert not examined.text_found
    assert examined.judged[Promise.EXACT] == "not judged: no text was found in the events"
    assert examine(tape('{"zz": 1}')).judged[Promise.EXACT] == "not judged: no text was found in the document"
    assert examine(tape(text("Hi") + END)).text_found
