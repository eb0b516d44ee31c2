"""`ui-message`: the Vercel AI SDK's UI message stream, version 1, for `useChat` and what is built on it.

    data: {"type":"start","messageId":"Xq3"}

    data: {"type":"text-delta","id":"1","delta":"Bonjour"}

    data: {"type":"finish","finishReason":"stop"}

    data: [DONE]

A client of it fails at a chunk type or a finish reason that it does not know: only what the SDK's versions 5, 6 and 7
have in common is written, and no field of ours. What they have no word for stands in data parts, which every version
keeps in the message: `data-outcome` before the end, `data-routing`. Never an `id:` line: nobody resumes by one (a
client that comes back wants everything again), and after one several readers take each comment for an event.

Source: npm `ai` 7.0.173, `src/ui-message-stream/ui-message-chunks.ts` and `src/ui/process-ui-message-stream.ts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from motamot.answer import (
    AnswerEvent,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from motamot.errors import InvalidRequest, MotamotError
from motamot.limits import Limits
from motamot.protocols._json import encodable, encode_line, loads, one_line, plain
from motamot.protocols.base import (
    HEADERS,
    READER_EVENT_BYTES,
    Asked,
    Loss,
    Protocol,
    Reader,
    Writer,
    failure,
    failure_read,
    failure_words,
    has_failed,
)
from motamot.protocols.ui_message_request import UIAsked, parse_request
from motamot.sse import Event

__all__ = ["PROTOCOL", "UIMessage", "UIMessageReader", "UIMessageWriter"]

_FINISH = {Outcome.COMPLETE: "stop", Outcome.TRUNCATED: "length", Outcome.FILTERED: "content-filter"}
_FAILED, _OTHER = "error", "other"
_FINISHED = {
    "length": Outcome.TRUNCATED,
    "content-filter": Outcome.FILTERED,
    "error": Outcome.FAILED,
    "interrupted": Outcome.INTERRUPTED,
}  # every other reason: complete
_TOOL_FAILURES = {
    "error": "The tool failed.",
    "timeout": "The tool did not answer in time.",
    "invalid_arguments": "The tool was called with arguments it does not take.",
    "unknown_tool": "There is no such tool.",
    "cancelled": "The tool was cancelled.",
}  # what is said of a tool whose result the visitor may not see
_TOOL_STATUS = {words: status for status, words in _TOOL_FAILURES.items()}
_FRAGMENT_BYTES = 64  # what a piece of a tool's input counts at least
_encode = msgspec.json.Encoder().encode
_Kind = TypeVar("_Kind", bound=AnswerEvent)


class UIMessageWriter(Writer):
    """The server's end. The message's id is the exchange's.

    Text and reasoning are parts that are opened and closed; a client fails at a delta of a part that is not open, and
    at the result of a tool that was not called.
    """

    __slots__ = ("_delta", "_open", "_parts", "_step", "_tools")

    def __init__(self) -> None:
        self._open = ""  # the kind of the part under way: `text`, `reasoning` or none
        self._delta = b""  # what its deltas begin with
        self._parts = 0
        self._step = False
        self._tools: dict[str, str] = {}

    def write(self, number: int, event: AnswerEvent) -> bytes:
        if isinstance(event, Text):
            head = b"" if self._open == "text" else self._begin("text")
            return b"%b%b%b}\n\n" % (head, self._delta, one_line(_encode(event.text)))
        match event:
            case Started():
                return _chunk({"type": "start", "messageId": event.exchange})
            case Reasoning():
                head = b"" if self._open == "reasoning" else self._begin("reasoning")
                return b"%b%b%b}\n\n" % (head, self._delta, encode_line(event.text))
            case ToolCalled():
                return self._close() + self._stepped() + self._called(event.id, event.name, event.arguments)
            case ToolReturned():
                return self._close() + self._stepped() + self._returned(event)
            case Cited():
                head = self._close()  # and no step of its own: it follows the last turn, and is of the whole answer
                self._parts += 1
                return head + _source(event, str(self._parts))
            case Routed():
                told = {"agent": event.agent, "confidence": event.confidence, "method": event.method}
                if event.trace is not None:
                    told["trace"] = event.trace
                return self._close() + _chunk({"type": "data-routing", "data": told})
            case TurnEnded():
                return self._close() + self._stepped() + self._finished()
            case Ended():
                return self._end(event)
        return b""

    def _begin(self, kind: str) -> bytes:
        head = self._close() + self._stepped()
        self._parts += 1
        self._open = kind
        part = {"type": f"{kind}-start", "id": str(self._parts)}
        self._delta = b'data: {"type":"%b-delta","id":"%d","delta":' % (kind.encode(), self._parts)
        return head + _chunk(part)

    def _close(self) -> bytes:
        kind, self._open = self._open, ""
        return _chunk({"type": f"{kind}-end", "id": str(self._parts)}) if kind else b""

    def _stepped(self) -> bytes:
        if self._step:
            return b""
        self._step = True
        return _chunk({"type": "start-step"})

    def _finished(self) -> bytes:
        step, self._step = self._step, False
        return _chunk({"type": "finish-step"}) if step else b""

    def _called(self, call: str, name: str, arguments: Any) -> bytes:
        """`providerExecuted`: it is run here, and the page is neither to run it nor to answer for it."""
        self._tools[call] = name
        return _chunk(
            {
                "type": "tool-input-available",
                "toolCallId": call,
                "toolName": name,
                "input": arguments,
                "providerExecuted": True,
            }
        )

    def _returned(self, event: ToolReturned) -> bytes:
        known = self._tools.get(event.id) == event.name
        head = b"" if known else self._called(event.id, event.name, None)
        told: dict[str, Any] = {"toolCallId": event.id, "providerExecuted": True}
        if event.status == "ok":
            return head + _chunk({"type": "tool-output-available", "output": event.result, **told})
        words = event.result or _TOOL_FAILURES.get(event.status, _TOOL_FAILURES["error"])
        return head + _chunk({"type": "tool-output-error", "errorText": words, **told})

    def _end(self, end: Ended) -> bytes:
        head = self._close() + self._finished() + _chunk({"type": "data-outcome", "data": _outcome(end)})
        reason = _FINISH.get(end.outcome, _OTHER)
        if has_failed(end):
            # A client reads no further than an error; what reads on is told the same again.
            head += _chunk({"type": "error", "errorText": failure_words(end)[1]})
            reason = _FAILED
        return head + _chunk({"type": "finish", "finishReason": reason}) + b"data: [DONE]\n\n"


class UIMessageReader(Reader):
    """The client's end, for our own server and others: all chunk types, those that are no answer event skipped.

    What a `reset-step` takes back was said already, and stays.
    """

    def __init__(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes=max_event_bytes)
        self._started = False
        self._told: Ended | None = None  # by a `data-outcome`
        self._tools: dict[str, str] = {}
        self._inputs: dict[str, list[str]] = {}
        self._room = max_event_bytes  # for inputs in pieces: a stream of them without end is cut off there

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        try:
            chunk = loads(event.data)
        except ValueError:
            return ()
        if not isinstance(chunk, dict):
            return ()
        kind = chunk.get("type")
        if kind == "text-delta":
            return (Text(text),) if (text := _text(chunk, "delta")) else ()
        if kind == "reasoning-delta":
            return (Reasoning(encodable(text)),) if (text := _text(chunk, "delta")) else ()
        read = _READ.get(kind) if isinstance(kind, str) else None
        return read(self, chunk) if read is not None else ()

    def _start(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        if self._started:
            return ()
        self._started = True
        return (Started(exchange=encodable(_text(chunk, "messageId")), conversation=""),)

    def _tool_start(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        call, name = _tool(chunk)
        if self._spend(call, name):
            self._tools[call] = name
            self._inputs[call] = []
            return ()
        return (_too_much(),)

    def _tool_piece(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        pieces = self._inputs.get(encodable(_text(chunk, "toolCallId")))
        piece = _text(chunk, "inputTextDelta")
        if pieces is None:
            return ()
        pieces.append(piece)
        return () if self._spend(piece) else (_too_much(),)

    def _tool_called(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        call, name = _tool(chunk)
        self._inputs.pop(call, None)
        if not self._spend(call, name):
            return (_too_much(),)
        self._tools[call] = name
        return (ToolCalled(id=call, name=name, arguments=plain(chunk.get("input"))),)

    def _tool_refused(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        """A call whose arguments the server could not take: called, and returned at once."""
        call, name = _tool(chunk)
        words = encodable(_text(chunk, "errorText"))
        returned = ToolReturned(id=call, name=name, status="invalid_arguments", result=words or None)
        return (*self._tool_called(chunk), returned)

    def _tool_returned(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        if chunk.get("preliminary") is True:
            return ()
        call = encodable(_text(chunk, "toolCallId"))
        output = plain(chunk.get("output"))
        result = output if output is None or isinstance(output, str) else encode_line(output).decode()
        return (*self._pieced(call), ToolReturned(id=call, name=self._name(call), status="ok", result=result))

    def _tool_failed(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        call = encodable(_text(chunk, "toolCallId"))
        words = encodable(_text(chunk, "errorText"))
        status = _TOOL_STATUS.get(words)
        result = words if words and status is None else None
        returned = ToolReturned(id=call, name=self._name(call), status=status or "error", result=result)
        return (*self._pieced(call), returned)

    def _tool_denied(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        call = encodable(_text(chunk, "toolCallId"))
        return (*self._pieced(call), ToolReturned(id=call, name=self._name(call), status="cancelled"))

    def _pieced(self, call: str) -> Iterable[AnswerEvent]:
        """The call whose input came in pieces, and was never said to be whole."""
        pieces = self._inputs.pop(call, None)
        if pieces is None:
            return ()
        text = "".join(pieces)
        try:
            arguments = plain(loads(text)) if text else None
        except ValueError:
            arguments = encodable(text)
        return (ToolCalled(id=call, name=self._name(call), arguments=arguments),)

    def _name(self, call: str) -> str:
        return self._tools.get(call, "")

    def _cited(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        url = _text(chunk, "url") if chunk.get("type") == "source-url" else None
        said = chunk.get("providerMetadata")
        ours = said.get("motamot") if isinstance(said, dict) else None
        ours = ours if isinstance(ours, dict) else {}
        more = {name: encodable(_text(ours, name)) for name in ("quote", "mark") if name in ours}
        return (
            Cited(
                title=encodable(_text(chunk, "title")),
                url=None if url is None else encodable(url),
                **more,
            ),
        )

    def _routing(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        return () if (routed := _as(Routed, chunk.get("data"))) is None else (routed,)

    def _data_outcome(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        self._told = _as(Ended, chunk.get("data")) or self._told
        return ()

    def _error(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        told = self._told
        return (told if told is not None and has_failed(told) else failure_read(None, _text(chunk, "errorText")),)

    def _aborted(self, _chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        told = self._told
        ours = told is not None and told.outcome in (Outcome.STOPPED, Outcome.ABANDONED)
        return (told if told is not None and ours else Ended(outcome=Outcome.STOPPED),)

    def _finish_chunk(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        outcome = _FINISHED.get(_text(chunk, "finishReason"), Outcome.COMPLETE)
        told = self._told
        if outcome is Outcome.FAILED:
            end = told if told is not None and has_failed(told) else failure(Code.UPSTREAM_ERROR)
        else:
            end = told or Ended(outcome=outcome)
        return (*(event for call in list(self._inputs) for event in self._pieced(call)), end)

    def _spend(self, *texts: str) -> bool:
        self._room -= sum(map(len, texts)) + _FRAGMENT_BYTES
        return self._room >= 0


_READ = {
    "start": UIMessageReader._start,
    "tool-input-start": UIMessageReader._tool_start,
    "tool-input-delta": UIMessageReader._tool_piece,
    "tool-input-available": UIMessageReader._tool_called,
    "tool-input-error": UIMessageReader._tool_refused,
    "tool-output-available": UIMessageReader._tool_returned,
    "tool-output-error": UIMessageReader._tool_failed,
    "tool-output-denied": UIMessageReader._tool_denied,
    "source-url": UIMessageReader._cited,
    "source-document": UIMessageReader._cited,
    "data-routing": UIMessageReader._routing,
    "data-outcome": UIMessageReader._data_outcome,
    "error": UIMessageReader._error,
    "abort": UIMessageReader._aborted,
    "finish": UIMessageReader._finish_chunk,
}


class UIMessage(Protocol):
    """The protocol of `useChat`: the whole answer is one message, made of parts."""

    name = "ui-message"
    headers: Mapping[str, str] = MappingProxyType({**HEADERS, "x-vercel-ai-ui-message-stream": "v1"})
    refusal_type = "text/plain; charset=utf-8"
    request = (
        '`POST /api/ui-message` with `{"id", "messages", "trigger"?, "messageId"?}` as `useChat` sends it, and '
        "`assistant`?, `resumable`?; the history is ours, by the ids of the messages"
    )
    stream = "the chunks of the AI SDK's UI message stream v1 that its versions 5, 6 and 7 have in common; no ids"
    ends: Mapping[str, str] = MappingProxyType(
        {
            Outcome.COMPLETE: "`data-outcome`, `finish` with `stop`, `[DONE]`",
            Outcome.TRUNCATED: "`data-outcome`, `finish` with `length`, `[DONE]`",
            Outcome.FILTERED: "`data-outcome`, `finish` with `content-filter`, `[DONE]`",
            Outcome.STOPPED: "`data-outcome`, `finish` with `other`, `[DONE]`",
            Outcome.ABANDONED: "as stopped, with its own outcome",
            Outcome.FAILED: "`data-outcome`, `error`, `finish` with `error`, `[DONE]`",
            Outcome.INTERRUPTED: "as failed, with its own outcome",
        }
    )
    stop = "`POST /api/ui-message/{chat}/stop`; closing the request stops, too, unless the client can come back"
    resume = "`GET /api/ui-message/{chat}/stream`: everything from the first chunk; 204 when nothing is under way"
    cannot_carry = (
        Loss("json", "Values of a trace or of arguments that JSON has no word for: not-a-number becomes null."),
        Loss("conversation", "The names of the conversation, the assistant and the model."),
        Loss("turns", "Of the ends of turns, all but their place."),
        Loss("tools_unannounced", "That a tool's result came without its call: a call is put before it."),
        Loss("tool_status", "How a tool failed, where its result is shown."),
        Loss("shown", "Of the end: what was shown."),
    )

    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> UIAsked:
        return parse_request(body, limits)

    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> UIMessageWriter:
        return UIMessageWriter()

    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> UIMessageReader:
        return UIMessageReader(max_event_bytes=max_event_bytes)

    def refusal(self, error: MotamotError) -> bytes:
        """A sentence, and the place: the clients make the whole body the message of the error that a page shows."""
        field = error.field if isinstance(error, InvalidRequest) else None
        place = f" ({field})" if field is not None and field not in error.message else ""
        return encodable(error.message + place).encode()


PROTOCOL = UIMessage()


def _chunk(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + encode_line(chunk) + b"\n\n"


def _source(event: Cited, source: str) -> bytes:
    if event.url is not None:
        told: dict[str, Any] = {"type": "source-url", "sourceId": source, "url": event.url, "title": event.title}
    else:
        told = {"type": "source-document", "sourceId": source, "mediaType": "text/plain", "title": event.title}
    ours = {name: value for name in ("quote", "mark") if (value := getattr(event, name)) is not None}
    if ours:
        told["providerMetadata"] = {"motamot": ours}
    return _chunk(told)


def _outcome(end: Ended) -> dict[str, Any]:
    """What the visitor's page may show beside the answer, also when it is opened again."""
    told = {name: value for name in ("code", "message", "by", "usage") if (value := getattr(end, name)) is not None}
    if end.marks:
        told["marks"] = end.marks
    return {"outcome": end.outcome, **told}


def _text(chunk: dict[str, Any], name: str) -> str:
    value = chunk.get(name)
    return value if isinstance(value, str) else ""


def _tool(chunk: dict[str, Any]) -> tuple[str, str]:
    return encodable(_text(chunk, "toolCallId")), encodable(_text(chunk, "toolName"))


def _as(kind: type[_Kind], data: Any) -> _Kind | None:
    """`data` as an answer event of this kind, or None where it is another server's, or broken."""
    if not isinstance(data, dict):
        return None
    try:
        return msgspec.convert({name: value for name, value in plain(data).items() if name != "type"}, kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _too_much() -> Ended:
    return failure(Code.LIMIT, "The tool calls of this answer are too long.")
