"""What became of a text on its way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from motamot.findings.difference import PLACES, QUOTE, Difference, Part, difference

LIST = "Chords:\n\n- **Am** goes first.\n- **F** goes second.\n- **C** goes third.\n\nThat is all of them.\n"
LINES = LIST.splitlines(keepends=True)
KINDS = ("glued", "lost", "doubled", "reordered", "added", "spacing")


def parts(differs: Difference) -> dict[str, tuple[int, int]]:
    """Places and characters of each kind there is."""
    return {kind: (part.times, part.characters) for kind in KINDS if (part := getattr(differs, kind))}


def test_equal_texts_are_exact() -> None:
    differs = difference(LIST, LIST)
    assert (differs.exact, differs.told, parts(differs)) == (True, "exact", {})


@pytest.mark.parametrize(
    ("original", "got", "expected", "told"),
    [
        (LIST, LIST.replace(".\n-", ".-"), {"glued": (2, 2)}, "2 line ends glued"),
        ("a\n\nb", "a b", {"glued": (1, 1)}, "1 line end glued"),
        ("a\n\nb", "a\nb", {"spacing": (1, 1)}, "white space changed in 1 place"),
        ("a\n", "a", {"spacing": (1, 1)}, "white space changed in 1 place"),
        ("a\r\nb\r\n", "a\nb\n", {"spacing": (2, 2)}, "white space changed in 2 places"),
        ("One. Two.", "One.Two.", {"spacing": (1, 1)}, "white space changed in 1 place"),
        ("def f():\n    return 1", "def f():\n return 1", {"spacing": (1, 3)}, "white space changed in 1 place"),
        (LIST, LIST.replace(LINES[3], ""), {"lost": (1, 20)}, "20 characters lost in 1 place"),
        (LIST, LIST[:50], {"lost": (1, 39)}, "39 characters lost in 1 place"),
        ("x", "", {"lost": (1, 1)}, "1 character lost in 1 place"),
        (LIST, LIST + LIST, {"doubled": (1, 92)}, "92 characters doubled in 1 place"),
        ("ha", "haha", {"doubled": (1, 2)}, "2 characters doubled in 1 place"),
        (LIST, LIST.replace(LINES[3], LINES[3] * 2), {"doubled": (1, 20)}, "20 characters doubled in 1 place"),
        (
            LIST,
            "".join([*LINES[:2], *LINES[3:5], LINES[2], *LINES[5:]]),
            {"reordered": (1, 20)},
            "20 characters moved in 1 place",
        ),
        (LIST, "".join(reversed(LINES)), {"reordered": (1, 66)}, "66 characters moved in 1 place"),
        (LIST, LIST.replace("- **F**", "data: - **F**"), {"added": (1, 5)}, "5 characters added in 1 place"),
        ("caf\u00e9 au lait", "caf\ufffd\ufffd au lait", {"lost": (1, 1), "added": (1, 2)}, None),
        ("", "x", {"added": (1, 1)}, "1 character added in 1 place"),
        ("a\n", "a\n\n", {"spacing": (1, 1)}, None),
    ],
)
def test_it_tells_what_became_of_it(
    original: str, got: str, expected: dict[str, tuple[int, int]], told: str | None
) -> None:
    differs = difference(original, got)
    assert parts(differs) == expected
    assert told is None or differs.told == told
    assert differs.whole
    assert differs.line_breaks == original.count("\n") - got.count("\n")


def test_a_line_that_is_lost_also_glues_what_stands_around_it() -> None:
    differs = difference("Over:\n\n- Am is one\n- F is another", "Over:- F is another")
    assert (differs.glued.times, differs.lost.places[0].original) == (1, "- Am is one")
    assert differs.glued.places[0].got == "Over:- F is another"


def test_several_things_at_once_are_told_apart() -> None:
    got = LIST.replace(".\n- **F**", ".- **F**").replace(LINES[4], "").replace("That is", "That is\ufffd")
    assert difference(LIST, got).told == (
        "1 line end glued, 19 characters lost in 1 place, 1 character added in 1 place, white space changed in 1 place"
    )


def test_answers_so_far_in_each_event_are_doubled_text() -> None:
    so_far = "".join("".join(LINES[: end + 1]) for end in range(len(LINES)))
    differs = difference(LIST, so_far)
    assert differs.doubled.characters > 230
    assert not (differs.lost or differs.added or differs.glued)


def test_places_are_where_the_texts_differ_and_quotes_are_short() -> None:
    differs = difference("a" * 500 + "\n" + "b" * 500, "a" * 500 + "b" * 500)
    [place] = differs.glued.places
    assert (place.at, place.got_at, place.original, place.got) == (
        500,
        500,
        "a" * 24 + "\n" + "b" * 24,
        "a" * 24 + "b" * 24,
    )
    lost = difference("x " * 400 + "end", "end").lost.places[0]
    assert len(lost.original) == QUOTE
    many = difference("a\n" * 100, "a" * 100).glued
    assert (many.times, len(many.places)) == (99, PLACES)


def test_a_part_is_false_where_nothing_is() -> None:
    assert not Part()
    assert Part(times=1)


HAZARDS = st.text(alphabet=st.sampled_from("ab. !\n\r\t-*é🙂\u2028\ud800"), max_size=60)


@given(HAZARDS, HAZARDS)
@example("\n", "")
@example(" a", "a ")
def test_exactly_equal_texts_are_exact_whatever_they_hold(original: str, got: str) -> None:
    differs = difference(original, got)
    assert differs.exact == (original == got)
    assert differs.exact == (not parts(differs))


@given(HAZARDS, st.data())
def test_of_what_only_lost_white_space_no_text_is_lost(original: str, data: st.DataObject) -> None:
    got = "".join(letter for letter in original if not letter.isspace() or data.draw(st.booleans()))
    differs = difference(original, got)
    assert not (differs.lost or differs.added or differs.doubled or differs.reordered)


@given(st.lists(st.text("abc", min_size=9, max_size=12), min_size=2, max_size=8, unique=True), st.data())
def test_of_lines_that_only_changed_their_order_no_text_is_lost(lines: list[str], data: st.DataObject) -> None:
    differs = difference("\n".join(lines), "\n".join(data.draw(st.permutations(lines))))
    assert not (differs.lost or differs.added or differs.doubled)


def _lines(count: int) -> list[str]:
    return [f"line number {number} here\n" for number in range(count)]


def _prose() -> str:
    rng = random.Random(1)
    return " ".join(f"w{rng.randrange(5000)}" + "." * (at % 12 == 0) + "\n" * (at % 60 == 0) for at in range(250_000))


LARGE: dict[str, Callable[[], tuple[str, str]]] = {
    "sentences glued": lambda: ((text := _prose()), text.replace(". ", ".").replace("\n", "")),
    "no blanks left": lambda: ((text := _prose()), "".join(text.split())),
    "unrelated": lambda: ((text := _prose()), text[::-1]),
    "one word": lambda: ("a" * 1_500_000, "a" * 700_000 + "b" + "a" * 400_000),
    "repeated words": lambda: ("ha " * 300_000 + "x" + "ha " * 100_000, "ho " * 400_000),
    "lines in reverse": lambda: ("".join(_lines(50_000)), "".join(reversed(_lines(50_000)))),
    "lines shuffled": lambda: (
        "".join(_lines(50_000)),
        "".join(random.Random(1).sample(_lines(50_000), 50_000)),
    ),
    "nothing of it": lambda: ("".join(_lines(50_000)), "x" * 1_500_000),
    "all so far": lambda: ("".join(_lines(100)), "".join("".join(_lines(at)) for at in range(100)) * 15),
    "short lines": lambda: (
        "".join(f"{at}z\n" for at in range(120_000)),
        "".join(f"{at}z\nq{at}\n" for at in range(60_000)),
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_texts_take_a_second_or_two_whatever_they_hold(name: str) -> None:
    original, got = LARGE[name]()
    began = time.process_time()
    differs = difference(original, got)
    assert time.process_time() - began < 8
    assert not differs.exact


def test_what_is_beyond_the_bound_is_not_compared_and_that_is_told() -> None:
    differs = difference("a" * 5_000_000, "a" * 5_000_001)
    assert not differs.whole
