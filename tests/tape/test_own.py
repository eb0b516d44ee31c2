"""Tapes of our own: what was written is what is read, and a cut one is read up to its last whole line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import TapeError
from motamot.tape import END_KINDS, Piece, Request, Tape, dumps, load, save

TAPE = Tape(
    pieces=(Piece(0.0123, b"data: h\xc3"), Piece(0.02, b"\xa9\n\n"), Piece(0.02, "data: \u2028 «x»\n\n".encode())),
    status=200,
    headers=(("Content-Type", "text/event-stream"),),
    request=Request(method="POST", url="http://x/chat", headers=(("Accept", "*/*"),), body=b'{"message":"Hi"}'),
    end="reset",
    head_at=0.01,
    ended_at=0.0301,
    upstream_at=(0.001, 0.002),
    source="own",
    notes=("A note.",),
)

times = st.none() | st.integers(0, 10**9).map(lambda microseconds: microseconds / 1e6)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1).map(lambda name: f"x{name}x")
pairs = st.lists(st.tuples(names, st.text()), max_size=4).map(tuple)


@st.composite
def tapes(draw: st.DrawFn) -> Tape:
    ats = sorted(draw(st.lists(st.integers(0, 10**9), max_size=6)))
    datas = [draw(st.binary() | st.text().map(lambda text: text.encode())) for _ in ats]
    timed = draw(st.booleans())
    request = draw(st.none() | st.builds(Request, method=names, url=names, headers=pairs, body=st.binary()))
    return Tape(
        pieces=tuple(Piece(at / 1e6 if timed else None, data) for at, data in zip(ats, datas, strict=True)),
        status=draw(st.none() | st.integers(100, 999)),
        headers=draw(pairs),
        request=request,
        end=draw(st.sampled_from(END_KINDS)),
        head_at=draw(times),
        ended_at=draw(times),
        source="own",
        notes=tuple(draw(st.lists(st.text(), max_size=2))),
    )


@given(tapes())
def test_what_was_written_is_what_is_read(tape: Tape) -> None:
    assert load(dumps(tape)) == [tape]


def test_the_file_is_read_with_eyes_and_grep(tmp_path: Path) -> None:
    save(TAPE, tmp_path / "x.tape")
    assert (tmp_path / "x.tape").read_text("utf-8").split("\n") == [
        (
            '{"motamot":"tape","version":1,"status":200,"headers":[["Content-Type","text/event-stream"]],'
            '"request":{"method":"POST","url":"http://x/chat","headers":[["Accept","*/*"]],'
            '"body":"{\\"message\\":\\"Hi\\"}"},"head_at_ms":10.0,"upstream_at_ms":[1.0,2.0],"source":"own",'
            '"notes":["A note."]}'
        ),
        '{"at_ms":12.3,"base64":"ZGF0YTogaMM="}',
        '{"at_ms":20.0,"base64":"qQoK"}',
        '{"at_ms":20.0,"text":"data: \u2028 «x»\\n\\n"}',
        '{"end":"reset","at_ms":30.1}',
        "",
    ]
    assert load(tmp_path / "x.tape") == [TAPE]


def test_only_its_owner_can_read_the_file_and_it_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_text("old")
    save(TAPE, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(TapeError, match=r"nowhere/x.tape cannot be written: No such file"):
        save(TAPE, tmp_path / "nowhere" / "x.tape")


def test_a_tape_cut_anywhere_is_read_up_to_its_last_whole_line() -> None:
    written = dumps(TAPE)
    ends = [place + 1 for place, byte in enumerate(written) if byte == 0x0A]
    for cut in range(len('{"motamot":"tape"'), len(written)):
        if cut < len(written[: ends[0]].rstrip()):
            with pytest.raises(TapeError):
                load(written[:cut])
            continue
        [tape] = load(written[:cut])
        whole = sum(cut >= end - 1 for end in ends[1:])
        assert tape.pieces == TAPE.pieces[:whole]
        if whole == 4:
            assert tape == TAPE
            continue
        assert tape.end == "unknown"
        assert tape.notes[0] == "A note."
        assert "The tape was cut" in tape.notes[1]
        assert f"byte {cut:,}" in tape.notes[1]


@pytest.mark.parametrize(
    "line",
    [
        b'{"at_ms":1,"text":5}',
        b'{"at_ms":"x","text":"y"}',
        b'{"at_ms":NaN,"text":"y"}',
        b'{"at_ms":1,"text":"\\ud800"}',
        b'{"at_ms":1,"base64":"###"}',
        b"\xff",
        b"[" * 50_000,
        b"nonsense",
    ],
)
def test_a_damaged_line_is_named_and_what_came_before_it_is_kept(line: bytes) -> None:
    first, second, *rest = dumps(TAPE).splitlines(keepends=True)
    [tape] = load(b"".join([first, second, line, b"\n", *rest]))
    assert tape.pieces == TAPE.pieces[:1]
    assert tape.end == "unknown"
    assert f"line 3, at byte {len(first + second):,}, cannot be read" in tape.notes[-1]


def test_a_later_writer_may_add_keys() -> None:
    lines = [json.loads(line) | {"new": [1, {"x": "y"}]} for line in dumps(TAPE).split(b"\n")[:-1]]
    lines.insert(2, {"mark": "a kind of line that is not known"})
    [tape] = load(b"\n".join(json.dumps(line, separators=(",", ":")).encode() for line in lines))
    assert tape == TAPE


def test_an_end_that_is_not_known_is_unknown() -> None:
    [tape] = load(dumps(TAPE).replace(b'"end":"reset"', b'"end":"later"'))
    assert tape.end == "unknown"
