"""OpenAI chat completions, as a server speaks it (facts: OpenAPI document of openai/openai-openapi, 2.3.0)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from motamot.scripted.dialects import (
    Asked,
    BadRequest,
    Op,
    Whole,
    call_id,
    objects,
    odd_error,
    paced,
    rounds,
    streamed,
    text_of,
)
from motamot.scripted.records import dumped
from motamot.scripted.steps import (
    Call,
    CallDialect,
    Fail,
    FailHow,
    Finish,
    ReportUsage,
    Say,
    Think,
    Turn,
    UsagePlace,
    Wait,
)

__all__ = ["ChatCompletions"]

_COUNTED = ReportUsage()
_DONE = b"data: [DONE]\n\n"
_ROLE = b'{"role":"assistant","content":""}'


class ChatCompletions:
    """POST /v1/chat/completions, streamed or whole."""

    name = "openai-chat"
    path = "/chat/completions"

    def read(self, body: Any) -> Asked:
        messages = objects(body, "messages")
        stream = streamed(body)
        options = body.get("stream_options")
        if not isinstance(options, dict | None):
            raise BadRequest("'stream_options' must be an object", "stream_options")
        last_user = max((n for n, message in enumerate(messages) if message.get("role") == "user"), default=-1)
        model = body.get("model")
        return Asked(
            model=model if isinstance(model, str) and model else "scripted",
            stream=stream,
            include_usage=bool(options and options.get("include_usage")),
            question=text_of(messages[last_user].get("content")) if last_user >= 0 else "",
            round=rounds([m.get("role") in ("tool", "function") for m in messages[last_user + 1 :]]),
            prompt=sum(len(text_of(message.get("content")).split()) for message in messages),
        )

    def writer(self, asked: Asked, turn: Turn, number: int) -> _ChunkWriter:
        return _ChunkWriter(asked, turn, number)

    def whole(self, answer: Whole, asked: Asked, turn: Turn, number: int) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(answer.text)}
        if answer.reasoning:
            message[answer.reasoning_name] = "".join(answer.reasoning)
        if answer.calls:
            message["content"] = message["content"] or None
            message["tool_calls"] = [_whole_call(call, n, number) for n, call in enumerate(answer.calls)]
        assert answer.finish is not None
        body = {
            "id": f"chatcmpl-scripted-{number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": asked.model,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish.reason},
            ],
        }
        usage = turn.usage or _COUNTED
        if usage.place is not UsagePlace.NONE:
            body["usage"] = _usage(usage, asked.prompt, turn.tokens)
        return dumped(body)

    def error(self, message: str, *, kind: str, code: str | None = None, param: str | None = None) -> bytes:
        return dumped({"error": {"message": message, "type": kind, "param": param, "code": code}})


def _usage(step: ReportUsage, prompt: int, completion: int) -> dict[str, Any]:
    prompt = prompt if step.prompt is None else step.prompt
    completion = completion if step.completion is None else step.completion
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if step.cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": step.cached}
    if step.reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": step.reasoning}
    return usage


def _whole_call(call: Call, place: int, number: int) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "id": "" if call.dialect is CallDialect.EMPTY_ID else call_id(call, place, number),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    if call.dialect is CallDialect.NO_ID:
        del whole["id"]
    return whole


class _ChunkWriter:
    """Writes `chat.completion.chunk` objects as SSE data."""

    def __init__(self, asked: Asked, turn: Turn, number: int) -> None:
        self._number = number
        self._prompt = asked.prompt
        self._usage = turn.usage or _COUNTED
        place = self._usage.place
        self._usage_chunk = place in (UsagePlace.ALWAYS, UsagePlace.BOTH) or (
            place is UsagePlace.CHUNK and asked.include_usage
        )
        self._totals = place in (UsagePlace.EVERY, UsagePlace.EVERY_SAME)
        self._tail = b',"usage":null}\n\n' if place is UsagePlace.CHUNK and asked.include_usage else b"}\n\n"
        identity = dumped(
            {
                "id": f"chatcmpl-scripted-{number}",
                "object": "chat.completion.chunk",
                "created": int(time.time()),
                "model": asked.model,
            }
        )
        self._identity = b"data: " + identity[:-1] + b',"choices":['
        self._choice = self._identity + b'{"index":0,"delta":'
        self._plain = b',"logprobs":null,"finish_reason":null}]' + self._tail
        self._opened = False
        self._calls = 0
        self._sent = 0
        self._tokens = turn.tokens

    def say(self, step: Say) -> Iterator[Op]:
        yield from self._fragments("content", step.pieces, step.pace, step.slice_bytes)

    def think(self, step: Think) -> Iterator[Op]:
        yield from self._fragments(step.name, step.pieces, step.pace, 0)

    def call(self, calls: tuple[Call, ...]) -> Iterator[Op]:
        yield from self._open()
        first = self._calls
        self._calls += len(calls)
        fragments = [_fragments(call, first + n, self._number) for n, call in enumerate(calls)]
        pace = max(call.pace for call in calls)
        for n, row in enumerate(zip_longest(*fragments)):
            for delta in row:
                if delta is not None:
                    if n and pace:
                        yield Wait(pace)
                    yield self._delta(dumped(delta))

    def finish(self, step: Finish) -> Iterator[Op]:
        yield from self._open()
        reason = step.reason
        if reason is not None or step.with_text:
            delta = {"content": step.with_text} if step.with_text else {}
            yield self._finish(dumped(delta), dumped(reason))
        if not step.done:
            return
        if self._usage_chunk:
            yield self._identity + b'],"usage":' + dumped(self._counts()) + b"}\n\n"
        yield _DONE

    def fail(self, step: Fail) -> Iterator[Op]:
        error = {"message": step.message, "type": step.type, "param": None, "code": step.code}
        match step.how:
            case FailHow.DATA:
                yield b"data: " + dumped({"error": error}) + b"\n\n"
            case FailHow.EVENT:
                yield b"event: error\ndata: " + dumped({"error": error}) + b"\n\n"
            case _:
                yield odd_error(step.how, error, {"error": step.message})

    def _open(self) -> Iterator[Op]:
        if not self._opened:
            self._opened = True
            yield self._choice + _ROLE + self._plain

    def _fragments(self, name: str, pieces: tuple[str, ...], pace: float, slice_bytes: int) -> Iterator[Op]:
        yield from self._open()
        start = b'{"' + name.encode() + b'":'
        yield from paced((self._delta(start + dumped(piece) + b"}") for piece in pieces), pace, slice_bytes)

    def _delta(self, delta: bytes) -> bytes:
        self._sent += 1
        if self._totals:
            tail = b',"logprobs":null,"finish_reason":null}],"usage":' + dumped(self._running()) + b"}\n\n"
            return self._choice + delta + tail
        return self._choice + delta + self._plain

    def _finish(self, delta: bytes, reason: bytes) -> bytes:
        ending = b',"logprobs":null,"finish_reason":' + reason
        match self._usage.place:
            case UsagePlace.CHOICE:
                ending += b',"usage":' + dumped(self._counts()) + b"}]}\n\n"
            case UsagePlace.FINISH | UsagePlace.BOTH | UsagePlace.EVERY | UsagePlace.EVERY_SAME:
                ending += b'}],"usage":' + dumped(self._counts()) + b"}\n\n"
            case _:
                ending += b"}]" + self._tail
        return self._choice + delta + ending

    def _counts(self) -> dict[str, Any]:
        return _usage(self._usage, self._prompt, self._tokens)

    def _running(self) -> dict[str, Any]:
        """The counts on a chunk in the middle: totals so far, or (`every-same`) those of the end."""
        if self._usage.place is UsagePlace.EVERY_SAME:
            return self._counts()
        final = self._tokens if self._usage.completion is None else self._usage.completion
        so_far = final * min(self._sent, self._tokens) // max(1, self._tokens)
        return _usage(replace(self._usage, completion=so_far, reasoning=None), self._prompt, so_far)


def _fragments(call: Call, place: int, number: int) -> list[dict[str, Any]]:
    """The deltas of one call, in the dialect it asks for. place: how many calls of this turn came before it."""
    dialect = call.dialect
    if dialect is CallDialect.FUNCTION_CALL:
        opening = {"function_call": {"name": call.name, "arguments": ""}}
        return [opening, *({"function_call": {"arguments": piece}} for piece in call.pieces)]
    return [{"tool_calls": [fragment]} for fragment in _tool_fragments(call, place, number)]


def _tool_fragments(call: Call, place: int, number: int) -> list[dict[str, Any]]:
    D = CallDialect  # noqa: N806 - the table below is read as a table
    dialect = call.dialect
    identity: dict[str, Any] = {"id": "" if dialect is D.EMPTY_ID else call_id(call, place, number)}
    if dialect is D.NO_ID:
        identity = {}
    index: dict[str, Any] = {"index": place}
    if dialect in (D.NO_INDEX, D.NO_INDEX_FRAGMENTS):
        index = {}
    elif dialect in (D.SAME_INDEX, D.SAME_INDEX_WHOLE):
        index = {"index": 0}
    elif dialect is D.INDEX_FROM_ONE:
        index = {"index": place + 1}
    kind = {"type": "function"}

    if dialect in (D.WHOLE, D.NO_INDEX, D.SAME_INDEX_WHOLE):
        return [{**index, **identity, **kind, "function": {"name": call.name, "arguments": call.arguments}}]
    if dialect is D.ARGUMENTS_OBJECT:
        return [{**index, **identity, **kind, "function": {"name": call.name, "arguments": json.loads(call.arguments)}}]

    again: dict[str, Any] = {}
    named: dict[str, Any] = {}
    if dialect in (D.ID_REPEATED, D.ID_AND_NAME_REPEATED):
        again = identity
    if dialect in (D.NAME_REPEATED, D.ID_AND_NAME_REPEATED):
        named = {"name": call.name}
    rest = [{**index, **again, "function": {**named, "arguments": piece}} for piece in call.pieces]
    if dialect is D.ARGUMENTS_TWICE:
        rest.append({**index, "function": {"arguments": call.arguments}})
    if dialect is D.NAME_LATE:
        opening = [{**index, **identity, **kind}, {**index, "function": {"name": call.name, "arguments": ""}}]
    elif dialect is D.NAME_IN_PIECES:
        half = len(call.name) // 2
        opening = [
            {**index, **identity, **kind, "function": {"name": call.name[:half], "arguments": ""}},
            {**index, "function": {"name": call.name[half:]}},
        ]
    else:
        opening = [{**index, **identity, **kind, "function": {"name": call.name, "arguments": ""}}]
    return opening + rest
