"""Bytes to text: in the encoding that a page is in, which is not always the one it says. Pure.

Source: WHATWG Encoding, 4.2 (names) and HTML, "determining the character encoding": a byte order mark first, then the
server's word, then the page's own.
"""

from __future__ import annotations

import codecs
import re

from motamot.knowledge.article import Unreadable

__all__ = ["decode"]

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_DECLARATION = re.compile(rb"\s*<\?xml[^<>]{0,100}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_META_BYTES = 4_096  # the standard looks at 1,024; some pages put scripts before it
# Python has codecs that are no encodings of pages (zlib, idna, unicode_escape): only these are taken.
_TAKEN = re.compile(
    r"utf-8|ascii|cp125\d|cp874|iso8859-\d+|koi8-[ru]|mac-\w+|gb\w+|big5\w*|euc[-_]\w+|shift_jis|iso2022_jp"
)
_LATIN = ("ascii", "iso8859-1", "cp1252")  # which all mean Windows-1252 on the web
_BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BINARY_SHARE = 500  # one such character in so many, and it is no text


def decode(body: bytes, said: str | None = None) -> tuple[str, str | None]:
    """The text of a page, and what was odd about its encoding.

    said: by the server. Raises: Unreadable for what is no text at all.
    """
    text, note = _decoded(body, said)
    odd = len(_BINARY.findall(text[:100_000]))
    if "\x00" in text or odd * _BINARY_SHARE > len(text[:100_000]):
        raise Unreadable("is no text")
    return text, note


def _decoded(body: bytes, said: str | None) -> tuple[str, str | None]:
    for mark, marked in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(marked, "replace"), None
    found = _DECLARATION.match(body[:_META_BYTES]) or _META.search(body[:_META_BYTES])
    label = said or (found[1].decode("ascii") if found else "utf-8")
    encoding = _known(label)
    utf8 = _as_utf8(body)
    if encoding == "utf-8" or encoding is None or (utf8 is not None and not body.isascii()):
        told = f"says that it is in {label}"
        if utf8 is not None:
            right = encoding == "utf-8" or body.isascii()
            return utf8, None if right else f"{told}, and was read as UTF-8"
        return body.decode("cp1252", "replace"), f"{told}, and was read as Windows-1252" if said or found else None
    try:
        return body.decode("cp1252" if encoding in _LATIN else encoding), None
    except UnicodeDecodeError:
        if utf8 is not None:
            return utf8, f"says that it is in {label}, and was read as UTF-8"
        text = body.decode("cp1252" if encoding in _LATIN else encoding, "replace")
        return text, None if encoding in _LATIN else f"holds bytes that are not in {label}"


def _known(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    if name.startswith("utf-16"):
        return "utf-8"  # without a mark it cannot be: the label could be read
    return name if _TAKEN.fullmatch(name) else None


def _as_utf8(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None
