"""What a client of AG-UI may ask: a `RunAgentInput`, checked field by field.

The protocol has no other way than the client's own list of messages, so that is the history. A stranger wrote all of
it: `system` and `developer` messages are refused, and what the page tells of itself (`context`) reaches the model as
the visitor's words, not as the owner's. Of tool calls only those are taken that the client can run itself (its `tools`
name them) and has answered: the others were run here, and are no part of a later history.

Source: AG-UI 1.0, RunAgentInput (and 0.0.47's, whose `binary` parts are refused as every part that is not text).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols._json import encode_line, kind, request_object
from motamot.protocols.base import Asked, OfferedTool, PastCall, PastMessage, bounded, name_field
from motamot.protocols.openai_request import content_of, mapping, tool_name

__all__ = ["RunAsked", "parse_request"]

_REFUSED = ("system", "developer")
_UNSAID = ("activity", "reasoning")  # what a page shows beside a conversation
_VERSION = re.compile(r"([0-9]{1,4})\.[0-9]{1,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsked(Asked):
    """A run: `thread` is the client's `threadId`, `key` its `runId`.

    declares: the client has declared version 1.0 or a later one, whose words it then knows.
    calls:    the ids of all tool calls in its messages: a new one may not have the same.
    """

    declares: bool = False
    calls: frozenset[str] = frozenset()


def parse_request(body: bytes | Mapping[str, Any], limits: Limits) -> RunAsked:
    """The run as a question. Raises: InvalidRequest; `field` names the place, as in `messages[2].content`."""
    asked = request_object(body, limits)
    thread, run = (_name(asked, name, limits) for name in ("threadId", "runId"))
    if _listed(asked.get("resume"), "resume"):
        raise InvalidRequest("There is no interrupt here to resume from.", field="resume")
    tools = _tools(asked.get("tools"), limits)
    messages, calls = _messages(asked.get("messages"), {tool.name for tool in tools})
    last = max((place for place, (_, message) in enumerate(messages) if message.role == "user"), default=-1)
    if last < 0:
        raise InvalidRequest("There must be a user's message.", field="messages")
    where, question = messages[last]
    if not question.content.strip():
        raise InvalidRequest("Message cannot be empty.", field=f"{where}.content")
    bounded(question.content, f"{where}.content", limits.message_bytes)
    if messages[-1][1].role == "assistant":
        raise InvalidRequest(
            "There is nothing to answer: the last message must be a user's, or the result of a tool of yours.",
            field=messages[-1][0],
        )
    past, followed = ([message for _, message in part] for part in (messages[:last], messages[last + 1 :]))
    bounded("".join(map(_weighed, followed)), "messages", limits.tool_result_bytes)
    if context := _context(asked.get("context"), limits):
        past.append(PastMessage(role="user", content=context))
    return RunAsked(
        message=question.content,
        thread=thread,
        key=run,
        history=tuple(past),
        followed=tuple(followed),
        tools=tools,
        declares=_declares(asked.get("protocolVersion")),
        calls=frozenset(calls),
    )


def _name(asked: Mapping[str, Any], name: str, limits: Limits) -> str:
    value = name_field(asked, name, limits)
    if value is None:
        raise InvalidRequest(f"The field `{name}` is missing.", field=name)
    return value


def _listed(given: Any, where: str) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise InvalidRequest(f"This must be a list, not {kind(given)}.", field=where)
    return given


def _declares(version: Any) -> bool:
    """Whether it is 1.0 or later; what is no version says nothing, as an absent one does."""
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    return found is not None and int(found[1]) >= 1


def _weighed(message: PastMessage) -> str:
    return "".join((message.content, *(call.arguments for call in message.calls)))


# --- messages


def _messages(given: Any, offered: Container[str]) -> tuple[list[tuple[str, PastMessage]], set[str]]:
    """What was said, each with its place; and the ids of all tool calls."""
    listed = [(f"messages[{place}]", message) for place, message in enumerate(_listed(given, "messages"))]
    checked = [(where, message, _role(message, where)) for where, message in listed]
    results: dict[str, PastMessage] = {}
    for where, message, role in checked:
        if role == "tool":
            result = _result(message, where)
            results.setdefault(result.call_id or "", result)
    said: list[tuple[str, PastMessage]] = []
    seen: set[str] = set()
    for where, message, role in checked:
        if role == "user":
            said.append((where, PastMessage(role="user", content=content_of(message, where))))
        elif role == "assistant":
            calls: dict[str, PastCall] = {}
            for call in _calls(message.get("toolCalls"), f"{where}.toolCalls"):
                if call.id not in seen:  # of two under one id, a result could be either's
                    calls[call.id] = call
                    seen.add(call.id)
            kept = tuple(call for call in calls.values() if call.name in offered and call.id in results)
            text = PastMessage(role="assistant", content=content_of(message, where, optional=True), calls=kept)
            if said and _goes_on(said[-1][1], text):
                said[-1] = (where, replace(text, content=said[-1][1].content + text.content))
            elif text.content or kept:
                said.append((where, text))
            # Wherever the client has put a result, a model takes it right behind its call.
            said += [(where, results[call.id]) for call in kept]
    return said, seen


def _goes_on(before: PastMessage, text: PastMessage) -> bool:
    """Whether a text is the next part of one answer, as our own texts of several turns come: with its blank line."""
    return before.role == "assistant" and not before.calls and text.content.startswith("\n")


def _role(message: Any, where: str) -> str | None:
    role = mapping(message, where, required=True).get("role")
    if role in _REFUSED:
        raise InvalidRequest(f"The role `{role}` is not taken here: the assistant has its own.", field=f"{where}.role")
    if role in _UNSAID:
        return None
    if role not in ("user", "assistant", "tool"):
        raise InvalidRequest("A role must be `user`, `assistant` or `tool`.", field=f"{where}.role")
    return str(role)


def _result(message: Mapping[str, Any], where: str) -> PastMessage:
    call, error = message.get("toolCallId"), message.get("error")
    if not isinstance(call, str) or not call:
        raise InvalidRequest("A tool's message must name the call it answers.", field=f"{where}.toolCallId")
    if error is not None and not isinstance(error, str):
        raise InvalidRequest(f"An error must be a string, not {kind(error)}.", field=f"{where}.error")
    return PastMessage(role="tool", content=content_of(message, where) or error or "", call_id=call)


def _calls(given: Any, where: str) -> Iterable[PastCall]:
    for place, one in enumerate(_listed(given, where)):
        call = mapping(one, f"{where}[{place}]", required=True)
        function = mapping(call.get("function"), f"{where}[{place}].function", required=True)
        made, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        for field, value in (("id", made), ("function.name", name), ("function.arguments", arguments)):
            if not isinstance(value, str):
                raise InvalidRequest(f"This must be a string, not {kind(value)}.", field=f"{where}[{place}].{field}")
        yield PastCall(id=str(made), name=str(name), arguments=str(arguments))


# --- what the page brings


def _tools(given: Any, limits: Limits) -> tuple[OfferedTool, ...]:
    tools = tuple(_tool(tool, f"tools[{place}]") for place, tool in enumerate(_listed(given, "tools")))
    if len({tool.name for tool in tools}) < len(tools):
        raise InvalidRequest("Two tools have the same name.", field="tools")
    # They are paid for with each question, as the question itself is.
    bounded(
        "".join(f"{tool.description}{encode_line(tool.parameters).decode()}" for tool in tools),
        "tools",
        limits.message_bytes,
    )
    return tools


def _tool(given: Any, where: str) -> OfferedTool:
    tool = mapping(given, where, required=True)
    description = tool.get("description")
    if description is not None and not isinstance(description, str):
        raise InvalidRequest(f"A description must be a string, not {kind(description)}.", field=f"{where}.description")
    parameters = mapping(tool.get("parameters"), f"{where}.parameters")
    return OfferedTool(
        name=tool_name(tool.get("name"), f"{where}.name"),
        description=description or "",
        parameters=dict(parameters) or {"type": "object", "properties": {}},
    )


def _context(given: Any, limits: Limits) -> str:
    """What the page tells of itself, as the visitor's words; "" for nothing."""
    told: list[str] = []
    for place, one in enumerate(_listed(given, "context")):
        entry = mapping(one, f"context[{place}]", required=True)
        for name in ("description", "value"):
            if not isinstance(entry.get(name), str):
                found = f"This must be a string, not {kind(entry.get(name))}."
                raise InvalidRequest(found, field=f"context[{place}].{name}")
        told.append(f"{entry['description']}\n{entry['value']}".strip())
    context = "\n\n".join(filter(None, told))
    bounded(context, "context", limits.message_bytes)
    return context
