"""The example with AG-UI's own client, built as its first lines say, in Chromium."""

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
from tests.need import need
from tests.node import npm_project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHOOSE = [{"say": "One moment."}, {"call": {"name": "choose_stop", "arguments": {"stop": "Harbour"}, "id": "c1"}}]
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> </script><script>document.title='taken'</script> \U0001f68c"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    need(path, "Chromium (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    switches = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=switches)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example in it, as after `npm install && npm run build`."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(
        EXAMPLES / "ag_ui", folder / "ag_ui", ignore=shutil.ignore_patterns("node_modules", "build", "__pycache__")
    )
    npm_project(folder / "ag_ui")
    return folder


Opened = Callable[..., "tuple[Page, ThreadedScriptedModel]"]


@pytest.fixture
def bus(browser: Browser, built: Path, tmp_path: Path) -> Iterator[Opened]:
    """The page, and a model that plays scripts."""
    with ExitStack() as stack:

        def start(*scripts: Any) -> tuple[Page, ThreadedScriptedModel]:
            model = stack.enter_context(scripted_model([*scripts]))
            app = stack.enter_context(example("ag_ui/app:app", tmp_path, asking(model.url), folder_of_app=built))
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


def test_the_model_chooses_in_the_page_s_list_and_goes_on(bus: Opened) -> None:
    page, model = bus(CHOOSE, [{"say": "The harbour it is."}], [{"say": "You are welcome."}])
    ask(page, "To the harbour, please.")
    page.wait_for_selector("text=The harbour it is.")
    assert page.input_value("#stop") == "Harbour"
    assert talk(page) == ["To the harbour, please.", "One moment.", "The harbour it is."]
    told = model.requests[1].body["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool"]
    assert told[1]["content"] == "The stop that is chosen in the page\nHarbour\n\nTo the harbour, please."
    assert told[3]["content"] == "Harbour is chosen."
    page.wait_for_selector("#send:enabled")
    ask(page, "Thank you.")
    page.wait_for_selector("text=You are welcome.")
    assert len(model.requests) == 3


def test_stopping_stops_the_model(bus: Opened, tmp_path: Path) -> None:
    page, model = bus([{"say": "We leave"}, {"gate": "never"}])
    ask(page, "When?")
    page.wait_for_selector("text=We leave")
    page.click("#halt")
    assert model.wait_left(0).cancelled
    page.wait_for_selector("text=(stopped)")
    page.wait_for_selector("#send:enabled")
    assert len(model.requests) == 1
    deadline = time.monotonic() + 5
    while [entry.outcome for entry in booked(tmp_path)] != ["stopped"]:  # booked just behind the answer
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_answer_is_text_and_an_error_is_none(bus: Opened) -> None:
    page, _ = bus([{"say": HOSTILE}], [{"say": "We"}, {"close": "reset"}])
    ask(page, "Hello")
    page.wait_for_selector("#send:enabled")
    page.wait_for_selector(".answer")
    assert talk(page)[-1] == HOSTILE
    assert page.title() == "The bus"
    ask(page, "Hello?")
    page.wait_for_selector(".note")
    assert page.locator(".answer").all_text_contents()[-1] == "We"
    assert "cut" in page.locator(".note").all_text_contents()[-1]
