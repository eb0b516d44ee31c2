"""Each piece of code in docs/widget.md does what the page says it does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Request, expect

from motamot.settings.loading import load
from tests.page.support import Chat, Chromium, Reader, chat
from tests.test_documents import blocks
from tests.widget.shop import at, site

ROOT = Path(__file__).parents[2]
PAGE = "docs/widget.md"
EXAMPLES = ROOT / "examples" / "widget"
CHAT = "https://chat.example/"
MODULE, GERMAN, EVENTS = blocks(PAGE, "js")
LINE, BOX = blocks(PAGE, "html")
[CSS] = blocks(PAGE, "css")


@asynccontextmanager
async def shown(
    browser: Browser, tmp_path: Path, body: str, *, policy: str = "", **files: str
) -> AsyncIterator[Reader]:
    """A page of another site with what the documentation has, before a chat whose assistant is named as there."""

    def real(text: str, served: Chat) -> str:
        return text.replace(CHAT, served.url).replace(CHAT.rstrip("/"), served.url.rstrip("/"))

    with site() as shop:
        script = [[{"say": "**Yes**, we do."}]]
        async with chat(tmp_path, script, origins=[shop.origin], name="help") as served:
            shop["/"] = f'<!doctype html><html lang="en"><title>Shop</title>{real(body, served)}'
            for name, text in files.items():
                shop[f"/{name}.js"] = real(text, served)
            if policy:
                shop.headers["Content-Security-Policy"] = real(policy, served)
            async with at(browser, f"{shop.origin}/") as reader:
                yield reader


async def answers(reader: Reader) -> None:
    """It can be asked, and answers."""
    await reader.ask("Do you deliver?")
    await reader.ended("complete")
    await expect(reader.page.locator(".text strong")).to_have_text("Yes")


def policy() -> str:
    """The page's own, with its own files beside."""
    [told] = blocks(PAGE, "http")
    name, _, value = told.strip().partition(": ")
    assert name == "Content-Security-Policy"
    return value


@pytest.mark.parametrize("strict", [False, True])
def test_the_one_line_puts_a_chat_into_a_page_also_under_the_policy_of_the_page(
    chromium: Chromium, tmp_path: Path, strict: bool
) -> None:
    async def scenario(browser: Browser) -> None:
        async with shown(browser, tmp_path, LINE, policy=policy() if strict else "") as reader:
            assert not [url for url in reader.requests if "/api/" in url]
            await reader.page.get_by_role("button", name="Open the chat").click()
            await answers(reader)

    chromium.run(scenario)


@pytest.mark.parametrize("strict", [False, True])
def test_the_element_fills_a_box_of_the_page(chromium: Chromium, tmp_path: Path, strict: bool) -> None:
    async def scenario(browser: Browser) -> None:
        async with shown(browser, tmp_path, BOX, policy=policy() if strict else "") as reader:
            await answers(reader)
            assert await reader.page.locator("motamot-launcher").count() == 0
            if not strict:
                await reader.page.add_style_tag(content=".help-chat { height: 36em }")
                box = await reader.page.locator("motamot-chat").bounding_box()
                assert box is not None and box["height"] == 36 * 16

    chromium.run(scenario)


def test_the_module_defines_the_element_when_it_is_told_to(chromium: Chromium, tmp_path: Path) -> None:
    page = '<script type="module" src="chat.js"></script><motamot-chat assistant="help"></motamot-chat>'

    async def scenario(browser: Browser) -> None:
        own = policy().replace("script-src", "script-src 'self'")
        async with shown(browser, tmp_path, page, policy=own, chat=MODULE) as reader:
            await answers(reader)

    chromium.run(scenario)


def test_the_file_of_the_wheel_serves_a_site_that_takes_scripts_only_from_itself(
    chromium: Chromium, tmp_path: Path
) -> None:
    """And whoever serves it has to say where the chat is."""
    [copy] = [text for text in blocks(PAGE, "console") if "motamot.mjs" in text]
    command = copy.removeprefix("$ ").replace("python", shlex.quote(sys.executable), 1)
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=20)
    module = (tmp_path / "motamot.mjs").read_text("utf-8")
    start = 'import { define } from "./motamot.js"; define()'
    page = f'<script type="module" src="chat.js"></script><motamot-chat server="{CHAT}"></motamot-chat>'
    own = "script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

    async def scenario(browser: Browser) -> None:
        async with shown(browser, tmp_path, page, policy=own, chat=start, motamot=module) as reader:
            await answers(reader)

    chromium.run(scenario)


