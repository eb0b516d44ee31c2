"""An article as it is read: its title, its address, and its text in passages, each under its headings. Pure."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from motamot.knowledge import bounds

__all__ = ["Article", "Block", "Page", "Passage", "Unreadable", "address", "clean", "in_time", "line", "passages"]

T = TypeVar("T")


class Unreadable(Exception):
    """Why an article is not read, as a sentence goes on: `it …`. fault: something is wrong; else it is to be so."""

    def __init__(self, why: str, *, fault: bool = True) -> None:
        super().__init__(why)
        self.why = why
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a page in reading order: a heading of level 1 to 6, or (level 0) a paragraph, a list item, code."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """headings: the path to it, ` › ` between, without the article's own title; empty at its beginning."""

    headings: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one file or one address holds. url: as the page itself says; title: "" where it has none."""

    title: str = ""
    url: str | None = None
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()  # what was odd about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """A page in its place.

    key:    what it is known by: `docs/booking.md`, or its address. Its number stays with it.
    section: the folders above it, `/` between. version: what it was read from, to see whether it has changed.
    etag, modified: as the site named that version, "" where it did not.
    """

    key: str
    title: str
    url: str | None
    section: str
    passages: tuple[Passage, ...]
    version: str
    etag: str = ""
    modified: str = ""

    @property
    def digest(self) -> str:
        """Of what a reader gets of it."""
        told = (self.title, self.url, self.section, [(one.headings, one.text) for one in self.passages])
        return hashlib.sha256(repr(told).encode("utf-8", "replace")).hexdigest()

    @property
    def text_digest(self) -> str:
        """Of its title and text alone: the same page at two addresses."""
        told = (self.title, [one.text for one in self.passages])
        return hashlib.sha256(repr(told).encode("utf-8", "replace")).hexdigest()


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    """`text` without what nobody sees: controls, marks that turn its direction, halves of characters."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def line(text: str, most: int) -> str:
    """`text` as one line of at most `most` characters, an ellipsis where it was cut."""
    one = _BLANKS.sub(" ", clean(text)).strip()
    return one if len(one) <= most else one[: most - 1].rstrip() + "…"


def address(url: object) -> str | None:
    """An absolute http address, or None for anything else."""
    if not isinstance(url, str) or len(url) > bounds.ADDRESS_CHARACTERS or not url.isprintable() or " " in url:
        return None
    try:  # `port` raises, too
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.username is None and parts.port != 0
    except ValueError:
        return None
    return url if usable else None


def in_time(parts: Iterable[T], every: int) -> Iterator[T]:
    """`parts` as they come, with a look at the clock behind each `every` of them.

    Raises: Unreadable where what is done with them takes more than `PAGE_CPU_SECONDS`.
    """
    until = time.thread_time() + bounds.PAGE_CPU_SECONDS
    for number, part in enumerate(parts):
        yield part
        if number % every == 0 and time.thread_time() > until:
            raise Unreadable(f"takes more than {bounds.PAGE_CPU_SECONDS:g} seconds to take apart")


def passages(blocks: Iterable[Block], title: str) -> tuple[Passage, ...]:
    """The blocks put together by heading, each section in passages of about `PASSAGE_CHARACTERS`."""
    found: list[Passage] = []
    path: list[tuple[int, str]] = []
    held: list[str] = []

    def close() -> None:
        headings = " › ".join(text for _, text in path if text != title)
        found.extend(Passage(headings, text) for text in _filled(held))
        held.clear()

    for block in blocks:
        if block.level == 0:
            held.append(block.text)
            continue
        close()
        path = [(level, text) for level, text in path if level < block.level]
        path.append((block.level, line(block.text, bounds.HEADING_CHARACTERS)))
    close()
    return tuple(found)


def _filled(blocks: Sequence[str]) -> Iterator[str]:
    """Texts of at most `PASSAGE_CHARACTERS`, cut between blocks where that can be."""
    text = ""
    for block in blocks:
        for piece in _pieces(clean(block).strip("\n")):
            if not piece.strip():
                continue
            between = "\n" if _belong(text.rpartition("\n")[2], piece) else "\n\n"
            if text and len(text) + len(between) + len(piece) > bounds.PASSAGE_CHARACTERS:
                yield text
                text = ""
            text = f"{text}{between}{piece}" if text else piece
    if text:
        yield text


def _belong(above: str, below: str) -> bool:
    """Items of a list, or rows of a table."""
    return (above.startswith("- ") and below.startswith("- ")) or (" | " in above and " | " in below)


def _pieces(block: str) -> Iterator[str]:
    """A block that is too long for a passage, cut at a line, else a sentence, else a word, else anywhere."""
    most = bounds.PASSAGE_CHARACTERS
    while len(block) > most:
        at = next((at for mark in ("\n", ". ", " ") if (at := block.rfind(mark, most // 2, most)) > 0), most - 1) + 1
        yield block[:at].rstrip()
        block = block[at:]
    yield block
