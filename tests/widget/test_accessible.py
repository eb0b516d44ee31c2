"""Everybody can use the chat: in every state, by keyboard, with a screen reader, enlarged, in any colours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from motamot.answer import AnswerEvent, Cited, Text
from motamot.assistant import Assistant, Question
from motamot.exchange.exchange import Visible
from tests.page.support import Chat, Chromium, chat, opened
from tests.widget.axe import violations
from tests.widget.shop import at, site
from tests.widget.test_panel import sideways

RICH = """# Returns

You can return an order within **30 days**, see [the terms](https://shop.example/terms).

1. Open *My orders*.
2. Print the label.
   - [x] paid
   - [ ] sent

| Where | How long |
| --- | ---: |
| Counter | at once |
| Post | 3–5 days |

```python
def days_left(bought: date) -> int:
    return 30 - (date.today() - bought).days  # a line that is longer than any box of a chat is wide
```

> Sale items can be exchanged, and `not` returned.

---
"""
CLOSE = [{"close": "reset"}]
GATED = [{"say": "It is "}, {"gate": "end"}, {"say": "there."}]


async def order_status(order: str) -> str:
    """Where an order is."""
    return "on its way"


def page_of(served: Chat, *, attributes: str = "", lang: str = "en", style: str = "") -> str:
    """A site's page with the launcher."""
    return f"""<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><title>A shop</title>
        <meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>
        <body><main><h1>A shop</h1><p>We sell lamps. <a href="/terms">Terms</a></p></main>
        <script src="{served.url}widget.js" {attributes} async></script></body></html>"""


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("lang", ["en", "fr"])
def test_axe_finds_nothing_from_the_closed_button_to_the_answer(
    chromium: Chromium, tmp_path: Path, lang: str, colours: Any
) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as shop:
            scripts = [[{"wait": "300ms"}, {"say": RICH}, {"gate": "end"}, {"say": "There."}]]
            async with chat(tmp_path, scripts, origins=[shop.origin]) as served:
                shop["/"] = page_of(served, lang=lang)
                async with at(browser, shop.origin + "/", color_scheme=colours) as reader:
                    page = reader.page
                    launcher = page.locator("#button")
                    await expect(launcher).to_be_visible()
                    assert await violations(page) == []
                    await launcher.click()
                    await expect(page.locator("#welcome")).to_be_visible()
                    assert await violations(page) == []
                    await reader.ask("How do I return something?")
                    await expect(page.locator(".wait")).to_be_visible()
                    assert await violations(page) == []
                    await expect(page.locator("blockquote")).to_be_visible()
                    assert await reader.answer().get_attribute("aria-busy") == "true"
                    assert await violations(page) == []
                    served.model.release("end")
                    await reader.ended("complete")
                    assert await violations(page) == []
                    await page.locator("#reading").click()
                    assert await violations(page) == []
                    await page.keyboard.press("Escape")
                    await page.locator("#remove").click()
                    await expect(page.locator("#sure")).to_be_visible()
                    assert await violations(page) == []

    chromium.run(scenario)


def test_what_axe_says_nothing_of_it_has_looked_at(chromium: Chromium, tmp_path: Path) -> None:
    """A name that is missing and a text that is too pale are found in the chat's own root."""

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, []) as served, opened(browser, served.url) as reader:
            await reader.page.locator("#send").evaluate("send => { send.ariaLabel = ''; send.title = '' }")
            await reader.page.locator("#machine").evaluate("machine => { machine.style.color = '#ccc' }")
            found = {line.split(":")[0] for line in await violations(reader.page)}
            assert found == {"button-name", "color-contrast"}

    chromium.run(scenario)


