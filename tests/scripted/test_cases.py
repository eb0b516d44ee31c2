"""The scripts of the cases from practice load and play, byte for byte."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from motamot.scripted import ScriptedModel, load_scripts

from .wire import Client, ask, fetch

CASES = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data" / "cases.jsonl").read_text("utf-8").splitlines()
]
UPSTREAM = [case for case in CASES if case["given"]["type"] == "upstream"]


def bytes_of(steps: list[dict[str, Any]]) -> bytes:
    """What the steps send, by the words of the cases alone."""
    sent = b""
    for step in steps:
        sent += step.get("send", "").encode()
        sent += base64.b64decode(step.get("send_base64", ""))
        sent += step.get("send_repeat", "").encode() * step.get("times", 0)
        sent += bytes_of(step.get("steps", [])) * step.get("repeat", 0)
    return sent


def hurried(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same steps with waits of 5 ms at most."""
    done = []
    for step in steps:
        quick = {key: min(value, 5) if key in ("wait_ms", "hold_open_ms") else value for key, value in step.items()}
        done.append(quick | {"steps": hurried(step["steps"])} if "steps" in step else quick)
    return done


def test_there_are_cases_to_play() -> None:
    assert len(UPSTREAM) >= 27


@pytest.mark.parametrize("case", UPSTREAM, ids=[case["id"] for case in UPSTREAM])
def test_every_request_script_of_a_case_is_played_to_its_last_byte(case: dict[str, Any]) -> None:
    scripts = case["given"]["requests"]
    assert load_scripts(scripts).requests is not None

    async def run() -> None:
        async with ScriptedModel([hurried(steps) for steps in scripts]) as server:
            for number, steps in enumerate(scripts):
                closes = [step["close"] for step in steps if "close" in step]
                status: dict[str, Any] = {"status": 200, "headers": {}}
                status |= next((step for step in steps if "status" in step), {})
                client = await Client.to(server.port)
                await client.send(ask("What is the weather in Lyon?"))
                response = await client.response()
                await client.close()
                assert response.status == status["status"]
                kind = response.headers["content-type"]
                assert kind.startswith(status["headers"].get("content-type", "text/event-stream"))
                received = await server.wait_ended(number)
                assert received.sent == bytes_of(steps)
                assert received.ended == (closes or ["clean"])[-1]
                expected = [
                    step["expect_cancel_within_ms"] / 1000 for step in steps if "expect_cancel_within_ms" in step
                ]
                assert received.cancel_seconds == (expected or [None])[0]
                if received.ended == "clean":
                    assert response.complete
                    assert response.body == bytes_of(steps)
                else:
                    assert not response.complete
            beyond = await fetch(server.port, ask())
            assert beyond.status == 500
            assert len(server.requests) == len(scripts) + 1

    asyncio.run(run())
