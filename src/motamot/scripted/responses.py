"""OpenAI's Responses, as a server speaks them (facts: openai-python 3.57.0, `types/responses/*event*.py`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
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
from motamot.scripted.steps import Call, CallDialect, Fail, FailHow, Finish, ReportUsage, Say, Think, Turn, UsagePlace

__all__ = ["Responses"]

_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}
_COUNTED = ReportUsage()


class Responses:
    """POST /v1/responses, streamed or whole. A tool call's `dialect` counts only where it says `whole`.

    Nothing is kept between two requests: the whole input comes with each, as `store: false` has it.
    """

    name = "openai-responses"
    path = "/responses"

    def read(self, body: Any) -> Asked:
        if not isinstance(body, dict):
            raise BadRequest("the body must be a JSON object")
        if isinstance(given := body.get("input"), str):
            items: list[dict[str, Any]] = [{"role": "user", "content": given}]
        else:
            items = objects(body, "input")
        last = max((n for n, item in enumerate(items) if item.get("role") == "user"), default=-1)
        if last < 0 and body.get("previous_response_id") is not None:
            raise BadRequest("nothing is kept here: send the whole input", "previous_response_id")
        prompt = [text_of(body.get("instructions")), *(text_of(item.get("content")) for item in items)]
        model = body.get("model")
        return Asked(
            model=model if isinstance(model, str) and model else "scripted",
            stream=streamed(body),
            include_usage=True,
            question=text_of(items[last].get("content")) if last >= 0 else "",
            round=rounds([str(item.get("type", "")).endswith("_output") for item in items[last + 1 :]]),
            prompt=sum(len(text.split()) for text in prompt),
        )

    def writer(self, asked: Asked, turn: Turn, number: int) -> _Events:
        return _Events(asked, turn, number)

    def whole(self, answer: Whole, asked: Asked, turn: Turn, number: int) -> bytes:
        output: list[dict[str, Any]] = []
        if answer.reasoning:
            output.append(_reasoning(f"rs_{number}_0", "".join(answer.reasoning)))
        if answer.text or not answer.calls:
            output.append(_message(f"msg_{number}_{len(output)}", "".join(answer.text)))
        for place, call in enumerate(answer.calls):
            output.append(_call(f"fc_{number}_{len(output)}", call, call_id(call, place, number), call.arguments))
        assert answer.finish is not None
        return dumped(_response(asked, number, output=output) | _ending(answer.finish, asked, turn))

    def error(self, message: str, *, kind: str, code: str | None = None, param: str | None = None) -> bytes:
        return dumped({"error": {"message": message, "type": kind, "param": param, "code": code}})


def _response(asked: Asked, number: int, *, output: list[dict[str, Any]]) -> dict[str, Any]:
    """A response under way; everything the clients' types want is there."""
    return {
        "id": f"resp_scripted_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }


def _ending(finish: Finish, asked: Asked, turn: Turn) -> dict[str, Any]:
    """What an ended response says otherwise than one under way."""
    cut = _CUT.get(finish.reason or "")
    ending: dict[str, Any] = {"status": "incomplete" if cut else "completed"}
    if cut:
        ending["incomplete_details"] = {"reason": cut}
    step = turn.usage or _COUNTED
    if step.place is not UsagePlace.NONE:
        prompt = asked.prompt if step.prompt is None else step.prompt
        output = turn.tokens if step.completion is None else step.completion
        ending["usage"] = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": step.cached or 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": step.reasoning or 0},
            "total_tokens": prompt + output,
        }
    return ending


def _reasoning(identity: str, text: str) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}]
    return {"id": identity, "type": "reasoning", "summary": [], "content": content, "status": "completed"}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(identity: str, text: str) -> dict[str, Any]:
    content = [_text_part(text)]
    return {"id": identity, "type": "message", "role": "assistant", "status": "completed", "content": content}


def _call(identity: str, call: Call, called: str, arguments: str) -> dict[str, Any]:
    return {
        "id": identity,
        "type": "function_call",
        "call_id": called,
        "name": call.name,
        "arguments": arguments,
        "status": "completed",
    }


