"""The lesson's third exercise in Chromium: what a failed question leaves in the page, and in the next request."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Request, expect
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from motamot.answer import AnswerEvent, Routed, Text
from motamot.assistant import Assistant, Question
from motamot.errors import UpstreamError
from motamot.peers import READERS
from motamot.peers.readers.page import kept
from motamot.server.site import Site
from tests.page.support import Chromium
from tests.server.support import running

HERE = Path(__file__).parent
EXERCISES = Path(__file__).parents[2] / "docs" / "peers" / "exercises.md"
FAILS, WORKS = "which arpeggio fits Am F C G", "Show me Cmaj7 voicings"
FAILED = "Failed to process message. Please try again."
BEGUN = "start, then fail"


async def skills(question: Question) -> AsyncIterator[AnswerEvent]:
    """The lesson's host: one question that works, others that find no model."""
    if question.message == WORKS:
        yield Routed(agent="voicing", confidence=1.0, method="keyword")
        yield Text("Found:\n\n- **Cmaj7**\n")
        return
    if question.message == BEGUN:
        yield Text("Over ")
    raise UpstreamError(FAILED, detail="no model server")


def around(chat: Assistant) -> Callable[[ASGIApp], ASGIApp]:
    """The page and its reader, before the host's routes."""
    app = Starlette(
        routes=[
            Route("/chat.html", lambda _: FileResponse(HERE / "chat.html")),
            Route("/readers.mjs", lambda _: FileResponse(HERE / "readers.mjs", media_type="text/javascript")),
            Mount("/", app=chat.asgi),
        ],
        lifespan=chat.lifespan,
    )
    return lambda _: app


def seen(chromium: Chromium, folder: Path, reader: str, *questions: str) -> dict[str, Any]:
    """The bubbles after all questions but the last, and the history that the last request sends."""

    async def scenario(browser: Browser) -> dict[str, Any]:
        asked: list[Request] = []
        chat = Assistant(store=folder / "books.sqlite3")
        chat.answer(skills)
        site = chat.asgi
        assert isinstance(site, Site)
        async with running(site, around=around(chat)) as (_, url):
            page = await browser.new_page()
            try:
                page.on("request", lambda request: asked.append(request) if request.method == "POST" else None)
                await page.goto(f"{url}/chat.html?reader={reader}")
                bubbles: list[str] = []
                for number, question in enumerate(questions, 1):
                    bubbles = await page.locator("#messages p").all_text_contents()
                    await page.locator("#question").fill(question)
                    await page.locator("#question").press("Enter")
                    await expect(page.locator("body")).to_have_attribute("data-answered", str(number))
            finally:
                await page.close()
        return {"bubbles": bubbles, "next_history": json.loads(asked[-1].post_data or "{}")["conversationHistory"]}

    return chromium.run(scenario)


@pytest.mark.parametrize("reader", ["page", "page-mended"])
def test_the_document_shows_what_a_browser_shows(chromium: Chromium, tmp_path: Path, reader: str) -> None:
    [shown] = re.findall(r"^```json\n(.*?)^```$", EXERCISES.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert seen(chromium, tmp_path, reader, FAILS, WORKS) == json.loads(shown)[reader]


def test_text_before_an_error_stays_and_the_error_gets_a_bubble_of_its_own(chromium: Chromium, tmp_path: Path) -> None:
    told = seen(chromium, tmp_path, "page-mended", BEGUN, WORKS)
    assert told == {"bubbles": [BEGUN, "Over ", f"Request failed: {FAILED}"], "next_history": []}


@pytest.mark.parametrize("reader", ["page", "page-mended"])
def test_an_answer_that_works_is_kept_to_the_character(chromium: Chromium, tmp_path: Path, reader: str) -> None:
    told = seen(chromium, tmp_path, reader, WORKS, FAILS)
    assert told["bubbles"] == [WORKS, "Found:\n\n- **Cmaj7**\n"]
    assert [turn["content"] for turn in told["next_history"]] == told["bubbles"]


def test_the_ports_in_python_keep_what_the_page_keeps(chromium: Chromium, tmp_path: Path) -> None:
    stream = f'data: {{"error":"{FAILED}"}}\n\n'.encode()
    told = seen(chromium, tmp_path, "page", FAILS, WORKS)
    assert told["next_history"][1]["content"] == kept(READERS["page"].read([stream]))
    assert kept(READERS["page-mended"].read([stream])) is None
