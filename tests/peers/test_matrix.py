"""The matrix, cell by cell."""

from __future__ import annotations

import pytest

from motamot.peers import CHUNKERS, READERS, WRITERS
from motamot.peers.answers import IMPROVISATION
from motamot.peers.matrix import Split, cells, reads_of

SPLITS = [
    Split(title=cut.title, pieces=tuple(cut.cut(IMPROVISATION)))
    for cut in (CHUNKERS["sentence"], CHUNKERS["sentence-lossless"])
]


def test_those_that_speak_of_the_same_kind_of_data_are_paired() -> None:
    rows = list(cells(IMPROVISATION, SPLITS, WRITERS.values(), READERS.values()))
    assert all(row[0].writer.stream == row[0].reader.stream for row in rows)
    assert len(rows) == sum(w.stream == r.stream for w in WRITERS.values() for r in READERS.values())


def test_all_are_paired_where_that_is_wished() -> None:
    [[cell]] = cells("a", [Split(title="", pieces=("a",))], [WRITERS["json"]], [READERS["page"]], all_pairs=True)
    assert cell.got.text == '{"text": "a"}'


def test_a_cell_holds_count_difference_and_what_a_page_shows() -> None:
    [[pinned, after]] = cells(IMPROVISATION, SPLITS, [WRITERS["gachatbot-api"]], [READERS["page"]])
    assert (pinned.count.told, after.count.told) == ("6 line breaks missing", "exact")
    assert (pinned.difference.glued.times, after.difference.exact) == (4, True)
    assert (pinned.shown.bullets, after.shown.bullets) == (1, 4)


def test_what_is_thrown_is_compared_as_text() -> None:
    [[cell]] = cells(
        "a\nb", [Split(title="", pieces=('{"error":"x"}',))], [WRITERS["gaapi"]], [READERS["chat-service"]]
    )
    assert cell.count.told == "2 of 2 lines missing, 1 line breaks missing"
    assert cell.got.threw == "x"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_a_read_is_an_event_or_of_a_size(end: bytes) -> None:
    stream = b"data: a" + end + b"data: b" + end + b"data: c"
    assert list(reads_of(stream)) == [b"data: a" + end, b"data: b" + end, b"data: c"]
    assert b"".join(reads_of(stream, 4)) == stream
    assert {len(read) for read in list(reads_of(stream, 4))[:-1]} == {4}


def test_the_size_of_the_reads_matters_to_those_without_a_buffer() -> None:
    split = [Split(title="", pieces=("One. ", "Two."))]
    readers = [READERS["naive-per-read"], READERS["page"]]
    told = {
        size: [
            row[0].count.told for row in cells("One. Two.", split, [WRITERS["gachatbot-api"]], readers, read_bytes=size)
        ]
        for size in (None, 8)
    }
    assert told[None] == ["exact", "exact"]
    assert told[8] == ["1 of 1 lines missing", "exact"]
