"""What a real curl writes, of what a real socket sends it."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import TapeError
from motamot.tape import Tape, bounds, load
from tests.need import need
from tests.tape.support import answering

BODY = "data: Bonjour, ça va ?\n\ndata: [DONE]\n\n".encode()
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


CHUNKED = STREAM + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = STREAM + b"Content-Length: %d\r\n\r\n" % len(BODY)


def curl(*arguments: str, both: bool = False) -> bytes:
    """What curl writes; its notes, too, where both go to one place."""
    path = shutil.which("curl")
    need(path, "curl: apt-get install curl")
    assert path is not None
    return subprocess.run(
        [path, "-s", "--max-time", "10", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if both else subprocess.DEVNULL,
        check=False,
        timeout=20,
    ).stdout


def captured(answer: bytes, *options: str) -> Tape:
    with answering([answer]) as server:
        [tape] = load(curl("-i", "-N", *options, server.url))
    return tape


@pytest.mark.parametrize(
    ("answer", "options", "end"),
    [
        (SIZED + BODY, (), "closed"),
        (CHUNKED + chunked(BODY[:20], BODY[20:]), (), "unknown"),
        (CHUNKED + chunked(BODY[:20], BODY[20:]), ("--raw",), "closed"),
        (CHUNKED + chunked(BODY[:20], BODY[20:], end=b"0;x=1\r\nX-Trailer: 1\r\n\r\n"), ("--raw",), "closed"),
        (CHUNKED + chunked(BODY, end=b""), ("--raw",), "reset"),
        (STREAM + b"\r\n" + BODY, (), "unknown"),
        (STREAM.replace(b"1.1", b"1.0") + b"\r\n" + BODY, (), "unknown"),
        (SIZED.replace(b"%d" % len(BODY), b"100") + BODY, (), "reset"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + SIZED + BODY, (), "closed"),
        (STREAM + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(BODY), (), "unknown"),
        (STREAM + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(BODY), ("--compressed",), "unknown"),
        (STREAM + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(BODY), (), "unknown"),
        (
            CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + chunked(gzip.compress(BODY)),
            ("--raw",),
            "closed",
        ),
    ],
)
def test_the_body_is_what_the_server_sent(answer: bytes, options: tuple[str, ...], end: str) -> None:
    tape = captured(answer, *options)
    assert (tape.status, tape.body, tape.end, tape.source) == (200, BODY, end, "curl")
    assert tape.header("content-type") == "text/event-stream"


def test_chunks_that_curl_left_keep_their_boundaries() -> None:
    tape = captured(CHUNKED + chunked(BODY[:7], BODY[7:30], BODY[30:]), "--raw")
    assert [piece.data for piece in tape.pieces] == [BODY[:7], BODY[7:30], BODY[30:]]
    assert not tape.timed


def test_the_heads_before_the_last_one_are_passed_over() -> None:
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /there\r\nContent-Length: 5\r\n\r\nmoved"
    login = b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm="r", nonce="n"\r\nContent-Length: 0\r\n\r\n'
    with answering([moved], [SIZED + BODY]) as server:
        [tape] = load(curl("-i", "-L", server.url))
    assert (tape.status, tape.body) == (200, BODY)
    assert "sent on with 307" in tape.notes[0]
    with answering([login], [SIZED + BODY]) as server:
        [tape] = load(curl("-i", "--digest", "-u", "a:b", server.url))
    assert (tape.status, tape.body) == (200, BODY)
    assert "401" in tape.notes[0]


def test_a_proxys_answer_to_connect_is_passed_over(tmp_path: Path) -> None:
    connected = b"HTTP/1.1 200 Connection established\r\n\r\n"
    with answering([connected, 0.05, SIZED + BODY]) as server:
        [tape] = load(curl("-i", "--proxytunnel", "-x", server.url, "http://chat.example.com/"))
    assert (tape.status, tape.header("content-type"), tape.body) == (200, "text/event-stream", BODY)


def test_several_addresses_on_one_command_line_are_several_tapes() -> None:
    with answering([SIZED + BODY], [SIZED + BODY]) as server:
        tapes = load(curl("-i", server.url, server.url + "b"))
    assert [tape.body for tape in tapes] == [BODY, BODY]


@pytest.mark.parametrize("options", [("-v",), ("-v", "-N"), ("-v", "-i"), ("-v", "--no-silent")])
@pytest.mark.parametrize("answer", [SIZED + BODY, CHUNKED + chunked(BODY[:20], BODY[20:])])
def test_the_notes_of_curl_v_are_told_from_the_body(answer: bytes, options: tuple[str, ...]) -> None:
    with answering([answer]) as server:
        [tape] = load(curl(*options, "-H", "Authorization: Bearer geheim", f"{server.url}chat?a=1", both=True))
    assert (tape.status, tape.body, tape.end) == (200, BODY, "closed")
    assert tape.request is not None
    assert tape.request.url == f"//127.0.0.1:{server.port}/chat?a=1"
    assert ("Authorization", "[removed]") in tape.request.headers


def test_curl_v_of_a_body_that_broke_off() -> None:
    with answering([CHUNKED + chunked(BODY, end=b"5\r\nda"), "reset"]) as server:
        [tape] = load(curl("-v", "-N", server.url, both=True))
    assert tape.end == "reset"
    assert tape.body.startswith(BODY)


def test_curl_v_after_a_redirect_tells_the_last_request() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 5\r\n\r\nmoved"
    with answering([moved], [SIZED + BODY]) as server:
        [tape] = load(curl("-v", "-L", server.url, both=True))
    assert (tape.status, tape.body) == (200, BODY)
    assert tape.request is not None
    assert tape.request.url.endswith("/there")


def test_a_body_that_begins_with_a_star_is_no_note_of_curls() -> None:
    body = b"* one\n* two\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\n" + body
    with answering([answer]) as server:
        [tape] = load(curl("-v", server.url, both=True))
    assert tape.body == body


def test_notes_without_a_response_are_told() -> None:
    with pytest.raises(TapeError, match="notes of curl -v, and no response is among them"):
        load(curl("-v", "http://127.0.0.1:1/", both=True))
    with pytest.raises(TapeError, match="breaks off inside the response's head"):
        load(b"*   Trying 127.0.0.1:1...\n> GET / HTTP/1.1\n> \n< HTTP/1.1 200 OK\n")


def test_heads_with_lf_alone_are_read() -> None:
    """As an editor leaves them."""
    [tape] = load((SIZED + BODY).replace(b"\r\n", b"\n"))
    assert (tape.header("Content-Type"), tape.body) == ("text/event-stream", BODY)


def test_a_header_may_be_folded_and_a_line_that_is_none_is_left_out() -> None:
    [tape] = load(b"HTTP/1.1 200 OK\r\nA: b\r\n  c\r\nnonsense\r\nB: \xe9\r\n\r\n" + BODY)
    assert tape.headers == (("A", "b c"), ("B", "é"))


@pytest.mark.parametrize(
    ("length", "end", "note"),
    [
        (b"20", "unknown", "and content-length says 20"),
        (b"99999", "reset", "of the 99,999 bytes that were promised came"),
        (b"-5", "unknown", None),
        (b"1e3", "unknown", None),
        ("²".encode(), "unknown", None),
        (b"9" * 400, "unknown", None),
    ],
)
def test_a_content_length_that_lies_takes_nothing_from_the_body(length: bytes, end: str, note: str | None) -> None:
    [tape] = load(STREAM + b"Content-Length: " + length + b"\r\n\r\n" + BODY)
    assert (tape.body, tape.end) == (BODY, end)
    assert (note is None and not tape.notes) or (note is not None and note in tape.notes[-1])


def test_a_body_compressed_in_a_way_that_is_not_read_here_is_told() -> None:
    [tape] = load(STREAM + b"Content-Encoding: br\r\n\r\n\x1b\x0a\x00\xf8")
    assert tape.body == b""
    assert "compressed with br" in tape.notes[0]
    assert "curl -i --compressed" in tape.notes[0]
    [tape] = load(STREAM + b"Content-Encoding: br\r\n\r\n" + BODY)
    assert tape.body == BODY, "--compressed has unpacked it and left the header"


def test_a_chunked_capture_cut_anywhere_keeps_what_came() -> None:
    pieces = (BODY[:7], BODY[7:30], BODY[30:])
    content = CHUNKED + chunked(*pieces)
    for cut in range(len(CHUNKED) + len(b"7\r\n"), len(content)):
        [tape] = load(content[:cut])
        assert BODY.startswith(tape.body)
        last = content.rindex(b"0\r\n\r\n")
        assert tape.end == ("closed" if cut >= last + 3 else "reset")
        assert len(tape.body) >= len(BODY) * (cut >= last)


@given(st.lists(st.binary(min_size=1), min_size=1), st.binary())
def test_any_chunks_are_put_together_and_any_bytes_break_nothing(pieces: list[bytes], noise: bytes) -> None:
    [tape] = load(CHUNKED + chunked(*pieces))
    assert (tape.reads is not None, [piece.data for piece in tape.pieces]) == (True, pieces)
    for content in (CHUNKED + noise, CHUNKED + chunked(*pieces, end=b"") + noise, b"HTTP/1.1 200 OK\r\n" + noise):
        try:
            load(content)
        except TapeError as error:
            assert "\n" not in error.message


def test_a_head_without_an_end_and_heads_without_a_body_are_bounded() -> None:
    with pytest.raises(TapeError, match=rf"head is larger than {bounds.HEAD_BYTES:,} bytes"):
        load(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000)
    with pytest.raises(TapeError, match=r"more than 50 heads"):
        load(b"HTTP/1.1 200 OK\r\n\r\n" * 1000)
