"""The codec: a stream means the same wherever it was cut, and nothing a stranger sends grows without bound."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot import errors, sse
from motamot.sse import Decoder, Event, Ignored, LimitExceeded, Residue, comment, encode
from tests import sse_reference

DATA = Path(__file__).parent / "data"
BENCH = Path(__file__).parent.parent / "bench" / "decoders.py"
HAZARDS: list[dict[str, Any]] = json.loads((DATA / "sse_hazards.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "cases.jsonl").read_text("utf-8").splitlines()]


class Log:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bytes, int]] = []

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        self.told.append((kind, line, offset))


def cut_at(stream: bytes, *cuts: int) -> list[bytes]:
    return [stream[start:end] for start, end in pairwise((0, *sorted(cuts), len(stream)))]


def byte_by_byte(stream: bytes) -> list[bytes]:
    return [stream[at : at + 1] for at in range(len(stream))]


def every_way(stream: bytes) -> Iterator[list[bytes]]:
    """Whole, at every cut, byte by byte, in twos and threes, and with empty pieces between."""
    yield [stream]
    yield byte_by_byte(stream)
    yield [piece for byte in byte_by_byte(stream) for piece in (b"", byte, b"")]
    for size in (2, 3, 7):
        yield [stream[at : at + size] for at in range(0, len(stream), size)]
    for cut in range(1, len(stream)):
        yield cut_at(stream, cut)


def body_of(case: dict[str, Any], key: str) -> bytes:
    return base64.b64decode(case["base64"]) if "base64" in case else case[key].encode()


def decoded(pieces: Iterable[bytes], **settings: Any) -> tuple[list[Event], Decoder]:
    decoder = Decoder(**settings)
    return [event for piece in pieces for event in decoder.feed(piece)], decoder


def assert_reads_as(reading: sse_reference.Reading, pieces: list[bytes], maximum: int = 1 << 20) -> None:
    """Fed these pieces, the decoder comes to this reading, watched or not."""
    for observer in (None, Log()):
        decoder = Decoder(max_event_bytes=maximum, observer=observer)
        events: list[Event] = []
        refused = False
        for piece in pieces:
            try:
                events += decoder.feed(piece)
            except LimitExceeded:
                refused = True
        assert [tuple(event) for event in events] == reading.events, pieces
        assert decoder.last_event_id == reading.last_event_id, pieces
        assert decoder.retry == reading.retry, pieces
        if observer is not None:
            assert observer.told == reading.ignored, pieces
        if reading.over:
            with pytest.raises(LimitExceeded):
                decoder.close()
            continue
        assert not refused, pieces
        residue = decoder.close()
        left = (reading.left_data, reading.left_event, reading.left_id, reading.left_block, reading.left_line)
        assert tuple(residue) == left, pieces
        assert bool(residue) == (reading.left_block or reading.left_line != b""), pieces


# The standard, case by case


@pytest.mark.parametrize("case", HAZARDS, ids=lambda case: case["name"])
def test_a_stream_means_what_the_standard_says_however_it_is_cut(case: dict[str, Any]) -> None:
    stream = body_of(case, "stream")
    for pieces in every_way(stream):
        events, decoder = decoded(pieces)
        assert [list(event) for event in events] == case["events"], pieces
        assert decoder.last_event_id == case.get("last_event_id", decoder.last_event_id)
        assert decoder.retry == case.get("retry", decoder.retry)


@pytest.mark.parametrize("case", HAZARDS, ids=lambda case: case["name"])
def test_the_reference_agrees_with_the_table(case: dict[str, Any]) -> None:
    """A reference that nobody checks proves nothing."""
    reading = sse_reference.read(body_of(case, "stream"))
    assert [list(event) for event in reading.events] == case["events"]
    assert reading.last_event_id == case.get("last_event_id", reading.last_event_id)
    assert reading.retry == case.get("retry", reading.retry)


@pytest.mark.parametrize("case", HAZARDS, ids=lambda case: case["name"])
def test_bytes_after_a_stream_change_nothing_before_them(case: dict[str, Any]) -> None:
    stream = body_of(case, "stream")
    for more in (b"\n", b"\r", b"\r\n", b" ", b":", b"data: z\n\n", b"\xef\xbb\xbf", b"\x80"):
        reading = sse_reference.read(stream + more)
        for cut in range(len(stream) + 1):
            assert_reads_as(reading, cut_at(stream + more, cut))


@pytest.mark.parametrize("case", [c for c in CASES if c["given"].get("dialect") == "sse"], ids=lambda case: case["id"])
def test_plain_streams_from_practice_are_read_right(case: dict[str, Any]) -> None:
    stream = body_of(case["given"], "text")
    for pieces in every_way(stream):
        events, _ = decoded(pieces)
        assert [{"event": e.event, "data": e.data} for e in events] == case["expect"]["events"]


@pytest.mark.parametrize("case", [c for c in CASES if c["given"]["type"] == "emit"], ids=lambda case: case["id"])
def test_text_from_practice_is_written_right(case: dict[str, Any]) -> None:
    expect = case["expect"]
    try:
        wire = b"".join(encode(e["data"], event=e.get("event"), id=e.get("id")) for e in case["given"]["events"])
    except ValueError:
        assert "rejects_or" in expect
        return
    expect = expect.get("rejects_or", expect)
    events, _ = decoded([wire])
    assert [{"event": e.event, "data": e.data} for e in events] == expect["events"]
    assert len(events) == expect["event_count"]


def real_streams() -> dict[str, tuple[int, int]]:
    """Name: (bytes, blocks) of the recordings, from the table beside them."""
    rows = re.findall(
        r"^\| (\d\d-[\w-]+) \|.*\| ([\d,]+) / (\d+) / \d+ \|",
        (DATA / "real-streams/README.md").read_text("utf-8"),
        re.M,
    )
    return {name: (int(size.replace(",", "")), int(blocks)) for name, size, blocks in rows}


@pytest.mark.parametrize("name", real_streams())
def test_real_streams_are_read_right(name: str) -> None:
    """Cut as the server's HTTP chunks were cut, as the socket was read, and elsewhere."""
    size, blocks = real_streams()[name]
    stream = (DATA / "real-streams" / f"{name}.sse").read_bytes()
    meta = json.loads((DATA / "real-streams" / f"{name}.json").read_text("utf-8"))
    assert len(stream) == size == meta["body_bytes"]
    log = Log()
    whole, decoder = decoded([stream], observer=log)
    assert len(whole) + len(log.told) == blocks
    assert {kind for kind, _, _ in log.told} <= {"comment"}
    assert not decoder.close()
    for event in whole:
        assert event.data == "[DONE]" or json.loads(event.data)["object"] == "chat.completion.chunk"
    assert (whole[-1].data == "[DONE]") == (meta["end"] == "complete")
    chunks = [chunk["offset"] for chunk in meta["http_chunks"][1:]]
    for pieces in (
        cut_at(stream, *chunks),
        byte_by_byte(stream),
        *(cut_at(stream, *range(n, size, 97)) for n in (1, 50)),
    ):
        assert decoded(pieces)[0] == whole


