"""The lesson's counting rule, to the letter."""

from __future__ import annotations

import pytest

from motamot.peers.counting import count


@pytest.mark.parametrize(
    ("original", "got", "told"),
    [
        ("a\nb", "a\nb", "exact"),
        ("a\r\nb", "a\nb", "exact"),  # both sides are put to LF first
        ("a\x85b\u2028c\fd", "a\nb\nc\nd", "exact"),
        ("a\nb", "ab", "1 line breaks missing"),  # there is no singular
        ("a\nb", "a", "1 of 2 lines missing, 1 line breaks missing"),
        ("a\nb\n", "b\na\n", "differs"),
        ("a\nb", "a\nb\n", "differs"),
        ("a\nb", "a\nc", "1 of 2 lines missing"),
        ("  a  \n\n b", "a\n\nb", "differs"),  # lines are trimmed
        ("a b\nb", "a b", "1 line breaks missing"),  # a line that stands in another counts as there
        ("a\na", "a", "1 line breaks missing"),  # and one that is there once counts for all its like
        ("\x85a\n\n\x1cb", "a\n\n\n\x1cb", "differs"),  # what .NET trims is trimmed, what it keeps is kept
        ("", "x", "differs"),
        ("x", "", "1 of 1 lines missing"),
        ("x\ny", "(throws) no", "2 of 2 lines missing, 1 line breaks missing"),
    ],
)
def test_it_tells(original: str, got: str, told: str) -> None:
    assert count(original, got).told == told


def test_more_line_breaks_than_before_are_below_zero() -> None:
    assert count("a", "a\n\n").breaks == -2
