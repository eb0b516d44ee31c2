"""What an examination says: the answer, its figures, and how each promise stands."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.answer import Code, Ended, Outcome, Reasoning, Started, Text, TurnEnded
from motamot.findings import Examination, Promise, examine
from motamot.findings.faults import FAULTS
from motamot.findings.recognise import Shape
from motamot.protocols import PROTOCOLS as OURS
from motamot.protocols import Asked
from motamot.tape.tape import Piece, Tape
from tests.findings.examples import AG_TEXT, EXAMPLES, FIN, HI, LIVE, MORCEAUX, ROUTING, UI_END, UI_TEXT, ag, ui
from tests.findings.tapes import DATA, DONE, END, HEAD_ONLY, USAGE, delta, events, finish, tape, text, timed


def names(tape: Tape, **more: str) -> list[str]:
    return [finding.id for finding in examine(tape, **more).findings]


GOOD = tape(text("Hel", "lo") + END)


def test_a_good_upstream_answer_keeps_what_can_be_seen() -> None:
    examined = examine(GOOD)
    assert examined.findings == ()
    assert (examined.protocol, examined.text, examined.ended) == ("openai", "Hello", "stop")
    assert (examined.events, examined.deltas, examined.comments, examined.bytes) == (5, 2, 0, len(GOOD.body))
    assert examined.usage is not None and examined.usage.completion_tokens == 3
    assert examined.judged == {
        Promise.EXACT: "kept",
        Promise.LIVE: "not judged: the recording holds no times",
        Promise.ONCE: "not judged: one recording shows one answer, not how often the model was asked",
        Promise.STOPPABLE: "not judged: nothing in it shows what a stop does to the model",
        Promise.ACCOUNTED: "kept",
        Promise.SAFE: "not judged: it shows the wire, not what a page makes of it",
    }


def test_an_answer_is_known_to_be_live_by_its_times() -> None:
    examined = examine(LIVE)
    assert examined.judged[Promise.LIVE] == "kept" and examined.findings == ()
    times = examined.times
    assert (times.first_byte, times.first_delta, times.first_text) == (0.1, 0.1, 0.1)
    assert times.last_text == pytest.approx(3.4) and times.silence == pytest.approx(0.3)


def test_an_answer_that_came_bit_by_bit_after_a_long_wait_may_have_been_held_back() -> None:
    told = [(at, text("word ")) for at in (3.0, 3.2, 3.4, 3.6, 3.8)]
    assert examine(timed(*told, (3.9, END))).judged[Promise.LIVE] == (
        "not judged: the wait was longer than the answer took: only the model's times show whether it was held back"
    )
    soon = [(at - 2.9, piece) for at, piece in told]
    assert examine(timed(*soon, (1.0, END))).judged[Promise.LIVE] == "kept"


def test_once_and_stoppable_are_never_kept_by_one_recording() -> None:
    for example in EXAMPLES.values():
        for one in (example.shows, example.alike):
            judged = examine(one, protocol=example.protocol).judged
            assert judged[Promise.ONCE] != "kept" and judged[Promise.STOPPABLE] != "kept"


def test_the_text_of_a_visitors_stream_is_exact_only_beside_the_whole_answer() -> None:
    body = events(ROUTING, "Hello", "[DONE]")
    assert examine(tape(body)).judged[Promise.EXACT].startswith("not judged: the wire loses nothing")
    assert examine(tape(body), whole="Hello").judged[Promise.EXACT] == "kept"
    assert examine(tape(body), whole="Hello.").judged[Promise.EXACT] == "lost"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_are_no_difference_to_the_whole_answer(end: str) -> None:
    body = "data: a\ndata: b\n\n" + DONE
    assert names(tape(body), whole=f"a{end}b") == []


def test_the_difference_to_the_whole_answer_is_told_with_its_place() -> None:
    body = events(ROUTING, "One two.", "Three four five.", "[DONE]")
    (finding,) = examine(tape(body), whole="One two.\nThree four five.").findings
    assert finding.id == "whole-differs"
    assert "The stream gives 24 characters, the whole answer has 25: 1 line end glued" in finding.message


def test_a_recording_that_was_left_is_not_blamed_for_its_end() -> None:
    for body in (text("Hel"), MORCEAUX, events(ROUTING, "Hi"), ag("RUN_STARTED"), ui(*UI_TEXT), text("x")[:-9]):
        left = examine(tape(body, end="left"))
        assert left.findings == ()
        assert left.judged[Promise.EXACT].startswith("not judged")
        assert examine(tape(body)).judged[Promise.EXACT] == "lost"


def test_lines_and_documents_that_were_left_are_not_blamed_for_their_end_either() -> None:
    ndjson = (("content-type", "application/x-ndjson"),)
    line = '{"model":"m","message":{"content":"Hi"},"done":false}\n'
    assert names(tape(line + '{"model":', headers=ndjson, end="left")) == []
    assert "unterminated-last-event" in names(tape(line + '{"model":', headers=ndjson))
    json_type = (("content-type", "application/json"),)
    assert "json-parse" not in names(tape('{"text": "a', headers=json_type, end="left"))
    assert "json-parse" in names(tape('{"text": "a', headers=json_type))


def test_an_answer_that_the_model_broke_off_is_not_called_exact() -> None:
    assert examine(tape(text("Hel") + finish("error") + USAGE + DONE)).judged[Promise.EXACT] == (
        "not judged: the model broke the answer off"
    )


def test_an_answer_longer_than_is_kept_is_said_to_be_so() -> None:
    piece = text("x" * 1_000_000)
    for body in (piece * 18 + END, MORCEAUX + events({"morceau": "x" * 1_000_000}) * 18 + FIN):
        examined = examine(tape(body))
        assert examined.notes == ("The answer is longer than 16 MiB: its text was kept up to there.",)
        assert 15_000_000 < len(examined.text) <= 16 << 20
        assert examined.judged[Promise.EXACT] == "not judged: it is too large to be read to its end"


def test_notes_of_the_tape_are_passed_on() -> None:
    assert examine(tape(END, notes=("It broke off.",))).notes == ("It broke off.",)


def test_findings_are_ordered_by_promise_and_place() -> None:
    body = finish() + text("late") + "error: x\n\n" + "foo: bar\n" + text("more")
    found = examine(tape(body, headers=(("content-encoding", "gzip"), ("content-type", "text/event-stream")))).findings
    promises = [list(Promise).index(finding.fault.promise) for finding in found]
    assert promises == sorted(promises) and len(found) >= 5
    exact = [
        finding.evidence[0].offset
        for finding in found
        if finding.fault.promise is Promise.EXACT and finding.evidence[0].offset is not None
    ]
    assert exact == sorted(exact)


def test_a_place_is_where_it_is_said_to_be() -> None:
    body = text("Hel") + 'data: {"choices": [\n\n' + END
    (finding,) = [one for one in examine(tape(body)).findings if one.id == "json-parse"]
    (place,) = finding.evidence
    assert place.offset == len(text("Hel")) and place.quote == 'data: {"choices": ['
    assert body.encode()[place.offset :].startswith(place.quote.encode())


def test_a_place_has_the_time_of_the_read_that_completed_it() -> None:
    broken = 'data: {"choices": [\n\n'
    examined = examine(timed((0.5, text("Hel")), (1.25, broken[:9]), (2.5, broken[9:]), (3.0, END)))
    (finding,) = [one for one in examined.findings if one.id == "json-parse"]
    assert finding.evidence[0].at == 2.5


def test_a_fault_that_comes_often_is_counted_and_shown_five_times() -> None:
    body = ("foo: bar\n" + text("a")) * 40 + END
    (finding,) = [one for one in examine(tape(body)).findings if one.id == "unknown-field"]
    assert finding.times == 40 and len(finding.evidence) == 5
    assert len({place.offset for place in finding.evidence}) == 5


def test_what_a_note_says_loses_no_promise() -> None:
    examined = examine(EXAMPLES["buffering-headers"].shows)
    assert [finding.id for finding in examined.findings] == ["buffering-headers"]
    assert examined.judged[Promise.LIVE] != "lost"


def test_an_empty_body_is_no_answer() -> None:
    examined = examine(Tape())
    assert (examined.protocol, examined.text, examined.findings) == ("empty", "", ())
    assert examined.judged[Promise.EXACT] == "not judged: there is no answer in it"


def test_a_head_alone_is_examined_too() -> None:
    assert set(names(HEAD_ONLY)) == {"compressed-stream", "buffering-headers", "empty-stream"}


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("name", OURS)
def test_what_our_own_writers_send_has_no_fault(name: str, outcome: Outcome) -> None:
    """The checker's first customer: any finding here is a fault of the one or the other."""
    protocol = OURS[name]
    failed = outcome in (Outcome.FAILED, Outcome.INTERRUPTED)
    code = Code.TIMEOUT if outcome is Outcome.FAILED else None
    answer = (
        Started(exchange="Xq3", conversation="c", assistant="a", model="m"),
        Reasoning("Hm."),
        *(Text(piece) for piece in ("Bonjour,\n\n", "– **été** : ", "« ça » 🚌\u2028")),
        TurnEnded(turn=1, finish="stop"),
        Text("\n- fin.\n"),
        Ended(outcome=outcome, code=code, message="It took too long." if failed else None),
    )
    expected = {"openai": {"usage-missing"}}.get(name, set())  # it was not asked for
    if failed:
        # Neither protocol has another way to tell it; where it is read as text, the finding says so.
        expected = {"openai": {"error-in-stream"}, "ga-text": {"error-as-text"}}.get(name, set())
    for heartbeats in (False, True):
        writer = protocol.writer(Asked(message="?", assistant="a", conversation="c"), now=1)
        body = b""
        for number, event in enumerate(answer, 1):
            body += writer.write(number, event) + writer.heartbeat() * heartbeats
        examined = examine(tape(body, headers=(("Content-Type", protocol.content_type), *protocol.headers.items())))
        assert examined.protocol == name
        assert {finding.id for finding in examined.findings} == expected
        assert examined.text == "".join(event.text for event in answer if isinstance(event, Text))
        assert examined.ended is not None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("01-short-answer", set()),
        ("02-markdown-list", set()),
        ("03-cut-by-max-tokens", set()),
        ("04-tool-call", set()),
        ("06-french", set()),
        ("07-french-longer", set()),
        ("08-tool-call-required", set()),
        ("09-two-choices", {"choices-several"}),
        ("10-emoji", set()),
        ("11-comment-pings", set()),
        ("12-server-sigterm", {"finish-missing", "done-missing", "usage-missing"}),
        ("13-server-killed", {"finish-missing", "done-missing", "usage-missing"}),
    ],
)
def test_real_streams_show_what_they_are_known_for(path: str, expected: set[str]) -> None:
    real = real_tape(DATA / "real-streams" / f"{path}.json")
    examined = examine(real)
    assert {finding.id for finding in examined.findings} - {"buffering-headers"} == expected
    assert examined.judged[Promise.LIVE] != "lost"


