"""Is a value of a script what it should be: each check gives it, or raises ScriptError with its place."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from motamot.scripted import bounds
from motamot.scripted.steps import CallDialect, FailHow, How, UsagePlace
from motamot.scripted.values import Place

__all__ = [
    "choice",
    "data",
    "duration",
    "fields",
    "flag",
    "is_name",
    "items",
    "mapping",
    "milliseconds",
    "shown",
    "text",
    "whole",
]

_NAME = re.compile(r"\w+(?:[-.]\w+)*")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s)")
E = TypeVar("E", How, CallDialect, UsagePlace, FailHow)


def is_name(text: str) -> bool:
    return len(text) <= bounds.NAME_CHARACTERS and _NAME.fullmatch(text) is not None


def duration(value: Any, place: Place) -> float:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        seconds = float(match[1]) / (1000 if match[2] == "ms" else 1)
        if seconds <= bounds.WAIT_SECONDS:
            return seconds
    if isinstance(value, int | float) and not isinstance(value, bool):
        return milliseconds(value, place)
    raise place.error(f'expected milliseconds, "250ms" or "1.5s", an hour at most; got {shown(value)}')


def milliseconds(value: Any, place: Place) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= bounds.WAIT_SECONDS * 1000:
        return value / 1000
    raise place.error(f"expected milliseconds, an hour at most; got {shown(value)}")


def data(value: Any, place: Place) -> bytes:
    return text(value, place, "text").encode()


def text(value: Any, place: Place, what: str, *, whole_characters: bool = True) -> str:
    if not isinstance(value, str):
        hint = " (put it in quotes)" if isinstance(value, bool | int | float) or value is None else ""
        raise place.error(f"expected {what}; got {shown(value)}{hint}")
    # YAML reads "\ud83d\ude00" as two halves: they are one character.
    text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if whole_characters and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise place.error("holds half a surrogate pair, which has no bytes in UTF-8") from error
    return text


def whole(value: Any, place: Place, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise place.error(f"expected a whole number from {least} to {most}; got {shown(value)}")


def flag(value: Any, place: Place) -> bool:
    if isinstance(value, bool):
        return value
    raise place.error(f"expected true or false; got {shown(value)}")


def choice(value: Any, place: Place, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        raise place.error(f"expected one of {', '.join(kind)}; got {shown(value)}") from None


def items(value: Any, place: Place, what: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise place.error(f"expected {what}; got {shown(value)}")


def mapping(value: Any, place: Place, what: str) -> dict[str, Any]:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    raise place.error(f"expected {what}; got {shown(value)}")


def fields(value: Any, place: Place, keys: set[str], what: str) -> dict[str, Any]:
    fields = mapping(value, place, what)
    for key in fields:
        if key not in keys:
            raise place.at(key).error(f'does not know the key "{key}" (expected {", ".join(sorted(keys))})')
    return fields


def shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and abs(value) > 10**18:
        return "a very large number"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
