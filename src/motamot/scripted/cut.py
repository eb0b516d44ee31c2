"""Cutting a text into the pieces a model would send. Joined, the pieces are the text (as UTF-16 for `utf16`)."""

from __future__ import annotations

import re

__all__ = ["characters", "every", "into", "lines", "offsets", "utf16", "words"]

_WORD = re.compile(r"\s*\S+(?:\s+\Z)?|\s+\Z")
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


def words(text: str) -> tuple[str, ...]:
    """As tokens usually come: each word with the white space before it, the last one also with what follows."""
    return tuple(_WORD.findall(text))


def lines(text: str) -> tuple[str, ...]:
    """Each line with its LF."""
    return tuple(_LINE.findall(text))


def characters(text: str) -> tuple[str, ...]:
    """One code point at a time."""
    return tuple(text)


def utf16(text: str) -> tuple[str, ...]:
    """One UTF-16 code unit at a time: a character beyond U+FFFF becomes two pieces, each half of a surrogate pair."""
    data = text.encode("utf-16-le", "surrogatepass")
    return tuple(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))


def every(text: str, count: int) -> tuple[str, ...]:
    """`count` code points at a time."""
    return tuple(text[at : at + count] for at in range(0, len(text), count))


def into(text: str, count: int) -> tuple[str, ...]:
    """Into `count` pieces that differ by one code point at most; a text of fewer gives fewer pieces."""
    count = max(1, min(count, len(text)))
    return offsets(text, tuple(len(text) * n // count for n in range(1, count)))


def offsets(text: str, at: tuple[int, ...]) -> tuple[str, ...]:
    """At these code points, which ascend and lie inside the text."""
    ends = (*at, len(text))
    return tuple(text[start:end] for start, end in zip((0, *at), ends, strict=True))
