"""The responses of model servers, read only as far as is counted: whether text came, how it ended, what it used."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from motamot.answer import AnswerEvent, Reasoning, Text, Usage
from motamot.errors import LimitExceeded
from motamot.limits import Limits
from motamot.model.assembly import Assembly, assembly_for
from motamot.model.words import usage_of
from motamot.sse import Decoder

__all__ = ["Reply", "reply_of"]

_WHOLE_BYTES = 8 << 20
"""Of a response in one piece that is kept to be read."""
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
# A meter cuts nothing off: what is too long for a page is still to be counted, as far as anybody would have read.
_LIMITS = Limits(answer_bytes=32 << 20, answer_events=10_000_000)


class Reply(ABC):
    """One response's body.

    begun: text, reasoning or a call has come. size: bytes of answer text and reasoning, in UTF-8.
    finish: in the words of chat completions. error: the server reported one. usage: as reported, or None.
    """

    begun = False
    size = 0
    finish = ""
    error = False
    usage: Usage | None = None

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """The next bytes, without transfer coding or compression."""

    @abstractmethod
    def close(self) -> None:
        """There is no more."""


def reply_of(kind: str, content_type: str) -> Reply:
    """A reader for the response of a request of this kind."""
    streams = "event-stream" in content_type.lower()
    if kind == "openai-responses":
        return _Responses() if streams else _Whole(_read_response)
    if kind == "anthropic-messages" and not streams:
        return _Whole(_read_message)
    return _Assembled(assembly_for(kind, limits=_LIMITS))  # what is in one piece, too


class _Assembled(Reply):
    """What motamot's own assembly makes of it."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly: Assembly | None = assembly  # until the end: it holds the whole answer

    def feed(self, data: bytes) -> None:
        if self._assembly is not None:
            self._count(self._assembly, self._assembly.feed(data))

    def _count(self, assembly: Assembly, events: list[AnswerEvent]) -> None:
        self.size += sum(len(event.text.encode()) for event in events if isinstance(event, Text | Reasoning))
        self.begun = self.begun or assembly.deltas > 0

    def close(self) -> None:
        assembly = self._assembly
        if assembly is None:
            return
        self._count(assembly, assembly.close())
        turn = assembly.turn()
        self.finish = turn.finish if turn.finish in ("stop", "length", "tool_calls", "content_filter") else ""
        self.error = turn.finish == "error"
        self.usage = turn.usage
        self._assembly = None


class _Whole(Reply):
    """A JSON document."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        if len(self._body) <= _WHOLE_BYTES:
            self._body += data

    def close(self) -> None:
        try:
            said = json.loads(self._body)
        except (ValueError, RecursionError):
            return
        self._body.clear()
        if isinstance(said, dict):
            self._read(self, said)


class _Responses(Reply):
    """OpenAI's Responses: named events, the counts in the last one."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_event_bytes=_WHOLE_BYTES)

    def feed(self, data: bytes) -> None:
        try:
            events = self._decoder.feed(data)
        except LimitExceeded:
            return
        for event in events:
            if event.event.endswith(".delta"):
                self.begun = True
                self.size += len(str(_object(event.data).get("delta", "")).encode("utf-8", "surrogatepass"))
            elif event.event in ("response.completed", "response.incomplete", "response.failed"):
                response = _object(event.data).get("response")
                if isinstance(response, dict):
                    _read_response(self, response)
            elif event.event == "error":
                self.error = True

    def close(self) -> None:
        pass


def _object(data: str) -> dict[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _read_response(reply: Reply, said: dict[str, Any]) -> None:
    output = said.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    reply.begun = reply.begun or bool(items)
    reply.error = reply.error or said.get("status") == "failed" or bool(said.get("error"))
    if said.get("status") == "completed":
        reply.finish = "tool_calls" if any(item.get("type") == "function_call" for item in items) else "stop"
    elif isinstance(details := said.get("incomplete_details"), dict):
        reply.finish = _INCOMPLETE.get(str(details.get("reason")), "")
    reply.usage = usage_of(said.get("usage"))


def _read_message(reply: Reply, said: dict[str, Any]) -> None:
    reply.begun = bool(said.get("content"))
    reply.error = said.get("type") == "error"
    reply.finish = _REASONS.get(
        str(said.get("stop_reason")), "content_filter" if said.get("stop_reason") == "refusal" else ""
    )
    reply.usage = usage_of(said.get("usage"))
