"""The page of docs/clients.md with a plain `EventSource`, in Chromium, as it stands."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Request, Route, expect

from tests.page.support import Chat, Chromium, chat

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
RECONNECTING_SECONDS = 4.0  # Chromium waits three before it connects again


async def opened_there(browser: Browser, served: Chat, asked: list[str]) -> tuple[BrowserContext, Page]:
    """The page, at an address of the site itself."""
    [html] = re.findall(r"^```html\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    context = await browser.new_context()
    page = await context.new_page()

    async def give(route: Route) -> None:
        await route.fulfill(status=200, content_type="text/html; charset=utf-8", body=f"<!doctype html>{html}")

    def note(request: Request) -> None:
        if "/flux" in request.url:
            asked.append(request.url)

    await page.route("**/try", give)
    page.on("request", note)
    await page.goto(f"{served.url}try")
    return context, page


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ([{"say": "<b>Hello</b> & world."}], "<b>Hello</b> & world."),
        ([{"say": ["Hello "]}, {"close": "reset"}], re.compile(r"^Hello  \(.+\)$")),
    ],
)
def test_it_shows_the_answer_and_asks_once(
    chromium: Chromium, tmp_path: Path, script: object, shown: str | re.Pattern[str]
) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [script, [{"say": "again"}]]) as served:
            asked: list[str] = []
            context, page = await opened_there(browser, served, asked)
            await expect(page.locator("#answer")).to_have_text(shown, use_inner_text=False)
            await asyncio.sleep(RECONNECTING_SECONDS)
            assert len(asked) == 1
            assert len(served.model.requests) == 1
            await context.close()

    chromium.run(scenario)


def test_its_button_stops_the_model(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": ["Hello "]}, {"gate": "more"}]]) as served:
            asked: list[str] = []
            context, page = await opened_there(browser, served, asked)
            await expect(page.locator("#answer")).to_contain_text("Hello")
            await page.locator("#stop").click()
            assert (await served.model.wait_left(0, timeout=1)).cancelled
            await asyncio.sleep(RECONNECTING_SECONDS)
            assert len(asked) == 1
            await context.close()

    chromium.run(scenario)
