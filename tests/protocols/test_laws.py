"""The laws every protocol keeps, with any text, any cut into deltas and any cut of bytes."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.answer import AnswerEvent, Code, Ended, Outcome, Started, Text
from motamot.protocols import PROTOCOLS, Protocol
from motamot.sse import Decoder, Ignored
from tests.protocols.strategies import (
    HAZARDS,
    LOST,
    TOOLS,
    answers,
    carried,
    chunks,
    joined,
    read,
    text_of,
    texts,
    written,
)

EACH = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
SOME = settings(max_examples=150, deadline=None)
STARTED = Started(exchange="Xq3", conversation="c1", assistant="helper", model="m")
COMPLETE = Ended(outcome=Outcome.COMPLETE)


@EACH
@SOME
@given(data=st.data())
def test_what_is_written_is_read_back_up_to_what_cannot_be_carried(protocol: Protocol, data: st.DataObject) -> None:
    events = data.draw(answers())
    got = read(protocol.reader(), data.draw(chunks(written(protocol, events))))
    assert joined(got) == carried(protocol, events)


@EACH
@pytest.mark.parametrize("first", HAZARDS)
def test_every_hazard_survives_alone_before_and_after_every_other(protocol: Protocol, first: str) -> None:
    for second in HAZARDS:
        deltas = [delta for delta in (first, second) if not re.search("[\ud800-\udfff]", delta)]
        events = [STARTED, *map(Text, deltas), COMPLETE]
        got = read(protocol.reader(), [written(protocol, events)])
        assert joined(got) == carried(protocol, events), (first, second)


@EACH
@SOME
@given(data=st.data())
def test_the_bytes_may_be_cut_anywhere(protocol: Protocol, data: st.DataObject) -> None:
    wire = written(protocol, data.draw(answers()))
    one_by_one = read(protocol.reader(), [wire[place : place + 1] for place in range(len(wire))])
    assert joined(one_by_one) == joined(read(protocol.reader(), [wire]))


@EACH
@SOME
@given(data=st.data())
def test_a_writer_primed_with_the_events_before_writes_the_rest(protocol: Protocol, data: st.DataObject) -> None:
    events = data.draw(answers())
    before = data.draw(st.integers(0, len(events)))
    whole, primed = protocol.writer(TOOLS, now=5), protocol.writer(TOOLS, now=5)
    first, rest = b"", b""
    for number, event in enumerate(events, 1):
        wire = whole.write(number, event)
        if number <= before:
            primed.prime(number, event)
            first += wire
        else:
            rest += wire
            assert primed.write(number, event) == wire
    reader = protocol.reader()
    assert joined(reader.feed(first) + read(reader, [rest])) == carried(protocol, events)


@pytest.mark.parametrize("name", ["motamot", "morceaux"])
@SOME
@given(data=st.data())
def test_a_response_resumed_by_id_needs_only_the_exchange(name: str, data: st.DataObject) -> None:
    protocol = PROTOCOLS[name]
    events = data.draw(answers())
    before = data.draw(st.integers(0, len(events) - 1))
    started = events[0]
    assert isinstance(started, Started)
    writer = protocol.writer(exchange=started.exchange)
    wire = b"".join(writer.write(number, event) for number, event in enumerate(events, 1) if number > before)
    whole = written(protocol, events)
    assert whole.endswith(wire)
    assert joined(read(protocol.reader(), [wire])) == carried(protocol, events[before:])


@EACH
@SOME
@given(data=st.data())
def test_the_wire_obeys_the_rules_that_the_worlds_readers_force(protocol: Protocol, data: st.DataObject) -> None:
    """Facts: LF only, no mark, data in each block, one data line where JSON is carried, all events terminated."""
    wire = written(protocol, data.draw(answers()))
    assert b"\r" not in wire
    assert not wire.startswith(b"\xef\xbb\xbf")
    assert wire.endswith(b"\n\n")
    blocks = wire[:-2].split(b"\n\n")
    for block in blocks:
        fields = [line.partition(b":")[0] for line in block.split(b"\n")]
        assert b"data" in fields
        assert set(fields) <= {b"id", b"event", b"data"}
        assert b"id" not in fields or protocol.name in ("motamot", "morceaux")
        if protocol.name != "ga-text":
            assert fields.count(b"data") == 1
            # No reader that cuts lines as Python does, or as httpx does, cuts one of ours.
            assert len(block.decode().splitlines()) == len(fields)


class Watched:
    """Collects what the standard says a reader ignores."""

    def __init__(self) -> None:
        self.kinds: list[Ignored] = []

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        self.kinds.append(kind)


@EACH
@SOME
@given(data=st.data())
def test_a_heartbeat_between_any_two_events_is_no_event(protocol: Protocol, data: st.DataObject) -> None:
    events = data.draw(answers())
    writer = protocol.writer(TOOLS, now=1_700_000_000)
    beating = b"".join(writer.heartbeat() + writer.write(number, event) for number, event in enumerate(events, 1))
    plain = written(protocol, events)
    watched = Watched()
    assert Decoder(observer=watched).feed(beating) == Decoder().feed(plain)
    assert set(watched.kinds) == {Ignored.COMMENT}  # a comment, and nothing else that a reader would ignore
    assert b"\n\n:\n\n" not in beating
    assert joined(read(protocol.reader(), [beating])) == carried(protocol, events)


@EACH
@SOME
@given(data=st.data())
def test_text_never_becomes_an_end_an_error_or_a_routing(protocol: Protocol, data: st.DataObject) -> None:
    events = [STARTED, *data.draw(texts()), COMPLETE]
    got = read(protocol.reader(), [written(protocol, events)])
    assert [event for event in got if not isinstance(event, Text | Started)] == [COMPLETE]
    assert text_of(got) == text_of(carried(protocol, events))


@EACH
@pytest.mark.parametrize("code", Code)
def test_an_error_never_becomes_text(protocol: Protocol, code: Code) -> None:
    end = Ended(outcome=Outcome.FAILED, code=code, message="The model could not answer: [DONE]\r\ndata: x")
    for events in ([STARTED, end], [STARTED, Text("partial "), end]):
        got = read(protocol.reader(), [written(protocol, events)])
        assert text_of(got) == text_of(events)
        last = got[-1]
        assert isinstance(last, Ended)
        assert (last.outcome, last.message) == (Outcome.FAILED, end.message)


@EACH
def test_a_wire_cut_before_its_end_is_read_as_failed(protocol: Protocol) -> None:
    wire = written(protocol, [STARTED, Text("one "), Text("two"), COMPLETE])
    for place in range(len(wire)):
        got = read(protocol.reader(), [wire[:place]])
        last = got[-1]
        assert isinstance(last, Ended)
        assert [event for event in got if isinstance(event, Ended)] == [last]
        assert "one two".startswith(text_of(got))
        said = {"openai": b'"finish_reason":"stop"', "ui-message": b'"finishReason":"stop"}\n\n'}.get(protocol.name)
        if said is None or said not in wire[:place]:
            assert (last.outcome, last.code) == (Outcome.FAILED, Code.UPSTREAM_CUT)


@EACH
@SOME
@given(garbage=st.lists(st.binary(max_size=40) | st.sampled_from(HAZARDS).map(lambda t: t.encode("utf-8", "replace"))))
def test_garbage_is_read_without_an_exception_and_with_one_end(protocol: Protocol, garbage: list[bytes]) -> None:
    got = read(protocol.reader(), garbage)
    assert [isinstance(event, Ended) for event in got] == [False] * (len(got) - 1) + [True]


PLACES = ("type", "text", "morceau", "outcome", "code", "message", "usage", "marks", "trace", "agentId", "confidence")
CHUNK = ("choices", "delta", "content", "tool_calls", "index", "function", "name", "arguments", "id", "model", "error")
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["text", "ended", "routing", "started", "\ud83d", "stop", "failed", "fin"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*PLACES, *CHUNK, "finish_reason", "motamot", "x"]), inner, max_size=6)
    ),
    max_leaves=20,
)


@EACH
@SOME
@given(values=st.lists(ODD, max_size=6), name=st.sampled_from(["message", "fin", "arret", "erreur", "x"]))
def test_json_of_any_shape_is_read_without_an_exception(protocol: Protocol, values: list[object], name: str) -> None:
    blocks = [f"event: {name}\nid: Xq3.1\ndata: {json.dumps(value)}\n\n".encode() for value in values]
    got = read(protocol.reader(), blocks)
    assert [isinstance(event, Ended) for event in got] == [False] * (len(got) - 1) + [True]
    for event in got:
        assert json.loads(msgspec.json.encode(event))  # whatever came in, what comes out can be written
        assert not isinstance(event, Text) or event.text.encode()


@EACH
def test_an_event_past_the_readers_bound_ends_the_answer(protocol: Protocol) -> None:
    reader = protocol.reader(max_event_bytes=2_000)
    got = read(reader, [b"data: " + b"x" * 1_000] * 50)
    last = got[-1]
    assert isinstance(last, Ended)
    assert (last.outcome, last.code) == (Outcome.FAILED, Code.LIMIT)
    assert reader.feed(b"data: x\n\n") == []


@EACH
def test_what_follows_the_end_is_ignored(protocol: Protocol) -> None:
    reader = protocol.reader()
    wire = written(protocol, [STARTED, Text("a"), COMPLETE])
    assert read(reader, [wire])[-1] == COMPLETE
    assert reader.ended
    assert reader.feed(wire) + reader.close() == []


@EACH
def test_every_declared_loss_is_one_that_the_tests_know(protocol: Protocol) -> None:
    assert {loss.name for loss in protocol.cannot_carry} <= set(LOST)
    assert all(loss.sentence.endswith(".") for loss in protocol.cannot_carry)


@EACH
@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_an_end_of_its_own_on_the_wire(protocol: Protocol, outcome: Outcome) -> None:
    assert protocol.ends[outcome]
    code = Code.TIMEOUT if outcome is Outcome.FAILED else None
    events: list[AnswerEvent] = [STARTED, Text("a"), Ended(outcome=outcome, code=code)]
    assert read(protocol.reader(), [written(protocol, events)])[-1] == carried(protocol, events)[-1]


@EACH
def test_streams_are_neither_cached_nor_transformed_nor_buffered(protocol: Protocol) -> None:
    assert protocol.content_type == "text/event-stream; charset=utf-8"
    assert "no-cache" in protocol.headers["Cache-Control"]
    assert "no-transform" in protocol.headers["Cache-Control"]
    assert protocol.headers["X-Accel-Buffering"] == "no"


def test_the_protocols_are_found_by_name() -> None:
    assert list(PROTOCOLS) == ["motamot", "morceaux", "ga-text", "openai", "ag-ui", "ui-message"]
    assert all(protocol.name == name for name, protocol in PROTOCOLS.items())
