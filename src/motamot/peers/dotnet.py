"""What .NET's strings, regular expressions and JSON writer do, to the letter where an answer can show it.

Sources: Char.IsWhiteSpace and String.ReplaceLineEndings (learn.microsoft.com), the character class `\\s` of .NET's
regular expressions (`[\\f\\n\\r\\t\\v\\x85\\p{Z}]`), and JavaScriptEncoder.Default of System.Text.Json.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["BLANKS", "blank", "json_text", "replace_line_endings", "trim", "utf8"]

BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""White space: with U+0085, which JavaScript's trim keeps, and without U+FEFF, which that takes away.

Python's `\\s` and `str.strip` would take U+001C to U+001F as well.
"""

_LINE_ENDS = re.compile("\r\n|[\r\n\f\x85\u2028\u2029]")
_ESCAPED = re.compile("[\"&'+<>`\x7f]")


def trim(text: str) -> str:
    """String.Trim()."""
    return text.strip(BLANKS)


def blank(text: str) -> bool:
    """String.IsNullOrWhiteSpace."""
    return not text.strip(BLANKS)


def utf8(text: str) -> bytes:
    """Encoding.UTF8.GetBytes: a surrogate without its other half becomes U+FFFD."""
    return _whole(text).encode()


def replace_line_endings(text: str) -> str:
    """ReplaceLineEndings("\\n"): CRLF, CR, LF, NEL, LS, PS and FF, but not VT, become LF."""
    return _LINE_ENDS.sub("\n", text)


def json_text(value: Any) -> str:
    """`value` as System.Text.Json writes it by default.

    Compact; every character outside ASCII as `\\uXXXX` in upper case, and so the quote, `&`, `'`, `+`, `<`, `>`, the
    backtick and DEL; a surrogate without its other half as `\\uFFFD`.
    """
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_string(name)}:{json_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value)


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _string(text: str) -> str:
    inside = json.dumps(_whole(text))[1:-1].replace('\\"', "\\u0022")
    upper = re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), inside.replace("\\\\", "\0"))
    return '"' + _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04X}", upper).replace("\0", "\\\\") + '"'
