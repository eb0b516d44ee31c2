"""The widget on pages of another site: as one line, an element, a module; under a strict policy, without cookies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Request, expect

from motamot.assistant import Assistant
from motamot.limits import Limits
from motamot.model.recorded import RecordedModel
from tests.page.network import Network, network
from tests.page.support import NO_STORAGE, Chat, Chromium, Reader, chat
from tests.widget.shop import Pages, at, site

GATED = [{"say": ["First ", "piece."]}, {"gate": "curtain"}, {"say": [" And", " the rest."]}]
WHOLE = "First piece. And the rest."
LINE = '<!doctype html><title>Shop</title><p>Our shop.</p><script src="{chat}widget.js" async></script>'
ELEMENT = (
    '<!doctype html><script src="{chat}widget.js" data-launcher="none" async></script>'
    '<div id="box"><motamot-chat assistant="default"></motamot-chat></div>'
)


def policy(url: str) -> str:
    """Nothing but the chat's script and its server."""
    origin = url.rstrip("/")
    return (
        f"default-src 'none'; script-src {origin}; connect-src {origin}; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


@asynccontextmanager
async def shop(tmp_path: Path, scripts: object, page: str = ELEMENT, **more: Any) -> AsyncIterator[tuple[Chat, Pages]]:
    """A chat, and the page of another site that shows it, under its strictest policy."""
    with site() as pages:
        async with chat(tmp_path, scripts, origins=[pages.origin], **more) as served:
            pages.headers["Content-Security-Policy"] = policy(served.url)
            pages["/"] = page.format(chat=served.url)
            yield served, pages


async def bearers(requests: list[Request]) -> set[str]:
    """Who the visitor was said to be. No request may have brought a cookie."""
    found = set()
    for request in requests:
        headers = await request.all_headers()
        assert "cookie" not in headers
        found.add(headers.get("authorization", ""))
    return found


def test_one_line_puts_a_button_into_the_corner_and_nothing_else_changes(chromium: Chromium, tmp_path: Path) -> None:
    watch = """
        window.moved = []
        new PerformanceObserver((list) => window.moved.push(...list.getEntries().filter((e) => !e.hadRecentInput)))
            .observe({ type: "layout-shift", buffered: true })
        window.globals = 0
        window.globals = Object.getOwnPropertyNames(window).length
    """

    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [[{"say": "**Yes**, we do."}]], LINE) as (served, pages):
            pages.headers["Referrer-Policy"] = "unsafe-url"
            async with at(browser, f"{pages.origin}/", before=watch) as reader:
                asked: list[Request] = []
                reader.page.on("request", lambda request: asked.append(request))
                button = reader.page.get_by_role("button", name="Open the chat")
                await expect(button).to_be_visible()
                place = await reader.page.locator("body > p").bounding_box()
                assert not [url for url in reader.requests if "/api/" in url], "nothing is asked before it is opened"
                await button.click()
                await reader.ask("Do you deliver?")
                await reader.ended("complete")
                await expect(reader.page.locator(".text strong")).to_have_text("Yes")
                assert await reader.page.evaluate("Object.getOwnPropertyNames(window).length - globals") == 0
                assert await reader.page.evaluate("moved") == []
                assert await reader.page.locator("body > p").bounding_box() == place
                assert await reader.page.title() == "Shop"
                for one in [one for one in asked if "/api/" in one.url]:
                    assert "referer" not in await one.all_headers(), "which page it is, is the site's own business"
                secrets = await bearers([one for one in asked if "/chat/stream" in one.url])
                assert len(secrets) == 1 and re.fullmatch(r"Bearer [0-9a-f]{32}", secrets.pop())
                assert await reader.page.context.cookies() == []
                assert {url.split("/")[2] for url in reader.requests} == {
                    served.url.split("/")[2],
                    pages.origin.split("/")[2],
                }

    chromium.run(scenario)


def test_a_reload_goes_on_with_the_answer_and_the_conversation(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "Before."}], GATED]
        async with shop(tmp_path, scripts) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("One")
            await reader.ended("complete")
            await reader.ask("Two")
            await reader.shows("First piece.")
            for _ in range(2):
                await reader.page.reload()
                await reader.shows("First piece.")
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.answers() == ["Before.", WHOLE]
            assert await reader.questions() == ["One", "Two"]
            assert len(served.model.requests) == 2

    chromium.run(scenario)


