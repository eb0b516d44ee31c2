"""assistant-ui's runtime for AG-UI, as a page has it (React, in a document), against the server as it runs."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from tests.node import node, npm_package
from tests.server.reading import run
from tests.server.support import Served, serving

PACKAGES = ("@assistant-ui/react-ag-ui", "0.0.57", "react@19", "react-dom@19", "jsdom@27")
CALL = [{"say": "I look."}, {"call": {"name": "get_time", "arguments": {"zone": "Europe/Paris"}, "id": "c1"}}]
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]


async def page(s: Served, *questions: str, **told: Any) -> dict[str, Any]:
    place = await asyncio.to_thread(npm_package, *PACKAGES)
    script = place / "assistant_ui_node.mjs"  # beside the packages: that is where Node looks for them
    await asyncio.to_thread(shutil.copyfile, Path(__file__).parent / script.name, script)
    asked = {"url": f"{s.url}/api/ag-ui", "secret": "s" * 22, "questions": questions, **told}
    process = await asyncio.create_subprocess_exec(
        node(), script, json.dumps(asked), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await asyncio.wait_for(process.communicate(), 40)
    assert process.returncode == 0, errors.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def test_questions_and_answers_with_a_tool_that_runs_here(tmp_path: Path) -> None:
    def get_time(zone: str) -> str:
        """The time in a zone."""
        return zone

    async def scenario() -> None:
        scripts = [CALL, [{"say": ["Noon ", "😀\u2028."]}], [{"say": "You are welcome."}]]
        async with serving(tmp_path, scripts, tools=[get_time]) as s:
            got = await page(s, "What time is it?", "Thanks.")
            first, second = got["answers"]
            assert (first["text"], second["text"]) == ("I look.\n\nNoon 😀\u2028.", "You are welcome.")
            assert first["calls"] == [{"toolName": "get_time", "result": {"status": "ok"}}]
            assert first["ours"][-1] == "motamot.ended"
            assert {answer["status"]["type"] for answer in got["answers"]} == {"complete"}
            assert (got["errors"], got["warnings"]) == ([], [])
            assert [(m["role"], m["content"]) for m in s.model.requests[2].body["messages"]] == [
                ("user", "What time is it?"),
                ("assistant", "I look.\n\nNoon 😀\u2028."),
                ("user", "Thanks."),
            ]
            assert len(s.model.requests) == 3

    run(scenario())


def test_cancelling_stops_the_model(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [ENDLESS]) as s:
            asking = asyncio.ensure_future(page(s, "Count.", cancelAt=10))
            assert (await s.model.wait_left(0, timeout=40)).cancelled
            [answer] = (await asking)["answers"]
            assert answer["text"].startswith("word word ")
            assert answer["status"]["type"] == "incomplete"  # its client makes an error of each abort
            assert len(s.model.requests) == 1

    run(scenario())


def test_a_failure_is_an_error_beside_the_text(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [[{"say": ["One "]}, {"close": "reset"}]]) as s:
            got = await page(s, "Hello")
            [answer] = got["answers"]
            assert answer["text"] == "One "
            assert (answer["status"]["type"], answer["status"]["reason"]) == ("incomplete", "error")
            assert len(got["errors"]) == 1
            assert len(s.model.requests) == 1

    run(scenario())
