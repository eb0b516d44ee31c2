"""`ga-text`: the bytes that Guitar Alchemist's clients expect, and what those clients make of them.

The three readers below are short ports of the clients' habits, as described in the project's notes: the chat page's,
ga-client's `chatService` and its `chatApi`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.answer import AnswerEvent, Code, Ended, Outcome, Reasoning, Routed, Started, Text, ToolCalled, TurnEnded
from motamot.errors import InvalidRequest, LimitExceeded
from motamot.protocols.ga_text import HELD_CHARACTERS, PROTOCOL, WHOLE_PIECES
from tests.protocols.strategies import HAZARDS, joined, read, text_of, texts, written

STARTED = Started(exchange="Xq3", conversation="c1")
COMPLETE = Ended(outcome=Outcome.COMPLETE)
ROUTING = (
    b'data: {"type":"routing","agentId":"direct","confidence":0,"routingMethod":"none","trace":null,"grounding":null}'
    b"\n\n"
)
DONE = b"data: [DONE]\n\n"
JAVASCRIPT_BLANK = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
JAVASCRIPT_BLANK += "\u2028\u2029\u202f\u205f\u3000\ufeff"


class ReaderThrew(Exception):
    """A client's reader threw: the visitor loses the answer."""


def page(wire: bytes) -> str:
    """The chat page: events at LF LF, lines that start with `data: `, routing until one was seen, the rest is text."""
    answer, routed = "", False
    for event in wire.decode().split("\n\n")[:-1]:
        lines = [line[6:] for line in event.split("\n") if line.startswith("data: ")]
        if not lines:
            continue
        data = "\n".join(lines)
        if data == "[DONE]":
            return answer
        if not routed and data.startswith("{") and '"type"' in data:
            routed = json.loads(data)["type"] == "routing"
            if routed:
                continue
        answer += data
    return answer


def chat_service(wire: bytes) -> str:
    """ga-client's `chatService`: the first data line of an event, trimmed; JSON is never text."""
    answer = ""
    *events, rest = wire.decode().split("\n\n")
    for event in events:
        data = next((line[5:] for line in event.split("\n") if line.startswith("data:")), "").strip(JAVASCRIPT_BLANK)
        if not data:
            continue
        if data == "[DONE]":
            break
        if data.startswith("{"):
            _json_or_throw(data)
            continue
        answer += data
    return answer + rest.strip(JAVASCRIPT_BLANK)


def chat_api(wire: bytes) -> str:
    """ga-client's `chatApi`: line by line, no events; JSON is never text."""
    answer = ""
    for line in wire.decode().split("\n")[:-1]:
        data = line[6:]
        if not line.startswith("data: ") or not data or data == "[DONE]":
            continue
        if data.startswith("{"):
            _json_or_throw(data)
            continue
        answer += data
    return answer


def _json_or_throw(data: str) -> None:
    try:
        told = json.loads(data)
    except ValueError as error:
        raise ReaderThrew(data) from error
    if told.get("error"):
        raise ReaderThrew(told["error"])


def wire_of(*deltas: str, end: Ended = COMPLETE) -> bytes:
    return written(PROTOCOL, [STARTED, *map(Text, deltas), end])


def pieces(wire: bytes) -> list[str]:
    """The text events' data, read by the standard."""
    assert wire.startswith(ROUTING)
    assert wire.endswith(DONE)
    return [
        "\n".join(line.removeprefix("data: ") for line in block.split("\n"))
        for block in wire[len(ROUTING) : -len(DONE)].decode().split("\n\n")[:-1]
    ]


def test_routing_comes_first_then_text_then_done() -> None:
    text = b"data: First line\ndata: \ndata: \n\ndata: thir\n\ndata: d\n\n"
    assert wire_of("First line\n\nthird") == ROUTING + text + DONE


def test_an_empty_answer_is_routing_and_done() -> None:
    assert wire_of() == ROUTING + DONE


def test_routing_has_the_hosts_fields_in_the_hosts_order_in_ascii() -> None:
    routed = Routed(agent="skill.é", confidence=0.85, method="semantic", trace={"traceId": "t", "steps": [1]})
    wire = written(PROTOCOL, [STARTED, routed, Text("a"), Routed(agent="late"), COMPLETE])
    assert wire.startswith(
        b'data: {"type":"routing","agentId":"skill.\\u00e9","confidence":0.85,"routingMethod":"semantic",'
        b'"trace":{"traceId":"t","steps":[1]},"grounding":null}\n\n'
    )
    assert wire.count(b"routing") == 2  # its type and its `routingMethod`: a second one would be shown as text
    assert read(PROTOCOL.reader(), [wire]) == [routed, Text("a"), COMPLETE]


def test_an_orphan_surrogate_does_not_break_the_stream() -> None:
    assert page(wire_of("a\ud83db")) == "a\ufffdb"


@pytest.mark.parametrize("confidence", [float("nan"), float("inf")])
def test_a_confidence_that_is_no_number_is_none(confidence: float) -> None:
    wire = written(PROTOCOL, [STARTED, Routed(agent="a", confidence=confidence), COMPLETE])
    assert b'"confidence":0,' in wire


