"""The lesson's page in Chromium: one question is one generation, whatever happens to its connection.

A browser connects again three seconds after a stream has ended. Each test waits longer than that, and counts what the
scripted model was asked.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from motamot.testing import ThreadedScriptedModel, scripted_model
from tests.examples.support import App, Wire, asking, booked, example
from tests.need import need
from tests.test_tutorial import follow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HELD = [{"say": ["Bonjour", " à", " bord"]}, {"gate": "more"}, {"say": ", montez."}]
HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\"> </script><script>document.title='taken'</script> &amp; \U0001f68c"
)
RECONNECTS = 3.0
"""Seconds after which Chromium connects again."""

# A page as lessons have it, which knows of no end but `fin`.
BARE = """<!doctype html><meta charset="utf-8"><p id="reponse"></p><script>
window.source = new EventSource("flux");
source.onmessage = (event) => document.getElementById("reponse").append(JSON.parse(event.data).morceau);
source.addEventListener("fin", () => source.close());
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    need(path, "Chromium (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    switches = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    switches += ["--disable-component-update", "--disable-sync"]
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=switches)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.route("**/bare", lambda route: route.fulfill(body=BARE, content_type="text/html"))
        yield page


@pytest.fixture
def lesson(tmp_path: Path) -> Iterator[Callable[[Any], tuple[App, ThreadedScriptedModel]]]:
    """The lesson with a model that plays a script."""
    with ExitStack() as stack:

        def start(script: Any) -> tuple[App, ThreadedScriptedModel]:
            model = stack.enter_context(scripted_model([script, script, script]))
            return stack.enter_context(example("lesson/app:app", tmp_path, asking(model.url))), model

        yield start


def text(page: Page) -> str:
    return page.locator("#reponse").text_content() or ""


def wait_for_text(page: Page, wanted: str) -> None:
    page.wait_for_function("wanted => document.getElementById('reponse').textContent === wanted", arg=wanted)


def wait_for_end(page: Page, words: str) -> None:
    page.wait_for_function("words => document.getElementById('etat').textContent.includes(words)", arg=words)
    assert page.evaluate("source.readyState") == 2


def outlast_reconnection(page: Page) -> None:
    page.wait_for_timeout((RECONNECTS + 1.5) * 1000)


def test_the_answer_is_shown_as_text_and_the_stream_is_closed(lesson: Any, page: Page, tmp_path: Path) -> None:
    app, model = lesson([{"say": HOSTILE, "cut": "utf16"}])
    page.goto(app.url)
    wait_for_end(page, "complète")
    assert text(page) == HOSTILE
    assert page.title() == "Une réponse, mot à mot"
    assert page.locator("#reponse *").count() == 0
    outlast_reconnection(page)
    assert len(model.requests) == 1
    assert [entry.outcome for entry in booked(tmp_path)] == ["complete"]


def test_text_comes_while_the_model_still_writes_and_stop_stops_the_model(lesson: Any, page: Page) -> None:
    app, model = lesson(HELD)
    page.goto(app.url)
    wait_for_text(page, "Bonjour à bord")
    pressed = time.monotonic()
    page.click("#arret")
    left = model.wait_left(0)
    assert left.left_at is not None and left.left_at - pressed < 1
    assert page.text_content("#etat") == "Réponse arrêtée."
    outlast_reconnection(page)
    assert (text(page), len(model.requests)) == ("Bonjour à bord", 1)


def test_a_closed_tab_stops_the_model(lesson: Any, page: Page) -> None:
    app, model = lesson(HELD)
    page.goto(app.url)
    wait_for_text(page, "Bonjour à bord")
    page.close()
    assert model.wait_left(0).cancelled
    assert len(model.requests) == 1


@pytest.mark.parametrize("address", ["/", "/bare"])
def test_a_failure_begins_no_second_generation(lesson: Any, page: Page, address: str) -> None:
    app, model = lesson([{"say": "Bonjour"}, {"close": "reset"}])
    page.goto(app.url + address)
    wait_for_text(page, "Bonjour")
    if address == "/":
        wait_for_end(page, "Échec")
    else:  # it knows of no failure: the browser connects again, and is told that there is nothing more
        page.wait_for_function("source.readyState === 2")
    outlast_reconnection(page)
    assert (text(page), len(model.requests)) == ("Bonjour", 1)