OUTCOMES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "stopped": ([{"say": "So far"}, {"gate": "end"}], "stopped"),
    "cut": ([{"say": "So far"}, {"finish": "length"}], "truncated"),
    "filtered": ([{"say": "So far"}, {"finish": "content_filter"}], "filtered"),
    "failed": ([{"say": "So far"}, *CLOSE], "failed"),
    "empty": ([{"finish": "stop"}], "complete"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_axe_finds_nothing_however_an_answer_ended(chromium: Chromium, tmp_path: Path, name: str) -> None:
    script, outcome = OUTCOMES[name]

    async def scenario(browser: Browser) -> None:
        marks = ("recorded", "demo_model", "test_model")
        async with chat(tmp_path, [script], marks=marks) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            if outcome == "stopped":
                await reader.shows("So far")
                await reader.page.keyboard.press("Escape")
            await reader.ended(outcome)
            for colours in ("light", "dark"):
                await reader.page.emulate_media(color_scheme=colours)
                assert await violations(reader.page) == []

    chromium.run(scenario)


def test_axe_finds_nothing_with_a_choice_tools_sources_and_reasoning(chromium: Chromium, tmp_path: Path) -> None:
    async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
        async for event in question.model_answer():
            yield event
        yield Text(" See:")
        yield Cited(title="Terms", url="https://shop.example/terms", quote="within 30 days")
        yield Cited(title="By hand")

    async def scenario(browser: Browser) -> None:
        turns = [
            [{"think": "Let me see."}, {"call": {"name": "order_status", "arguments": {"order": "7"}}}],
            [{"say": "It is on its way."}],
        ]
        async with (
            chat(
                tmp_path,
                turns,
                tools=[order_status],
                visible=Visible(reasoning=True),
                answer=answer,
                others=[Assistant(name="sales", upstream="http://127.0.0.1:9/v1", model="none")],
            ) as served,
            opened(browser, served.url) as reader,
        ):
            await reader.ask("Where is my order?")
            await reader.ended("complete")
            await reader.page.locator("summary").click()
            assert await violations(reader.page) == []

    chromium.run(scenario)


def test_axe_finds_nothing_where_the_chat_cannot_be_reached_or_loaded(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url, go=False) as reader:
            page = reader.page
            await page.route("**/api/widget", lambda route: route.abort())
            await page.goto(served.url)
            await expect(page.locator("#trouble button")).to_be_visible()
            assert await violations(page) == []
            await page.unroute("**/api/widget")
            await page.locator("#trouble button").click()
            await reader.ask("Hello")
            await reader.ended("complete")
            await page.route("**/api/conversations/*", lambda route: route.fulfill(status=500, body="no"))
            await page.reload()
            await expect(page.locator("#trouble button")).to_be_visible()
            assert await violations(page) == []

    chromium.run(scenario)


@pytest.mark.parametrize("ground", ["plain", "cream", "tinted"])
@pytest.mark.parametrize("contrast", ["normal", "high"])
def test_text_has_its_contrast_on_every_ground(chromium: Chromium, tmp_path: Path, ground: str, contrast: str) -> None:
    """4.5 by WCAG's 1.4.3, and 7 (1.4.6) where high contrast was chosen."""

    async def scenario(browser: Browser) -> None:
        script = [{"say": RICH}, {"finish": "length"}]
        async with chat(tmp_path, [script], marks=("demo_model",)) as served, opened(browser, served.url) as reader:
            page = reader.page
            kept = json.dumps({"ground": ground, "contrast": contrast})
            await page.evaluate("kept => localStorage.setItem('motamot reading', kept)", kept)
            await page.reload()
            await reader.ask("Hello")
            await reader.ended("truncated")
            await page.locator("#reading").click()
            for colours in ("light", "dark"):
                await page.emulate_media(color_scheme=colours)
                assert await violations(page) == []
                if contrast == "high":
                    await enhanced(page)

    async def enhanced(page: Page) -> None:
        found = await page.evaluate("""() => axe.run({runOnly: ['color-contrast-enhanced']})
            .then(({violations}) => violations.flatMap(({nodes}) => nodes.map(({any}) => any[0].message)))""")
        assert found == []

    chromium.run(scenario)


def test_the_button_gives_the_focus_to_the_question_and_escape_gives_it_back(
    chromium: Chromium, tmp_path: Path
) -> None:
    """Escape stops an answer first."""

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [GATED], origins=[shop.origin]) as served:
                shop["/"] = page_of(served)
                async with at(browser, shop.origin + "/") as reader:
                    page = reader.page
                    await page.get_by_role("link", name="Terms", exact=True).focus()
                    await page.keyboard.press("Tab")
                    assert await reader.focused() == "button"
                    await page.keyboard.press("Enter")
                    assert await reader.focused() == "question"
                    launcher = page.locator("motamot-launcher #button")
                    await expect(launcher).to_have_attribute("aria-expanded", "true")
                    await page.keyboard.type("Where is it?")
                    await page.keyboard.press("Enter")
                    await reader.shows("It is ")
                    await page.keyboard.press("Escape")
                    await reader.ended("stopped")
                    assert await reader.focused() == "question"
                    await page.keyboard.press("Escape")
                    await expect(page.locator("motamot-launcher #panel")).to_be_hidden()
                    await expect(launcher).to_have_attribute("aria-expanded", "false")
                    assert await reader.focused() == "button"
                    assert await served.outcomes() == ["stopped"]

    chromium.run(scenario)


FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def test_everything_can_be_reached_and_left_by_keyboard(chromium: Chromium, tmp_path: Path) -> None:
    """From the page's link through all of the chat and out again: every control once, in the order of reading."""

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [[{"say": RICH}, {"finish": "length"}]], origins=[shop.origin]) as served:
                shop["/"] = page_of(served, attributes="data-open")
                async with at(browser, shop.origin + "/") as reader:
                    await reader.ask("Hello")
                    await reader.ended("truncated")
                    await reader.page.get_by_role("link", name="Terms", exact=True).focus()
                    seen: list[str] = []
                    while len(seen) < 40:
                        await reader.page.keyboard.press("Tab")
                        await reader.page.evaluate(FRAMES)  # where that scrolls, the button to the end comes and goes
                        if await reader.page.evaluate("document.activeElement === document.body"):
                            break  # past the end of the page
                        seen.append(await reader.focused())
                    controls = ["fresh", "remove", "reading", "language", "close", "log"]
                    inside = ["copy", "regenerate", "more", "question", "send", "button"]
                    assert seen[:6] == controls
                    assert seen[-6:] == inside
                    assert "code-copy" in seen

    chromium.run(scenario)


LISTEN = """() => {
    window.said = []
    const root = document.querySelector("motamot-chat").shadowRoot
    for (const region of root.querySelectorAll("[role=status], [role=alert], [aria-live]")) {
        new MutationObserver(() => {
            const text = region.textContent.trim()
            if (text !== "") window.said.push(`${region.getAttribute("role")}: ${text}`)
        }).observe(region, { childList: true, characterData: true, subtree: true })
    }
}"""


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ([{"say": ["One ", "two ", "three."]}], "status: The answer is here."),
        (
            [{"say": ["One ", "two "]}, {"finish": "length"}],
            "status: Cut off: the answer has reached its greatest length.",
        ),
        ([{"say": "One "}, *CLOSE], "alert: The connection to the model was cut in the middle of its answer."),
    ],
    ids=["complete", "cut", "failed"],
)
def test_who_listens_hears_once_that_it_comes_and_once_how_it_ended(
    chromium: Chromium, tmp_path: Path, script: list[dict[str, Any]], end: str
) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.page.evaluate(LISTEN)
            await reader.ask("Hello")
            await expect(reader.answer()).to_have_attribute("aria-busy", "false")
            said = await reader.page.evaluate("said")
            assert said[0] == "status: The answer is coming."
            assert len(said) == 2
            assert said[1].split(".")[0] == end.split(".")[0]

    chromium.run(scenario)


@pytest.mark.parametrize("gone", ["#remove", ".copy"])
def test_a_button_that_goes_by_itself_does_not_take_the_focus_along(
    chromium: Chromium, tmp_path: Path, gone: str
) -> None:
    """Another tab goes on with the conversation, then deletes it, while the focus is on what this takes away."""

    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "One."}], [{"say": "Two."}]]
        async with chat(tmp_path, scripts) as served:
            context = await browser.new_context(base_url=served.url)
            async with opened(context, served.url) as one:
                await one.ask("First?")
                await one.ended("complete")
                async with opened(context, served.url) as two:
                    await two.ended("complete")
                    await two.page.locator(".regenerate").focus()
                    await one.ask("Second?")
                    await two.shows("Two.")
                    assert await two.focused() == "question"
                    await two.page.locator(gone).first.focus()
                    await one.page.locator("#remove").click()
                    await one.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
                    await expect(two.page.locator("#welcome")).to_be_visible()
                    assert await two.focused() == "question"
                    assert await one.focused() == "question"
            await context.close()

    chromium.run(scenario)


