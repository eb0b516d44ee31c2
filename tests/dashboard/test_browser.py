"""The dashboard in a real Chromium: without scripts, by keyboard, on a phone, in the dark, and as axe-core sees it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.dashboard_data import make
from playwright.async_api import Browser, Page, expect

from motamot.assistant import Assistant
from motamot.server.options import Options
from motamot.server.site import Site
from tests.dashboard.books import asked, chatbot
from tests.page.support import Chromium
from tests.server.reading import Visitor
from tests.server.support import OPERATOR_KEY, Served, running
from tests.widget.axe import violations

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESK: dict[str, Any] = {"viewport": {"width": 1100, "height": 760}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}


@asynccontextmanager
async def opened(browser: Browser, url: str, *, sign_in: bool = True, **context: Any) -> AsyncIterator[Page]:
    """A window before the dashboard, signed in by hand. Nothing may be kept from a page, and no other host be asked."""
    own = await browser.new_context(base_url=url, **context)
    faults: list[str] = []
    try:
        page = await own.new_page()
        page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(url) else None)
        page.on("console", lambda message: faults.append(message.text) if "403" not in message.text else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        await page.goto("/dashboard")
        if sign_in:
            await expect(page.locator("#key")).to_be_focused()
            await page.keyboard.type(OPERATOR_KEY)
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/dashboard")
        yield page
        assert not faults
    finally:
        await own.close()


def before(
    chromium: Chromium, folder: Path, scenario: Callable[[Browser, Served, dict[str, str]], Awaitable[None]]
) -> None:
    """Play a scenario before a chatbot that was asked once in every way."""

    async def play(browser: Browser) -> None:
        async with chatbot(folder) as s:
            await scenario(browser, s, await asked(s))

    chromium.run(play)


def addresses(ids: dict[str, str]) -> list[str]:
    """Every page there is."""
    return [
        "/dashboard",
        "/dashboard/conversations",
        "/dashboard/conversations?text=nobody-said-this&from=x",
        "/dashboard/figures",
        "/dashboard/reconcile",
        *(f"/dashboard/exchanges/{exchange}" for exchange in ids.values()),
    ]


def test_all_of_it_works_without_javascript(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser, s: Served, ids: dict[str, str]) -> None:
        async with opened(browser, s.url, java_script_enabled=False) as page:
            await page.get_by_role("link", name="Conversations").click()
            await page.get_by_text("More to look for").click()
            await page.get_by_label("Words").fill("cafe")
            await page.get_by_label("Outcome").select_option("complete")
            await page.get_by_role("button", name="Search").click()
            await expect(page.get_by_role("row")).to_have_count(3)
            await page.locator("td a").first.click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Exchange")
            await page.locator("dd a").last.click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Visitor")
            await page.get_by_label("Yes, remove it for good").check()
            await page.get_by_role("button", name="Remove all their text").click()
            await expect(page.get_by_role("status")).to_have_text("The text of 1 conversations was removed.")
            await page.get_by_role("link", name="Back to the overview").click()
            await page.get_by_role("link", name="Français").click()
            await page.get_by_role("button", name="Se déconnecter").click()
            await expect(page.get_by_role("status")).to_have_text("Vous êtes déconnecté.")

    before(chromium, tmp_path, scenario)


def test_what_was_said_stands_in_the_page_as_text_alone(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser, s: Served, ids: dict[str, str]) -> None:
        async with opened(browser, s.url) as page:  # with scripts, if there were any
            for address in addresses(ids):
                await page.goto(address)
                assert await page.locator("main :is(script, img, iframe, i, b, textarea)").count() == 0

    before(chromium, tmp_path, scenario)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "fr"])
def test_axe_finds_nothing(chromium: Chromium, tmp_path: Path, scheme: str, language: str) -> None:
    async def scenario(browser: Browser, s: Served, ids: dict[str, str]) -> None:
        context = {"color_scheme": scheme, "locale": language, **DESK}
        async with opened(browser, s.url, sign_in=False, **context) as page:
            assert await violations(page) == []
            await page.fill("#key", "not the key")
            await page.press("#key", "Enter")
            await expect(page.get_by_role("alert")).to_be_visible()
            assert await violations(page) == []
        async with opened(browser, s.url, **context) as page:
            for address in addresses(ids):
                await page.goto(address)
                assert await violations(page) == [], address
            visitor = await page.locator("dd a").last.get_attribute("href")
            await page.goto(f"/dashboard/exchanges/{visitor}")
            assert await violations(page) == [], visitor

    before(chromium, tmp_path, scenario)


@pytest.mark.parametrize("width", [320, 390, 550])  # 550: a window of 1100 at 200 %
def test_nothing_is_wider_than_a_phone_or_a_page_at_twice_the_size(
    chromium: Chromium, tmp_path: Path, width: int
) -> None:
    async def scenario(browser: Browser, s: Served, ids: dict[str, str]) -> None:
        async with opened(browser, s.url, viewport={"width": width, "height": 600}) as page:
            for address in addresses(ids):
                await page.goto(address)
                wide = await page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, address

    before(chromium, tmp_path, scenario)


def test_the_keyboard_is_enough_and_the_focus_is_seen(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser, s: Served, ids: dict[str, str]) -> None:
        async with opened(browser, s.url, **DESK) as page:
            await page.keyboard.press("Tab")
            await expect(page.get_by_role("link", name="To the content")).to_be_focused()
            await expect(page.get_by_role("link", name="To the content")).to_be_in_viewport()
            await page.keyboard.press("Enter")
            await expect(page.locator("main")).to_be_focused()
            seen = []
            for _ in range(12):
                await page.keyboard.press("Tab")
                seen.append(
                    await page.evaluate(
                        "[document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]"
                    )
                )
            inside = [one for one in seen if one[0] != "BODY"]
            assert inside and all(outline != "none" for _, outline in inside)
            assert "DIV" in {tag for tag, _ in inside}, "a table that scrolls is reached"

    before(chromium, tmp_path, scenario)


def test_on_paper_there_is_what_is_told_and_nothing_to_press(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser, s: Served, ids: dict[str, str]) -> None:
        async with opened(browser, s.url, color_scheme="dark", **DESK) as page:
            await page.emulate_media(media="print")
            await expect(page.locator("nav")).to_be_hidden()
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"

    before(chromium, tmp_path, scenario)


# Pictures

SAID = {
    "default": "leaves",
    "scripts": {
        "leaves": [
            {"say": "The next bus to the station leaves at ten past nine, from the stop behind the town hall."},
            {"usage": {"prompt": 214, "completion": 26}},
        ],
        "billet": [
            {"say": "Un billet coûte deux euros ; il est valable une heure, correspondances comprises."},
            {"usage": {"prompt": 198, "completion": 24}},
        ],
        "broken": [{"fail": "down"}],
        "order": {
            "turns": [
                [{"say": "I look."}, {"call": {"name": "order_status", "arguments": {"order": "4711"}}}],
                [{"say": "Your season ticket was posted this morning."}, {"usage": {"prompt": 240, "completion": 11}}],
            ]
        },
        "tour": [
            {"say": "The tour begins at the harbour, follows the river to the old mill"},
            {"gate": "more"},
            {"say": " and ends."},
        ],
    },
}
QUESTIONS = (
    "When does the next bus leaves",
    "Combien coûte un billet ?",
    "Is the lift at the station broken",
    "Where is my order",
)


async def pictured(s: Served) -> dict[str, str]:
    """Ask a few questions, and stop an answer. Returns: exchanges by the last word of their question."""
    found = {}
    for question in QUESTIONS:
        stream = await (await Visitor(s.port).ask(question)).to_end()
        found[question.removesuffix(" ?").split()[-1]] = stream.exchange
        await stream.close()
    visitor = Visitor(s.port)
    stream = await visitor.ask("Tell me about the tour")
    await stream.until("old mill")
    seen = next(n for n, event in enumerate(stream.events, 1) if getattr(event, "text", "") == " river")
    await visitor.stop(stream.exchange, seen)
    await stream.close()
    await s.site.exchanges.store.flush()
    return {**found, "tour": stream.exchange}


SHOTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dashboard-overview": ("/dashboard", {**DESK, "color_scheme": "light", "locale": "en"}),
    "dashboard-figures-fr-dark": ("/dashboard/figures", {**DESK, "color_scheme": "dark", "locale": "fr"}),
    "dashboard-conversations-fr": ("/dashboard/conversations", {**DESK, "color_scheme": "light", "locale": "fr"}),
    "dashboard-conversations-phone": ("/dashboard/conversations", {**PHONE, "color_scheme": "light", "locale": "en"}),
    "dashboard-exchange-dark": ("/dashboard/exchanges/{tour}", {**DESK, "color_scheme": "dark", "locale": "en"}),
    "dashboard-exchange-fr-phone": ("/dashboard/exchanges/{order}", {**PHONE, "color_scheme": "light", "locale": "fr"}),
}
"""Where each picture is taken: figures of `bench.dashboard_data`, all else of real exchanges."""


@pytest.mark.parametrize("name", SHOTS)
def test_the_screenshots_of_the_docs_are_there(chromium: Chromium, tmp_path: Path, name: str) -> None:
    """`make screenshots` takes them; they are not taken anew by each run, as pixels differ from machine to machine."""
    file = IMAGES / f"{name}.png"
    if os.environ.get("MOTAMOT_SCREENSHOTS"):
        IMAGES.mkdir(exist_ok=True)
        address, context = SHOTS[name]

        async def shoot(browser: Browser) -> None:
            async with (
                pictured_site(tmp_path, many="figures" in name) as (url, ids),
                opened(browser, url, **context) as page,
            ):
                await page.goto(address.format(**ids))
                await page.screenshot(path=file, animations="disabled")

        chromium.run(shoot)
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) < 200_000


@asynccontextmanager
async def pictured_site(folder: Path, *, many: bool) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """A site to take pictures of, and its exchanges. many: over a month, made up."""
    if not many:
        async with chatbot(folder, SAID, options={"money_per_day": 5.0}) as s:
            yield s.url, await pictured(s)
        return
    make(folder / "books.sqlite3", 3_000)
    chat = Assistant(upstream="http://127.0.0.1:1/v1", model="none")
    site = Site([chat], store=folder / "books.sqlite3", options=Options(operator_key=OPERATOR_KEY))
    async with running(site) as (_, url):
        yield url, {}