def test_the_table_of_real_streams_was_found() -> None:
    assert len(real_streams()) == 12  # the thirteenth is no event stream


# What is made of hostile bytes, beside a plain reading of the standard

PARTS = [
    *(b"data", b"data:", b"data: ", b"data: a", b"data:b", b"event", b"event: x", b"event:"),
    *(b"id", b"id:", b"id: 1", b"id: \0", b"retry: 1", b"retry:", b"retry: x", b"retry: " + b"9" * 301),
    *(b":", b": c", b" ", b"\n", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\0", b"foo", b"foo: bar"),
    *(b"\xef\xbb\xbf", b"\xef\xbb", b"\xbf", b"\xf0\x9f\x98\x80", b"\xf0\x9f", b"\x80", b"\xed\xa0\x80"),
    *(b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x1c", b"\n\ndata: ", b"\n\ndata: c\n\n", b"\r\n\r\ndata: d"),
]
hostile = st.lists(st.sampled_from(PARTS) | st.binary(max_size=4), max_size=14).map(b"".join)
well_made = st.lists(
    st.sampled_from(
        [b"data: a\n\n", b"data: \xc3\xa9\n\n", b"data: b\r\n\r\n", b"id: 7\ndata: c\n\n", b": p\n\n", b"data: \n\n"]
    ),
    max_size=10,
).map(b"".join)
bounded = settings(deadline=None, max_examples=400)


def chopped(stream: bytes, cuts: list[int]) -> list[bytes]:
    return cut_at(stream, *(cut % (len(stream) + 1) for cut in cuts))


@bounded
@given(stream=hostile, cuts=st.lists(st.integers(0, 1 << 16), max_size=8))
def test_hostile_bytes_mean_what_the_standard_says_however_they_are_cut(stream: bytes, cuts: list[int]) -> None:
    reading = sse_reference.read(stream)
    for pieces in every_way(stream):
        assert_reads_as(reading, pieces)
    assert_reads_as(reading, chopped(stream, cuts))


@bounded
@given(
    stream=st.tuples(well_made, hostile, well_made).map(b"".join), cuts=st.lists(st.integers(0, 1 << 16), max_size=8)
)
def test_the_short_cuts_change_nothing(stream: bytes, cuts: list[int]) -> None:
    reading = sse_reference.read(stream)
    assert_reads_as(reading, [stream])
    assert_reads_as(reading, chopped(stream, cuts))
    by_block = re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", stream)
    assert_reads_as(reading, by_block)


LINES = [
    *(
        b"data: a",
        b"data:b",
        b"data:  c",
        b"data",
        b"data:",
        b"data: ",
        b"event: x",
        b"event:",
        b"event: ",
        b"id: 1",
        b"id:",
    ),
    *(b"id: \0", b": c", b"retry: 5", b"foo"),
]
ENDS = [b"\n", b"\r\n", b"\r"]


@pytest.mark.parametrize("length", [1, 1200])
@pytest.mark.parametrize("first_end", ENDS)
def test_every_block_of_one_or_two_lines_is_read_right_as_servers_send_it(first_end: bytes, length: int) -> None:
    """Between two plain events: a block a piece, a block in two pieces, three blocks a piece; short and long."""
    around = b"data: z\n\n"
    blocks = [line + first_end + blank for line, blank in product(LINES, ENDS)]
    blocks += [
        line + first_end + second + end + blank for line, second, end, blank in product(LINES, LINES, ENDS, ENDS)
    ]
    for block in (block.replace(b"a", b"a" * length) for block in blocks):
        reading = sse_reference.read(around + block + around)
        for pieces in (
            [block, around],
            [block[:1], block[1:], around],
            [block[:-1], block[-1:], around],
            [block + around],
            [block + around + b"d"],
        ):
            events, decoder = decoded([around, *pieces])
            assert [tuple(event) for event in events] == reading.events, pieces
            assert (decoder.last_event_id, decoder.retry) == (reading.last_event_id, reading.retry), pieces
        together, _ = decoded([around, block * 3 + around])
        assert [tuple(event) for event in together] == sse_reference.read(around + block * 3 + around).events, block


@bounded
@given(
    stream=st.tuples(well_made, hostile, hostile).map(b"".join),
    maximum=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=8),
)
def test_whether_a_block_is_too_large_never_depends_on_the_cut(stream: bytes, maximum: int, cuts: list[int]) -> None:
    reading = sse_reference.read(stream, maximum)
    for pieces in every_way(stream):
        assert_reads_as(reading, pieces, maximum)
    assert_reads_as(reading, chopped(stream, cuts), maximum)


@bounded
@given(stream=hostile, more=hostile, maximum=st.integers(1, 30))
def test_a_stream_found_too_large_stays_so_whatever_follows(stream: bytes, more: bytes, maximum: int) -> None:
    """Else a longer first piece could get through what two pieces could not."""
    if sse_reference.read(stream, maximum).over:
        assert sse_reference.read(stream + more, maximum).over


@bounded
@given(stream=hostile)
def test_decoding_line_by_line_is_decoding_the_whole_stream(stream: bytes) -> None:
    """LF and CR cannot stand inside a sequence, so a line is a fair unit for the UTF-8 decoder."""
    as_text = re.split("\r\n|\r|\n", sse_reference.utf8(stream.removeprefix(b"\xef\xbb\xbf")))
    finished, (tail, _) = sse_reference.lines(stream)
    assert [sse_reference.utf8(line) for line in (*(line for line, _ in finished), tail)] == as_text


@bounded
@given(st.binary(max_size=12) | hostile)
def test_python_replaces_invalid_bytes_as_the_standard_does(data: bytes) -> None:
    assert data.decode("utf-8", "replace") == sse_reference.utf8(data)


# At once, and once


def test_a_cr_ends_the_event_at_once_and_its_lf_makes_no_blank_line() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"\r") == [Event("message", "a", "")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"event: x\r") == []
    assert decoder.feed(b"\ndata: b\r\n") == []
    assert decoder.feed(b"\r") == [Event("x", "b", "")]
    assert decoder.feed(b"\ndata: c\n\n") == [Event("message", "c", "")]


