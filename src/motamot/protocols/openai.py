"""`openai`: chat completion chunks, for the clients of OpenAI-compatible servers.

    data: {"id":"chatcmpl-Xq3","object":"chat.completion.chunk",…,"choices":[{"index":0,"delta":{"content":"Bon"},…}]}

    data: [DONE]

Never an `id:` line: once one was seen, openai-python, anthropic-python and httpx-sse take each comment for an event.
What the finish reason cannot say stands in the field `motamot` of the chunk that carries it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from motamot.answer import (
    AnswerEvent,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Source,
    Started,
    Text,
    ToolCalled,
    Usage,
)
from motamot.errors import (
    InvalidRequest,
    LimitExceeded,
    ModelUnavailable,
    MotamotError,
    NotFound,
    SettingsError,
    StoreError,
    UpstreamError,
)
from motamot.limits import Limits
from motamot.protocols._json import encodable, encode_line, loads, one_line, plain
from motamot.protocols.base import (
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
from motamot.protocols.openai_request import parse_request
from motamot.sse import Event

__all__ = ["PROTOCOL", "OpenAI", "OpenAIReader", "OpenAIWriter"]

_ID_PREFIX = "chatcmpl-"
_DONE = b"data: [DONE]\n\n"
_FINISH = {Outcome.TRUNCATED: "length", Outcome.FILTERED: "content_filter"}
_FINISHED = {"length": Outcome.TRUNCATED, "content_filter": Outcome.FILTERED}  # every other reason: complete
_BESIDE = ("outcome", "by", "marks", "usage_source")  # the names in our extension field
_FRAGMENT_BYTES = 64  # what a fragment counts at least
_encode = msgspec.json.Encoder().encode


class OpenAIWriter(Writer):
    """The server's end. Writes nothing until the first delta, so that a failure before it can be an HTTP status.

    Tool calls are written only where the caller brought tools: those of an assistant are run here, and are its own.
    """

    __slots__ = ("_asked", "_begun", "_calls", "_chunk", "_exchange", "_now", "_tail", "_text")

    def __init__(self, asked: Asked | None = None, *, exchange: str = "", now: int = 0) -> None:
        self._asked = asked or Asked(message="")
        self._exchange = exchange
        self._now = now
        self._calls = 0
        self._begun = False
        self._tail = b',"usage":null}\n\n' if self._asked.include_usage else b"}\n\n"
        self._name("")

    def write(self, number: int, event: AnswerEvent) -> bytes:
        if isinstance(event, Text):
            head = b"" if self._begun else self._role()
            return b'%b%b%b},"finish_reason":null}]%b' % (
                head,
                self._text,
                one_line(_encode(event.text)),
                self._tail,
            )
        if isinstance(event, Started):
            self._exchange = event.exchange
            self._name(event.assistant or event.model)
            return b""
        if isinstance(event, Reasoning):
            return self._delta({"reasoning_content": event.text})
        if isinstance(event, ToolCalled) and self._asked.tools:
            self._calls += 1
            return self._delta({"tool_calls": [{"index": self._calls - 1, **_call(event)}]})
        if isinstance(event, Ended):
            return self._end(event)
        return b""

    def _name(self, model: str) -> None:
        """What all chunks begin with: they share one id, one date and one model."""
        head = {
            "id": _ID_PREFIX + self._exchange,
            "object": "chat.completion.chunk",
            "created": self._now,
            "model": self._asked.assistant or model,
        }
        self._chunk = b"data: " + encode_line(head)[:-1] + b',"choices":['
        self._text = self._chunk + b'{"index":0,"delta":{"content":'

    def _role(self) -> bytes:
        self._begun = True
        return self._choice({"role": "assistant", "content": ""}, None)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        head = b"" if self._begun else self._role()
        return head + self._choice(delta, None)

    def _choice(self, delta: dict[str, Any], finish: str | None) -> bytes:
        choice = encode_line({"index": 0, "delta": delta, "finish_reason": finish})
        return self._chunk + choice + b"]" + self._tail

    def _end(self, end: Ended) -> bytes:
        if has_failed(end):
            return b"data: " + _error(end) + b"\n\n"
        head = b"" if self._begun else self._role()
        finish = self._choice({}, _finish(end, self._calls))
        if said := _beside(end):
            finish = finish[:-3] + b',"motamot":' + encode_line(said) + b"}\n\n"
        return head + finish + self._usage(end) + _DONE

    def _usage(self, end: Ended) -> bytes:
        if not self._asked.include_usage or end.usage is None or end.usage.source is Source.UNKNOWN:
            return b""  # a count that is not known is left out, as the API's document allows: no zeros are made up
        chunk = self._chunk + b'],"usage":' + encode_line(_tokens(end.usage))
        if end.usage.source is not Source.REPORTED:
            chunk += b',"motamot":' + encode_line({"usage_source": end.usage.source})
        return chunk + b"}\n\n"


class _Fragments:
    """A tool call under way: id and name as last given, the arguments' pieces."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class OpenAIReader(Reader):
    """The client's end, for our own server and ordinary others; a server's odd dialects are `motamot.model`'s.

    A tool's call is given whole, when the completion says why it finished.
    """

    def __init__(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes=max_event_bytes)
        self._started = False
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._beside: dict[str, Any] = {}
        self._calls: dict[int, _Fragments] = {}
        self._room = max_event_bytes  # for the calls: a stream of fragments without end is cut off there

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        if event.data.startswith("[DONE]"):
            yield from self._called()
            yield self._ending()
            return
        try:
            chunk = loads(event.data)
        except ValueError:
            return
        if not isinstance(chunk, dict):
            return
        if error := chunk.get("error"):
            told = error if isinstance(error, dict) else {"message": error}
            yield failure_read(told.get("code"), told.get("message"))
            return
        yield from self._begin(chunk)
        yield from self._choices(chunk.get("choices"))
        self._note(chunk)
        if self._room < 0:
            yield failure(Code.LIMIT)

    def _at_close(self) -> Iterable[AnswerEvent]:
        if self._reason is None:
            return (failure(Code.UPSTREAM_CUT),)
        return (*self._called(), self._ending())  # some servers leave [DONE] out

    def _begin(self, chunk: dict[str, Any]) -> Iterable[AnswerEvent]:
        name, model = chunk.get("id"), chunk.get("model")
        if not self._started and isinstance(name, str) and name:
            self._started = True
            model = encodable(model) if isinstance(model, str) else ""
            yield Started(exchange=encodable(name).removeprefix(_ID_PREFIX), conversation="", model=model)

    def _choices(self, choices: Any) -> Iterable[AnswerEvent]:
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index", 0) != 0:
                continue  # a second choice is a second answer
            delta = choice.get("delta")
            if isinstance(delta, dict):
                yield from self._delta(delta)
            finish = choice.get("finish_reason")
            if isinstance(finish, str) and finish:
                self._reason = finish
                yield from self._called()

    def _delta(self, delta: dict[str, Any]) -> Iterable[AnswerEvent]:
        for name in ("reasoning_content", "reasoning"):
            if isinstance(reasoning := delta.get(name), str) and reasoning:
                yield Reasoning(encodable(reasoning))
                break
        if isinstance(content := delta.get("content"), str) and content:
            yield Text(content)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._fragment(call)

    def _fragment(self, call: dict[str, Any]) -> None:
        index = call.get("index")
        function = call.get("function")
        if not isinstance(index, int) or not isinstance(function, dict):
            return
        known = self._calls.setdefault(index, _Fragments())
        made, name, arguments = (
            value if isinstance(value, str) else ""
            for value in (call.get("id"), function.get("name"), function.get("arguments"))
        )
        known.id, known.name = made or known.id, name or known.name
        known.arguments.append(arguments)
        self._room -= _FRAGMENT_BYTES + len(made) + len(name) + len(arguments)

    def _called(self) -> Iterable[AnswerEvent]:
        calls, self._calls = self._calls, {}
        for _, call in sorted(calls.items(), key=lambda indexed: indexed[0]):
            arguments = _arguments("".join(call.arguments))
            yield ToolCalled(id=encodable(call.id), name=encodable(call.name), arguments=arguments)

    def _note(self, chunk: dict[str, Any]) -> None:
        if isinstance(said := chunk.get("motamot"), dict):
            self._beside |= {name: plain(said[name]) for name in _BESIDE if name in said}
        if isinstance(usage := chunk.get("usage"), dict):  # the last one counts: some send running totals
            self._usage = _usage_read(usage, self._beside.get("usage_source"))

    def _ending(self) -> Ended:
        try:
            said = msgspec.convert(
                {"outcome": _FINISHED.get(self._reason or "", Outcome.COMPLETE)} | self._beside, Ended
            )
        except msgspec.MsgspecError:
            said = Ended(outcome=_FINISHED.get(self._reason or "", Outcome.COMPLETE))
        return msgspec.structs.replace(said, usage=self._usage)


