"""Under an answer: copy it, have it answered again, go on with it; and where that makes no sense, it is not offered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from tests.page.support import Chromium, Reader, chat, opened

GATED = [{"say": ["First ", "piece."]}, {"gate": "curtain"}, {"say": [" And", " the rest."]}]


async def offered(reader: Reader) -> set[str]:
    """What is offered under the last answer."""
    buttons = await reader.answer().locator("button").all()
    return {str(await button.get_attribute("class")) for button in buttons if await button.is_visible()}


def test_an_answer_is_made_again_in_its_place(chromium: Chromium, tmp_path: Path) -> None:
    """The question is asked once more: not doubled on the page, in the transcript, nor in what the model is told."""

    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "One answer."}], [{"say": "Another answer."}], [{"say": "Later."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.get_by_role("button", name="Answer again").click()
            await reader.shows("Another answer.")
            await reader.ended("complete")
            assert await reader.focused() == "question", "the button that was pressed is gone"
            assert await reader.questions() == ["Hello"] and await reader.answers() == ["Another answer."]
            await reader.ask("And then?")
            await reader.shows("Later.")
            sent = json.dumps(served.model.requests[2].body["messages"])
            assert sent.count("Hello") == 1 and "One answer" not in sent and "Another answer" in sent
            await reader.page.reload()
            await reader.shows("Later.")
            assert await reader.questions() == ["Hello", "And then?"]
            assert await reader.answers() == ["Another answer.", "Later."]

    chromium.run(scenario)


def test_only_the_last_answer_can_be_made_again(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "One."}, {"finish": "length"}], [{"say": "Two."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            await reader.ask("1")
            await reader.ended("truncated")
            assert await offered(reader) == {"copy", "regenerate", "more"}
            await reader.ask("2")
            await reader.ended("complete")
            assert await offered(reader) == {"copy", "regenerate"}
            for name in (".regenerate", ".more"):
                await expect(reader.answer(0).locator(name)).to_be_hidden()
            await expect(reader.answer(0).locator(".copy")).to_be_visible()

    chromium.run(scenario)


OFFERED: dict[str, tuple[list[dict[str, Any]], str, set[str]]] = {
    "complete": ([{"say": "Yes."}], "complete", {"copy", "regenerate"}),
    "empty": ([{"finish": "stop"}], "complete", {"regenerate"}),
    "cut": ([{"say": "So"}, {"finish": "length"}], "truncated", {"copy", "regenerate", "more"}),
    "filtered": ([{"say": "So"}, {"finish": "content_filter"}], "filtered", {"copy", "regenerate"}),
    "failed": ([{"say": "So"}, {"close": "reset"}], "failed", {"copy", "retry"}),
    "failed with nothing": ([{"fail": {"message": "no", "status": 400}}], "failed", {"retry"}),
}


@pytest.mark.parametrize("name", OFFERED)
def test_what_is_offered_is_what_makes_sense(chromium: Chromium, tmp_path: Path, name: str) -> None:
    script, outcome, buttons = OFFERED[name]

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            for _ in range(2):
                await reader.ended(outcome)
                assert await offered(reader) == buttons
                await reader.page.reload()

    chromium.run(scenario)


@pytest.mark.parametrize("how", ["cut", "stopped"])
def test_a_cut_or_stopped_answer_is_gone_on_with_by_a_question_one_sees(
    chromium: Chromium, tmp_path: Path, how: str
) -> None:
    async def scenario(browser: Browser) -> None:
        first = GATED if how == "stopped" else [{"say": "First piece."}, {"finish": "length"}]
        scripts = [first, [{"say": "And the rest."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url, locale="fr-FR") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            if how == "stopped":
                await reader.page.keyboard.press("Escape")
            await reader.ended("stopped" if how == "stopped" else "truncated")
            await served.outcomes()
            await reader.page.get_by_role("button", name="Continuer").click()
            await reader.shows("And the rest.")
            assert await reader.questions() == ["Hello", "Continuez."]
            assert await reader.answers() == ["First piece.", "And the rest."]
            told = [message["content"] for message in served.model.requests[1].body["messages"]]
            assert told == ["Hello", "First piece.", "Continuez."]

    chromium.run(scenario)


def test_an_answer_that_could_not_be_made_again_stays(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "The **answer**."}]]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")

            async def refuse(route: Route) -> None:
                await route.fulfill(status=429, json={"error": {"code": "limit", "message": "Come back later."}})

            await reader.page.route("**/api/chat/stream", refuse)
            await reader.page.get_by_role("button", name="Answer again").click()
            await expect(reader.page.locator("#trouble")).to_contain_text("Come back later.")
            await reader.ended("complete")
            assert await reader.text() == "The answer." and await reader.source() == "The **answer**."
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_reload_while_an_answer_is_made_again_doubles_nothing(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "One."}], GATED]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")

            async def lose(route: Route) -> None:
                await route.abort()

            await reader.page.route("**/api/chat/stream", lose)
            await reader.page.get_by_role("button", name="Answer again").click()
            await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
            await reader.page.unroute("**/api/chat/stream")
            await reader.page.reload()
            await reader.shows("First piece.")
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.questions() == ["Hello"] and len(served.model.requests) == 2

    chromium.run(scenario)


def test_code_is_copied_as_it_was_written(chromium: Chromium, tmp_path: Path) -> None:
    code = "def f(x):\n\treturn  x  # <b> &amp; **no**\n\n\nprint(f(1))\n"

    async def scenario(browser: Browser) -> None:
        script = [{"say": f"Here:\n\n```python\n{code}```\n\nDone.", "cut": "characters"}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            await reader.page.locator(".code-copy").click()
            await expect(reader.page.locator("#status")).to_have_text("Copied.")
            assert (await reader.page.evaluate("navigator.clipboard.readText()")).rstrip("\n") == code.rstrip("\n")

    chromium.run(scenario)


def test_without_a_clipboard_of_its_own_the_page_copies_what_is_selected(chromium: Chromium, tmp_path: Path) -> None:
    """Over plain HTTP browsers have no `navigator.clipboard`."""
    before = "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })"

    async def scenario(browser: Browser) -> None:
        script = [{"say": "Some *text*."}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url, before=before) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.locator(".copy").click()
            await expect(reader.page.locator("#status")).to_have_text("Copied.")
            assert await reader.focused() == "copy copied"
            await reader.page.locator("#question").focus()
            await reader.page.keyboard.press("Control+V")
            assert await reader.page.locator("#question").input_value() == "Some *text*."

    chromium.run(scenario)
