"""The commands of docs/http.md run as they stand, in a shell, against this server."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

from motamot.answer import Ended, Outcome, Text
from motamot.protocols import PROTOCOLS
from tests.need import need
from tests.server.reading import run
from tests.server.support import Served, serving

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")
HELLO = [{"say": "Hello"}, {"say": ", world."}]
HELD = [{"say": "Hello"}, {"gate": "more"}, {"say": " What never comes."}]
SECRET = "a-secret-of-22-characters-or-more"


def commands() -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [command.strip() for block in blocks for command in re.split(r"(?m)^\$ ", block) if command.strip()]


def the(wanted: str) -> str:
    [found] = [command for command in commands() if re.search(wanted, command)]
    return found


async def shell(command: str, s: Served, folder: Path, *, secret: str = SECRET) -> asyncio.subprocess.Process:
    need(shutil.which("curl"), "curl")
    script = f"SECRET={secret}\n" + command.replace("http://127.0.0.1:8000", s.url)
    return await asyncio.create_subprocess_exec(
        "sh", "-c", script, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )


async def out(command: str, s: Served, folder: Path, *, secret: str = SECRET) -> str:
    process = await shell(command, s, folder, secret=secret)
    told, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    return told.decode()


def text(told: str) -> str:
    events = PROTOCOLS["motamot"].reader().feed(told.encode())
    return "".join(event.text for event in events if isinstance(event, Text))


def test_a_secret_is_made_that_the_server_takes() -> None:
    made = re.fullmatch(r"SECRET=\$\(openssl rand -hex (\d+)\)", the("openssl"))
    assert made is not None
    assert 22 <= 2 * int(made[1]) <= 128


def test_asking_keeps_the_visitor_in_a_file_of_cookies(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [HELLO, HELLO]) as s:
            first = json.loads(await out(the("/api/chat -H"), s, tmp_path))
            assert first["text"] == "Hello, world."
            conversation = f'"Hello", "conversation": "{first["conversation"]}"'
            going_on = the("/api/chat -H").replace('"Hello"', conversation)
            second = json.loads(await out(going_on, s, tmp_path))
            assert second["conversation"] == first["conversation"]  # 404 for another visitor

    run(scenario())


def test_an_answer_is_read_and_followed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [HELLO]) as s:
            assert text(await out(the("/api/chat/stream"), s, tmp_path)) == "Hello, world."
            assert text(await out(the(r"/events -H"), s, tmp_path)) == "Hello, world."
            assert text(await out(the(r"after=2"), s, tmp_path)) == ", world."
            assert len(s.model.requests) == 1

    run(scenario())


def test_a_stop_is_200_for_who_asked_and_202_for_anybody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [HELD]) as s:
            reader = await shell(the("/api/chat/stream"), s, tmp_path)
            assert reader.stdout is not None
            read = b""
            while b'"Hello"' not in read:
                read += await asyncio.wait_for(reader.stdout.readline(), 10)
            other = "another-secret-of-22-characters"
            told, status = (await out(the("/stop"), s, tmp_path, secret=other)).rsplit("}", 1)
            assert (status.strip(), json.loads(told + "}")["outcome"]) == ("202", None)
            for _ in range(2):
                told, status = (await out(the("/stop"), s, tmp_path)).rsplit("}", 1)
                assert (status.strip(), json.loads(told + "}")["outcome"]) == ("200", "stopped")
            read += await asyncio.wait_for(reader.stdout.read(), 10)
            await reader.wait()
            *_, last = PROTOCOLS["motamot"].reader().feed(read)
            assert isinstance(last, Ended)
            assert last.outcome is Outcome.STOPPED

    run(scenario())


def test_a_stop_before_its_question_is_202_and_stops_it_when_it_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [HELLO]) as s:
            assert (await out(the("/stop"), s, tmp_path)).endswith("202\n")
            told = await out(the("/api/chat/stream"), s, tmp_path)
            assert text(told) == ""
            assert '"outcome":"stopped"' in told

    run(scenario())


def test_a_conversation_is_read_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [HELLO]) as s:
            stream = await out(the("/api/chat/stream"), s, tmp_path)
            [named] = set(re.findall(r'"conversation":"([^"]+)"', stream))
            told = json.loads(await out(f"CONVERSATION={named}; " + the("/api/conversations"), s, tmp_path))
            [one] = told["exchanges"]
            assert (one["text"], one["sources"], one["tools"]) == ("Hello, world.", [], [])

    run(scenario())