class _Events:
    """Writes named events, each with its number; one output item is open at a time."""

    def __init__(self, asked: Asked, turn: Turn, number: int) -> None:
        self._asked = asked
        self._turn = turn
        self._number = number
        self._events = 0
        self._calls = 0
        self._output: list[dict[str, Any]] = []  # items that are done
        self._kind = ""  # of the open item: `text`, `reasoning` or ""
        self._text: list[str] = []  # of the open item
        self._opened = False

    def say(self, step: Say) -> Iterator[Op]:
        yield from self._in("text")
        yield from paced(map(self._said, step.pieces), step.pace, step.slice_bytes)

    def think(self, step: Think) -> Iterator[Op]:
        yield from self._in("reasoning")
        yield from paced(map(self._thought, step.pieces), step.pace)

    def call(self, calls: tuple[Call, ...]) -> Iterator[Op]:
        yield from self._open()
        for call in calls:
            yield from self._close()
            identity = f"fc_{self._number}_{len(self._output)}"
            called = call_id(call, self._calls, self._number)
            self._calls += 1
            opening = _call(identity, call, called, "") | {"status": "in_progress"}
            at: dict[str, Any] = {"output_index": len(self._output), "item_id": identity}
            yield self._event("response.output_item.added", output_index=at["output_index"], item=opening)
            pieces = (call.arguments,) if call.dialect is CallDialect.WHOLE else call.pieces
            name = "response.function_call_arguments"
            yield from paced((self._event(f"{name}.delta", **at, delta=piece) for piece in pieces), call.pace)
            yield self._event(f"{name}.done", **at, name=call.name, arguments=call.arguments)
            yield self._done(_call(identity, call, called, call.arguments))

    def finish(self, step: Finish) -> Iterator[Op]:
        if step.with_text:
            yield from self.say(Say((step.with_text,)))
        yield from self._open()
        if step.reason is None and not step.done:
            return
        yield from self._close()
        if step.reason is None:
            return
        response = _response(self._asked, self._number, output=self._output)
        response |= _ending(step, self._asked, self._turn)
        yield self._event(f"response.{response['status']}", response=response)

    def fail(self, step: Fail) -> Iterator[Op]:
        error = {"message": step.message, "type": step.type, "param": None, "code": step.code}
        match step.how:
            case FailHow.DATA | FailHow.EVENT:
                yield self._event("error", code=step.code or step.type, message=step.message, param=None)
            case _:
                yield odd_error(step.how, error, {"error": step.message})

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._events, **fields}
        self._events += 1
        return b"event: " + kind.encode() + b"\ndata: " + dumped(data) + b"\n\n"

    def _open(self) -> Iterator[Op]:
        if not self._opened:
            self._opened = True
            response = _response(self._asked, self._number, output=[])
            yield self._event("response.created", response=response)
            yield self._event("response.in_progress", response=response)

    @property
    def _at(self) -> dict[str, Any]:
        """Where the open item's text stands."""
        prefix = "msg" if self._kind == "text" else "rs"
        item = f"{prefix}_{self._number}_{len(self._output)}"
        return {"output_index": len(self._output), "item_id": item, "content_index": 0}

    def _in(self, kind: str) -> Iterator[Op]:
        """Have an item of this kind open."""
        yield from self._open()
        if kind == self._kind:
            return
        yield from self._close()
        self._kind, self._text = kind, []
        at = self._at
        item = (_message if kind == "text" else _reasoning)(at["item_id"], "")
        item |= {"status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=at["output_index"], item=item)
        if kind == "text":
            yield self._event("response.content_part.added", **at, part=_text_part(""))

    def _said(self, piece: str) -> bytes:
        self._text.append(piece)
        return self._event("response.output_text.delta", **self._at, delta=piece, logprobs=[])

    def _thought(self, piece: str) -> bytes:
        self._text.append(piece)
        return self._event("response.reasoning_text.delta", **self._at, delta=piece)

    def _close(self) -> Iterator[Op]:
        kind, at, text = self._kind, self._at, "".join(self._text)
        self._kind = ""
        if kind == "text":
            yield self._event("response.output_text.done", **at, text=text, logprobs=[])
            yield self._event("response.content_part.done", **at, part=_text_part(text))
            yield self._done(_message(at["item_id"], text))
        elif kind == "reasoning":
            yield self._event("response.reasoning_text.done", **at, text=text)
            yield self._done(_reasoning(at["item_id"], text))

    def _done(self, item: dict[str, Any]) -> bytes:
        event = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        return event
