"""`motamot show`: the wire as it came, beside what a reader makes of it."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from motamot.tape import Piece, Request, Tape, save
from tests.cli.support import COMMAND, Place
from tests.tape.support import entry, har

VOICINGS = """Found 2 voicings matching chord Cmaj7:

- **Cmaj7** `3-0-x-2-3-x` (guitar, score 0.369)
```vextab
6/3 5/0 3/2 2/3
```
- **Cmaj7** `3-0-0-2-3-x` (guitar, score 0.369)
```vextab
6/3 5/0 4/0 3/2 2/3
```"""
ROUTING = (
    '{"type":"routing","agentId":"voicing","confidence":0.9,"routingMethod":"skill","trace":null,"grounding":null}'
)
ASKED = Request(
    method="POST",
    url="http://localhost:5000/api/chatbot/chat/stream",
    body=b'{"message":"Show me Cmaj7 voicings"}',
)
LESSON = """\
== POST /api/chatbot/chat/stream "Show me Cmaj7 voicings"
HTTP 200
  | data: {"type":"routing","agentId":"voicing",…
  |
  | data: Found 2 voicings matching chord Cmaj7:
  | data:
  | data: - **Cmaj7** `3-0-x-2-3-x` (guitar, score 0.369)
  | data: ```vextab
  | data: 6/3 5/0 3/2 2/3
  | data: ```
  | data: - **Cmaj7** `3-0-0-2-3-x` (guitar, score 0.369)
  | data: ```vextab
  | data: 6/3 5/0 4/0 3/2 2/3
  | data: ```
  |
  | data: [DONE]
  |

== The same stream, read as the HTML standard says
event 1  routing  1 line(s)
event 2  text     10 line(s)
event 3  [DONE]   1 line(s)
"""


def event(data: str) -> bytes:
    return ("".join(f"data: {line}\n" for line in data.split("\n")) + "\n").encode()


@pytest.fixture
def lesson(place: Place) -> Tape:
    tape = Tape(
        pieces=(Piece(0.0532, event(ROUTING)), Piece(0.0533, event(VOICINGS)), Piece(0.0536, event("[DONE]"))),
        status=200,
        headers=(("Content-Type", "text/event-stream"),),
        request=ASKED,
        end="closed",
        ended_at=0.06,
    )
    save(tape, place.folder / "lesson.tape")
    return tape


def test_it_shows_the_lessons_stream_as_the_lesson_does(place: Place, lesson: Tape) -> None:
    done = place.run("show", "lesson.tape", "--no-times")
    assert (done.out.decode(), done.err, done.status) == (LESSON, "", 0)


def test_where_times_are_known_each_read_and_event_has_its_own(place: Place, lesson: Tape) -> None:
    lines = place.run("show", "lesson.tape").out.decode().splitlines()
    assert lines[2:5] == [
        '     53.2 ms  | data: {"type":"routing","agentId":"voicing",…',
        "              |",
        "     53.3 ms  | data: Found 2 voicings matching chord Cmaj7:",
    ]
    assert lines[-3:] == [
        "event 1  routing  1 line(s)        53.2 ms",
        "event 2  text     10 line(s)       53.3 ms",
        "event 3  [DONE]   1 line(s)        53.6 ms",
    ]


def test_width_cuts_lines_and_0_cuts_nothing(place: Place, lesson: Tape) -> None:
    cut = place.run("show", "lesson.tape", "--no-times", "--width", "20").out.decode().splitlines()
    assert cut[2:5] == ['  | data: {"type":"…', "  |", "  | data: Found 2 v…"]
    whole = place.run("show", "lesson.tape", "--no-times", "--width", "0").out.decode().splitlines()
    assert whole[2] == f"  | data: {ROUTING}"


def test_on_a_terminal_lines_are_cut_to_its_width_and_its_controls_are_pictures(place: Place) -> None:
    (place.folder / "x.sse").write_bytes(b"data: \x1b]0;owned\x07\xff\xc2\x9b1m " + b"x" * 200 + b"\n\n")
    with place.terminal("show", "x.sse") as terminal:
        seen = terminal.read_until("event 1")
        terminal.wait()
    assert "\x1b" not in seen and "\x07" not in seen and "\x9b" not in seen
    wire = next(line for line in seen.splitlines() if "data: " in line)
    assert wire.startswith("  | data: ␛]0;owned␇\\xff\\x9b1m xxx") and wire.endswith("x…")
    assert len(wire) == 100
    assert len(place.run("show", "x.sse").out.decode().splitlines()[1]) > 200, "in a pipe nothing is cut"


def test_what_the_standard_ignores_and_discards_is_said(place: Place) -> None:
    body = b": ping\n\nname: x\ndata: a\n\nid: 1\n\ndata: b\ndata: c\nda"
    tape = Tape(pieces=(Piece(None, body),), end="reset", ended_at=1.5)
    save(tape, place.folder / "x.tape")
    lines = place.run("show", "x.tape").out.decode().splitlines()
    assert lines[-10:] == [
        "    (the body ends here, without a line end)",
        "",
        "== The same stream, read as the HTML standard says",
        "event 1  text  1 line(s)",
        "ignored  comment        byte 0  : ping",
        "ignored  unknown-field  byte 8  name: x",
        "ignored  no-data        byte 31",
        'discarded  an event of 2 line(s) that no blank line ended: "b\\nc"',
        "discarded  2 bytes of a line that did not end: da",
        "ended  the connection broke after 1500.0 ms",
    ]


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        (b"<html>502</html>\n", "text/html", "no event: the response is text/html, not an event stream"),
        (b'{"text":"whole"}', "application/json", "no event: the response is application/json, not an event stream"),
        (b": ping\n\n", "text/event-stream", "no event\n"),
    ],
)
def test_what_is_no_event_stream_is_told_as_what_it_is(place: Place, body: bytes, kind: str, told: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: " + kind.encode() + b"\r\n\r\n"
    (place.folder / "x").write_bytes(head + body)
    out = place.run("show", "x").out.decode()
    assert told in out
    assert "html" not in kind or "discarded" not in out


def test_json_lines_are_read_line_by_line(place: Place) -> None:
    body = b'{"message":{"content":"Hi"},"done":false}\n{"done":true,"message":{}}\n'
    (place.folder / "x").write_bytes(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n" + body)
    shown = place.run("show", "x").out.decode()
    assert shown.endswith("== The same body, line by line\nline 1  text\nline 2  done\n")


def test_another_reader_shows_what_its_user_has(place: Place) -> None:
    (place.folder / "x.sse").write_bytes(b"data: a\ndata: b\n\ndata: [DONE]\n\n")
    shown = place.run("show", "x.sse", "--as", "chat-service").out.decode().partition("\n\n== ")[2]
    assert shown.startswith("The same stream, read by ga-client chatService\n")
    assert "text of 1 characters, as its user has it:\n  | a\n" in shown
    assert "what it does otherwise than the standard:\n" in shown
    text = place.run("show", "x.sse", "--as", "ga-text").out.decode()
    assert "text of 3 characters, as its user has it:\n  | a\n  | b\n" in text


def test_a_protocols_reader_shows_its_answer_events(place: Place) -> None:
    chunks = ('{"delta":{"content":"Hi"}}', '{"delta":{},"finish_reason":"stop"}')
    body = "".join(f'data: {{"choices":[{chunk}]}}\n\n' for chunk in chunks) + "data: [DONE]\n\n"
    (place.folder / "x.sse").write_text(body)
    shown = place.run("show", "x.sse", "--as", "openai").out.decode().partition("\n\n== ")[2].splitlines()
    assert shown[0] == "The same stream, read by motamot's reader of openai"
    assert [line.split(None, 3)[2] for line in shown if line.startswith("step ")][-2:] == ["text", "ended"]
    assert any(line.endswith('"Hi"') for line in shown)
    assert any('\\"outcome\\": \\"complete\\"' in line for line in shown)
    assert shown[-2:] == ["text of 2 characters, as its user has it:", "  | Hi"]


def test_every_reader_that_is_listed_reads(place: Place, lesson: Tape) -> None:
    names = [line.split()[0] for line in place.run("show", "--readers").out.decode().splitlines()]
    assert {"standard", "page", "chat-service", "motamot", "openai", "ga-text", "morceaux"} <= set(names)
    for name in ("page", "morceaux"):
        assert place.run("show", "lesson.tape", "--as", name).status == 0
    wrong = place.run("show", "lesson.tape", "--as", "nobody")
    assert wrong.status == 2
    assert all(name in wrong.err for name in names)


def test_as_json_lines_for_programs(place: Place, lesson: Tape) -> None:
    lines = [json.loads(line) for line in place.run("show", "lesson.tape", "--json").out.splitlines()]
    assert [line["kind"] for line in lines] == ["response", "event", "event", "event"]
    assert {name: lines[0][name] for name in ("status", "method", "url", "reads", "end", "ended_at_ms")} == {
        "status": 200,
        "method": "POST",
        "url": "http://localhost:5000/api/chatbot/chat/stream",
        "reads": 3,
        "end": "closed",
        "ended_at_ms": 60.0,
    }
    assert lines[2] == {
        "kind": "event",
        "number": 2,
        "is": "text",
        "event": "message",
        "id": "",
        "lines": 10,
        "at_ms": 53.3,
        "data": VOICINGS,
    }
    (place.folder / "x").write_bytes(b": c\nid: 1\ndata: a")
    lines = [json.loads(line) for line in place.run("show", "x", "--json").out.splitlines()[1:]]
    assert lines == [
        {"kind": "ignored", "why": "comment", "offset": 0, "line": ": c"},
        {"kind": "discarded", "data": "", "line": "data: a", "problem": None},
    ]
    lines = [json.loads(line) for line in place.run("show", "lesson.tape", "--json", "--as", "page").out.splitlines()]
    assert [line["kind"] for line in lines] == ["response", "step", "step", "step", "end"]
    assert lines[-1]["text"] == VOICINGS


def test_the_answers_of_a_har_are_shown_one_after_the_other_or_one_by_choice(place: Place) -> None:
    content = har(*(entry(f"data: {number}\n\n", url=f"https://x/chat/{number}") for number in range(1, 4)))
    (place.folder / "x.har").write_text(json.dumps(content))
    done = place.run("show", "x.har")
    heads = [line for line in done.out.decode().splitlines() if line.startswith("== POST")]
    assert heads == [f'== POST /chat/{number} "Hi"  ({number} of 3)' for number in range(1, 4)]
    assert done.err.count("A HAR holds no times of pieces") == 3
    for choice in ("2", "chat/2"):
        chosen = place.run("show", "x.har", "--select", choice).out.decode()
        assert chosen.startswith('== POST /chat/2 "Hi"\n') and "data: 2" in chosen and "data: 1" not in chosen
    assert "no answer number 9" in place.run("show", "x.har", "--select", "9").err


def test_it_reads_standard_input(place: Place) -> None:
    done = place.run("show", "-", stdin=b"data: x\n\n")
    assert done.out.decode().startswith("== -\n  | data: x\n  |\n\n== ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show",), "there is no recording: motamot show FILE"),
        (("show", "nowhere"), "the file nowhere cannot be read: No such file or directory"),
        (("show", "picture"), "picture: this is a picture (PNG)"),
        (("show", "nobody.har"), "without a body. In the browser's network tools keep the panel open"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence_and_status_2(place: Place, arguments: tuple[str, ...], told: str) -> None:
    (place.folder / "picture").write_bytes(b"\x89PNG\r\n\x1a\n")
    (place.folder / "nobody.har").write_text(json.dumps(har(entry(None, size=-1))))
    done = place.run(*arguments)
    assert (done.status, done.out) == (2, b"")
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_recording_whose_address_is_none_is_shown(place: Place) -> None:
    body = {"mimeType": "text/event-stream", "text": "data: x\n\n"}
    answer = {"status": 200, "headers": [{"name": "content-type", "value": body["mimeType"]}], "content": body}
    asked = {"method": "POST", "url": "http://[::1\x1b[2J", "headers": []}
    har = {"log": {"entries": [{"startedDateTime": "", "time": 1, "request": asked, "response": answer}]}}
    (place.folder / "lies.har").write_text(json.dumps(har))
    done = place.run("show", "lies.har")
    assert done.status == 0 and "== POST http://[::1␛[2J" in done.out.decode()


@pytest.mark.parametrize("command", ["show", "check"])
def test_nothing_of_the_json_is_obeyed_by_a_terminal_and_all_of_it_is_there(place: Place, command: str) -> None:
    hostile = "\x9b31m\x7f\u202e\u2066"
    chunk = {"choices": [{"index": 0, "delta": {"content": hostile}}]}
    stream = f"data: {json.dumps(chunk, ensure_ascii=False)}\n\nodd{hostile}: x\n\ndata: [DONE]\n\n"
    (place.folder / "x.sse").write_text(stream, "utf-8")
    out = place.run(command, "x.sse", "--json").out.decode()
    assert not {"\x9b", "\x7f", "\u202e", "\u2066"} & set(out)
    told = [json.loads(line) for line in out.splitlines()] if command == "show" else json.loads(out)
    assert hostile in json.dumps(told, ensure_ascii=False)


def test_a_reader_that_leaves_is_no_fault(place: Place) -> None:
    (place.folder / "x").write_bytes(b"data: x\n\n" * 100_000)
    shell = f"{shlex.join([*COMMAND, 'show', 'x'])} 2>errors | head -2; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=place.folder, env=place.environ, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == ["== x", "  | data: x", "141"]
    assert (place.folder / "errors").read_text() == ""
