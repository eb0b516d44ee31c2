"""What a client of `/v1/chat/completions` may ask, checked field by field.

The caller holds a key and keeps the history, so that `system` and `developer` messages are taken: they are kept apart
and follow the assistant's own prompt. What would change the answer's form and is not offered here (several choices,
log probabilities, audio, the old functions) is refused in words; other unknown fields are left aside, as the servers
these clients know do.

Source: OpenAI's OpenAPI document 2.3.0, CreateChatCompletionRequest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols._json import kind, request_object
from motamot.protocols.base import Asked, OfferedTool, PastCall, PastMessage, bounded, flag_field, name_field

__all__ = ["content_of", "mapping", "parse_request", "tool_name"]

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_INSTRUCTIONS = ("system", "developer")
_TOKENS_MOST = (1 << 31) - 1
_STOPS_MOST = 16
# Settings that go to the model as they are: name, least, most.
_NUMBERS: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0, 2),
    ("top_p", 0, 1),
    ("presence_penalty", -2, 2),
    ("frequency_penalty", -2, 2),
)
_FORMATS = ("text", "json_object", "json_schema")
# What is refused, because the answer would not be what was asked for: name, the values that ask for nothing.
_NOT_OFFERED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("n", (1,), "only one answer is given"),
    ("logprobs", (False,), "log probabilities are not given"),
    ("top_logprobs", (0,), "log probabilities are not given"),
    ("modalities", (["text"],), "answers are text"),
    ("audio", (), "answers are text"),
    ("functions", ([],), "use `tools`"),
    ("function_call", ("auto", "none"), "use `tool_choice`"),
)


def parse_request(body: bytes | Mapping[str, Any], limits: Limits) -> Asked:
    """The request as a question. Raises InvalidRequest; `field` names the place, as in `messages[2].content`."""
    asked = request_object(body, limits)
    for name, harmless, why in _NOT_OFFERED:
        value = asked.get(name)
        if value is not None and not any(value == one and type(value) is type(one) for one in harmless):
            raise InvalidRequest(f"The field `{name}` is not taken here: {why}.", field=name)
    system, messages = _messages(asked.get("messages"))
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    if last < 0 or not messages[last].content.strip():
        raise InvalidRequest("There must be a user message with text in it.", field="messages")
    bounded(messages[last].content, "messages", limits.message_bytes)
    tools = _tools(asked.get("tools"))
    choice, options = _tool_choice(asked.get("tool_choice"), tools)
    stream_options = mapping(asked.get("stream_options"), "stream_options")
    return Asked(
        message=messages[last].content,
        assistant=name_field(asked, "model", limits),
        history=tuple(messages[:last]),
        followed=tuple(messages[last + 1 :]),
        system=system,
        tools=tools,
        tool_choice=choice,
        stream=flag_field(asked, "stream"),
        include_usage=flag_field(stream_options, "include_usage"),
        max_tokens=_max_tokens(asked),
        options={**_options(asked, bool(tools)), **options},
    )


def _messages(given: Any) -> tuple[str, list[PastMessage]]:
    if not isinstance(given, list) or not given:
        raise InvalidRequest("The field `messages` must be a list with at least one message.", field="messages")
    instructions: list[str] = []
    messages: list[PastMessage] = []
    open_calls: set[str] = set()
    for place, one in enumerate(given):
        where = f"messages[{place}]"
        message = mapping(one, where, required=True)
        role = message.get("role")
        if role in _INSTRUCTIONS:
            instructions.append(content_of(message, where))
            continue
        if role == "tool":
            _answers(message, open_calls, where)
        elif open_calls:
            raise InvalidRequest("The tool calls before this message have not all been answered.", field=where)
        messages.append(_message(message, where))
        open_calls |= {call.id for call in messages[-1].calls}
    if open_calls:
        raise InvalidRequest("The last message's tool calls have not all been answered.", field="messages")
    return "\n\n".join(text for text in instructions if text.strip()), messages


def _answers(message: Mapping[str, Any], open_calls: set[str], where: str) -> None:
    call = message.get("tool_call_id")
    if not isinstance(call, str) or call not in open_calls:
        raise InvalidRequest("A tool message must answer a call made before it.", field=f"{where}.tool_call_id")
    open_calls.remove(call)


def _message(message: Mapping[str, Any], where: str) -> PastMessage:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise InvalidRequest(
            "A role must be `system`, `developer`, `user`, `assistant` or `tool`.", field=f"{where}.role"
        )
    if message.get("function_call") is not None:
        raise InvalidRequest("Old function calls are not taken here: use `tool_calls`.", field=f"{where}.function_call")
    calls = _calls(message.get("tool_calls"), f"{where}.tool_calls") if role == "assistant" else ()
    return PastMessage(
        role=role,
        content=content_of(message, where, optional=role == "assistant"),
        calls=calls,
        call_id=message.get("tool_call_id") if role == "tool" else None,
    )


def content_of(message: Mapping[str, Any], where: str, *, optional: bool = False) -> str:
    """A message's text: a string, or a list of text parts, which are put on lines of their own.

    Raises: InvalidRequest, for a part that is not text, too.
    """
    content, where = message.get("content"), f"{where}.content"
    if content is None and optional:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidRequest(f"A content must be a string or a list of parts, not {kind(content)}.", field=where)
    return "\n".join(_part(part, f"{where}[{place}]") for place, part in enumerate(content))


def _part(part: Any, where: str) -> str:
    told = mapping(part, where, required=True)
    name = told.get("type")
    text = told.get(name) if name in ("text", "refusal") else None
    if not isinstance(text, str):
        raise InvalidRequest("Only parts of text are taken here.", field=where)
    return text


def _calls(given: Any, where: str) -> tuple[PastCall, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidRequest(f"Tool calls must be a list, not {kind(given)}.", field=where)
    calls = tuple(_call(call, f"{where}[{place}]") for place, call in enumerate(given))
    if len({call.id for call in calls}) < len(calls):
        raise InvalidRequest("Two tool calls have the same id.", field=where)
    return calls


def _call(given: Any, where: str) -> PastCall:
    call = mapping(given, where, required=True)
    function = mapping(call.get("function"), f"{where}.function", required=True)
    name, made, arguments = function.get("name"), call.get("id"), function.get("arguments")
    if not isinstance(made, str) or not made:
        raise InvalidRequest("A tool call must have an id.", field=f"{where}.id")
    if not isinstance(arguments, str):
        raise InvalidRequest("A tool call's arguments must be a string.", field=f"{where}.function.arguments")
    return PastCall(id=made, name=tool_name(name, f"{where}.function.name"), arguments=arguments)


def _tools(given: Any) -> tuple[OfferedTool, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidRequest(f"The field `tools` must be a list, not {kind(given)}.", field="tools")
    tools = tuple(_tool(tool, f"tools[{place}]") for place, tool in enumerate(given))
    if len({tool.name for tool in tools}) < len(tools):
        raise InvalidRequest("Two tools have the same name.", field="tools")
    return tools


def _tool(given: Any, where: str) -> OfferedTool:
    tool = mapping(given, where, required=True)
    if tool.get("type") != "function":
        raise InvalidRequest("A tool's type must be `function`.", field=f"{where}.type")
    function = mapping(tool.get("function"), f"{where}.function", required=True)
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        raise InvalidRequest("A tool's description must be a string.", field=f"{where}.function.description")
    parameters = mapping(function.get("parameters"), f"{where}.function.parameters")
    return OfferedTool(
        name=tool_name(function.get("name"), f"{where}.function.name"),
        description=description or "",
        parameters=dict(parameters) or {"type": "object", "properties": {}},
    )


def tool_name(name: Any, where: str) -> str:
    """A tool's name, as the API and the servers that speak it take one. Raises: InvalidRequest."""
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise InvalidRequest("A tool's name must hold 1 to 128 of A-Z, a-z, 0-9, `_`, `.` and `-`.", field=where)
    return name


