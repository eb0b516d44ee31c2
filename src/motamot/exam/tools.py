"""The tools of a chatbot under examination: what it offers the model, how one is called, what the model is told of it.

Pure. A tool's arguments are made up by its JSON schema: as few as it wants, and of the right kinds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Called", "Told", "Tool", "offered", "problems", "told"]

_DEPTH = 8  # of a schema; deeper ones get an empty object
_ITEMS = 10
_QUOTE = 120
_NUMBERS = ("first", "second", "third")
_TEXTS = {
    "date": "2030-01-0{}",
    "date-time": "2030-01-0{}T10:00:00Z",
    "time": "10:00:0{}Z",
    "email": "exam{}@example.com",
    "uri": "https://example.com/{}",
    "url": "https://example.com/{}",
    "uuid": "00000000-0000-4000-8000-00000000000{}",
    "ipv4": "192.0.2.{}",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a chatbot offers the model. schema: of its arguments, as the request to the model has it."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self, number: int = 1) -> dict[str, Any]:
        """Arguments that the schema takes, as far as it says; different for each number, 1 to 3, where it can be."""
        made = _value(self.schema, self.schema, number, _DEPTH)
        return made if isinstance(made, dict) else {}

    def fills(self) -> dict[str, str]:
        """What stands in a script for `{tool}` and `{arguments …}`."""
        whole = json.dumps(self.arguments())
        found = {"{tool}": self.name, "{arguments}": whole}
        found |= {f"{{arguments {n}}}": json.dumps(self.arguments(n)) for n in (1, 2, 3)}
        # Cut inside the last word, where it is one: who mends it has all that the tool wants, and half of a value.
        found["{arguments cut}"] = whole[:-3] if whole.endswith('t"}') else whole[:-1]
        return found


def offered(body: Any, name: str | None = None) -> Tool | None:
    """The tool of this name, or the first, that a request offers the model: in any of its interfaces."""
    if not isinstance(body, dict):
        return None
    for one in [*_objects(body.get("tools")), *_objects(body.get("functions"))]:
        inner = one["function"] if isinstance(one.get("function"), dict) else one
        kind = one.get("type", "function")
        if not isinstance(inner.get("name"), str) or not (kind == "function" or "input_schema" in one):
            continue  # a provider's own tool (web search), which it runs itself, or one without JSON arguments
        schema = inner.get("parameters", inner.get("input_schema"))
        if name in (None, inner["name"]):
            return Tool(inner["name"], schema if isinstance(schema, dict) else {})
    return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def _value(schema: Any, root: Mapping[str, Any], number: int, depth: int) -> Any:
    """A value that `schema` takes."""
    if not isinstance(schema, dict) or not depth:
        return {}
    if isinstance(ref := schema.get("$ref"), str):
        return _value(_referred(ref, root), root, number, depth - 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(choices := schema.get("enum"), list) and choices:
        return choices[(number - 1) % len(choices)]
    for several in ("allOf", "anyOf", "oneOf"):
        options = [one for one in _objects(schema.get(several)) if one.get("type") != "null"]
        if options and "properties" not in schema:
            return _value(options[0], root, number, depth - 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    match kind:
        case "string":
            return _text(schema, number)
        case "integer" | "number":
            return _number(schema, number)
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            least = schema.get("minItems")
            count = min(least, _ITEMS) if isinstance(least, int) else 0
            return [_value(schema.get("items", {}), root, number, depth - 1) for _ in range(count)]
        case _:
            properties = schema.get("properties")
            wanted = schema.get("required")
            if not isinstance(properties, dict) or not isinstance(wanted, list):
                return {}
            return {name: _value(properties.get(name, {}), root, number, depth - 1) for name in wanted}


def _referred(ref: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in ref.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _text(schema: Mapping[str, Any], number: int) -> str:
    text = _TEXTS.get(str(schema.get("format")), _NUMBERS[(number - 1) % 3]).format(number)
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(text) < least <= 10_000:
        text += "x" * (least - len(text))
    return text[:most] if isinstance(most, int) and most >= 0 else text


def _number(schema: Mapping[str, Any], number: int) -> int | float:
    value: int | float = number
    if isinstance(least := schema.get("minimum"), int | float):
        value = max(value, least + number - 1)
    if isinstance(above := schema.get("exclusiveMinimum"), int | float) and not isinstance(above, bool):
        value = max(value, above + number)
    most = schema.get("maximum")
    return min(value, most) if isinstance(most, int | float) else value


@dataclass(frozen=True, slots=True)
class Called:
    """A call as a later request tells the model of it. arguments: None where they are no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None

    def is_of(self, tool: Tool, number: int) -> bool:
        """Whether it is this call: a framework may add the defaults of its schema, and lose nothing."""
        wanted = tool.arguments(number)
        if self.name != tool.name or self.arguments is None:
            return False
        return all(name in self.arguments and self.arguments[name] == value for name, value in wanted.items())


