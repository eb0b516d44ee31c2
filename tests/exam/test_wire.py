"""The browser's network events put together to tapes, in every order in which they may come."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from motamot.exam import wire as module
from motamot.exam.wire import Stream, Wire, asks_anew
from motamot.tape import Request, Tape

BODY = "data: café\n\n".encode()


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Browser:
    """What the browser says to the two commands, and the events it sends."""

    def __init__(self, *, buffered: bytes | None = b"", body: dict[str, Any] | None = None) -> None:
        self.streams: list[Stream] = []
        self.buffered = buffered
        self.body = body
        self.wire = Wire(self.send, self.streams)

    async def send(self, method: str, given: dict[str, Any]) -> Mapping[str, Any]:
        if method == "Network.streamResourceContent" and self.buffered is not None:
            return {"bufferedData": coded(self.buffered)}
        if method == "Network.getResponseBody" and self.body is not None:
            return self.body
        raise RuntimeError("no such resource")

    def asked(self, *, method: str = "POST", kind: str = "Fetch", at: float = 100.0, number: str = "1") -> None:
        request = {"method": method, "url": "http://h/chat", "headers": {"Authorization": "Bearer s", "X": "y"}}
        event = {"requestId": number, "type": kind, "request": request, "wallTime": 1_000.0, "timestamp": at}
        self.wire.request_will_be_sent(event)

    def answered(self, media: str = "text/event-stream", *, at: float = 100.5, number: str = "1") -> None:
        response = {"status": 200, "headers": {"Content-Type": media, "Set-Cookie": "s=1"}, "mimeType": media}
        asyncio.run(self.wire.response_received({"requestId": number, "response": response, "timestamp": at}))

    def data(self, data: bytes, *, told: bool = True, at: float = 101.0, number: str = "1") -> None:
        event: dict[str, Any] = {"requestId": number, "dataLength": len(data), "timestamp": at}
        if told:
            event["data"] = coded(data)
        self.wire.data_received(event)

    def finished(self, at: float = 102.0, number: str = "1") -> None:
        asyncio.run(self.wire.loading_finished({"requestId": number, "timestamp": at}))

    @property
    def tape(self) -> Tape:
        [stream] = self.streams
        return stream.tape()


def test_reads_have_their_bytes_and_times_and_the_end_is_told() -> None:
    browser = Browser()
    browser.asked()
    browser.answered()
    browser.data(BODY[:5])
    browser.data(BODY[5:], at=101.25)
    browser.finished()
    tape = browser.tape
    assert [(piece.at, piece.data) for piece in tape.pieces] == [(1.0, BODY[:5]), (1.25, BODY[5:])]
    assert (tape.status, tape.end, tape.head_at, tape.ended_at, tape.source) == (200, "closed", 0.5, 2.0, "live")


def test_what_came_before_it_was_asked_for_is_cut_at_its_reads() -> None:
    browser = Browser(buffered=BODY)
    browser.asked()
    browser.data(BODY[:4], told=False)
    browser.data(BODY[4:], told=False, at=101.5)
    browser.answered()
    assert [(piece.at, piece.data) for piece in browser.tape.pieces] == [(1.0, BODY[:4]), (1.5, BODY[4:])]


def test_bytes_that_are_told_before_their_read_wait_for_it() -> None:
    browser = Browser(buffered=BODY)
    browser.asked()
    browser.answered()
    browser.data(BODY[:4], told=False)
    browser.data(BODY[4:], told=False)
    assert browser.tape.body == BODY


@pytest.mark.parametrize(
    "body",
    [
        {"body": coded(BODY), "base64Encoded": True},
        {"body": BODY.decode("utf-8"), "base64Encoded": False},
        {"body": BODY.decode("windows-1252"), "base64Encoded": False},  # Chromium, where no charset is named
    ],
    ids=["base64", "utf-8", "windows-1252"],
)
def test_a_body_that_had_ended_by_then_is_fetched_whole(body: dict[str, Any]) -> None:
    browser = Browser(buffered=None, body=body)
    browser.asked()
    browser.data(BODY[:7], told=False)
    browser.data(BODY[7:], told=False)
    browser.answered()
    browser.finished()
    assert (browser.tape.body, browser.tape.notes) == (BODY, ())


def test_bytes_that_the_browser_did_not_keep_are_noted() -> None:
    browser = Browser(buffered=None)
    browser.asked()
    browser.data(BODY, told=False)
    browser.answered()
    browser.finished()
    assert browser.tape.body == b""
    assert "did not keep these bytes" in browser.tape.notes[0]


@pytest.mark.parametrize(("canceled", "end"), [(True, "left"), (False, "reset")])
def test_a_page_that_leaves_and_a_connection_that_breaks_are_told_apart(canceled: bool, end: str) -> None:
    browser = Browser()
    browser.asked()
    browser.answered()
    browser.data(BODY)
    event = {"requestId": "1", "timestamp": 103.0, "canceled": canceled, "errorText": "net::ERR_FAILED"}
    browser.wire.loading_failed(event)
    assert (browser.tape.end, browser.tape.ended_at) == (end, 3.0)


def test_no_secret_is_kept() -> None:
    browser = Browser()
    browser.asked()
    browser.answered()
    assert browser.tape.request is not None
    assert dict(browser.tape.request.headers) == {"Authorization": "[removed]", "X": "y"}
    assert browser.tape.header("set-cookie") == "[removed]"


@pytest.mark.parametrize(
    ("kind", "method", "media", "kept", "streams"),
    [
        ("Fetch", "POST", "text/event-stream", True, True),
        ("EventSource", "GET", "text/event-stream", True, True),
        ("XHR", "POST", "application/x-ndjson", True, True),
        ("Fetch", "POST", "application/json", True, False),
        ("Fetch", "GET", "application/json", False, False),
        ("Fetch", "POST", "image/png", False, False),
        ("Document", "GET", "text/html", False, False),
    ],
)
def test_what_may_be_an_answer_is_kept(kind: str, method: str, media: str, kept: bool, streams: bool) -> None:
    browser = Browser()
    browser.asked(kind=kind, method=method)
    browser.answered(media)
    assert bool(browser.streams) == kept
    assert [stream.streams for stream in browser.streams] == [streams] * kept


def test_a_redirected_request_is_one() -> None:
    browser = Browser()
    browser.asked()
    browser.asked(at=100.2)
    browser.answered()
    assert len(browser.streams) == 1


def test_nothing_grows_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STREAM_BYTES", 2 << 20)
    monkeypatch.setattr(module, "STREAMS", 2)
    browser = Browser()
    for number in range(5):
        browser.asked(number=str(number))
    assert len(browser.streams) == 2
    browser.answered(number="0")
    for _ in range(5):
        browser.data(b"x" * (1 << 20), number="0")
    tape = browser.streams[0].tape()
    assert len(tape.body) == 2 << 20
    assert tape.notes == ("more than 2 MiB came: the rest was not kept",)


def test_a_page_of_many_responses_is_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VISIT_BYTES", 5 << 20)
    monkeypatch.setattr(module, "STREAM_BYTES", 2 << 20)
    browser = Browser()
    for number in range(4):
        browser.asked(number=str(number))
        browser.answered(number=str(number))
        for _ in range(2):
            browser.data(b"x" * (1 << 20), number=str(number))
    assert [len(stream.tape().body) >> 20 for stream in browser.streams] == [2, 2, 1, 0]
    assert [stream.notes for stream in browser.streams[1:]] == [
        [],
        *[["more than 5 MiB came in all: the rest was not kept"]] * 2,
    ]


def test_events_of_what_is_not_known_are_passed_over() -> None:
    browser = Browser()
    browser.data(BODY, number="9")
    browser.answered(number="9")
    browser.finished(number="9")
    browser.wire.loading_failed({"requestId": "9", "timestamp": 1.0})
    assert browser.streams == []


@pytest.mark.parametrize(
    ("headers", "status", "end", "anew"),
    [
        ({}, 200, "closed", True),
        ({}, 200, "left", True),
        ({}, None, "left", True),  # given up before the head: the server may have begun
        ({"Last-Event-ID": "x.7"}, 200, "closed", False),
        ({}, 204, "closed", False),
        ({}, None, "reset", False),
    ],
)
def test_what_comes_back_for_the_rest_asks_nothing_anew(
    headers: dict[str, str], status: int | None, end: str, anew: bool
) -> None:
    asked = Request(url="http://h/flux", headers=tuple(headers.items()))
    assert asks_anew(Stream(asked, 1_000.0, "EventSource", 1.0, status=status, end=end)) == anew


def test_of_many_requests_those_that_are_over_make_room_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may tell its server of each key that is pressed."""
    monkeypatch.setattr(module, "STREAMS", 20)
    browser = Browser()
    for number in range(50):
        browser.asked(number=f"key {number}", at=100.0 + number)
        browser.answered("application/json", number=f"key {number}", at=100.1 + number)
        browser.finished(number=f"key {number}", at=100.2 + number)
    browser.asked(number="chat", at=160.0)
    browser.answered(number="chat", at=160.1)
    browser.data(BODY, number="chat", at=160.2)
    assert len(browser.streams) == 20
    assert browser.streams[-1].tape().body == BODY
