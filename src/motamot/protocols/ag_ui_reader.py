"""The client's end of `ag-ui`: the events of our own server, and of any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from motamot.answer import (
    AnswerEvent,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Source,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    Usage,
)
from motamot.protocols._json import encodable, loads, plain
from motamot.protocols.base import READER_EVENT_BYTES, Reader, failure, failure_read, has_failed
from motamot.sse import Event

__all__ = ["OURS", "AgUiReader"]

OURS = "motamot."
"""How the names of our own `CUSTOM` events begin."""

_THING_BYTES = 64  # what anything a reader keeps counts at least


class AgUiReader(Reader):
    """The client's end, for our own server and any other: all events of 1.0, their `CHUNK` forms, 0.x's `THINKING_*`.

    Tolerant of order: a text needs no start, a call that was not ended ends with its run. A call is given whole, when
    it has ended. What is no part of an answer (state, snapshots of messages, activities, steps, subagents' lives, raw
    and foreign custom events, encrypted values) gives nothing; nor do the texts of other roles than `assistant`.
    """

    def __init__(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes=max_event_bytes)
        self._run: Started | None = None  # held until it is clear that nothing more is said of it
        self._begun = False
        self._said_end: Ended | None = None
        self._said_return: tuple[ToolReturned, bool] | None = None
        self._message: str | None = None  # the last one's id: a chunk may leave it out
        self._foreign: set[str | None] = set()  # messages of other roles
        self._calls: dict[str, _Call] = {}  # not ended yet, in their order
        self._names: dict[str, str] = {}  # of those that have
        self._chunked: str | None = None  # the call that chunks are of: no event ends it
        self._room = max_event_bytes  # for all that is kept

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        try:
            told = loads(event.data)
        except ValueError:
            return
        kind = told.get("type") if isinstance(told, dict) else None
        read = _READ.get(kind) if isinstance(kind, str) else None
        if read is None:
            return
        if not (kind == "CUSTOM" and told.get("name") == f"{OURS}started"):
            yield from self._told_run()
        if kind != "TOOL_CALL_CHUNK" or _text(told, "toolCallId") not in ("", self._chunked):
            yield from self._ended_call(self._chunked)
        yield from read(self, told)
        if self._room < 0:
            yield failure(Code.LIMIT)

    def _at_close(self) -> Iterable[AnswerEvent]:
        return (*self._told_run(), *self._ended_calls(), failure(Code.UPSTREAM_CUT))

    def _keep(self, *texts: str) -> None:
        self._room -= _THING_BYTES + sum(map(len, texts))

    # The run

    def _run_started(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        if not self._begun:
            self._begun = True
            self._run = Started(exchange=_text(told, "runId"), conversation=_text(told, "threadId"))
        return ()

    def _told_run(self) -> Iterable[AnswerEvent]:
        run, self._run = self._run, None
        return (run,) if run is not None else ()

    def _run_finished(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        end = self._said_end
        if end is None or has_failed(end):
            outcome = told.get("outcome")
            cancelled = isinstance(outcome, dict) and outcome.get("type") == "cancelled"
            end = Ended(outcome=Outcome.STOPPED if cancelled else Outcome.COMPLETE, usage=_usage(told))
        return (*self._ended_calls(), end)

    def _run_error(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        end = self._said_end
        if end is None or not has_failed(end):
            end = msgspec.structs.replace(failure_read(told.get("code"), told.get("message")), usage=_usage(told))
        return (*self._ended_calls(), end)

    def _custom(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        name, value = _text(told, "name"), told.get("value")
        kind = _OUR_KINDS.get(name.removeprefix(OURS)) if name.startswith(OURS) else None
        if kind is None or not isinstance(value, dict):
            return ()
        try:
            event = msgspec.convert(plain(value), kind)
        except (msgspec.MsgspecError, RecursionError):
            return self._told_run()  # of a newer server, perhaps: AG-UI's own events say as much as they can
        match event:
            case Started():
                run = list(self._told_run())
                return (event,) if run else ()
            case Ended():
                self._said_end = event
                return ()
            case ToolReturned():
                self._said_return = (event, value.get("hidden") is True)
                return ()
        return (event,)

    # Texts

    def _words(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        name, role, delta = told.get("messageId"), told.get("role"), _text(told, "delta")
        if isinstance(name, str):
            self._message = name
        if isinstance(role, str) and role != "assistant":
            self._foreign.add(self._message)
            self._keep(self._message or "")
        return (Text(delta),) if delta and self._message not in self._foreign else ()

    def _thoughts(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        delta = encodable(_text(told, "delta"))
        return (Reasoning(delta),) if delta else ()

    # Tools

    def _call(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        """The start of a call, a piece of its arguments, or a chunk, which may be both, and the next one's start."""
        name, delta = encodable(_text(told, "toolCallName")), _text(told, "delta")
        made = encodable(_text(told, "toolCallId"))
        if told["type"] == "TOOL_CALL_CHUNK":
            made = self._chunked = made or self._chunked or ""
        call = self._calls.setdefault(made, _Call())
        call.name = name or call.name
        if delta:
            call.arguments.append(delta)
        self._keep(made, name, delta)
        return ()

    def _call_ended(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        return self._ended_call(encodable(_text(told, "toolCallId")))

    def _ended_call(self, made: str | None) -> Iterable[AnswerEvent]:
        if made is None:
            return ()
        if made == self._chunked:
            self._chunked = None
        call = self._calls.pop(made, None)
        if call is None:
            return ()
        self._names[made] = call.name
        return (ToolCalled(id=made, name=call.name, arguments=_arguments("".join(call.arguments))),)

    def _ended_calls(self) -> Iterable[AnswerEvent]:
        return [event for made in list(self._calls) for event in self._ended_call(made)]

    def _result(self, told: dict[str, Any]) -> Iterable[AnswerEvent]:
        made, content = encodable(_text(told, "toolCallId")), told.get("content")
        if isinstance(content, list):  # 1.0's parts
            content = "".join(_text(part, "text") for part in content if isinstance(part, dict))
        result = encodable(content) if isinstance(content, str) else None
        said, self._said_return = self._said_return, None
        called = self._ended_call(made)
        if said is not None and said[0].id == made:
            return (*called, msgspec.structs.replace(said[0], result=None if said[1] else result))
        return (*called, ToolReturned(id=made, name=self._names.get(made, ""), status="ok", result=result))


class _Call:
    """A tool call under way."""

    __slots__ = ("arguments", "name")

    def __init__(self) -> None:
        self.name = ""
        self.arguments: list[str] = []


_OUR_KINDS: Mapping[str, type[AnswerEvent]] = MappingProxyType(
    {str(kind.__struct_config__.tag): kind for kind in (Started, Routed, Cited, ToolReturned, Ended)}
)
_READ: Mapping[str, Callable[[AgUiReader, dict[str, Any]], Iterable[AnswerEvent]]] = MappingProxyType(
    {
        "RUN_STARTED": AgUiReader._run_started,
        "RUN_FINISHED": AgUiReader._run_finished,
        "RUN_ERROR": AgUiReader._run_error,
        "TEXT_MESSAGE_START": AgUiReader._words,
        "TEXT_MESSAGE_CONTENT": AgUiReader._words,
        "TEXT_MESSAGE_CHUNK": AgUiReader._words,
        "REASONING_MESSAGE_CONTENT": AgUiReader._thoughts,
        "REASONING_MESSAGE_CHUNK": AgUiReader._thoughts,
        "THINKING_TEXT_MESSAGE_CONTENT": AgUiReader._thoughts,
        "TOOL_CALL_START": AgUiReader._call,
        "TOOL_CALL_ARGS": AgUiReader._call,
        "TOOL_CALL_CHUNK": AgUiReader._call,
        "TOOL_CALL_END": AgUiReader._call_ended,
        "TOOL_CALL_RESULT": AgUiReader._result,
        "CUSTOM": AgUiReader._custom,
    }
)
"""What each event means; the others mean nothing here, as unknown ones do."""


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""


def _arguments(raw: str) -> Any:
    """The arguments' object; the text itself where it is not one; None where none were told."""
    if not raw:
        return None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return encodable(raw)
    return plain(value) if isinstance(value, dict) else encodable(raw)


def _usage(told: dict[str, Any]) -> Usage | None:
    """The sum over the models that were asked; None where nothing is told."""
    listed = told.get("usage")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if not entries:
        return None

    def total(name: str) -> int:
        counts = (entry.get(name) for entry in entries)
        return sum(count for count in counts if type(count) is int and 0 <= count < 1 << 53)

    return Usage(
        prompt_tokens=total("inputTokens"),
        completion_tokens=total("outputTokens"),
        cached_tokens=total("cachedInputTokens"),
        reasoning_tokens=total("reasoningTokens"),
        source=Source.REPORTED,
    )
