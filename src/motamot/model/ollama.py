"""Completions as Ollama's own API streams them: one JSON object a line, no event stream.

Source: Ollama's API description, `/api/chat` (and `/api/generate`, whose text is in `response`).
"""

from __future__ import annotations

from typing import Any

from motamot.answer import AnswerEvent
from motamot.limits import Limits
from motamot.model.base import Assembly, Dialect
from motamot.model.events import json_values, shown
from motamot.model.words import detail_of

__all__ = ["OllamaAssembly"]

_BOM = b"\xef\xbb\xbf"


class OllamaAssembly(Assembly):
    """Lines of `message` with text, thinking and whole tool calls; `done`, its reason and the counts on the last.

    Its tool calls have neither index nor id, arguments are objects, and a turn with calls ends with `stop`: here
    that is the book, and not reported.
    """

    _end_mark_name = '"done": true'
    _stop_ends_tools = False

    def __init__(self, *, dialect: Dialect | None = None, limits: Limits | None = None) -> None:
        super().__init__(dialect=dialect, limits=limits)
        self._tools = self._fragments(by_the_book=False)
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Take the next bytes of the body; see `Assembly.feed`."""
        out: list[AnswerEvent] = []
        if self._closed:
            return out
        self._started = self._started or bool(chunk)
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if self._done:
                return out
            self._pend(line)
            self._line(self._unpend(), out)
        self._pend(rest)
        return out

    def _end_body(self, out: list[AnswerEvent]) -> None:
        line = self._unpend()
        if line.strip() and not self._done:  # the last line may do without its line end
            values, rest = json_values(line.decode("utf-8", "replace").strip())
            if values and not rest:
                self._line(line, out)
            elif self.deltas or line.lstrip().startswith(b"{"):
                self._note("unterminated-last-event", "the stream ended inside a line")
            else:
                self._line(line, out)

    def _pend(self, piece: bytes) -> None:
        if self._done:
            return
        self._pending_bytes += len(piece)
        if self._pending_bytes > self._limits.event_bytes:
            self._fail_event_limit()
        elif piece:
            self._pending.append(piece)

    def _unpend(self) -> bytes:
        line = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        return line

    def _line(self, line: bytes, out: list[AnswerEvent]) -> None:
        text = line.removeprefix(_BOM).decode("utf-8", "replace").strip()
        values, rest = json_values(text)
        for value in values:
            if self._done:
                return
            if isinstance(value, dict):
                self._object(value, out)
            else:
                rest = rest or text
        if rest and not self._done:
            self._note("json-parse", "a line is not a JSON object")
            self._fail("The model's server sent something that is no answer.", detail=shown(rest))

    def _object(self, value: dict[str, Any], out: list[AnswerEvent]) -> None:
        self._add_model(value.get("model"))
        message = value.get("message")
        if not isinstance(message, dict):
            message = {"content": value.get("response"), "thinking": value.get("thinking")}
        for key in ("thinking", "content"):
            text = message.get(key)
            if isinstance(text, str) and text:
                if key == "content":
                    self._add_text(text, out)
                else:
                    self._add_reasoning(text, out)
        if message.get("tool_calls"):
            self._add_tools(message["tool_calls"])
        if value.get("error"):
            self._note("error-in-stream", "an error came among the lines")
            self._fail("The model's server reported an error.", detail=detail_of(value["error"]))
            return
        if value.get("done") is True:
            self._add_reason(value.get("done_reason"))
            counts = {"prompt_tokens": value.get("prompt_eval_count"), "completion_tokens": value.get("eval_count")}
            if any(count is not None for count in counts.values()):
                self._add_usage(counts)
            self._end_mark = True
            self._done = True
