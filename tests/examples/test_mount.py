"""docs/mount.md and docs/testing.md say what is so; and what host apps put around a chat does it no harm."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

from motamot import Assistant
from motamot.testing import ScriptedModel, call, running
from tests.examples.support import EXAMPLES, environment

DOCS = Path(__file__).parents[2] / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(\.\./examples/([\w/]+\.py)\)")
HELD = [{"say": ["one", " two"], "pace": 20}, {"gate": "more"}, {"say": " three"}]


def blocks(page: str) -> list[str]:
    return PYTHON.findall((DOCS / page).read_text("utf-8"))


@pytest.mark.parametrize("block", blocks("mount.md"), ids=lambda block: block.strip().splitlines()[0][:40])
def test_each_program_shown_is_part_of_an_example_that_the_page_links_to(block: str) -> None:
    linked = set(LINK.findall((DOCS / "mount.md").read_text("utf-8")))
    assert any(block in (EXAMPLES / name).read_text("utf-8") for name in linked), block


@pytest.mark.parametrize("number", range(len(blocks("testing.md"))))
def test_each_program_of_the_chapter_on_testing_runs(number: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(blocks("testing.md")[number])
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.stderr, done.stdout, done.returncode) == ("", "", 0)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """The app behind uvicorn, in this loop."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@pytest.mark.parametrize("around", ["nothing", "http middleware", "compression", "both"])
def test_a_hosts_middleware_neither_delays_text_nor_hides_a_client_that_leaves(around: str, tmp_path: Path) -> None:
    async def timing(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers["X-Seen"] = "yes"
        return response

    async def main() -> None:
        async with ScriptedModel([HELD]) as model:
            chat = Assistant(upstream=model.url, model="scripted", store=tmp_path / "books.sqlite3")
            app = FastAPI(lifespan=chat.lifespan)
            app.mount("/chat", chat.asgi)
            if around in ("http middleware", "both"):
                app.middleware("http")(timing)
            if around in ("compression", "both"):
                app.add_middleware(GZipMiddleware, minimum_size=10)
            async with served(app) as url, aiohttp.ClientSession() as client:
                asked = client.post(f"{url}/chat/api/chat/stream", json={"message": "Count"})
                async with asyncio.timeout(10), asked as response:
                    assert "content-encoding" not in response.headers
                    got = b""
                    while b" two" not in got:
                        got += await response.content.readany()
                    response.close()
                closed = time.monotonic()
                left = await model.wait_left(0)
                assert left.left_at is not None and left.left_at - closed < 1

    asyncio.run(main())


@pytest.mark.parametrize("lifespan", [True, False], ids=["lifespan", "none"])
def test_a_mounted_chat_works_with_and_without_the_hosts_lifespan(lifespan: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedModel([HELD]) as model:
            model.release("more")
            chat = Assistant(upstream=model.url, model="scripted", store=tmp_path / "books.sqlite3")
            app = FastAPI(lifespan=chat.lifespan) if lifespan else FastAPI()
            app.mount("/a/b", chat.asgi)
            async with running(app) as host:
                answer = await call(host, "POST /a/b/api/chat", body={"message": "Count"})
            assert answer.json()["text"] == "one two three"
            assert "Path=/a/b;" in answer.headers["set-cookie"]

    asyncio.run(main())