def test_another_language_and_events_are_as_the_page_has_them(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        page = f'{LINE.replace("<script ", "<script data-lang=de ")}<script src="words.js"></script>'
        page += '<script src="events.js"></script>'
        heard = EVENTS.replace('=== "failed"', '=== "complete"')
        async with shown(browser, tmp_path, page, words=GERMAN, events=heard) as reader:
            logged: list[str] = []
            reader.page.on("console", lambda said: logged.append(said.text) if said.type == "log" else None)
            await reader.page.get_by_role("button", name="Chat öffnen").click()
            await expect(reader.page.get_by_placeholder("Stellen Sie eine Frage")).to_be_visible()
            await answers(reader)
            assert [line.split(":")[0] for line in logged] == ["an answer failed"]

    chromium.run(scenario)


def test_the_custom_properties_of_the_page_colour_the_chat(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shown(browser, tmp_path, f"<style>{CSS}</style>{BOX}") as reader:
            send = reader.page.locator("#send")
            await expect(send).to_be_visible()
            assert await send.evaluate("send => getComputedStyle(send).backgroundColor") == "rgb(138, 75, 31)"
            await reader.page.emulate_media(color_scheme="dark")
            assert await send.evaluate("send => getComputedStyle(send).backgroundColor") == "rgb(230, 168, 119)"

    chromium.run(scenario)


def test_the_settings_of_the_page_let_the_site_in(tmp_path: Path) -> None:
    [settings] = blocks(PAGE, "toml")
    (tmp_path / "motamot.toml").write_text(settings)
    loaded = load(tmp_path / "motamot.toml", environ={})
    assert list(loaded.assistants["help"].origins) == ["https://shop.example"]


def test_what_is_kept_and_asked_for_is_what_the_page_names(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shown(browser, tmp_path, LINE) as reader:
            asked: list[Request] = []
            reader.page.on("request", lambda request: asked.append(request))
            await reader.page.get_by_role("button", name="Open the chat").click()
            await answers(reader)
            await reader.page.locator("#reading").click()
            await reader.page.get_by_role("radio", name="Cream").check()
            await reader.page.keyboard.press("Escape")
            await reader.page.get_by_role("button", name="Français").click()
            kept = await reader.page.evaluate("[...Object.keys(localStorage), ...Object.keys(sessionStorage)]")
            about = {re.sub(r"^motamot (http\S+ )?| help$", "", name) for name in kept}
            assert all(name.startswith("motamot ") for name in kept)
            assert about == {"secret", "conversation", "language", "reading", "open"}
            assert await reader.page.evaluate("document.cookie") == ""
            assert await reader.page.context.cookies() == []
            paths = {re.sub(r"^\w+://[^/]+", "", request.url) for request in asked}
            assert paths <= {"/api/widget", "/api/chat/stream"}

    chromium.run(scenario)


@pytest.mark.parametrize(
    ("language", "file"),
    [
        ("php", "wordpress/motamot-chat.php"),
        ("tsx", "next/app/layout.tsx"),
        ("tsx", "next/app/help/chat.tsx"),
        ("ts", "next/motamot.d.ts"),
    ],
)
def test_what_was_tried_by_hand_is_what_the_page_shows(language: str, file: str) -> None:
    assert (EXAMPLES / file).read_text("utf-8") in blocks(PAGE, language)


def test_the_page_names_every_word_there_is() -> None:
    words = re.findall(r"^  (\w+):", (ROOT / "widget" / "src" / "words" / "en.ts").read_text("utf-8"), re.MULTILINE)
    [told] = re.findall(r"The names are: (.*?)\. What", (ROOT / PAGE).read_text("utf-8"), re.DOTALL)
    assert re.findall(r"`(\w+)`", told) == words
    assert len(words) > 50


def test_the_shop_of_the_examples_is_one_line_from_having_a_chat() -> None:
    assert LINE.strip() in (EXAMPLES / "static" / "index.html").read_text("utf-8")
