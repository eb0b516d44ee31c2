"""assistant-ui's runtime for the AI SDK, with its own transport, in Chromium, before `motamot serve` as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page.bundles import SOURCES, Served, bundled, launched, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PACKAGES = (
    *("@assistant-ui/react@0.15.22", "@assistant-ui/react-ai-sdk@1.4.12"),
    *("@ai-sdk/react@4.0.177", "ai@7.0.173", "react@19.3.1", "react-dom@19.3.1"),
)
ENDLESS = [{"repeat": 2_000, "steps": [{"say": ["word "]}, {"wait": 10}]}]
HELD = [{"say": ["one ", "two "]}, {"gate": "more"}, {"say": ["three"]}]

Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def script() -> str:
    return bundled(SOURCES / "assistant_ui.jsx", *PACKAGES)


@pytest.fixture
def serve(browser: Browser, script: str, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda *scripts: stack.enter_context(served(browser, tmp_path, script, *scripts))


def send(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.click("#send")


def shows(page: Page, *wanted: str) -> None:
    """Wait until the thread is this, and nothing is under way."""
    page.wait_for_function(
        "wanted => !document.querySelector('#stop:enabled') && JSON.stringify("
        "[...document.querySelectorAll('.text')].map(text => text.textContent)) === wanted",
        arg=json.dumps(wanted, separators=(",", ":")),
    )


def told(s: Served, number: int = -1) -> list[str]:
    return [message["content"] for message in s.model.requests[number].body["messages"]]


def test_an_answer_comes_word_by_word(serve: Serve) -> None:
    s = serve(HELD, [{"say": "Oui."}])
    page = s.open()
    send(page, "Hello")
    page.wait_for_selector("text=one two")
    assert page.is_enabled("#stop")
    s.model.release("more")
    shows(page, "Hello", "one two three")
    send(page, "And?")
    shows(page, "Hello", "one two three", "And?", "Oui.")
    assert told(s) == ["Hello", "one two three", "And?"]
    assert not page.locator(".error").count()


def test_cancelling_stops_the_model(serve: Serve) -> None:
    s = serve(ENDLESS, [{"say": "Oui."}])
    page = s.open()
    send(page, "Hello")
    page.wait_for_selector("text=word word")
    page.click("#stop")
    assert s.model.wait_left(0, timeout=1).cancelled
    send(page, "And?")
    page.wait_for_selector("text=Oui.")
    assert told(s)[1].startswith("word word")


def test_a_failure_is_an_error_beside_what_had_come(serve: Serve) -> None:
    s = serve([{"say": "So far"}, {"close": "reset"}], [{"say": "All of it."}])
    page = s.open()
    send(page, "Hello")
    page.wait_for_selector(".error")
    assert page.text_content(".error") == "The connection to the model was cut in the middle of its answer."
    assert page.text_content(".assistant .text") == "So far"
    page.click(".again")
    shows(page, "Hello", "All of it.")
    assert told(s) == ["Hello"]


def test_another_answer_is_a_branch_and_the_model_is_told_the_one_that_is_shown(serve: Serve) -> None:
    s = serve(*([{"say": letter}] for letter in "ABC"))
    page = s.open()
    send(page, "Hello")
    shows(page, "Hello", "A")
    page.click(".again")
    shows(page, "Hello", "B")
    page.click(".previous")
    shows(page, "Hello", "A")
    send(page, "And?")
    shows(page, "Hello", "A", "And?", "C")
    assert [told(s, number) for number in range(3)] == [["Hello"], ["Hello"], ["Hello", "A", "And?"]]


def test_an_edited_question_begins_anew(serve: Serve) -> None:
    s = serve([{"say": "A"}], [{"say": "B"}])
    page = s.open()
    send(page, "Hello")
    shows(page, "Hello", "A")
    page.click(".edit")
    page.fill("#edited", "Good evening")
    page.click("#resend")
    shows(page, "Good evening", "B")
    assert told(s) == ["Good evening"]
