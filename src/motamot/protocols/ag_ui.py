"""`ag-ui`: the events of AG-UI, for the frontends that speak it.

    data: {"type":"RUN_STARTED","threadId":"t1","runId":"r1"}

    data: {"type":"TEXT_MESSAGE_START","messageId":"Xq3-2","role":"assistant"}

    data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"Xq3-2","delta":"Bon"}

What is written is what clients from 0.0.47 to 1.0 have in common, by their validators and their order rules: no `id:`,
no `event:`, no `[DONE]`, LF only, no empty delta, `role` always, absent fields left out, everything that was opened
closed before the end. The outcome `cancelled`, for which 0.0.59 rejects a run, goes to clients that declare 1.0 alone.
What AG-UI has no field for stands in `CUSTOM` events, `motamot.<kind>`, whose `value` is the event of `motamot.answer`.

Source: AG-UI 1.0 and 0.0.47, the events and their verifiers (`@ag-ui/core`, `@ag-ui/client`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from motamot.answer import (
    AnswerEvent,
    Cited,
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
from motamot.limits import Limits
from motamot.protocols._json import encode_line
from motamot.protocols.ag_ui_reader import OURS, AgUiReader
from motamot.protocols.ag_ui_request import RunAsked, parse_request
from motamot.protocols.base import (
    READER_EVENT_BYTES,
    Asked,
    Loss,
    Protocol,
    Writer,
    failure_words,
    has_failed,
)

__all__ = ["PROTOCOL", "AgUi", "AgUiReader", "AgUiWriter"]

_VERSION = "1.0"
_PIECE = 1 << 20  # characters of one event: from 10 Mi of JSON on, of six for some, AG-UI's client gives up
_CANCELLED = (Outcome.STOPPED, Outcome.ABANDONED)
_encode = msgspec.json.Encoder().encode


class AgUiWriter(Writer):
    """The server's end. `asked` names the run as its client does; without it, the exchange's own names stand for them.

    Texts of different turns, and texts with a tool between them, are messages of their own: put one behind the other
    they are the answer. A turn's tool calls belong to its text's message, as clients put them in their history.
    """

    __slots__ = (
        "_asked",
        "_calls",
        "_closing",
        "_exchange",
        "_lane",
        "_model",
        "_parent",
        "_pending",
        "_prefix",
        "_run",
        "_started",
        "_taken",
    )

    def __init__(self, asked: Asked | None = None, *, exchange: str = "") -> None:
        self._asked = asked
        self._exchange = exchange
        self._run = {"threadId": (asked and asked.thread) or "", "runId": (asked and asked.key) or exchange}
        self._model = ""
        self._started = False
        self._lane: type[AnswerEvent] | None = None  # what is open: a text message, or reasoning
        self._prefix = self._closing = b""
        self._parent: str | None = None  # the message that calls belong to
        self._taken = set(asked.calls) if isinstance(asked, RunAsked) else set()
        self._calls: dict[str, str] = {}  # the ids of calls, by those the model gave them
        self._pending: list[str] = []

    def write(self, number: int, event: AnswerEvent) -> bytes:
        match event:
            case Text() | Reasoning():
                head = b"" if type(event) is self._lane else self._open(number, type(event))
                if len(event.text) > _PIECE:
                    pieces = (event.text[place : place + _PIECE] for place in range(0, len(event.text), _PIECE))
                    return head + b"".join(b"%b%b}\n\n" % (self._prefix, encode_line(piece)) for piece in pieces)
                return b"%b%b%b}\n\n" % (head, self._prefix, encode_line(event.text))
            case Started():
                return self._start(event)
            case ToolCalled():
                return self._called(number, event)
            case ToolReturned():
                return self._returned(number, event)
            case Routed() | Cited():
                return _ours(event)
            case Ended():
                return self._end(event)
        return b""

    def _start(self, event: Started) -> bytes:
        self._started = True
        self._exchange, self._model = event.exchange, event.model
        self._run = {
            "threadId": self._run["threadId"] or event.conversation,
            "runId": self._run["runId"] or event.exchange,
        }
        version = {"protocolVersion": _VERSION} if self._declares else {}
        return _event("RUN_STARTED", **self._run, **version) + _ours(event)

    @property
    def _declares(self) -> bool:
        return isinstance(self._asked, RunAsked) and self._asked.declares

    def _open(self, number: int, lane: type[AnswerEvent]) -> bytes:
        """A message for what follows, under an id of its own."""
        head = self._close()
        name = {"messageId": self._new_id(number)}
        self._lane = lane
        if lane is Text:
            self._parent = name["messageId"]
            opening = _event("TEXT_MESSAGE_START", **name, role="assistant")
            self._closing = _event("TEXT_MESSAGE_END", **name)
            content = {"type": "TEXT_MESSAGE_CONTENT", **name}
        else:
            self._parent = None  # 0.0.47 looks for a call's message at the end of its list alone
            opening = _event("REASONING_START", **name) + _event("REASONING_MESSAGE_START", **name, role="reasoning")
            self._closing = _event("REASONING_MESSAGE_END", **name) + _event("REASONING_END", **name)
            content = {"type": "REASONING_MESSAGE_CONTENT", **name}
        self._prefix = b"data: " + encode_line(content)[:-1] + b',"delta":'
        return head + opening

    def _close(self) -> bytes:
        closing, self._closing, self._lane = self._closing, b"", None
        return closing

    def _new_id(self, number: int) -> str:
        return f"{self._exchange}-{number}"

    def _called(self, number: int, event: ToolCalled) -> bytes:
        """A call, whole. Without a text of its turn it gets a message that the turn's other calls share."""
        head = self._close()
        self._parent = self._parent or self._new_id(number)
        name = {"toolCallId": self._own_id(event.id)}
        self._pending.append(name["toolCallId"])
        arguments = b""
        if event.arguments is not None:
            raw = event.arguments if isinstance(event.arguments, str) else encode_line(event.arguments).decode()
            arguments = _event("TOOL_CALL_ARGS", **name, delta=raw) if raw else b""
        start = _event("TOOL_CALL_START", **name, toolCallName=event.name, parentMessageId=self._parent)
        return head + start + arguments + _event("TOOL_CALL_END", **name)

    def _own_id(self, made: str) -> str:
        """The id of a new call: clients take one they know for the call they know, and some models count from 0."""
        name, number = made, 1
        while name in self._taken:
            number += 1
            name = f"{made}~{number}"
        self._taken.add(name)
        self._calls[made] = name
        return name

    def _returned(self, number: int, event: ToolReturned) -> bytes:
        """Every call that has run gets its result: to clients, one without waits for theirs."""
        head = self._close()
        self._parent = None  # what comes now is another turn's
        call = self._calls.get(event.id, event.id)
        if call in self._pending:
            self._pending.remove(call)
        told = msgspec.structs.replace(event, id=call, result=None)
        hidden = event.result is None
        content = encode_line({"status": event.status}).decode() if hidden else event.result
        result = {"messageId": self._new_id(number), "toolCallId": call, "content": content, "role": "tool"}
        return head + _ours(told, hidden=hidden) + _event("TOOL_CALL_RESULT", **result)

    def _end(self, end: Ended) -> bytes:
        # Before RUN_STARTED nothing may stand but RUN_ERROR.
        head = self._close() + (_ours(end) if self._started else b"")
        usage = {"usage": [_tokens(end.usage, self._model)]} if _known(end.usage) else {}
        if has_failed(end):
            code, message = failure_words(end)
            return head + _event("RUN_ERROR", message=message, code=code, **usage)
        return head + _event("RUN_FINISHED", **self._run, **self._outcome(end), **usage)

    def _outcome(self, end: Ended) -> dict[str, Any]:
        """Why it ended, for clients that know the word; without one they take it for a success, as it mostly is."""
        if not self._declares:
            return {}
        if end.outcome in _CANCELLED:
            return {"outcome": {"type": "cancelled"}}
        if self._pending and self._asked is not None and self._asked.tools:
            return {"outcome": {"type": "success", "pendingToolCallIds": self._pending}}
        return {}


