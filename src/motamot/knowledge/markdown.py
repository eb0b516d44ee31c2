"""Articles in Markdown: their frontmatter, their headings, and their text as it is written. Pure.

The text stays Markdown: a model reads it well, and nothing is lost of tables, code and links.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

from motamot.knowledge import bounds
from motamot.knowledge.article import Block, Page, Unreadable, address, in_time, line, passages

__all__ = ["read"]

_FRONT = re.compile(r"\A\ufeff?(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_CLOSING = re.compile(r"(?:(?<=[ \t])|^)#+$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t|\s*([-*+>|]|\d+[.)]|#)")
_IMPORT = re.compile(r"(import|export)\s.*\b(from|default|const)\b")
_ANCHOR = re.compile(r"\s*\{#[^{}]*\}\s*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_SIGNS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|<[^<>]{1,300}>")
_COMMENT = re.compile(r"`[^`]*`|<!--(.*?)(-->|$)")
_OFTEN = 1_024  # blocks between two looks at the clock
_TAG = re.compile(
    r"</?(?:a|abbr|b|br|center|details|div|em|figure|font|hr|i|img|kbd|p|picture|source|span|strong|sub|summary|sup|table"
    r"|tbody|td|th|thead|tr|u|video)(?:\s[^<>]{0,1000})?/?>",
    re.IGNORECASE,
)


def read(text: str) -> Page:
    """The article in `text`. Raises: Unreadable for a draft, or where it takes more than `PAGE_CPU_SECONDS`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    front, notes, body = _frontmatter(text)
    blocks = list(in_time(_blocks(body), _OFTEN))
    first = next((block.text for block in blocks if block.level == 1), "")
    title = front.get("title") if isinstance(front.get("title"), str) else None
    title = line(title or first or next((block.text for block in blocks if block.level), ""), bounds.TITLE_CHARACTERS)
    url = next((found for name in ("url", "canonical_url", "permalink") if (found := address(front.get(name)))), None)
    return Page(title=title, url=url, passages=passages(blocks, line(first, bounds.HEADING_CHARACTERS)), notes=notes)


def _frontmatter(text: str) -> tuple[dict[str, Any], tuple[str, ...], str]:
    found = _FRONT.match(text[: bounds.FRONTMATTER_BYTES])
    if found is None:
        return {}, (), text
    body = text[found.end() :]
    try:
        front = tomllib.loads(found[2]) if found[1] == "+++" else yaml.safe_load(found[2])
    # What does not fit its tag (`!!bool x`, `!!timestamp x`) comes out of PyYAML as whatever its code ran into.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, TypeError):
        return {}, ("its frontmatter cannot be read, and is left aside",), body
    if not isinstance(front, dict):
        return ({}, (), body) if front is None else ({}, (), text)  # a rule above text, no frontmatter
    if front.get("draft") is True or front.get("published") is False:
        raise Unreadable("is a draft, as its frontmatter says", fault=False)
    return front, (), body


def _blocks(text: str) -> Iterator[Block]:
    held: list[str] = []
    fence = ""
    hidden = False  # in a comment
    for written in text.split("\n"):
        found = None if hidden else _FENCE.match(written)
        if fence:
            held.append(written)
            if found and found[1].startswith(fence) and written.strip() == found[1]:
                fence = ""
                yield from _paragraph(held, code=True)
            continue
        if found:
            yield from _paragraph(held)
            fence = found[1]
            held.append(written)
            continue
        shown, hidden = _without_comments(written, hidden=hidden)
        if heading := _HEADING.match(shown):
            yield from _paragraph(held)
            if name := _plain(_CLOSING.sub("", shown[heading.end() :].strip())):
                yield Block(name, len(heading[1]))
        elif held and (under := _UNDERLINE.match(shown)) and not _NO_PARAGRAPH.match(held[-1]):
            name = _plain(held.pop())
            yield from _paragraph(held)
            yield Block(name, 1 if under[1].startswith("=") else 2)
        elif not shown.strip():
            yield from _paragraph(held)
        elif not _IMPORT.match(shown):
            held.append(shown)
    yield from _paragraph(held, code=bool(fence))


def _without_comments(written: str, *, hidden: bool) -> tuple[str, bool]:
    """A line without what is in comments, and whether the last of them goes on; one in code is an example."""
    if hidden:
        _, closed, written = written.partition("-->")
        if not closed:
            return "", True
    if "<!--" not in written:
        return written, False
    opened = False

    def kept(found: re.Match[str]) -> str:
        nonlocal opened
        opened = found[2] == ""
        return found[0] if found[2] is None else ""

    return _COMMENT.sub(kept, written), opened


def _paragraph(held: list[str], *, code: bool = False) -> Iterator[Block]:
    text = "\n".join(held)
    held.clear()
    if not code:
        text = _TAG.sub("", text)
    if text.strip():
        yield Block(text)


def _plain(text: str) -> str:
    """A heading without its marks."""
    text = _LINK.sub(lambda found: found[1], text[:_HEADING_CHARACTERS])
    return _ANCHOR.sub("", _SIGNS.sub("", text)).strip()


_HEADING_CHARACTERS = 1_000
