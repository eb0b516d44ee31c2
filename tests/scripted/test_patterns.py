"""Regular expressions of scripts mean what they mean in Python, and never take long."""

from __future__ import annotations

import re
import warnings
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.scripted.patterns import PatternError, compiled

PARTS = st.sampled_from(
    [*"ab.^$ ()|*+?-{}", "é", "[ab]", "[^a]", "[]b]", "\\w", "\\d", "\\s", "\\b", "(?:", "{1,2}", "{2}", "{0,}", "\\."]
)


@given(pattern=st.lists(PARTS, max_size=8).map("".join), text=st.text(alphabet="abAÉé1 .-\n{}", max_size=8))
def test_a_pattern_is_found_where_python_finds_it(pattern: str, text: str) -> None:
    try:
        ours = compiled(pattern)
    except PatternError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = re.compile(pattern.replace("$", "\\Z"), re.IGNORECASE)  # here $ is the end of the text alone
        except re.error as error:
            # We allow what Python refuses in two harmless places: a repeated condition, a repeat of a repeat.
            assert "repeat" in str(error)
            return
    assert ours.found_in(text) == bool(theirs.search(text))


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(?:a|a)*b", ".*.*.*.*.*x", "((a?){20}){10}b", "(a|aa|aaa){1,30}b", "(?:a|b|ab)*(?:a|b)*c"]
)
def test_patterns_that_take_python_for_ever_are_quick(pattern: str) -> None:
    begun = perf_counter()
    assert not compiled(pattern).found_in("a" * 100_000)
    assert perf_counter() - begun < 3


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a", "not closed"),
        ("a)", "never opened"),
        ("[a", "not closed"),
        ("*a", "nothing to repeat"),
        ("a{3,2}", "ends before it begins"),
        ("(?=a)", "only (?:"),
        ("(?P<x>a)", "only (?:"),
        ("(?i)a", "only (?:"),
        ("(a)\\1", "not understood"),
        ("\\pL", "not understood"),
        ("[z-a]", "not a set of characters"),
        ("a\\", "nothing follows the backslash"),
        ("a" * 501, "at most 500 characters"),
        ("((a{20}){20}){20}", "too large"),
        ("((((){9999}){9999}){9999}){9999}", "too large"),
        ("(" * 400 + ")" * 400, "at most 500 characters"),
    ],
)
def test_a_bad_pattern_is_refused_with_a_reason(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError, match=re.escape(problem)):
        compiled(pattern)


def test_only_the_end_of_a_long_text_is_looked_at() -> None:
    assert compiled("end$").found_in("x" * 10_000 + "end")
    assert not compiled("^x").found_in("x" + " " * 5000)
    assert compiled("order\\s+#?\\d{4,8}").found_in("Where is my ORDER  #12345?")
