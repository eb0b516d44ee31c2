"""How an answer ended is shown beside it, and what did not go well can be tried again without being asked twice."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from motamot.answer import AnswerEvent, Cited, Reasoning, Routed, Text
from motamot.assistant import Question
from motamot.exchange.exchange import Visible
from motamot.limits import Limits
from motamot.server.options import Options
from tests.page.support import Chromium, chat, opened

FAILED = "failed"
CASES: dict[str, tuple[list[dict[str, Any]], str, str, str]] = {  # script, outcome, text, mark
    "cut at the token limit": (
        [{"say": "So far"}, {"finish": "length"}],
        "truncated",
        "So far",
        "Cut off: the answer has reached its greatest length.",
    ),
    "cut by the provider's filter": (
        [{"say": "So far"}, {"finish": "content_filter"}],
        "filtered",
        "So far",
        "Cut off by the provider's content filter.",
    ),
    "broken off": ([{"say": "So far"}, {"close": "reset"}], FAILED, "So far", r".*cut in the middle.*Try again"),
    "refused by the provider": ([{"fail": {"message": "SECRET detail", "status": 400}}], FAILED, "", r".*Try again"),
    "failed in the middle": ([{"say": "So far"}, {"fail": {"message": "SECRET"}}], FAILED, "So far", r".*Try again"),
    "empty": ([{"finish": "stop"}], "complete", "", "The model said nothing."),
}


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_is_shown_now_and_after_a_reload(chromium: Chromium, tmp_path: Path, name: str) -> None:
    script, outcome, text, mark = CASES[name]

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            for _ in range(2):
                await reader.ended(outcome)
                assert await reader.text() == text, "an error is no answer text"
                assert re.fullmatch(mark, (await reader.mark()).replace("\n", " "))
                shown = "document.querySelector('motamot-chat').shadowRoot.innerHTML"
                assert "SECRET" not in await reader.page.evaluate(shown)
                await reader.page.reload()
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_complete_answer_has_no_mark(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            assert await reader.mark() == ""

    chromium.run(scenario)


def test_a_failed_answer_is_asked_again_in_its_place(chromium: Chromium, tmp_path: Path) -> None:
    """The question is not doubled, on the page, after a reload, or in what the model is told later."""

    async def scenario(browser: Browser) -> None:
        scripts = [
            [{"say": "BROKEN"}, {"close": "reset"}],
            [{"say": "BROKEN"}, {"close": "reset"}],
            [{"say": "Whole."}],
            [{"say": "Later."}],
        ]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            for _ in range(2):
                await reader.ended("failed")
                await reader.page.get_by_role("button", name="Try again").click()
                await expect(reader.answer()).to_have_attribute("aria-busy", re.compile("."))
            await reader.ended("complete")
            assert await reader.focused() == "question", "the button that was pressed is gone"
            assert await reader.questions() == ["Hello"] and await reader.answers() == ["Whole."]
            assert len(served.model.requests) == 3
            await reader.ask("And then?")
            await reader.shows("Later.")
            sent = json.dumps(served.model.requests[3].body["messages"])
            assert sent.count("Hello") == 1 and "BROKEN" not in sent
            await reader.page.reload()
            await reader.shows("Later.")
            assert await reader.questions() == ["Hello", "And then?"]
            assert await reader.answers() == ["Whole.", "Later."]
            assert len(served.model.requests) == 4

    chromium.run(scenario)


@pytest.mark.parametrize("status", [400, 401, 403, 409, 413, 415, 429])
def test_a_refusal_is_shown_and_not_tried_again_by_itself(chromium: Chromium, tmp_path: Path, status: int) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:

            async def refuse(route: Route) -> None:
                body = {"error": {"code": "refused", "message": "Not <b>now</b>."}}
                await route.fulfill(status=status, json=body)

            await reader.page.route("**/api/chat/stream", refuse)
            await reader.ask("Hello")
            await reader.ended("failed")
            assert "Not <b>now</b>." in await reader.mark()
            await asyncio.sleep(1)
            assert len(reader.asked) == 1
            await reader.page.unroute("**/api/chat/stream")
            await reader.page.get_by_role("button", name="Try again").click()
            await reader.shows("Yes.")
            assert await reader.questions() == ["Hello"] and len(reader.asked) == 2
            first, second = (request.post_data_json for request in reader.asked)
            assert first == second, "posted again under its key, it can't be answered twice"
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_server_that_is_away_for_a_moment_is_tried_again_ever_more_slowly(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:

            async def fail(route: Route) -> None:
                match len(reader.asked):
                    case 1:
                        await route.abort("connectionrefused")
                    case 2:
                        await route.fulfill(status=502, body="<html>a proxy's page</html>")
                    case 3:  # a login page of somebody else's network
                        await route.fulfill(status=200, content_type="text/html", body="<b>Welcome!</b>")
                    case _:
                        await route.continue_()

            await reader.page.route("**/api/chat/stream", fail)
            await reader.ask("Hello")
            await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
            await reader.shows("Yes.")
            pauses = [later - earlier for earlier, later in pairwise(reader.asked_at)]
            assert len(pauses) == 3 and 0.4 < pauses[0] < pauses[1] < pauses[2]
            assert len({request.post_data for request in reader.asked}) == 1
            assert len(served.model.requests) == 1 and await reader.questions() == ["Hello"]

    chromium.run(scenario)


def test_over_the_budget_the_page_says_when_to_come_back(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        options = Options(requests_per_hour=1)
        async with (
            chat(tmp_path, [[{"say": "Yes."}]], options=options) as served,
            opened(browser, served.url) as reader,
        ):
            await reader.ask("One")
            await reader.ended("complete")
            await reader.ask("Two")
            await reader.ended("failed")
            assert "come back in" in await reader.mark()
            await reader.page.locator("#language").click()
            assert "Revenez un peu plus tard" in await reader.mark()
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_refused_field_is_told_by_its_code_and_not_by_the_number_of_its_limit(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        # More than this server takes, and less than its page was told: it was set anew while the page was open.
        async with chat(tmp_path, []) as served, opened(browser, served.url, locale="fr-FR") as reader:
            await reader.page.wait_for_load_state("networkidle")
            served.site.limits = replace(served.site.limits, message_bytes=10)
            await reader.ask("A longer question")
            await reader.ended("failed")
            assert (await reader.mark()).startswith("La question n’a pas été acceptée.")
            await reader.page.locator("#language").click()
            assert (await reader.mark()).startswith("The field `message` is longer than 10 bytes.")

    chromium.run(scenario)


def test_a_demo_and_a_test_model_are_labelled_before_and_after_the_answer(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [[{"say": "Yes."}]], marks=("demo_model", "test_model", "<b>new mark</b>")) as served,
            opened(browser, served.url) as reader,
        ):
            label = reader.page.locator("#model")
            await expect(label).to_contain_text("Demo: a small model on this machine answers.")
            await expect(label).to_contain_text("<b>new mark</b>")
            await expect(reader.page.get_by_text("Answers are made by a machine")).to_be_visible()
            await reader.ask("Hello")
            await reader.ended("complete")
            assert "Test model" in await reader.mark() and "Demo" in await reader.mark()
            await reader.page.reload()
            await reader.ended("complete")
            assert "Test model" in await reader.mark() and "Demo" in await reader.mark()

    chromium.run(scenario)


def test_a_recorded_sample_is_marked_as_one(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"fail": {"message": "down", "status": 500}}]
        async with (
            chat(tmp_path, [script], recorded=["A sample."]) as served,
            opened(browser, served.url) as reader,
        ):
            await reader.ask("Hello")
            await reader.ended("complete")
            assert await reader.text() == "A sample."
            assert await reader.mark() == "Recorded sample: no model wrote this now."

    chromium.run(scenario)


def test_tools_sources_reasoning_and_routing_are_shown_as_text(chromium: Chromium, tmp_path: Path) -> None:
    async def order_status(order: str) -> str:
        """Where an order is."""
        return "on its way"

    async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Routed(agent="Orders <b>desk</b>")
        async for event in question.model_answer():
            yield event
        yield Text(" See:")
        yield Cited(title="<b>Terms</b>", url="https://shop.example/terms", quote="<q>")
        yield Cited(title="Script", url="javascript:alert(1)")
        yield Cited(title="No address")
        yield Reasoning("Done.")

    async def scenario(browser: Browser) -> None:
        turns = [
            [{"think": "Let me <i>see</i>."}, {"call": {"name": "order_status", "arguments": {"order": "7"}}}],
            [{"say": "It is on its way."}],
        ]
        async with (
            chat(tmp_path, turns, tools=[order_status], visible=Visible(reasoning=True), answer=answer) as served,
            opened(browser, served.url) as reader,
        ):
            await reader.ask("Where is my order?")
            await reader.ended("complete")
            assert await reader.source() == "It is on its way.\n\n See:"
            assert await reader.page.locator(".text p").all_inner_texts() == ["It is on its way.", "See:"]
            assert await reader.page.locator(".agent").inner_text() == "Orders <b>desk</b>"
            assert await reader.page.locator(".tools").inner_text() == "Used: order_status"
            assert await reader.page.locator(".sources li").all_inner_texts() == [
                "<b>Terms</b> <q>",
                "Script",
                "No address",
            ]
            [link] = await reader.page.locator(".sources a").all()
            assert await link.get_attribute("href") == "https://shop.example/terms"
            await reader.page.get_by_text("Reasoning").click()
            await expect(reader.page.locator(".thoughts")).to_have_text("Let me <i>see</i>.Done.")
            shown = [await reader.page.locator(name).inner_text() for name in (".text", ".tools", ".sources")]
            await reader.page.reload()
            await reader.ended("complete")
            assert [await reader.page.locator(name).inner_text() for name in (".text", ".tools", ".sources")] == shown
            await expect(reader.page.locator(".sources a")).to_have_count(1)

    chromium.run(scenario)


def test_a_conversation_that_is_gone_makes_room_for_a_new_one(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "One."}], [{"say": "Two."}]]
        async with chat(tmp_path, scripts) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            [row] = await reader.transcript()
            exchange = await served.site.exchanges.store.exchange(row["exchange"])
            assert exchange is not None
            await served.site.exchanges.delete_conversation(exchange.conversation, exchange.visitor)
            await reader.ask("Again")
            await reader.ended("failed")
            await reader.page.get_by_role("button", name="Try again").click()
            await reader.shows("Two.")
            assert len(served.model.requests[1].body["messages"]) == 1
            await reader.page.reload()
            await reader.shows("Two.")
            assert await reader.questions() == ["Again"]

    chromium.run(scenario)


def test_an_answer_over_a_limit_says_so_and_keeps_what_came(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"say": "Word. "}, {"wait": "3s"}, {"say": "Late."}]
        limits = Limits(answer_timeout=0.4)
        async with chat(tmp_path, [script], limits=limits) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.ended("failed")
            assert await reader.text() == "Word. "
            assert "The answer took too long." in await reader.mark()

    chromium.run(scenario)
