"""From plain values to the steps of a turn."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

from motamot.scripted import bounds, checks, cut
from motamot.scripted.steps import (
    Call,
    CallDialect,
    Calls,
    Close,
    ExpectCancel,
    Fail,
    FailHow,
    Finish,
    Gate,
    Head,
    How,
    Repeat,
    ReportUsage,
    Say,
    Send,
    SendRepeat,
    Step,
    Think,
    Turn,
    UsagePlace,
    Wait,
)
from motamot.scripted.values import Place

__all__ = ["read_turn"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(r"[0-9]{1,15}")


def read_turn(value: Any, place: Place) -> Turn:
    turn = Turn(_steps(value, place))
    if sum(isinstance(step, ReportUsage) for step in turn.flat()) > 1:
        raise place.error('a turn has one "usage" at most')
    pieces, size = _weight(turn.steps)
    if pieces > bounds.TURN_PIECES or size > bounds.TURN_BYTES:
        raise place.error(
            f"would send {pieces} pieces of {size} bytes in all; at most {bounds.TURN_PIECES} and {bounds.TURN_BYTES}"
        )
    return turn


def _weight(steps: tuple[Step, ...]) -> tuple[int, int]:
    pieces = size = 0
    for step in steps:
        match step:
            case Send(data):
                pieces, size = pieces + 1, size + len(data)
            case SendRepeat(data, times):
                pieces, size = pieces + 1, size + len(data) * times
            case Calls(calls):
                more, bytes_more = _weight(calls)
                pieces, size = pieces + more, size + bytes_more
            case Say() | Think() | Call():
                pieces, size = pieces + len(step.pieces), size + sum(map(len, step.pieces))
            case Repeat(times, inner):
                more, bytes_more = _weight(inner)
                # A repeat of waits alone is bounded too: it is a piece each time.
                pieces, size = pieces + times * max(1, more), size + times * bytes_more
            case _:
                pieces += 1
    return pieces, size


def _steps(value: Any, place: Place, *, inside: bool = False) -> tuple[Step, ...]:
    steps: list[Step] = []
    ended: Step | None = None
    written = inside
    for n, item in enumerate(checks.items(value, place, "a list of steps")):
        at = place.at(n, f"step {n + 1}")
        step = _step(item, at)
        if ended is not None and not isinstance(step, ExpectCancel):
            raise at.error(f"comes after {_what(ended)}, which ends the response")
        if isinstance(step, Head) and written:
            raise at.error("a status must come before anything is sent")
        if isinstance(step, Close | Fail):
            if inside:
                raise at.error(f"{_what(step)} ends the response and cannot stand inside a repeat")
            ended = step
        written = written or not isinstance(step, Wait | Gate | ExpectCancel | ReportUsage | Head)
        steps.append(step)
    return tuple(steps)


def _what(step: Step) -> str:
    return '"close"' if isinstance(step, Close) else '"fail"'


# One reader for each step. Beside the keys of the table, a step may have the keys that its reader names.


def _step(value: Any, place: Place) -> Step:
    if not isinstance(value, dict):
        raise place.error(f"expected a step such as {{say: text}}; got {checks.shown(value)}")
    kinds = [key for key in value if key in _READERS]
    if len(kinds) != 1:
        known = ", ".join(_READERS)
        got = ", ".join(str(key) for key in value) or "nothing"
        problem = "two steps in one" if len(kinds) > 1 else f"an unknown step ({got})"
        raise place.error(f"expected one of {known}; got {problem}")
    kind = kinds[0]
    return _READERS[kind](value, place, value[kind], place.at(kind, f'"{kind}"'))


def _only(value: dict[str, Any], place: Place, *keys: str) -> None:
    for key in value:
        if key not in keys:
            raise place.at(key).error(f'does not know the key "{key}" (it has {", ".join(keys)})')


def _read_status(step: dict[str, Any], place: Place, value: Any, at: Place) -> Head:
    _only(step, place, "status", "headers")
    return Head(checks.whole(value, at, 200, 599), _headers(step.get("headers", {}), place.at("headers", '"headers"')))


def _headers(value: Any, place: Place) -> tuple[tuple[str, str], ...]:
    headers = []
    for name, text in checks.mapping(value, place, "header names and their values").items():
        at = place.at(name)
        text = str(text) if isinstance(text, int) and not isinstance(text, bool) else text
        if not _TOKEN.fullmatch(name) or name.lower() == "transfer-encoding":
            raise at.error(f"{checks.shown(name)} cannot be set as a header's name")
        if not isinstance(text, str) or not _FIELD.fullmatch(text):
            raise at.error(f"expected a header's value on one line; got {checks.shown(text)}")
        headers.append((name.lower(), text))
    length = dict(headers).get("content-length")
    if length is not None and not _LENGTH.fullmatch(length):
        raise place.at("content-length").error(f"expected a number of bytes; got {checks.shown(length)}")
    return tuple(headers)


def _read_send(step: dict[str, Any], place: Place, value: Any, at: Place) -> Send:
    _only(step, place, "send")
    return Send(checks.data(value, at))


def _read_send_base64(step: dict[str, Any], place: Place, value: Any, at: Place) -> Send:
    _only(step, place, "send_base64")
    text = checks.text(value, at, "base64")
    try:
        return Send(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise at.error(f"expected base64: {error}") from error


def _read_send_repeat(step: dict[str, Any], place: Place, value: Any, at: Place) -> SendRepeat:
    _only(step, place, "send_repeat", "times")
    if "times" not in step:
        raise place.error('"send_repeat" needs "times"')
    return SendRepeat(
        checks.data(value, at), checks.whole(step["times"], place.at("times", '"times"'), 0, bounds.TURN_BYTES)
    )


def _read_wait_ms(step: dict[str, Any], place: Place, value: Any, at: Place) -> Wait:
    _only(step, place, *step.keys() & {"wait_ms", "hold_open_ms"})
    return Wait(checks.milliseconds(value, at))


def _read_wait(step: dict[str, Any], place: Place, value: Any, at: Place) -> Wait:
    _only(step, place, "wait")
    return Wait(checks.duration(value, at))


def _read_gate(step: dict[str, Any], place: Place, value: Any, at: Place) -> Gate:
    _only(step, place, "gate", "timeout")
    name = checks.text(value, at, "a gate's name")
    if not checks.is_name(name):
        raise at.error("a gate's name is letters and digits, with - . or _ inside")
    timeout = step.get("timeout")
    return Gate(
        name, bounds.GATE_SECONDS if timeout is None else checks.duration(timeout, place.at("timeout", '"timeout"'))
    )


def _read_repeat(step: dict[str, Any], place: Place, value: Any, at: Place) -> Repeat:
    _only(step, place, "repeat", "steps")
    if "steps" not in step:
        raise place.error('"repeat" needs "steps"')
    times = checks.whole(value, at, 0, bounds.REPEAT_TIMES)
    return Repeat(times, _steps(step["steps"], place.at("steps"), inside=True))


def _read_close(step: dict[str, Any], place: Place, value: Any, at: Place) -> Close:
    _only(step, place, "close")
    return Close(checks.choice(value, at, How))


def _read_expect(step: dict[str, Any], place: Place, value: Any, at: Place) -> ExpectCancel:
    _only(step, place, "expect_cancel_within_ms")
    return ExpectCancel(checks.milliseconds(value, at))


def _read_say(step: dict[str, Any], place: Place, value: Any, at: Place) -> Say:
    _only(step, place, "say", "cut", "pace", "slice_bytes")
    slice_bytes = step.get("slice_bytes", 0)
    return Say(
        _pieces(step, place, value, at, cut.words),
        _pace(step, place),
        checks.whole(slice_bytes, place.at("slice_bytes", '"slice_bytes"'), 0, bounds.BLOCK_BYTES),
    )


def _read_think(step: dict[str, Any], place: Place, value: Any, at: Place) -> Think:
    _only(step, place, "think", "cut", "pace", "field")
    name = step.get("field", "reasoning_content")
    if name not in ("reasoning_content", "reasoning"):
        raise place.at("field", '"field"').error(f"expected reasoning_content or reasoning; got {checks.shown(name)}")
    return Think(_pieces(step, place, value, at, cut.words), _pace(step, place), name)


def _read_call(step: dict[str, Any], place: Place, value: Any, at: Place) -> Call | Calls:
    _only(step, place, "call")
    if isinstance(value, list):
        if not value:
            raise at.error("expected at least one call")
        return Calls(tuple(_call(item, at.at(n, f"call {n + 1}")) for n, item in enumerate(value)))
    return _call(value, at)


def _call(value: Any, place: Place) -> Call:
    keys = {"name", "arguments", "id", "dialect", "cut", "pace"}
    fields = checks.fields(value, place, keys, 'a mapping with "name" and "arguments"')
    if "name" not in fields:
        raise place.error('a call needs a "name"')
    arguments = fields.get("arguments", {})
    at = place.at("arguments", '"arguments"')
    if not isinstance(arguments, str | list):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise at.error(f"expected JSON values or the JSON text itself: {error}") from error
    dialect = checks.choice(fields.get("dialect", "standard"), place.at("dialect", '"dialect"'), CallDialect)
    call = Call(
        name=checks.text(fields["name"], place.at("name", '"name"'), "a tool's name"),
        pieces=_pieces(fields, place, arguments, at, lambda text: cut.every(text, 8)),
        id=None if fields.get("id") is None else checks.text(fields["id"], place.at("id", '"id"'), "an id"),
        dialect=dialect,
        pace=_pace(fields, place),
    )
    if dialect is CallDialect.ARGUMENTS_OBJECT:
        try:
            json.loads(call.arguments)
        except ValueError as error:
            raise at.error(f"are to be sent as an object, and are not JSON: {error}") from error
    return call


def _read_finish(step: dict[str, Any], place: Place, value: Any, at: Place) -> Finish:
    _only(step, place, "finish", "done", "text")
    if value is not None and not isinstance(value, str):
        raise at.error(f"expected a reason (stop, length, tool_calls, …) or null; got {checks.shown(value)}")
    text = step.get("text", "")
    return Finish(
        value,
        checks.flag(step.get("done", True), place.at("done", '"done"')),
        checks.text(text, place.at("text", '"text"'), "text"),
    )


def _read_usage(step: dict[str, Any], place: Place, value: Any, at: Place) -> ReportUsage:
    _only(step, place, "usage")
    if value is None or value == "none":
        return ReportUsage(place=UsagePlace.NONE)
    keys = {"prompt", "completion", "cached", "reasoning", "place"}
    fields = checks.fields(value, at, keys, "a mapping with prompt, completion, cached, reasoning, place, or none")
    counts = {
        key: checks.whole(fields[key], at.at(key, f'"{key}"'), 0, 10**12)
        for key in ("prompt", "completion", "cached", "reasoning")
        if key in fields
    }
    return ReportUsage(
        **counts, place=checks.choice(fields.get("place", "chunk"), at.at("place", '"place"'), UsagePlace)
    )


def _read_fail(step: dict[str, Any], place: Place, value: Any, at: Place) -> Fail:
    _only(step, place, "fail")
    if isinstance(value, str):
        return Fail(value)
    keys = {"message", "status", "type", "code", "how", "headers", "retry_after"}
    fields = checks.fields(value, at, keys, 'a message, or a mapping with "message" and more')
    headers = _headers(fields.get("headers", {}), at.at("headers", '"headers"'))
    if "retry_after" in fields:
        headers += (("retry-after", str(checks.whole(fields["retry_after"], at.at("retry_after"), 0, 10**6))),)
    code = fields.get("code")
    return Fail(
        message=checks.text(fields.get("message", "the model failed"), at.at("message", '"message"'), "text"),
        status=checks.whole(fields.get("status", 500), at.at("status", '"status"'), 400, 599),
        type=checks.text(fields.get("type", "server_error"), at.at("type", '"type"'), "text"),
        code=None if code is None else str(code),
        how=checks.choice(fields.get("how", "data"), at.at("how", '"how"'), FailHow),
        headers=headers,
    )


_READERS: dict[str, Callable[[dict[str, Any], Place, Any, Place], Step]] = {
    "say": _read_say,
    "think": _read_think,
    "call": _read_call,
    "finish": _read_finish,
    "usage": _read_usage,
    "fail": _read_fail,
    "wait": _read_wait,
    "gate": _read_gate,
    "status": _read_status,
    "send": _read_send,
    "send_base64": _read_send_base64,
    "send_repeat": _read_send_repeat,
    "wait_ms": _read_wait_ms,
    "hold_open_ms": _read_wait_ms,
    "repeat": _read_repeat,
    "close": _read_close,
    "expect_cancel_within_ms": _read_expect,
}


# Texts in pieces


def _pieces(
    step: dict[str, Any], place: Place, value: Any, at: Place, by_default: Callable[[str], tuple[str, ...]]
) -> tuple[str, ...]:
    """The pieces of a text: as listed, as `cut` says, or as usual."""
    if isinstance(value, list):
        if "cut" in step:
            raise place.at("cut", '"cut"').error("a list is in pieces already")
        parts = [(item, at.at(n, f"piece {n + 1}")) for n, item in enumerate(value)]
        return tuple(checks.text(item, where, "text", whole_characters=False) for item, where in parts)
    text = checks.text(value, at, "text", whole_characters=False)
    if "cut" not in step:
        return by_default(text)
    return _cut(step["cut"], text, place.at("cut", '"cut"'))


def _cut(value: Any, text: str, place: Place) -> tuple[str, ...]:
    if isinstance(value, str) and value in _CUTS:
        return _CUTS[value](text)
    if isinstance(value, int) and not isinstance(value, bool):
        return cut.into(text, checks.whole(value, place, 1, bounds.TURN_PIECES))
    if isinstance(value, dict) and set(value) == {"every"}:
        return cut.every(text, checks.whole(value["every"], place.at("every", '"every"'), 1, bounds.TURN_BYTES))
    if isinstance(value, dict) and set(value) == {"at"}:
        at = place.at("at", '"at"')
        offsets = [checks.whole(item, at, 0, len(text)) for item in checks.items(value["at"], at, "a list of offsets")]
        if offsets != sorted(offsets):
            raise at.error("expected ascending offsets")
        return cut.offsets(text, tuple(offsets))
    known = ", ".join(_CUTS)
    raise place.error(
        f"expected a number of pieces, {known}, {{every: n}} or {{at: [n, …]}}; got {checks.shown(value)}"
    )


_CUTS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "whole": lambda text: (text,),
    "words": cut.words,
    "lines": cut.lines,
    "characters": cut.characters,
    "utf16": cut.utf16,
}


def _pace(step: dict[str, Any], place: Place) -> float:
    return checks.duration(step["pace"], place.at("pace", '"pace"')) if "pace" in step else 0.0
