"""The programs of docs/clients.md run as they stand, with this server's address and keys in them."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from pathlib import Path

import pytest

from motamot.answer import Text
from motamot.protocols import PROTOCOLS
from motamot.protocols.openai import PROTOCOL
from tests.need import need
from tests.node import node, npm_package
from tests.server.reading import run
from tests.server.support import V1_KEY, Served, serving

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
SAID = [{"say": "Hello, world.\n"}]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def here(code: str, s: Served) -> str:
    """The page's code, for this server."""
    assert "http://127.0.0.1:8000" in code
    return code.replace("http://127.0.0.1:8000", s.url).replace("sk-of-the-operator", V1_KEY)


async def out(*command: str | Path) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    told, errors = await asyncio.wait_for(process.communicate(), 40)
    assert process.returncode == 0, errors.decode()
    return told


def commands(block: str) -> list[str]:
    return [command.replace("\\\n", " ") for command in re.split(r"(?m)^\$ ", block) if command.strip()]


def test_the_python_program(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [SAID]) as s:
            [code] = blocks("python")
            assert await out(sys.executable, "-c", here(code, s)) == b"Hello, world.\n"

    run(scenario())


@pytest.mark.parametrize(("package", "version"), [("openai", "7"), ("@ag-ui/client", "1.0.0")])
def test_the_node_program(tmp_path: Path, package: str, version: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, [SAID]) as s:
            [code] = [code for code in blocks("javascript") if f'from "{package}"' in code]
            place = await asyncio.to_thread(npm_package, package, version)
            program = place / "of_the_page.mjs"
            await asyncio.to_thread(program.write_text, here(code, s))
            assert await out(node(), program) == b"Hello, world.\n"

    run(scenario())


def test_the_curl_commands(tmp_path: Path) -> None:
    need(shutil.which("curl"), "curl")

    async def scenario() -> None:
        async with serving(tmp_path, [SAID, SAID]) as s:
            openai, ours = blocks("console")
            [command] = commands(openai)
            told = await out("sh", "-c", here(command, s))
            assert [event for event in PROTOCOL.reader().feed(told) if isinstance(event, Text)]
            texts = []
            for command in commands(ours):
                reader = PROTOCOLS["motamot"].reader()
                events = reader.feed(await out("sh", "-c", here(command, s)))
                texts.append("".join(event.text for event in events if isinstance(event, Text)))
            assert texts == ["Hello, world.\n", " world.\n"]  # the second goes on behind event 2
            assert len(s.model.requests) == 2

    run(scenario())
