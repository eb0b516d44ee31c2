"""JSON as this room reads and writes it: a stranger's request, a stream's data, one line of data.

Requests go through the standard library, whose hooks see duplicate keys and non-numbers; streams go through
msgspec, which is faster and refuses a cut surrogate pair, so that such data is read again the tolerant way.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import msgspec

from motamot.answer import SurrogateJoiner
from motamot.errors import InvalidRequest
from motamot.limits import Limits

__all__ = ["encodable", "encode_line", "loads", "one_line", "plain", "request_object"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_DEPTH = 64  # what a trace or a tool's arguments may nest before the rest is left out
_PLAIN_VALUES = 100_000  # lists and objects in it
_CONTAINERS = 150_000  # lists and objects in a request: a megabyte of them would stop all streams for 0.2 s


def one_line(data: bytes) -> bytes:
    """JSON in UTF-8 whose text no reader takes for several lines: U+2028, U+2029 and U+0085 as escapes.

    The standard ends a line only at CR and LF, but `str.splitlines` and httpx's `iter_lines` also end one at these
    three (the control characters they cut at besides are always escaped in JSON).
    """
    if data.isascii():
        return data
    if 0xE2 in data and (0xA8 in data or 0xA9 in data):  # a byte looked up costs 24 ns, a string of bytes 120
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if 0xC2 in data and 0x85 in data:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    return data


def encode_line(value: Any) -> bytes:
    """`value` as JSON on one line, whatever it holds; what JSON has no word for is written as `plain` says."""
    try:
        return one_line(_encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return one_line(_encode(plain(value)))


def encodable(text: str) -> str:
    """`text` with every surrogate that has no partner as U+FFFD, so that it can be written as UTF-8."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    joiner = SurrogateJoiner()
    return joiner.feed(text) + joiner.close()


def plain(value: Any) -> Any:
    """`value` made of nothing but what JSON can carry.

    Other keys and objects become their text, values that are not numbers become null, orphan surrogates U+FFFD; what
    is nested more than 64 deep, or comes after 100,000 lists and objects (one may hold itself), becomes null: side
    information never breaks the stream that carries it.
    """
    return _plain(value, _PLAIN_DEPTH, iter(range(_PLAIN_VALUES)))


def _plain(value: Any, depth: int, room: Iterator[int]) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth == 0 or next(room, None) is None:
        return None
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        value = ({value.__struct_config__.tag_field: tag} if tag is not None else {}) | {
            name: getattr(value, name) for name in value.__struct_fields__
        }
    if isinstance(value, Mapping):
        return {encodable(str(key)): _plain(item, depth - 1, room) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1, room) for item in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()  # as msgspec writes them
    return encodable(str(value))


def loads(data: str) -> Any:
    """The JSON value of a stream's data; strings may hold a cut surrogate pair, which msgspec refuses.

    Raises ValueError for anything else that is not JSON.
    """
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("the data is nested too deep") from None


def request_object(body: bytes | Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """The JSON object a client sent, checked as a whole: keys once, numbers finite, depth bounded.

    body:   the request's bytes (UTF-8, a byte-order mark is dropped), or an object already decoded.
    Texts in it can be encoded: an orphan surrogate is U+FFFD.
    Raises: InvalidRequest, saying what was found and where.
    """
    value: Any = _decoded(body) if isinstance(body, bytes) else body
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"The body must be a JSON object, not {kind(value)}.")
    cleaned: dict[str, Any] = _checked(value, (), limits.json_depth, limits.json_depth)
    return cleaned


def kind(value: Any) -> str:
    """What a JSON value is, in a sentence: `a string`, `an object`, ….  Its content is never repeated."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for types, word in _KINDS:
        if isinstance(value, types):
            return word
    return "something else"


_KINDS: tuple[tuple[Any, str], ...] = (
    (str, "a string"),
    ((int, float), "a number"),
    (Mapping, "an object"),
    ((list, tuple), "a list"),
)


def _decoded(body: bytes) -> Any:
    if len(body) > _CONTAINERS and body.count(b"[") + body.count(b"{") > _CONTAINERS:
        raise InvalidRequest("The body holds too many lists and objects.", limit=_CONTAINERS)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8: byte {error.start} cannot be read.") from None
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_not_a_number, parse_float=_finite, parse_int=_integer
        )
    except RecursionError:
        raise InvalidRequest("The body is nested too deep.") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidRequest(f"The body is not JSON: {error.msg} at {place}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):  # two readers of it would see two different requests
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidRequest("A field is given twice.", field=shown(twice))
    return members


def _not_a_number(word: str) -> NoReturn:
    raise InvalidRequest(f"{word} is not a JSON number.")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidRequest("A number is too large.")
    return number


def _integer(digits: str) -> int:
    if len(digits) > 400:  # longer than any finite double; Python's own bound is 4300 digits
        raise InvalidRequest("A number is too large.")
    return int(digits)


def _checked(value: Any, where: tuple[str | int, ...], depth: int, limit: int) -> Any:
    """`where` is a path that is only put into words when something is wrong there.

    A stranger's megabyte may be 300,000 empty lists, and while they are looked through no stream goes on: what JSON
    gives most often is asked for first, and by its class (`isinstance` with `Mapping` takes several times as long).
    """
    kind_of = value.__class__
    if kind_of is str:
        return encodable(value)
    if kind_of is list or kind_of is dict or isinstance(value, Mapping | list | tuple):
        if depth == 0:
            raise InvalidRequest("The body is nested too deep.", field=_path(where), limit=limit)
        if not value:
            return {} if kind_of is dict or isinstance(value, Mapping) else []
        if kind_of is dict or isinstance(value, Mapping):
            return {
                encodable(str(name)): item
                if item is None or item.__class__ in _AS_THEY_ARE
                else _checked(item, (*where, str(name)), depth - 1, limit)
                for name, item in value.items()
            }
        return [
            item
            if item is None or item.__class__ in _AS_THEY_ARE
            else _checked(item, (*where, place), depth - 1, limit)
            for place, item in enumerate(value)
        ]
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequest("A number must be finite.", field=_path(where))
    return value


_AS_THEY_ARE = frozenset((int, bool))


def _path(where: tuple[str | int, ...]) -> str | None:
    words = [f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in where]
    return "".join(words).removeprefix(".") or None


def shown(name: str) -> str:
    """A field's name as an error may repeat it: short, and without control characters."""
    name = "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
    return name if len(name) <= 60 else name[:59] + "…"