@pytest.mark.parametrize("address", ["/", "/bare"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
@pytest.mark.slow
def test_a_restart_of_the_server_begins_no_second_generation(
    lesson: Any, page: Page, tmp_path: Path, address: str, how: signal.Signals
) -> None:
    app, model = lesson(HELD)
    page.goto(app.url + address)
    wait_for_text(page, "Bonjour à bord")
    page.wait_for_timeout(1_100)  # a killed process loses a second of text at most
    app.end(how)
    model.wait_left(0)
    app.start()
    if address == "/":
        wait_for_end(page, "Échec")
    else:
        page.wait_for_function("source.readyState === 2")
    outlast_reconnection(page)
    assert (text(page), len(model.requests)) == ("Bonjour à bord", 1)
    [entry] = booked(tmp_path)
    assert entry.outcome == "interrupted"
    assert [completion.outcome for completion in entry.completions] == ["interrupted"]


@pytest.mark.parametrize("address", ["/", "/bare"])
def test_a_lost_connection_begins_no_second_generation(lesson: Any, page: Page, tmp_path: Path, address: str) -> None:
    app, model = lesson(HELD)
    wire = Wire(app.port)
    page.goto(wire.url + address)
    wait_for_text(page, "Bonjour à bord")
    wire.cut()
    assert model.wait_left(0).cancelled
    if address == "/":
        wait_for_end(page, "arrêtée")
    else:
        page.wait_for_function("source.readyState === 2")
    outlast_reconnection(page)
    assert (text(page), len(model.requests)) == ("Bonjour à bord", 1)
    assert [entry.outcome for entry in booked(tmp_path)] == ["stopped"]
    wire.close()


def test_a_connection_lost_before_the_first_piece_begins_no_second_generation(lesson: Any, page: Page) -> None:
    app, model = lesson(HELD)
    wire = Wire(app.port)
    wire.swallow(b"GET /flux")
    page.goto(wire.url)
    assert wire.swallowed.wait(10)
    wait_for_end(page, "arrêtée")
    outlast_reconnection(page)
    assert len(model.requests) <= 1
    wire.close()


def test_what_the_server_refuses_is_not_asked_again(lesson: Any, page: Page) -> None:
    app, model = lesson(HELD)
    page.goto(app.url)
    wait_for_text(page, "Bonjour à bord")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("source.close(); window.other = new EventSource('flux?assistant=nobody')")
    page.wait_for_function("other.readyState === 2")
    outlast_reconnection(page)
    assert len(asked) == 1
    assert len(model.requests) == 1


def test_a_recorded_sample_is_shown_as_what_it_is(page: Page, tmp_path: Path) -> None:
    with example("lesson/app:app", tmp_path) as app:
        page.goto(app.url)
        wait_for_end(page, "complète")
        assert text(page).startswith("Bonjour, prenez place")
        assert page.text_content("#marque") == "Exemple enregistré : aucun modèle n’a répondu."
    [entry] = booked(tmp_path)
    assert (entry.outcome, entry.marks) == ("complete", ("recorded",))


@pytest.mark.parametrize(
    ("language", "answer", "mark", "state", "stop", "said"),
    [("en", "answer", "mark", "state", "stop", "complete"), ("fr", "reponse", "marque", "etat", "arreter", "complète")],
)
def test_the_page_of_the_tutorial_shows_its_answer_its_mark_and_its_end(
    page: Page, tmp_path: Path, language: str, answer: str, mark: str, state: str, stop: str, said: str
) -> None:
    follow(language, 8, tmp_path)
    with example("app:app", tmp_path, folder_of_app=tmp_path) as app:
        page.goto(app.url)
        page.wait_for_function(f"document.getElementById('{state}').textContent === '{said}'")
        sample = page.text_content(f"#{answer}") or ""
        assert f'"{sample}"' in (tmp_path / "bus.py").read_text("utf-8")
        assert page.text_content(f"#{mark}") == "recorded"
        # Pressed in the page: the sample takes a third of a second, and a click from here may take longer.
        page.add_init_script(
            f"""const early = setInterval(() => {{
                const answer = document.getElementById("{answer}");
                if (answer === null || answer.textContent.length < 4) return;
                clearInterval(early);
                document.getElementById("{stop}").click();
            }}, 1);"""
        )
        page.reload()
        page.wait_for_function(f"document.getElementById('{answer}').textContent.length > 3")
        page.wait_for_timeout(50)
        shown = page.text_content(f"#{answer}") or ""
        outlast_reconnection(page)
        assert page.text_content(f"#{answer}") == shown != sample
    stopped, complete = booked(tmp_path)
    assert (stopped.outcome, complete.outcome) == ("stopped", "complete")
