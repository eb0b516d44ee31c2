"""The widget among the hostile and the careless: what a page, its other scripts, a server and a model may do to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from motamot.answer import AnswerEvent, Cited, Text
from motamot.assistant import Question
from tests.page.support import NO_STORAGE, Chromium, Reader
from tests.widget.shop import at
from tests.widget.test_elsewhere import ELEMENT, GATED, LINE, WHOLE, shop

CORS = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*, Authorization"}


# What other scripts of the page do

# What libraries of 2008 to 2012 put into every page of theirs (Prototype.js 1.6, MooTools 1.4), by what it did.
OLD_LIBRARIES = """
    const toArray = function () { return [...this] }
    Object.assign(Array.prototype, {
        entries: toArray, toArray, each(f) { this.forEach(f) }, include(x) { return this.includes(x) },
        reduce() { return this.length > 1 ? this : this[0] }, first() { return this[0] }, last() { return this.at(-1) },
        toJSON() { return "an array" }, clear() { this.length = 0; return this }, append(x) { this.push(...x) },
    })
    Object.assign(String.prototype, { toJSON() { return `"${this}"` }, sub: null, link: null })
    Number.prototype.toJSON = function () { return String(this) }
    Array.from = (given) => given == null ? [] : Array.isArray(given) ? given : [given]
    Object.prototype.extend = function () { return this }
    Object.prototype.foo = "everywhere"
    const { prototype } = Element
    window.Element = function () {}
    Element.prototype = prototype
    Object.assign(prototype, {
        select(css) { return [...this.querySelectorAll(css)] }, hide() { return this }, show() { return this },
        toggle() { return this }, visible() { return true }, wrap() { return this }, clone() { return {} },
        update() { return this }, insert() { return this }, empty() { this.replaceChildren(); return this },
        remove() { this.parentNode?.removeChild(this); return this }, set() { return this }, get() { return null },
    })
    window.Event = function (event) { if (event.$extended) return event; this.event = event; this.$extended = true }
    window.$ = window.$$ = () => null
"""


async def where_is_it(order: str) -> str:
    """Where an order is."""
    return f"{order} is on its way."


def test_libraries_that_have_changed_what_every_object_can_do_change_nothing_of_it(
    chromium: Chromium, tmp_path: Path
) -> None:
    rows = "".join(f"\n| {number} | x |" for number in range(120))

    async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
        async for event in question.model_answer():
            yield event
        yield Cited(title="Terms", url="https://shop.example/terms", quote="within 30 days")

    async def scenario(browser: Browser) -> None:
        turns = [
            [{"call": {"name": "where_is_it", "arguments": {"order": "7"}}}],
            [{"say": f"**Yes.**\n\n| a | b |\n|---|---|{rows}\n"}],
        ]
        async with (
            shop(tmp_path, turns, LINE, tools=[where_is_it], answer=answer) as (_served, pages),
            at(browser, f"{pages.origin}/", before=OLD_LIBRARIES) as reader,
        ):
            await reader.page.get_by_role("button", name="Open the chat").click()
            await reader.ask("Hello")
            for _ in range(2):
                await reader.ended("complete")
                await expect(reader.page.locator(".text strong")).to_have_text("Yes.")
                await expect(reader.page.locator(".text tr")).to_have_count(121)
                await expect(reader.page.locator(".tools li")).to_have_text("Used: where_is_it")
                await expect(reader.page.locator(".sources a")).to_have_text("Terms")
                await reader.page.reload()
            await reader.page.get_by_role("button", name="Close the chat").first.click()
            await expect(reader.page.locator("#chat")).to_be_hidden()

    chromium.run(scenario)


NO_TABLES = """
    const { createElement } = Document.prototype
    Document.prototype.createElement = function (name, options) {
        if (name === "table") throw new Error("no tables here")
        return createElement.call(this, name, options)
    }
