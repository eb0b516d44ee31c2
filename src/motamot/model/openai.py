"""Chat completions as OpenAI streams them, and as those who call themselves compatible do.

Source: OpenAI's API description, chat completion chunks, and what was seen in the field; each way off the book is
handled in one place, beside the name of the case that shows it (tests/data/cases.jsonl).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from motamot.answer import AnswerEvent, Text
from motamot.limits import Limits
from motamot.model.base import Dialect
from motamot.model.events import EventStreamAssembly, shown
from motamot.model.words import brief, detail_of, json_text
from motamot.sse import Event

__all__ = ["OpenAIAssembly"]

_DONE = "[DONE]"
_CR, _LF = 13, 10
_PART_DEPTH = 4  # how deep a content part may hold its text
_MODEL_BY = 8  # deltas by which a server has said its model's name, or never does
_FUNCTION_CALL = 0  # the old `function_call` knows one call, without an index


# The ordinary content delta, and nothing else: whatever does not fit is refused by msgspec and takes the tolerant
# way (`_event`), which copes with everything and costs four times as much. Both give the same for what fits here
# (test_the_short_cut_changes_nothing).
class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[()] | None = None
    function_call: None = None
    refusal: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None
    message: None = None
    usage: None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None
    x_groq: None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class OpenAIAssembly(EventStreamAssembly):
    """A chat completion: an event stream of chunks, or one JSON reply. The body itself tells which it is.

    Refusals are answer text: they are the model's words to the visitor. Only choice 0 is the answer.
    """

    __slots__ = ("_between", "_event_max", "_ordinary", "_usage_reports")

    def __init__(self, *, dialect: Dialect | None = None, limits: Limits | None = None) -> None:
        super().__init__(dialect=dialect, limits=limits)
        self._usage_reports = 0  # on chunks with text
        self._event_max = self._limits.event_bytes
        self._between = False  # the decoder is between two events, and more is wanted
        self._ordinary = False  # text needs no looking at: it can go on as it came

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Take the next bytes of the body; see `Assembly.feed`."""
        out: list[AnswerEvent] = []
        # Almost every read is one event of one `data: ` line, sometimes several. Their JSON needs no decoder, and none
        # of the text a decoder would make of it: 1 us a delta instead of 2.8. test_the_short_cuts_change_nothing.
        if (
            self._between
            and chunk.startswith(b"data: ")
            and chunk.endswith(b"\n\n")
            and _CR not in chunk
            and len(chunk) <= self._event_max
        ):
            data = chunk[6:-2]
            if _LF not in data:
                self._take(data, out)
                return out
            pieces = data.split(b"\n\ndata: ")
            if data.count(b"\n") == 2 * len(pieces) - 2:  # two end each block, and there are no others
                for piece in pieces:
                    if self._done:
                        break
                    self._take(piece, out)
                return out
        for event in self._events(chunk):
            if self._done:
                break
            if event.event == "message":
                self._take(event.data, out)
            else:
                self._event(event, out)
        self._check_limit()
        if chunk:
            self._between = chunk.endswith(b"\n\n") and self._head is None and not (self._done or self._closed)
        return out

    def _take(self, data: bytes | str, out: list[AnswerEvent]) -> None:
        """Take the data of one unnamed event. The hot path: it runs once for every token."""
        if self._model or self.deltas > _MODEL_BY:
            try:
                delta = _decode(data).choices[0].delta
            except (msgspec.DecodeError, RecursionError):
                pass
            else:
                content = delta.content
                if self._ordinary and content and delta.reasoning_content is None and delta.reasoning is None:
                    # what `_ordinary_delta` comes down to
                    self.deltas += 1
                    self._left -= len(content) if content.isascii() else len(content.encode())
                    if self._left >= 0 and self.deltas <= self._deltas_max:
                        self._texts.append(content)
                        out.append(Text(content))
                    else:
                        self._spend(0)
                        self._settle()
                else:
                    self._ordinary_delta(delta, out)
                return
        self._event(Event(data=data if isinstance(data, str) else data.decode("utf-8", "replace")), out)
        self._settle()

    def _ordinary_delta(self, delta: _Delta, out: list[AnswerEvent]) -> None:
        thought = delta.reasoning if delta.reasoning_content is None else delta.reasoning_content
        if thought:
            self._add_reasoning(thought, out)
        if delta.content:
            self._add_text(delta.content, out)
        self._settle()

    def _settle(self) -> None:
        """Whether the next text can go on as it came, and whether any is wanted."""
        self._between = self._between and not self._done
        self._ordinary = (
            self._finish is None
            and self._think is None
            and self._whole_text is None
            and not self._repeats.watching
            and not self._joiner.holding
        )

    def _end_body(self, out: list[AnswerEvent]) -> None:
        self._between = False
        super()._end_body(out)

    def _skips(self, event: Event, value: Any) -> bool:
        return event.event != "message" and not _is_chunk(value)  # frame-unknown-event-name

    def _value(self, value: Any, out: list[AnswerEvent]) -> None:
        """One JSON value: a chunk, a reply, an error, or a list of these (Gemini sends its errors in a list)."""
        if isinstance(value, list):
            for item in value:
                if isinstance(item, dict) and not self._done:
                    self._chunk(item, out)
        elif isinstance(value, dict):
            self._chunk(value, out)
        elif value == _DONE:
            self._end()
        elif value is not None:
            self._note("json-parse", "the data of an event is no object")
            self._fail(
                "The model's server sent something that is no answer.",
                detail=shown(value) if isinstance(value, str) else brief(value),
            )

    def _chunk(self, chunk: dict[str, Any], out: list[AnswerEvent]) -> None:
        if self.deltas <= _MODEL_BY:
            self._add_model(chunk.get("model"))
        choices = chunk.get("choices")
        if isinstance(choices, dict):
            choices = [choices]
        error = chunk.get("error")
        if not error and (chunk.get("object") == "error" or chunk.get("type") == "error"):
            error = chunk
        before = self._finish
        if isinstance(choices, list):
            for choice in choices:
                self._choice(choice, out)
        self._usage_of(chunk, with_text=bool(choices) and before is None and self._finish is None)
        if not isinstance(choices, list) and not error and not isinstance(chunk.get("usage"), dict):
            self._note("choices-missing", "a chunk has no choices")
            self._clue = self._clue or detail_of(chunk)
        if error:  # error-object-after-text
            self._note("error-in-stream", "an error came among the data")
            self._fail("The model's server reported an error.", detail=detail_of(error))

    def _usage_of(self, chunk: dict[str, Any], *, with_text: bool) -> None:
        if chunk.get("usage") is not None and self._add_usage(chunk["usage"]) and with_text:
            self._usage_reports += 1
            if self._usage_reports > 1:  # usage-cumulative-each-chunk: Gemini, vLLM's continuous usage
                self._note("usage-in-every-chunk", "usage came with each chunk, as a running total")
        for key, value in chunk.items():  # dialect-groq-usage
            if key.startswith("x_") and isinstance(value, dict) and value.get("usage") is not None:
                self._note("usage-nonstandard-place", f"usage came inside {key[:40]}")
                self._add_usage(value["usage"])

    def _choice(self, choice: Any, out: list[AnswerEvent]) -> None:
        if not isinstance(choice, dict):
            self._note("choices-missing", "a choice is no object")
            return
        if choice.get("index") not in (0, None, "0"):
            self._note("choices-several", "more than one choice came; only choice 0 is the answer")
            return
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, out)
        elif isinstance(choice.get("text"), str):
            self._note("delta-missing", "a choice has text instead of a delta")
            self._strings(choice["text"], out)
        elif not isinstance(message, dict):
            self._note("delta-missing", "a choice has no delta")
        if isinstance(message, dict):
            self._message(message, out)
        self._add_reason(choice.get("finish_reason"))
        if choice.get("usage") is not None:  # usage-inside-choice
            self._note("usage-nonstandard-place", "usage came inside a choice")
            self._add_usage(choice["usage"])
        if choice.get("error"):
            self._note("error-in-stream", "an error came inside a choice")
            self._fail("The model's server reported an error.", detail=detail_of(choice["error"]))

    def _delta(self, delta: dict[str, Any], out: list[AnswerEvent]) -> None:
        thought = delta.get("reasoning_content")
        if thought is None:
            thought = delta.get("reasoning")
        if thought:
            for text in _texts(thought):
                self._add_reasoning(text, out)
        self._strings(delta.get("content"), out)
        self._strings(delta.get("refusal"), out)
        if delta.get("tool_calls"):
            self._add_tools(delta["tool_calls"])
        if delta.get("function_call"):
            self._note("legacy-function-call", "the call came as function_call, the older form of tool_calls")
            self._add_tools([{"index": _FUNCTION_CALL, "function": delta["function_call"]}])

    def _message(self, message: dict[str, Any], out: list[AnswerEvent]) -> None:
        """A whole message: all of a JSON reply, or put beside or instead of a delta in a stream."""
        calls = message.get("tool_calls")
        if isinstance(calls, list):  # by the book these are numbered by their place
            calls = [{"index": place, **call} if isinstance(call, dict) else call for place, call in enumerate(calls)]
        if not self.deltas:
            if self._head is None:
                self._note("delta-missing", "a chunk holds a whole message instead of a delta")
            self._delta({**message, "tool_calls": calls}, out)
            return
        if calls and not len(self._tools):
            self._add_tools(calls)
        content, so_far = message.get("content"), self._joined(self._texts)
        if isinstance(content, str) and content:
            self._note("repeated-full-text", "the last chunk holds the whole message again")
            if content.startswith(so_far):
                self._strings(content[len(so_far) :], out)

    def _strings(self, content: Any, out: list[AnswerEvent]) -> None:
        """Answer text in any of its forms: a string, a list of parts, or something that is neither."""
        if content is None or content == "":
            return
        if isinstance(content, str):
            self._add_text(content, out)
            return
        self._note("content-not-string", "the content of a delta is no string")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            thinking = isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")
            for text in _texts(part):
                if thinking:  # Mistral's reasoning models
                    self._add_reasoning(text, out)
                else:
                    self._add_text(text, out)


def _is_chunk(value: Any) -> bool:
    """Whether the data of an event with an unknown name is a chunk all the same."""
    return isinstance(value, dict) and (
        value.get("object") == "chat.completion.chunk" or isinstance(value.get("choices"), list)
    )


def _texts(part: Any, depth: int = 0) -> list[str]:
    """The strings in a content part, whatever its shape."""
    if depth > _PART_DEPTH:
        return []
    if isinstance(part, str):
        return [part] if part else []
    if isinstance(part, list):
        return [text for item in part for text in _texts(item, depth + 1)]
    if isinstance(part, dict):
        for key in ("text", "thinking", "refusal", "value", "content"):
            if part.get(key):
                return _texts(part[key], depth + 1)
        return []
    if part is None:
        return []
    return [json_text(part)]  # a number or a truth value: a token that a serialiser took for one