@pytest.mark.parametrize("outcome", [Outcome.COMPLETE, Outcome.TRUNCATED, Outcome.FILTERED, Outcome.STOPPED])
def test_every_end_but_failure_is_done(outcome: Outcome) -> None:
    assert wire_of("ab", end=Ended(outcome=outcome)) == ROUTING + b"data: a\n\ndata: b\n\n" + DONE


def test_a_failure_is_an_error_object_and_never_done() -> None:
    end = Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Trop tard à l’heure.")
    error = b'data: {"error":"Trop tard \\u00e0 l\\u2019heure."}\n\n'
    assert wire_of(end=end) == error  # before any text it stands alone, as the hosts write it
    assert wire_of("ab", end=end) == ROUTING + b"data: a\n\ndata: b\n\n" + error
    for reader in (chat_service, chat_api):
        with pytest.raises(ReaderThrew, match="Trop tard"):
            reader(wire_of("ab", end=end))


@pytest.mark.parametrize("text", ["a\rb", "a\r\nb", "\r", "\r\n\r\n", "\r\r\n\n\r", "a\r"])
def test_cr_and_crlf_become_one_line_feed_wherever_they_are_cut(text: str) -> None:
    expected = text.replace("\r\n", "\n").replace("\r", "\n")
    for cut in range(1, len(text)):
        assert text_of(read(PROTOCOL.reader(), [wire_of(text[:cut], text[cut:])])) == expected
    silent: list[AnswerEvent] = [STARTED, Text("a\r"), TurnEnded(turn=1, finish="stop"), Text("\nb"), COMPLETE]
    assert text_of(read(PROTOCOL.reader(), [written(PROTOCOL, silent)])) == "a\nb"


@settings(max_examples=200, deadline=None)
@given(events=texts())
def test_the_page_shows_the_text_exactly(events: list[AnswerEvent]) -> None:
    expected = text_of(events).replace("\r\n", "\n").replace("\r", "\n")
    assert page(written(PROTOCOL, [STARTED, *events, COMPLETE])) == expected


@settings(max_examples=200, deadline=None)
@given(events=texts())
def test_no_piece_is_empty_and_none_can_be_taken_for_the_end(events: list[AnswerEvent]) -> None:
    for piece in pieces(written(PROTOCOL, [STARTED, *events, COMPLETE])):
        assert piece
        assert "[DONE]" not in piece


@settings(max_examples=300, deadline=None)
@given(
    start=st.sampled_from(["a", " a", "\n\nb", "é"]),
    deltas=st.lists(st.sampled_from([*HAZARDS, "{x}", ' {"a":1}', "b"]), max_size=8),
)
def test_ga_client_never_throws_at_text_that_does_not_begin_with_a_brace(start: str, deltas: list[str]) -> None:
    """A piece is never cut before `{`, white space before it or not, so that none is taken for JSON."""
    cut = [delta.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for delta in [start, *deltas]]
    wire = wire_of(*cut)
    chat_service(wire)
    assert not any(piece.strip(JAVASCRIPT_BLANK).startswith("{") for piece in pieces(wire))


@pytest.mark.parametrize("reader", [page, chat_service, chat_api])
@pytest.mark.parametrize("text", ["Use {x} here", "a[DONE]b", "[DONE]", 'say {"error":"x"} loud', "ab{"])
def test_a_line_of_text_reaches_every_client_wherever_it_is_cut(reader: Callable[[bytes], str], text: str) -> None:
    for cut in range(1, len(text)):
        wire = wire_of(text[:cut], text[cut:])
        got = reader(wire)
        # The white space at the ends of pieces is what ga-client trims; the rest is there.
        assert got.replace(" ", "") == text.replace(" ", "") if reader is chat_service else got == text


@settings(max_examples=200, deadline=None)
@given(
    deltas=st.lists(
        st.sampled_from(["a", "jour.", "\n", "end\n", "line.\n\n", " x", "y ", "\t", "- b", "c\nd", "\n\ne\nf\n"]),
        max_size=10,
    )
)
def test_ga_client_gets_every_word_of_every_line(deltas: list[str]) -> None:
    """It takes a piece's first line only: a piece ends with its line."""
    assert "".join(chat_service(wire_of(*deltas)).split()) == "".join("".join(deltas).split())


def test_only_what_must_wait_waits() -> None:
    writer = PROTOCOL.writer()
    writer.write(1, STARTED)
    steps = [
        ("Hello", "Hell"),  # an `o` stays for what may follow it
        (" wor", "o wo"),
        ("ld ", "rl"),  # with the white space after it
        ("{", ""),
        ("x", "d {"),
        ("}", "x"),
        ("\n\n", ""),
        (" ", ""),
        ("y", "}\n\n "),
        ("z\n", "y"),
        ("{", ""),
        ("a", "z\n{"),
    ]
    for delta, sent in steps:
        wire = writer.write(2, Text(delta)).removeprefix(ROUTING)
        assert wire.decode() == ("data: " + sent.replace("\n", "\ndata: ") + "\n\n" if sent else ""), delta
    assert writer.write(3, Ended(outcome=Outcome.COMPLETE)) == b"data: a\n\n" + DONE


