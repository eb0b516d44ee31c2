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
from motamot.knowledge.article import Block, Page, Unreadable, address, line, passages

__all__ = ["read"]

_FRONT = re.compile(r"\A\ufeff?(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t|\s*([-*+>|]|\d+[.)]|#)")
_IMPORT = re.compile(r"(import|export)\s.*\b(from|default|const)\b")
_ANCHOR = re.compile(r"\s*\{#[^{}]*\}\s*$")
_INLINE = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|<[^<>]{1,300}>")
_TAG = re.compile(
    r"</?(?:a|abbr|b|br|center|details|div|em|figure|font|hr|i|img|kbd|p|picture|source|span|strong|sub|summary|sup|table"
    r"|tbody|td|th|thead|tr|u|video)(?:\s[^<>]{0,1000})?/?>",
    re.IGNORECASE,
)


def read(text: str) -> Page:
    """The article in `text`. Raises: Unreadable for a draft."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    front, notes, body = _frontmatter(text)
    blocks = list(_blocks(_without_comments(body)))
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
    except (yaml.YAMLError, tomllib.TOMLDecodeError, RecursionError, ValueError):
        return {}, ("its frontmatter cannot be read, and is left aside",), body
    if not isinstance(front, dict):
        return ({}, (), body) if front is None else ({}, (), text)  # a rule above text, no frontmatter
    if front.get("draft") is True or front.get("published") is False:
        raise Unreadable("is a draft, as its frontmatter says", fault=False)
    return front, (), body


def _without_comments(text: str) -> str:
    """Comments are no text of the article; an open one hides what follows, as a browser has it."""
    if "<!--" not in text:
        return text
    kept = []
    while (at := text.find("<!--")) >= 0:
        if text.count("`", text.rfind("\n", 0, at) + 1, at) % 2:  # it stands in code, as an example
            kept.append(text[: at + 4])
            text = text[at + 4 :]
            continue
        kept.append(text[:at])
        end = text.find("-->", at)
        text = text[end + 3 :] if end >= 0 else ""
    return "".join([*kept, text])


def _blocks(text: str) -> Iterator[Block]:
    held: list[str] = []
    fence = ""
    for written in text.split("\n"):
        found = _FENCE.match(written)
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
        elif heading := _HEADING.match(written):
            yield from _paragraph(held)
            if name := _plain(heading[2] or ""):
                yield Block(name, len(heading[1]))
        elif held and (under := _UNDERLINE.match(written)) and not _NO_PARAGRAPH.match(held[-1]):
            *before, name = held
            held[:] = before
            yield from _paragraph(held)
            yield Block(_plain(name), 1 if under[1].startswith("=") else 2)
        elif not written.strip():
            yield from _paragraph(held)
        elif not _IMPORT.match(written):
            held.append(written)
    yield from _paragraph(held, code=bool(fence))


def _paragraph(held: list[str], *, code: bool = False) -> Iterator[Block]:
    text = "\n".join(held)
    held.clear()
    if not code:
        text = _TAG.sub("", text)
    if text.strip():
        yield Block(text)


def _plain(text: str) -> str:
    """A heading without its marks."""
    return _ANCHOR.sub("", _INLINE.sub(lambda found: found[1] or "", text)).strip()
