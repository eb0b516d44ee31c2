"""`motamot record`: asked once, kept to the byte, and stopped with what came."""

from __future__ import annotations

import json
import signal
import stat
import time

import pytest

from motamot.tape import load
from tests.cli.support import Place
from tests.tape.support import answering

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=geheim\r\n\r\n"
)
A, B, END = b"9\r\ndata: a\n\n\r\n", b"9\r\ndata: b\n\n\r\n", b"0\r\n\r\n"


def test_a_stream_is_kept_in_a_file_for_its_owner_and_told_in_a_line(place: Place) -> None:
    with answering([HEAD, A, 0.15, B, END]) as server:
        done = place.run("record", server.url, "-o", "x.tape")
    assert (done.status, done.out) == (0, b"")
    [tape] = load(place.folder / "x.tape")
    assert [piece.data for piece in tape.pieces] == [b"data: a\n\n", b"data: b\n\n"]
    assert (tape.status, tape.end, tape.timed) == (200, "closed", True)
    assert stat.S_IMODE((place.folder / "x.tape").stat().st_mode) == 0o600
    assert b"geheim" not in (place.folder / "x.tape").read_bytes()
    [line] = done.err.splitlines()
    assert line.startswith("motamot: HTTP 200, text/event-stream: 18 bytes in 2 reads, the first after ")
    assert "; closed by the server after " in line


def test_without_a_file_the_tape_goes_to_standard_output(place: Place) -> None:
    with answering([HEAD, A, END]) as server:
        done = place.run("record", server.url)
    assert load(done.out)[0].body == b"data: a\n\n"


def test_a_device_can_take_the_tape(place: Place) -> None:
    with answering([HEAD, A, END]) as server:
        assert place.run("record", server.url, "-o", "/dev/null").status == 0
        assert place.run("show", "/dev/null").status == 2


def test_what_is_asked_is_what_the_options_say(place: Place) -> None:
    (place.folder / "headers").write_text("Authorization: Bearer geheim\n\nX-Two: 2\n")
    (place.folder / "body.json").write_text('{"a": "é"}', "utf-8")
    with answering(*[[HEAD, END]] * 6) as server:
        place.run("record", server.url, "-H", "X-One: a:b", "-H", "@headers", "-d", "@body.json", "-o", "1")
        place.run("record", server.url + "api/chat/stream", "--message", 'Où "est" ?', "-o", "2")
        place.run("record", server.url, "-X", "PUT", "-d", "@-", "-o", "3", stdin=b"from stdin")
        place.run("record", server.url + "flux?message=x", "-o", "4")
        chunks = ("--protocol", "openai", "--model", "m")
        place.run("record", server.url, "--message", "Hi", *chunks, "-o", "5")
        place.run("record", server.url + "flux", "-m", "Où ?", "-o", "6")
    first, second, third, fourth, fifth, sixth = server.asked
    assert json.loads(fifth.partition(b"\r\n\r\n")[2])["messages"] == [{"role": "user", "content": "Hi"}]
    assert sixth.startswith(b"GET /flux?message=O%C3%B9+%3F HTTP/1.1\r\n")
    assert first.startswith(b"POST / HTTP/1.1\r\n") and first.endswith('{"a": "é"}'.encode())
    assert b"\r\nX-One: a:b\r\n" in first and b"\r\nX-Two: 2\r\n" in first
    assert b"\r\nAuthorization: Bearer geheim\r\n" in first
    assert json.loads(second.partition(b"\r\n\r\n")[2]) == {"message": 'Où "est" ?'}
    assert third.startswith(b"PUT / ") and third.endswith(b"from stdin")
    assert fourth.startswith(b"GET /flux?message=x HTTP/1.1\r\n")
    assert all(b"geheim" not in (place.folder / name).read_bytes() for name in "1234")
    [tape] = load(place.folder / "2")
    assert tape.request is not None and json.loads(tape.request.body) == {"message": 'Où "est" ?'}


def test_a_response_that_breaks_off_is_recorded_and_told(place: Place) -> None:
    with answering([HEAD, A, 0.05, "reset"]) as server:
        done = place.run("record", server.url, "-o", "x.tape")
    assert (done.status, load(place.folder / "x.tape")[0].end) == (0, "reset")
    assert "; broken off after " in done.err.splitlines()[0]
    assert done.err.splitlines()[1] == "motamot: note: The connection broke before the end: it was reset."


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_and_keeps_what_came(place: Place, number: signal.Signals) -> None:
    with answering([HEAD, A, 60.0]) as server, place.start("record", server.url, "-o", "x.tape") as running:
        while not server.asked:
            assert running.process.poll() is None
            time.sleep(0.01)
        time.sleep(0.5)
        running.signal(number)
        done = running.wait(10)
    assert done.status == 130
    [tape] = load(place.folder / "x.tape")
    assert (tape.body, tape.end) == (b"data: a\n\n", "left")
    assert "left before the end" in done.err


def test_ctrl_c_before_any_answer_is_a_stop_without_a_tape(place: Place) -> None:
    with answering([60.0]) as server, place.start("record", server.url, "-o", "x.tape") as running:
        while not server.asked:
            assert running.process.poll() is None
            time.sleep(0.01)
        running.signal(signal.SIGINT)
        done = running.wait(10)
    assert (done.status, done.err) == (130, "motamot: stopped\n")
    assert not (place.folder / "x.tape").exists()


def test_it_leaves_after_its_time_and_at_its_size(place: Place) -> None:
    with answering([HEAD, A, 60.0], [HEAD, A, B, 60.0]) as server:
        late = place.run("record", server.url, "--timeout", "0.5", "-o", "1")
        large = place.run("record", server.url, "--max-bytes", "12", "-o", "2")
    assert (late.status, load(place.folder / "1")[0].body) == (0, b"data: a\n\n")
    assert "had not ended after 0.5 s" in late.err
    assert load(place.folder / "2")[0].body == b"data: a\n\ndat"
    assert "larger than 12 bytes" in large.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("http://127.0.0.1:1/",), "takes no connection: Connection refused"),
        (("chat.example.com",), "no address of the web: it begins with http:// or https://"),
        (("http://127.0.0.1:1/", "-H", "nonsense"), 'a header is given as -H "Name: value"'),
        (("http://127.0.0.1:1/", "-H", "@nowhere"), "the file nowhere cannot be read: No such file"),
        (("http://127.0.0.1:1/", "-d", "@nowhere"), "the file nowhere cannot be read: No such file"),
        (("http://127.0.0.1:1/", "-d", "x", "--message", "y"), "--message and -d both say what is asked"),
        (("http://127.0.0.1:1/x", "--message", "y"), "does not say how this chatbot is asked: give the body with -d"),
        (("http://127.0.0.1:1/", "-o", "."), ". is a folder: name a file"),
        (("http://127.0.0.1:1/", "-o", "no/where"), "no is no folder"),
    ],
)
def test_what_cannot_be_recorded_is_a_sentence_and_status_2(
    place: Place, arguments: tuple[str, ...], told: str
) -> None:
    done = place.run("record", *arguments)
    assert (done.status, done.out) == (2, b"")
    assert told in done.err and "Traceback" not in done.err