@dataclass(frozen=True, slots=True)
class Told:
    """What a request tells the model of the calls since the last question. results: the ids that have one."""

    calls: Sequence[Called]
    results: Sequence[str]


def told(body: Any) -> Told:
    """The calls in a request's messages, in whichever of the model's interfaces it is made."""
    calls: list[Called] = []
    results: list[str] = []
    if not isinstance(body, dict):
        return Told(calls, results)
    for message in _objects(body.get("messages", body.get("input"))):
        content = list(_objects(message.get("content")))
        if message.get("role") == "user" and not any(one.get("type") == "tool_result" for one in content):
            calls, results = [], []
        for one in _objects(message.get("tool_calls")):
            if isinstance(inner := one.get("function"), dict):
                calls.append(_called(one.get("id"), inner.get("name"), inner.get("arguments")))
        if isinstance(inner := message.get("function_call"), dict):  # the older way, which knows no ids
            calls.append(_called(inner.get("name"), inner.get("name"), inner.get("arguments")))
        if message.get("type") == "function_call":
            calls.append(_called(message.get("call_id"), message.get("name"), message.get("arguments")))
        if message.get("role") in ("tool", "function") or message.get("type") == "function_call_output":
            results.append(str(message.get("tool_call_id", message.get("call_id", message.get("name")))))
        for one in content:
            if one.get("type") == "tool_use":
                calls.append(_called(one.get("id"), one.get("name"), one.get("input")))
            if one.get("type") == "tool_result":
                results.append(str(one.get("tool_use_id")))
    return Told(calls, results)


def problems(tool: Tool, wanted: int, body: Any) -> Iterator[str]:
    """What was lost of the model's calls of `tool`, a sentence each.

    wanted: how many it made, by the tool's own arguments from 1 on; 0: what it made had not come to its end.
    body:   of the request for the answer's last turn; None: there was none after the calls.
    """
    found = told(body)
    if not wanted:
        # Who gives an error for a result sends the model `{}`, or what came, as it is or in an object of its own.
        for call in found.calls:
            if call.id in found.results and call.arguments and tool.arguments().keys() <= call.arguments.keys():
                arguments = _short(json.dumps(call.arguments))
                yield f"a call of {tool.name} that had not come to its end was run, with {arguments}"
        return
    if body is None:
        yield f"the model called {tool.name}, and was not asked again: nobody told it a result"
        return
    got = _short(", ".join(f"{one.name}({_shown(one.arguments)})" for one in found.calls)) or "no call"
    lost = [n for n in range(1, wanted + 1) if not any(call.is_of(tool, n) for call in found.calls)]
    if lost:
        asked = _short(f"{tool.name}({json.dumps(tool.arguments(lost[0]))})")
        yield f"the model called {asked}, and the next turn tells it of {got}"
    if len(found.calls) > wanted or (len(found.calls) < wanted and not lost):
        yield f"the model called {tool.name} {wanted} times, and the next turn tells it of {got}"
    ids = [call.id for call in found.calls]
    if "" in ids or len(set(ids)) < len(ids):
        yield f"the calls in the next turn's request cannot be told apart by their ids: {ids}"
    if unanswered := [one for one in ids if one not in found.results]:
        yield f"{len(unanswered)} of {len(ids)} calls have no result in the next turn's request"


def _shown(arguments: dict[str, Any] | None) -> str:
    return "?" if arguments is None else json.dumps(arguments)


def _short(text: str) -> str:
    return text if len(text) <= _QUOTE else text[: _QUOTE - 1] + "…"


def _called(name: Any, tool: Any, arguments: Any) -> Called:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    return Called(str(name or ""), str(tool or ""), arguments if isinstance(arguments, dict) else None)