"""


def test_where_the_pages_scripts_keep_tables_from_being_made_the_answer_is_shown_as_it_was_written(
    chromium: Chromium, tmp_path: Path
) -> None:
    text = "**Yes.**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nand more"

    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": text[:30]}, {"wait": "100ms"}, {"say": text[30:]}]], LINE) as (_served, pages),
            at(browser, f"{pages.origin}/", before=NO_TABLES) as reader,
        ):
            await reader.page.get_by_role("button", name="Open the chat").click()
            await reader.ask("Hello")
            await reader.ended("complete")
            assert await reader.page.locator(".text").text_content() == text

    chromium.run(scenario)


CLOBBERED = (
    "".join(
        f'<img name="{name}" alt=""><form name="{name}"></form>'
        for name in (
            "currentScript",
            "body",
            "baseURI",
            "documentElement",
            "title",
            "hidden",
            "activeElement",
            "cookie",
        )
    )
    + '<a id="crypto"></a><a id="fetch"></a><a id="motamot"></a><a id="origin"></a><form name="navigator"></form>'
)


@pytest.mark.parametrize("page", [LINE, ELEMENT], ids=["line", "element"])
def test_elements_that_are_named_like_what_a_document_has_do_not_stand_in_its_place(
    chromium: Chromium, tmp_path: Path, page: str
) -> None:
    async def scenario(browser: Browser) -> None:
        clobbered = page.replace("<script", f"{CLOBBERED}<script")
        async with (
            shop(tmp_path, [[{"say": "Yes."}]], clobbered) as (_, pages),
            at(browser, f"{pages.origin}/") as reader,
        ):
            if page == LINE:
                await reader.page.get_by_role("button", name="Open the chat").click()
            await reader.ask("Hello")
            await reader.shows("Yes.")
            await reader.page.reload()
            await reader.shows("Yes.")

    chromium.run(scenario)


RUBBISH = ["", "null", "0", "{", '"\\u0000"', "[]", "{}", '{"at":1}', '{"at":9e99,"body":null}', '"../../x?y#z"',
           '"' + "x" * 100_000 + '"',
           json.dumps({"at": 9e15, "body": {"message": "old", "key": "k" * 500, "conversation": 5, "assistant": []}}),
           json.dumps({"at": 9e15, "body": {"message": "", "key": "", "replaces": {}}}),
           json.dumps({"at": 9e15, "body": {"message": "x" * 1_000_000, "key": "a" * 32, "more": 1}})]  # fmt: skip


@pytest.mark.parametrize("rubbish", RUBBISH, ids=range(len(RUBBISH)))
def test_rubbish_under_its_names_in_the_browsers_storage_keeps_it_from_nothing(
    chromium: Chromium, tmp_path: Path, rubbish: str
) -> None:
    spoil = """(rubbish) => {
        for (const storage of [localStorage, sessionStorage])
            for (const name of Object.keys(storage)) storage[name] = rubbish
        return [Object.keys(localStorage), Object.keys(sessionStorage)]
    }"""
    full = """(url) => {
        for (const name of [`motamot ${url} unsent default`, `motamot ${url} open `]) sessionStorage[name] = ""
        for (const name of [`motamot ${url} language`, "motamot reading"]) localStorage[name] = ""
    }"""

    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "One."}]] * 4
        async with shop(tmp_path, scripts) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.evaluate(full, served.url)
            kept = await reader.page.evaluate(spoil, rubbish)
            assert any("secret" in name for name in kept[0]) and len(kept[0]) >= 4 and len(kept[1]) >= 3
            await reader.page.reload()
            await expect(reader.page.locator("#question")).to_be_visible()
            await reader.page.wait_for_timeout(300)
            await reader.ask("Again")
            await reader.page.wait_for_timeout(300)
            asked = reader.page.locator(".exchange").filter(has_text="Again").last
            if await asked.locator(".retry").is_visible():  # one refusal says so, and trying again helps
                await asked.locator(".retry").click()
            await expect(asked.locator(".answer")).to_have_attribute("data-outcome", "complete")
            await reader.page.reload()
            await expect(reader.page.locator(".text").last).to_have_text("One.")
            await expect(reader.page.locator("#trouble")).to_have_text("", use_inner_text=True)

    chromium.run(scenario)


# What a server, or who stands in its place, says


async def lied_to(reader: Reader, path: str, wrong: object, told: str) -> None:
    """Reload the page while something else answers at `path`; it tells so, and the real answer is had by its button."""

    async def lie(route: Route) -> None:
        await route.fulfill(status=200, headers=CORS, json=wrong)

    await reader.page.route(path, lie)
    await reader.page.reload()
    await expect(reader.page.locator("#trouble")).to_contain_text(told)
    await reader.page.unroute(path)
    await reader.page.locator("#trouble button").click()


WRONG: list[Any] = [
    None,
    5,
    [],
    {},
    {"assistants": 5},
    {"assistants": [None], "heartbeat": 15, "message_bytes": 1000},
    {"assistants": [{"name": 5, "title": {}, "marks": 7}], "heartbeat": 15, "message_bytes": 1000},
    {"assistants": [{"name": "default", "title": "Shop", "marks": []}], "heartbeat": "x", "message_bytes": 1000},
    {"assistants": [{"name": "default", "title": "Shop", "marks": []}], "heartbeat": 0, "message_bytes": 1000},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_where_something_else_answers_it_says_so_and_can_be_tried_again(
    chromium: Chromium, tmp_path: Path, wrong: object
) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": "Yes."}]]) as (_, pages),
            at(browser, f"{pages.origin}/", service_workers="block") as reader,
        ):
            await lied_to(reader, "**/api/widget", wrong, "could not be reached")
            await reader.ask("Hello")
            await reader.shows("Yes.")

    chromium.run(scenario)


ODD = {"exchange": "x", "question": 1, "text": 2, "outcome": 3, "tools": 4, "sources": 5}
NONE: list[object] = [
    None,
    5,
    [],
    {},
    {"exchanges": 5},
    {"exchanges": [None]},
    {"exchanges": [{}]},
    {"exchanges": [ODD]},
]


@pytest.mark.parametrize("wrong", NONE, ids=range(len(NONE)))
def test_a_conversation_that_is_none_could_not_be_loaded(chromium: Chromium, tmp_path: Path, wrong: object) -> None:
    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": "Yes."}]]) as (_, pages),
            at(browser, f"{pages.origin}/") as reader,
        ):
            await reader.ask("Hello")
            await reader.ended("complete")
            await lied_to(reader, "**/api/conversations/*", wrong, "could not be loaded")
            await reader.shows("Yes.")
            assert await reader.questions() == ["Hello"]

    chromium.run(scenario)


HOSTILE = [
    "\u202ereversed\u202d \u2066isolated",
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "{{constructor.constructor('alert(1)')()}}",
    "a\u2028b\u2029c\0d",
    "z" + "\u0301" * 3000,
    "\u200b" * 3000 + "end",
    "W" * 20_000,
    "__proto__",
    "constructor",
]


@pytest.mark.parametrize("name", range(len(HOSTILE)))
def test_what_a_source_calls_itself_is_text_within_its_line(chromium: Chromium, tmp_path: Path, name: int) -> None:
    hostile = HOSTILE[name]
    urls = [
        "javascript:alert(1)",
        "java\tscript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        hostile,
        "https://a@evil.example/",
    ]

    async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Text("See:")
        for url in urls:
            yield Cited(title=hostile, url=url, quote=hostile)

    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [], answer=answer) as (_, pages),
            at(browser, f"{pages.origin}/", viewport={"width": 400, "height": 700}) as reader,
        ):
            await reader.ask("Hello")
            for _ in range(2):
                await reader.ended("complete")
                lines = reader.page.locator(".sources > li")
                await expect(lines).to_have_count(len(urls))
                found = await reader.page.evaluate("""() => {
                    const root = document.querySelector("motamot-chat").shadowRoot
                    return {
                        links: [...root.querySelectorAll(".sources a")].map((a) => a.href),
                        tags: [...root.querySelectorAll(".sources :not(li, a, span, q)")].map((e) => e.localName),
                        wide: root.querySelector("#log").scrollWidth - root.querySelector("#log").clientWidth,
                        head: root.querySelector("#chat").scrollWidth - root.querySelector("#chat").clientWidth,
                        nav: root.querySelector("#fresh").getBoundingClientRect().right,
                        top: root.querySelector("#log").getBoundingClientRect().top,
                    }
                }""")
                assert found["links"] == [] and found["tags"] == []
                assert found["wide"] <= 0 and found["head"] <= 0 and found["nav"] <= 400 and found["top"] < 300
                await reader.page.reload()

    chromium.run(scenario)


def test_the_line_given_twice_makes_one_button_and_one_for_another_assistant_a_second(
    chromium: Chromium, tmp_path: Path
) -> None:
    line = LINE[LINE.index("<script") :]
    other = line.replace(" async", ' data-assistant="other" data-position="left" data-open="false" async')

    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": "Yes."}]], LINE + line + other) as (_, pages),
            at(browser, f"{pages.origin}/") as reader,
        ):
            await reader.page.wait_for_load_state("networkidle")
            await expect(reader.page.locator("motamot-launcher")).to_have_count(2)
            await expect(reader.page.locator("motamot-chat")).to_have_count(0)
            await reader.page.locator("motamot-launcher[data-assistant=''] #button").click()
            await reader.ask("Hello")
            await reader.shows("Yes.")

    chromium.run(scenario)


NO_CHANNEL = """
    window.BroadcastChannel = class {
        constructor() { throw new DOMException("The operation is insecure.", "SecurityError") }
    }
