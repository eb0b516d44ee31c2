"""From plain values (a YAML or JSON file, Python lists and dicts) to scripts, with errors that say where and what."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from motamot.scripted import bounds, cut
from motamot.scripted.patterns import compiled
from motamot.scripted.script import Scripts, folded
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
    Script,
    Send,
    SendRepeat,
    Step,
    Think,
    Turn,
    UsagePlace,
    Wait,
)
from motamot.scripted.values import Place, read_file

__all__ = ["load_scripts"]

_NAME = re.compile(r"\w+(?:[-.]\w+)*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s)")
_OURS = frozenset({"transfer-encoding", "connection"})
T = TypeVar("T")
E = TypeVar("E", How, CallDialect, UsagePlace, FailHow)


def load_scripts(source: object) -> Scripts:
    """Scripts from a file's path, or from the values such a file would hold.

    source: a `Path` or `str` (a file; `.json` is JSON, anything else YAML), a dict with `scripts` and more,
            a list of steps (one answer to everything) or a list of lists of steps (one for each request, in order).
    Raises: ScriptError, naming file, line, script and step, and what was expected.
    """
    if isinstance(source, Scripts):
        return source
    if isinstance(source, str | Path):
        value, place = read_file(Path(source))
    else:
        value, place = source, Place()
    return _scripts(value, place)


def _scripts(value: Any, place: Place) -> Scripts:
    if value is None:
        raise place.error('holds nothing; expected "scripts:" or a list of steps')
    if isinstance(value, list):
        if value and all(isinstance(item, list) for item in value):
            return Scripts(requests=tuple(_script(v, place.at(n), f"request {n + 1}") for n, v in enumerate(value)))
        only = _script(value, place, "the only script")
        return Scripts(scripts={only.name: only}, default=only)
    fields = _mapping(value, place, {"scripts", "requests", "default", "models"}, 'a mapping with "scripts"')
    scripts: dict[str, Script] = {}
    for name, inner in _any_mapping(fields.get("scripts", {}), place.at("scripts"), "scripts by name").items():
        at = place.at("scripts").at(name, f'script "{name}"')
        if not _is_name(name):
            raise at.error("a script's name is letters and digits, with - . or _ inside")
        if folded(name) in scripts:
            raise at.error("there is another script with this name (upper and lower case are not told apart)")
        scripts[folded(name)] = _script(inner, at, name)
    if len(scripts) > bounds.SCRIPTS:
        raise place.at("scripts").error(f"at most {bounds.SCRIPTS} scripts")
    requests = None
    if "requests" in fields:
        at = place.at("requests")
        items = _list(fields["requests"], at, "a list of script names or of lists of steps")
        requests = tuple(_request(item, at.at(n, f"request {n + 1}"), n, scripts) for n, item in enumerate(items))
    if not scripts and requests is None:
        raise place.error('holds no script; expected "scripts:", "requests:" or a list of steps')
    default = _named(fields["default"], place.at("default", '"default"'), scripts) if "default" in fields else None
    models = fields.get("models", ["scripted"])
    if not isinstance(models, list) or not models or not all(isinstance(m, str) and m for m in models):
        raise place.at("models", '"models"').error(f"expected a list of model names; got {_shown(models)}")
    return Scripts(scripts=scripts, requests=requests, default=default, models=tuple(models))


def _request(value: Any, place: Place, number: int, scripts: dict[str, Script]) -> Script:
    if isinstance(value, str):
        return _named(value, place, scripts)
    return _script(value, place, f"request {number + 1}")


def _named(value: Any, place: Place, scripts: dict[str, Script]) -> Script:
    if not isinstance(value, str) or folded(value) not in scripts:
        known = ", ".join(script.name for script in scripts.values()) or "none"
        raise place.error(f"expected the name of a script ({known}); got {_shown(value)}")
    return scripts[folded(value)]


def _script(value: Any, place: Place, name: str) -> Script:
    if isinstance(value, str):  # `hello: Good morning.` says it
        value = [{"say": value}]
    if isinstance(value, list):
        return Script(name, (_turn(value, place),))
    what = 'a list of steps, or a mapping with "steps" or "turns"'
    fields = _mapping(value, place, {"steps", "turns", "match"}, what)
    if ("steps" in fields) == ("turns" in fields):
        raise place.error('expected either "steps" or "turns"')
    if "steps" in fields:
        turns: tuple[Turn, ...] = (_turn(fields["steps"], place.at("steps")),)
    else:
        at = place.at("turns")
        items = _list(fields["turns"], at, "a list of turns, each a list of steps")
        turns = tuple(_turn(item, at.at(n, f"turn {n + 1}")) for n, item in enumerate(items))
        if not turns:
            raise at.error("a script has at least one turn")
    contains: tuple[str, ...] = ()
    pattern = None
    if "match" in fields:
        at = place.at("match", '"match"')
        match = fields["match"]
        if isinstance(match, str):
            match = {"contains": match}
        asked = _mapping(match, at, {"contains", "regex"}, 'text, or a mapping with "contains" or "regex"')
        if not asked:
            raise at.error('expected "contains" or "regex"')
        if "contains" in asked:
            inner = asked["contains"]
            texts: list[Any] = inner if isinstance(inner, list) else [inner]
            if not texts or not all(isinstance(text, str) and text for text in texts):
                raise at.at("contains").error(f"expected text or a list of texts; got {_shown(inner)}")
            contains = tuple(texts)
        if "regex" in asked:
            pattern = _text(asked["regex"], at.at("regex"), '"regex"')
            problem = compiled(pattern)
            if isinstance(problem, str):
                raise at.at("regex").error(problem)
    return Script(name, turns, contains=contains, pattern=pattern)


def _turn(value: Any, place: Place) -> Turn:
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
    for n, item in enumerate(_list(value, place, "a list of steps")):
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
        raise place.error(f"expected a step such as {{say: text}}; got {_shown(value)}")
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
    return Head(_whole(value, at, 200, 599), _headers(step.get("headers", {}), place.at("headers", '"headers"')))


def _headers(value: Any, place: Place) -> tuple[tuple[str, str], ...]:
    headers = []
    for name, text in _any_mapping(value, place, "header names and their values").items():
        at = place.at(name)
        text = str(text) if isinstance(text, int) and not isinstance(text, bool) else text
        if not _TOKEN.fullmatch(name) or name.lower() == "transfer-encoding":
            raise at.error(f"{_shown(name)} cannot be set as a header's name")
        if not isinstance(text, str) or not _FIELD.fullmatch(text):
            raise at.error(f"expected a header's value on one line; got {_shown(text)}")
        headers.append((name.lower(), text))
    length = dict(headers).get("content-length")
    if length is not None and not re.fullmatch(r"[0-9]{1,15}", length):
        raise place.at("content-length").error(f"expected a number of bytes; got {_shown(length)}")
    return tuple(headers)


def _read_send(step: dict[str, Any], place: Place, value: Any, at: Place) -> Send:
    _only(step, place, "send")
    return Send(_bytes(value, at))


def _read_send_base64(step: dict[str, Any], place: Place, value: Any, at: Place) -> Send:
    _only(step, place, "send_base64")
    text = _text(value, at, "base64")
    try:
        return Send(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise at.error(f"expected base64: {error}") from error


def _read_send_repeat(step: dict[str, Any], place: Place, value: Any, at: Place) -> SendRepeat:
    _only(step, place, "send_repeat", "times")
    if "times" not in step:
        raise place.error('"send_repeat" needs "times"')
    return SendRepeat(_bytes(value, at), _whole(step["times"], place.at("times", '"times"'), 0, bounds.TURN_BYTES))


def _read_wait_ms(step: dict[str, Any], place: Place, value: Any, at: Place) -> Wait:
    _only(step, place, *step.keys() & {"wait_ms", "hold_open_ms"})
    return Wait(_milliseconds(value, at))


def _read_wait(step: dict[str, Any], place: Place, value: Any, at: Place) -> Wait:
    _only(step, place, "wait")
    return Wait(_duration(value, at))


def _read_gate(step: dict[str, Any], place: Place, value: Any, at: Place) -> Gate:
    _only(step, place, "gate", "timeout")
    name = _text(value, at, "a gate's name")
    if not _is_name(name):
        raise at.error("a gate's name is letters and digits, with - . or _ inside")
    timeout = step.get("timeout")
    return Gate(name, bounds.GATE_SECONDS if timeout is None else _duration(timeout, place.at("timeout", '"timeout"')))


def _read_repeat(step: dict[str, Any], place: Place, value: Any, at: Place) -> Repeat:
    _only(step, place, "repeat", "steps")
    if "steps" not in step:
        raise place.error('"repeat" needs "steps"')
    times = _whole(value, at, 0, bounds.REPEAT_TIMES)
    return Repeat(times, _steps(step["steps"], place.at("steps"), inside=True))


def _read_close(step: dict[str, Any], place: Place, value: Any, at: Place) -> Close:
    _only(step, place, "close")
    return Close(_choice(value, at, How))


def _read_expect(step: dict[str, Any], place: Place, value: Any, at: Place) -> ExpectCancel:
    _only(step, place, "expect_cancel_within_ms")
    return ExpectCancel(_milliseconds(value, at))


def _read_say(step: dict[str, Any], place: Place, value: Any, at: Place) -> Say:
    _only(step, place, "say", "cut", "pace", "slice_bytes")
    slice_bytes = step.get("slice_bytes", 0)
    return Say(
        _pieces(step, place, value, at, cut.words),
        _pace(step, place),
        _whole(slice_bytes, place.at("slice_bytes", '"slice_bytes"'), 0, bounds.BLOCK_BYTES),
    )


def _read_think(step: dict[str, Any], place: Place, value: Any, at: Place) -> Think:
    _only(step, place, "think", "cut", "pace", "field")
    name = step.get("field", "reasoning_content")
    if name not in ("reasoning_content", "reasoning"):
        raise place.at("field", '"field"').error(f"expected reasoning_content or reasoning; got {_shown(name)}")
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
    fields = _mapping(value, place, keys, 'a mapping with "name" and "arguments"')
    if "name" not in fields:
        raise place.error('a call needs a "name"')
    arguments = fields.get("arguments", {})
    at = place.at("arguments", '"arguments"')
    if not isinstance(arguments, str | list):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise at.error(f"expected JSON values or the JSON text itself: {error}") from error
    dialect = _choice(fields.get("dialect", "standard"), place.at("dialect", '"dialect"'), CallDialect)
    call = Call(
        name=_text(fields["name"], place.at("name", '"name"'), "a tool's name"),
        pieces=_pieces(fields, place, arguments, at, lambda text: cut.every(text, 8)),
        id=None if fields.get("id") is None else _text(fields["id"], place.at("id", '"id"'), "an id"),
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
        raise at.error(f"expected a reason (stop, length, tool_calls, …) or null; got {_shown(value)}")
    text = step.get("text", "")
    return Finish(
        value,
        _flag(step.get("done", True), place.at("done", '"done"')),
        _text(text, place.at("text", '"text"'), "text"),
    )


def _read_usage(step: dict[str, Any], place: Place, value: Any, at: Place) -> ReportUsage:
    _only(step, place, "usage")
    if value is None or value == "none":
        return ReportUsage(place=UsagePlace.NONE)
    keys = {"prompt", "completion", "cached", "reasoning", "place"}
    fields = _mapping(value, at, keys, "a mapping with prompt, completion, cached, reasoning, place, or none")
    counts = {
        key: _whole(fields[key], at.at(key, f'"{key}"'), 0, 10**12)
        for key in ("prompt", "completion", "cached", "reasoning")
        if key in fields
    }
    return ReportUsage(**counts, place=_choice(fields.get("place", "chunk"), at.at("place", '"place"'), UsagePlace))


def _read_fail(step: dict[str, Any], place: Place, value: Any, at: Place) -> Fail:
    _only(step, place, "fail")
    if isinstance(value, str):
        return Fail(value)
    keys = {"message", "status", "type", "code", "how", "headers", "retry_after"}
    fields = _mapping(value, at, keys, 'a message, or a mapping with "message" and more')
    headers = _headers(fields.get("headers", {}), at.at("headers", '"headers"'))
    if "retry_after" in fields:
        headers += (("retry-after", str(_whole(fields["retry_after"], at.at("retry_after"), 0, 10**6))),)
    code = fields.get("code")
    return Fail(
        message=_text(fields.get("message", "the model failed"), at.at("message", '"message"'), "text"),
        status=_whole(fields.get("status", 500), at.at("status", '"status"'), 400, 599),
        type=_text(fields.get("type", "server_error"), at.at("type", '"type"'), "text"),
        code=None if code is None else str(code),
        how=_choice(fields.get("how", "data"), at.at("how", '"how"'), FailHow),
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


# Values


def _is_name(text: str) -> bool:
    return len(text) <= bounds.NAME_CHARACTERS and _NAME.fullmatch(text) is not None


def _pieces(
    step: dict[str, Any], place: Place, value: Any, at: Place, by_default: Callable[[str], tuple[str, ...]]
) -> tuple[str, ...]:
    """The pieces of a text: as listed, as `cut` says, or as usual."""
    if isinstance(value, list):
        if "cut" in step:
            raise place.at("cut", '"cut"').error("a list is in pieces already")
        parts = [(item, at.at(n, f"piece {n + 1}")) for n, item in enumerate(value)]
        return tuple(_text(item, where, "text", whole_characters=False) for item, where in parts)
    text = _text(value, at, "text", whole_characters=False)
    if "cut" not in step:
        return by_default(text)
    return _cut(step["cut"], text, place.at("cut", '"cut"'))


def _cut(value: Any, text: str, place: Place) -> tuple[str, ...]:
    if isinstance(value, str) and value in _CUTS:
        return _CUTS[value](text)
    if isinstance(value, int) and not isinstance(value, bool):
        return cut.into(text, _whole(value, place, 1, bounds.TURN_PIECES))
    if isinstance(value, dict) and set(value) == {"every"}:
        return cut.every(text, _whole(value["every"], place.at("every", '"every"'), 1, bounds.TURN_BYTES))
    if isinstance(value, dict) and set(value) == {"at"}:
        at = place.at("at", '"at"')
        offsets = [_whole(item, at, 0, len(text)) for item in _list(value["at"], at, "a list of offsets")]
        if offsets != sorted(offsets):
            raise at.error("expected ascending offsets")
        return cut.offsets(text, tuple(offsets))
    known = ", ".join(_CUTS)
    raise place.error(f"expected a number of pieces, {known}, {{every: n}} or {{at: [n, …]}}; got {_shown(value)}")


_CUTS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "whole": lambda text: (text,),
    "words": cut.words,
    "lines": cut.lines,
    "characters": cut.characters,
    "utf16": cut.utf16,
}


def _pace(step: dict[str, Any], place: Place) -> float:
    return _duration(step["pace"], place.at("pace", '"pace"')) if "pace" in step else 0.0


def _duration(value: Any, place: Place) -> float:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        seconds = float(match[1]) / (1000 if match[2] == "ms" else 1)
        if seconds <= bounds.WAIT_SECONDS:
            return seconds
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _milliseconds(value, place)
    raise place.error(f'expected milliseconds, "250ms" or "1.5s", an hour at most; got {_shown(value)}')


def _milliseconds(value: Any, place: Place) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= bounds.WAIT_SECONDS * 1000:
        return value / 1000
    raise place.error(f"expected milliseconds, an hour at most; got {_shown(value)}")


def _bytes(value: Any, place: Place) -> bytes:
    return _text(value, place, "text").encode()


def _text(value: Any, place: Place, what: str, *, whole_characters: bool = True) -> str:
    if not isinstance(value, str):
        hint = " (put it in quotes)" if isinstance(value, bool | int | float) or value is None else ""
        raise place.error(f"expected {what}; got {_shown(value)}{hint}")
    # YAML reads "\ud83d\ude00" as two halves: they are one character.
    text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if whole_characters and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise place.error("holds half a surrogate pair, which has no bytes in UTF-8") from error
    return text


def _whole(value: Any, place: Place, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise place.error(f"expected a whole number from {least} to {most}; got {_shown(value)}")


def _flag(value: Any, place: Place) -> bool:
    if isinstance(value, bool):
        return value
    raise place.error(f"expected true or false; got {_shown(value)}")


def _choice(value: Any, place: Place, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        raise place.error(f"expected one of {', '.join(kind)}; got {_shown(value)}") from None


def _list(value: Any, place: Place, what: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise place.error(f"expected {what}; got {_shown(value)}")


def _any_mapping(value: Any, place: Place, what: str) -> dict[str, Any]:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    raise place.error(f"expected {what}; got {_shown(value)}")


def _mapping(value: Any, place: Place, keys: set[str], what: str) -> dict[str, Any]:
    fields = _any_mapping(value, place, what)
    for key in fields:
        if key not in keys:
            raise place.at(key).error(f'does not know the key "{key}" (expected {", ".join(sorted(keys))})')
    return fields


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
