"""Whatever a file holds, it is a tape or a sentence, and it costs no more than its size."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import TapeError
from motamot.tape import END_KINDS, Piece, Tape, dumps, load
from motamot.tape.wire import read_as_standard, wire_lines
from tests.tape.support import entry, har

STREAM = b"data: Hello\n\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
VERBOSE = b"*   Trying 1.2.3.4:80...\n> GET /x HTTP/1.1\r\n> Host: x\r\n> \r\n< HTTP/1.1 200 OK\r\n< A: b\r\n< \r\n"
SEEDS = [
    dumps(Tape(pieces=(Piece(0.1, STREAM), Piece(0.2, b"\xff")), status=200, headers=(("A", "b"),), end="closed")),
    json.dumps(har(entry("data: \u00ea\n\n"), entry(None), entry("ZGF0YQ==", encoding="base64"))).encode(),
    CHUNKED + b"1f\r\n" + gzip.compress(STREAM)[:31] + b"\r\n0\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\nHTTP/2 200 \r\ncontent-length: 13\r\n\r\n" + STREAM,
    VERBOSE + b"{ [13 bytes data]\n" + STREAM + b"* Connection #0 to host x left intact\n",
    gzip.compress(STREAM),
    b"\xff\xfe" + STREAM.decode().encode("utf-16-le"),
    STREAM,
]


def is_a_tape_or_a_sentence(content: bytes) -> None:
    try:
        tapes = load(content)
    except TapeError as error:
        assert error.message and "\n" not in error.message
        return
    assert tapes
    for tape in tapes:
        assert tape.end in END_KINDS
        assert all("\n" not in note for note in tape.notes)
        assert load(dumps(tape)), "what was read can be written, and read again"
        read_as_standard(tape)
        assert sum(len(line.data) + len(line.end) for line in wire_lines(tape)) == len(tape.body)


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_tape_or_a_sentence(content: bytes) -> None:
    is_a_tape_or_a_sentence(content)


@given(st.sampled_from(SEEDS), st.data())
def test_a_recording_with_anything_done_to_it_is_a_tape_or_a_sentence(seed: bytes, data: st.DataObject) -> None:
    content = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 20)))
        content[start:end] = data.draw(
            st.binary(max_size=6)
            | st.sampled_from([b'"', b"\\", b"{", b"]", b"\n", b"\r\n\r\n", b"1e999", b"-1", b"null"])
        )
    is_a_tape_or_a_sentence(bytes(content))


OWN = b'{"motamot":"tape","version":1}\n'
SIZE = 1_000_000
COSTLY: list[Callable[[int], bytes]] = [
    lambda n: OWN + b"\n" * n,
    lambda n: OWN + b"{}\n" * (n // 3),
    lambda n: OWN + b'{"text":"' + b"x" * n,
    lambda n: OWN + b'{"text":""}\n' * (n // 12),
    lambda n: OWN + b'{"text":"x"}\n' * (n // 13) + b"[",
    lambda n: OWN[:-2] + b',"notes":[' + b'"x",' * (n // 4),
    lambda n: b'{"log":' + b" " * n,
    lambda n: b'{"log":{"entries":[{"a":"' + b'\\"' * (n // 2),
    lambda n: b'{"log":{"entries":[{"a":[' + b'"",' * (n // 3),
    lambda n: b'{"log":{"entries":[' + b'{"a":"\\"entries\\":["},' * (n // 21),
    lambda n: b'{"log":{"pages":["' + b'\\"entries\\":[' * (n // 13),
    lambda n: b'{"log":{"entries":[{"response":{"content":{"text":"' + b"\\" * n,
    lambda n: b'{"log":{"entries":[{"response":{"content":{"text":"' + b"\\u00ea" * (n // 6),
    lambda n: b'{"log":{"entries":[' + b'{"request":{},"response":{}},' * 90_000 + b"{",
    lambda n: b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * (n // 6),
    lambda n: b"HTTP/1.1 200 OK\r\n\r\n" + b"\r\n" * (n // 2),
    lambda n: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * (n // 6),
    lambda n: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * (n // 6),
    lambda n: CHUNKED + b"%x\r\n" % n + gzip.compress(b"") * (n // 20),
    lambda n: gzip.compress(b"") * (n // 20),
    lambda n: gzip.compress(b"\n" * n),
    lambda n: VERBOSE[:-5] + b"< a: b\n" * (n // 7),
    lambda n: VERBOSE + b"* Closing connection 0\n" * (n // 23),
    lambda n: VERBOSE + b"* Connection #" + b"1" * n,
    lambda n: VERBOSE + b"\r  0" * (n // 4),
    lambda n: b"* " * (n // 2),
    lambda n: b"\r" * n,
    lambda n: b"data:\n" * (n // 6),
    lambda n: b":\n" * (n // 2),
    lambda n: b"?" + b"&token=" * (n // 7),
]


@pytest.mark.parametrize("number", range(len(COSTLY)))
def test_no_file_costs_more_than_its_size(number: int) -> None:
    """Four times the bytes take four times the time, or it is so short that it cannot be told."""
    make = COSTLY[number]

    def seconds(content: bytes) -> float:
        begun = time.process_time()
        try:
            for tape in load(content):
                read_as_standard(tape)
        except TapeError:
            pass
        return time.process_time() - begun

    once = min(seconds(make(SIZE // 4)) for _ in range(2))
    assert seconds(make(SIZE)) < max(2.0, once * 4 * 2.5)


@pytest.mark.parametrize("form", ["own", "har", "curl", "raw"])
def test_ten_megabytes_are_read_in_well_under_a_second_of_computing(form: str) -> None:
    """Alone it is a tenth of a second; the bound leaves room for a slow machine."""
    event = b'data: {"choices":[{"index":0,"delta":{"content":"\xc3\xa9t\xc3\xa9 "},"finish_reason":null}]}\n\n'
    body = event * (10_000_000 // len(event))
    content = {
        "own": dumps(Tape(pieces=tuple(Piece(0.1, event) for _ in range(len(body) // len(event))))),
        "har": json.dumps(har(entry(body.decode())), ensure_ascii=False).encode(),
        "curl": b"HTTP/1.1 200 OK\r\n\r\n" + body,
        "raw": body,
    }[form]
    load(STREAM)
    begun = time.process_time()
    [tape] = load(content)
    assert time.process_time() - begun < 0.6
    assert tape.body == body
