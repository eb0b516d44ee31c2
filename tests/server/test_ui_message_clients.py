"""The AI SDK itself in front of `/api/ui-message`: the pinned version, and older ones for what all have in common.

Its chat without React, under Node; in a browser, with React, it is in `tests/page/test_use_chat.py`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from motamot.answer import AnswerEvent, Ended, Text, ToolCalled, ToolReturned
from motamot.protocols import PROTOCOLS
from motamot.protocols.base import failure_words, has_failed
from tests.node import node, npm_package
from tests.page.network import network
from tests.protocols.strategies import answers, text_of, written
from tests.server.reading import run
from tests.server.support import Served, serving

VERSIONS = ("7.0.173", "7.0.77", "6.0.326", "5.0.277")
EACH = pytest.mark.parametrize("version", VERSIONS)
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]
HELD = [{"say": ["one ", "two "]}, {"gate": "more"}, {"say": ["three"]}]

Steps = Sequence[Sequence[object]]


async def program(version: str) -> Path:
    """The client's program beside the package: that is where Node looks for it."""
    place = await asyncio.to_thread(npm_package, "ai", version)
    script = place / "ui_message.mjs"
    source = Path(__file__).parents[1] / "clients_js" / "ui_message.mjs"
    await asyncio.to_thread(shutil.copyfile, source, script)
    return script


