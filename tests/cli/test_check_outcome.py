"""`motamot check` of what failed, broke off, or holds no answer: never "nothing lost"."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from motamot.tape import Piece, Tape, save
from tests.cli.support import Done, Place
from tests.exam.support import Wire, bot, writes

ROUTING = 'data: {"type":"routing","agentId":"x","confidence":1,"routingMethod":"k"}\n\n'


def events(*values: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


CHUNK = events({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]})
NATIVE = events({"type": "text", "text": "Hi"})
UI = events({"type": "start"}, {"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "Hi"})
AG_UI = events(
    {"type": "RUN_STARTED", "threadId": "a", "runId": "b"},
    {"type": "TEXT_MESSAGE_START", "messageId": "1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": "Hi"},
)
MORCEAUX = 'id: x:1\ndata: {"morceau":""}\n\nid: x:2\ndata: {"morceau":"Hi"}\n\n'
FAILED = events({"type": "ended", "outcome": "failed", "code": "upstream_error", "message": "No model."})


def check(place: Place, content: str | bytes, *options: str, name: str = "a.sse") -> Done:
    (place.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return place.run("check", name, *options)


def recording(done: Done) -> dict[str, Any]:
    [one] = json.loads(done.out)["recordings"]
    found: dict[str, Any] = one
    return found


class TestAFailedAnswer:
    @pytest.mark.parametrize(
        ("stream", "failed"),
        [
            (NATIVE + FAILED, "upstream_error: No model."),
            (FAILED, "upstream_error: No model."),
            (UI + events({"type": "error", "errorText": "Boom"}) + "data: [DONE]\n\n", "Boom"),
            (AG_UI + events({"type": "RUN_ERROR", "code": "c", "message": "Boom"}), "c: Boom"),
            (MORCEAUX + 'event: erreur\ndata: {"code":"c","message":"Boom"}\n\n', "c: Boom"),
        ],
        ids=["motamot", "motamot, before any text", "ui-message", "ag-ui", "morceaux"],
    )
    def test_that_says_so_is_no_loss_and_nothing_could_be_checked(self, place: Place, stream: str, failed: str) -> None:
        done = check(place, stream, "--json")
        one = recording(done)
        assert (done.status, one["state"], one["failed"], one["findings"]) == (2, "not checked", failed, [])
        assert one["problem"].startswith(f"the answer failed ({failed}): ask again")
        assert one["promises"]["exact"] == {"state": "not_judged", "why": one["problem"]}
        out = check(place, stream).out.decode()
        assert f"\n  ended      failed ({failed})\n" in out
        assert "  not checked: the answer failed" in out
        assert "nothing lost" not in out

    @pytest.mark.parametrize(
        ("stream", "failed"),
        [
            (
                CHUNK + events({"error": {"message": "Boom", "type": "server_error", "code": None}}),
                "server_error: Boom",
            ),
            (events({"delta": "Hi"}, {"error": "Boom"}), "Boom"),
            ('{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n{"error":"Boom"}\n', "Boom"),
        ],
        ids=["openai", "of no known kind", "ollama"],
    )
    def test_of_a_model_is_told_beside_the_finding_of_its_wire(self, place: Place, stream: str, failed: str) -> None:
        done = check(place, stream, "--json")
        one = recording(done)
        assert (done.status, one["state"], one["failed"]) == (1, "lost", failed)
        assert {"error-in-stream", "error-as-text"} & {finding["id"] for finding in one["findings"]}
        ignored = check(place, stream, *(f"--ignore={finding['id']}" for finding in one["findings"]))
        assert (ignored.status, b"ask again" in ignored.out) == (2, True)

    def test_is_one_error_in_junit(self, place: Place) -> None:
        check(place, NATIVE + FAILED, "--junit", "out.xml")
        [suite] = ET.parse(place.folder / "out.xml").getroot()
        assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
        error = suite.find("testcase[@name='exact']/error")
        assert error is not None
        assert "ask again" in str(error.get("message"))

    def test_does_not_hide_what_was_lost_in_it(self, place: Place) -> None:
        done = check(place, NATIVE.replace("Hi", "na\ufffdve") + FAILED, "--json")
        assert (done.status, recording(done)["failed"]) == (1, "upstream_error: No model.")

    def test_brings_no_control_character_to_a_terminal(self, place: Place) -> None:
        stream = NATIVE + FAILED.replace("No model", "\\u001b[31mNo\\u202e")
        done = check(place, stream)
        assert (done.status, b"\x1b" in done.out, "\u202e" in done.out.decode()) == (2, False, False)


@pytest.mark.parametrize(
    ("end", "word"),
    [
        ({"type": "ended", "outcome": "complete"}, "complete"),
        ({"type": "ended", "outcome": "truncated"}, "truncated"),
        ({"type": "ended", "outcome": "stopped", "by": "visitor"}, "stopped"),
    ],
)
def test_the_word_of_the_end_is_told(place: Place, end: dict[str, Any], word: str) -> None:
    done = check(place, NATIVE + events(end))
    assert f"\n  ended      {word}\n" in done.out.decode()
    assert done.status == 0


class TestNothingToRead:
    @pytest.mark.parametrize(
        "stream",
        [
            events({"foo": 1}, {"foo": 2}),
            "\n\n",
            NATIVE.replace("text", "texte") + events({"type": "ended", "outcome": "complete"}),
        ],
        ids=["events of no kind", "blank lines", "an end alone"],
    )
    def test_a_stream_without_text_is_not_checked(self, place: Place, stream: str) -> None:
        done = check(place, stream, "--json")
        one = recording(done)
        assert (done.status, one["state"], one["text_characters"]) == (2, "not checked", 0)
        assert one["problem"].startswith("no text was found in ")
        assert one["promises"]["exact"]["state"] == "not_judged"

    def test_a_call_of_a_tool_is_an_answer(self, place: Place) -> None:
        call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        stream = events(
            {**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            {**head, **usage},
        )
        done = check(place, stream + "data: [DONE]\n\n", "--json")
        assert (done.status, recording(done)["promises"]["exact"]["state"]) == (0, "kept")

    @pytest.mark.parametrize("stdin", [b"", b"\n"])
    def test_an_empty_standard_input_is_not_checked(self, place: Place, stdin: bytes) -> None:
        done = place.run("check", "-", stdin=stdin)
        assert (done.status, b"nothing lost" in done.out) == (2, False)
        assert "nothing was recorded" in done.err or b"no text was found" in done.out

    def test_an_event_too_large_ends_the_reading_and_the_check(self, place: Place) -> None:
        done = check(place, f"{ROUTING}data: Hi\n\ndata: {'a' * 4_200_000}\n\ndata: [DONE]\n\n", "--json")
        one = recording(done)
        assert (done.status, one["state"], one["text_characters"]) == (2, "not checked", 2)
        assert one["problem"].startswith("it was read up to there only: an event from byte 85 on")

    def test_a_connection_that_broke_before_any_end_is_not_checked(self, place: Place) -> None:
        pieces = tuple(Piece(0.1 * number, f"word{number} ".encode()) for number in range(9))
        headers = (("Content-Type", "text/plain"),)
        tape = Tape(pieces=pieces, status=200, headers=headers, end="reset", ended_at=1.0, source="own")
        save(tape, place.folder / "a.tape")
        done = place.run("check", "a.tape", "--protocol", "text", "--json")
        assert done.status != 0, done.out
        assert recording(done)["state"] != "nothing lost"


class TestTimeout:
    def checked(self, place: Place, wire: Wire) -> Done:
        async def run() -> Done:
            async with bot(wire) as served:
                url = f"{served.url}/stream"
                arguments = ("check", url, "-m", "hi", "--protocol", "ga-text", "--timeout", "2", "--json")
                return await asyncio.to_thread(place.run, *arguments)

        return asyncio.run(run())

    def test_an_answer_without_end_was_not_checked_to_its_end(self, place: Place) -> None:
        done = self.checked(place, Wire([ROUTING.encode(), *(writes(f"w{n} ") for n in range(400))], every=0.1))
        one = recording(done)
        assert (done.status, one["state"], one["end"]) == (2, "not checked", "left")
        assert one["problem"].startswith("it had not ended after 2 s")

    def test_a_stream_that_stays_open_after_the_end_is_noted(self, place: Place) -> None:
        ping = [b": still here\n\n"] * 400
        wire = Wire([ROUTING.encode(), *(writes(f"w{n} ") for n in range(9)), b"data: [DONE]\n\n", *ping], every=0.05)
        done = self.checked(place, wire)
        one = recording(done)
        assert (done.status, one["state"], one["ended"]) == (0, "nothing lost", "complete")
        assert "the server did not close its stream within 2 s" in " ".join(one["notes"])
        assert "had not ended" not in " ".join(one["notes"])
