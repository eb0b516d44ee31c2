"""`motamot check` of recordings: what it says, in which forms, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from motamot.exam.page_faults import PAGE_FAULTS
from motamot.findings.faults import FAULTS
from motamot.tape import Piece, Tape, save
from tests.cli.support import Done, Place

ROUTING = 'data: {"type":"routing","agentId":"x","confidence":1,"routingMethod":"k"}\n\n'
RAW = ROUTING + "data: Chords:\n- \x1b[31mAm\n\ndata: [DONE]\n\n"
GOOD = ROUTING + "data: Chords:\ndata: - Am\n\ndata: [DONE]\n\n"
EXPECTED = """\
raw.sse
  protocol   ga-text, raw text in `data:` lines, ended by `[DONE]`, as Guitar Alchemist's chatbot
             sends it (certain: the first event is a routing object)
  answer     114 bytes, 3 events, 1 delta, 7 characters of text
  ended      complete

  exact      lost
  live       not judged: the recording holds no times
  once       not judged: one recording shows one answer, not how often the model was asked
  stoppable  not judged: nothing in it shows what a stop does to the model
  accounted  not judged: what was booked is not on this wire
  safe       not judged: it shows the wire, not what a page makes of it

raw-line-break  must, exact: a line break in the text was not escaped
  seen       """


def chunks(*texts: str, finish: str | None = "stop") -> str:
    told: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]} for text in texts
    ]
    told.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    told.append({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})
    one = [{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk} for chunk in told]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in one) + "data: [DONE]\n\n"


def check(place: Place, content: str | bytes, *options: str, name: str = "raw.sse") -> Done:
    data = content.encode() if isinstance(content, str) else content
    (place.folder / name).write_bytes(data)
    return place.run("check", name, *options)


def told(done: Done) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.out)
    return document


def test_a_loss_is_told_with_evidence_harm_remedy_and_rule(place: Place) -> None:
    done = check(place, RAW)
    out = done.out.decode()
    assert (done.status, done.err) == (1, "")
    assert out.startswith(EXPECTED)
    fault = FAULTS["raw-line-break"]
    rest = " ".join(out.removeprefix(EXPECTED).split())
    assert "byte 89: - ␛[31mAm" in rest
    assert f"harm {fault.harm}" in rest
    assert f"remedy {fault.remedy}" in rest
    assert "<https://html.spec.whatwg.org/" in rest
    assert rest.endswith("lost: 1 finding (1 must)")
    assert all(len(line) <= 100 or "https://" in line for line in out.splitlines())


def test_no_control_character_of_a_stranger_reaches_a_terminal(place: Place) -> None:
    (place.folder / "raw.sse").write_text(RAW.replace("Am", "Am\x9b2J\u202e"))
    with place.terminal("check", "raw.sse") as terminal:
        assert terminal.wait() == 1
    ours = re.sub(r"\x1b\[\d{1,2}m", "", terminal.seen)
    assert "\x1b" not in ours
    assert "\x9b" not in ours
    assert "\u202e" not in ours
    assert "␛[31mAm" in ours
    assert "\x1b[31mlost\x1b[0m" in terminal.seen  # our own colours, on a terminal


def test_no_color_is_heard(place: Place) -> None:
    (place.folder / "raw.sse").write_text(GOOD)
    with place.terminal("check", "raw.sse", environ={"NO_COLOR": "1"}) as terminal:
        assert terminal.wait() == 0
    assert "\x1b" not in terminal.seen
    assert terminal.seen.rstrip().endswith("nothing lost")


def test_standard_input_is_a_recording(place: Place) -> None:
    done = place.run("check", "-", stdin=GOOD.encode())
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(b"standard input\n")


@pytest.mark.parametrize(
    ("head", "status"), [("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", 0), ("", 0)]
)
def test_what_curl_i_writes_is_a_recording(place: Place, head: str, status: int) -> None:
    done = check(place, head + GOOD, "--json")
    assert done.status == status
    assert told(done)["recordings"][0]["status"] == (200 if head else None)


def test_notes_are_no_loss(place: Place) -> None:
    done = check(place, chunks("Yes", " no").replace('"delta": {}, "finish', '"delta": {}, "x": 1, "finish'))
    assert done.status == 0
    noted = check(place, chunks("Yes", finish="done_so_far"))
    assert noted.status == 0
    assert b"nothing lost (1 note)" in noted.out


class TestJson:
    def test_it_says_all_that_the_text_does(self, place: Place) -> None:
        done = check(place, RAW, "--json")
        document = told(done)
        assert done.status == document["exit"] == 1
        assert (document["motamot"], document["version"]) == ("check", 1)
        assert document["counts"] == {"must": 1, "should": 0, "note": 0}
        [one] = document["recordings"]
        assert (one["name"], one["state"], one["problem"], one["protocol"]) == ("raw.sse", "lost", None, "ga-text")
        assert one["promises"]["exact"] == {"state": "lost", "why": None}
        assert one["promises"]["live"] == {"state": "not_judged", "why": "the recording holds no times"}
        [finding] = one["findings"]
        assert finding["id"] == "raw-line-break"
        assert finding["evidence"] == [{"offset": 89, "at": None, "quote": "- \x1b[31mAm"}]
        assert {"promise", "level", "title", "message", "times", "harm", "remedy", "clause"} <= set(finding)

    def test_what_cannot_be_read_is_told_there_too(self, place: Place) -> None:
        done = place.run("check", "nowhere.har", "--json")
        assert done.status == 2
        [one] = told(done)["recordings"]
        assert (one["state"], told(done)["exit"]) == ("not checked", 2)
        assert "cannot be read" in one["problem"]
        assert "cannot be read" in done.err


class TestJunit:
    def suites(self, place: Place) -> ET.Element:
        return ET.parse(place.folder / "out.xml").getroot()

    def test_each_promise_is_a_case(self, place: Place) -> None:
        done = check(place, RAW.replace("Am", "Am\x00\ufffe"), "--junit", "out.xml")
        assert done.status == 1
        assert b"raw-line-break" in done.out
        [suite] = self.suites(place)
        assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": "6",
            "failures": "1",
            "errors": "0",
            "skipped": "5",
        }
        failure = suite.find("testcase[@name='exact']/failure")
        assert failure is not None
        assert failure.get("type") == "raw-line-break"
        assert "byte 89" in str(failure.text)

    def test_what_is_kept_passes_and_what_cannot_be_checked_is_an_error(self, place: Place) -> None:
        check(place, chunks("Yes", " no"), "--junit", "out.xml")
        [suite] = self.suites(place)
        assert [len(case) for case in suite.findall("testcase[@name='exact']")] == [0]
        check(place, "<!doctype html>", "--junit", "out.xml", "--json")
        [suite] = self.suites(place)
        assert suite.get("errors") == "6"

    def test_a_file_that_cannot_be_written_is_said(self, place: Place) -> None:
        done = check(place, GOOD, "--junit", "nowhere/out.xml")
        assert (done.status, "--junit nowhere/out.xml cannot be written" in done.err) == (2, True)


class TestFiltering:
    CUT = chunks("Yes").replace("data: [DONE]\n\n", "").replace('"stop"', "null")

    def names(self, done: Done) -> list[str]:
        return [finding["id"] for finding in told(done)["recordings"][0]["findings"]]

    def test_only_and_ignore_choose_findings(self, place: Place) -> None:
        everything = self.names(check(place, self.CUT, "--json"))
        assert {"finish-missing", "done-missing"} <= set(everything)
        assert self.names(check(place, self.CUT, "--json", "--only", "done-missing")) == ["done-missing"]
        ignored = check(place, self.CUT, "--json", *(part for name in everything for part in ("--ignore", name)))
        assert (self.names(ignored), ignored.status) == ([], 0)
        exact = told(ignored)["recordings"][0]["promises"]["exact"]
        assert exact == {"state": "not_judged", "why": "what was found is left out of this report"}

    def test_a_name_that_no_finding_has_is_refused(self, place: Place) -> None:
        done = check(place, GOOD, "--ignore", "burst")
        assert (done.status, done.out) == (2, b"")
        assert "no finding is called 'burst': there is burst-delivery" in done.err

    def test_findings_of_pages_can_be_named(self, place: Place) -> None:
        assert check(place, GOOD, *(part for name in PAGE_FAULTS for part in ("--ignore", name))).status == 0


class TestWhole:
    def test_the_stream_is_equal_to_the_same_answer_as_json(self, place: Place) -> None:
        (place.folder / "whole.json").write_text(json.dumps({"naturalLanguageAnswer": "Chords:\r\n- Am"}))
        done = check(place, GOOD, "--whole", "whole.json")
        assert done.status == 0
        assert b"whole      13 characters (at naturalLanguageAnswer); the stream's text is equal to it: yes" in done.out

    def test_what_is_glued_is_found_where_the_wire_is_right(self, place: Place) -> None:
        (place.folder / "whole.json").write_text(json.dumps({"a": {"b": "Chords:\n- Am\n- F\n- G\n"}}))
        stream = ROUTING + "data: Chords:\ndata: - Am\n\ndata: - F\n\ndata: - G\n\ndata: [DONE]\n\n"
        done = check(place, stream, "--whole", "whole.json", "--whole-path", "a.b", "--json")
        [one] = told(done)["recordings"]
        assert (done.status, one["whole"]["equal"]) == (1, False)
        assert [finding["id"] for finding in one["findings"]] == ["whole-differs"]

    @pytest.mark.parametrize(
        ("document", "options", "words"),
        [
            ('{"x": {"y": "z"}}', (), "texts there: x.y"),
            ('{"text": "z"}', ("--whole-path", "a.b"), "no text at 'a.b'"),
            ("<html>", (), "an HTML page"),
        ],
    )
    def test_a_document_without_the_answer_is_refused(
        self, place: Place, document: str, options: tuple[str, ...], words: str
    ) -> None:
        (place.folder / "whole.json").write_text(document)
        done = check(place, GOOD, "--whole", "whole.json", *options)
        assert (done.status, words in done.err) == (2, True), done.err


def har(*bodies: tuple[str, str, str | None]) -> str:
    """A HAR with an entry for each (address, content type, body)."""
    entries = [
        {
            "startedDateTime": "2026-11-29T12:00:00.000Z",
            "time": 5.0,
            "request": {"method": "POST", "url": url, "headers": [], "httpVersion": "http/1.1"},
            "response": {
                "status": 200,
                "statusText": "OK",
                "httpVersion": "http/1.1",
                "headers": [
                    {"name": "Content-Type", "value": kind},
                    {"name": "Cache-Control", "value": "no-cache, no-transform"},
                    {"name": "X-Accel-Buffering", "value": "no"},
                ],
                "content": {"size": -1, "mimeType": kind}
                if body is None
                else {"size": len(body), "mimeType": kind, "text": body},
            },
            "timings": {"send": 0, "wait": 1, "receive": 4},
        }
        for url, kind, body in bodies
    ]
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": entries}})


class TestHar:
    GOOD = ("http://h/api/chatbot/chat/stream", "text/event-stream", GOOD)
    BAD = ("http://h/api/chatbot/chat/stream?2", "text/event-stream", RAW)
    WHOLE = ("http://h/api/chatbot/chat", "application/json", '{"naturalLanguageAnswer": "Chords:"}')
    EMPTY = ("http://h/api/chatbot/chat/stream?3", "text/event-stream", None)

    def test_each_answer_is_reported_and_summed_up(self, place: Place) -> None:
        done = check(place, har(self.GOOD, self.BAD, self.WHOLE), name="a.har")
        out = done.out.decode()
        assert done.status == 1
        assert "answer 1 of 3: POST http://h/api/chatbot/chat/stream\n" in out
        assert "answer 2 of 3: POST http://h/api/chatbot/chat/stream?2\n" in out
        assert out.endswith("1 of 3 lost something: 1 finding (1 must); 1 without a stream\n")

    def test_a_json_answer_beside_streams_is_no_failure(self, place: Place) -> None:
        done = check(place, har(self.GOOD, self.WHOLE), name="a.har")
        assert done.status == 0
        assert done.out.decode().endswith("nothing lost in 1 stream; 1 without a stream\n")

    def test_one_can_be_selected(self, place: Place) -> None:
        archive = har(self.GOOD, self.BAD)
        assert check(place, archive, "--select", "1", name="a.har").status == 0
        assert check(place, archive, "--select", "stream?2", name="a.har").status == 1
        refused = check(place, archive, "--select", "7", name="a.har")
        assert (refused.status, "no answer number 7" in refused.err) == (2, True)

    def test_a_stream_without_its_body_says_how_to_get_it(self, place: Place) -> None:
        done = check(place, har(self.GOOD, self.EMPTY), name="a.har")
        assert done.status == 2
        said = " ".join((done.out.decode() + done.err).split())
        assert "1 could not be checked" in said
        assert "export" in said


class TestCutFiles:
    """What is missing because the file was cut is not laid to the server."""

    TEXT = ROUTING + "".join(f"data: piece {number} \n\n" for number in range(50)) + "data: [DONE]\n\n"

    def judged(self, place: Place, content: bytes, name: str) -> dict[str, Any]:
        done = check(place, content, "--json", name=name)
        [one] = told(done)["recordings"]
        assert (done.status, one["state"], one["promises"]["exact"]["state"]) == (0, "nothing lost", "not_judged")
        assert 0 < one["text_characters"] < 450
        found: dict[str, Any] = one
        return found

    def test_a_cut_har_is_checked_as_far_as_it_goes(self, place: Place) -> None:
        archive = har(("http://h/api/chatbot/chat/stream", "text/event-stream", self.TEXT)).encode()
        one = self.judged(place, archive[: archive.index(b"piece 30")], "a.har")
        assert "The HAR was cut at byte" in " ".join(one["notes"])

    def test_the_answers_before_the_place_where_a_har_was_cut_are_whole(self, place: Place) -> None:
        begin = self.TEXT[: self.TEXT.index("piece 30")]
        kind = "text/event-stream"
        archive = har(("http://h/chat", kind, self.TEXT), ("http://h/chat", kind, begin), ("http://h/x", kind, GOOD))
        done = check(place, archive[: archive.index("http://h/x")], "--json", name="a.har")
        whole, broken = told(done)["recordings"]
        assert (done.status, whole["state"], broken["state"]) == (1, "nothing lost", "lost")
        assert "The HAR was cut at byte" in " ".join(whole["notes"])
        assert "missing-terminal-event" in [finding["id"] for finding in broken["findings"]]

    def test_a_cut_tape_is_checked_as_far_as_it_goes(self, place: Place) -> None:
        tape = Tape(
            pieces=tuple(Piece(0.1 * number, line.encode()) for number, line in enumerate(self.TEXT.splitlines(True))),
            status=200,
            headers=(("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache, no-transform")),
            end="closed",
            ended_at=20.0,
        )
        save(tape, place.folder / "whole.tape")
        content = (place.folder / "whole.tape").read_bytes()
        one = self.judged(place, content[: content.index(b"piece 30") + 3], "a.tape")
        assert "The tape was cut" in " ".join(one["notes"])

    def test_a_raw_stream_that_stops_has_lost_its_end(self, place: Place) -> None:
        done = check(place, self.TEXT[: self.TEXT.index("piece 30")], "--json")
        assert (done.status, told(done)["recordings"][0]["state"]) == (1, "lost")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("<!doctype html><title>A shop</title>", "an HTML page ('A shop')"),
        ('<html><title>Welcome</title><input type="password">', "wants a login"),
        ('{"choices": [], "object": "chat.completion"}', 'ask with "stream": true'),
        ('{"error": {"message": "no such model"}}', "a JSON error: no such model"),
        ("Dear reader,\nthis is a letter.", "plain text, beginning 'Dear reader,'"),
        ("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "this is no text"),
        ("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n\r\n", "-H 'Authorization: Bearer …'"),
        ("HTTP/1.1 302 Found\r\nLocation: /login?next=/chat\r\nContent-Length: 0\r\n\r\n", "it wants a login"),
        ("HTTP/1.1 302 Found\r\nLocation: http://[h\r\nContent-Length: 0\r\n\r\n", "sends to http://[h"),
        ("HTTP/1.1 308 Permanent\r\nLocation: https://h/chat\r\nContent-Length: 0\r\n\r\n", "sends to https://h/chat"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", "the body ended before anything came"),
        ('HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\n\r\n{"title":"Boom"}', "answered 500: Boom"),
    ],
)
def test_what_is_no_stream_is_named_and_the_way_out(place: Place, content: str, words: str) -> None:
    done = check(place, content)
    said = " ".join((done.out.decode() + done.err).split())
    assert (done.status, words in said) == (2, True), said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say what to check"),
        (("a", "--page", "http://h/"), "one of them"),
        (("a", "--send", "hi"), "--send is for --page"),
        (("--page", "http://h/", "--whole", "x"), "--whole is not for --page"),
        (("--page", "http://h/", "--into", "#x"), "give --send TEXT too"),
        (("a.har", "--message", "hi"), "a recording is not asked"),
        (("a.har", "--whole-path", "x"), "give --whole too"),
        (("http://h/x", "-m", "a", "-d", "b"), "choose one"),
        (("http://h/x", "-d", "@nowhere"), "the file nowhere cannot be read"),
        (("http://h/x", "-H", "nonsense"), "'Name: value'"),
        (("http://h/x", "-H", "@nowhere"), "the file nowhere cannot be read"),
        (("http://h/x", "-H", "A: b\nC: d", "-d", "x"), "is no header"),
        (("http://h/x", "-m", "a"), "give the body with -d"),
        (("localhost:8000/api/chat/stream",), "begins with http://"),
        (("nowhere.sse",), "No such file"),
        (("http://[h/x", "-d", "hi"), "is no address"),
        (("http://[h/x", "-m", "hi"), "give the body with -d"),
        (("--page", "localhost:8000", "--send", "hi"), "begins with http://"),
        (("a.har", "--protocol", "smtp"), "there is no protocol 'smtp'"),
    ],
)
def test_bad_input_gets_a_sentence_and_nothing_is_asked(place: Place, arguments: tuple[str, ...], words: str) -> None:
    (place.folder / "a.har").write_text(har(TestHar.GOOD))
    done = place.run("check", *arguments)
    assert (done.status, done.out, words in done.err) == (2, b"", True), done.err


def test_every_case_of_the_shared_file_can_be_checked(place: Place) -> None:
    cases = Path(__file__).parent.parent / "data" / "cases.jsonl"
    streams = [json.loads(line) for line in cases.read_text().splitlines()]
    bodies = [
        case["given"]["text"] for case in streams if "text" in case["given"] and case["given"]["type"] == "stream"
    ]
    entries = [("http://h/chat", "text/event-stream", body) for body in bodies if "\udc00" not in body][:60]
    assert len(entries) > 20
    done = check(place, har(*entries), "--json", name="a.har")
    assert done.status == 1
    assert len(told(done)["recordings"]) == len(entries)