def _event(kind: str, **fields: Any) -> bytes:
    return b"data: " + encode_line({"type": kind, **fields}) + b"\n\n"


def _ours(event: AnswerEvent, **beside: Any) -> bytes:
    """One of our events in a `CUSTOM` one."""
    value = encode_line(event)
    if beside:
        value = value[:-1] + b"," + encode_line(beside)[1:]
    name = _encode(f"{OURS}{event.__struct_config__.tag}")
    return b'data: {"type":"CUSTOM","name":%b,"value":%b}\n\n' % (name, value)


def _known(usage: Usage | None) -> bool:
    """Whether the model's maker counted: there is no field to say that a count is an estimate."""
    return usage is not None and usage.source is Source.REPORTED


def _tokens(usage: Usage | None, model: str) -> dict[str, Any]:
    assert usage is not None
    counts = {
        "inputTokens": usage.prompt_tokens,
        "outputTokens": usage.completion_tokens,
        "totalTokens": usage.prompt_tokens + usage.completion_tokens,
    }
    parts = {"reasoningTokens": usage.reasoning_tokens, "cachedInputTokens": usage.cached_tokens}
    named = {"model": model} if model else {}
    return {**named, **counts, **{name: count for name, count in parts.items() if count}}


class AgUi(Protocol):
    """The protocol of AG-UI's clients; the history is theirs, and their own tools' calls are given back."""

    name = "ag-ui"
    request = (
        "`POST /api/ag-ui` with a `RunAgentInput`: `threadId`, `runId`, `messages`, `tools`, `context`; "
        "the same `runId` asked again joins its run"
    )
    stream = "AG-UI's events, as 0.0.47 to 1.0 have them in common; `CUSTOM` `motamot.…` for the rest; no ids"
    ends: Mapping[str, str] = MappingProxyType(
        {
            Outcome.COMPLETE: "`CUSTOM` `motamot.ended`, `RUN_FINISHED`",
            Outcome.TRUNCATED: "the same, with the outcome in `motamot.ended` alone",
            Outcome.FILTERED: "the same, with the outcome in `motamot.ended` alone",
            Outcome.STOPPED: "the same, and for clients that declare 1.0 the outcome `cancelled`",
            Outcome.ABANDONED: "the same, and for clients that declare 1.0 the outcome `cancelled`",
            Outcome.FAILED: "`CUSTOM` `motamot.ended`, `RUN_ERROR` with its code",
            Outcome.INTERRUPTED: "as failed, with the code `interrupted`",
        }
    )
    stop = "closing the request; or `POST /api/exchanges/{runId}/stop`"
    resume = "none; asked again with the same `runId`, the run is had again from its beginning"
    cannot_carry = (
        Loss(
            "json",
            "Values of a trace or of arguments that JSON has no word for: not-a-number becomes null. Arguments that "
            "are no object are read as text.",
        ),
        Loss("call_ids", "A tool call's id where an earlier call of the thread has the same: it gets one of its own."),
        Loss("turns", "The ends of turns."),
    )

    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> RunAsked:
        return parse_request(body, limits)

    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> AgUiWriter:
        return AgUiWriter(asked, exchange=exchange or "")

    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> AgUiReader:
        return AgUiReader(max_event_bytes=max_event_bytes)


PROTOCOL = AgUi()
