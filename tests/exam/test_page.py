"""A visitor in a real Chromium: what it hears of the wire, and what it sees of the readers that everybody writes."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from motamot.answer import Text
from motamot.errors import MotamotError
from motamot.exam.browser import BrowserMissing, opened
from motamot.exam.compare import Compared, compare
from motamot.exam.page import Heard, Plan, visit
from motamot.protocols import PROTOCOLS
from tests.exam.support import ANSWER, PLAIN, Bot, Wire, bot, page, writes
from tests.need import need

TOKENS = [writes(piece) for piece in re.findall(r"\S+\s*", ANSWER)]
DONE = b"data: [DONE]\n\n"
LIVE = Wire([*TOKENS, DONE], every=0.03)
QUICK = Wire([b"".join(TOKENS) + DONE])
SAYS = Plan(sends=("hello",), seconds=30)

LINE_BY_LINE = """
  const decoder = new TextDecoder();
  for (let read; !(read = await reader.read()).done;) {
    for (const line of decoder.decode(read.value, {stream: true}).split("\\n")) {
      if (line.startsWith("data: ")) take(line.slice(6));
    }
  }
"""
FIRST_LINE_TRIMMED = """
  let rest = "";
  const decoder = new TextDecoder();
  for (let read; !(read = await reader.read()).done;) {
    rest += decoder.decode(read.value, {stream: true});
    const events = rest.split("\\n\\n");
    rest = events.pop();
    for (const event of events) take(event.split("\\n")[0].slice(5).trim());
  }
"""
CUT_CHARACTERS = """
  for (let read; !(read = await reader.read()).done;) {
    for (const event of new TextDecoder().decode(read.value).split("\\n\\n")) take(event.replace(/^data: ?/, ""));
  }
