"""JavaScript as readers in a page use it: decoding text, trimming, and JSON, to the letter where a stream can show it.

Sources: WHATWG Encoding (TextDecoder), ECMAScript (String.prototype.trim, JSON.parse, ToString).
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

__all__ = [
    "BLANKS",
    "Blocks",
    "NotJson",
    "TextDecoder",
    "Undefined",
    "joined",
    "member",
    "parse",
    "shown",
    "trim",
    "truthy",
]

BLANKS = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What `trim` takes away: with U+FEFF, which .NET keeps, and without U+0085, which .NET takes away."""


_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """JSON.parse threw a SyntaxError. Engines word it differently: its message here is nobody's."""


class Undefined:
    """The value of a member that is not there."""


class TextDecoder:
    """`new TextDecoder()` fed with `{stream: true}`: UTF-8, one byte-order mark dropped, bad bytes as U+FFFD.

    None of the readers here flushes it, so a character that the end of the body cuts is gone.
    """

    __slots__ = ("_decoder", "_started")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._started = False

    def decode(self, data: bytes) -> str:
        """The text that these bytes complete."""
        text = self._decoder.decode(data)
        pending = self._decoder.getstate()[0]
        if len(pending) == 2 and pending[0] == 0xED and pending[1] >= 0xA0:  # Python waits for a whole surrogate
            self._decoder.reset()
            text += "\ufffd\ufffd"
        if text and not self._started:
            self._started = True
            return text.removeprefix("\ufeff")
        return text


class Blocks:
    """A buffer that is split at LF LF: the way most readers find events. Linear however small the reads are."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[str] = []

    def feed(self, text: str) -> list[str]:
        """The blocks that `text` completes, without the LF LF."""
        last = self._parts[-1][-1:] if self._parts else ""
        if not text:
            return []
        self._parts.append(text)
        if "\n\n" not in text and not (last == "\n" and text[0] == "\n"):
            return []
        *blocks, rest = "".join(self._parts).split("\n\n")
        self._parts = [rest] if rest else []
        return blocks

    @property
    def rest(self) -> str:
        """What no LF LF has ended yet."""
        return "".join(self._parts)


def decoded(reads: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Each read's number, and its text."""
    decoder = TextDecoder()
    for number, data in enumerate(reads):
        yield number, decoder.decode(data)


def trim(text: str) -> str:
    """String.prototype.trim."""
    return text.strip(BLANKS)


def parse(text: str) -> Any:
    """JSON.parse: numbers are doubles. Raises: NotJson.

    What nests deeper than Python can follow gives an empty object: no reader here looks below the second level.
    """
    try:
        return json.loads(text, parse_int=float, parse_constant=_refused)
    except RecursionError:
        return {}
    except ValueError as error:
        raise NotJson("SyntaxError: not JSON") from error


def member(value: Any, name: str) -> Any:
    """`value.name`. Raises: TypeError for null, as an engine does."""
    if value is None:
        raise TypeError(f"Cannot read properties of null (reading '{name}')")
    return value.get(name, Undefined) if isinstance(value, dict) else Undefined


def truthy(value: Any) -> bool:
    """What `if (value)` says."""
    if value is Undefined or value is None or value != value:
        return False
    return True if isinstance(value, dict | list) else bool(value)


def shown(value: Any) -> str:
    """`String(value)` of what JSON can give."""
    if isinstance(value, str):
        return value
    if value is Undefined:
        return "undefined"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return ",".join("" if item is None else shown(item) for item in value)
    if isinstance(value, dict):
        return "[object Object]"
    return _number(value)


def joined(text: str) -> str:
    """`text` with surrogate pairs that came in two pieces put together, as UTF-16 strings do by themselves."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _number(value: float) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    digits, mark, exponent = repr(value).partition("e")
    return f"{digits.removesuffix('.0')}e{int(exponent):+d}" if mark else digits


def _refused(word: str) -> NoReturn:
    raise NotJson(f"{word} is no JSON")
