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
                await reader.page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
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
                await page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
                assert await violations(page) == []
                if contrast == "high":
                    await enhanced(page)

    async def enhanced(page: Page) -> None:
        found = await page.evaluate("""() => axe.run({runOnly: ['color-contrast-enhanced']})
            .then(({violations}) => violations.flatMap(({nodes}) => nodes.map(({any}) => any[0].message)))""")
        assert found == []

    chromium.run(scenario)