def test_an_event_leaves_with_the_byte_that_ends_it() -> None:
    stream = b"data: a\r\r\ndata: b\n\nid: 1\ndata: c\r\n\r\n"
    decoder = Decoder()
    left = [at for at, byte in enumerate(byte_by_byte(stream)) if decoder.feed(byte)]
    assert left == [stream.index(b"\r\r") + 1, stream.index(b"\n\n") + 1, len(stream) - 2]


def test_the_last_event_id_is_the_one_at_the_last_blank_line() -> None:
    decoder = Decoder()
    decoder.feed(b"id: 1\n")
    assert decoder.last_event_id == ""
    decoder.feed(b"\n")
    assert decoder.last_event_id == "1"
    decoder.feed(b"id: 2\ndata: a\n")
    assert decoder.last_event_id == "1"
    assert decoder.close().id == "2"
    assert decoder.last_event_id == "1"


def test_a_retry_counts_as_soon_as_its_line_ends() -> None:
    decoder = Decoder()
    decoder.feed(b"retry: 150")
    assert decoder.retry is None
    decoder.feed(b"0\n")
    assert decoder.retry == 1500


@pytest.mark.parametrize("digits", [b"9" * 301, b"9" * 5000, b"1" * 200_000])
def test_a_huge_retry_is_ignored_and_neither_raises_nor_takes_long(digits: bytes) -> None:
    decoder = Decoder(observer=(log := Log()))
    assert decoder.feed(b"retry: 7\nretry: " + digits + b"\ndata: a\n\n") == [Event("message", "a", "")]
    assert decoder.retry == 7
    assert log.told == [("bad-retry", b"retry: " + digits, 9)]