@pytest.mark.parametrize("event", [TurnEnded(turn=1, finish="stop"), ToolCalled(id="1", name="t"), Reasoning("hm")])
def test_the_end_of_a_turn_and_a_tool_let_go_of_what_waits(event: AnswerEvent) -> None:
    writer = PROTOCOL.writer()
    writer.write(1, Text("ab"))
    assert writer.write(2, event) == b"data: b\n\n"
    assert writer.write(3, event) == b""


@pytest.mark.parametrize("filling", [" ", "{", "\n"])
def test_what_waits_is_bounded(filling: str) -> None:
    writer = PROTOCOL.writer()
    size = len(writer.write(1, Text("ab")))
    for number in range(2, 4 * HELD_CHARACTERS):
        size += len(writer.write(number, Text(filling)))
    assert size > 3 * HELD_CHARACTERS


@pytest.mark.parametrize(
    "text", ['{"error":"x"}', '{"type":"routing"}', "{", '{"a":1}', ' {"error":"x"}', '{"error":"x"}' + " " * 2_000]
)
def test_an_answer_that_is_json_is_text_for_our_reader_and_the_page(text: str) -> None:
    """ga-client takes it for an error or drops it: `brace` in what cannot be carried."""
    wire = wire_of(text)
    assert text_of(read(PROTOCOL.reader(), [wire])) == text
    assert page(wire) == text


def test_what_is_said_to_be_lost_for_ga_client_is_lost() -> None:
    """The declared losses are facts, not caution."""
    with pytest.raises(ReaderThrew):
        chat_service(wire_of("{x} chord"))
    assert chat_service(wire_of("two lines\nhere")) == "two lineshere"
    assert chat_service(wire_of("two lines\n{x} here")) == "two lines" + "e"
    assert chat_service(wire_of("a b")) == "ab"
    assert chat_api(wire_of('a\nb\n{"c":1}\nd')) == "abd"
    with pytest.raises(ReaderThrew):
        chat_api(wire_of("a\n{x}\nd"))


def test_a_stream_without_its_end_mark_was_cut() -> None:
    got = read(PROTOCOL.reader(), [wire_of("abc").removesuffix(DONE)])
    assert joined(got)[:-1] == [Text("abc")]
    end = got[-1]
    assert isinstance(end, Ended)
    assert end.code is Code.UPSTREAM_CUT


def test_the_whole_answer_has_the_hosts_fields() -> None:
    routed = Routed(agent="s", confidence=0.5, method="m", trace={"traceId": "t1"})
    document = PROTOCOL.whole([STARTED, routed, Text("a\r"), Text("é"), COMPLETE], elapsed=1.2345)
    assert document == (
        b'{"naturalLanguageAnswer":"a\\r\\u00e9","agentId":"s","confidence":0.5,"routingMethod":"m",'
        b'"grounding":null,"elapsedMs":1234,"traceId":"t1","trace":{"traceId":"t1"}}'
    )


def test_a_whole_answer_that_failed_is_an_error() -> None:
    end = Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Too slow.")
    assert PROTOCOL.whole([STARTED, Text("a"), end]) == b'{"error":"Too slow."}'


@pytest.mark.parametrize(
    "error", [InvalidRequest("No.", field="message"), LimitExceeded("No.", limit="exchanges_running", maximum=3)]
)
def test_a_refusal_is_the_hosts_error(error: Any) -> None:
    assert PROTOCOL.refusal(error) == b'{"error":"No."}'


class TestWholePieces:
    """Where no ga-client reads: pieces as GaChatbot.Api writes them."""

    def test_a_piece_is_one_event_however_many_lines_it_has(self) -> None:
        wire = written(WHOLE_PIECES, [STARTED, Text("First\n\n{second"), Text("\n"), COMPLETE])
        assert wire == ROUTING + b"data: First\ndata: \ndata: {second\n\n" + b"data: \ndata: \n\n" + DONE

    @pytest.mark.parametrize("text", ["[DONE]", '{"error":"x"}', "a[DONE]b"])
    def test_no_text_is_taken_for_the_end_or_an_error(self, text: str) -> None:
        events = read(WHOLE_PIECES.reader(), [written(WHOLE_PIECES, [STARTED, Text(text), COMPLETE])])
        assert (text_of(events), events[-1]) == (text, COMPLETE)

    @given(texts())
    def test_the_page_has_the_text_with_its_line_ends_as_lf(self, events: list[AnswerEvent]) -> None:
        wire = written(WHOLE_PIECES, [STARTED, *events, COMPLETE])
        expected = re.sub("\r\n|\r", "\n", text_of(events))
        if not expected.startswith("\ufeff"):
            assert page(wire) == expected
        assert text_of(read(WHOLE_PIECES.reader(), [wire])) == expected