@pytest.mark.parametrize("where", [(320, 256), (320, 568), (640, 400)])
def test_nothing_scrolls_sideways_on_a_small_or_enlarged_page(
    chromium: Chromium, tmp_path: Path, where: tuple[int, int]
) -> None:
    """320 pixels are a window of 1280 at 400 %, 640 one at 200 % (WCAG 1.4.10, 1.4.4)."""

    async def scenario(browser: Browser) -> None:
        width, height = where
        with site() as shop:
            script = [{"say": RICH + "A" * 300}, {"finish": "length"}]
            async with chat(tmp_path, [script], origins=[shop.origin]) as served:
                shop["/"] = page_of(served)
                async with at(browser, f"{shop.origin}/", viewport={"width": width, "height": height}) as reader:
                    assert await sideways(reader.page) == []
                    await reader.page.locator("motamot-launcher #button").click()
                    await reader.ask("How do I return a very, very long and quiteunbreakable" + "word" * 20 + "?")
                    await reader.ended("truncated")
                    assert await sideways(reader.page) == []
                    log = await reader.page.locator("#log").bounding_box()
                    assert log is not None and log["height"] >= 90, "there is room to read"
                    machine = await reader.page.locator("#machine").bounding_box()
                    assert machine is not None and machine["y"] + machine["height"] <= height
                    await reader.page.locator("#remove").click()
                    assert await sideways(reader.page) == []

    chromium.run(scenario)


PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SMALL = """(least) => {
    const found = []
    const visit = (root) => { for (const one of root.querySelectorAll("*")) {
        if (one.shadowRoot) visit(one.shadowRoot)
        const target = one.matches("#reading-panel input") ? one.closest("label") : one
        if (!one.matches("button, select, textarea, input:not([disabled]), summary")) continue
        const { width, height } = target.getBoundingClientRect()
        const small = width < least || height < least
        if (small && target.checkVisibility()) found.push(`${one.localName}#${one.id} ${width}x${height}`)
    } }
    visit(document)
    return found
}"""


@pytest.mark.parametrize("least", [24, 44])
def test_what_is_pressed_is_large_enough(chromium: Chromium, tmp_path: Path, least: int) -> None:
    """24 pixels (WCAG 2.5.8), and 44 under a finger (2.5.5)."""

    async def scenario(browser: Browser) -> None:
        fingers = PHONE if least == 44 else {}
        with site() as shop:
            script = [{"think": "Hm."}, {"say": RICH}, {"finish": "length"}]
            async with chat(tmp_path, [script], origins=[shop.origin], visible=Visible(reasoning=True)) as served:
                shop["/"] = page_of(served)
                async with at(browser, f"{shop.origin}/", **fingers) as reader:
                    assert await reader.page.evaluate(SMALL, least) == []
                    await reader.page.locator("motamot-launcher #button").click()
                    await reader.ask("Hello")
                    await reader.ended("truncated")
                    assert await reader.page.evaluate(SMALL, least) == []
                    await reader.page.locator("#reading").click()
                    assert await reader.page.evaluate(SMALL, least) == []
                    await reader.page.keyboard.press("Escape")
                    await reader.page.locator("#remove").click()
                    assert await reader.page.evaluate(SMALL, least) == []

    chromium.run(scenario)


KEYBOARD = """
    const seen = new EventTarget()
    Object.assign(seen, { height: innerHeight, offsetTop: 0, scale: 1 })
    Object.defineProperty(window, "visualViewport", { value: seen })
    window.keyboard = (height) => {
        Object.assign(seen, { height: innerHeight - height, offsetTop: height === 0 ? 0 : 20 })
        seen.dispatchEvent(new Event("resize"))
    }
"""


