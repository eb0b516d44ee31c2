"""The page can be read and used by everybody: keyboard, screen reader, small and large, French and English."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from motamot.errors import Conflict, InvalidRequest, LimitExceeded, NotFound
from motamot.limits import Limits
from motamot.server import refusals
from motamot.server.options import Options
from tests.node import node
from tests.page.support import Chromium, Reader, chat, opened

GATED = [{"say": ["First ", "piece."]}, {"gate": "curtain"}, {"say": [" And", " the rest."]}]
LONG = [{"say": "A line of the answer.\n" * 60}, {"gate": "curtain"}, {"say": "More of it.\n" * 60}]

WORDS = Path(__file__).parents[2] / "widget" / "src" / "words" / "index.ts"

LISTEN = """
    addEventListener("DOMContentLoaded", () => {
        window.heard = []
        const { shadowRoot } = document.querySelector("motamot-chat")
        for (const region of shadowRoot.querySelectorAll("[role=status], [role=alert], [role=log], [aria-live]"))
            new MutationObserver(() => { if (region.textContent) window.heard.push([region.role, region.textContent]) })
                .observe(region, { childList: true, characterData: true, subtree: true })
    })
"""


def test_a_screen_reader_is_told_once_at_the_start_and_once_at_the_end(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"say": ["word "] * 200}, {"gate": "curtain"}, {"say": ["word "] * 200}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url, before=LISTEN) as reader:
            await reader.ask("Hello")
            await reader.shows(re.compile(r"(word ){200}"))
            assert await reader.page.evaluate("heard") == [["status", "The answer is coming."]]
            await expect(reader.answer()).to_have_attribute("aria-busy", "true")
            served.model.release("curtain")
            await reader.ended("complete")
            assert (await reader.page.evaluate("heard"))[1:] == [["status", "The answer is here."]]

    chromium.run(scenario)


def test_a_failure_is_an_alert_each_time(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"say": "So far"}, {"close": "reset"}]
        async with chat(tmp_path, [script, script]) as served, opened(browser, served.url, before=LISTEN) as reader:
            await reader.ask("Hello")
            await reader.ended("failed")
            await reader.page.get_by_role("button", name="Try again").click()
            await served.model.wait_request(1)
            await reader.ended("failed")
            heard = await reader.page.evaluate("heard")
            assert [role for role, _ in heard] == ["status", "alert", "status", "alert"] or [
                role for role, _ in heard
            ] == ["status", "alert", "alert"]
            assert heard[-1][1] == "The connection to the model was cut in the middle of its answer."

    chromium.run(scenario)


def test_everything_can_be_done_with_the_keyboard_alone(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [GATED, [{"say": "x"}, {"close": "reset"}], [{"say": "Again."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            keyboard = reader.page.keyboard
            assert await reader.focused() == "question", "one can type at once"
            await keyboard.type("Hello")
            await keyboard.press("Tab")
            await keyboard.press("Space")
            await reader.shows("First piece.")
            assert await reader.focused() == "question"
            await keyboard.type("a draft")
            await keyboard.press("Enter")
            assert await reader.page.locator("#question").input_value() == "a draft", "Enter neither stops nor sends"
            await keyboard.press("Tab")
            await keyboard.press("Enter")
            await reader.ended("stopped")
            await keyboard.press("Enter")
            await reader.ended("failed")
            for wanted in ("copy", "retry"):
                await keyboard.press("Shift+Tab")
                assert await reader.focused() == wanted
            await keyboard.press("Enter")
            await reader.shows("Again.")
            reached = set()
            for _ in range(12):
                await keyboard.press("Tab")
                reached.add(await reader.focused())
            assert {"fresh", "remove", "language", "log", "question", "send"} <= reached
            await reader.page.locator("#remove").focus()
            await keyboard.press("Enter")
            await expect(reader.page.get_by_role("dialog", name="Delete this conversation?")).to_be_visible()
            await keyboard.press("Tab")
            await keyboard.press("Enter")
            await expect(reader.page.locator(".exchange")).to_have_count(0)
            assert await reader.focused() == "question"

    chromium.run(scenario)


def test_controls_have_names_and_the_conversation_has_headings(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:
            page = reader.page
            await expect(page.get_by_role("textbox", name="Your question")).to_be_visible()
            await reader.ask("Hello")
            await reader.ended("complete")
            for name in ("Send", "New conversation", "Delete", "Français"):
                await expect(page.get_by_role("button", name=name)).to_be_visible()
            await expect(page.get_by_role("heading", level=1)).to_have_text("motamot")
            assert await page.get_by_role("heading", level=2).all_text_contents() == ["You asked", "Answer"]
            await expect(page.get_by_role("main", name="Conversation")).to_be_visible()
            assert await page.locator("#language").get_attribute("lang") == "fr"

    chromium.run(scenario)


@pytest.mark.parametrize(("locale", "language"), [("fr-FR", "fr"), ("fr-CA", "fr"), ("en-GB", "en"), ("de-DE", "en")])
def test_the_page_speaks_the_browsers_language(chromium: Chromium, tmp_path: Path, locale: str, language: str) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, []) as served, opened(browser, served.url, locale=locale) as reader:
            assert await reader.page.locator("html").get_attribute("lang") == language
            placeholder = {"fr": "Posez une question", "en": "Ask a question"}[language]
            await expect(reader.page.get_by_placeholder(placeholder)).to_be_visible()

    chromium.run(scenario)


def test_the_language_can_be_changed_and_is_kept(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"say": "So far"}, {"finish": "length"}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("truncated")
            await reader.page.get_by_role("button", name="Français").click()
            assert await reader.mark() == "Coupée : la réponse a atteint sa longueur maximale."
            await reader.page.reload()
            await expect(reader.page.get_by_role("button", name="Envoyer")).to_be_visible()
            await reader.ended("truncated")
            assert await reader.text() == "So far", "what was said stays as it is"

    chromium.run(scenario)


def test_what_a_visitor_is_refused_for_is_said_in_french_too() -> None:
    """5xx is tried again, and never shown; `body_bytes` is behind the page's own bound of a question.

    Who signs in is no visitor.
    """
    limits = [
        one.name
        for one in (*fields(Limits), *fields(Options))
        if refusals.status(LimitExceeded("", limit=one.name, maximum=1)) == 429 and not one.name.startswith("sign_in")
    ]
    codes = [kind.code for kind in (InvalidRequest, NotFound, Conflict)]
    script = f"""
        import {{ words }} from {json.dumps(WORDS.as_uri())}
        const names = {json.dumps([*limits, *codes, "unauthorized", "forbidden_origin"])}
        console.log(JSON.stringify(names.filter((name) => words("fr", name, "told") === "told")))
    """
    command = [str(node()), "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert "requests_per_hour" in limits and done.stdout == "[]\n", done.stderr


async def place(reader: Reader) -> tuple[float, float]:
    """Where the view is, and how far it is from the end."""
    top, left = await reader.page.locator("#log").evaluate(
        "e => [e.scrollTop, e.scrollHeight - e.clientHeight - e.scrollTop]"
    )
    return top, left


def test_the_view_follows_the_end_until_the_reader_scrolls_up(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [LONG]) as served, opened(browser, served.url) as reader:
            jump = reader.page.get_by_role("button", name="Jump to latest")
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            await reader.shows(re.compile(r"(A line of the answer\.\n?){60}"))
            top, left = await place(reader)
            assert top > 500 and left <= 4
            await expect(jump).to_be_hidden()
            await reader.page.locator("#log").hover()
            await reader.page.mouse.wheel(0, -300)
            await expect(jump).to_be_visible()
            before, _ = await place(reader)
            served.model.release("curtain")
            await reader.ended("complete")
            await asyncio.sleep(0.1)
            assert (await place(reader))[0] == before, "the page does not move what is being read"
            await jump.click()
            await expect(jump).to_be_hidden()
            assert (await place(reader))[1] <= 4
            assert await reader.focused() == "log", "the focus is not lost with the button"

    chromium.run(scenario)


def test_a_question_brings_the_view_to_its_answer(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[LONG[0]], [{"say": "Short."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.locator("#log").evaluate("e => e.scrollTo(0, 0)")
            await expect(reader.page.get_by_role("button", name="Jump to latest")).to_be_visible()
            await reader.ask("And then?")
            await reader.shows("Short.")
            await expect(reader.page.get_by_role("button", name="Jump to latest")).to_be_hidden()
            assert (await place(reader))[1] <= 4
            await reader.page.locator("#log").evaluate("e => e.scrollTo(0, 0)")
            await expect(reader.page.get_by_role("button", name="Jump to latest")).to_be_visible()
            await reader.page.get_by_role("button", name="New conversation").click()
            await expect(reader.page.get_by_role("button", name="Jump to latest")).to_be_hidden()

    chromium.run(scenario)


def test_a_short_step_up_is_respected_too(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [LONG]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            await reader.shows(re.compile(r"(A line of the answer\.\n?){60}"))
            await reader.page.locator("#log").evaluate("e => e.scrollBy(0, -10)")
            await expect(reader.page.get_by_role("button", name="Jump to latest")).to_be_visible()
            before, _ = await place(reader)
            served.model.release("curtain")
            await reader.ended("complete")
            assert (await place(reader))[0] == before

    chromium.run(scenario)


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (640, 360), (320, 256), (390, 844), (768, 1024)])
def test_the_page_fits_at_any_size_and_zoom(chromium: Chromium, tmp_path: Path, width: int, height: int) -> None:
    """640 × 360 is 1280 × 720 at 200 %, 320 × 256 is 1280 × 1024 at 400 % (WCAG 1.4.4, 1.4.10)."""

    async def scenario(browser: Browser) -> None:
        script = [{"say": "long" * 300 + "\n" + "words and words " * 50}]
        size = {"width": width, "height": height}
        async with (
            chat(tmp_path, [script], name="A" * 60) as served,
            opened(browser, served.url, viewport=size) as reader,
        ):
            await reader.ask("W" * 200)
            await reader.ended("complete")
            wide = await reader.page.evaluate("document.documentElement.scrollWidth")
            inner = await reader.page.locator("#log").evaluate("e => e.scrollWidth - e.clientWidth")
            assert wide <= width and inner <= 0, "nothing is scrolled sideways"
            for name in ("#question", "#send", "#fresh", "#language"):
                box = await reader.page.locator(name).bounding_box()
                assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
                assert box["y"] >= 0 and box["y"] + box["height"] <= height
            log = await reader.page.locator("#log").bounding_box()
            assert log is not None and log["height"] >= 70

    chromium.run(scenario)


def test_nothing_moves_for_who_does_not_want_it(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED, GATED]) as served:
            for motion, name in (("reduce", "none"), ("no-preference", "wait")):
                async with opened(browser, served.url, reduced_motion=motion) as reader:
                    await reader.ask("Hello")
                    await reader.shows("First piece.")
                    dot = reader.page.locator(".dots i").first
                    style: Any = await dot.evaluate("""dot => {
                        dot.closest(".wait").hidden = false
                        return getComputedStyle(dot).animationName
                    }""")
                    assert style == name

    chromium.run(scenario)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(chromium: Chromium, tmp_path: Path, scheme: str) -> None:
    """At least 4.5 : 1 (WCAG 1.4.3), for every text on the page, as the browser paints it."""
    measure = """() => {
        const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
        const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b)
        const parts = (color) => color.match(/[\\d.]+/g).map(Number)
        const ground = (e) => {
            for (; e; e = e.parentElement ?? e.getRootNode().host) {
                const color = parts(getComputedStyle(e).backgroundColor)
                if (color.length === 3 || color[3] === 1) return color
            }
            return [255, 255, 255]
        }
        const found = []
        const walk = document.createTreeWalker(document.querySelector("motamot-chat").shadowRoot, NodeFilter.SHOW_TEXT)
        while (walk.nextNode()) {
            const e = walk.currentNode.parentElement
            if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest(".unseen, noscript")) continue
            const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x)
            found.push([walk.currentNode.data, (a + 0.05) / (b + 0.05)])
        }
        return found
    }"""

    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "a"}, {"finish": "length"}], [{"say": "b"}, {"close": "reset"}]]
        async with (
            chat(tmp_path, scripts, marks=("demo_model",)) as served,
            opened(browser, served.url, color_scheme=scheme) as reader,
        ):
            await reader.ask("One")
            await reader.ended("truncated")
            await reader.ask("Two")
            await reader.ended("failed")
            contrasts = await reader.page.evaluate(measure)
            assert len(contrasts) > 10
            assert not [(text, ratio) for text, ratio in contrasts if ratio < 4.5]

    chromium.run(scenario)


def test_of_several_assistants_one_is_chosen(chromium: Chromium, tmp_path: Path) -> None:
    from motamot.assistant import Assistant
    from motamot.model.recorded import RecordedModel

    other = Assistant(name="</script> & co", upstream=RecordedModel(["From the other."], "a test", pace=0))

    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [[{"say": "From the first."}]], others=[other]) as served,
            opened(browser, served.url) as reader,
        ):
            await reader.ask("Hello")
            await reader.shows("From the first.")
            await reader.page.get_by_label("Assistant").select_option("</script> & co")
            await expect(reader.page.locator("#model")).to_contain_text("Recorded sample")
            assert await reader.page.title() == "</script> & co"
            await reader.ask("Hello")
            await reader.shows("From the other.")
            assert len(served.model.requests) == 1
            await reader.page.get_by_label("Assistant").select_option("default")
            await reader.shows("From the first.")

    chromium.run(scenario)