"""
EVERYTHING = "const take = (data) => { if (data !== '[DONE]') { text += data; show(text); } };"


@pytest.fixture(autouse=True)
def _browser() -> None:
    there = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    need(any(map(shutil.which, there)), "Chromium: apt-get install chromium")


async def visited(served: Bot, plan: Plan = SAYS, path: str = "/") -> list[Heard]:
    return await visit(served.url + path, plan, stop=asyncio.Event(), tell=lambda _: None)


def heard(wire: Wire, html: str, plan: Plan = SAYS) -> tuple[list[Heard], Bot]:
    async def run() -> tuple[list[Heard], Bot]:
        async with bot(wire, html) as served:
            return await visited(served, plan), served

    return asyncio.run(run())


def text_of(one: Heard) -> str:
    """The answer as a right reader has it."""
    reader = PROTOCOLS["ga-text"].reader()
    return "".join(event.text for event in reader.feed(one.tape.body) if isinstance(event, Text))


def compared(wire: Wire, html: str, plan: Plan = SAYS) -> Compared:
    [one], _ = heard(wire, html, plan)
    return compare(one, text_of(one))


def refused(html: str, plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, seconds: float) -> str:
    """What is said of what cannot be done on this page, where the visitor looks for it for so long."""
    for module in ("page", "hands"):
        monkeypatch.setattr(f"motamot.exam.{module}.FIND_SECONDS", seconds)
    with pytest.raises(MotamotError) as told:
        heard(QUICK, html, replace(SAYS, **plan))
    return told.value.message


def names(got: Compared) -> list[str]:
    return [finding.id for finding in got.findings]


def test_the_wire_is_heard_to_the_byte_with_its_times() -> None:
    [one], served = heard(LIVE, page())
    assert one.tape.body == b"".join(LIVE.pieces)
    assert (one.tape.status, one.tape.end, one.tape.header("content-type")) == (200, "closed", "text/event-stream")
    assert one.tape.request is not None
    assert (one.tape.request.method, one.tape.request.body) == ("POST", b'{"message":"hello"}')
    times = [piece.at for piece in one.tape.pieces if piece.at is not None]
    assert times == sorted(times)
    assert len(times) > 5
    assert 0.5 * 0.03 * len(TOKENS) < times[-1] - times[0]
    assert (served.asked, one.asked) == (1, 1)


def test_a_right_page_loses_nothing() -> None:
    got = compared(LIVE, page())
    assert (names(got), got.where) == ([], "div.answer")


def test_plain_text_that_keeps_its_line_breaks_loses_nothing() -> None:
    assert names(compared(QUICK, page(show=PLAIN, style=".answer { white-space: pre-wrap }"))) == []


@pytest.mark.parametrize(
    ("wire", "html", "expected"),
    [
        (QUICK, page(show=PLAIN), ["page-lines-joined"]),
        (Wire([writes(ANSWER), DONE]), page(read=LINE_BY_LINE), ["page-lines-joined"]),
        (Wire([writes(ANSWER), DONE]), page(read=FIRST_LINE_TRIMMED), ["page-text-missing"]),
        (LIVE, page(read=FIRST_LINE_TRIMMED, show=PLAIN), ["page-words-glued", "page-lines-joined"]),
        (LIVE, page(after="show(text + text);"), ["page-text-doubled"]),
        (LIVE, page(take=EVERYTHING.replace("text += data", "text += data + data")), ["page-text-doubled"]),
        (LIVE, page(read="(await new Response(response.body.pipeThrough(new TransformStream())).text());"), []),
        (QUICK, page(take=EVERYTHING.replace("data !== '[DONE]'", "true")), ["page-wire-shown"]),
        (QUICK, page(after="show(text + undefined);"), ["page-placeholder-shown"]),
        (
            Wire([writes("a word that is na"), b"data: \xc3", b"\xafve among others\n\n", DONE], every=0.2),
            page(read=CUT_CHARACTERS, take=EVERYTHING),
            ["page-text-missing", "page-broken-characters"],
        ),
        (Wire([writes('{"error":"No model."}')]), page(take=EVERYTHING), ["page-error-shown"]),
        (Wire([writes('{"error":"No model."}')]), page(), []),
    ],
    ids=[
        "white space collapsed",
        "line by line",
        "first line, trimmed",
        "tokens trimmed",
        "shown twice",
        "each piece shown twice",
        "not shown at all",
        "end mark shown",
        "undefined",
        "characters cut",
        "error shown",
        "error not shown",
    ],
)
def test_what_a_page_does_to_an_answer_has_a_name(wire: Wire, html: str, expected: list[str]) -> None:
    assert names(compared(wire, html)) == expected


def test_a_page_that_waits_for_the_end_shows_all_at_once() -> None:
    html = page(read="", take="", after="").replace(
        "const reader = response.body.getReader();",
        'text = (await response.text()).replace(/data: ?\\[DONE\\]/, "").replace(/^data: ?/gm, "");'
        ' show(text.replaceAll("\\n\\n", ""));',
    )
    wire = Wire([*(writes(f"word{number} ") for number in range(20)), DONE], every=0.1)
    [finding] = compared(wire, html).findings
    assert finding.id == "page-shown-at-once"


def test_each_question_has_its_own_answer() -> None:
    got, served = heard(LIVE, page(), replace(SAYS, sends=("one", "two")))
    assert served.asked == 2
    assert [one.tape.request and one.tape.request.body for one in got] == [b'{"message":"one"}', b'{"message":"two"}']
    assert [names(compare(one, text_of(one))) for one in got] == [[], []]


def test_a_page_that_asks_twice_pays_twice() -> None:
    twice = "fetch('stream', {method: 'POST', body: JSON.stringify({message})});"
    headers = 'headers: {"content-type": "application/json"}, '
    got = compared(QUICK, page(before=twice).replace(headers, ""))
    assert names(got) == ["page-asked-twice"]


class TestEventSource:
    HTML = """<!doctype html><body><p id="text"></p><script>
    const source = new EventSource("stream");
    const text = document.querySelector("#text");
    source.onmessage = ({data}) => { if (data === "[DONE]") { END } else text.append(data); };
    </script>"""

    def test_one_that_closes_at_the_end_asks_once(self) -> None:
        [one], served = heard(LIVE, self.HTML.replace("END", "source.close();"), Plan(seconds=30))
        assert (served.asked, one.asked) == (1, 1)
        assert one.tape.end in ("left", "closed")  # whoever is first
        assert one.tape.body == b"".join(LIVE.pieces)

    def test_one_that_does_not_comes_back_and_is_paid_again(self) -> None:
        [one], served = heard(QUICK, self.HTML.replace("END", ""), Plan(seconds=10))
        assert served.asked == one.asked
        assert one.asked >= 2
        assert "page-asked-twice" in names(compare(one, text_of(one)))


def test_answers_that_come_on_a_stream_that_stays_open_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("motamot.exam.page.QUIET_SECONDS", 3)
    html = page(
        read="",
        before='text = ""; window.take = take;'
        'window.news ??= Object.assign(new EventSource("news"), {onmessage: (event) => window.take(event.data)});'
        "await new Promise((go) => setTimeout(go, 300));",
    ).replace('fetch("stream"', 'fetch("push"')
    got, served = heard(LIVE, html, replace(SAYS, sends=("one", "two")))
    assert [path for _, path, _ in served.requests if path in ("/news", "/push")] == ["/news", "/push", "/push"]
    assert [one.tape.body for one in got] == [b"".join(LIVE.pieces)] * 2
    assert [names(compare(one, text_of(one))) for one in got] == [[], []]


def test_a_widget_in_a_shadow_root_is_seen() -> None:
    html = page().replace(
        'const bubble = Object.assign(document.createElement("div"), {className: "answer"});',
        'const host = document.createElement("chat-widget"), root = host.attachShadow({mode: "closed"});'
        'const bubble = Object.assign(document.createElement("div"), {className: "answer"});'
        "root.append(bubble); log.append(host);",
    )
    html = html.replace("  log.append(bubble);\n", "")
    got = compared(LIVE, html)
    assert (names(got), got.where) == ([], "div.answer")


def test_a_widget_in_a_frame_of_another_site_is_heard_and_seen() -> None:
    async def run() -> list[Heard]:
        asks = page().replace("</script>", "setTimeout(() => ask('hi'), 1500);</script>")
        async with bot(LIVE, asks) as inner:
            frame = f'<!doctype html><iframe src="{inner.url.replace("127.0.0.1", "localhost")}/"></iframe>'
            async with bot(QUICK, frame) as outer:
                return await visited(outer, Plan(seconds=30))

    [one] = asyncio.run(run())
    assert one.tape.body == b"".join(LIVE.pieces)
    got = compare(one, text_of(one))
    assert (names(got), got.where) == ([], "div.answer")


@pytest.mark.parametrize("named", [{}, {"into": "#question"}])
def test_a_widget_in_a_frame_of_another_site_can_be_asked(named: dict[str, Any]) -> None:
    async def run() -> list[Heard]:
        async with bot(QUICK, page()) as inner:
            frame = f'<!doctype html><iframe src="{inner.url.replace("127.0.0.1", "localhost")}/"></iframe>'
            async with bot(QUICK, frame) as outer:
                return await visited(outer, replace(SAYS, **named))

    [one] = asyncio.run(run())
    assert one.tape.body == b"".join(QUICK.pieces)
    assert names(compare(one, text_of(one))) == []


def test_the_place_to_type_the_button_and_the_answer_can_be_named() -> None:
    html = page().replace("<main", "<input id='search'><main")
    keys = html[html.index('question.addEventListener("keydown"') : html.index("async function ask")]
    click = 'document.querySelector("button").onclick = (event) => { event.preventDefault(); ask(question.value); };'
    html = html.replace(keys, click)
    [one], _ = heard(QUICK, html, replace(SAYS, into="#question", button="button", answer="main .answer"))
    assert [look.where for look in one.looks] == ["div.answer"]
    assert names(compare(one, text_of(one))) == []


@pytest.mark.parametrize(
    ("html", "plan", "words"),
    [
        ("<input><textarea></textarea>", {}, "2 places to type in: name it with --into"),
        ("<p>nothing</p>", {}, "no place to type in"),
        ("<textarea></textarea>", {"into": "#nowhere"}, "--into '#nowhere' finds nothing"),
        ("<textarea></textarea>", {"into": "###"}, "--into '###' is no selector"),
        ("<textarea></textarea>", {"into": "//["}, "--into '//[' is no selector"),
        ("<textarea></textarea>", {}, "name the button: --button SELECTOR"),
        ("<p>nothing</p>", {"sends": ()}, "asked nothing by itself"),
        (page(), {"answer": "###"}, "--answer '###' is no selector"),
    ],
)
def test_what_the_visitor_cannot_do_is_said(
    html: str, plan: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words in refused(html, plan, monkeypatch, seconds=2)


def test_a_page_that_cannot_be_opened_says_why() -> None:
    async def run(path: str) -> None:
        async with bot(QUICK) as served:
            await visited(served, path=path)

    with pytest.raises(MotamotError, match="answered 404"):
        asyncio.run(run("/nowhere"))
    with pytest.raises(MotamotError, match="cannot be opened") as refused:
        asyncio.run(visit("http://127.0.0.1:1/", SAYS, stop=asyncio.Event(), tell=lambda _: None))
    assert "ERR_" in str(refused.value.detail)


def test_whoever_stops_keeps_what_was_heard() -> None:
    async def run() -> tuple[list[Heard], float]:
        stop = asyncio.Event()
        wire = Wire([*TOKENS, DONE], every=1.0)
        async with bot(wire, page()) as served:
            going = asyncio.create_task(visit(served.url + "/", SAYS, stop=stop, tell=lambda _: None))
            async with asyncio.timeout(20):
                while not served.asked:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(2.5)
            stop.set()
            begun = time.monotonic()
            return await going, time.monotonic() - begun

    [one], took = asyncio.run(run())
    assert b"".join(TOKENS).startswith(one.tape.body)
    assert len(one.tape.pieces) >= 2
    assert took < 5


def test_whoever_chats_by_hand_is_heard_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions, as a hand puts them: nobody says here when they come. The window itself needs a screen."""
    monkeypatch.setattr("motamot.exam.page.opened", lambda *, window: opened(window=False))
    html = page().replace("</script>", "ask('one'); setTimeout(() => ask('two'), 6000);</script>")

    async def run() -> list[Heard]:
        stop = asyncio.Event()

        def tell(words: str) -> None:
            if words == "heard 2 answers":
                stop.set()

        async with bot(LIVE, html) as served:
            return await visit(served.url + "/", Plan(window=True), stop=stop, tell=tell)

    got = asyncio.run(run())
    assert [one.tape.request and one.tape.request.body for one in got] == [b'{"message":"one"}', b'{"message":"two"}']
    assert [names(compare(one, text_of(one))) for one in got] == [[], []]


def test_without_playwright_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    with pytest.raises(BrowserMissing, match=r"pip install 'motamot\[page\]'"):
        asyncio.run(visit("http://127.0.0.1:1/", SAYS, stop=asyncio.Event(), tell=lambda _: None))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is always a screen")
def test_without_a_screen_no_window_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BrowserMissing, match="no screen"):
        asyncio.run(visit("http://127.0.0.1:1/", Plan(window=True), stop=asyncio.Event(), tell=lambda _: None))
