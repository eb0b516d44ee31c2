"""The arguments of one tool call: gathered in pieces, and read when the call is whole."""

from __future__ import annotations

import json
import re
from typing import Any

from motamot.model.words import Note, clean

__all__ = ["Arguments", "canonical"]

_BLANK = " \t\r\n"
_SHOWN = 200  # characters of broken arguments in a problem
_MARKS = re.compile(r'["\\{}\[\]]')
_QUOTES = re.compile(r'["\\]')


class Arguments:
    """JSON text that comes in pieces.

    Whether its brackets are whole is followed as it grows, so that many small pieces cost no more than one.
    """

    __slots__ = ("_deepest", "_depth", "_escaped", "_in_string", "_opened", "_parts", "_scanned")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._scanned = 0  # parts that were looked at
        self._depth = 0
        self._deepest = 0
        self._in_string = False
        self._escaped = False
        self._opened = False

    def add(self, piece: str) -> None:
        """The next piece."""
        self._parts.append(piece)

    @property
    def begun(self) -> bool:
        """Whether any piece has come."""
        return bool(self._parts)

    @property
    def raw(self) -> str:
        """All of it, as it came."""
        return "".join(self._parts)

    @property
    def complete(self) -> bool:
        """Whether a bracket was opened, and each one is closed again."""
        for part in self._parts[self._scanned :]:
            self._scan(part)
        self._scanned = len(self._parts)
        return self._opened and self._depth <= 0 and not self._in_string

    def _scan(self, text: str) -> None:
        at = 1 if self._escaped else 0
        self._escaped = False
        while True:
            match = (_QUOTES if self._in_string else _MARKS).search(text, at)
            if match is None:
                return
            mark, at = match.group(), match.end()
            if mark == '"':
                self._in_string = not self._in_string
            elif mark == "\\":
                self._escaped = at >= len(text)
                at += 1
            else:
                self._opened = True
                self._depth += 1 if mark in "{[" else -1
                self._deepest = max(self._deepest, self._depth)

    def decoded(self, note: Note, *, depth: int) -> tuple[str, dict[str, Any] | None, str | None]:
        """The arguments as they go back to the model, decoded, and why they cannot be used (None: they can).

        note:  is told of what was put right or cannot be.
        depth: levels to which they may be nested; what is written back or validated walks down all of them.
        """
        raw = clean(self.raw)
        if raw.strip() in {"", "null"}:  # tool-arguments-empty-string
            return "{}", {}, None
        complete = self.complete
        if self._deepest > depth:
            note("tool-args-invalid-json", "the arguments of a tool call are nested too deep")
            return "{}", None, f"the arguments are nested deeper than {depth} levels"
        try:
            values = _json_texts(raw)
        except ValueError:
            if complete:
                note("tool-args-invalid-json", "the arguments of a tool call are not JSON")
                return "{}", None, f"the arguments are not JSON: {raw[:_SHOWN]}"
            note("tool-args-truncated", "the arguments of a tool call end in the middle")
            return "{}", None, f"the arguments were cut off: {raw[:_SHOWN]}"
        values = _without_repeats(values, note)
        text, value = values[0]
        if len(values) > 1 or not isinstance(value, dict):
            note("tool-args-invalid-json", "the arguments of a tool call are not one JSON object")
            return "{}", None, f"the arguments are not one JSON object: {raw[:_SHOWN]}"
        return text, value, None


def canonical(value: Any) -> str:
    """Equal for equal JSON: Python takes 1 and true for the same."""
    return json.dumps(value, sort_keys=True)


def _without_repeats(values: list[tuple[str, Any]], note: Note) -> list[tuple[str, Any]]:
    if len(values) > 1 and values[0][1] == {}:
        # Proxies from Anthropic's dialect send its empty placeholder first, and the arguments behind it.
        values = values[1:]
        note("tool-args-duplicated", "an empty object stood before the arguments")
    if len(values) > 1 and len({canonical(value) for _, value in values}) == 1:  # tool-arguments-sent-twice
        values = values[:1]
        note("tool-args-duplicated", "the whole arguments were sent more than once")
    return values


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _json_texts(raw: str) -> list[tuple[str, Any]]:
    """The JSON values that stand one after the other in `raw`, each with its text; strings made encodable.

    Raises: ValueError where something else stands there.
    """
    found: list[tuple[str, Any]] = []
    at, end = 0, len(raw.rstrip(_BLANK))
    while at < end:
        while raw[at] in _BLANK:
            at += 1
        value, stop = _DECODER.raw_decode(raw, at)
        text = raw[at:stop]
        if "\\u" in text:
            plain = json.dumps(value, ensure_ascii=False)
            if clean(plain) != plain:  # half a surrogate pair, which no UTF-8 can carry
                text = clean(plain)
                value = json.loads(text)
        found.append((text, value))
        at = stop
    return found
