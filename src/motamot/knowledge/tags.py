"""HTML as a row of tags and texts, in time that grows with its length alone. Pure.

The standard library's parser takes minutes for 100 kB of `<!--` or `<a b=` (measured, Python 3.11), and cannot be
interrupted. Nothing here looks at a character more than a few times. What browsers make of broken tags is done where
text would be lost otherwise (WHATWG HTML, 13.2.5); a tree is not built.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["End", "Start", "attributes", "tokens"]


@dataclass(frozen=True, slots=True)
class Start:
    """name: in small letters. written: its attributes as they stand. empty: it was written as `<name/>`."""

    name: str
    written: str
    empty: bool


@dataclass(frozen=True, slots=True)
class End:
    """name: in small letters."""

    name: str


_NAME = re.compile(r"(/?)([a-zA-Z][^\s/<>]{0,60}+)")
_REST = re.compile(r"[^<>\"']*+(?:(?:\"[^\"]*+\"|'[^']*+')[^<>\"']*+)*+(?:>|(?=<)|\Z)")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++)))?+")
_RAW = ("script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title")
_ENDS = {name: re.compile(rf"</{name}(?=[\s/>]|\Z)", re.IGNORECASE) for name in _RAW}


def tokens(text: str) -> Iterator[Start | End | str]:
    """The tags of `text` and what stands between them, its references (`&eacute;`) resolved; no comments."""
    at = 0
    while at < len(text):
        tag = text.find("<", at)
        if tag < 0:
            tag = len(text)
        if tag > at:
            yield _resolved(text[at:tag])
        if tag == len(text):
            return
        found = _NAME.match(text, tag + 1)
        if found is None:
            after = _after_markup(text, tag)
            if after == tag:
                yield "<"
                after += 1
            at = after
            continue
        rest = _REST.match(text, found.end())
        end = rest.end() if rest else _after(text, ">", found.end())  # a quotation mark that nothing closes
        written = text[found.end() : end].removesuffix(">")
        at = end
        name = found[2].lower()
        if found[1]:
            yield End(name)
            continue
        yield Start(name, written, written.endswith("/"))
        if name in _RAW:
            closing = _ENDS[name].search(text, at)
            if name == "title":
                yield _resolved(text[at : closing.start() if closing else at])
            at = closing.start() if closing else len(text)


def attributes(written: str) -> dict[str, str]:
    """The attributes of a tag, by their names in small letters; the first of a name counts."""
    found: dict[str, str] = {}
    for one in _ATTRIBUTE.finditer(written[:_ATTRIBUTE_CHARACTERS]):
        found.setdefault(one[1].lower(), _resolved(one[2] or one[3] or one[4] or ""))
    return found


_ATTRIBUTE_CHARACTERS = 4_000


def _after_markup(text: str, at: int) -> int:
    """Behind the comment or the like that begins at `at`; `at` where the `<` is only itself."""
    if text.startswith("<!--", at):
        return _after(text, "-->", at + 4)
    if text.startswith(("<!", "<?", "</"), at):
        return _after(text, ">", at)
    return at


def _after(text: str, mark: str, at: int) -> int:
    """Behind the next `mark`, or the end: what is never closed holds the rest, as in a browser."""
    found = text.find(mark, at)
    return found + len(mark) if found >= 0 else len(text)


def _resolved(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:  # a number of more than 4,300 digits
        return text