def test_the_largest_retry_is_exact_and_can_be_divided() -> None:
    decoder = Decoder()
    decoder.feed(b"retry: " + b"0" * 5000 + b"9" * 300 + b"\n")
    assert decoder.retry == 10**300 - 1
    assert decoder.retry / 1000 > 0


def test_any_buffer_of_bytes_may_be_fed_and_is_not_kept() -> None:
    decoder = Decoder()
    buffer = bytearray(b"data: a")
    decoder.feed(buffer)
    buffer[:] = b"XXXXXXX"
    assert decoder.feed(memoryview(b"b\n\ndata: c\n\n")) == [Event("message", "ab", ""), Event("message", "c", "")]
    assert decoder.feed(bytearray(b"data: d\n\n")) == [Event("message", "d", "")]


@pytest.mark.parametrize("wrong", ["data: a\n\n", 5, None, ["data"]])
def test_what_is_not_bytes_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Decoder().feed(wrong)


@pytest.mark.parametrize("maximum", [0, -1])
def test_a_limit_below_one_byte_is_refused(maximum: int) -> None:
    with pytest.raises(ValueError, match="max_event_bytes"):
        Decoder(max_event_bytes=maximum)


def test_an_event_cannot_be_changed() -> None:
    event = Event("message", "a", "")
    for name in ("event", "data", "id", "other"):
        with pytest.raises(AttributeError):
            setattr(event, name, "b")
    assert hash(event) == hash(Event(event="message", data="a", id=""))


# What is left at the end


def test_what_was_left_unterminated_is_told() -> None:
    _, decoder = decoded([b"data: done\n\nid: 4\nevent: x\ndata: a\ndata: b\ndata: c"])
    assert decoder.close() == Residue(data="a\nb", event="x", id="4", block=True, line=b"data: c")


@pytest.mark.parametrize(
    "left", [b"data\n", b"data:\n", b"event\n", b"id:\n", b"d", b":", b"\xef", b"\xef\xbb", b"data: a\r"]
)
def test_a_residue_is_true_when_something_was_left(left: bytes) -> None:
    assert decoded([b"", left])[1].close()


@pytest.mark.parametrize(
    "stream", [b"", b"\xef\xbb\xbf", b"data: a\n\n", b"data: a\r\r", b": ping\n", b"\n", b"retry: 5\n", b"foo\n"]
)
def test_a_residue_is_false_when_nothing_was_left(stream: bytes) -> None:
    for pieces in every_way(stream):
        residue = decoded(pieces)[1].close()
        assert not residue
        assert residue == Residue()


def test_a_closed_decoder_takes_no_more_bytes_and_may_be_closed_again() -> None:
    for stream in (b"data: a\n\ndata: b", b"\xef\xbb"):
        _, decoder = decoded([stream])
        assert decoder.close()
        assert not decoder.close()
    with pytest.raises(ValueError, match="closed"):
        decoder.feed(b"data: a\n\n")