def real_tape(path: Path) -> Tape:
    told = json.loads(path.read_text("utf-8"))
    body = path.with_suffix(".sse").read_bytes()
    pieces = tuple(
        Piece(one["t_ms"] / 1000, body[one["offset"] : one["offset"] + one["bytes"]]) for one in told["http_chunks"]
    )
    return Tape(
        pieces=pieces,
        status=int(told["status"].split()[1]),
        headers=tuple((name, value) for name, value in told["headers"]),
        head_at=told["headers_ms"] / 1000,
        ended_at=told["end_ms"] / 1000,
        end="closed",
        source="own",
    )


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=400),
    st.lists(st.integers(0, 400), max_size=5),
    st.sampled_from([None, *OURS, "anthropic", "ollama", "ag-ui"]),
)
def test_any_bytes_are_examined_the_same_at_every_cut(body: bytes, cuts: list[int], protocol: str | None) -> None:
    check_cuts(body, cuts, protocol)


BITS = (
    text("a").encode(),
    delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": "{"}}]).encode(),
    END.encode(),
    MORCEAUX.encode(),
    FIN.encode(),
    events(ROUTING).encode(),
    ag("RUN_STARTED", *AG_TEXT).encode(),
    ui(*UI_TEXT, *UI_END).encode(),
    b"event: x\n",
    b"data: y\n",
    b": c\n",
    b": ping\n\n",
    b"data: \\ud83d\n\n",
    b"\\ud83d",
    b'{"error":"x"}',
    b"[DONE]",
    b"\n",
    b"\r\n",
    b"\xff",
    b'{"a": 1}\n',
    b"<html>",
    b"\xef\xbb\xbf",
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(BITS), max_size=8).map(b"".join),
    st.lists(st.integers(0, 1500), max_size=5),
    st.sampled_from([None, *OURS, "anthropic", "ollama", "ag-ui", "event-stream"]),
)
def test_any_mixture_is_examined_the_same_at_every_cut(body: bytes, cuts: list[int], protocol: str | None) -> None:
    check_cuts(body, cuts, protocol)


