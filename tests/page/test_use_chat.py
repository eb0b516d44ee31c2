"""`useChat` of the AI SDK, with React in Chromium, before `motamot serve` as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page.bundles import SOURCES, Served, bundled, launched, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PACKAGES = ("@ai-sdk/react@4.0.177", "ai@7.0.173", "react@19.3.1", "react-dom@19.3.1")
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]
HELD = [{"say": ["one ", "two "]}, {"gate": "more"}, {"say": ["three"]}]
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> </script><script>document.title='taken'</script>\n \U0001f68c"

Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def script() -> str:
    return bundled(SOURCES / "use_chat.jsx", *PACKAGES)


@pytest.fixture
def serve(browser: Browser, script: str, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda *scripts: stack.enter_context(served(browser, tmp_path, script, *scripts))


def send(page: Page, question: str = "Hello") -> None:
    page.fill("#question", question)
    page.click("#send")


def shows(page: Page, text: str) -> None:
    """Wait until the last answer is this."""
    page.wait_for_function(
        "text => [...document.querySelectorAll('.assistant .text')].at(-1)?.textContent === text", arg=text
    )


def is_in(page: Page, status: str) -> None:
    page.wait_for_function("status => document.querySelector('#status').textContent === status", arg=status)


def texts(page: Page) -> list[str]:
    return page.locator("li .text").all_text_contents()


def told(s: Served, number: int = -1) -> list[str]:
    return [message["content"] for message in s.model.requests[number].body["messages"]]


def test_the_answer_comes_word_by_word_as_text_and_nothing_else(serve: Serve) -> None:
    s = serve(HELD, [{"say": HOSTILE}])
    page = s.open()
    send(page)
    shows(page, "one two ")
    is_in(page, "streaming")
    s.model.release("more")
    shows(page, "one two three")
    is_in(page, "ready")
    assert page.locator("em").all_text_contents() == ["complete"]
    send(page, "And?")
    shows(page, HOSTILE)
    is_in(page, "ready")
    assert page.title() == ""
    assert texts(page) == ["Hello", "one two three", "And?", HOSTILE]
    assert told(s) == ["Hello", "one two three", "And?"]
    assert page.text_content("#error") == ""


def test_stop_stops_the_model(serve: Serve) -> None:
    s = serve(ENDLESS, [{"say": "Oui."}])
    page = s.open()
    send(page)
    page.wait_for_selector("text=word word")
    page.click("#stop")
    assert s.model.wait_left(0, timeout=1).cancelled
    is_in(page, "ready")
    send(page, "And?")
    shows(page, "Oui.")
    assert told(s)[1].startswith("word word")


def test_a_failure_is_an_error_and_can_be_asked_again(serve: Serve) -> None:
    s = serve([{"say": "So far"}, {"close": "reset"}], [{"say": "All of it."}])
    page = s.open()
    send(page)
    is_in(page, "error")
    assert page.text_content("#error") == "The connection to the model was cut in the middle of its answer."
    assert texts(page) == ["Hello", "So far"]
    assert page.locator("em").all_text_contents() == ["failed"]
    page.click("#again")
    shows(page, "All of it.")
    is_in(page, "ready")
    assert texts(page) == ["Hello", "All of it."]
    assert told(s) == ["Hello"]


@pytest.mark.parametrize("button", ["#send", "#again"])
def test_a_double_click_is_one_completion(serve: Serve, button: str) -> None:
    first, scripts = ([[{"say": "Before."}]], [HELD]) if button == "#again" else ([], [HELD])
    s = serve(*first, *scripts)
    page = s.open()
    if first:
        send(page)
        shows(page, "Before.")
        is_in(page, "ready")
    page.dblclick(button)
    shows(page, "one two ")
    s.model.release("more")
    shows(page, "one two three")
    is_in(page, "ready")
    page.wait_for_timeout(300)  # for a second answer, if there were one
    assert page.locator(".assistant").count() == 1
    assert len(s.model.requests) == len(first) + 1
    assert page.text_content("#error") == ""


@pytest.mark.parametrize("keep", [True, False])
def test_a_reload_goes_on_with_the_answer(serve: Serve, keep: bool) -> None:
    """`resume: true` and nothing else. What the page keeps of its messages is its own business."""
    s = serve([{"say": "Before."}], HELD)
    page = s.open(resume=True, keep=keep)
    send(page)
    shows(page, "Before.")
    is_in(page, "ready")
    send(page, "And?")
    shows(page, "one two ")
    for _ in range(3):
        page.reload()
        shows(page, "one two ")
        is_in(page, "streaming")
    s.model.release("more")
    shows(page, "one two three")
    is_in(page, "ready")
    assert texts(page) == (["Hello", "Before.", "And?", "one two three"] if keep else ["one two three"])
    page.reload()
    page.wait_for_timeout(300)
    assert texts(page) == (["Hello", "Before.", "And?", "one two three"] if keep else [])
    assert len(s.model.requests) == 2


def test_another_window_of_the_chat_shows_the_answer_too_and_stops_it(serve: Serve) -> None:
    s = serve(ENDLESS)
    page = s.open(resume=True)
    send(page)
    page.wait_for_selector("text=word word")
    other = s.open(resume=True)
    other.wait_for_selector("text=word word")
    other.click("#halt")
    assert s.model.wait_left(0, timeout=1).cancelled
    for window in (page, other):
        is_in(window, "ready")
        assert window.locator("em").all_text_contents() == ["stopped"]
    assert len(s.model.requests) == 1


def test_the_program_of_the_documentation_runs_as_it_stands(browser: Browser, tmp_path: Path) -> None:
    page_of = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
    [code] = re.findall(r"^```jsx\n(.*?)^```$", page_of, re.MULTILINE | re.DOTALL)
    render = 'import { createRoot } from "react-dom/client"; createRoot(window.root).render(<Chat />);'
    here = code.replace('"http://127.0.0.1:8000/api/ui-message"', "window.settings.api")
    assert here != code
    source = tmp_path / "of_the_page.jsx"
    source.write_text(here + render)
    with served(browser, tmp_path, bundled(source, *PACKAGES), [{"say": "Hello, world."}]) as s:
        page = s.open()
        page.click("text=Ask")
        page.wait_for_selector("text=Hello, world.")
        assert page.locator("p").all_text_contents() == ["Hello", "Hello, world."]


def test_a_page_that_goes_away_stops_the_model(serve: Serve) -> None:
    s = serve(ENDLESS)
    page = s.open()
    send(page)
    page.wait_for_selector("text=word word")
    page.close()
    assert s.model.wait_left(0, timeout=2).cancelled