def test_an_open_launcher_is_open_on_the_sites_next_page_and_goes_on(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [GATED], LINE) as (served, pages):
            pages["/next"] = pages.pages["/"]
            async with at(browser, f"{pages.origin}/") as reader:
                await reader.page.get_by_role("button", name="Open the chat").click()
                await reader.ask("Hello")
                await reader.shows("First piece.")
                await reader.page.goto(f"{pages.origin}/next")
                await reader.shows("First piece.")
                served.model.release("curtain")
                await reader.ended("complete")
                assert await reader.text() == WHOLE and len(served.model.requests) == 1

    chromium.run(scenario)


def test_two_tabs_show_one_answer_and_either_stops_it(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [[{"say": "Before."}], GATED]) as (served, pages):
            context = await browser.new_context()
            async with at(context, f"{pages.origin}/") as one:
                await one.ask("One")
                await one.ended("complete")
                async with at(context, f"{pages.origin}/") as two:
                    await two.ended("complete")
                    await one.ask("Two")
                    await two.shows("First piece.")
                    await two.page.get_by_role("button", name="Stop").click()
                    for tab in (one, two):
                        await tab.ended("stopped")
                        assert await tab.answers() == ["Before.", "First piece."]
            assert len(served.model.requests) == 2
            assert await served.outcomes() == ["complete", "stopped"]
            await context.close()

    chromium.run(scenario)


def test_a_stop_goes_out_though_the_tab_is_closed_in_the_same_moment(chromium: Chromium, tmp_path: Path) -> None:
    leave = """() => {
        document.querySelector("motamot-chat").stop()
        location.href = "about:blank"
    }"""

    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [GATED]) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await reader.page.evaluate(leave)
            await reader.page.wait_for_url("about:blank")
            await served.model.wait_left(0, timeout=3)
            assert await served.outcomes() == ["stopped"]

    chromium.run(scenario)


@asynccontextmanager
async def in_the_middle(browser: Browser, tmp_path: Path) -> AsyncIterator[tuple[Chat, Network, Reader]]:
    """Somebody whose answer has begun, over a network that can be taken away."""
    with site() as pages:
        async with chat(tmp_path, [GATED], origins=[pages.origin]) as served, network(served.port) as between:
            pages["/"] = ELEMENT.format(chat=between.url)
            async with at(browser, f"{pages.origin}/") as reader:
                await reader.ask("Hello")
                await reader.shows("First piece.")
                yield served, between, reader


