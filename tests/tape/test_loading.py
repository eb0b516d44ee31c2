"""A recording is told by its content, and what is none is told what it is instead."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from motamot.errors import MotamotError, TapeError
from motamot.tape import Piece, Request, Tape, bounds, dumps, load
from tests.tape.support import entry, har

STREAM = b"data: Hello\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (dumps(Tape(pieces=(Piece(0.1, STREAM),), end="closed")), "own"),
        (json.dumps(har(entry())).encode(), "har"),
        (b"\xef\xbb\xbf" + json.dumps(har(entry()), indent=2).encode(), "har"),
        (HEAD + STREAM, "curl"),
        (b"HTTP/2 200 \r\ncontent-type: text/event-stream\r\n\r\n" + STREAM, "curl"),
        (b"* Connected\n> GET / HTTP/1.1\r\n> \r\n< HTTP/1.1 200 OK\r\n< \r\n" + STREAM, "curl"),
        (STREAM, "raw"),
        (b": ping\n\n" + STREAM, "raw"),
        (b'{"message":{"content":"Hi"},"done":false}\n', "raw"),
        (b'{"logs": [1]}', "raw"),
        (b"Just text.", "raw"),
        (b"data: \0\n\n", "raw"),
    ],
)
def test_the_format_is_told_by_the_content(content: bytes, source: str) -> None:
    [tape] = load(content)
    assert tape.source == source
    assert tape.body == (content if source == "raw" else STREAM)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"PK\x03\x04rest", "a ZIP archive: unpack it"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"%PDF-1.7", "a PDF"),
        (b"SQLite format 3\0", "a database"),
        (b"\x00\x01\x02\x03binary", "no text.*byte 0 is NUL.*curl -i -N URL > FILE"),
        (b"curl 'https://chat.example.com' -H 'x: y'", "a command.*run it with -i"),
        (gzip.compress(b"")[:12], "gzip and cannot be unpacked"),
        (b'{"motamot":"tape","version":2}\n', "version 2.*newer motamot"),
        (b'{"motamot":"tape","version":"x"}\n', "first line of this tape cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text", "breaks off inside the response's head, at byte 35"),
        (b'{"log": {"entries": 5}}', "no list of entries"),
        (b'{"log": {"entries": []}}', "holds no requests.*keep the panel open"),
        (b'{"log":' + b"[" * 100_000, "no list of entries|nested deeper"),
        (b'{"log":{"entries":[' + b"[" * 100_000, "nested deeper"),
        (b'{"log":{"entries":[{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}}", "nested deeper"),
    ],
)
def test_what_is_no_recording_is_told_as_what_it_is(content: bytes, told: str) -> None:
    with pytest.raises(TapeError, match=rf"(?s){told}") as caught:
        load(content)
    assert isinstance(caught.value, MotamotError)
    assert "\n" not in caught.value.message


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    missing, folder = tmp_path / "no.har", tmp_path
    with pytest.raises(TapeError, match=rf"{missing} cannot be read: No such file"):
        load(missing)
    with pytest.raises(TapeError, match=rf"{folder} cannot be read: Is a directory"):
        load(folder)
    with pytest.raises(TapeError, match="cannot be read"):
        load("a\0b")
    (tmp_path / "empty").touch()
    with pytest.raises(TapeError, match=rf"{tmp_path / 'empty'}: the file is empty"):
        load(tmp_path / "empty")


def test_a_file_may_be_compressed_with_gzip(tmp_path: Path) -> None:
    path = tmp_path / "traffic.har.gz"
    path.write_bytes(gzip.compress(json.dumps(har(entry())).encode()))
    [tape] = load(path)
    assert (tape.source, tape.body) == ("har", STREAM)
    [cut] = load(gzip.compress(STREAM * 2000)[:-10])
    assert "not whole" in " ".join(cut.notes)
    assert (STREAM * 2000).startswith(cut.body)


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_a_file_may_be_utf16_as_powershell_writes_it(coding: str) -> None:
    mark = "\ufeff".encode(coding)
    [tape] = load(mark + (HEAD.decode() + "data: é\r\n\r\n").encode(coding))
    assert tape.body == "data: é\r\n\r\n".encode()
    assert "UTF-16" in tape.notes[-1]


def test_a_file_larger_than_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "FILE_BYTES", 1000)
    (tmp_path / "large").write_bytes(b"data: x\n\n" * 200)
    with pytest.raises(TapeError, match="larger than 1,000 bytes"):
        load(tmp_path / "large")


@pytest.mark.parametrize("content", [gzip.compress(b"a" * 5_000_000), HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n"])
def test_what_unpacks_to_more_than_the_bound_is_cut_there(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_BYTES", 100_000)
    if content.startswith(b"HTTP"):
        content += gzip.compress(b"a" * 5_000_000)
    [tape] = load(content)
    assert tape.body == b"a" * 100_000
    assert "more comes out of it than is taken" in " ".join(tape.notes)


def test_a_har_with_more_values_than_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "JSON_VALUES", 1000)
    with pytest.raises(TapeError, match="more than 1,000 lists and objects"):
        load(b'{"log":{"entries":[' + b"[]," * 1000)
    monkeypatch.setattr(bounds, "JSON_VALUES", 100_000)
    monkeypatch.setattr(bounds, "ENTRIES", 10)
    for end in (b"{}]}}", b"{}"):
        with pytest.raises(TapeError, match="more than 10 requests"):
            load(b'{"log":{"entries":[' + b"{}," * 20 + end)


def test_more_pieces_than_the_bound_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PIECES", 10)
    chunks = b"".join(b"1\r\n%d\r\n" % (number % 10) for number in range(30))
    [tape] = load(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert (len(tape.pieces), tape.body) == (10, b"0123456789" * 3)
    assert "more than 10 pieces" in tape.notes[-1]


@pytest.mark.parametrize("times", [(2, 1), (-1, 1), (1e300, 1e300)])
def test_times_that_cannot_be_are_left_out(times: tuple[float, float]) -> None:
    lines = [b'{"motamot":"tape","version":1,"head_at_ms":-5,"upstream_at_ms":[3,2]}']
    lines += [b'{"at_ms":%a,"text":"data: x\\n\\n"}' % at for at in times]
    lines += [b'{"end":"closed","at_ms":1e308}']
    [tape] = load(b"\n".join(lines) + b"\n")
    assert not tape.timed
    assert (tape.head_at, tape.ended_at, tape.upstream_at) == (None, None, ())
    assert "backwards" in tape.notes[-1]


def test_an_answer_is_selected_by_its_number_or_a_part_of_its_address() -> None:
    content = json.dumps(har(*(entry(f"data: {n}\n\n", url=f"https://x/chat/{n}?token=t") for n in range(3)))).encode()
    assert [tape.body for tape in load(content)] == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    assert [tape.body for tape in load(content, select=2)] == [b"data: 1\n\n"]
    assert [tape.body for tape in load(content, select="chat/2")] == [b"data: 2\n\n"]
    with pytest.raises(TapeError, match="no answer number 4: the recording holds 3"):
        load(content, select=4)
    with pytest.raises(TapeError, match="none of the 3 requests of this HAR has 'nowhere' in its address"):
        load(content, select="nowhere")
    with pytest.raises(TapeError, match="no answer of this recording has 'nowhere'"):
        load(STREAM, select="nowhere")


def test_no_secret_of_a_recording_is_kept() -> None:
    tape = Tape(
        headers=(("Set-Cookie", "geheim"), ("Content-Type", "text/plain"), ("Location", "/?access_token=geheim&a=1")),
        request=Request(
            url="https://user:geheim@x/?key=geheim&apiKey=geheim&monkey=yes#token=geheim",
            headers=(
                ("authorization", "Bearer geheim"),
                ("X-API-Key", "geheim"),
                ("X-Goog-Api-Key", "geheim"),
                ("Cookie", "a=geheim"),
                ("X-Auth-Token", "geheim"),
                ("Ocp-Apim-Subscription-Key", "geheim"),
                ("CF-Access-Client-Secret", "geheim"),
                ("Idempotency-Key", "kept"),
                ("Accept", "kept"),
            ),
        ),
    )
    written = dumps(tape)
    assert b"geheim" not in written
    assert written.count(b"kept") == 2
    assert b"monkey=yes" in written and b"a=1" in written and b"https://[removed]@x/?key=[removed]" in written
    verbose = b"> GET /?api_key=geheim HTTP/1.1\r\n> Authorization: Bearer geheim\r\n> \r\n< HTTP/1.1 200 OK\r\n< \r\nx"
    assert b"geheim" not in dumps(load(verbose)[0])
    assert b"geheim" not in dumps(load(json.dumps(har(entry())).encode())[0])