class OpenAI(Protocol):
    """The protocol of `POST /v1/chat/completions`; `model` names an assistant, and the history is the caller's."""

    name = "openai"
    request = (
        "`POST /v1/chat/completions` with `model`, `messages`, `stream`, `stream_options.include_usage`, `tools`, "
        "`tool_choice`, `max_tokens`, `temperature` and the other usual settings"
    )
    stream = "chat completion chunks; no ids"
    ends: Mapping[str, str] = MappingProxyType(
        {
            Outcome.COMPLETE: "`finish_reason` `stop`, or `tool_calls`; usage if asked for; `[DONE]`",
            Outcome.TRUNCATED: "`finish_reason` `length`, …",
            Outcome.FILTERED: "`finish_reason` `content_filter`, …",
            Outcome.STOPPED: '`finish_reason` `stop` with `"motamot": {"outcome": "stopped", "by": …}`, …',
            Outcome.ABANDONED: "as stopped, with its own outcome",
            Outcome.FAILED: "an error object, no `[DONE]`",
            Outcome.INTERRUPTED: "as failed, with the code `interrupted`",
        }
    )
    stop = "closing the request"
    resume = "none"
    cannot_carry = (
        Loss("names", "The conversation and the assistant; the model is the name that was asked for."),
        Loss("routing", "Which agent answers."),
        Loss("tool_results", "The results of tools."),
        Loss("sources", "Sources."),
        Loss("turns", "The ends of turns."),
        Loss("failed_details", "Of a failed answer: its marks, and its id where it failed before the first delta."),
        Loss(
            "tools_own",
            "Calls of the assistant's own tools; of the caller's own, their place in the text, arguments that are not "
            "known, and all of them where the answer failed.",
        ),
        Loss("usage_unasked", "Tokens, where they were not asked for or are not known, or where the answer failed."),
        Loss("shown", "Of the end: what was shown."),
    )

    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> Asked:
        return parse_request(body, limits)

    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> OpenAIWriter:
        return OpenAIWriter(asked, exchange=exchange or "", now=now)

    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> OpenAIReader:
        return OpenAIReader(max_event_bytes=max_event_bytes)

    def whole(
        self, events: Sequence[AnswerEvent], asked: Asked | None = None, *, now: int = 0, elapsed: float = 0.0
    ) -> bytes:
        """A `chat.completion`, or an error object where the exchange failed."""
        end = events[-1] if events and isinstance(events[-1], Ended) else failure(Code.UPSTREAM_CUT)
        if has_failed(end):
            return _error(end)
        asked = asked or Asked(message="")
        started = next((event for event in events if isinstance(event, Started)), None)
        text = "".join(event.text for event in events if isinstance(event, Text))
        reasoning = "".join(event.text for event in events if isinstance(event, Reasoning))
        calls = [_call(event) for event in events if isinstance(event, ToolCalled) and asked.tools]
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = calls
        answer: dict[str, Any] = {
            "id": _ID_PREFIX + (started.exchange if started else ""),
            "object": "chat.completion",
            "created": now,
            "model": asked.assistant or (started and (started.assistant or started.model)) or "",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(end, len(calls))}],
        }
        beside = _beside(end)
        if end.usage is not None and end.usage.source is not Source.UNKNOWN:
            answer["usage"] = _tokens(end.usage)
            if end.usage.source is not Source.REPORTED:
                beside["usage_source"] = end.usage.source
        if beside:
            answer["motamot"] = beside
        return encode_line(answer)

    def refusal(self, error: MotamotError) -> bytes:
        """In the API's own words where it has one: clients compare `type` and `code`."""
        field = error.field if isinstance(error, InvalidRequest) else None
        return _error_object(error.message, *_refused(error), field)


