"""The record: JSON Lines that say who asked what, what was sent when, and who left."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from motamot.scripted import ScriptedModel
from motamot.scripted.records import JsonLines, masked

from .wire import Client, ask, fetch, get


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_request_its_pieces_its_gates_and_its_end_are_recorded_in_order(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    steps = {"scripts": {"hello": [{"send": "é\n"}, {"send_base64": "/w=="}, {"gate": "g"}, {"send": "x"}]}}

    async def run() -> None:
        async with ScriptedModel(steps, record=path) as server:
            client = await Client.to(server.port)
            await client.send(ask("hello", headers="Authorization: Bearer sk-secret\r\nX-API-Key: k\r\n"))
            await server.wait_gate("g")
            assert [line["event"] for line in lines(path)] == ["request", "head", "piece", "piece", "gate"]  # at once
            server.release("g")
            await client.response()
            await client.close()
            await server.wait_left(0)

    asyncio.run(run())
    request, head, first, second, at_gate, passed, third, end, left = lines(path)
    assert request["request"] == 1
    assert (request["method"], request["path"]) == ("POST", "/v1/chat/completions")
    assert request["headers"]["authorization"] == "Bearer ***"
    assert request["headers"]["x-api-key"] == "***"
    assert request["body"]["messages"][0]["content"] == "hello"
    assert (request["script"], request["turn"], request["stream"]) == ("hello", 0, True)
    assert request["time"].endswith("Z")
    assert (head["event"], head["status"]) == ("head", 200)
    assert (first["event"], first["bytes"], first["text"]) == ("piece", 3, "é\n")
    assert (second["bytes"], second["base64"]) == (1, "/w==")
    assert (at_gate["event"], at_gate["gate"], at_gate["state"]) == ("gate", "g", "waiting")
    assert passed["state"] == "passed"
    assert third["text"] == "x"
    assert end == end | {"event": "end", "how": "clean", "pieces": 3, "bytes": 5, "cancelled": False}
    assert left == left | {"event": "client_left", "how": "closed", "script_done": True}
    times = [line["ms"] for line in (head, first, second, at_gate, passed, third, end, left)]
    assert times == sorted(times)
    assert "secret" not in path.read_text("utf-8")


def test_a_client_that_leaves_early_is_recorded_with_what_was_expected(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    steps = [{"send": "x"}, {"wait": "20s"}, {"expect_cancel_within_ms": 700}]

    async def run() -> None:
        async with ScriptedModel(steps, record=path) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.head()
            client.reset()
            await server.wait_ended(0)

    asyncio.run(run())
    left, end = lines(path)[-2:]
    assert left == left | {"event": "client_left", "how": "reset", "script_done": False}
    assert end == end | {"event": "end", "how": "left", "cancelled": True, "expected_cancel_within_ms": 700}


def test_a_gate_that_timed_out_and_requests_that_were_refused_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"

    async def run() -> None:
        async with ScriptedModel([{"gate": "g", "timeout": 10}, {"send": "x"}], record=str(path)) as server:
            await fetch(server.port, ask())
            await fetch(server.port, get("/nowhere"))
            await fetch(server.port, b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n\xff{")

    asyncio.run(run())
    found = lines(path)
    assert "timed out" in [line.get("state") for line in found]
    requests = [line for line in found if line["event"] == "request"]
    assert [request["request"] for request in requests] == [1, 2, 3]
    assert "script" not in requests[1]
    assert requests[2]["body"] == {"base64": "/3s="}
    assert [line["status"] for line in found if line["event"] == "head"] == [200, 404, 400]


def test_the_record_is_appended_to_and_a_function_may_take_it_instead(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    told: list[dict[str, Any]] = []

    async def run() -> None:
        for _ in range(2):
            async with ScriptedModel([{"send": "x"}], record=path) as server:
                await fetch(server.port, ask())
        async with ScriptedModel([{"send": "x"}], record=told.append) as server:
            await fetch(server.port, ask())

    asyncio.run(run())
    kinds = ["request", "head", "piece", "end"]
    found = [line["event"] for line in lines(path) if line["event"] != "client_left"]
    assert found == kinds * 2
    assert [event["event"] for event in told][:4] == kinds


def test_a_record_that_cannot_be_opened_or_written_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(FileNotFoundError):
            async with ScriptedModel([{"send": "x"}], record=tmp_path / "no" / "record"):
                pass
        if Path("/dev/full").exists():
            with pytest.raises(OSError, match="No space left"):
                async with ScriptedModel([{"send": "x"}], record="/dev/full") as server:
                    assert (await fetch(server.port, ask())).body == b"x"  # the answers go on

    asyncio.run(run())


def test_half_a_surrogate_pair_in_a_question_is_recorded_as_an_escape(tmp_path: Path) -> None:
    with (tmp_path / "record").open("wb", buffering=0) as file:
        record = JsonLines(file)
        record({"body": "\ud83d"})
        record.flush()
    assert (tmp_path / "record").read_bytes() == b'{"body":"\\ud83d"}\n'


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("authorization", "Bearer sk-1", "Bearer ***"),
        ("authorization", "sk-1", "***"),
        ("proxy-authorization", "Basic eDp5", "Basic ***"),
        ("api-key", "a b", "***"),
        ("cookie", "a=b; c=d", "***"),
        ("accept", "text/event-stream", "text/event-stream"),
    ],
)
def test_secrets_are_masked(name: str, value: str, shown: str) -> None:
    assert masked(name, value) == shown
