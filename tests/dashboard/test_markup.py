"""What makes the pages: strings become text, and nothing else."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.server import dashboard
from motamot.server.dashboard.english import ENGLISH
from motamot.server.dashboard.french import FRENCH
from motamot.server.dashboard.languages import language_of
from motamot.server.dashboard.markup import Html, bdi, el, join, written
from motamot.server.dashboard.words import Words

_LANGUAGES = ("english.py", "french.py")


class _Read(HTMLParser):
    """What a browser's parser makes of it: text, and elements with attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(markup)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


MARKS = st.sampled_from("<>&\"'/=;!-[]\x00\x1b\u202e")
HOSTILE = st.text(st.characters(exclude_categories=["Cs"]) | MARKS, max_size=40)
RUN = ["javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:x", "\x01javascript:x", "a:b"]
STAND = ["", "?a=b:c", "#x", "conversations?a=b%3Ac", "../dashboard", "https://x.example/a:b", "HTTP://x.example"]
WRITING = "\u05d0\u200e \u06a9\u200c \U0001f469\u200d\U0001f4bb"  # Hebrew, Persian, somebody at a computer


@given(HOSTILE, HOSTILE)
def test_any_text_stands_in_the_page_as_it_is_and_any_value_in_its_attribute(text: str, value: str) -> None:
    read = _Read(str(el("p", text, title=value)))
    assert read.text == text
    assert read.found == [("p", {"title": value})]


@given(HOSTILE)
def test_what_a_stranger_wrote_makes_no_element_but_the_marks_of_what_cannot_be_seen(text: str) -> None:
    read = _Read(str(bdi(text)))
    assert {tag for tag, _ in read.found} <= {"bdi", "span"}
    assert not any(character in read.text for character in "\x00\x1b\u202e")


def test_controls_directions_and_zero_widths_are_shown_by_number_and_what_writing_needs_stays() -> None:
    told = str(join(written(f"a\u202eb\x1b[2J\u200b\ufeff\U000e0041 tab\tline\n {WRITING}")))
    for sign in ("U+202E", "U+001B", "U+200B", "U+FEFF", "U+E0041"):
        assert f'<span class="sign">{sign}</span>' in told
    assert told.endswith(f" tab\tline\n {WRITING}")
    assert str(join(written("\x00" * 5_000))) == '<span class="sign">U+0000 ×5000</span>'


def test_a_long_text_says_how_much_is_left_out() -> None:
    assert str(join(written("a" * 1_500, 100))) == "a" * 100 + '<span class="sign"> … +1,400</span>'


@pytest.mark.parametrize("address", [*RUN, "\\\\host", "//host"])
def test_no_address_runs_anything(address: str) -> None:
    with pytest.raises(ValueError, match="relative address"):
        el("a", "x", href=address)


@pytest.mark.parametrize("address", STAND)
def test_addresses_of_pages_stand(address: str) -> None:
    assert _Read(str(el("a", "x", href=address))).found == [("a", {"href": address})]


@pytest.mark.parametrize("name", ["style", "onclick", "onerror", "a b", "a>", ""])
def test_no_attribute_is_a_script_or_a_style(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute"):
        el("p", **{name: "x"})


def test_markup_is_no_string_and_a_string_no_markup() -> None:
    assert not isinstance(el("b"), str)
    assert str(el("p", str(el("b", "x")))) == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert str(el("p", Html("<b>x</b>"), None, 7, ["a", ["<"]])) == "<p><b>x</b>7a&lt;</p>"


# Words


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("fr", "fr"),
        ("fr-CA, en;q=0.9", "fr"),
        ("en, fr;q=0.9", "en"),
        ("en;q=0.1, fr;q=0.2", "fr"),
        ("de, fr;q=0.01", "fr"),
        ("fr;q=0", "en"),
        ("fr;q=nan", "en"),
        ("fr;q=inf", "en"),
        ("fr;q=x, ,;;,=", "en"),
        ("*", "en"),
        ("FR", "fr"),
    ],
)
def test_the_language_is_the_one_that_is_wanted_most(accepted: str, language: str) -> None:
    assert language_of(accepted).language == language


def test_numbers_money_and_times_are_written_as_the_language_writes_them() -> None:
    assert ENGLISH.count(1234567) == "1,234,567" and FRENCH.count(1234567) == "1\u202f234\u202f567"
    assert ENGLISH.money_of({"USD": 0.006406}) == "0.006406\u00a0USD"
    assert FRENCH.money_of({"EUR": 1234.5, "USD": 2}) == "1\u202f234,50\u00a0EUR + 2,00\u00a0USD"
    told = [ENGLISH.seconds(value) for value in (0, 0.00025, 0.0999, 0.25, 59.9, 59.96, 61, 3_725)]
    assert [one.replace("\u00a0", " ") for one in told] == [
        "0 s",
        "0.25 ms",
        "99.9 ms",
        "0.25 s",
        "59.9 s",
        "1 min 0 s",
        "1 min 1 s",
        "1 h 2 min",
    ]
    assert ENGLISH.moment(0) == "1970-01-01 00:00:00" == ENGLISH.moment(1e30)


def test_every_word_is_said_somewhere() -> None:
    """A name in `Words` that no page uses is a promise that no page keeps."""
    folder = Path(dashboard.__file__).parent
    code = "".join(file.read_text("utf-8") for file in folder.glob("*.py") if file.name not in _LANGUAGES)
    for field in dataclasses.fields(Words):
        assert re.search(rf"\b(words|self)\.{field.name}\b", code), field.name
