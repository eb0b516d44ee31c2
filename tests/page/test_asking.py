"""Asking on the page: word by word, once, as text, and stopped."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from motamot.limits import Limits
from tests.page.support import Chromium, chat, deliver, opened

GATED = [{"say": ["First ", "piece."]}, {"gate": "curtain"}, {"say": [" And", " the rest."]}]


def test_text_is_shown_as_it_comes_and_to_the_character(chromium: Chromium, tmp_path: Path) -> None:
    text = "Deux  espaces, une\ttabulation,\n\n\n   retrait, \u2028 \U0001f68c\U0001f1eb\U0001f1f7 e\u0301 \x01 fin.\n"
    script = [{"gate": "head"}, {"say": ["Live. ", text[:9]]}, {"gate": "curtain"}, {"say": text[9:], "cut": "utf16"}]

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await expect(reader.page.get_by_text("Waiting for the answer")).to_be_visible(timeout=500)
            assert await reader.questions() == ["Hello"]
            served.model.release("head")
            await reader.shows(re.compile(r"^Live\. Deux  es"))
            await expect(reader.page.get_by_text("Waiting for the answer")).to_be_hidden()
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.source() == "Live. " + text
            assert await reader.text() == "Live. " + text.replace("\n\n\n   ", "").rstrip("\n"), "as two paragraphs"
            assert await reader.answer().locator(".end").is_hidden()
            style = await reader.answer().locator(".text").evaluate("e => getComputedStyle(e).whiteSpace")
            assert style in ("pre-wrap", "break-spaces")
            assert len(served.model.requests) == 1
            assert await served.outcomes() == ["complete"]

    chromium.run(scenario)


HOSTILE = (
    "<img src=x onerror=\"document.title='ran'\"></script><script>document.title='ran'</script>"
    '<a href="javascript:document.title=1">a</a> &lt;b&gt; &amp; <svg/onload=alert(1)> <style>*{display:none}</style>'
)


def test_what_a_model_or_a_visitor_writes_is_text_and_nothing_else(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"say": HOSTILE, "cut": "characters"}]
        async with chat(tmp_path, [script, script], name=HOSTILE[:90]) as served, opened(browser, served.url) as reader:
            before = await reader.page.locator("img, script, a, style, iframe").count()
            assert await reader.page.title() == HOSTILE[:90]
            await reader.ask(HOSTILE)
            await reader.ended("complete")
            shown = HOSTILE.replace("&lt;b&gt; &amp;", "<b> &")  # entities are Markdown's, too
            assert await reader.text() == shown and await reader.source() == HOSTILE
            await reader.page.reload()
            await reader.ended("complete")
            assert await reader.text() == shown and await reader.questions() == [HOSTILE]
            assert await reader.page.title() == HOSTILE[:90]
            assert await reader.page.locator("img, script, a, style, iframe").count() == before
            assert not [url for url in reader.requests if url.endswith("/x")]

    chromium.run(scenario)


@pytest.mark.parametrize("how", ["double click", "double Enter", "held Enter", "Enter on the button, twice"])
def test_a_question_sent_twice_by_a_nervous_hand_is_asked_once(chromium: Chromium, tmp_path: Path, how: str) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url) as reader:
            await reader.page.locator("#question").fill("Hello")
            keyboard = reader.page.keyboard
            if how == "double click":
                await reader.page.locator("#send").dblclick()
            elif how == "held Enter":
                await keyboard.down("Enter")
                for _ in range(5):
                    await keyboard.down("Enter")
                await keyboard.up("Enter")
            else:
                if how != "double Enter":
                    await keyboard.press("Tab")
                    assert await reader.focused() == "send"
                await keyboard.press("Enter")
                await keyboard.press("Enter")
            await reader.shows("First piece.")
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.questions() == ["Hello"] and len(reader.asked) == 1
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_shift_enter_is_a_new_line_and_blank_questions_are_not_sent(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [[{"say": "Yes."}]]) as served, opened(browser, served.url) as reader:
            box = reader.page.locator("#question")
            await box.fill("  \n ")
            await box.press("Enter")
            low = await box.evaluate("e => e.offsetHeight")
            await box.fill("one")
            await box.press("Shift+Enter")
            await box.press_sequentially("two")
            assert await box.input_value() == "one\ntwo"
            assert await box.evaluate("e => e.offsetHeight") > low / 2, "the box grows with its text"
            await box.press("Enter")
            await reader.ended("complete")
            assert await reader.questions() == ["one\ntwo"]
            assert served.model.requests[0].body["messages"][-1]["content"] == "one\ntwo"

    chromium.run(scenario)


STOPPING = {
    "the button": "",
    "Escape": "",
    "the button, and the abort fails": "AbortController.prototype.abort = () => { throw new Error('no') }",
    "the button, and the abort does nothing": "AbortController.prototype.abort = () => {}",
}


@pytest.mark.parametrize("how", STOPPING)
def test_stop_ends_the_generation_and_keeps_what_was_seen(chromium: Chromium, tmp_path: Path, how: str) -> None:
    async def scenario(browser: Browser) -> None:
        before = STOPPING[how]
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url, before=before) as reader:
            button = reader.page.get_by_role("button", name="Send")
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await expect(button).to_have_count(0)
            began = asyncio.get_running_loop().time()
            if how == "Escape":
                await reader.page.keyboard.press("Escape")
            else:
                await reader.page.get_by_role("button", name="Stop").click()
            await served.model.wait_left(0, timeout=1)
            assert asyncio.get_running_loop().time() - began < 1
            await reader.ended("stopped")
            assert await reader.mark() == "Stopped."
            assert await served.outcomes() == ["stopped"]
            [row] = await reader.transcript()
            assert row["text"] == await reader.text() == "First piece."
            served.model.release("curtain")
            await asyncio.sleep(0.2)
            assert await reader.text() == "First piece.", "nothing is shown after a stop"
            await expect(button).to_be_visible()
            assert await reader.focused() == "question"

    chromium.run(scenario)


def test_a_stop_before_anything_has_come_stops_too(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        script = [{"gate": "curtain"}, {"say": "Too late."}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            await reader.page.keyboard.press("Escape")
            await served.model.wait_left(0, timeout=1)
            await reader.ended("stopped")
            assert await served.outcomes() == ["stopped"]
            # The stop may have been quicker than the answer's first event: then its conversation is learned now.
            await expect(reader.page.get_by_role("button", name="Delete")).to_be_visible()
            await reader.page.reload()
            await reader.ended("stopped")
            assert len(served.model.requests) == 1, "a stopped question is not asked again by a reload"

    chromium.run(scenario)


def test_a_stop_before_the_page_knows_its_conversation_is_shown_after_a_reload(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url) as reader:

            async def deliver_but_answer_nothing(route: Route) -> None:
                if len(reader.asked) > 1:
                    await route.continue_()
                else:
                    deliver(reader, route)

            await reader.page.route("**/api/chat/stream", deliver_but_answer_nothing)
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            await reader.page.keyboard.press("Escape")
            await served.model.wait_left(0, timeout=2)
            await expect(reader.page.get_by_role("button", name="Delete")).to_be_visible()
            await reader.page.reload()
            await reader.ended("stopped")
            assert await reader.questions() == ["Hello"] and len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_stop_that_overtakes_its_question_is_remembered(chromium: Chromium, tmp_path: Path) -> None:
    """The question is held up on its way, and gets there although the page has given it up."""

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED, GATED]) as served, opened(browser, served.url) as reader:
            held = asyncio.Event()
            arrived = asyncio.Event()

            async def hold(route: Route) -> None:
                await held.wait()
                await deliver(reader, route)
                arrived.set()
                await route.abort()

            await reader.page.route("**/api/chat/stream", hold)
            await reader.ask("Hello")
            await expect(reader.page.get_by_role("button", name="Stop")).to_be_visible()
            async with reader.page.expect_response("**/stop") as stopped:
                await reader.page.keyboard.press("Escape")
            assert (await stopped.value).status == 202
            held.set()
            await asyncio.wait_for(arrived.wait(), 5)
            assert set(await served.outcomes()) <= {"stopped"}
            await reader.page.reload()
            await asyncio.sleep(0.3)
            assert len(reader.asked) == 1 and await reader.questions() == [], "a reload does not ask it again"

    chromium.run(scenario)


def test_a_stop_that_is_not_answered_is_posted_again(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url) as reader:
            tried: list[float] = []
            bodies: list[Any] = []

            async def fail_twice(route: Route) -> None:
                tried.append(asyncio.get_running_loop().time())
                bodies.append(route.request.post_data_json)
                if len(tried) == 1:
                    await route.abort()
                elif len(tried) == 2:
                    await route.fulfill(status=502, body="a proxy's page")
                else:
                    await route.continue_()

            await reader.page.route("**/stop", fail_twice)
            await reader.page.evaluate("""() => {
                const real = window.fetch
                window.kept = []
                window.fetch = (url, more) => {
                    if (url.endsWith("/stop")) window.kept.push(more.keepalive)
                    return real(url, more)
                }
            }""")
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.keyboard.press("Escape")
            await reader.ended("stopped")
            await served.model.wait_left(0, timeout=5)
            assert await served.outcomes() == ["stopped"]
            assert len(tried) == 3 and tried[2] - tried[1] > tried[1] - tried[0] > 0.3
            assert bodies[0] == bodies[1] == bodies[2] and bodies[0]["seen"] >= 2
            assert await reader.page.evaluate("kept") == [True] * 3, "each goes out though the page is being closed"

    chromium.run(scenario)


def test_a_stop_that_never_arrives_ends_with_the_resume_window(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [GATED], limits=Limits(resume_seconds=0.5)) as served,
            opened(browser, served.url) as reader,
        ):
            await reader.page.route("**/stop", lambda route: route.abort())
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.keyboard.press("Escape")
            await reader.ended("stopped")
            await served.model.wait_left(0, timeout=3)
            assert await served.outcomes() == ["abandoned"]

    chromium.run(scenario)


def test_a_stop_goes_out_though_the_page_is_closed_in_the_same_moment(chromium: Chromium, tmp_path: Path) -> None:
    leave = "() => { dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' })); location.href = 'about:blank' }"

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.evaluate(leave)
            await reader.page.wait_for_url("about:blank")
            await served.model.wait_left(0, timeout=3)
            assert await served.outcomes() == ["stopped"]

    chromium.run(scenario)


@pytest.mark.parametrize("pieces", [["First ", "piece."], ["**First** *", "piece.*"], ["```\nFirst\n", "piece.\n```"]])
def test_after_a_stop_somewhere_else_the_page_shows_what_the_transcript_keeps(
    chromium: Chromium, tmp_path: Path, pieces: list[str]
) -> None:
    """Another page of this visitor had seen less when it stopped: its Markdown is that of what is left."""

    async def scenario(browser: Browser) -> None:
        script = [{"say": pieces}, {"gate": "curtain"}, {"say": " No more."}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url) as reader:
            await reader.ask("Hello")
            await reader.shows(re.compile(r"First\s*piece\."))
            [row] = await reader.transcript()
            await reader.page.request.post(f"api/exchanges/{row['exchange']}/stop", data={"seen": 2})
            await reader.ended("stopped")
            [row] = await reader.transcript()
            assert row["text"] == await reader.source() == pieces[0]
            shown = await reader.text()
            await reader.page.reload()
            await reader.ended("stopped")
            assert "piece" not in shown and await reader.text() == shown

    chromium.run(scenario)


def test_an_answer_that_ended_before_the_stop_came_is_shown_whole(chromium: Chromium, tmp_path: Path) -> None:
    """The transcript has all of it, and so has later history."""

    async def scenario(browser: Browser) -> None:
        async with chat(tmp_path, [GATED], marks=("demo_model",)) as served, opened(browser, served.url) as reader:
            late = asyncio.Event()

            async def hold(route: Route) -> None:
                await late.wait()
                await route.continue_()

            await reader.page.route("**/stop", hold)
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.keyboard.press("Escape")
            await reader.ended("stopped")
            served.model.release("curtain")
            assert await served.outcomes() == ["complete"]
            late.set()
            await reader.shows("First piece. And the rest.")
            await expect(reader.answer()).to_have_attribute("data-outcome", "complete")
            assert await reader.mark() == "Demo: a small model on this machine answers."
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_question_that_is_too_long_stays_where_it_can_be_shortened(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        limits = Limits(message_bytes=20)
        async with chat(tmp_path, [[{"say": "Yes."}]], limits=limits) as served, opened(browser, served.url) as reader:
            await reader.ask("\u00e9" * 11)
            await expect(reader.page.locator("#trouble")).to_contain_text("Shorten it")
            assert await reader.page.locator("#question").input_value() == "\u00e9" * 11
            assert not reader.asked
            await reader.ask("\u00e9" * 10)
            await reader.ended("complete")
            await expect(reader.page.locator("#trouble span")).to_be_empty()

    chromium.run(scenario)


def test_a_long_answer_stays_smooth(chromium: Chromium, tmp_path: Path) -> None:
    """100 kB at 200 pieces a second: text goes to the page once a frame, and no frame takes long."""
    pieces = [
        f"{number:04d} the quick brown fox jumps over the lazy dog, says so once more, and then goes on.\n\n"
        for number in range(1_000)
    ]
    watch = """
        window.long = []
        new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => entry.duration)))
            .observe({ type: "longtask" })
    """

    async def scenario(browser: Browser) -> None:
        script = [{"say": pieces, "pace": "5ms"}]
        async with chat(tmp_path, [script]) as served, opened(browser, served.url, before=watch) as reader:
            await reader.ask("Hello")
            await reader.ended("complete", seconds=30)
            assert await reader.text() == "".join(pieces).replace("\n\n", "")
            assert await reader.source() == "".join(pieces)
            long = await reader.page.evaluate("window.long")
            # The machine may be busy with others: what would tell is a task per frame that grows with the text.
            assert sum(duration > 150 for duration in long) <= 3, long

    chromium.run(scenario)


@pytest.mark.parametrize(("reason", "outcome"), [("stop", "complete"), ("length", "truncated")])
def test_a_page_without_frames_loses_nothing(chromium: Chromium, tmp_path: Path, reason: str, outcome: str) -> None:
    """A hidden page gets no frames, and keeps its stream."""
    before = """
        window.requestAnimationFrame = () => 1
        Object.defineProperty(Document.prototype, "hidden", { get: () => true })
    """

    async def scenario(browser: Browser) -> None:
        async with (
            chat(tmp_path, [[*GATED, {"finish": reason}]]) as served,
            opened(browser, served.url, before=before) as reader,
        ):
            await reader.ask("Hello")
            await served.model.wait_gate("curtain")
            await reader.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await asyncio.sleep(0.2)
            assert len(served.site.exchanges.running) == 1 and served.model.requests[0].left_at is None
            served.model.release("curtain")
            await reader.ended(outcome)
            assert await reader.text() == "First piece. And the rest."
            assert len(served.model.requests) == 1

    chromium.run(scenario)
