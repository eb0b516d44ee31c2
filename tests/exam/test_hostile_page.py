"""What no page can do to a visitor in a browser: hold it up, fill the disk, hide its answer behind other things."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from motamot.errors import MotamotError
from motamot.exam.compare import compare
from tests.exam.support import page
from tests.exam.test_page import LIVE, SAYS, _browser, heard, names, text_of

__all__ = ["_browser"]  # a fixture of each test here

BRIEF = replace(SAYS, seconds=15)


def does(script: str) -> str:
    """A right page with a script of its own before all others."""
    return page().replace("<script>", f"<script>{script}</script><script>", 1)


@pytest.mark.parametrize(
    "html",
    [
        does("alert(1); confirm(2); prompt(3); addEventListener('beforeunload', (event) => event.preventDefault());"),
        does("if (!opener) for (let n = 0; n < 12; n++) window.open('/');"),
        does(
            "setInterval(() => { const link = document.createElement('a'); link.download = 'file';"
            "link.href = URL.createObjectURL(new Blob(['x'.repeat(1e6)])); link.click(); }, 20);"
        ),
        does("setInterval(() => fetch('/push', {method: 'POST', body: 'x'}), 100);"),
        does("for (let n = 0; n < 100; n++) addEventListener('load', () => document.body.append("
             "document.createElement('iframe')));"),
        page().replace("<main", "<img src='/stream'><main"),
        page(after="location.href = 'mailto:somebody@example.org';"),
        page().replace("<script>", "<script>navigator.serviceWorker.register('/worker.js');</script><script>", 1),
        does("Object.freeze(Element.prototype); globalThis.__motamotShown = null;"),
    ],
    ids=["dialogs", "windows", "downloads", "requests", "frames", "endless image", "mail", "worker", "frozen"],
)  # fmt: skip
def test_an_answer_is_read_whatever_its_page_does_besides(html: str) -> None:
    got, _ = heard(LIVE, html, BRIEF)
    told = [compare(one, text_of(one)) for one in got]
    assert [(names(one), one.where) for one in told] == [([], "div.answer")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("html", "words"),
    [
        (does("while (true) alert('x');"), "; it showed "),
        (page().replace("<title>", "<meta http-equiv='refresh' content='0'><title>"), "; it went elsewhere "),
        (does("while (true);"), "cannot be opened"),
        (page(before="while (true);"), "nothing could be typed on the page"),
    ],
    ids=["endless dialogs", "endless moves", "computes at once", "computes when asked"],
)
def test_what_a_page_does_instead_of_answering_is_said_in_bounded_time(html: str, words: str) -> None:
    began = time.monotonic()
    with pytest.raises(MotamotError) as told:
        heard(LIVE, html, BRIEF)
    assert words in told.value.message
    assert time.monotonic() - began < 45


@pytest.mark.slow
def test_a_page_that_computes_for_ever_behind_its_answer_is_left_and_not_judged() -> None:
    began = time.monotonic()
    [one], _ = heard(LIVE, page(after="setTimeout(() => { while (true); }, 100);"), BRIEF)
    told = compare(one, text_of(one))
    assert told.findings == () and "did not respond" in told.reasons[0]
    assert time.monotonic() - began < 45
