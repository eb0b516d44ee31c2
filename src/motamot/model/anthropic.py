"""Completions as Anthropic's messages API streams them.

Source: the API's description of streamed messages: named events whose data carries the same `type`. Event, block and
delta types may be added; what is not known is skipped (dialect-anthropic-ping).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from motamot.answer import AnswerEvent, Source
from motamot.limits import Limits
from motamot.model.base import Dialect
from motamot.model.events import EventStreamAssembly
from motamot.model.words import detail_of, json_text
from motamot.sse import Event

__all__ = ["AnthropicAssembly"]

_KNOWN = {
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "error",
    "message",
    "message_delta",
    "message_start",
    "message_stop",
}
_BLOCK_INDEX_MAX = 10_000


@dataclass(slots=True)
class _ToolBlock:
    """A `tool_use` block: its input comes in pieces, or whole with its start."""

    id: Any
    name: Any
    whole: Any
    opened: bool = False


class AnthropicAssembly(EventStreamAssembly):
    """A message: text and thinking blocks, tool calls by block, cumulative usage with the input at the start.

    Until `message_delta` has brought the last usage, `turn().usage` has source `unknown`: the input is exact, the
    output a first count. Tools that the provider runs itself (`server_tool_use`) are no calls of ours.
    """

    _end_mark_name = "message_stop"

    def __init__(self, *, dialect: Dialect | None = None, limits: Limits | None = None) -> None:
        super().__init__(dialect=dialect, limits=limits)
        self._report: dict[str, Any] = {}
        self._blocks: dict[int, _ToolBlock] = {}

    def _skips(self, event: Event, value: Any) -> bool:
        return not isinstance(value, dict) and event.event not in _KNOWN

    def _value(self, value: Any, out: list[AnswerEvent]) -> None:
        if not isinstance(value, dict):
            self._note("json-parse", "the data of an event is no object")
            return
        kind = value.get("type")
        if kind == "content_block_delta":
            self._delta(value, out)
        elif kind == "content_block_start":
            self._block(value, out)
        elif kind == "content_block_stop":
            self._whole_input(value.get("index"))
        elif kind == "message_start":
            self._message(value.get("message"), out)
        elif kind == "message_delta":
            self._message_delta(value)
        elif kind == "message_stop":
            self._end_mark = True
            self._done = True
        elif kind == "message":  # a whole reply in JSON
            self._message(value, out)
        elif kind == "error" or value.get("error"):
            self._note("error-in-stream", "an error came among the events")
            self._fail("The model's server reported an error.", detail=detail_of(value.get("error") or value))
        elif not isinstance(kind, str):
            self._clue = self._clue or detail_of(value)

    def _message(self, message: Any, out: list[AnswerEvent]) -> None:
        """The message at its start, empty by the book; or, as a reply in JSON, all of it."""
        if not isinstance(message, dict):
            return
        self._add_model(message.get("model"))
        self._count(message.get("usage"), last=message.get("stop_reason") is not None)
        content = message.get("content")
        for place, block in enumerate(content if isinstance(content, list) else []):
            self._block({"index": place, "content_block": block}, out)
            self._whole_input(place)
        self._add_reason(message.get("stop_reason"))

    def _message_delta(self, value: dict[str, Any]) -> None:
        delta = value.get("delta")
        if isinstance(delta, dict):
            self._add_reason(delta.get("stop_reason"))
        self._count(value.get("usage"), last=True)

    def _count(self, usage: Any, *, last: bool) -> None:
        """Usage is cumulative and comes in parts: a later value of a count takes the place of the earlier."""
        if not isinstance(usage, dict):
            return
        self._report.update((key, count) for key, count in usage.items() if count is not None)
        if self._add_usage(self._report) and not last and self._usage is not None:
            self._usage = msgspec.structs.replace(self._usage, source=Source.UNKNOWN)

    def _block(self, value: dict[str, Any], out: list[AnswerEvent]) -> None:
        """A content block begins; its text is empty by the book, and kept if it is not."""
        block, index = value.get("content_block"), value.get("index")
        if not isinstance(block, dict):
            return
        kind = block.get("type")
        if kind == "text" and _text(block, "text"):
            self._add_text(block["text"], out)
        elif kind == "thinking" and _text(block, "thinking"):
            self._add_reasoning(block["thinking"], out)
        elif kind == "tool_use" and type(index) is int and 0 <= index <= _BLOCK_INDEX_MAX:
            self._blocks[index] = _ToolBlock(id=block.get("id"), name=block.get("name"), whole=block.get("input"))
            self._add_tools([_fragment(index, "", id=block.get("id"), name=block.get("name"))])

    def _delta(self, value: dict[str, Any], out: list[AnswerEvent]) -> None:
        delta = value.get("delta")
        if not isinstance(delta, dict):
            self._note("delta-missing", "a content_block_delta has no delta")
            return
        kind = delta.get("type")
        if kind == "text_delta" and _text(delta, "text"):
            self._add_text(delta["text"], out)
        elif kind == "thinking_delta" and _text(delta, "thinking"):
            self._add_reasoning(delta["thinking"], out)
        elif kind == "input_json_delta" and _text(delta, "partial_json"):
            block = self._blocks.get(value["index"]) if type(value.get("index")) is int else None
            if block is not None:  # a block of the provider's own tools is none of ours
                block.opened = True
                self._add_tools([_fragment(value["index"], delta["partial_json"])])

    def _whole_input(self, index: Any) -> None:
        """A tool block has ended, and its input came only with its start."""
        block = self._blocks.get(index) if type(index) is int else None
        if block is not None and not block.opened and block.whole:
            block.opened = True
            self._add_tools([_fragment(index, json_text(block.whole))])


def _text(value: dict[str, Any], key: str) -> bool:
    return isinstance(value.get(key), str) and bool(value[key])


def _fragment(index: int, arguments: str, **named: Any) -> dict[str, Any]:
    """A tool block's piece as a fragment by OpenAI's book, where the block's index is the call's."""
    fragment: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
    if "name" in named:
        fragment["function"]["name"] = named["name"]
    if "id" in named:
        fragment["id"] = named["id"]
    return fragment
