"""The registries, and the readers and writers that everybody writes first."""

from __future__ import annotations

import importlib
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

import motamot.peers
from motamot.peers import CHUNKERS, READERS, WRITERS, Chunker, PeerReader, PeerWriter
from motamot.peers.answers import IMPROVISATION, VOICINGS

HOUSE = Path(motamot.peers.__file__).parent
HARD = [
    "Salut ! ",
    "Deux  espaces.\n\n",
    "    code\n",
    "🙂 é\u2028→\x85",
    "\ufeff",
    '{"a":1}',
    "[DONE] ",
    "data: x\n",
    "fin\n",
]


@pytest.mark.parametrize(
    ("registry", "folder", "name"),
    [(READERS, "readers", "READER"), (WRITERS, "writers", "WRITER"), (CHUNKERS, "chunkers", "CHUNKER")],
)
def test_a_peer_is_one_file_and_one_line_in_its_registry(
    registry: Mapping[str, PeerReader | PeerWriter | Chunker], folder: str, name: str
) -> None:
    modules = [
        importlib.import_module(f"motamot.peers.{folder}.{path.stem}") for path in (HOUSE / folder).glob("[a-z]*.py")
    ]
    objects = {id(getattr(module, name)) for module in modules}
    assert objects <= {id(peer) for peer in registry.values()}
    assert all(peer.name == key for key, peer in registry.items())
    assert len({peer.title for peer in registry.values()}) == len(registry)


def test_every_end_that_the_lesson_names_is_there() -> None:
    readers = "standard course page chat-service chat-service-course chat-api parse-ag-ui-frames stream-ag-ui-chat"
    assert set(readers.split()) <= set(READERS)
    assert {"gachatbot-api", "gaapi", "gaapi-mended", "ag-ui"} <= set(WRITERS)
    assert {"sentence", "sentence-lossless", "tokens"} <= set(CHUNKERS)


@pytest.mark.parametrize("name", READERS)
def test_no_reader_raises_whatever_the_bytes(name: str) -> None:
    rng = random.Random(name)
    parts = [
        b"data: ",
        b"data:{",
        b"\n",
        b"\n\n",
        b"\r\n",
        b"\r",
        b"\xff",
        b"\xed\xa0",
        b"[DONE]",
        b"null",
        b'{"error":',
    ]
    parts += [
        b'{"type":"TEXT_MESSAGE_CONTENT","delta":[',
        b"id: 1.1\n",
        b"[" * 100_000,
        b"9" * 5000,
        b"\xef\xbb\xbf",
        b"\x00",
    ]
    for _ in range(300):
        reads = [b"".join(rng.choices(parts, k=rng.randrange(8))) for _ in range(rng.randrange(6))]
        got = READERS[name].read(reads)
        assert all(0 <= step.at <= len(reads) for step in got.steps)
        assert got.threw is None or not got.complete


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", READERS)
def test_a_large_stream_in_small_reads_takes_time_in_proportion(name: str) -> None:
    for unit in (b"x", b"data: \n", b"\n"):
        stream = b"data: " + unit * (400_000 // len(unit))
        READERS[name].read(stream[at : at + 100] for at in range(0, len(stream), 100))


class TestRightPairs:
    """Those that lose nothing, over an answer with everything in it that is hard to carry."""

    @pytest.mark.parametrize(
        ("writer", "reader"),
        [
            ("gachatbot-api", "standard"),
            ("gaapi-mended", "standard"),
            ("gaapi-lines", "standard"),
            ("ga-text", "standard"),
            ("ga-text", "ga-text"),
            ("json", "json"),
            ("ag-ui", "stream-ag-ui-chat"),
            ("motamot", "motamot"),
        ],
    )
    def test_at_every_cut_of_the_bytes(self, writer: str, reader: str) -> None:
        stream = WRITERS[writer].write(HARD)
        expected = "".join(HARD)
        for size in (1, 2, 3, 7, 64, len(stream)):
            got = READERS[reader].read([stream[at : at + size] for at in range(0, len(stream), size)])
            assert (got.text, got.threw, got.complete) == (expected, None, True)


class TestNaiveWriters:
    @pytest.mark.parametrize(
        ("name", "stream"),
        [
            ("naive-f-string", b"data: a\nb \n\ndata: c\n\n"),
            ("naive-strip", b"data: a\nb\n\ndata: c\n\ndata: [DONE]\n\n"),
            ("naive-escaped", b"data: a\\nb \n\ndata: c\n\ndata: [DONE]\n\n"),
            ("json", b'data: {"text": "a\\nb "}\n\ndata: {"text": "c"}\n\ndata: [DONE]\n\n'),
        ],
    )
    def test_write(self, name: str, stream: bytes) -> None:
        assert WRITERS[name].write(["a\nb ", "c"]) == stream


class TestNaiveReaders:
    STREAM = WRITERS["gachatbot-api"].write(["a\nb ", " é"])

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("naive-split", "a\ndata: b  é"),
            ("naive-first-line", "aé"),
            ("naive-per-read", "ab  é"),
            ("naive-iter-lines", "ab  é"),
        ],
    )
    def test_read(self, name: str, text: str) -> None:
        assert READERS[name].read([self.STREAM]).text == text

    def test_each_read_by_itself_loses_what_a_read_cuts(self) -> None:
        at = self.STREAM.index(b"\xa9")
        assert READERS["naive-per-read"].read([self.STREAM[:at], self.STREAM[at:]]).text == "ab  \ufffd"
        assert READERS["naive-split"].read([self.STREAM[:at], self.STREAM[at:]]).text == "a\ndata: b  é"

    def test_iter_lines_ends_lines_where_python_does(self) -> None:
        stream = "data: a\u2028b\n\ndata: c\x85d\r\rdata: e".encode()
        for size in (1, 2, len(stream)):
            assert (
                READERS["naive-iter-lines"].read([stream[i : i + size] for i in range(0, len(stream), size)]).text
                == "ace"
            )

    def test_json_per_read_throws_where_two_events_come_in_one_read(self) -> None:
        one, two, end = (part + b"\n\n" for part in WRITERS["json"].write(["a", "b"]).split(b"\n\n")[:3])
        reader = READERS["naive-json-per-read"]
        assert reader.read([one, two, end]).text == "ab"
        assert reader.read([one + two, end]).threw == "SyntaxError: not JSON"
        assert READERS["naive-json-per-line"].read([one + two[:9], two[9:] + end]).text == "a"

    def test_naive_chunkers_lose_line_breaks(self) -> None:
        assert "".join(CHUNKERS["naive-words"].cut("a\n\nb  c")) == "a b c "
        assert "".join(CHUNKERS["naive-lines"].cut("a\n\nb")) == "ab"
        for text in (IMPROVISATION, VOICINGS):
            assert all("".join(CHUNKERS[name].cut(text)) == text for name in ("characters", "whole"))
