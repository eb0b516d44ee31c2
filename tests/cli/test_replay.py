"""`motamot replay`: a recording served again until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from motamot.tape import Piece, Tape, record, save
from tests.cli.support import Place, Running
from tests.tape.support import entry, har

TAPE = Tape(
    pieces=(Piece(0.1, b"data: a\n\n"), Piece(0.6, b"data: b\n\n")),
    status=200,
    headers=(("Content-Type", "text/event-stream"),),
    end="closed",
    ended_at=0.7,
)


@contextmanager
def replaying(place: Place, *arguments: str) -> Iterator[tuple[str, Running]]:
    """The command, once it serves."""
    with place.start("replay", *arguments) as running:
        deadline = time.monotonic() + 30
        while (found := re.search(rb"http://\S+/", running._err)) is None:
            assert running.process.poll() is None and time.monotonic() < deadline, running._err
            time.sleep(0.02)
        yield found[0].decode(), running


def test_a_tape_is_served_with_its_timing_until_ctrl_c(place: Place) -> None:
    save(TAPE, place.folder / "x.tape")
    with replaying(place, "x.tape") as (url, running):
        again = asyncio.run(record(url + "api/chat/stream", body=b"{}"))
        running.signal(signal.SIGINT)
        done = running.wait(10)
    assert [piece.data for piece in again.pieces] == [piece.data for piece in TAPE.pieces]
    assert again.pieces[1].at is not None and again.pieces[1].at >= 0.6
    assert done.status == 0
    assert re.sub(r"127.0.0.1:\d+", "…", done.err).splitlines() == [
        "motamot: replaying at http://…/ (18 bytes, 0.7 s; Ctrl-C ends it)",
        "POST /api/chat/stream",
        "motamot: 1 request answered",
    ]


@pytest.mark.parametrize("how", [("--speed", "1000"), ("--no-wait",)])
def test_it_can_be_served_faster(place: Place, how: tuple[str, ...]) -> None:
    slow = Tape(pieces=(Piece(60.0, b"data: a\n\n"),), status=200, end="closed", ended_at=60.0)
    save(slow, place.folder / "x.tape")
    with replaying(place, "x.tape", *how) as (url, _):
        again = asyncio.run(record(url))
    assert (again.body, again.end) == (b"data: a\n\n", "closed")
    assert again.ended_at is not None and again.ended_at < 20


def test_pages_of_one_origin_can_be_let_in(place: Place) -> None:
    save(TAPE, place.folder / "x.tape")
    with replaying(place, "x.tape", "--cors", "https://chat.example.com", "--no-wait") as (url, _):
        again = asyncio.run(record(url))
    assert again.header("Access-Control-Allow-Origin") == "https://chat.example.com"


def test_of_several_answers_one_is_chosen(place: Place) -> None:
    content = har(*(entry(f"data: {number}\n\n", url=f"https://x/chat/{number}?key=geheim") for number in (1, 2)))
    (place.folder / "x.har").write_text(json.dumps(content))
    done = place.run("replay", "x.har")
    assert done.status == 2
    assert "x.har holds 2 answers, and one is served: choose it with --select" in done.err
    assert "2  POST https://x/chat/2" in done.err and "geheim" not in done.err
    with replaying(place, "x.har", "--select", "2") as (url, running):
        assert asyncio.run(record(url)).body == b"data: 2\n\n"
        assert b"A HAR holds no times" in running._err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere",), "the file nowhere cannot be read"),
        (("x.tape", "--cors", "chat.example.com"), "--cors wants an origin"),
        (("x.tape", "--cors", "https://a.example\r\nX: y"), "--cors wants an origin"),
        (("x.tape", "--host", "nowhere.invalid"), "cannot listen on nowhere.invalid port 0"),
        (("x.tape", "--speed", "0"), "--speed"),
    ],
)
def test_what_cannot_be_served_is_a_sentence_and_status_2(place: Place, arguments: tuple[str, ...], told: str) -> None:
    save(TAPE, place.folder / "x.tape")
    done = place.run("replay", *arguments)
    assert (done.status, done.out) == (2, b"")
    assert told in done.err and "Traceback" not in done.err