def test_on_a_phone_the_chat_fills_the_window_above_the_keyboard(chromium: Chromium, tmp_path: Path) -> None:
    """What is behind it is neither read out nor reached; its own button, Escape and the way back close it."""

    async def scenario(browser: Browser) -> None:
        with site() as shop:
            async with chat(tmp_path, [[{"say": "Yes."}], GATED], origins=[shop.origin]) as served:
                shop["/"] = page_of(served, attributes="data-open")
                async with at(browser, f"{shop.origin}/", before=KEYBOARD, **PHONE) as reader:
                    page = reader.page
                    launcher, panel = page.locator("motamot-launcher #button"), page.locator("motamot-launcher #panel")
                    await expect(launcher).to_be_visible()
                    await expect(panel).to_be_hidden()
                    await launcher.tap()
                    assert await panel.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
                    assert await reader.focused() == "question"
                    assert await violations(page) == []
                    assert await page.get_by_role("link", name="Terms", exact=True).count() == 1
                    await page.get_by_role("link", name="Terms", exact=True).evaluate("link => link.focus()")
                    assert await reader.focused() == "question", "the page behind cannot have the focus"
                    await page.evaluate("keyboard(300)")
                    assert await panel.bounding_box() == {"x": 0, "y": 20, "width": 390, "height": 544}
                    question = await page.locator("#question").bounding_box()
                    assert question is not None and question["y"] + question["height"] <= 564
                    await page.locator("#question").fill("Do you deliver?")
                    await page.keyboard.press("Enter")
                    await reader.shows("Yes.")
                    await page.evaluate("keyboard(0)")
                    assert await panel.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
                    await reader.ask("And when?")
                    await reader.shows("It is ")
                    await page.locator("#reading").tap()
                    await page.keyboard.press("Escape")
                    await expect(page.locator("#reading-panel")).to_be_hidden()
                    await page.locator("#question").focus()
                    await page.keyboard.press("Escape")
                    await reader.ended("stopped")
                    await expect(panel).to_be_visible()
                    await page.keyboard.press("Escape")
                    await expect(panel).to_be_hidden()
                    assert await reader.focused() == "button"
                    await launcher.tap()
                    await page.get_by_role("button", name="Close the chat").tap()
                    await expect(panel).to_be_hidden()
                    await expect(launcher).to_be_visible()

    chromium.run(scenario)


def test_nothing_moves_for_who_wants_no_motion(chromium: Chromium, tmp_path: Path) -> None:
    moving = "document.querySelector('motamot-chat').shadowRoot.getAnimations().length"

    async def scenario(browser: Browser) -> None:
        script = [{"wait": "300ms"}, {"say": "So far"}, {"gate": "end"}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url, reduced_motion="reduce") as reader:
            await reader.ask("Hello")
            await expect(reader.page.locator(".dots")).to_be_visible()
            assert await reader.page.evaluate(moving) == 0
            await reader.shows("So far")
            assert await reader.page.evaluate(moving) == 0
            await reader.page.emulate_media(reduced_motion="no-preference")
            assert await reader.page.evaluate(moving) > 0

    chromium.run(scenario)


def test_forced_colours_leave_an_edge_where_only_a_ground_was(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"say": "So far"}, {"finish": "length"}]
        with site() as shop:
            async with chat(tmp_path, [script], origins=[shop.origin]) as served:
                shop["/"] = page_of(served)
                async with at(browser, f"{shop.origin}/", forced_colors="active") as reader:
                    edge = "element => parseFloat(getComputedStyle(element).borderTopWidth)"
                    launcher = reader.page.locator("motamot-launcher #button")
                    assert await launcher.evaluate(edge) >= 1
                    await launcher.click()
                    await reader.ask("Hello")
                    await reader.ended("truncated")
                    for part in ("motamot-launcher #panel", ".asked", ".mark", "#send", "#composer"):
                        assert await reader.page.locator(part).first.evaluate(edge) >= 1, part
                    assert await violations(reader.page) == []

    chromium.run(scenario)