async def play(version: str, told: dict[str, Any]) -> Any:
    """What the client shows in the end."""
    process = await asyncio.create_subprocess_exec(
        node(),
        await program(version),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(process.communicate(json.dumps(told).encode()), 40)
    assert process.returncode == 0, errors.decode()
    return json.loads(out)


async def chat(s: Served, version: str, steps: Steps, **more: Any) -> dict[str, Any]:
    secret = more.pop("secret", None) or secrets.token_urlsafe(16)
    got: dict[str, Any] = await play(version, {"url": s.url, "secret": secret, "steps": steps, **more})
    return got


def texts(got: dict[str, Any]) -> list[str]:
    """What stands in each message."""
    return ["".join(part["text"] for part in message["parts"] if part["type"] == "text") for message in got["messages"]]


def told(s: Served, number: int = -1) -> list[str]:
    return [message["content"] for message in s.model.requests[number].body["messages"]]


@EACH
def test_a_conversation(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        script = [[{"say": ["Bon", "jour\u2028 ", "😀\n"]}], [{"say": "Oui."}]]
        async with serving(tmp_path, script) as s:
            got = await chat(s, version, [["send", "Hello"], ["send", "And?"]])
            assert (got["status"], got["error"]) == ("ready", None)
            assert texts(got) == ["Hello", "Bonjour\u2028 😀\n", "And?", "Oui."]
            assert told(s) == ["Hello", "Bonjour\u2028 😀\n", "And?"]
            for answer in got["messages"][1::2]:
                sorts = [part["type"] for part in answer["parts"]]
                assert sorts == ["step-start", "text", "data-outcome"]
                assert answer["parts"][1]["state"] == "done"
                assert answer["parts"][2]["data"]["outcome"] == "complete"
            if version.startswith("7"):
                assert [end["finishReason"] for end in got["finished"]] == ["stop", "stop"]

    run(scenario())


@EACH
def test_a_tool_is_shown_as_done_and_the_page_is_not_asked_to_do_it(tmp_path: Path, version: str) -> None:
    def order_status(order: str) -> str:
        """Where an order is."""
        if order == "8":
            raise ValueError("secret")
        return f"secret of {order}"

    async def scenario() -> None:
        calls = [{"call": {"name": "order_status", "arguments": {"order": order}, "id": f"t{order}"}} for order in "78"]
        async with serving(tmp_path, [[{"say": "I look."}, *calls], [{"say": "It left."}]], tools=[order_status]) as s:
            got = await chat(s, version, [["send", "Where?"]])
            assert (got["status"], got["error"]) == ("ready", None)
            parts = got["messages"][-1]["parts"]
            tools = [part for part in parts if part["type"] == "tool-order_status"]
            assert [part["state"] for part in tools] == ["output-available", "output-error"]
            assert [part["providerExecuted"] for part in tools] == [True, True]
            assert tools[1]["errorText"] == "The tool failed."
            assert [part["type"] for part in parts].count("step-start") == 2
            assert texts(got)[-1] == "I look.\n\nIt left."
            assert len(s.model.requests) == 2

    run(scenario())


@EACH
@pytest.mark.parametrize(
    ("script", "error", "kept"),
    [
        (
            [{"say": "So far"}, {"close": "reset"}],
            "The connection to the model was cut in the middle of its answer.",
            "So far",
        ),
        ([{"fail": {"status": 500, "message": "secret"}}], None, ""),
    ],
)
def test_a_failure_is_an_error_and_no_answer(
    tmp_path: Path, version: str, script: object, error: str | None, kept: str
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [script]) as s:
            got = await chat(s, version, [["send", "Hello"]])
            assert got["status"] == "error"
            assert got["error"]
            assert error is None or got["error"] == error
            assert "secret" not in json.dumps(got)
            assert texts(got) == ["Hello", kept]
            [outcome] = [part["data"] for part in got["messages"][-1]["parts"] if part["type"] == "data-outcome"]
            assert (outcome["outcome"], outcome["message"]) == ("failed", got["error"])

    run(scenario())


@EACH
def test_a_refusal_is_a_sentence(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [[{"say": "Hi"}]], options={"requests_per_hour": 1}) as s:
            got = await chat(s, version, [["send", "Hello"], ["send", "And?"]])
            assert got["status"] == "error"
            assert got["error"].startswith("that was a lot: ")
            assert len(s.model.requests) == 1

    run(scenario())


@EACH
def test_stop_stops_the_model(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [ENDLESS, [{"say": "Oui."}]]) as s:
            got = await chat(s, version, [["begin", "Hello"], ["wait", "word"], ["stop"], ["idle"], ["send", "And?"]])
            assert (await s.model.wait_left(0, timeout=1)).cancelled
            assert got["status"] == "ready"
            before, after = told(s)[1:]
            assert after == "And?"
            assert before.startswith("word ")
            assert before == texts(got)[1] or before.startswith(texts(got)[1])  # what was sent may be a piece more
            assert texts(got)[-1] == "Oui."

    run(scenario())


@EACH
def test_sent_twice_and_asked_again_twice_it_is_paid_once(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        slow = [[{"wait": 150}, {"say": [letter, "!"]}] for letter in "AB"]
        async with serving(tmp_path, slow) as s:
            got = await chat(s, version, [["sendTwice", "Hello"], ["regenerateTwice"]])
            assert (got["status"], got["error"]) == ("ready", None)
            assert texts(got)[-1] == "B!"
            assert len(s.model.requests) == 2
            assert told(s) == ["Hello"]

    run(scenario())


@EACH
def test_another_answer_and_an_edit_replace_what_was_there(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [[{"say": letter}] for letter in "ABCDE"]) as s:
            steps: Steps = [["send", "Q1"], ["send", "Q2"], ["regenerate"], ["edit", [0, "Q1b"]], ["send", "Q3"]]
            got = await chat(s, version, steps)
            assert (got["status"], got["error"]) == ("ready", None)
            assert texts(got) == ["Q1b", "D", "Q3", "E"]
            assert [told(s, number) for number in range(5)] == [
                ["Q1"],
                ["Q1", "A", "Q2"],
                ["Q1", "A", "Q2"],
                ["Q1b"],
                ["Q1b", "D", "Q3"],
            ]

    run(scenario())


@EACH
@pytest.mark.parametrize("says", [True, False])
def test_a_page_that_is_opened_again_goes_on_with_the_answer(tmp_path: Path, version: str, says: bool) -> None:
    """By `resumable` in its body, or because it asked for its stream when it was first opened (`resume: true`)."""

    async def scenario() -> None:
        script = [[{"say": ["one ", "two "]}, {"wait": 600}, {"say": ["three"]}]]
        async with serving(tmp_path, script) as s:
            first: Steps = [] if says else [["resume"]]
            left: Steps = [["begin", "Hello"], ["wait", "two "], ["stop"], ["idle"], ["reopen", "questions"]]
            # Resumed where there is nothing: 204, and the page stays as it is.
            back: Steps = [["resume"], ["resume"]]
            got = await chat(s, version, [*first, *left, *back], **({"body": {"resumable": True}} if says else {}))
            assert (got["status"], got["error"]) == ("ready", None)
            assert texts(got) == ["Hello", "one two three"]
            assert len(s.model.requests) == 1

    run(scenario())


@EACH
def test_a_lost_connection_is_an_error_and_the_answer_goes_on_when_the_page_resumes(
    tmp_path: Path, version: str
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [HELD]) as s, network(s.port) as between:
            steps: Steps = [["begin", "Hello"], ["wait", "two "], ["print", "cut"], ["idle"], ["resume"]]
            body = {"resumable": True}
            asked = {"url": between.url.rstrip("/"), "secret": "s" * 22, "steps": steps, "body": body}
            process = await asyncio.create_subprocess_exec(
                node(), await program(version), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(asked).encode())
            process.stdin.write_eof()
            assert await asyncio.wait_for(process.stdout.readline(), 30) == b"cut\n"
            between.cut()
            between.mend()
            s.model.release("more")
            got = json.loads(await asyncio.wait_for(process.stdout.read(), 30))
            assert await process.wait() == 0
            assert got["finished"][0]["isError"]
            assert (got["status"], texts(got)) == ("ready", ["Hello", "one two three"])
            assert len(s.model.requests) == 1

    run(scenario())


@EACH
def test_an_answer_that_the_page_has_kept_half_is_replaced_by_all_of_it(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        script = [[{"say": ["one ", "two "]}, {"wait": 600}, {"say": ["three"]}]]
        async with serving(tmp_path, script) as s:
            steps: Steps = [["begin", "Hello"], ["wait", "two "], ["stop"], ["idle"], ["reopen", "all"], ["resume"]]
            got = await chat(s, version, steps, body={"resumable": True})
            assert texts(got) == ["Hello", "one two three"]
            assert [message["role"] for message in got["messages"]] == ["user", "assistant"]

    run(scenario())


@EACH
def test_every_stream_there_can_be_is_taken(version: str) -> None:
    """Any answer: no chunk the client does not know, no part it does not find open, no text it does not show."""
    drawn: list[list[AnswerEvent]] = []

    @settings(
        max_examples=200,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(events=answers())
    def draw(events: list[AnswerEvent]) -> None:
        drawn.append(events)

    draw()
    wires = [base64.b64encode(written(PROTOCOLS["ui-message"], events)).decode() for events in drawn]

    async def scenario() -> None:
        got = await play(version, {"wires": wires})
        assert len(got) == len(drawn)
        for events, read in zip(drawn, got, strict=True):
            end = events[-1]
            assert isinstance(end, Ended)
            failed = failure_words(end)[1] if has_failed(end) else None
            assert read["error"] == failed, events
            parts = read["message"]["parts"]
            assert "".join(part["text"] for part in parts if part["type"] == "text") == text_of(events)
            assert [part["data"]["outcome"] for part in parts if part["type"] == "data-outcome"] == [end.outcome]
            assert any(part["type"].startswith("tool-") for part in parts) == any(
                isinstance(event, ToolCalled | ToolReturned) for event in events
            )
            shown = [part for part in parts if part["type"] == "text"]
            assert all(part["state"] == "done" for part in shown)
        assert sum(any(isinstance(event, Text) for event in events) for events in drawn) > 50

    run(scenario())
