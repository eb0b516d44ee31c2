"""Regular expressions of scripts, bounded: Python's matcher needs exponential time for some, and cannot be stopped."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

__all__ = ["compiled", "found"]

PATTERN_CHARACTERS = 200
PATTERN_REPEATS = 3  # each one multiplies the time by up to the length of the text
TEXT_CHARACTERS = 250  # the end of the question: 3 repeats over so much take a second at the very worst


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str] | str:
    """The pattern ready for use, or a sentence that says why it is refused."""
    if len(pattern) > PATTERN_CHARACTERS:
        return f"a regular expression has at most {PATTERN_CHARACTERS} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ready = re.compile(pattern, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        return f"is not a regular expression: {error}"
    return _refusal(pattern) or ready


def found(pattern: str, text: str) -> bool:
    """Whether a pattern that `compiled` accepted is in the last characters of the text."""
    ready = compiled(pattern)
    return not isinstance(ready, str) and ready.search(text[-TEXT_CHARACTERS:]) is not None


def _refusal(pattern: str) -> str | None:
    """Why a pattern may take too long. A scan of its characters: classes and escapes are one character each."""
    repeats = 0
    groups: list[bool] = []  # for each open group: it holds a repeat or an alternative
    closed = False  # the item just read is a group that does
    at = 0
    while at < len(pattern):
        char = pattern[at]
        was_risky, closed = closed, False
        if char == "\\":
            if pattern[at + 1 : at + 2].isdigit() and pattern[at + 1] != "0":
                return "a regular expression may not refer back to a group here"
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        elif char == "(":
            if pattern.startswith(("(?P=", "(?(", "(?#"), at):
                return "a regular expression may not refer back to a group here"
            groups.append(False)
            at += 2 if pattern.startswith("(?", at) else 0
            at = max(at, pattern.index(">", at)) if pattern.startswith("P<", at) else at
        elif char == ")":
            closed = groups.pop() if groups else False
            if closed and groups:
                groups[-1] = True
        elif char == "|" and groups:
            groups[-1] = True
        elif char in "*+?" or (char == "{" and re.match(r"\{[0-9]*,?[0-9]*\}", pattern[at:])):
            if was_risky and char != "?":
                return "a regular expression may not repeat a group that holds a repeat or an alternative"
            repeats += 1
            if groups:
                groups[-1] = True
            if char == "{":
                at = pattern.index("}", at)
            if pattern[at + 1 : at + 2] in ("?", "+"):
                at += 1
        at += 1
    if repeats > PATTERN_REPEATS:
        return f"a regular expression has at most {PATTERN_REPEATS} repeats (* + ? or braces) here"
    return None


def _class_end(pattern: str, at: int) -> int:
    """The position of the bracket that closes the class opened at `at`."""
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end
