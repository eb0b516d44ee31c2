"""Tools: plain typed functions that the model may call. Schema and checks come from annotations and docstring."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
from docstring_parser import parse as parse_docstring
from pydantic_core import to_json

from motamot.answer import Cited
from motamot.errors import MotamotError, SettingsError
from motamot.exchange.sources import Sourced
from motamot.limits import Limits
from motamot.model.turn import ToolCall, ToolSpec

__all__ = ["Sourced", "Tool", "ToolContext", "ToolError", "ToolResult", "run_tool", "tool_from"]

_logger = logging.getLogger("motamot.tools")


class ToolError(MotamotError):
    """Raised by a tool to tell the model why it can't do what was asked; other exceptions' texts stay with us."""

    code = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of who asks. visitor: as your `identify` named them, else the hash of their secret."""

    visitor: str
    exchange: str
    conversation: str
    assistant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What goes back to the model. status: as in `ToolReturned`; detail: for the operator, never for the model.

    sources: where it has them, as a tool that returns `Sourced` says.
    """

    status: str
    content: str
    detail: str | None = None
    sources: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the model may call, with what it is told of it and how its arguments are checked."""

    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[pydantic.BaseModel]
    context: str | None = None  # name of the parameter that takes the ToolContext


def tool_from(function: Callable[..., Any]) -> Tool:
    """A tool from a plain typed function, sync or async.

    The description is the docstring's text, a parameter's the docstring's line for it. A parameter annotated
    `ToolContext` is filled in by us and not shown to the model.
    Raises: SettingsError for a function whose arguments have no type, or none that JSON can carry.
    """
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise SettingsError(f"a tool must be a named function; {function!r} has no name a model could call it by")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise SettingsError(f"tool {name}: its annotations can't be resolved: {error}") from error
    docs = parse_docstring(inspect.getdoc(function) or "")
    described = {param.arg_name: param.description for param in docs.params}
    fields: dict[str, Any] = {}
    context = None
    extra: Literal["allow", "forbid"] = "forbid"
    for parameter in inspect.signature(function).parameters.values():
        if hints.get(parameter.name) is ToolContext:
            context = parameter.name
            continue
        if parameter.kind is parameter.VAR_KEYWORD:  # takes whatever else the model gives
            extra = "allow"
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise SettingsError(f"tool {name}: parameter {parameter.name} must be one that can be given by name")
        if parameter.name not in hints:
            raise SettingsError(f"tool {name}: parameter {parameter.name} needs a type, so that the model is told")
        default = ... if parameter.default is parameter.empty else parameter.default
        about = pydantic.Field(default, description=described.get(parameter.name))
        fields[parameter.name] = (hints[parameter.name], about)
    try:
        model = pydantic.create_model(name, __config__=pydantic.ConfigDict(extra=extra), **fields)
        schema = model.model_json_schema()
    except (pydantic.PydanticUserError, NameError, TypeError) as error:
        raise SettingsError(f"tool {name}: its arguments can't be written as a JSON Schema: {error}") from error
    schema.pop("title", None)
    for described_field in schema.get("properties", {}).values():
        described_field.pop("title", None)
    schema.setdefault("properties", {})
    description = "\n\n".join(part for part in (docs.short_description, docs.long_description) if part)
    spec = ToolSpec(name=name, description=description or name.replace("_", " "), parameters=schema)
    return Tool(spec=spec, function=function, arguments=model, context=context)


async def run_tool(tools: Sequence[Tool], call: ToolCall, context: ToolContext, limits: Limits) -> ToolResult:
    """Run one call and give what the model is told, whatever the tool does. Cancelling it cancels the tool."""
    tool = next((tool for tool in tools if tool.spec.name == call.name), None)
    if tool is None:
        known = ", ".join(tool.spec.name for tool in tools)
        return ToolResult(status="unknown_tool", content=f"There is no tool of this name. There are: {known}.")
    if call.problem is not None or call.arguments is None:
        problem = call.problem or "they are not a JSON object"
        return ToolResult(status="invalid_arguments", content=f"The arguments can't be used: {problem}.")
    try:
        checked = tool.arguments.model_validate(call.arguments)
    except pydantic.ValidationError as error:
        return ToolResult(status="invalid_arguments", content=_complaint(error))
    arguments = {name: getattr(checked, name) for name in type(checked).model_fields} | (checked.model_extra or {})
    if tool.context is not None:
        arguments[tool.context] = context
    try:
        async with asyncio.timeout(limits.tool_seconds) as timeout:
            value = await _invoke(tool.function, arguments)
    except TimeoutError as error:
        if not timeout.expired():  # the tool's own
            return _failed(call, error)
        return ToolResult(status="timeout", content=f"The tool gave nothing within {limits.tool_seconds:g} seconds.")
    except ToolError as error:
        return ToolResult(status="error", content=error.message, detail=error.detail)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything: the model is told, the exchange goes on
        return _failed(call, error)
    return _result(call, value, limits)


async def _invoke(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    value = await _in_thread(function, arguments)
    return await value if inspect.isawaitable(value) else value


def _in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> Awaitable[Any]:
    """Run a sync tool in a thread of its own: one that hangs holds up neither others nor the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: Any = None
        problem: BaseException | None = None
        try:
            value = context.run(function, **arguments)
        except StopIteration as error:  # a future refuses to carry it
            problem = RuntimeError(f"the tool raised StopIteration({error})")
        except BaseException as error:  # noqa: BLE001 - handed to the loop, not kept
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, value, problem)

    threading.Thread(target=work, name=f"tool {getattr(function, '__name__', '')}", daemon=True).start()
    return future


def _result(call: ToolCall, value: Any, limits: Limits) -> ToolResult:
    given: Sequence[object] = value.sources if isinstance(value, Sourced) else ()
    sources = tuple(source for source in given if isinstance(source, Cited))
    if len(sources) < len(given):
        return _failed(call, TypeError("a source is a Cited(title=…)"))
    told = value.content if isinstance(value, Sourced) else value
    try:
        content = told if isinstance(told, str) else to_json(told).decode()
        size = len(content.encode())
    except (ValueError, TypeError, RecursionError) as error:
        return _failed(call, error, "The tool's result can't be written as JSON.")
    if size > limits.tool_result_bytes:
        sorry = f"The tool's result is larger than {limits.tool_result_bytes} bytes and was left out."
        return ToolResult(status="error", content=sorry, detail=f"{call.name}: a result of {size} bytes")
    return ToolResult(status="ok", content=content, sources=sources)


def _failed(call: ToolCall, error: BaseException, told: str = "The tool failed.") -> ToolResult:
    _logger.warning("tool %s failed", call.name, exc_info=error)
    return ToolResult(status="error", content=told, detail=f"{call.name}: {type(error).__name__}: {error}")


def _complaint(error: pydantic.ValidationError) -> str:
    problems = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False)[:10]
    ]
    return "The arguments don't fit: " + "; ".join(problems)
