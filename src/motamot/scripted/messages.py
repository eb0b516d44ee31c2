"""Anthropic's messages, as a server speaks them (facts: anthropic-sdk-python, `types/raw_*`, `_streaming.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from motamot.scripted.dialects import Asked, Op, Whole, call_id, objects, odd_error, paced, rounds, streamed, text_of
from motamot.scripted.records import dumped
from motamot.scripted.steps import Call, CallDialect, Fail, FailHow, Finish, ReportUsage, Say, Think, Turn, UsagePlace

__all__ = ["Messages"]

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_KINDS = {"server_error": "api_error", "invalid_api_key": "authentication_error"}
_SIGNATURE = "c2NyaXB0ZWQ="  # of reasoning; nobody checks it here
_COUNTED = ReportUsage()


class Messages:
    """POST /v1/messages, streamed or whole. A tool call's `dialect` counts only where it says `whole`."""

    name = "anthropic-messages"
    path = "/messages"

    def read(self, body: Any) -> Asked:
        messages = objects(body, "messages")
        # Tool results come as messages of the user's; one that also says something is a question.
        asking = [m.get("role") == "user" and not (_results(m) and not text_of(m.get("content"))) for m in messages]
        last = max((n for n, asks in enumerate(asking) if asks), default=-1)
        prompt = [text_of(body.get("system")), *(text_of(message.get("content")) for message in messages)]
        model = body.get("model")
        return Asked(
            model=model if isinstance(model, str) and model else "scripted",
            stream=streamed(body),
            include_usage=True,
            question=text_of(messages[last].get("content")) if last >= 0 else "",
            round=rounds([_results(message) for message in messages[last + 1 :]]),
            prompt=sum(len(text.split()) for text in prompt),
        )

    def writer(self, asked: Asked, turn: Turn, number: int) -> _Events:
        return _Events(asked, turn, number)

    def whole(self, answer: Whole, asked: Asked, turn: Turn, number: int) -> bytes:
        content: list[dict[str, Any]] = []
        if answer.reasoning:
            content.append({"type": "thinking", "thinking": "".join(answer.reasoning), "signature": _SIGNATURE})
        if text := "".join(answer.text):
            content.append({"type": "text", "text": text})
        content += (
            {"type": "tool_use", "id": call_id(call, n, number), "name": call.name, "input": _input(call)}
            for n, call in enumerate(answer.calls)
        )
        assert answer.finish is not None
        message = _message(asked, number) | {"content": content, "stop_reason": _reason(answer.finish)}
        if (turn.usage or _COUNTED).place is not UsagePlace.NONE:
            usage = _usage(turn, asked)
            message["usage"] = {**usage, "output_tokens": _output(turn)}
        return dumped(message)

    def error(self, message: str, *, kind: str, code: str | None = None, param: str | None = None) -> bytes:
        told = f"{param}: {message}" if param else message
        return dumped({"type": "error", "error": {"type": _kind(kind, code), "message": told}})


def _kind(kind: str, code: str | None) -> str:
    """The one word that an error has here."""
    return _KINDS.get(code or "", _KINDS.get(kind, kind))


def _results(message: dict[str, Any]) -> bool:
    """Whether a message of the user's brings the results of tools."""
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in content
    )


def _reason(finish: Finish) -> str | None:
    return None if finish.reason is None else _REASONS.get(finish.reason, finish.reason)


def _input(call: Call) -> Any:
    """The arguments as a value; as they are where they are none."""
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        return call.arguments


def _message(asked: Asked, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_scripted_{number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(turn: Turn, asked: Asked) -> dict[str, Any]:
    """What is known at the start. Tokens read from a cache are not part of `input_tokens`."""
    step = turn.usage or _COUNTED
    prompt = asked.prompt if step.prompt is None else step.prompt
    cached = min(step.cached or 0, prompt)
    usage: dict[str, Any] = {"input_tokens": prompt - cached, "output_tokens": 1}
    if step.cached is not None:
        usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}
    return usage


def _output(turn: Turn) -> int:
    step = turn.usage or _COUNTED
    return turn.tokens if step.completion is None else step.completion


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + dumped({"type": kind, **fields}) + b"\n\n"


class _Events:
    """Writes named events; one content block is open at a time."""

    def __init__(self, asked: Asked, turn: Turn, number: int) -> None:
        self._asked = asked
        self._turn = turn
        self._number = number
        self._counts = (turn.usage or _COUNTED).place is not UsagePlace.NONE
        self._opened = False
        self._block = -1
        self._kind = ""  # of the open block
        self._calls = 0

    def say(self, step: Say) -> Iterator[Op]:
        yield from self._in("text", {"type": "text", "text": ""})
        yield from paced((self._delta("text_delta", text=piece) for piece in step.pieces), step.pace, step.slice_bytes)

    def think(self, step: Think) -> Iterator[Op]:
        yield from self._in("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        yield from paced((self._delta("thinking_delta", thinking=piece) for piece in step.pieces), step.pace)

    def call(self, calls: tuple[Call, ...]) -> Iterator[Op]:
        for call in calls:
            yield from self._close()
            identity = call_id(call, self._calls, self._number)
            self._calls += 1
            opening = {"type": "tool_use", "id": identity, "name": call.name, "input": {}}
            yield from self._in("tool_use", opening)
            pieces = (call.arguments,) if call.dialect is CallDialect.WHOLE else call.pieces
            yield from paced((self._delta("input_json_delta", partial_json=piece) for piece in pieces), call.pace)

    def finish(self, step: Finish) -> Iterator[Op]:
        if step.with_text:
            yield from self.say(Say((step.with_text,)))
        yield from self._open()
        yield from self._close()
        if step.reason is not None:
            ending: dict[str, Any] = {"delta": {"stop_reason": _reason(step), "stop_sequence": None}}
            if self._counts:
                ending["usage"] = {"output_tokens": _output(self._turn)}
            yield _event("message_delta", **ending)
        if step.done:
            yield _event("message_stop")

    def fail(self, step: Fail) -> Iterator[Op]:
        error = {"type": _kind(step.type, step.code), "message": step.message}
        match step.how:
            case FailHow.DATA | FailHow.EVENT:
                yield _event("error", error=error)
            case _:
                yield odd_error(step.how, error, {"type": "error", "error": step.message})

    def _open(self) -> Iterator[Op]:
        if not self._opened:
            self._opened = True
            message = _message(self._asked, self._number)
            if self._counts:
                message["usage"] = _usage(self._turn, self._asked)
            yield _event("message_start", message=message)

    def _in(self, kind: str, opening: dict[str, Any]) -> Iterator[Op]:
        """Have a block of this kind open."""
        yield from self._open()
        if kind == self._kind:
            return
        yield from self._close()
        self._block += 1
        self._kind = kind
        yield _event("content_block_start", index=self._block, content_block=opening)
        if not self._block:
            yield _event("ping")

    def _close(self) -> Iterator[Op]:
        if self._kind == "thinking":
            yield self._delta("signature_delta", signature=_SIGNATURE)
        if self._kind:
            self._kind = ""
            yield _event("content_block_stop", index=self._block)

    def _delta(self, kind: str, **fields: str) -> bytes:
        return _event("content_block_delta", index=self._block, delta={"type": kind, **fields})
