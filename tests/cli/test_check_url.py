"""`motamot check URL`: asked once over a real socket. Our own server loses nothing, faulty ones do."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done, Place
from tests.exam.support import ANSWER, Bot, Wire, bot, writes
from tests.server.support import V1_KEY, serving

DONE = b"data: [DONE]\n\n"
ROUTING = writes('{"type":"routing","agentId":"x","confidence":1,"routingMethod":"k"}')
OPENAI = ("--model", "default", "-H", f"Authorization: Bearer {V1_KEY}")
TEXT = [ROUTING, *(writes(piece) for piece in re.findall(r"\S+\s*", ANSWER)), DONE]
HARD = "Déjà vu — “quoted”\n\n- one\n- two\n\n```\nx = {}\n```\ndata: [DONE] is no end 😀👍🏽\n"


def names(done: Done) -> list[str]:
    return [finding["id"] for finding in recording(done)["findings"] if finding["level"] != "note"]


def recording(done: Done) -> dict[str, Any]:
    [one] = json.loads(done.out)["recordings"]
    found: dict[str, Any] = one
    return found


def checked(place: Place, wire: Wire, *options: str, whole: str | None = None) -> tuple[Done, Bot]:
    """Check a little server at its stream, asked in ga-text."""

    async def run() -> tuple[Done, Bot]:
        async with bot(wire, whole=whole) as served:
            given = [option.replace("URL", served.url) for option in options]
            arguments = ("check", f"{served.url}/stream", "-m", "hello", "--protocol", "ga-text", "--json", *given)
            return await asyncio.to_thread(place.run, *arguments), served

    return asyncio.run(run())


class TestOurOwnServer:
    @pytest.mark.parametrize(
        ("path", "options", "whole"),
        [
            ("/api/chat/stream", (), "/api/chat"),
            ("/api/chatbot/chat/stream", (), "/api/chatbot/chat"),
            ("/flux", (), "/api/chat"),
            (
                "/v1/chat/completions",
                ("--model", "default", "-H", f"Authorization: Bearer {V1_KEY}"),
                "/v1/chat/completions",
            ),
            ("/api/ui-message", (), "/api/chat"),
            ("/api/ag-ui", (), "/api/chat"),
        ],
    )
    @pytest.mark.parametrize("text", [ANSWER, HARD], ids=["a list", "hard"])
    def test_nothing_is_lost_on_any_protocol(
        self, place: Place, tmp_path: Path, path: str, options: tuple[str, ...], whole: str, text: str
    ) -> None:
        say = {"say": re.findall(r"\S+\s*|\s+", text), "pace": "60ms"}
        script = [say, {"usage": {"prompt": 5, "completion": 9}}]

        async def run() -> tuple[Done, int]:
            async with serving(tmp_path, [script, script]) as served:
                url, same = f"{served.url}{path}", f"{served.url}{whole}"
                arguments = ("check", url, "-m", "hello", "--whole", same, "--json", *options)
                return await asyncio.to_thread(place.run, *arguments), len(served.model.requests)

        done, asked = asyncio.run(run())
        assert (done.status, done.err) == (0, ""), done.out
        one = recording(done)
        assert (one["findings"], one["state"]) == ([], "nothing lost")
        assert one["promises"]["live"]["state"] == one["promises"]["exact"]["state"] == "kept"
        assert one["whole"]["equal"] is True
        assert asked == 2  # one for the stream, one for the whole answer

    def test_without_its_key_the_header_to_give_is_named(self, place: Place, tmp_path: Path) -> None:
        async def run() -> Done:
            async with serving(tmp_path, []) as served:
                url = f"{served.url}/v1/chat/completions"
                return await asyncio.to_thread(place.run, "check", url, "-m", "hello", "--model", "default")

        done = asyncio.run(run())
        assert done.status == 2
        assert b"-H 'Authorization: Bearer" in done.out


class TestFaultyServers:
    def test_a_right_one_is_asked_once_and_loses_nothing(self, place: Place) -> None:
        done, served = checked(place, Wire(TEXT, every=0.02))
        assert (names(done), done.status) == ([], 0)
        assert served.requests == [("POST", "/stream", b'{"message": "hello"}')]
        assert recording(done)["promises"]["live"]["state"] == "kept"

    @pytest.mark.parametrize(
        ("wire", "name"),
        [
            (Wire([ROUTING, f"data: {ANSWER}\n\n".encode(), DONE]), "raw-line-break"),
            (Wire([ROUTING, writes(ANSWER), b"data: half a sen"]), "unterminated-last-event"),
            (Wire([ROUTING, writes("It left"), writes(" the ware")], every=0.05, reset=True), "missing-terminal-event"),
            (Wire([ROUTING, writes("It left"), writes('{"error":"No model."}')], every=0.05), "error-as-text"),
            (Wire(TEXT, content_type="application/json"), "not-an-event-stream"),
            (Wire([]), "empty-stream"),
            (Wire([ROUTING, b"".join(TEXT[1:])], every=2.0), "burst-delivery"),
            (Wire([ROUTING, "data: na\ufffdve\n\n".encode(), DONE]), "replacement-character"),
        ],
        ids=[
            "raw newlines",
            "cut in an event",
            "reset",
            "error as 200",
            "wrong type",
            "nothing",
            "buffered",
            "broken characters",
        ],
    )
    def test_each_fault_is_found_over_a_socket(self, place: Place, wire: Wire, name: str) -> None:
        done, served = checked(place, wire)
        assert done.status == 1, done.out
        assert name in names(done)
        assert served.asked == 1

    def test_glued_pieces_show_beside_the_whole_answer(self, place: Place) -> None:
        glued = [ROUTING, *(writes(piece) for piece in re.split(r"(?<=[.!?])\s+", ANSWER)), DONE]
        done, served = checked(place, Wire(glued), "--whole", "URL/whole", whole=ANSWER)
        assert sorted(names(done)) == ["glued-pieces", "whole-differs"]
        assert recording(done)["whole"]["equal"] is False
        assert [path for _, path, _ in served.requests] == ["/stream", "/whole"]
        assert served.requests[1][2] == served.requests[0][2]

    @pytest.mark.parametrize(
        ("wire", "words"),
        [
            (Wire([b'{"error":"busy"}'], content_type="application/json", status="503 Busy"), "answered 503: busy"),
            (Wire([b'{"text":"Hi."}'], content_type="application/json"), "one JSON document, the whole answer at once"),
            (Wire([b"\x89PNG\r\n\x1a\n\0\0"], content_type="image/png"), "binary data"),
            (Wire([b"<!doctype html><title>Shop</title>"], content_type="text/html"), "an HTML page ('Shop')"),
        ],
    )
    def test_what_is_no_stream_is_named(self, place: Place, wire: Wire, words: str) -> None:
        done, _ = checked(place, wire)
        assert done.status == 2
        assert words in recording(done)["problem"]

    def test_a_body_and_headers_go_as_they_are_given(self, place: Place) -> None:
        (place.folder / "body.json").write_text('{"prompt": "où ?"}')
        (place.folder / "key.txt").write_text("Authorization: Bearer sk-1\n\nX-A: b\n")

        async def run() -> tuple[Done, Bot]:
            async with bot(Wire(TEXT)) as served:
                url = f"{served.url}/stream"
                return await asyncio.to_thread(place.run, "check", url, "-d", "@body.json", "-H", "@key.txt"), served

        done, served = asyncio.run(run())
        assert done.status == 0, done.out
        assert served.requests == [("POST", "/stream", '{"prompt": "où ?"}'.encode())]
        assert "Authorization: Bearer sk-1\r\nX-A: b\r\n" in served.heads[0]

    def test_a_key_in_a_header_is_shown_nowhere(self, place: Place) -> None:
        done, _ = checked(place, Wire(TEXT), "-H", "Authorization: Bearer sk-very-secret")
        assert b"sk-very-secret" not in done.out


@pytest.mark.parametrize("stopped", [False, True], ids=["by time", "by Ctrl-C"])
def test_an_answer_that_does_not_end_is_left_and_what_came_is_checked(place: Place, stopped: bool) -> None:
    endless = Wire([ROUTING, *(writes(f"word{number} ") for number in range(400))], every=0.1)

    async def run() -> Done:
        async with bot(endless) as served:
            options = () if stopped else ("--timeout", "2")
            arguments = ("check", f"{served.url}/stream", "-m", "hi", "--protocol", "ga-text", "--json", *options)

            def go() -> Done:
                with place.start(*arguments) as running:
                    if stopped:
                        while not served.asked:
                            time.sleep(0.05)
                        time.sleep(1.5)
                        running.signal(signal.SIGINT)
                    return running.wait(20)

            return await asyncio.to_thread(go)

    done = asyncio.run(run())
    one = recording(done)
    assert (one["end"], one["protocol"]) == ("left", "ga-text")
    assert one["text_characters"] > 20
    assert "missing-terminal-event" not in names(done)
    assert done.status == (0 if stopped else 2), done.out