def check_cuts(body: bytes, cuts: list[int], protocol: str | None) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    whole = examine(tape(body), protocol=protocol)
    cut = examine(tape([body[a:b] for a, b in itertools.pairwise(edges)]), protocol=protocol)
    assert comparable(whole) == comparable(cut)
    assert all(finding.id in FAULTS for finding in whole.findings)


def comparable(examined: Examination) -> tuple[object, ...]:
    told = dataclasses.asdict(examined)
    if examined.recognised.shape not in (Shape.EVENTS, Shape.LINES):  # without blocks, a place is that of a read
        told["findings"] = [(finding.id, finding.message) for finding in examined.findings]
        told["deltas"] = 0
    return tuple(str(value) for value in told.values())


@pytest.mark.parametrize("end", ["left", "unknown", "closed"])
def test_an_end_that_came_is_held_by_the_recording_however_that_ended(end: str) -> None:
    assert examine(tape(text("Hi") + END, end=end)).judged[Promise.EXACT] == "kept"
    for body in (events("Hi", "[DONE]"), events({"text": "Hi"}, "[DONE]"), events({"text": "Hi", "done": True})):
        examined = examine(tape(body, end=end))
        assert examined.judged[Promise.EXACT].startswith("not judged: the wire loses nothing"), body
        assert examine(tape(body, end=end), whole="Hi").judged[Promise.EXACT] == "kept"
    assert "hold the answer's end" in examine(tape(events({"text": "Hi"}), end=end)).judged[Promise.EXACT]


