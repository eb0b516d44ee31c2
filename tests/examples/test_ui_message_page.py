"""The example with `useChat`, built as its first lines say, in Chromium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from motamot.testing import ThreadedScriptedModel, scripted_model
from tests.examples.support import EXAMPLES, asking, booked, example
from tests.node import npm_project
from tests.page.bundles import launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HELD = [{"say": ["We", " leave"]}, {"gate": "more"}, {"say": [" at noon."]}]
CALL = [{"say": "I look."}, {"call": {"name": "departures", "arguments": {"stop": "Harbour"}, "id": "c1"}}]
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> </script><script>document.title='taken'</script> \U0001f68c"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example in it, as after `npm install && npm run build`."""
    folder = tmp_path_factory.mktemp("examples")
    leave = shutil.ignore_patterns("node_modules", "build", "__pycache__", "package-lock.json")
    shutil.copytree(EXAMPLES / "ui_message", folder / "ui_message", ignore=leave)
    npm_project(folder / "ui_message")
    return folder


Opened = Callable[..., "tuple[Page, ThreadedScriptedModel]"]


@pytest.fixture
def bus(browser: Browser, built: Path, tmp_path: Path) -> Iterator[Opened]:
    """The page, and a model that plays scripts."""
    with ExitStack() as stack:

        def start(*scripts: Any) -> tuple[Page, ThreadedScriptedModel]:
            model = stack.enter_context(scripted_model([*scripts]))
            app = stack.enter_context(example("ui_message/app:app", tmp_path, asking(model.url), folder_of_app=built))
            page = stack.enter_context(browser.new_context()).new_page()
            page.set_default_timeout(15_000)
            page.goto(app.url)
            return page, model

        yield start


def ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.press("#question", "Enter")


def talk(page: Page) -> list[str]:
    return page.locator("#talk p").all_text_contents()


def ended(page: Page) -> None:
    page.wait_for_selector("#send")


def test_it_asks_looks_something_up_and_shows_text_as_text(bus: Opened) -> None:
    page, model = bus(CALL, [{"say": "At five past."}], [{"say": HOSTILE}])
    ask(page, "When from the harbour?")
    page.wait_for_selector("text=At five past.")
    ended(page)
    assert talk(page) == ["When from the harbour?", "I look.[departures] \n\nAt five past."]
    ask(page, "Hello")
    page.wait_for_selector("text=onerror")
    ended(page)
    assert talk(page)[-1] == HOSTILE
    assert page.title() == "The bus"
    assert [message["role"] for message in model.requests[2].body["messages"]] == [
        *("system", "user", "assistant", "user")
    ]


def test_a_reload_goes_on_and_stop_then_stops_the_model(bus: Opened, tmp_path: Path) -> None:
    page, model = bus(HELD)
    ask(page, "When?")
    page.wait_for_selector("text=We leave")
    page.reload()
    page.wait_for_selector("text=We leave")
    assert talk(page) == ["When?", "We leave"]
    page.click("#halt")
    assert model.wait_left(0).cancelled
    page.wait_for_selector("text=(stopped)")
    ended(page)
    page.reload()
    ended(page)
    assert talk(page) == ["When?", "We leave (stopped)"]
    assert len(model.requests) == 1
    deadline = time.monotonic() + 5
    while [entry.outcome for entry in booked(tmp_path)] != ["stopped"]:  # booked just behind the answer
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_error_is_none_of_the_answer_and_it_can_be_asked_again(bus: Opened) -> None:
    page, model = bus([{"say": "We"}, {"close": "reset"}], [{"say": "We leave now."}])
    ask(page, "When?")
    page.wait_for_selector("[role=alert]")
    assert "cut" in (page.text_content("[role=alert]") or "")
    page.click("#again")
    page.wait_for_selector("text=We leave now.")
    ended(page)
    assert talk(page) == ["When?", "We leave now."]
    assert not page.locator("[role=alert]").count()
    assert len(model.requests) == 2
