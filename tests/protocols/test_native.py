"""`motamot`, the native protocol: the bytes as documented, and readers that outlive the servers they were made for."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from motamot.answer import (
    AnswerEvent,
    By,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Usage,
)
from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols.base import event_id, parse_event_id
from motamot.protocols.native import PROTOCOL, NativeReader, NativeWriter, parse_stop

STARTED = Started(exchange="Xq3", conversation="c1")
COMPLETE = Ended(outcome=Outcome.COMPLETE)


def one(event: AnswerEvent, exchange: str = "Xq3") -> bytes:
    return NativeWriter(exchange).write(7, event)


def data_of(wire: bytes) -> Any:
    return json.loads(wire.split(b"data: ", 1)[1])


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (STARTED, '{"type":"started","exchange":"Xq3","conversation":"c1"}'),
        (Routed(agent="s", confidence=0.85), '{"type":"routed","agent":"s","confidence":0.85}'),
        (Text("Bon\njour é"), '{"type":"text","text":"Bon\\njour é"}'),
        (Reasoning("hm"), '{"type":"reasoning","text":"hm"}'),
        (ToolCalled(id="1", name="t"), '{"type":"tool_called","id":"1","name":"t"}'),
        (ToolReturned(id="1", name="t", status="ok"), '{"type":"tool_returned","id":"1","name":"t","status":"ok"}'),
        (Cited(title="T", url="https://x"), '{"type":"cited","title":"T","url":"https://x"}'),
        (TurnEnded(turn=1, finish="stop"), '{"type":"turn_ended","turn":1,"finish":"stop"}'),
        (
            Ended(outcome=Outcome.STOPPED, by=By.VISITOR, shown=4),
            '{"type":"ended","outcome":"stopped","by":"visitor","shown":4}',
        ),
        (Ended(outcome=Outcome.INTERRUPTED), '{"type":"ended","outcome":"interrupted"}'),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, AnswerEvent) else "",
)
def test_an_event_is_its_id_and_its_fields_in_json(event: AnswerEvent, data: str) -> None:
    assert one(event) == f"id: Xq3.7\ndata: {data}\n\n".encode()


def test_the_separators_that_some_readers_cut_at_are_escaped() -> None:
    wire = one(Text("a\u2028b\u2029c\x85d\x0be"))
    assert b"a\\u2028b\\u2029c\\u0085d\\u000be" in wire
    # The bytes of neighbours stay as they are: U+2018 and ¨ share bytes with the ones above.
    assert "\u2018\u2019\u2027¨©à…".encode() in one(Text("\u2018\u2019\u2027¨©à…"))


@pytest.mark.parametrize("exchange", ["7\ndata: forged\n\nid: 8", "a b", "a\0", "", "é", "a.b", "x" * 129])
def test_an_id_that_could_forge_an_event_is_refused(exchange: str) -> None:
    with pytest.raises(ValueError, match="id"):
        NativeWriter(exchange)
    with pytest.raises(ValueError, match="id"):
        NativeWriter().write(1, Started(exchange=exchange, conversation="c"))


def test_a_writer_that_does_not_know_its_exchange_says_so() -> None:
    with pytest.raises(ValueError, match="Started"):
        NativeWriter().write(1, Text("a"))


@pytest.mark.parametrize(
    ("value", "carried"),
    [
        (float("nan"), None),
        (float("inf"), None),
        ({(1, 2): "x"}, {"(1, 2)": "x"}),
        ({"a": "\ud83d"}, {"a": "\ufffd"}),
        ({"\ud83d": 1}, {"\ufffd": 1}),
        ((1, 2), [1, 2]),
        ({"a": b"bytes", "b": "\ud83d", "c": {1}}, {"a": "Ynl0ZXM=", "b": "\ufffd", "c": [1]}),
        (10**30, 10**30),
        (b"bytes", "Ynl0ZXM="),
        (ValueError("odd"), "odd"),
        ({"deep": COMPLETE}, {"deep": {"type": "ended", "outcome": "complete"}}),
    ],
    ids=repr,
)
def test_a_trace_that_json_has_no_word_for_does_not_break_the_stream(value: Any, carried: Any) -> None:
    assert data_of(one(Routed(agent="s", trace=value)))["trace"] == carried


def test_a_trace_without_end_does_not_break_the_stream() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    assert data_of(one(Routed(agent="s", trace=endless)))["agent"] == "s"


def test_an_orphan_surrogate_in_a_name_does_not_break_the_stream() -> None:
    assert data_of(one(ToolCalled(id="1", name="\ud83d", arguments={"\ud83d": [1]})))["name"] == "\ufffd"


def read(*blocks: str) -> list[AnswerEvent]:
    reader = NativeReader()
    return reader.feed("".join(f"data: {block}\n\n" for block in blocks).encode()) + reader.close()


def test_unknown_kinds_and_fields_are_skipped() -> None:
    got = read(
        '{"type":"mood","value":3}',
        '{"type":"text","text":"a","weight":0.5}',
        '{"no":"type"}',
        "[]",
        '"text"',
        "7",
        "not json",
        '{"type":"text","text":7}',
        '{"type":"text"}',
        '{"type":"text","text":""}',
        '{"type":"ended","outcome":"complete","mood":"good"}',
    )
    assert got == [Text("a"), COMPLETE]


@pytest.mark.parametrize(
    ("data", "end"),
    [
        ('{"type":"ended","outcome":"exhausted","message":"m"}', (Outcome.FAILED, Code.UPSTREAM_ERROR, "m")),
        ('{"type":"ended","outcome":"failed","code":"new_code","message":"m"}', (Outcome.FAILED, None, "m")),
        ('{"type":"ended","outcome":"failed","code":"timeout","by":"moon"}', (Outcome.FAILED, Code.TIMEOUT, None)),
        ('{"type":"ended"}', (Outcome.FAILED, Code.UPSTREAM_ERROR, None)),
        ('{"type":"ended","outcome":"stopped","by":7,"shown":"x"}', (Outcome.STOPPED, None, None)),
        ('{"type":"ended","outcome":["complete"]}', (Outcome.FAILED, Code.UPSTREAM_ERROR, None)),
    ],
)
def test_an_end_that_a_newer_server_wrote_is_still_an_end(data: str, end: tuple[Outcome, Code | None, str]) -> None:
    [got] = read(data)
    assert isinstance(got, Ended)
    assert (got.outcome, got.code, got.message) == end


def test_a_surrogate_pair_cut_in_two_by_another_writer_is_joined() -> None:
    got = read(
        '{"type":"text","text":"a\\ud83d"}',
        '{"type":"text","text":"\\ude00b"}',
        '{"type":"ended","outcome":"complete"}',
    )
    assert "".join(event.text for event in got if isinstance(event, Text)) == "a😀b"
    got = read('{"type":"text","text":"a\\ud83d"}', '{"type":"turn_ended","turn":1,"finish":"stop"}')
    assert got[:3] == [Text("a"), Text("\ufffd"), TurnEnded(turn=1, finish="stop")]


def test_the_place_and_the_wait_for_a_reconnection_are_known() -> None:
    reader = NativeReader()
    reader.feed(b'retry: 250\nid: Xq3.2\ndata: {"type":"text","text":"a"}\n\nid: Xq3.3\ndata: {"type":"te')
    assert (reader.last_event_id, reader.retry) == ("Xq3.2", 250)


def test_an_events_id_is_read_back_and_a_strangers_text_is_not() -> None:
    assert parse_event_id(event_id("Xq-3_", 12)) == ("Xq-3_", 12)
    for text in ("", "Xq3", "Xq3.", ".3", "Xq3.-1", "Xq3.1\n", "Xq3.１", "a b.1", "x.1.2", "Xq3.9999999999", "../x.1"):
        assert parse_event_id(text) is None, text


def test_the_whole_answer_is_one_document() -> None:
    usage = Usage(prompt_tokens=3, completion_tokens=2)
    events = [
        STARTED,
        Text("Bon"),
        Cited(title="T", url="https://x", quote="q"),
        Text("jour\u2028"),
        Ended(outcome=Outcome.TRUNCATED, usage=usage, marks=("recorded",)),
    ]
    document = PROTOCOL.whole(events)
    assert "\u2028".encode() not in document
    assert json.loads(document) == {
        "text": "Bonjour\u2028",
        "outcome": "truncated",
        "exchange": "Xq3",
        "conversation": "c1",
        "usage": json.loads(msgspec.json.encode(usage)),
        "sources": [{"title": "T", "url": "https://x", "quote": "q"}],
        "marks": ["recorded"],
    }


def test_a_failed_answer_says_why_and_keeps_what_had_come() -> None:
    events = [STARTED, Text("Bon"), Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Too slow.")]
    document = json.loads(PROTOCOL.whole(events))
    assert (document["text"], document["outcome"], document["code"], document["message"]) == (
        *("Bon", "failed"),
        *("timeout", "Too slow."),
    )


@pytest.mark.parametrize(
    ("body", "seen"), [(b"", None), (b"  ", None), (b"{}", None), (b'{"seen":null}', None), (b'{"seen":12}', 12)]
)
def test_a_stop_says_what_was_seen_or_nothing(body: bytes, seen: int | None) -> None:
    assert parse_stop(body, Limits()) == seen


@pytest.mark.parametrize("seen", ["-1", "1.5", "true", '"3"', "99999999999", "[]", "1e3"])
def test_a_stop_takes_nothing_but_an_events_number(seen: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_stop(b'{"seen":%b}' % seen.encode(), Limits())
    assert refused.value.field == "seen"
    assert "a whole one from 0 to 2147483647" in refused.value.message