# The limit


def assert_finished(decoder: Decoder) -> None:
    for more in (b"", b"\n\n", b"data: a\n\n"):
        with pytest.raises(LimitExceeded) as caught:
            decoder.feed(more)
        assert (caught.value.limit, caught.value.maximum) == ("event_bytes", decoder._max)
    with pytest.raises(LimitExceeded):
        decoder.close()


def test_the_limit_is_the_package_s_own_error() -> None:
    assert sse.LimitExceeded is errors.LimitExceeded


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("start", [b"data: ", b"data:"])
def test_an_event_of_just_the_limit_is_dispatched_and_one_byte_more_is_not(start: bytes, ends: bytes) -> None:
    stream = start + b"x" * 100 + ends * 2 + b"data: y" + ends * 2
    for pieces in every_way(stream):
        assert [event.data for event in decoded(pieces, max_event_bytes=100)[0]] == ["x" * 100, "y"]
    for pieces in every_way(stream):
        decoder = Decoder(max_event_bytes=99)
        for piece in pieces:
            try:
                assert decoder.feed(piece) == []
            except LimitExceeded:
                continue
        assert_finished(decoder)


def test_the_call_that_meets_a_block_too_large_returns_the_events_before_it() -> None:
    decoder = Decoder(max_event_bytes=10)
    stream = b"id: 3\ndata: a\n\ndata: b\n\nid: 4\ndata: " + b"x" * 10 + b"\n\ndata: c\n\n"
    assert decoder.feed(stream) == [Event("message", "a", "3"), Event("message", "b", "3")]
    assert decoder.last_event_id == "3"
    assert_finished(decoder)