"""


def test_where_the_browser_lets_pages_not_talk_to_each_other_it_answers(chromium: Chromium, tmp_path: Path) -> None:
    """As Firefox does where a site may keep nothing."""

    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": "Yes."}]]) as (_, pages),
            at(browser, f"{pages.origin}/", before=NO_CHANNEL + NO_STORAGE) as reader,
        ):
            await reader.ask("Hello")
            await reader.shows("Yes.")
            await reader.page.get_by_role("button", name="Reading comfort").click()
            await reader.page.locator("input[value=cream]").click()
            await expect(reader.page.locator("#chat")).to_have_attribute("data-ground", "cream")
            await reader.page.evaluate("document.querySelector('motamot-chat').remove()")

    chromium.run(scenario)


def test_what_other_scripts_say_on_its_channels_changes_nothing(chromium: Chromium, tmp_path: Path) -> None:
    say = """(url) => {
        const { conversation } = Object.fromEntries(Object.entries(sessionStorage).map(([name, value]) =>
            [name.includes("conversation") ? "conversation" : name, JSON.parse(value)]))
        for (const name of [`motamot ${url}`, "motamot reading"]) {
            const channel = new BroadcastChannel(name)
            const odd = [{}, { exchange: {} }, { exchange: "x", message: {} }, { removed: "yes" }]
            for (const said of [null, 5, "x", [], { ground: "pink" }, ...odd.map((one) => ({ conversation, ...one }))])
                channel.postMessage(said)
        }
    }"""

    async def scenario(browser: Browser) -> None:
        async with (
            shop(tmp_path, [[{"say": "Yes."}]] * 2) as (served, pages),
            at(browser, f"{pages.origin}/") as reader,
        ):
            await reader.ask("Hello")
            await reader.ended("complete")
            await reader.page.evaluate(say, served.url)
            await reader.ask("Again")
            await reader.ended("complete")
            assert await reader.answers() == ["Yes.", "Yes."]
            assert await reader.page.locator("#chat").get_attribute("data-ground") is None

    chromium.run(scenario)


def test_a_page_without_an_origin_is_told_that_it_needs_one(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, []) as (served, _):
            (tmp_path / "page.html").write_text(ELEMENT.format(chat=served.url), "utf-8")
            async with at(browser, (tmp_path / "page.html").as_uri()) as reader:
                await expect(reader.page.locator("#trouble")).to_contain_text("could not be reached")
                assert any("has no origin that could be allowed: serve it over HTTP" in text for text in reader.said)

    chromium.run(scenario)


def test_an_assistant_that_is_not_there_is_named_on_the_console(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        page = ELEMENT.replace('assistant="default"', 'assistant="defautl"')
        async with shop(tmp_path, [], page) as (_, pages), at(browser, f"{pages.origin}/") as reader:
            await expect(reader.page.locator("#trouble")).to_contain_text("no such assistant")
            assert any('has no assistant "defautl" for this page; it has "default".' in text for text in reader.said)

    chromium.run(scenario)


def test_moved_into_another_window_of_the_page_it_goes_on_and_looks_as_it_did(
    chromium: Chromium, tmp_path: Path
) -> None:
    move = """() => {
        const frame = document.createElement("iframe")
        document.body.append(frame)
        frame.contentDocument.body.append(document.querySelector("motamot-chat"))
    }"""
    look = """() => {
        const { shadowRoot } = document.querySelector("motamot-chat")
        const { display, backgroundColor } = getComputedStyle(shadowRoot.firstChild)
        return [display, backgroundColor]
    }"""

    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [GATED]) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("Hello")
            await reader.shows("First piece.")
            before = await reader.page.evaluate(look)
            await reader.page.evaluate(move)
            served.model.release("curtain")
            frame = reader.page.frames[1]
            await expect(frame.locator(".text")).to_have_text(WHOLE)
            assert await frame.evaluate(look) == before

    chromium.run(scenario)


def test_the_button_is_not_printed(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with shop(tmp_path, [], LINE) as (_, pages), at(browser, f"{pages.origin}/") as reader:
            button = reader.page.locator("motamot-launcher #button")
            await expect(button).to_be_visible()
            await reader.page.emulate_media(media="print")
            await expect(button).to_be_hidden()

    chromium.run(scenario)


def test_a_conversation_deleted_while_its_answer_comes_is_gone_and_the_next_question_begins_another(
    chromium: Chromium, tmp_path: Path
) -> None:
    async def scenario(browser: Browser) -> None:
        scripts = [[{"say": "Before."}], GATED, [{"say": "New."}]]
        async with shop(tmp_path, scripts) as (served, pages), at(browser, f"{pages.origin}/") as reader:
            await reader.ask("One")
            await reader.ended("complete")
            await reader.ask("Two")
            await reader.shows("First piece.")
            await reader.page.get_by_role("button", name="Delete").click()
            await reader.page.locator("#sure .danger").click()
            await expect(reader.page.locator(".exchange")).to_have_count(0)
            await served.model.wait_left(1, timeout=3)
            await reader.ask("Three")
            await reader.shows("New.")
            await reader.page.reload()
            await reader.shows("New.")
            assert await reader.questions() == ["Three"]
            assert [len(one.body["messages"]) for one in served.model.requests] == [1, 3, 1]

    chromium.run(scenario)
