"""Tools are plain typed functions; whatever they do, the model is told and the exchange goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from motamot.errors import SettingsError
from motamot.exchange.tools import ToolContext, ToolError, ToolResult, run_tool, tool_from
from motamot.limits import Limits
from motamot.model.turn import ToolCall

CONTEXT = ToolContext(visitor="v", exchange="x", conversation="c", assistant="a")


def called(function: Callable[..., Any], arguments: dict[str, Any] | None, **limits: Any) -> ToolResult:
    call = ToolCall(id="1", name=function.__name__, raw="{}", arguments=arguments)
    return asyncio.run(run_tool([tool_from(function)], call, CONTEXT, Limits(**limits)))


def test_the_schema_comes_from_annotations_and_docstring() -> None:
    def order_status(
        ctx: ToolContext, order: str, lang: Literal["en", "fr"] = "en", few: Annotated[int, Field(ge=1)] = 1
    ) -> str:
        """Where an order is.

        Args:
            order: the number on the receipt
        """
        return ""

    spec = tool_from(order_status).spec
    assert (spec.name, spec.description) == ("order_status", "Where an order is.")
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "order": {"type": "string", "description": "the number on the receipt"},
            "lang": {"type": "string", "enum": ["en", "fr"], "default": "en"},
            "few": {"type": "integer", "minimum": 1, "default": 1},
        },
        "required": ["order"],
    }


def test_a_function_without_arguments_is_a_tool() -> None:
    def now() -> str:
        return "noon"

    assert tool_from(now).spec.parameters["properties"] == {}
    assert called(now, {}) == ToolResult(status="ok", content="noon")


def test_a_tool_may_be_sync_or_async_and_gets_its_context() -> None:
    async def who(ctx: ToolContext, n: int) -> dict[str, Any]:
        return {"visitor": ctx.visitor, "n": n}

    def sync(n: int, ctx: ToolContext) -> list[int]:
        assert threading.current_thread() is not threading.main_thread()
        return [n]

    assert called(who, {"n": 1}).content == '{"visitor":"v","n":1}'
    assert called(sync, {"n": 1}).content == "[1]"


def test_a_tool_with_keyword_arguments_takes_whatever_the_model_gives() -> None:
    def anything(first: int = 0, **more: Any) -> dict[str, Any]:
        return {"first": first, **more}

    assert tool_from(anything).spec.parameters["additionalProperties"] is True
    assert called(anything, {"first": 1, "b": [2]}).content == '{"first":1,"b":[2]}'


@pytest.mark.parametrize("arguments", [{}, {"n": "many"}, {"n": 1, "m": 2}, {"n": None}, None])
def test_arguments_that_do_not_fit_the_schema_are_told_to_the_model(arguments: dict[str, Any] | None) -> None:
    def tool(n: int) -> int:
        raise AssertionError("ran")

    assert called(tool, arguments).status == "invalid_arguments"


def test_a_call_with_a_problem_never_runs() -> None:
    def tool() -> int:
        raise AssertionError("ran")

    call = ToolCall(id="1", name="tool", raw="{", arguments={}, problem="they were cut off")
    result = asyncio.run(run_tool([tool_from(tool)], call, CONTEXT, Limits()))
    assert (result.status, "cut off" in result.content) == ("invalid_arguments", True)


def test_an_unknown_tool_is_answered_with_the_known_ones() -> None:
    def tool() -> int:
        return 1

    call = ToolCall(id="1", name="rm", raw="{}", arguments={})
    result = asyncio.run(run_tool([tool_from(tool)], call, CONTEXT, Limits()))
    assert (result.status, "tool" in result.content) == ("unknown_tool", True)


def test_what_a_tool_raises_stays_with_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    def tool() -> int:
        raise ValueError("password=hunter2")

    result = called(tool, {})
    assert (result.status, result.content) == ("error", "The tool failed.")
    assert result.detail is not None and "hunter2" in result.detail
    assert "tool tool failed" in caplog.text


def test_a_tool_error_is_told_to_the_model() -> None:
    def tool() -> int:
        raise ToolError("There is no such order.")

    assert called(tool, {}) == ToolResult(status="error", content="There is no such order.")


@pytest.mark.parametrize("value", [object(), {1, object()}, b"\xff"])
def test_a_result_that_is_not_json_is_an_error(value: object, caplog: pytest.LogCaptureFixture) -> None:
    def tool() -> object:
        return value

    assert called(tool, {}).status == "error"


def test_a_result_past_the_limit_is_left_out() -> None:
    def tool() -> str:
        return "é" * 60

    result = called(tool, {}, tool_result_bytes=100)
    assert (result.status, "é" in result.content) == ("error", False)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_tool_that_hangs_is_given_up(asynchronous: bool) -> None:
    released = threading.Event()

    async def tool() -> None:
        await asyncio.sleep(30)

    def hangs() -> None:
        released.wait(30)

    began = time.monotonic()
    assert called(tool if asynchronous else hangs, {}, tool_seconds=0.1).status == "timeout"
    assert time.monotonic() - began < 5
    released.set()


def test_a_tool_may_raise_anything_at_all(caplog: pytest.LogCaptureFixture) -> None:
    def stops() -> None:
        raise StopIteration("x")

    async def times_out() -> None:
        raise TimeoutError

    assert called(stops, {}).status == "error"
    assert called(times_out, {}).status == "error"


def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_given() -> None:
    def untyped(n) -> None:  # type: ignore[no-untyped-def]
        pass

    def many(*args: int) -> None:
        pass

    def odd(n: threading.Event) -> None:
        pass

    for function, why in ((untyped, "needs a type"), (many, "by name"), (odd, "JSON Schema"), (lambda: 1, "named")):
        with pytest.raises(SettingsError, match=why):
            tool_from(function)
