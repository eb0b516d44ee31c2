"""The blocks of an event stream: what the codec reads, with the place of each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.findings.wire import EVENT_BYTES, Block, Wire
from motamot.sse import Decoder, Event, Ignored

LINES = (
    b"data: x",
    b"data: y: z",
    b"data:z",
    b"data",
    b"data: ",
    b"event: e",
    b"event:",
    b"id: 1",
    b"id: a\0b",
    b"id",
    b"retry: 5",
    b"retry: no",
    b": c",
    b":",
    b"foo: bar",
    b"no colon",
    b" data: x",
    b"data: \xff\xe2\x80\xa8 caf\xc3\xa9",
    b"",
    b"",
    b"",
)
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b"\r")


class Told:
    """What a wire tells, each event with the place of its block."""

    def __init__(self, reads: list[bytes], before: tuple[bytes, ...] = (b"event: ", b"id: ")) -> None:
        self.events: list[tuple[int, str, str]] = []
        self.skipped: list[tuple[Ignored, bytes, int]] = []
        self.given = bytearray()
        self.blocks: list[Block] = []
        self.wire = Wire(plain=self.plain, part=self.part, block=self.block, before=before)
        for read in reads:
            self.wire.feed(read)
        self.wire.close()

    def plain(self, offset: int, raw: bytes) -> None:
        assert raw.endswith(b"\n\n")
        (event,) = Decoder().feed(raw)
        self.events.append((offset, event.event, event.data))
        self.given += raw

    def part(self, offset: int, part: bytes) -> None:
        assert part
        self.given += part

    def block(self, block: Block) -> None:
        self.blocks.append(block)
        self.skipped += block.skipped
        self.events += [(block.offset, event.event, event.data) for event in block.events]


class Observer:
    def __init__(self) -> None:
        self.ignored_lines: list[tuple[Ignored, bytes, int]] = []

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        self.ignored_lines.append((kind, line, offset))


def by_the_codec(body: bytes) -> tuple[list[Event], list[tuple[Ignored, bytes, int]], Any]:
    observer = Observer()
    decoder = Decoder(observer=observer)
    return decoder.feed(body), observer.ignored_lines, decoder.close()


streams = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)), max_size=20).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@settings(max_examples=300, deadline=None)
@given(
    st.booleans(),
    streams,
    st.sampled_from([b"", b"data: cut", b": cut", b"da"]),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_a_short_block_is_read_as_the_codec_reads_it(mark: bool, stream: bytes, tail: bytes, cuts: list[int]) -> None:
    body = b"\xef\xbb\xbf" * mark + stream + tail
    edges = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    told = Told([body[start:stop] for start, stop in pairwise(edges)])
    events, ignored, residue = by_the_codec(body)
    assert [(event, data) for _, event, data in told.events] == [(event.event, event.data) for event in events]
    assert told.wire.residue == residue
    # Comments between blocks are counted and not placed; what else is ignored has its place.
    assert told.wire.comments == sum(kind is Ignored.COMMENT for kind, _, _ in ignored)
    others = [one for one in ignored if one[0] is not Ignored.COMMENT]
    assert [one for one in told.skipped if one[0] is not Ignored.COMMENT] == others
    assert {one for one in told.skipped if one[0] is Ignored.COMMENT} <= set(ignored)
    # What is passed on reads the same: a reader that is given it has the same events.
    assert [tuple(event)[:2] for event in Decoder().feed(bytes(told.given))] == [tuple(event)[:2] for event in events]
    for offset, _, data in told.events:
        line = data.split("\n")[0].encode("utf-8", "surrogatepass")
        assert data == "" or "�" in data or line in body[offset:]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_event_has_the_place_of_its_block(end: bytes) -> None:
    blocks = [b"data: one" + end, b": c" + end + b"data: two" + end, b"event: e" + end + b"data: three" + end]
    body = end.join([*blocks, b""])
    for step in (1, 3, len(body)):
        told = Told([body[at : at + step] for at in range(0, len(body), step)])
        assert [data for _, _, data in told.events] == ["one", "two", "three"]
        for offset, _, data in told.events:
            assert body[offset:].startswith((b"data: " + data.encode(), b": c", b"event: e"))


def test_a_name_before_the_data_can_be_kept_for_those_who_look_at_it() -> None:
    body = b"id: 1\ndata: x\n\n"
    assert not Told([b"data: a\n\n" + body]).blocks[1:]
    assert [block.raw for block in Told([b"data: a\n\n" + body], (b"event: ",)).blocks] == [b"data: a\n\n", body]


def test_nothing_is_read_from_an_event_that_is_too_large() -> None:
    body = b"data: a\n\ndata: " + b"x" * (EVENT_BYTES + 1) + b"\n\ndata: b\n\n"
    for step in (len(body), 100_000):
        told = Told([body[at : at + step] for at in range(0, len(body), step)])
        assert [data for _, _, data in told.events] == ["a"]
        assert told.wire.over == 9


def test_a_stream_is_told_to_begin_with_a_mark_and_to_use_cr() -> None:
    assert Told([b"\xef\xbb", b"\xbfdata: a\n\n"]).wire.mark
    assert not Told([b"data: \xef\xbb\xbfa\n\n"]).wire.mark
    assert Told([b"data: a\n\ndata: b\r\n\r\n"]).wire.cr == 16
    assert Told([b"data: a\n\n"]).wire.cr is None
