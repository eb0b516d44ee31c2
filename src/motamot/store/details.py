"""The details of an exchange as one row: its events that are no text, and when each of all its events came.

Times are the differences from one event to the next in units of 0.1 ms: 16 bits each, or 32 where one is longer than
six seconds. What is longer than a disk page is compressed.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Callable
from typing import Any, cast

import msgspec

from motamot.answer import Cited, Ended, Reasoning, Routed, Started, Text, ToolCalled, ToolReturned, TurnEnded
from motamot.store.cleaning import clean
from motamot.store.records import ExchangeEnded, Noted

__all__ = ["TICKS", "AnyEvent", "Details", "mapped", "packed", "unpacked"]

TICKS = 10_000
"""Units of time in a second."""

_COMPRESSED_FROM = 4_000  # bytes; below, compressing costs more than it saves
_PLAIN, _COMPRESSED = b"\x00", b"\x01"
_NARROW, _WIDE = b"\x02", b"\x04"  # bytes of a time

AnyEvent = Started | Routed | Text | Reasoning | ToolCalled | ToolReturned | Cited | TurnEnded | Ended


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What is unpacked. events: as in `ExchangeEnded.noted`; times: seconds after the question, by number from 1.

    omitted, hidden: as in `ExchangeEnded`.
    """

    events: tuple[Noted, ...] = ()
    times: tuple[float, ...] = ()
    omitted: int = 0
    hidden: tuple[int, int] = (0, 0)


class _Kept(msgspec.Struct, array_like=True):
    after: int
    numbered: bool
    at: float
    event: AnyEvent  # minded in reading alone: what is written may be such a one as plain values


class _Row(msgspec.Struct, array_like=True):
    omitted: int
    hidden: tuple[int, int]
    events: list[_Kept]


_decoder = msgspec.json.Decoder(_Row)


def packed(ended: ExchangeEnded) -> tuple[bytes, bytes]:
    """Times and events of an exchange, as the two columns hold them. Never fails: an end must be booked."""
    events = [_Kept(n.after, n.numbered, round(n.at, 4), cast(AnyEvent, n.event)) for n in ended.noted]
    row = _Row(ended.omitted, ended.hidden, events)
    try:
        data = msgspec.json.encode(row)
    except Exception:  # noqa: BLE001 - half a character somewhere, or objects that an answer of one's own put there
        kept = [one for one in map(_encodable, events) if one is not None]
        data = msgspec.json.encode(_Row(ended.omitted + len(events) - len(kept), ended.hidden, kept))
    return _squeezed(_differences(ended.times)), _squeezed(data)


def unpacked(times: bytes, events: bytes) -> Details:
    """What `packed` was given. Raises: ValueError for what it never made."""
    try:
        row = _decoder.decode(_swollen(events))
        return Details(
            events=tuple(Noted(kept.after, kept.numbered, kept.at, kept.event) for kept in row.events),
            times=_sums(_swollen(times)),
            omitted=row.omitted,
            hidden=row.hidden,
        )
    except (zlib.error, msgspec.DecodeError, IndexError) as error:
        raise ValueError(f"the details of this exchange cannot be read: {error}") from error


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON's kinds of values with every string in it changed, keys of objects too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {mapped(key, change): mapped(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in value]
    return value


def _encodable(kept: _Kept) -> _Kept | None:
    """The same as what JSON has words for; None where that cannot be made of it."""
    try:
        plain = mapped(msgspec.to_builtins(kept.event, enc_hook=repr), clean)
        msgspec.json.encode(plain)
    except Exception:  # noqa: BLE001 - as above
        return None
    return _Kept(kept.after, kept.numbered, kept.at, plain)


def _differences(times: array[int]) -> bytes:
    if not times:
        return b""
    steps = array("I", [times[0]])
    steps.extend(map(int.__sub__, times[1:], times))
    narrow = max(steps) < 1 << 16
    if narrow:
        steps = array("H", steps)
    if sys.byteorder == "big":
        steps.byteswap()
    return (_NARROW if narrow else _WIDE) + steps.tobytes()


def _sums(data: bytes) -> tuple[float, ...]:
    if not data:
        return ()
    steps = array("H" if data[:1] == _NARROW else "I")
    steps.frombytes(data[1:])
    if sys.byteorder == "big":
        steps.byteswap()
    now, times = 0, []
    for step in steps:
        now += step
        times.append(now / TICKS)
    return tuple(times)


def _squeezed(data: bytes) -> bytes:
    if len(data) < _COMPRESSED_FROM:
        return _PLAIN + data
    return _COMPRESSED + zlib.compress(data, 1)


def _swollen(data: bytes) -> bytes:
    return zlib.decompress(data[1:]) if data[:1] == _COMPRESSED else data[1:]