def _tool_choice(given: Any, tools: Sequence[OfferedTool]) -> tuple[str | None, dict[str, Any]]:
    """The choice as a word, or as the option that names one tool; nothing where there are no tools to choose from."""
    if given is None or (not tools and given in ("auto", "none")):
        return None, {}
    if not tools:
        raise InvalidRequest("The field `tool_choice` needs `tools`.", field="tool_choice")
    if given in ("auto", "none", "required"):
        return str(given), {}
    function = given.get("function") if isinstance(given, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if name not in [tool.name for tool in tools]:
        raise InvalidRequest("It must be `auto`, `none`, `required` or one of the tools.", field="tool_choice")
    return None, {"tool_choice": {"type": "function", "function": {"name": name}}}


def _max_tokens(asked: Mapping[str, Any]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):  # the second is the older name of the first
        value = asked.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _TOKENS_MOST:
            raise InvalidRequest(f"The field `{name}` must be a whole number, 1 or more.", field=name)
        return value
    return None


def _options(asked: Mapping[str, Any], tools: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, least, most in _NUMBERS:
        value = asked.get(name)
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidRequest(f"The field `{name}` must be a number from {least:g} to {most:g}.", field=name)
        options[name] = value
    seed = asked.get("seed")
    if seed is not None:
        if not isinstance(seed, int) or isinstance(seed, bool) or not -(1 << 63) <= seed < 1 << 63:
            raise InvalidRequest("The field `seed` must be a whole number of 64 bits.", field="seed")
        options["seed"] = seed
    if (stops := _stops(asked.get("stop"))) is not None:
        options["stop"] = stops
    if (wanted := asked.get("response_format")) is not None:
        if mapping(wanted, "response_format").get("type") not in _FORMATS:
            raise InvalidRequest(f"Its type must be one of {', '.join(_FORMATS)}.", field="response_format")
        options["response_format"] = wanted
    if tools and asked.get("parallel_tool_calls") is not None:
        options["parallel_tool_calls"] = flag_field(asked, "parallel_tool_calls")
    effort = asked.get("reasoning_effort")
    if effort is not None:
        if not isinstance(effort, str) or not re.fullmatch("[a-z]{1,20}", effort):
            raise InvalidRequest("The field `reasoning_effort` must be a word.", field="reasoning_effort")
        options["reasoning_effort"] = effort
    return options


def _stops(given: Any) -> str | list[str] | None:
    if given is None:
        return None
    stops = [given] if isinstance(given, str) else given
    if not isinstance(stops, list) or len(stops) > _STOPS_MOST or not all(isinstance(s, str) and s for s in stops):
        raise InvalidRequest(
            f"The field `stop` must be a text, or a list of up to {_STOPS_MOST}.", field="stop", limit=_STOPS_MOST
        )
    return given if isinstance(given, str) else stops


def mapping(given: Any, where: str, *, required: bool = False) -> Mapping[str, Any]:
    """An object; an empty one where it may be left out. Raises: InvalidRequest."""
    if given is None and not required:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"This must be an object, not {kind(given)}.", field=where)
    return given
