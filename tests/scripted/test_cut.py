"""Whatever the cut, the pieces together are the text."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.scripted import cut

TEXTS = st.text() | st.text(alphabet=" \n\tab😀é")


@pytest.mark.parametrize("by", [cut.words, cut.lines, cut.characters, lambda text: cut.into(text, 3)])
@given(text=TEXTS)
def test_pieces_joined_are_the_text_and_none_is_empty(by: Callable[[str], tuple[str, ...]], text: str) -> None:
    pieces = by(text)
    assert "".join(pieces) == text
    assert all(pieces) or not text


@given(text=TEXTS, count=st.integers(1, 9))
def test_into_makes_that_many_pieces_of_nearly_one_length(text: str, count: int) -> None:
    pieces = cut.into(text, count)
    assert len(pieces) == max(1, min(count, len(text)))
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1


@given(text=TEXTS, count=st.integers(1, 9))
def test_every_gives_that_many_characters_but_for_the_last(text: str, count: int) -> None:
    pieces = cut.every(text, count)
    assert "".join(pieces) == text
    assert all(len(piece) == count for piece in pieces[:-1])


@given(text=TEXTS)
def test_utf16_cuts_surrogate_pairs_in_two(text: str) -> None:
    pieces = cut.utf16(text)
    assert len(pieces) == len(text.encode("utf-16-le")) // 2
    assert "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le") == text


def test_words_keep_the_white_space_before_them_and_the_last_one_what_follows() -> None:
    assert cut.words("  two words, \n and more  ") == ("  two", " words,", " \n and", " more  ")
    assert cut.words(" \n ") == (" \n ",)


def test_lines_keep_their_line_feed() -> None:
    assert cut.lines("a\n\nb\r\nc") == ("a\n", "\n", "b\r\n", "c")


def test_white_space_without_end_is_cut_in_linear_time() -> None:
    begun = perf_counter()
    assert len(cut.words("a" + " " * 500_000)) == 1
    assert len(cut.words(" " * 500_000)) == 1
    assert len(cut.lines("\n" * 200_000)) == 200_000
    assert perf_counter() - begun < 2
