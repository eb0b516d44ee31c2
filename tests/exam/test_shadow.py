"""Chats that live in shadow roots and frames: where visitors type, what sends, and what they read is found there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from motamot.errors import MotamotError
from motamot.exam.browser import opened
from motamot.exam.compare import compare
from motamot.exam.page import Heard, Plan, visit
from tests.exam.support import ANSWER, MARKDOWN, PLAIN, RIGHT, TAKE, Wire, bot, page, writes
from tests.exam.test_page import DONE, LIVE, QUICK, SAYS, _browser, heard, names, refused, text_of, visited

__all__ = ["_browser"]  # a fixture of each test here

TRIMS = TAKE.replace("text += data", "text += data.trim()")


def widget(
    *, take: str = TAKE, show: str = MARKDOWN, launcher: bool = True, enter: bool = True, style: str = ""
) -> str:
    """A chat as a widget has it: an element with an open shadow root, each message in one of its own.

    launcher: the chat is hidden until its button is pressed. enter: Enter sends; else the button alone.
    """
    hidden = "hidden" if launcher else ""
    return f"""<!doctype html><meta charset="utf-8"><title>shop</title><h1>Shop</h1><chat-widget></chat-widget><script>
customElements.define("chat-message", class extends HTMLElement {{
  constructor() {{
    super();
    const sheet = new CSSStyleSheet(), root = this.attachShadow({{mode: "open"}});
    sheet.replaceSync(":host {{ display: block; {style} }}");
    root.adoptedStyleSheets = [sheet];
    root.innerHTML = "<slot></slot>";
  }}
}});
customElements.define("chat-widget", class extends HTMLElement {{
  constructor() {{
    super();
    const root = this.attachShadow({{mode: "open"}});
    root.innerHTML = `<style>section {{ border: 1px solid }}</style>
      <button id="open" type="button" aria-haspopup="dialog" aria-expanded="false">Chat</button>
      <section {hidden}><div id="log"></div>
      <form><textarea></textarea><button>Send</button></form></section>`;
    const section = root.querySelector("section"), question = root.querySelector("textarea");
    root.querySelector("#open").onclick = () => {{ section.hidden = !section.hidden; }};
    root.querySelector("form").onsubmit = (event) => {{
      event.preventDefault();
      this.ask(question.value);
      question.value = "";
    }};
    question.onkeydown = (event) => {{
      if ({str(enter).lower()} && event.key === "Enter") {{
        event.preventDefault();
        root.querySelector("form").requestSubmit();
      }}
    }};
  }}
  async ask(message) {{
    const log = this.shadowRoot.querySelector("#log");
    log.append(Object.assign(document.createElement("div"), {{className: "asked", textContent: message}}));
    const shown = document.createElement("chat-message"), bubble = shown.shadowRoot;
    log.append(shown);
    {show}
    let text = "";
    {take}
    const body = JSON.stringify({{message}});
    const response = await fetch("stream", {{method: "POST", headers: {{"content-type": "application/json"}}, body}});
    const reader = response.body.getReader();
    {RIGHT}
  }}
}});
</script>"""


SLOTTED = "const show = (text) => { shown.textContent = text; };"
"""The message's text stands in the element, and its shadow root shows it through a slot."""


@pytest.mark.parametrize(("launcher", "enter"), [(True, False), (False, True)])
def test_a_right_widget_in_nested_shadow_roots_loses_nothing(launcher: bool, enter: bool) -> None:
    [one], served = heard(LIVE, widget(launcher=launcher, enter=enter))
    got = compare(one, text_of(one))
    assert served.asked == 1
    assert (names(got), got.where) == ([], "chat-message")
    assert got.shown < 2 * len(ANSWER)  # the answer, and not the question with it


def test_each_question_in_a_widget_has_its_own_answer() -> None:
    got, served = heard(LIVE, widget(), replace(SAYS, sends=("one", "two")))
    assert served.asked == 2
    assert [compare(one, text_of(one)).shown < 2 * len(ANSWER) for one in got] == [True, True]
    assert [names(compare(one, text_of(one))) for one in got] == [[], []]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (widget(take=TRIMS), ["page-words-glued", "page-lines-joined"]),
        (widget(show=PLAIN), ["page-lines-joined"]),
        (widget(show=PLAIN, style="white-space: pre-wrap"), []),
        (widget(show=SLOTTED, style="white-space: pre-line"), []),
        (widget(take=TAKE.replace("show(text)", "")), []),
        (widget(take=TAKE.replace("show(text)", "show(text + text)")), ["page-text-doubled"]),
    ],
    ids=["trims", "collapses", "keeps lines", "slot keeps lines", "not shown", "twice"],
)
def test_what_a_widget_does_to_an_answer_has_a_name(html: str, expected: list[str]) -> None:
    [one], _ = heard(QUICK, html)
    got = compare(one, text_of(one))
    assert names(got) == expected
    assert bool(got.where) == ("show(text" in html)


