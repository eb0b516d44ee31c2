"""The `page` cases of tests/data/cases.jsonl, in Chromium: those that need no Markdown, which this page has none of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from motamot.answer import AnswerEvent, Text
from motamot.assistant import Question
from motamot.errors import UpstreamError
from tests.cases.upstream import Case, cases
from tests.page.support import Chromium, Reader, chat, opened
from tests.page.test_reading import LISTEN

_OLD = "An old answer,\nof some\nlines.\n"
_DELTA = "A piece of the answer, as long as a line.\n"


class Feed:
    """An assistant whose answers are fed by the test, a piece at a time."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self.generations = 0

    async def answer(self, question: Question) -> AsyncIterator[AnswerEvent]:
        self.generations += 1
        while (piece := await self.queue.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield Text(piece)


@dataclass
class Play:
    """A case being played."""

    reader: Reader
    feed: Feed
    shown: int = 0  # pieces of the answer under way
    read_at: float | None = None  # where the reader has scrolled to
    streamed: list[list[str]] = field(default_factory=list)  # what was heard while text grew
    ended: list[list[str]] = field(default_factory=list)  # what was heard from the end on

    async def steps(self, steps: Sequence[dict[str, Any]]) -> None:
        for step in steps:
            await self.step(step)

    async def step(self, step: dict[str, Any]) -> None:
        page, box = self.reader.page, self.reader.page.locator("#question")
        match step:
            case {"type_text": text}:
                await page.keyboard.insert_text(text)
            case {"press": "send"}:
                if "text" in step:
                    await box.fill(step["text"])
                await page.locator("#send").click()
            case {"key": key}:
                await page.keyboard.press(key)
            case {"keydown": properties}:
                event = "new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...properties })"
                await box.evaluate(f"(e, properties) => {{ e.dispatchEvent({event}) }}", properties)
            case {"event": name}:
                await box.evaluate("(e, name) => { e.dispatchEvent(new Event(name, { bubbles: true })) }", name)
            case {"wait_ms": milliseconds}:
                await asyncio.sleep(milliseconds / 1000)
            case {"fill_history": messages}:
                await self.fill_history(messages)
            case {"stream_deltas": number}:
                for _ in range(number):
                    self.feed.queue.put_nowait(_DELTA)
                self.shown += number
                await self.reader.shows(_DELTA * self.shown)
                self.streamed += await self.heard()
            case {"stream_end": _}:
                self.feed.queue.put_nowait(None)
                await self.reader.ended("complete")
                self.ended += await self.heard()
            case {"stream_error": reason}:
                self.feed.queue.put_nowait(UpstreamError(reason, code="upstream_error"))
                await self.reader.ended("failed")
                self.ended += await self.heard()
            case {"scroll_up_px": pixels}:
                self.read_at = await self.scroll(f"-{pixels}")
            case {"scroll_to_bottom": _}:
                self.read_at = await self.scroll("e.scrollHeight")
            case {"server_sends": "whole answer with its terminal event, then closes"}:
                await self.reader.ask("Hello")  # this page asks only on send
                self.feed.queue.put_nowait("Whole.")
                self.feed.queue.put_nowait(None)
                await self.reader.ended("complete")
            case {"server_fails": {"status": status, "times": times}}:
                await self.fail(status, times)
            case _:
                raise AssertionError(f"unknown step {step}")

    async def fill_history(self, messages: int) -> None:
        for number in range(messages // 2):
            self.feed.queue.put_nowait(_OLD)
            self.feed.queue.put_nowait(None)
            await self.reader.ask(f"Old question {number}")
            await expect(self.reader.page.locator(".answer[data-outcome=complete]")).to_have_count(number + 1)
        self.reader.asked.clear()
        self.feed.generations = 0

    async def fail(self, status: int, times: int) -> None:
        failed = 0

        async def handle(route: Route) -> None:
            nonlocal failed
            failed += 1
            if failed <= times:
                await route.fulfill(status=status, json={"error": {"code": "refused", "message": "No."}})
            else:
                await route.continue_()

        await self.reader.page.route("**/api/chat/stream", handle)

    async def scroll(self, by: str) -> float:
        top: float = await self.reader.page.locator("#log").evaluate(
            f"async (e) => {{ e.scrollBy(0, {by}); await new Promise(requestAnimationFrame); return e.scrollTop }}"
        )
        return top

    async def heard(self) -> list[list[str]]:
        """What a screen reader has said since this was asked last."""
        said: list[list[str]] = await self.reader.page.evaluate("window.heard.splice(0)")
        return said


class Judge:
    """One method per key of `expect`."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.reader = play.reader

    async def requests_sent(self, value: int) -> None:
        assert len(self.reader.asked) == value

    async def requests_sent_max(self, value: int) -> None:
        assert len(self.reader.asked) <= value

    async def delays_grow(self, value: bool) -> None:
        pauses = [later - earlier for earlier, later in pairwise(self.reader.asked_at)]
        assert len(pauses) > 1 and all(later > earlier for earlier, later in pairwise(pauses)) == value

    async def bubbles(self, value: int) -> None:
        assert len(await self.reader.answers()) == value

    async def user_bubbles(self, value: int) -> None:
        assert len(await self.reader.questions()) == value

    async def error(self, value: dict[str, Any]) -> None:
        await self.reader.ended("failed")
        assert await self.reader.mark() and value == {"shown": True}

    async def input_not_empty(self, value: bool) -> None:
        assert bool(await self.reader.page.locator("#question").input_value()) == value

    async def scroll_top_changed_by_page(self, value: bool) -> None:
        assert self.play.read_at is not None
        assert (await self.play.scroll("0") != self.play.read_at) == value

    async def at_bottom(self, value: bool) -> None:
        left = await self.reader.page.locator("#log").evaluate("e => e.scrollHeight - e.clientHeight - e.scrollTop")
        assert (left <= 4) == value

    async def jump_button_visible(self, value: bool) -> None:
        assert await self.reader.page.locator("#latest").is_visible() == value

    async def focus_lost(self, value: bool) -> None:
        assert await self.reader.page.evaluate("document.activeElement === document.body") == value

    async def announcements_during_stream_max(self, value: int) -> None:
        assert len(self.play.streamed) <= value

    async def announcements_after_end(self, value: int) -> None:
        assert len(self.play.ended) == value

    async def alert_announced(self, value: bool) -> None:
        assert any(role == "alert" for role, _ in self.play.ended) == value


@pytest.mark.parametrize("case", cases("page"), ids=lambda case: case["id"])
def test_case(chromium: Chromium, tmp_path: Path, case: Case) -> None:
    async def scenario(browser: Browser) -> None:
        feed = Feed()
        async with (
            chat(tmp_path, [], answer=feed.answer) as served,
            opened(browser, served.url, before=LISTEN) as reader,
        ):
            played = Play(reader, feed)
            await played.steps(case["given"]["steps"])
            judge = Judge(played)
            for key, value in case["expect"].items():
                await getattr(judge, key)(value)
            asked = {request.post_data_json["key"] for request in reader.asked if request.post_data_json}
            assert feed.generations <= len(asked), "one question, one generation"

    chromium.run(scenario)


MORE: dict[str, dict[str, Any]] = {
    "errors of the server are tried again, ever more slowly": {
        "steps": [
            {"server_fails": {"status": 503, "times": 1000}},
            {"press": "send", "text": "Hi"},
            {"wait_ms": 5000},
        ],
        "expect": {"requests_sent_max": 5, "delays_grow": True, "user_bubbles": 1},
    },
    "at the bottom the view follows": {
        "steps": [
            {"fill_history": 20},
            {"press": "send", "text": "Long one"},
            {"stream_deltas": 30},
            {"scroll_up_px": 300},
            {"stream_deltas": 5},
            {"scroll_to_bottom": True},
            {"stream_deltas": 30},
        ],
        "expect": {"at_bottom": True, "jump_button_visible": False, "focus_lost": False},
    },
    "a failure in the middle is an alert": {
        "steps": [{"press": "send", "text": "Hi"}, {"stream_deltas": 20}, {"stream_error": "broken"}],
        "expect": {
            "announcements_during_stream_max": 1,
            "announcements_after_end": 1,
            "alert_announced": True,
            "error": {"shown": True},
            "focus_lost": False,
        },
    },
    "Enter alone sends, and a composition that has ended is no hindrance": {
        "steps": [
            {"event": "compositionstart"},
            {"type_text": "\u3080"},
            {"keydown": {"key": "Enter", "isComposing": True}},
            {"keydown": {"key": "Enter", "keyCode": 229}},
            {"event": "compositionend"},
            {"key": "Enter"},
            {"stream_deltas": 1},
            {"stream_end": True},
        ],
        "expect": {"requests_sent": 1, "user_bubbles": 1, "bubbles": 1, "input_not_empty": False},
    },
}


@pytest.mark.parametrize("name", MORE)
def test_more_of_the_same_kinds(chromium: Chromium, tmp_path: Path, name: str) -> None:
    test_case(chromium, tmp_path, {"id": name, "given": {"steps": MORE[name]["steps"]}, "expect": MORE[name]["expect"]})
