"""The reading panel: chosen once, for all pages and all chats of an origin, and by every means of input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.page.support import NO_STORAGE, Chromium, chat, opened
from tests.widget.shop import at, site

TWO = """<!doctype html><title>Shop</title><script src="{chat}widget.js" async></script>
    <div style="width: 40em; height: 20em"><motamot-chat id="box"></motamot-chat></div>"""


async def ground(chat: Locator) -> str:
    """The colour that a chat stands on."""
    colour: str = await chat.locator("#chat").evaluate("chat => getComputedStyle(chat).backgroundColor")
    return colour


async def size(chat: Locator) -> float:
    """How large its letters are, in CSS pixels."""
    return float(await chat.locator("#question").evaluate("box => parseFloat(getComputedStyle(box).fontSize)"))


CREAM = "rgb(251, 241, 218)"


def test_what_is_chosen_once_holds_in_every_chat_of_the_origin_at_once_and_later(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [], origins=[shop.origin]) as served:
                shop["/"] = shop["/other"] = TWO.format(chat=served.url)
                context = await browser.new_context()
                async with at(context, f"{shop.origin}/") as one, at(context, f"{shop.origin}/other") as two:
                    chats: list[Locator] = []
                    for reader in (one, two):
                        await reader.page.get_by_role("button", name="Open the chat").click()
                        chats += [reader.page.locator("#box"), reader.page.locator("motamot-launcher motamot-chat")]
                    before = [await size(each) for each in chats]
                    await chats[0].get_by_role("button", name="Reading comfort").click()
                    await chats[0].get_by_role("radio", name="Cream").check()
                    await chats[0].get_by_role("radio", name="200 %").check()
                    for each, was in zip(chats, before, strict=True):
                        await expect(each.locator("#chat")).to_have_attribute("data-size", "200")
                        assert await ground(each) == CREAM
                        assert await size(each) == 2 * was
                    for reader in (one, two):
                        await reader.page.reload()
                        await expect(reader.page.locator("#box #chat")).to_have_attribute("data-ground", "cream")
                    await chats[3].get_by_role("button", name="Reading comfort").click()
                    await expect(chats[3].get_by_role("radio", name="Cream")).to_be_checked()
                    await chats[3].get_by_role("button", name="Reset").click()
                    for each in chats:
                        await expect(each.locator("#chat")).not_to_have_attribute("data-ground", "cream")
                    kept = await two.page.evaluate("localStorage.getItem('motamot reading')")
                    assert json.loads(kept) == {}
                await context.close()

    chromium.run(scenario)


def test_the_panel_is_used_by_keyboard_alone_and_gives_the_focus_back(chromium: Chromium, tmp_path: Path) -> None:
    """Escape in it closes it, and stops no answer."""

    async def scenario(browser: Browser) -> None:
        script = [{"say": "So far"}, {"gate": "end"}, {"say": ", so good."}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            keyboard = reader.page.keyboard
            await reader.ask("Hello")
            await reader.shows("So far")
            await reader.page.locator("#reading").focus()
            await keyboard.press("Enter")
            await expect(reader.page.get_by_role("dialog", name="Reading comfort")).to_be_visible()
            assert await reader.page.get_by_role("radio", name="As the site").evaluate(FOCUSED)
            await keyboard.press("ArrowRight")
            await expect(reader.page.locator("#chat")).to_have_attribute("data-ground", "cream")
            for _ in range(3):
                await keyboard.press("Tab")
            await keyboard.press("ArrowDown")
            await expect(reader.page.locator("#chat")).to_have_attribute("data-lines", "wide")
            await keyboard.press("Tab")
            await keyboard.press("Enter")
            await expect(reader.page.locator("#chat")).not_to_have_attribute("data-lines", "wide")
            assert await reader.page.get_by_role("radio", name="As the site").evaluate(FOCUSED), "the button is gone"
            await keyboard.press("Escape")
            await expect(reader.page.locator("#reading-panel")).to_be_hidden()
            assert await reader.focused() == "reading"
            assert await reader.page.locator("#reading").get_attribute("aria-expanded") == "false"
            assert await reader.answer().get_attribute("aria-busy") == "true"
            served.model.release("end")
            await reader.shows("So far, so good.")

    chromium.run(scenario)


FOCUSED = "element => element.getRootNode().activeElement === element"


@pytest.mark.parametrize("kept", ['{"ground": "purple"}', '{"size": 300}', "[1]", '"cream"', "{", "null"])
def test_what_is_kept_and_is_not_ours_changes_nothing(chromium: Chromium, tmp_path: Path, kept: str) -> None:
    async def scenario(browser: Browser) -> None:
        before = f"localStorage.setItem('motamot reading', {json.dumps(kept)})"
        async with chat(tmp_path, []) as served, opened(browser, served.url, before=before) as reader:
            found = await reader.page.locator("#chat").evaluate(
                "({dataset}) => ['ground', 'contrast', 'size', 'lines'].filter((name) => name in dataset)"
            )
            assert found == []

    chromium.run(scenario)


def test_without_storage_it_holds_until_a_reload(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, []) as served, opened(browser, served.url, before=NO_STORAGE) as reader:
            await reader.page.locator("#reading").click()
            await reader.page.get_by_role("radio", name="Cream").check()
            assert await ground(reader.page.locator("motamot-chat")) == CREAM

    chromium.run(scenario)


def test_who_asks_the_system_for_contrast_gets_it_until_they_say_otherwise(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, []) as served, opened(browser, served.url, contrast="more") as reader:
            page = reader.page
            await expect(page.locator("#chat")).to_have_attribute("data-contrast", "high")
            await page.locator("#reading").click()
            await page.locator("label[data-choice=normal]").first.click()
            await expect(page.locator("#chat")).not_to_have_attribute("data-contrast", "high")
            await page.reload()
            await expect(page.locator("#chat")).not_to_have_attribute("data-contrast", "high")

    chromium.run(scenario)


def test_a_readers_choice_is_stronger_than_the_sites_colours_and_theme(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [], origins=[shop.origin]) as served:
                shop["/"] = f"""<!doctype html><title>Shop</title>
                    <style>motamot-chat {{ --motamot-ground: rgb(1, 2, 3); --motamot-ink: rgb(250, 251, 252) }}</style>
                    <script src="{served.url}widget.js" data-launcher="none" async></script>
                    <div style="height: 40em"><motamot-chat theme="dark"></motamot-chat></div>"""
                async with at(browser, f"{shop.origin}/") as reader:
                    box = reader.page.locator("motamot-chat")
                    await expect(box.locator("#question")).to_be_visible()
                    assert await ground(box) == "rgb(1, 2, 3)"
                    await box.locator("#reading").click()
                    await box.get_by_role("radio", name="Cream").check()
                    assert await ground(box) == CREAM
                    scheme = "chat => [getComputedStyle(chat).colorScheme, getComputedStyle(chat).color]"
                    assert await box.locator("#chat").evaluate(scheme) == ["light", "rgb(42, 36, 25)"]

    chromium.run(scenario)


@pytest.mark.parametrize("where", [(320, 256), (320, 568), (1000, 700)])
def test_the_panel_can_be_used_at_any_size_of_text_and_window(
    chromium: Chromium, tmp_path: Path, where: tuple[int, int]
) -> None:
    """320 by 256 is a window of 1280 by 1024 at 400 % (WCAG 1.4.10); nothing scrolls sideways."""

    async def scenario(browser: Browser) -> None:
        width, height = where
        view = {"width": width, "height": height}
        async with chat(tmp_path, []) as served, opened(browser, served.url, viewport=view) as reader:
            await reader.page.locator("#reading").click()
            await reader.page.get_by_role("radio", name="200 %").check()
            for choice in ("Tinted", "High", "Wide"):
                await reader.page.get_by_role("radio", name=choice).check()
            assert await sideways(reader.page) == []
            await reader.page.get_by_role("button", name="Close").click()
            await expect(reader.page.locator("#reading-panel")).to_be_hidden()
            assert await sideways(reader.page) == []

    chromium.run(scenario)


async def sideways(page: Page) -> list[str]:
    """What is wider than the window, or is cut off at its side."""
    found: list[str] = await page.evaluate("""() => {
        const all = [document.documentElement]
        const visit = (root) => { for (const one of root.querySelectorAll("*")) {
            all.push(one)
            if (one.shadowRoot) visit(one.shadowRoot)
        } }
        visit(document)
        return all
            .filter((one) => one.checkVisibility() && one.closest(".unseen, .table, pre, svg") === null)
            .filter((one) => {
                const { left, right, width } = one.getBoundingClientRect()
                const seen = width > 1 && (left < -0.5 || right > innerWidth + 0.5)
                return seen || (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "auto")
            })
            .map((one) => `${one.localName}#${one.id}.${one.className} ${one.getBoundingClientRect().right}`)
    }""")
    return found
