"""One request for a completion and its response, as they pass: what was asked, what came, what it cost.

No text is kept: fingerprints of the messages, the question's beginning for as long as helpers of it may come, counts.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from motamot.answer import Source, Usage
from motamot.errors import InvalidRequest
from motamot.exam.meter.replies import Reply, reply_of
from motamot.model.inflate import Inflater

__all__ = ["Completion", "Messages"]

REQUEST_BYTES = 8 << 20
"""Of a request that are looked at; a longer one is passed on, and told to be too large to read."""
MESSAGES = 2_000
"""Of a request that are compared; with more it is passed on, and told to have too many."""
QUESTION_CHARACTERS = 2_000
"""Of a question that are kept for a minute or so, to know what quotes it."""
_PATHS = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic-messages",
    "/api/chat": "ollama-ndjson",
}
_NAMES = ("exchange", "exchange_id", "turn_id", "request_id", "trace_id", "run_id", "message_id")  # in `metadata`
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_RETRY_COUNT = "x-stainless-retry-count"
_PATH_CHARACTERS = 200
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Messages:
    """What a request says to the model, by fingerprints.

    all:      of every message, in order. users: of those of the user alone, up to the last, eight bytes each.
    question: the beginning of the last text of the user's. size: bytes of all texts.
    after:    messages behind it (a tool's results, the model's calls).
    """

    all: str
    users: bytes
    question: str
    size: int
    after: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> tuple[Messages, str]:
        """Of a request's body, in whatever interface; and all its texts, which are not to be kept.

        Raises: InvalidRequest where it cannot be looked at.
        """
        given = body.get("messages", body.get("input"))
        items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else []
        if isinstance(given, list):
            items = given
        messages = [item for item in items if isinstance(item, dict)]
        if len(messages) > MESSAGES:
            raise InvalidRequest(f"its request has more than {MESSAGES} messages and was not compared")
        users = [place for place, message in enumerate(messages) if _asks(message)]
        last = users[-1] if users else -1
        told = "\n".join(
            [_text(body.get("system") or body.get("instructions")), *(_text(m.get("content")) for m in messages)]
        )
        return cls(
            all=_hash(json.dumps([messages, body.get("system"), body.get("instructions")], sort_keys=True)),
            users=b"".join(bytes.fromhex(_hash(_text(messages[place].get("content")))) for place in users),
            question=_text(messages[last].get("content"))[:QUESTION_CHARACTERS] if users else "",
            size=len(told.encode("utf-8", "surrogatepass")),
            after=len(messages) - 1 - last if users else 0,
        ), told


def _asks(message: Mapping[str, Any]) -> bool:
    """Whether this is a message of the user's own; Anthropic's tool results come under the same role."""
    return message.get("role") == "user" and bool(_text(message.get("content")))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict)).strip("\n")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(slots=True, kw_only=True, eq=False)
class Completion:
    """One completion. All `…_at` are `time.monotonic()`.

    number:   from 1, in order of arrival. kind: how the model is asked (`openai-chat`, …).
    marked:   the exchange that the request itself names, and by what (`header`, `traceparent`, `metadata`); else None.
    messages: None where the body could not be read.
    ended:    `complete`, `left` (the chatbot closed first), `cut` or `reset` (the model's server did), `not reached`.
    """

    kind: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    number: int = field(default_factory=lambda: next(_numbers))
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_at: float = field(default_factory=time.monotonic)
    sent_at: float | None = None
    first_at: float | None = None  # a text, a thought or a call came
    ended_at: float | None = None
    status: int | None = None
    ended: str = ""
    model: str = ""
    stream: bool = False
    usage_asked: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    messages: Messages | None = None
    texts: str = field(default="", repr=False)  # of its messages, until its exchange is found
    notes: list[str] = field(default_factory=list)
    _body: bytearray | None = field(default_factory=bytearray, repr=False)
    _inflater: Inflater | None = field(default=None, repr=False)
    _reply: Reply | None = field(default=None, repr=False)

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str]) -> Completion | None:
        """The completion that this request asks for; None where it asks for something else."""
        path = target.partition("?")[0].rstrip("/")
        kind = next((kind for end, kind in _PATHS.items() if path.endswith(end)), None)
        return (
            cls(kind=kind, path=path[-_PATH_CHARACTERS:], headers=headers)
            if kind is not None and method == "POST"
            else None
        )

    # The request

    def asked(self, body: bytes) -> None:
        """The next bytes of the request."""
        if self._body is None:
            return
        self._body += body
        if len(self._body) > REQUEST_BYTES:
            self._body = None
            self.notes.append(f"its request has more than {REQUEST_BYTES >> 20} MiB and was not read")

    def read(self) -> None:
        """The request is whole: see what it says."""
        body, self._body = self._body, None
        if body is None:
            return
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            self.notes.append("its request is no JSON object")
            return
        self.model = model[:200] if isinstance(model := said.get("model"), str) else ""
        self.stream = said.get("stream", self.kind == "ollama-ndjson") is True
        options = said.get("stream_options")
        self.usage_asked = (
            self.kind != "openai-chat"
            or not self.stream
            or bool(isinstance(options, dict) and options.get("include_usage"))
        )
        if isinstance(metadata := said.get("metadata"), dict):
            self.metadata = metadata
        try:
            self.messages, self.texts = Messages.of(said)
        except InvalidRequest as error:
            self.notes.append(error.message)
        except RecursionError:  # what can be read nested so deep cannot always be written
            self.notes.append("its request is nested too deep and was not compared")

    def forget(self) -> None:
        """Its exchange is found: what was needed for that is let go."""
        self.texts, self.metadata = "", {}
        self.headers = {name: value for name, value in self.headers.items() if name == _RETRY_COUNT}

    def marked(self, header: str | None = None) -> tuple[str, str] | None:
        """The exchange that the request names, and by what. header: the one to look in first."""
        if header is not None and (said := self.headers.get(header.lower(), "").strip()):
            return said[:200], "header"
        for name in _NAMES:
            if isinstance(value := self.metadata.get(name), str) and value:
                return value[:200], "metadata"
        if trace := _TRACE.fullmatch(self.headers.get("traceparent", "").strip()):
            return trace[1], "traceparent"
        return None

    @property
    def retried(self) -> int:
        """How often the chatbot's client library says that it has asked before (OpenAI's and Anthropic's do)."""
        count = self.headers.get(_RETRY_COUNT, "")
        return int(count) if count.isascii() and count.isdigit() and len(count) < 4 else 0

    # The response

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The response's head."""
        self.status = status
        encoding = headers.get("content-encoding", "")
        self._inflater = Inflater.named(encoding)
        if self._inflater is None:
            self.notes.append(f"its response is compressed with {encoding[:20]!r}, which the meter cannot read")
            return
        self._reply = reply_of(self.kind, headers.get("content-type", ""))

    def came(self, body: bytes) -> None:
        """The next bytes of the response's body."""
        reply = self._reply
        if reply is None or self._inflater is None:
            return
        try:
            for piece in self._inflater.feed(body):
                reply.feed(piece)
        except zlib.error:
            self.notes.append("its response is not compressed as it says")
            self._reply = None
            return
        if self.first_at is None and reply.begun:
            self.first_at = time.monotonic()

    def over(self, how: str) -> None:
        """The response is over: `complete`, `left`, `cut`, `reset`, or `not reached`."""
        self.ended, self.ended_at = how, time.monotonic()
        if self._reply is not None:
            self._reply.close()

    # What came of it

    @property
    def failed(self) -> bool:
        """Whether nothing came that could have been shown."""
        return self._reply is None or not self._reply.begun

    @property
    def finish(self) -> str:
        """The finish reason, in the words of chat completions; "" where none came."""
        return self._reply.finish if self._reply is not None else ""

    @property
    def error(self) -> bool:
        """Whether the model's server reported an error."""
        return (self.status or 0) >= 400 or (self._reply is not None and self._reply.error)

    @property
    def usage(self) -> Usage:
        """What the provider reported; else an estimate by bytes; unknown where nothing could be read."""
        if self._reply is not None and self._reply.usage is not None:
            return self._reply.usage
        if self._reply is None or self.messages is None:
            return Usage()
        if self.failed and (self.status is None or self.status >= 400):
            return Usage(source=Source.REPORTED)  # nothing was generated
        prompt = _tokens(self.messages.size)
        return Usage(prompt_tokens=prompt, completion_tokens=_tokens(self._reply.size), source=Source.ESTIMATED)


def _tokens(size: int) -> int:
    """Four bytes of UTF-8 a token: the rule of thumb."""
    return -(-size // 4)