PROTOCOL = OpenAI()


def _finish(end: Ended, calls: int) -> str:
    return _FINISH.get(end.outcome) or ("tool_calls" if calls and end.outcome is Outcome.COMPLETE else "stop")


def _beside(end: Ended) -> dict[str, Any]:
    """What a finish reason has no word for: stopped and abandoned read as `stop`; and the answer's marks."""
    said: dict[str, Any] = {}
    if end.outcome in (Outcome.STOPPED, Outcome.ABANDONED):
        said["outcome"] = end.outcome
    if end.by is not None:
        said["by"] = end.by
    if end.marks:
        said["marks"] = end.marks
    return said


def _call(event: ToolCalled) -> dict[str, Any]:
    arguments = event.arguments
    raw = arguments if isinstance(arguments, str) else encode_line({} if arguments is None else arguments).decode()
    return {"id": event.id, "type": "function", "function": {"name": event.name, "arguments": raw}}


def _arguments(raw: str) -> Any:
    """The arguments' object, or the text itself where it is not one: a caller may still want to see it."""
    try:
        value = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        return encodable(raw)
    return plain(value) if isinstance(value, dict) else encodable(raw)


def _tokens(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _usage_read(told: dict[str, Any], source: Any) -> Usage | None:
    counts = (
        told.get("prompt_tokens"),
        told.get("completion_tokens"),
        _inner(told, "prompt_tokens_details", "cached_tokens"),
        _inner(told, "completion_tokens_details", "reasoning_tokens"),
    )
    prompt, completion, cached, reasoning = (
        count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else 0 for count in counts
    )
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        source=Source.ESTIMATED if source == Source.ESTIMATED else Source.REPORTED,
    )


def _inner(told: dict[str, Any], outer: str, name: str) -> Any:
    details = told.get(outer)
    return details.get(name) if isinstance(details, dict) else None


def _refused(error: MotamotError) -> tuple[str, str]:
    """The type and the code of a refusal."""
    match error:
        case LimitExceeded(limit="money_per_day"):
            return "insufficient_quota", "insufficient_quota"
        case LimitExceeded(limit="requests_per_hour" | "tokens_per_hour" | "exchanges_per_visitor"):
            return "rate_limit_error", "rate_limit_exceeded"
        case LimitExceeded(limit="body_bytes"):
            return "invalid_request_error", error.code
        case NotFound():
            return "invalid_request_error", "model_not_found"
        case StoreError() | UpstreamError() | ModelUnavailable() | SettingsError() | LimitExceeded():
            return "server_error", error.code
    if error.code == "internal":
        return "server_error", error.code
    return "invalid_request_error", "invalid_api_key" if error.code == "unauthorized" else error.code


def _error(end: Ended) -> bytes:
    code, message = failure_words(end)
    return _error_object(message, "server_error", code, None)


def _error_object(message: str, kind: str, code: str, param: str | None) -> bytes:
    return encode_line({"error": {"message": message, "type": kind, "param": param, "code": code}})