def test_an_answer_that_a_widget_shows_at_its_end_is_not_live() -> None:
    late = TAKE.replace("show(text)", "setTimeout(() => show(text), 2600)")
    wire = Wire([*(writes(f"word{number} ") for number in range(25)), DONE], every=0.1)
    [one], _ = heard(wire, widget(take=late))
    assert names(compare(one, text_of(one))) == ["page-shown-at-once"]


def test_answers_of_a_widget_can_be_named() -> None:
    plan = replace(SAYS, opens="#open", into="textarea", button="form button", answer="chat-message")
    got, _ = heard(QUICK, widget(enter=False), replace(plan, sends=("one", "two")))
    assert [[look.where for look in one.looks] for one in got] == [["chat-message"], ["chat-message"]]
    assert [names(compare(one, text_of(one))) for one in got] == [[], []]


def test_a_shadow_root_that_stands_in_the_html_is_seen() -> None:
    """Declarative: the parser attaches it, and no script."""
    html = page(style="div { margin: 1em }").replace(
        '<main id="log"></main>',
        '<chat-log><template shadowrootmode="open"><style>main { color: red }</style><main id="log"></main></template>'
        "</chat-log>",
    )
    html = html.replace('getElementById("log")', 'querySelector("chat-log").shadowRoot.querySelector("main")')
    [one], _ = heard(LIVE, html)
    got = compare(one, text_of(one))
    assert (names(got), got.where) == ([], "div.answer")


def test_the_last_answer_is_the_last_on_the_page_and_not_the_last_made() -> None:
    html = """<!doctype html><body><chat-log></chat-log><script>
    const log = document.querySelector("chat-log").attachShadow({mode: "open"});
    const made = ["second", "first"].map((text) => {
      const host = document.createElement("div");
      host.attachShadow({mode: "open"}).innerHTML = `<p class="answer">${text}</p>`;
      return host;
    });
    log.append(made[1], made[0]);
    </script>"""

    async def scenario() -> None:
        async with bot(QUICK, html) as served, opened(window=False) as browser:
            context = await browser.new_context()
            await context.add_init_script((resources.files("motamot.exam") / "page.js").read_text("utf-8"))
            shown = await context.new_page()
            await shown.goto(served.url)
            told = await shown.evaluate("__motamotShown.last('.answer')")
            assert [one["text"] for one in told["elements"]] == ["second"]

    asyncio.run(scenario())


IN_A_ROOT = """<site-chat></site-chat><script>
document.querySelector("site-chat").attachShadow({mode: "open"}).innerHTML = `<iframe src='INNER'></iframe>`;
</script>"""


@pytest.mark.parametrize(
    "frame",
    ["<iframe src='INNER'></iframe>", IN_A_ROOT],
    ids=["in the document", "in a shadow root"],
)
@pytest.mark.parametrize(("html", "expected"), [(widget(), []), (widget(show=PLAIN), ["page-lines-joined"])])
def test_a_widget_in_a_frame_of_the_same_site_is_asked_and_read(frame: str, html: str, expected: list[str]) -> None:
    async def run() -> list[Heard]:
        async with (
            bot(QUICK, html) as inner,
            bot(QUICK, f"<!doctype html>{frame.replace('INNER', inner.url)}") as outer,
        ):
            return await visited(outer)

    [one] = asyncio.run(run())
    assert names(compare(one, text_of(one))) == expected


@pytest.mark.parametrize(
    ("html", "plan", "words"),
    [
        (widget(launcher=True).replace("aria-", "data-"), {}, "no place to type in: name it with --into SELECTOR, or"),
        (widget(), {"opens": "#nothing"}, "--open '#nothing' finds nothing"),
        (widget(enter=False).replace("<button>Send", "<button type='button'>x"), {}, "name the button: --button"),
    ],
)
def test_what_is_not_found_in_a_widget_is_said(
    html: str, plan: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words in refused(html, plan, monkeypatch, seconds=3)


def test_a_page_cannot_put_another_reader_in_place_of_the_visitors() -> None:
    lies = "<script>globalThis.__motamotShown = {grown: () => ({elements: [], totals: []})}; delete __motamotShown;"
    [one], _ = heard(QUICK, page().replace("<script>", lies, 1))
    assert compare(one, text_of(one)).where == "div.answer"


def test_plan_without_questions_asks_nothing_in_a_widget() -> None:
    async def run() -> None:
        async with bot(QUICK, widget()) as served:
            plan = Plan(seconds=10)
            await visit(served.url + "/", plan, stop=asyncio.Event(), tell=lambda _: None)

    with pytest.raises(MotamotError, match="asked nothing by itself"):
        asyncio.run(run())