def test_a_connection_that_only_comments_keep_open_is_open_after_the_end() -> None:
    kept = [(5.0 * number, ": x\n\n") for number in range(1, 9)]
    for body in (HI + END, events("Hi", "[DONE]"), events({"text": "Hi", "done": True}), MORCEAUX + FIN):
        (finding,) = [one for one in examine(timed((0.1, body), *kept)).findings if one.id == "open-after-end"]
        assert "stayed open for 40 s" in finding.message
        assert "open-after-end" not in names(timed((0.1, body), (4.0, ": x\n\n")))
        assert "open-after-end" not in names(timed((0.1, body), *kept, source="har"))


def test_a_stream_without_an_end_mark_that_was_left_is_said_to_be_one() -> None:
    for end, said in (("left", True), ("closed", False)):
        examined = examine(timed((0.1, events({"text": "Hi"})), ended_at=9.0, end=end))
        assert any("No end mark had come" in note and "8.9 s" in note for note in examined.notes) is said
    assert examine(timed((0.1, HI + END), ended_at=9.0, end="left")).notes == ()


def test_every_space_that_was_eaten_is_counted() -> None:
    body = "data: one\n\n" * 4 + "data:two\n\n" + "data: three\n\n" * 8
    (finding,) = [one for one in examine(tape(body)).findings if one.id == "space-eaten"]
    assert finding.times == 12 and len(finding.evidence) == 5 and "12 with" in finding.message


OMELETTE = (
    "To make a good omelette, beat three eggs with a pinch of salt, melt butter in a pan over medium heat, pour in the "
    "eggs and stir gently until they begin to set. Fold it in half, slide it onto a plate and serve it with chives."
)
ANOTHER = (
    "An omelette is quick to cook. First, crack some eggs into a bowl and whisk them. Add pepper. Then heat oil until "
    "it foams, and let the edges brown. You may fill yours with cheese, mushrooms or herbs; it is best when hot."
)


def test_two_different_answers_are_not_compared() -> None:
    examined = examine(tape(text(*OMELETTE.split(" ")) + END), whole=ANOTHER)
    assert examined.findings == ()
    assert examined.judged[Promise.EXACT] == "not judged: the whole answer is another answer"
    broken = examine(tape(events({"text": OMELETTE}), end="reset"), whole=ANOTHER)
    assert broken.judged[Promise.EXACT] == "lost"


@pytest.mark.parametrize(
    "got",
    [
        OMELETTE[:60],
        OMELETTE[-60:],
        " ".join(OMELETTE.split()[::2]),
        OMELETTE.replace(" ", ""),
        OMELETTE * 2,
        OMELETTE + ANOTHER,
        OMELETTE.replace("t", "\u00c3\u00a9"),
        "Sorry, something went wrong.",
    ],
)
def test_what_a_wire_makes_of_an_answer_is_no_other_answer(got: str) -> None:
    assert "whole-differs" in names(tape(text(got) + END), whole=OMELETTE)


def test_an_answer_that_was_not_found_is_not_compared_with_the_whole_one() -> None:
    unknown = examine(tape(events({"zz": {"deep": "Hello"}}, {"zz": {"deep": " you"}})), whole="Hello you")
    assert unknown.findings == ()
    assert unknown.judged[Promise.EXACT] == "not judged: no text was found in the events"
    assert "whole-differs" in names(tape(END), whole="Hello you")
    assert "whole-differs" in names(tape(events(ROUTING, "[DONE]")), whole="Hello you")
