"""The widget's Markdown in a real browser: hostile answers, half-written ones, and what becomes of them in a page."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.async_api import Browser, Page, Route

from tests.need import need
from tests.page.support import Chromium
from tests.widget.axe import violations

ROOT = Path(__file__).parents[2]
WIDGET = ROOT / "widget"
CASES = [
    case
    for line in (ROOT / "tests" / "data" / "cases.jsonl").read_text("utf-8").splitlines()
    if (case := json.loads(line))["given"]["type"] == "render"
]
STRICT = (
    "default-src 'none'; script-src 'self'; img-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors 'none'"
)
HOST = "http://chat.example"

# What an answer may be made of. Whatever else stands in the page is looked for after each write.
LOOK = r"""
const TAGS = new Set("A BLOCKQUOTE CODE COL COLGROUP DIV EM H3 H4 H5 H6 HR IMG INPUT LABEL LI OL P PRE S SPAN STRONG TABLE TBODY TD TH THEAD TR UL".split(" "));
const NAMES = new Set("alt aria-label checked class data-language dir disabled href loading referrerpolicy rel role scope src start style tabindex target title type".split(" "));
const MARKUP = [/<script/i, /<[^>]*\son[a-z]+\s*=/i, /<[^>]*\s(href|src)="(?!https?:|mailto:)/i];
window.ran = [];
for (const name of ["alert", "prompt", "confirm", "print", "open"]) window[name] = (...told) => ran.push([name, ...told]);
window.addEventListener("securitypolicyviolation", (event) => ran.push(["policy", event.violatedDirective]));
window.look = (root) => {
  const faults = [...ran];
  for (const element of root.querySelectorAll("*")) {
    if (!TAGS.has(element.tagName)) faults.push(element.tagName);
    for (const { name } of element.attributes) if (!NAMES.has(name)) faults.push(name);
    if (element.href !== undefined && !/^(https?|mailto):$/.test(element.protocol) && element.hasAttribute("href")) faults.push(element.href);
    if (element.hasAttribute("href") && (element.rel !== "noopener noreferrer nofollow" || element.target !== "_blank")) faults.push("rel");
  }
  const html = root.innerHTML;
  for (const wrong of MARKUP) if (wrong.test(html)) faults.push(String(wrong));
  return faults;
};
window.show = (pieces, { end = true, look: each = true, options = {} } = {}) => {
  const root = document.querySelector("#answer");
  root.replaceChildren();
  Object.assign(root.style, { whiteSpace: "pre-wrap", width: "600px" });
  const writer = markdown(root, options);
  const faults = [];
  for (const piece of pieces) {
    writer.write(piece);
    if (each) faults.push(...look(root));
  }
  if (end) writer.end();
  faults.push(...look(root));
  return { html: root.innerHTML, text: root.textContent, faults };
};
"""  # noqa: E501 - a script
EVERYTHING = """# Title
Some **bold**, *leaning*, ~~struck~~ `code`, [a link](https://x.example/path "title") and https://y.example.

1. One
2. Two
   - [ ] to do
   - [x] done

> Quoted

| Name | Age |
|:-----|----:|
| Ana  | 31  |

```python
print("a rather long line of code, which has to be scrolled, because it does not fit into the box that it is in")
```

---
![picture](https://elsewhere.example/p.png)
"""

T = TypeVar("T")


@cache
def _script() -> str:
    esbuild = WIDGET / "node_modules" / ".bin" / "esbuild"
    need(esbuild.exists(), "the widget's tools: make widget")
    entry = f"import {{ markdown }} from './src/markdown/index.ts'; globalThis.markdown = markdown;{LOOK}"
    command = [str(esbuild), "--bundle", "--format=iife", "--log-level=error"]
    return subprocess.run(
        command, input=entry, text=True, cwd=WIDGET, check=True, capture_output=True, timeout=30
    ).stdout


@asynccontextmanager
async def _page(browser: Browser, *, policy: str = "") -> AsyncIterator[tuple[Page, list[str]]]:
    """A page with the renderer in it. policy: its Content-Security-Policy. Told with it: what it asked for besides."""
    context = await browser.new_context(base_url=HOST)
    page = await context.new_page()
    asked: list[str] = []

    async def answer(route: Route) -> None:
        url = route.request.url
        if url == f"{HOST}/":
            body = (Path(__file__).parent / "markdown.html").read_text("utf-8")
            headers = {"content-security-policy": policy} if policy else {}
            await route.fulfill(body=body, content_type="text/html", headers=headers)
        elif url == f"{HOST}/markdown.js":
            await route.fulfill(body=_script(), content_type="text/javascript")
        else:
            asked.append(url)
            await route.abort()

    await page.route("**/*", answer)
    page.on("pageerror", lambda error: asked.append(f"raised {error}"))
    page.on("dialog", lambda dialog: asked.append(f"said {dialog.message}"))
    try:
        await page.goto("/")
        yield page, asked
    finally:
        await context.close()


def _run(chromium: Chromium, scenario: Callable[[Page], Awaitable[T]], *, policy: str = "", asks: bool = False) -> T:
    """Play a scenario; asks: it may ask other hosts."""

    async def played(browser: Browser) -> T:
        async with _page(browser, policy=policy) as (page, asked):
            result = await scenario(page)
            await asyncio.sleep(0.05)  # for a request, or a script, that is only now begun
            assert asks or not asked
            assert await page.evaluate("ran") == []
            return result

    return chromium.run(played)


async def _shown(page: Page, pieces: list[str], **options: Any) -> dict[str, Any]:
    shown: dict[str, Any] = await page.evaluate("([pieces, options]) => show(pieces, options)", [pieces, options])
    assert shown["faults"] == []
    return shown


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_an_answer_that_has_broken_other_pages_is_shown_as_it_should_be(
    chromium: Chromium, case: dict[str, Any]
) -> None:
    pieces, done = case["given"]["deltas"], case["given"]["state"] == "done"
    expect = {**case["expect"], **case.get("wish", {}), **case["expect"].get("final_state", {})}

    async def scenario(page: Page) -> None:
        for cut in (pieces, ["".join(pieces)], list("".join(pieces))):
            shown = await _shown(page, cut, end=done)
            for wrong in expect.get("html_must_not_match", ()):
                assert not re.search(wrong, shown["html"], re.IGNORECASE)
            for text in expect.get("visible_text_contains", ()):
                assert text in shown["text"]
            for text in expect.get("visible_text_not_contains", ()):
                assert text not in shown["text"]
            links = await page.evaluate("[...document.querySelectorAll('#answer a[href]')].map((a) => a.protocol)")
            assert {scheme.rstrip(":") for scheme in links} <= {"http", "https", "mailto"}
            code = await page.evaluate("document.querySelector('#answer pre')?.textContent ?? ''")
            assert all(text in code for text in expect.get("code_block_contains", ()))
            assert code.rstrip("\n") == expect.get("code_block_equals", code).rstrip("\n")

    _run(chromium, scenario)


def _attacks() -> Iterator[str]:
    """The payloads of BRS-KB (MIT), as they are and wherever Markdown takes an address."""
    need(importlib.util.find_spec("brs_kb"), "the payloads of BRS-KB: pip install brs-kb")
    for entry in importlib.import_module("brs_kb.payloads").get_all_payloads().values():
        payload = entry.payload
        yield payload
        if len(payload) < 300:
            yield f"[x]({payload}) ![x]({payload}) <{payload}> [x](<{payload}>) `{payload}` [{payload}](https://x.example)"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", range(4))
def test_no_payload_of_an_outside_list_runs_or_leads_anywhere_at_any_step(chromium: Chromium, part: int) -> None:
    attacks = list(_attacks())
    assert len(attacks) > 8000
    attacks = attacks[part::4]

    async def scenario(page: Page) -> None:
        told = await page.evaluate(
            """(texts) => texts.flatMap((text) => {
                const whole = show([text]);
                const units = show(text.split(""), {look: text.length < 120});
                const same = whole.html === units.html ? [] : ["depends on the cut"];
                return [...whole.faults, ...units.faults, ...same].map((fault) => [fault, text]);
            })""",
            attacks,
        )
        assert told == []

    _run(chromium, scenario)


def test_what_it_makes_offends_no_strict_policy_and_no_trusted_types(chromium: Chromium) -> None:
    async def scenario(page: Page) -> None:
        rows = "| a | b |\n|-|-|\n" + "| 1 | 2 |\n" * 120
        for text in (EVERYTHING, "word " * 3000, rows, "- item\n" * 120):
            await _shown(page, [text])
            await _shown(page, list(text), look=False)
        await _shown(page, [EVERYTHING])
        assert await page.evaluate("document.querySelector('#answer td:last-child').style.textAlign") == "right"

    _run(chromium, scenario, policy=STRICT)


def test_an_image_is_fetched_only_from_where_it_may_be(chromium: Chromium) -> None:
    asked: list[str] = []
    text = "![a](https://fine.example/1.png) ![b](https://other.example/2.png) [![c](https://fine.example/3.png)](https://x.example)"

    async def scenario(page: Page) -> list[str]:
        page.on("request", lambda request: asked.append(request.url))
        for end in range(1, len(text) + 1):
            await page.evaluate(
                "(text) => show([text], {end: false, options: {image: (url) => url.hostname === 'fine.example'}})",
                text[:end],
            )
            assert "other.example" not in "".join(asked)
        await page.evaluate(
            "(text) => show([text], {options: {image: (url) => url.hostname === 'fine.example'}})", text
        )
        images: list[str] = await page.evaluate("[...document.images].map((image) => image.src + ' ' + image.alt)")
        assert await page.evaluate("document.images[1].closest('a').href") == "https://x.example/"
        return images

    images = _run(chromium, scenario, asks=True)
    assert images == ["https://fine.example/1.png a", "https://fine.example/3.png c"]
    assert set(asked) == {"https://fine.example/1.png", "https://fine.example/3.png"}


def test_a_link_tells_where_it_leads_where_its_text_does_not(chromium: Chromium) -> None:
    text = "[https://bank.example](https://elsewhere.example/x) https://y.example <https://z.example/a> [](https://empty.example/)"

    async def scenario(page: Page) -> None:
        await _shown(page, list(text))
        links = await page.evaluate("[...document.querySelectorAll('#answer a')].map((a) => [a.textContent, a.title])")
        assert links == [
            ["https://bank.example", "https://elsewhere.example/x"],
            ["https://y.example", ""],
            ["https://z.example/a", ""],
            ["https://empty.example/", ""],
        ]

    _run(chromium, scenario)


def test_code_is_given_to_who_adds_a_button_when_it_begins_and_as_far_as_it_has_come(chromium: Chromium) -> None:
    async def scenario(page: Page) -> None:
        told = await page.evaluate(
            """(text) => {
                const root = document.querySelector("#answer"), told = [];
                let source;
                const code = (block, so_far) => { told.push(block.className + block.isConnected); source = so_far };
                const writer = markdown(root, {code});
                for (const unit of text) { writer.write(unit); if (source) told.push(source()) }
                writer.end();
                return told;
            }""",
            "```js\na = 1\n\nb\n```\nafter\n~~~\nc",
        )
        assert [one for one in told if one.startswith("code")] == ["codetrue", "codetrue"]
        code = [one for one in told if not one.startswith("code")]
        assert code[:6] == ["", "a", "a ", "a =", "a = ", "a = 1"]
        assert "a = 1\n\nb" in code and code[-1] == "c"

    _run(chromium, scenario)


def test_who_hears_it_and_who_has_no_mouse_gets_all_of_it(chromium: Chromium) -> None:
    async def scenario(page: Page) -> None:
        await _shown(page, list(EVERYTHING))
        found = await page.evaluate(
            """() => {
                const all = (selector) => [...document.querySelectorAll("#answer " + selector)];
                return {
                    headings: all("h3").map((h) => h.tagName),
                    heads: all("th").map((th) => th.scope),
                    boxes: all("input").map((box) => [box.disabled, box.checked, box.labels[0].textContent]),
                    scrolled: all("[tabindex='0']").map((box) => box.className || box.tagName),
                    code: all("pre").map((pre) => pre.closest("[dir]").dir + pre.getAttribute("aria-label")),
                };
            }"""
        )
        assert found == {
            "headings": ["H3"],
            "heads": ["col", "col"],
            "boxes": [[True, False, "to do"], [True, True, "done"]],
            "scrolled": ["table", "PRE"],
            "code": ["ltrpython"],
        }
        assert await violations(page) == []

    _run(chromium, scenario)


def test_what_is_written_from_right_to_left_stands_so_block_by_block(chromium: Chromium) -> None:
    text = "مرحبا `x` بالعالم\n\nHello\n\n- عنصر\n- two\n\n> اقتباس\n\n| اسم | b |\n|-|-|\n| ج | د |\n\n```\nx\n```\n"

    async def scenario(page: Page) -> None:
        await _shown(page, list(text))
        directions = await page.evaluate(
            """[..."p ul li blockquote table code pre".split(" ")].flatMap((tag) =>
                [...document.querySelectorAll("#answer > " + tag + ", #answer > * " + tag)]
                    .map((it) => tag + " " + getComputedStyle(it).direction))"""
        )
        assert directions[:2] == ["p rtl", "p ltr"]
        assert {"ul rtl", "li rtl", "blockquote rtl", "table rtl", "pre ltr", "code ltr"} <= set(directions)
        assert "code rtl" not in directions and "li ltr" not in directions

    _run(chromium, scenario)


def test_what_is_very_long_goes_on_in_further_boxes_and_reads_as_one(chromium: Chromium) -> None:
    rows = "".join(f"| {number} | {'wide ' * (number % 7)} |\n" for number in range(170))
    items = "".join(f"{number}. item\n" for number in range(3, 173))
    code = "".join(f"line {number} of the code\n" for number in range(600))
    words = "".join(f"word{number} " for number in range(3000))
    text = f"{words}\n\n{items}\n| Number | Text |\n|--:|---|\n{rows}\n```\n{code}```\n"

    async def scenario(page: Page) -> None:
        whole = await _shown(page, [text])
        pieces = await _shown(page, [text[at : at + 7] for at in range(0, len(text), 7)], look=False)
        assert pieces["text"] == whole["text"]
        found = await page.evaluate(
            """() => {
                const all = (selector) => [...document.querySelectorAll("#answer " + selector)];
                const lefts = (row) => [...row.cells].map((cell) => Math.round(cell.getBoundingClientRect().left));
                return {
                    words: all("p")[0].textContent, parts: all("p > span").length,
                    lists: all("ol").map((list) => [list.start, list.children.length]),
                    tables: all("table").map((table) => table.tBodies[0].rows.length),
                    lefts: [...new Set(all("tr").map((row) => lefts(row).join()))].length,
                    roles: all("[role]").map((it) => it.getAttribute("role")),
                    code: all("pre")[0].textContent, lines: all("pre span").length,
                };
            }"""
        )
        assert found["words"] == words and found["parts"] >= 5
        assert found["lists"] == [[3, 50], [53, 50], [103, 50], [153, 20]]
        assert found["tables"] == [50, 50, 50, 20] and found["lefts"] == 1
        roles = found["roles"]
        assert (roles.count("table"), roles.count("row"), roles.count("columnheader"), roles.count("cell")) == (
            1, 171, 2, 340,
        )  # fmt: skip
        assert found["code"] == code.rstrip("\n") and found["lines"] >= 2
        assert await violations(page) == []

    _run(chromium, scenario)


DEEP = 220  # elements within each other: 32 containers of two, 16 emphases of up to 8, and what holds them
PATHOLOGICAL = {
    "emphasis": "*a ",
    "strong": "**a_b ",
    "mixed": "*_~~",
    "brackets": "[",
    "addresses": "[a](b",
    "images": "![[]()",
    "backticks": "`a",
    "growing": "".join("`" * (size % 300 + 1) + "a" for size in range(600)),
    "quotes": "> ",
    "quoted lines": "> > > > > > > >\n",
    "bars": "|",
    "rows": "|a|b|\n|-|-|\n",
    "items": "- a\n",
    "dashes": "- ",
    "nested": "".join(" " * size + "- a\n" for size in range(440)),
    "angles": "<a@",
    "references": "&a",
    "schemes": "https://a.b/(",
    "hashes": "# # ",
    "newlines": "\n \n",
    "pairs": "\ud83d\ude00**",
}  # fmt: skip


@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_what_is_made_to_be_slow_or_deep_is_neither(chromium: Chromium, name: str) -> None:
    one = PATHOLOGICAL[name]
    text = (one * (100_000 // len(one) + 1))[:100_000]

    async def scenario(page: Page) -> None:
        took, depth, length = await page.evaluate(
            """(text) => {
                const root = document.querySelector("#answer");
                const times = [text.length, 997].map((size) => {
                    root.replaceChildren();
                    const writer = markdown(root), begun = performance.now();
                    for (let at = 0; at < text.length; at += size) writer.write(text.slice(at, at + size));
                    writer.end();
                    return performance.now() - begun;
                });
                let depth = 0;
                for (let level = [root]; level.length; depth++) level = level.flatMap((it) => [...it.children]);
                return [Math.min(...times), depth, root.textContent.length];
            }""",
            text,
        )
        assert took < 1500, f"{took} ms"  # 200 ms by itself: this machine has other work
        assert depth <= DEEP
        assert length <= len(text)

    _run(chromium, scenario)