@pytest.mark.parametrize(
    "block",
    [
        b"data: " + b"x" * 30 + b"\ndata: " + b"x" * 30,  # together, the second unfinished
        b"event: " + b"x" * 30 + b"\ndata: " + b"x" * 30,
        b"id: " + b"x" * 30 + b"\ndata: " + b"x" * 30,
        b"data: " + b"x" * 30 + b"\nid: " + b"x" * 30,
        b"data: " + b"x" * 30 + b"\nevent: " + b"x" * 30,
        b"event: " + b"x" * 30 + b"\nid: " + b"x" * 30,
        b"id: " + b"x" * 30 + b"\nevent: " + b"x" * 30,
        b"event: " + b"x" * 30 + b"\nid: \0" + b"x" * 30,
        b"data\n" * 60,  # only the LF that join them
        b"event: " + b"x" * 60,
        b"id: " + b"x" * 60,
        b"id: " + b"x" * 30 + b"\0" + b"x" * 30,
        b"x" * 51,
        b": " + b"x" * 60,
        b"retry: " + b"0" * 60,
        b"foo: " + b"x" * 60 + b"\n",
    ],
    ids=repr,
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\ndata: x\n\n"], ids=repr)
def test_a_block_of_more_than_the_limit_is_refused_whatever_it_is_made_of(block: bytes, end: bytes) -> None:
    for pieces in every_way(block + end):
        decoder = Decoder(max_event_bytes=50)
        for piece in pieces:
            try:
                assert decoder.feed(piece) == []
            except LimitExceeded:
                continue
        assert_finished(decoder)


@pytest.mark.parametrize(
    "block",
    [
        b": " + b"c" * 40 + b"\n",
        b"foo: " + b"x" * 40 + b"\n",
        b"retry: 5\n",
        b"id: 12345678901\n",  # the last one counts
        b"event: abcdefghijk\n",
        b"id: \x00" + b"x" * 20 + b"\n",
    ],
    ids=repr,
)
def test_lines_that_are_not_held_do_not_count_once_they_have_ended(block: bytes) -> None:
    stream = block * 100 + b"data: " + b"x" * 20 + b"\n" + block * 100 + b"\n"
    for pieces in ([stream], byte_by_byte(stream), cut_at(stream, *range(0, len(stream), 13))):
        events, decoder = decoded(pieces, max_event_bytes=50)
        assert [event.data for event in events] == ["x" * 20]
        assert not decoder.close()


@pytest.mark.parametrize("start", [b"data: ", b"data:", b"event: ", b"event:", b"id: ", b"id:"], ids=repr)
@pytest.mark.parametrize("before", [b"", b"data: " + b"x" * 20 + b"\n", b"event: yyyyy\n", b"id: zzzzz\n"], ids=repr)
def test_an_unfinished_line_is_refused_when_no_end_could_make_it_short_enough(start: bytes, before: bytes) -> None:
    name = start.partition(b":")[0]
    held = {b"": 0, b"data": 20, b"event": 5, b"id": 5}[before.partition(b":")[0]]
    if before.startswith(name):  # another data line costs an LF, another type or id takes the place of the first
        held = held + 1 if name == b"data" else 0
    longest = before + start + b"v" * (50 - held)
    for pieces in every_way(longest):
        assert decoded(pieces, max_event_bytes=50)[1].close().line == longest.removeprefix(before)
    for pieces in every_way(longest + b"v"):
        with pytest.raises(LimitExceeded):
            decoded(pieces, max_event_bytes=50)[1].close()


@pytest.mark.parametrize("maximum", range(1, 8))
@pytest.mark.parametrize("line", [b"data:x", b"data: x", b"event:x", b"event: x", b"id:x", b"id: x"])
def test_a_field_s_name_costs_nothing(line: bytes, maximum: int) -> None:
    for pieces in every_way(line + b"\n\ndata: x\n\n"):
        events, _ = decoded(pieces, max_event_bytes=maximum)
        assert events[-1].data == "x"


def test_a_block_too_large_in_a_large_piece_does_not_take_the_events_before_it_away() -> None:
    decoder = Decoder(max_event_bytes=1000)
    plain = b"data: x\n\n" * 20_000
    assert len(decoder.feed(plain + b"data: " + b"x" * 1001 + b"\n\n" + plain)) == 20_000
    assert_finished(decoder)


@pytest.mark.parametrize("start", [b":", b": ", b"foo", b"foo: ", b"retry: 0", b"Data: "], ids=repr)
def test_a_line_that_is_not_held_may_be_as_long_as_the_limit_and_no_longer(start: bytes) -> None:
    line = start.ljust(50, b"0")
    stream = b"data: " + b"x" * 50 + b"\n" + line + b"\n\n"
    for pieces in every_way(stream):
        assert len(decoded(pieces, max_event_bytes=50)[0]) == 1
    for pieces in every_way(b"data: x\n" + line + b"0\n\n"):
        decoder = Decoder(max_event_bytes=50)
        for piece in pieces:
            try:
                assert decoder.feed(piece) == []
            except LimitExceeded:
                continue
        assert_finished(decoder)


def test_an_id_of_an_earlier_event_does_not_count() -> None:
    stream = b"id: " + b"i" * 40 + b"\ndata: x\n\n" + b"data: " + b"x" * 50 + b"\n\n"
    for pieces in every_way(stream):
        assert len(decoded(pieces, max_event_bytes=50)[0]) == 2


@pytest.mark.parametrize(
    "start", [b"data: ", b": ", b"junk", b"id: ", b"event: ", b"retry: ", b"data:\n" * 9 + b"data: ", b""]
)
@pytest.mark.parametrize("piece", [b"x", b"xy" * 50, b"x" * 70_000])
def test_a_line_without_end_takes_no_more_memory_than_the_limit_allows(start: bytes, piece: bytes) -> None:
    maximum = 200_000
    decoder = Decoder(max_event_bytes=maximum)
    tracemalloc.start()
    try:
        fed = len(start)
        decoder.feed(start)
        with pytest.raises(LimitExceeded):
            while fed < 2 * maximum:
                decoder.feed(piece)
                fed += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fed <= maximum + 80_000
    assert peak < 4 * maximum


@pytest.mark.parametrize(
    "line", [b"data\n", b"data: xy\n", b"id: 1\n", b"event: x\n", b": c\n", b"foo\n", b"\n", b"\r"]
)
def test_lines_without_a_blank_line_take_no_more_memory_than_the_limit_allows(line: bytes) -> None:
    maximum = 100_000
    decoder = Decoder(max_event_bytes=maximum)
    piece = line * 1000
    tracemalloc.start()
    try:
        for _ in range(300):
            try:
                decoder.feed(piece)
            except LimitExceeded:
                break
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * maximum + 60 * len(piece)


# Time


def seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


FEEDINGS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": lambda stream: [stream],
    "64 KiB": lambda stream: cut_at(stream, *range(65_536, len(stream), 65_536)),
    "100 bytes": lambda stream: cut_at(stream, *range(100, len(stream), 100)),
    "byte by byte": byte_by_byte,
}
LONG: dict[str, Callable[[int], bytes]] = {
    "one long line": lambda size: b"data: " + b"x" * size + b"\n\n",
    "many short lines": lambda size: b"data: x\n" * (size // 8) + b"\n",
    "many empty lines": lambda size: b"data\n" * (size // 5) + b"\n",
    "a long comment, then many": lambda size: b":" + b"x" * (size // 2) + b"\n:" * (size // 4) + b"\ndata: x\n\n",
    "CR only": lambda size: b"data: x\r" * (size // 8) + b"\r",
    "nothing but line ends": lambda size: b"\r\n\r" * (size // 3) + b"data: x\n\n",
    "held data, then a long line": lambda size: b"data: x\nfoo" + b"x" * size + b"\n\n",
}


@pytest.mark.parametrize("feeding", FEEDINGS)
@pytest.mark.parametrize("shape", LONG)
def test_an_event_takes_time_in_proportion_to_its_length(shape: str, feeding: str) -> None:
    """Sixteen times the length in sixteen times the time; a quadratic decoder would take 256 times as long."""
    small, large = (FEEDINGS[feeding](LONG[shape](size)) for size in (20_000, 320_000))

    def read(pieces: list[bytes]) -> None:
        assert len(decoded(pieces)[0]) == 1

    assert seconds(lambda: read(large)) < 64 * max(seconds(lambda: read(small)), 0.0005)


def test_a_line_of_three_megabytes_is_read_byte_by_byte_in_seconds() -> None:
    decoder = Decoder(max_event_bytes=4_000_000)
    start = time.process_time()
    for piece in byte_by_byte(b"data: " + b"x" * 3_000_000 + b"\n"):
        decoder.feed(piece)
    assert [len(event.data) for event in decoder.feed(b"\n")] == [3_000_000]
    assert time.process_time() - start < 20


def test_an_event_of_a_million_lines_is_read_in_seconds() -> None:
    stream = b"data: x\n" * 1_000_000 + b"\n"
    start = time.process_time()
    for pieces in (FEEDINGS["whole"](stream), FEEDINGS["64 KiB"](stream)):
        assert [len(event.data) for event in decoded(pieces, max_event_bytes=2_000_000)[0]] == [1_999_999]
    assert time.process_time() - start < 20


def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_decoders", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not BENCH.exists(), reason="the benchmarks do not ship in the wheel")
def test_the_streams_of_the_benchmark_are_read_right_in_every_feeding() -> None:
    module = bench()
    for stream in module.streams(30_000):
        for size in (*module.FEEDINGS.values(), 7, 100, 300_000):
            events, decoder = decoded(module.pieces_of(stream, size))
            assert events == list(stream.events), (stream.name, size)
            assert not decoder.close()


# Being watched


def test_the_observer_is_told_what_the_standard_ignores_and_where() -> None:
    stream = (
        b"\xef\xbb\xbf: hello\r\nfoo: bar\rnonsense\nid: a\0b\nretry: soon\nretry\n"
        b"data: x\n\nevent: lonely\n\nid: 9\n\nretry: 5\n\n: ping\n\nunknown: y\n\n\n"
    )
    expected = [
        ("comment", b": hello"),
        ("unknown-field", b"foo: bar"),
        ("no-colon", b"nonsense"),
        ("bad-id", b"id: a\0b"),
        ("bad-retry", b"retry: soon"),
        ("bad-retry", b"retry"),
        ("no-data", b""),
        ("no-data", b""),
        ("no-data", b""),
        ("comment", b": ping"),
        ("unknown-field", b"unknown: y"),
    ]
    for pieces in every_way(stream):
        _, decoder = decoded(pieces, observer=(log := Log()))
        decoder.close()
        assert [(kind, line) for kind, line, _ in log.told] == expected
        for kind, line, offset in log.told:
            assert stream[offset : offset + len(line)] == line
            assert kind != "no-data" or stream[offset - 1 : offset + 1] == b"\n\n"


def test_nobody_is_told_of_what_was_never_finished() -> None:
    _, decoder = decoded([b"foo: bar\n: comm"], observer=(log := Log()))
    decoder.close()
    assert log.told == [("unknown-field", b"foo: bar", 0)]


def test_kinds_are_words() -> None:
    assert set(Ignored) == {"comment", "unknown-field", "no-colon", "bad-id", "bad-retry", "no-data"}


# Writing

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from(
        ["\n", "\r", "\r\n", " ", "a", "data: x", "id: 9", ":", "\u2028", "\0", "\ufeff", "[DONE]", "é", "🚌"]
    ),
    max_size=8,
).map("".join)
one_line = texts.map(lambda text: re.sub("[\r\n\0]", "", text))


@bounded
@given(
    written=st.lists(
        st.tuples(texts, st.none() | one_line, st.none() | one_line, st.none() | st.integers(0, 10**300 - 1)),
        max_size=4,
    ),
    pings=texts,
)
def test_what_the_encoder_accepts_is_what_the_decoder_yields(
    written: list[tuple[str, str | None, str | None, int | None]], pings: str
) -> None:
    wire, expected, last_id, retry = b"", [], "", None
    for data, kind, identifier, wait in written:
        wire += comment(pings) + encode(data, event=kind, id=identifier, retry=wait)
        last_id = last_id if identifier is None else identifier
        retry = retry if wait is None else wait
        expected.append(Event(kind or "message", data.replace("\r\n", "\n").replace("\r", "\n"), last_id))
    for pieces in ([wire], byte_by_byte(wire)):
        events, decoder = decoded(pieces)
        assert events == expected
        assert (decoder.last_event_id, decoder.retry) == (last_id, retry)
        assert not decoder.close()


def test_one_event_looks_so_on_the_wire() -> None:
    assert encode("hello") == b"data: hello\n\n"
    assert encode("") == b"data: \n\n"
    assert encode("a\nb\r\nc\rd\n") == b"data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"
    assert encode(" x") == b"data:  x\n\n"
    assert encode("é") == b"data: \xc3\xa9\n\n"
    assert encode("x", event="token", id="7", retry=1500) == b"id: 7\nevent: token\nretry: 1500\ndata: x\n\n"


def test_an_empty_id_forgets_the_last_one_and_an_empty_type_is_no_type() -> None:
    assert encode("x", id="") == b"id: \ndata: x\n\n"
    assert encode("x", event="") == b"data: x\n\n"


@pytest.mark.parametrize("half", ["\ud83d", "a\ude00", "\ude00\ud83d", "x" * 100 + "\udcff"])
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(half: str) -> None:
    with pytest.raises(ValueError, match="data holds half a surrogate pair"):
        encode(half)
    with pytest.raises(ValueError, match="event holds half a surrogate pair"):
        encode("x", event=half)
    with pytest.raises(ValueError, match="id holds half a surrogate pair"):
        encode("x", id=half)
    with pytest.raises(ValueError, match="comment holds half a surrogate pair"):
        comment(half)


@pytest.mark.parametrize("bad", ["\n", "\r", "a\nb", "a\r\nb", "\0", "a\0", "7\ndata: forged\n\nid: 8"])
def test_a_line_end_or_nul_in_a_type_or_an_id_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode("x", event=bad)
    with pytest.raises(ValueError, match="one line"):
        encode("x", id=bad)


@pytest.mark.parametrize("retry", [-1, -(10**400), 10**300, 10**5000], ids=["-1", "-10^400", "10^300", "10^5000"])
def test_a_wait_no_reader_can_take_is_refused(retry: int) -> None:
    with pytest.raises(ValueError, match="retry"):
        encode("x", retry=retry)


@pytest.mark.parametrize("retry", [True, False, 1.5, "5"])
def test_a_wait_that_is_no_whole_number_is_a_type_error(retry: Any) -> None:
    with pytest.raises(TypeError, match="retry"):
        encode("x", retry=retry)


def test_a_comment_ends_with_one_line_end() -> None:
    assert comment() == b":\n"
    assert comment("ping") == b": ping\n"
    assert comment("a\nb\r\nc\rd") == b": a\n: b\n: c\n: d\n"
    assert comment("a\n\ndata: x\n\n") == b": a\n:\n: data: x\n:\n"


@bounded
@given(text=texts)
def test_no_reader_takes_a_comment_for_an_event(text: str) -> None:
    """Not even one that splits lines as Python does, nor one that takes two line ends for the end of an event."""
    wire = comment(text)
    assert wire.endswith(b"\n")
    assert b"\n\n" not in wire
    assert b"\r" not in wire
    assert all(line.startswith(":") for line in wire.decode().splitlines())
    events, decoder = decoded([wire, b"\n", wire])
    assert events == []
    assert not decoder.close()
    assert decoded([b"data: a\n", wire, b"data: b\n\n"])[0] == [Event("message", "a\nb", "")]