def test_a_lost_network_loses_nothing(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with in_the_middle(browser, tmp_path) as (served, between, reader):
            await reader.page.context.set_offline(True)
            between.cut()
            await expect(reader.page.get_by_text("Connection lost. Trying again…")).to_be_visible()
            served.model.release("curtain")
            assert await served.outcomes() == ["complete"]
            between.mend()
            await reader.page.context.set_offline(False)
            await reader.ended("complete")
            assert await reader.text() == WHOLE and len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_restart_ends_the_answer_as_interrupted(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [GATED, [{"say": "Again."}]]
        async with shop(tmp_path, scripts) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            await served.stop()
            await served.start()
            await reader.ended("interrupted")
            assert await reader.text() == "First piece." and len(served.model.requests) == 1
            await reader.page.get_by_role("button", name="Try again").click()
            await reader.shows("Again.")
            assert await reader.questions() == ["Hello"]

    chromium.run(scenario)


def streams(served: Chat) -> int:
    """How many streams the server has open."""
    return served.site.heartbeats.open


async def until(condition: Any, seconds: float = 3) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def test_an_element_that_is_taken_away_lets_go_and_put_back_goes_on(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [GATED]) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            assert streams(served) == 1
            await reader.page.evaluate("(window.kept = document.querySelector('motamot-chat')).remove()")
            await until(lambda: streams(served) == 0)
            assert len(served.site.exchanges.running) == 1, "as in a reload: the answer waits for its reader"
            await reader.page.evaluate("document.getElementById('box').append(window.kept)")
            await reader.shows("First piece.")
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.text() == WHOLE and await reader.questions() == ["Hello"]
            assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_an_element_that_is_moved_goes_on_as_if_nothing_were(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [GATED]) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            before = len(reader.requests)
            await reader.page.evaluate("document.body.append(document.querySelector('motamot-chat'))")
            served.model.release("curtain")
            await reader.ended("complete")
            assert await reader.text() == WHOLE and len(reader.requests) == before

    chromium.run(scenario)


def test_several_chats_on_a_page_are_each_their_own(chromium: Chromium, tmp_path: Path) -> None:
    page = (
        '<!doctype html><script src="{chat}widget.js" data-launcher="none" async></script>'
        '<motamot-chat id="a" assistant="default"></motamot-chat><motamot-chat id="b" assistant="other"></motamot-chat>'
        '<motamot-chat id="c" assistant="default"></motamot-chat>'
    )

    async def scenario(browser: Browser) -> None:
        with site() as pages:
            origins = [pages.origin]
            model = RecordedModel(["From the other."], "a test", pace=0)
            other = Assistant(name="other", origins=origins, upstream=model)
            async with chat(tmp_path, [[{"say": "From the first."}]], origins=origins, others=[other]) as served:
                pages["/"] = page.format(chat=served.url)
                async with at(browser, f"{pages.origin}/") as reader:
                    for name, text in (("a", "From the first."), ("b", "From the other.")):
                        await reader.page.locator(f"#{name} #question").fill("Hello")
                        await reader.page.locator(f"#{name} #question").press("Enter")
                        await expect(reader.page.locator(f"#{name} .text")).to_have_text(text)
                    # The third one is the same chat as the first, as another tab's would be, from its next question on.
                    assert await reader.page.locator("#b .text").count() == 1
                    await reader.page.reload()
                    await expect(reader.page.locator("#a .text")).to_have_text("From the first.")
                    await expect(reader.page.locator("#b .text")).to_have_text("From the other.")
                    await expect(reader.page.locator("#c .text")).to_have_text("From the first.")
                    assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_without_a_name_there_is_a_choice_and_each_assistant_has_its_own_conversation(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as pages:
            origins = [pages.origin]
            model = RecordedModel(["From the other."], "a test", pace=0)
            others = [
                Assistant(name="other", origins=origins, upstream=model),
                Assistant(name="internal", upstream=RecordedModel(["No."], "a test", pace=0)),
            ]
            async with chat(tmp_path, [GATED], origins=origins, others=others) as served:
                pages["/"] = ELEMENT.format(chat=served.url).replace(' assistant="default"', "")
                async with at(browser, f"{pages.origin}/") as reader:
                    choice = reader.page.get_by_label("Assistant")
                    await expect(choice.locator("option")).to_have_text(["motamot", "other"])
                    await reader.ask("Hello")
                    await reader.shows("First piece.")
                    await choice.select_option("other")
                    await until(lambda: streams(served) == 0)
                    assert await reader.questions() == []
                    await reader.ask("And you?")
                    await reader.shows("From the other.")
                    await choice.select_option("default")
                    await reader.shows("First piece.")
                    served.model.release("curtain")
                    await reader.ended("complete")
                    assert await reader.questions() == ["Hello"] and await reader.text() == WHOLE
                    assert len(served.model.requests) == 1

    chromium.run(scenario)


def test_an_assistant_that_is_not_there_is_told(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        page = ELEMENT.replace('assistant="default"', 'assistant="nobody"')
        async with shop(tmp_path, [], page) as (_, pages), at(browser, f"{pages.origin}/") as reader:
            await expect(reader.page.locator("#trouble")).to_contain_text("This chat has no such assistant.")
            await reader.page.evaluate("document.querySelector('motamot-chat').setAttribute('assistant', 'default')")
            await expect(reader.page.locator("#trouble span")).to_be_empty()
            await expect(reader.page.locator("#title")).to_have_text("motamot")

    chromium.run(scenario)


def test_as_a_module_it_does_nothing_until_it_is_defined(chromium: Chromium, tmp_path: Path) -> None:
    page = (
        '<!doctype html><motamot-chat></motamot-chat><script type="module">'
        'import {{ define, MotamotChat }} from "{chat}widget.mjs";'
        "window.before = customElements.get('motamot-chat'); window.start = () => {{ define(); define();"
        "window.same = customElements.get('motamot-chat') === MotamotChat }}"
        "</script>"
    )

    async def scenario(browser: Browser) -> None:
        with site() as pages:
            async with chat(tmp_path, [[{"say": "Yes."}]], origins=[pages.origin]) as served:
                pages["/"] = page.format(chat=served.url)
                async with at(browser, f"{pages.origin}/") as reader:
                    await reader.page.wait_for_function("'start' in window")
                    assert await reader.page.evaluate("before === undefined")
                    assert await reader.page.evaluate("document.querySelector('motamot-chat').shadowRoot === null")
                    await reader.page.evaluate("start()")
                    assert await reader.page.evaluate("same")
                    await reader.ask("Hello")
                    await reader.shows("Yes.")

    chromium.run(scenario)


HOSTILE = """
    * { all: unset; color: red !important; font: 40px/1 serif !important; letter-spacing: 1em;
        text-transform: uppercase; text-indent: 5em !important; text-align: center !important;
        visibility: hidden !important; margin: 50px !important; white-space: nowrap !important }
    html { font-size: 40px !important } body > div { display: none !important }
    button { width: 500px !important } textarea { display: none !important } p { opacity: 0 !important }
    motamot-launcher { display: none !important; position: static !important; transform: scale(5) !important }
"""


def test_no_rule_of_the_page_reaches_the_launcher_or_its_chat(chromium: Chromium, tmp_path: Path) -> None:
    measure = """() => {
        const { shadowRoot } = document.querySelector("motamot-launcher")
        const chat = shadowRoot.querySelector("motamot-chat").shadowRoot
        return [shadowRoot.querySelector("#button"), ...chat.querySelectorAll("#chat, #question, .asked, .text, #send")]
            .map((e) => {
                const { color, fontFamily, fontSize, letterSpacing, textTransform, visibility } = getComputedStyle(e)
                const { x, y, width, height } = e.getBoundingClientRect()
                return { color, fontFamily, fontSize, letterSpacing, textTransform, visibility, x, y, width, height }
            })
    }"""

    async def scenario(browser: Browser) -> None:
        got = []
        for number, css in enumerate(("", HOSTILE)):
            folder = tmp_path / str(number)
            folder.mkdir()
            with site() as pages:
                async with chat(folder, [[{"say": "Yes."}]], origins=[pages.origin]) as served:
                    pages["/"] = LINE.format(chat=served.url) + f"<style>{css}</style>"
                    async with at(browser, f"{pages.origin}/") as reader:
                        await reader.page.get_by_role("button", name="Open the chat").click()
                        await reader.ask("Hello")
                        await reader.ended("complete")
                        got.append(await reader.page.evaluate(measure))
        assert got[0] == got[1]

    chromium.run(scenario)


def test_a_site_that_is_not_listed_is_told_why_by_the_console(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as pages:
            async with chat(tmp_path, [[{"say": "Yes."}]]) as served:
                pages["/"] = ELEMENT.format(chat=served.url)
                async with at(browser, f"{pages.origin}/") as reader:
                    await expect(reader.page.locator("#trouble")).to_contain_text("could not be reached")
                    assert any(f'Is {pages.origin} in its settings\' "origins"?' in text for text in reader.said)

    chromium.run(scenario)


def test_a_chat_that_could_not_be_reached_comes_when_the_network_is_back_with_what_was_sent(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [[{"say": "Yes."}]]) as (served, pages):
            context = await browser.new_context()
            await context.route("**/api/widget", lambda route: route.abort())
            async with at(context, f"{pages.origin}/") as reader:
                await expect(reader.page.locator("#trouble")).to_contain_text("could not be reached")
                await reader.ask("Hello")
                assert await reader.page.locator("#question").input_value() == "Hello"
                await context.unroute("**/api/widget")
                await reader.page.evaluate("dispatchEvent(new Event('online'))")
                await reader.shows("Yes.")
                assert await reader.questions() == ["Hello"] and len(served.model.requests) == 1
            await context.close()

    chromium.run(scenario)


def test_where_the_browser_keeps_nothing_it_works_until_a_reload(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": "One."}], GATED]) as (served, pages),
            at(browser, f"{pages.origin}/", before=NO_STORAGE) as reader,
        ):
            await reader.ask("1")
            await reader.ended("complete")
            await reader.ask("2")
            await reader.shows("First piece.")
            assert len(served.model.requests[1].body["messages"]) == 3, "in the same conversation"
            await reader.page.get_by_role("button", name="Stop").click()
            await served.model.wait_left(1, timeout=2)
            assert await served.outcomes() == ["complete", "stopped"]

    chromium.run(scenario)


async def tabs(context: BrowserContext, url: str, number: int) -> list[Reader]:
    """So many tabs, each with a conversation of its own: sessionStorage is a tab's."""
    readers = []
    for _ in range(number):
        page = await context.new_page()
        page.set_default_timeout(5_000)
        await page.goto(url)
        readers.append(Reader(page))
        await page.get_by_role("button", name="New conversation").click()
    return readers


def test_connections_are_free_when_answers_have_ended(chromium: Chromium, tmp_path: Path) -> None:
    """Browsers open six to a host: a seventh tab can ask, since a stream is closed at its answer's end."""

    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [[{"say": f"Answer {number}."}] for number in range(8)]) as (served, pages):
            context = await browser.new_context()
            for number, reader in enumerate(await tabs(context, f"{pages.origin}/", 8)):
                await reader.ask("Hello")
                await reader.shows(f"Answer {number}.")
                await reader.ended("complete")
            await until(lambda: streams(served) == 0)
            await context.close()

    chromium.run(scenario)


def test_a_stop_goes_out_while_six_streams_are_open(chromium: Chromium, tmp_path: Path) -> None:
    """It lets go of its own stream first, and so has a connection to be posted by."""

    async def scenario(browser: Browser) -> None:
        limits = Limits(exchanges_per_visitor=10)
        async with shop(tmp_path, [GATED] * 6, limits=limits) as (served, pages):
            context = await browser.new_context()
            readers = await tabs(context, f"{pages.origin}/", 6)
            for reader in readers:
                await reader.ask("Hello")
                await reader.shows("First piece.")
            assert streams(served) == 6
            await readers[2].page.keyboard.press("Escape")
            await served.model.wait_left(2, timeout=2)
            await readers[2].ended("stopped")
            await context.close()

    chromium.run(scenario)


@asynccontextmanager
async def gone_and_back(reader: Reader, gone: str, back: str) -> AsyncIterator[None]:
    """As a browser does that keeps a page for the way back."""
    event = "dispatchEvent(new PageTransitionEvent('{}', {{ persisted: true }}))"
    await reader.page.evaluate(event.format(gone))
    yield
    await reader.page.evaluate(event.format(back))


def test_a_page_that_is_kept_for_the_way_back_holds_no_connection_and_goes_on_when_it_is_shown(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [GATED]) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            async with gone_and_back(reader, "pagehide", "pageshow"):
                await until(lambda: streams(served) == 0)
                served.model.release("curtain")
                assert await served.outcomes() == ["complete"]
            await reader.ended("complete")
            assert await reader.text() == WHOLE and len(served.model.requests) == 1

    chromium.run(scenario)


def test_a_frozen_tab_gets_what_it_missed(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with in_the_middle(browser, tmp_path) as (served, between, reader):
            tab = await reader.page.context.new_cdp_session(reader.page)
            await tab.send("Page.setWebLifecycleState", {"state": "frozen"})
            between.cut()  # its stream dies, and nobody there notices
            served.model.release("curtain")
            assert await served.outcomes() == ["complete"]
            between.mend()
            await tab.send("Page.setWebLifecycleState", {"state": "active"})
            await reader.ended("complete")
            assert await reader.text() == WHOLE and len(served.model.requests) == 1

    chromium.run(scenario)


@pytest.mark.parametrize("allowed", [True, False])
def test_images_come_from_the_hosts_that_the_page_allows_and_from_no_other(
    chromium: Chromium, tmp_path: Path, allowed: bool
) -> None:
    async def scenario(browser: Browser) -> None:
        with site() as pages:
            host = pages.origin.removeprefix("http://")
            script = [{"say": f"![ours]({pages.origin}/a.png) ![theirs](http://localhost:1/b.png) and on."}]
            async with chat(tmp_path, [script], origins=[pages.origin]) as served:
                images = f'images="img.example {host}"' if allowed else ""
                pages["/"] = (
                    f'<script src="{served.url}widget.js" data-launcher="none" async></script>'
                    f"<motamot-chat {images}></motamot-chat>"
                )
                async with at(browser, f"{pages.origin}/") as reader:
                    await reader.ask("Hello")
                    await reader.ended("complete")
                    await asyncio.sleep(0.2)
                    assert (f"{pages.origin}/a.png" in reader.requests) == allowed
                    assert not [url for url in reader.requests if url.startswith("http://localhost:1/")]
                    await expect(reader.page.locator(".text a")).to_have_count(1 if allowed else 2)

    chromium.run(scenario)
