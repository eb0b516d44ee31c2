"""The value that a JSON text begins with, where the text was cut: what was there is kept, and closed. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["mended"]

# Possessive throughout: a string of 50 MB is passed over without a place to come back to for each of its characters.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|"', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HALF_WORD = re.compile(r'[^{}\[\]",:\s]*\s*\Z')
_HALF_MEMBER = re.compile(r'(?:[{,]\s*)?"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*(?::\s*)?\Z', re.DOTALL)
_CLOSER = {"{": "}", "[": "]"}
_LOOKED_BACK = 10_000  # characters: a member's name is shorter


def mended(text: str) -> Any:
    """The value that `text` begins with, as far as it goes; None where it is damaged otherwise than by a cut."""
    open_: list[str] = []
    for found in _TOKEN.finditer(text):
        mark = found[0]
        if mark == '"':
            return _closed(text, open_, found.start())
        if mark in _CLOSER:
            open_.append(mark)
        elif mark in "}]" and (not open_ or _CLOSER[open_.pop()] != mark):
            return None
    return _closed(text, open_, None)


def _closed(text: str, open_: list[str], string: int | None) -> Any:
    """string: where the string begins that does not end."""
    closers = "".join(_CLOSER[opener] for opener in reversed(open_))
    if string is not None and text[:string].rstrip()[-1:] == ":":
        whole = text if text.endswith(("\\\\", '\\"')) else _without_half_escape(text)
        return _loaded(f'{whole}"{closers}')
    if string is not None:
        text = text[:string]
    start = max(0, len(text) - _LOOKED_BACK)
    kept = text[start:]
    word = _HALF_WORD.search(kept)
    if word is not None:
        kept = kept[: word.start()]
    if kept.rstrip().endswith(":"):
        member = _HALF_MEMBER.search(kept)
        kept = kept[: member.start()] if member is not None else kept
        if member is not None and member[0].startswith("{"):
            kept += "{"
    kept = kept.rstrip().removesuffix(",")
    return _loaded(text[:start] + kept + closers)


def _without_half_escape(text: str) -> str:
    tail = text[-6:]
    return text[:-6] + _HALF_ESCAPE.sub("", tail) if len(text) > 6 else text


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
