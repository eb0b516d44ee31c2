"""The value that a JSON text begins with, where the text was cut: what was there is kept, and closed. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["mended"]

# Possessive throughout: a string of 50 MB is passed over without a place to come back to for each of its characters.
_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|"', re.DOTALL)
_HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_CLOSER = {"{": "}", "[": "]"}


def mended(text: str) -> Any:
    """The value that `text` begins with, as far as it goes; None where it is damaged otherwise than by a cut.

    A string that is cut is kept up to there; a member's name, a number or a word that is cut is left out.
    """
    open_: list[str] = []
    whole = 0  # up to here the text is whole once what is open has been closed
    is_value = True
    for found in _MARK.finditer(text):
        mark = found[0]
        if mark in _CLOSER:
            open_.append(mark)
            whole, is_value = found.end(), mark == "["
        elif mark in ("}", "]"):
            if not open_ or _CLOSER[open_.pop()] != mark:
                return None
            whole = found.end()
        elif mark == ",":
            is_value = bool(open_) and open_[-1] == "["
        elif mark == ":":
            is_value = True
        elif mark == '"':
            return _closed(_without_half_escape(text) + '"' if is_value else text[:whole], open_)
        elif is_value and (mark[0] == '"' or found.end() < len(text)):
            whole = found.end()
    return _closed(text[:whole], open_)


def _without_half_escape(text: str) -> str:
    half = _HALF_ESCAPE.search(text, max(0, len(text) - 1000))
    return text if half is None else text[: half.start(1)]


def _closed(text: str, open_: list[str]) -> Any:
    try:
        return json.loads(text + "".join(_CLOSER[opener] for opener in reversed(open_)))
    except (ValueError, RecursionError):
        return None
