"""How a visitor of each kind of chatbot asks, reads, stops and goes on: what an exam needs to hold the front end."""

from __future__ import annotations

import codecs
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import quote, urlsplit, urlunsplit

from motamot.answer import AnswerEvent, Code, Ended, Outcome, Started, Text
from motamot.errors import InvalidRequest, LimitExceeded
from motamot.exam.asking import WAYS, question
from motamot.protocols import PROTOCOLS
from motamot.protocols.base import failure
from motamot.sse import Decoder, Event
from motamot.tape import Request

__all__ = ["FORMS", "PRESETS", "Hearing", "Preset", "Said", "Talk", "events_in", "named_in", "template", "with_headers"]

EVENT_BYTES = 8 << 20


class Said(NamedTuple):
    """One message of a conversation."""

    role: str
    text: str
    id: str


@dataclass(slots=True)
class Talk:
    """One visitor's conversation, as its client knows it.

    visitor: the secret it made. id: of the conversation, ours where the client names it. told: by the server, if it
    does. history: what was said, for clients that send it each time; empty answers are not kept.
    """

    visitor: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    told: str | None = None
    exchange: str | None = None
    history: list[Said] = field(default_factory=list)

    def say(self, role: str, text: str) -> None:
        """Note what was said; a client knows an answer by the name its server gave it, if it gave one."""
        name = self.exchange if role == "assistant" and self.exchange is not None else f"{self.id}-{len(self.history)}"
        self.history.append(Said(role, text, name))

    def heard(self, events: Sequence[AnswerEvent]) -> None:
        """Learn the names that the server gives."""
        for event in events:
            if isinstance(event, Started):
                self.told = event.conversation or self.told
                self.exchange = event.exchange or self.exchange


class Hearing(Protocol):
    """The reading end of one response. ended: its end was said."""

    ended: bool

    def feed(self, chunk: bytes) -> Sequence[AnswerEvent]: ...
    def close(self) -> Sequence[AnswerEvent]: ...


class Preset(ABC):
    """One kind of chatbot, seen from its visitor.

    claims: what this kind can tell a visitor, and is judged by:
            `ends` (that an answer is cut), `errors` (that it failed), `usage` (what it used),
            `history` (a next question belongs to the same conversation), `memory` (and what was said is the chatbot's
            to know), `keys` (a request names its question, so that it can be told when it comes twice),
            `stop` (leaving, or a route, is to stop the model), `cr` (a carriage return in the text: lines of an event
            stream end with it, so that raw text in one has no way to say it).
    twice:  the first response only says where the answer is: see `then`.
    """

    name: str
    claims: frozenset[str]
    twice: ClassVar[bool] = False

    @abstractmethod
    def ask(self, url: str, talk: Talk, message: str) -> Request:
        """The request that asks `message`, which is the last in the talk's history."""

    def then(self, asked: Request, body: bytes) -> Request | None:
        """The request whose response holds the answer, by the body of the first one's; None where it does not say."""
        del asked, body
        return None

    @abstractmethod
    def hear(self) -> Hearing:
        """A reader for its response."""

    def stop(self, url: str, talk: Talk) -> Request | None:
        """The request that stops, or None: leaving is all there is."""
        del url, talk
        return None


@dataclass(frozen=True, slots=True)
class _Ours(Preset):
    """A protocol of `motamot.protocols`."""

    name: str
    claims: frozenset[str]
    body: Callable[[Talk, str], dict[str, Any]] | None
    stops: Callable[[str, Talk], Request | None] = lambda _, __: None

    def ask(self, url: str, talk: Talk, message: str) -> Request:
        headers = (("Authorization", f"Bearer {talk.visitor}"),) if self.name == "motamot" else ()
        if self.body is None:
            return question(url, message=message, protocol=self.name, headers=headers)
        return question(url, body=json.dumps(self.body(talk, message)).encode(), headers=headers)

    def hear(self) -> Hearing:
        return PROTOCOLS[self.name].reader()

    def stop(self, url: str, talk: Talk) -> Request | None:
        return self.stops(url, talk)


def _native(talk: Talk, message: str) -> dict[str, Any]:
    told: dict[str, Any] = {"message": message, "key": f"exam-{secrets.token_urlsafe(9)}"}
    return told | ({"conversation": talk.told} if talk.told else {})


def _stop_native(url: str, talk: Talk) -> Request | None:
    parts = urlsplit(url)
    base = parts.path.rsplit("/api/chat", 1)[0]
    if talk.exchange is None:
        return None
    there = urlunsplit(parts._replace(path=f"{base}/api/exchanges/{quote(talk.exchange, safe='')}/stop", query=""))
    headers = (("Authorization", f"Bearer {talk.visitor}"), ("Content-Type", "application/json"))
    return Request(method="POST", url=there, headers=headers, body=b"{}")


def _messages(talk: Talk) -> list[dict[str, Any]]:
    """What was said, the question last."""
    return [{"role": said.role, "content": said.text} for said in talk.history]


def _openai(talk: Talk, _: str) -> dict[str, Any]:
    return {
        "model": "default",
        "messages": _messages(talk),
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _ga(talk: Talk, message: str) -> dict[str, Any]:
    return {"message": message, "conversationHistory": _messages(talk)[:-1]}


def _ui(talk: Talk, _: str) -> dict[str, Any]:
    messages = [
        {"id": said.id, "role": said.role, "parts": [{"type": "text", "text": said.text}]} for said in talk.history
    ]
    return {"id": talk.id, "messages": messages, "trigger": "submit-message"}


def _ag(talk: Talk, _: str) -> dict[str, Any]:
    messages = [{"id": said.id, "role": said.role, "content": said.text} for said in talk.history]
    return {
        "threadId": talk.id,
        "runId": secrets.token_urlsafe(12),
        "state": {},
        "messages": messages,
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


def _claims(words: str) -> frozenset[str]:
    return frozenset(words.split())


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            _Ours("motamot", _claims("cr ends errors history keys memory stop usage"), _native, _stop_native),
            _Ours("openai", _claims("cr ends errors history stop usage"), _openai),
            _Ours("ui-message", _claims("cr ends errors history keys stop"), _ui),
            _Ours("ag-ui", _claims("cr errors history keys stop"), _ag),
            _Ours("ga-text", _claims("errors history stop"), _ga),
            _Ours("morceaux", _claims("cr ends errors stop"), None),
        )
    }
)
"""By name. `FORMS` are made by `template`."""

assert set(PRESETS) == set(WAYS)


# --- any other chatbot: a template of its request, and where the text stands


def template(name: str, body: str | None, *, read: str | None, headers: Sequence[tuple[str, str]] = ()) -> Preset:
    """A preset from what its owner says of it.

    name: of `FORMS`: `events` (an event stream of JSON), `event-text` (one whose data is the text, with `[DONE]` at its
          end), `json-lines`, or `plain-text`.
    body: the request's JSON, with `{{message}}`, `{{conversation}}`, `{{visitor}}` and `{{history}}` in it; None for
          `{"message": …}`.
    read: where the text stands in each JSON value: `choices.0.delta.content`.
    Raises: InvalidRequest.
    """
    if name not in FORMS:
        raise InvalidRequest(f"{name!r} is no form of an answer: {', '.join(FORMS)}", field="preset")
    wanted = body if body is not None else '{"message": "{{message}}"}'
    if "{{message}}" not in wanted:
        raise InvalidRequest("the request's template says nowhere {{message}}", field="request")
    made = _Template(name, wanted, read.split(".") if read else None, tuple(headers))
    try:
        json.loads(made.filled(Talk(), 'a "word"'))
    except ValueError as error:
        raise InvalidRequest(f"the request's template is no JSON once it is filled: {error}", field="request") from None
    return made


@dataclass(frozen=True, slots=True)
class _Template(Preset):
    name: str
    body: str
    read: list[str] | None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def claims(self) -> frozenset[str]:  # type: ignore[override]
        claims = "stop errors" if self.name != "plain-text" else "stop"
        if self.name != "event-text":
            claims += " cr"
        if "{{history}}" in self.body:
            claims += " history"
        elif "{{conversation}}" in self.body or "{{visitor}}" in self.body:
            claims += " history memory"
        return _claims(claims)

    def filled(self, talk: Talk, message: str) -> str:
        """The body for a message."""
        history = json.dumps(_messages(talk)[:-1])
        return (
            self.body.replace('"{{history}}"', history)
            .replace("{{message}}", json.dumps(message)[1:-1])
            .replace("{{conversation}}", talk.id)
            .replace("{{visitor}}", talk.visitor)
        )

    def ask(self, url: str, talk: Talk, message: str) -> Request:
        return question(url, body=self.filled(talk, message).encode(), headers=self.headers)

    def hear(self) -> Hearing:
        return FORMS[self.name](self.read)


class _Pieces:
    """Reads JSON values and takes the text that stands at one place; an `error` member is an error."""

    def __init__(self, read: list[str] | None) -> None:
        self.ended = False
        self._read = read
        self._waiting = bytearray()

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """The next bytes."""
        if b"\n" not in chunk:
            if len(self._waiting) <= EVENT_BYTES:  # no longer line is read by anybody
                self._waiting += chunk
            return []
        *lines, rest = (bytes(self._waiting) + chunk).split(b"\n")
        self._waiting = bytearray(rest)
        return [event for line in lines for event in self.value(line)]

    def close(self) -> list[AnswerEvent]:
        """The end of the bytes; whether the answer was whole cannot be known."""
        rest, self._waiting = bytes(self._waiting), bytearray()
        events = self.value(rest) if rest.strip() else []
        if not self.ended:
            self.ended = True
            events.append(Ended(outcome=Outcome.COMPLETE))
        return events

    def value(self, data: bytes) -> list[AnswerEvent]:
        """What one JSON text means."""
        if self.ended or not data.strip():
            return []
        try:
            told = json.loads(data)
        except (ValueError, RecursionError):
            return []
        if isinstance(told, dict) and told.get("error"):
            self.ended = True
            error = told["error"]
            words = error.get("message") if isinstance(error, dict) else error
            return [failure(Code.UPSTREAM_ERROR, str(words))]
        for step in self._read or ():
            if isinstance(told, dict):
                told = told.get(step)
            elif isinstance(told, list) and step.isdecimal() and int(step) < len(told):
                told = told[int(step)]
            else:
                return []
        return [Text(told)] if isinstance(told, str) and told else []


def events_in(decoder: Decoder, chunk: bytes) -> list[Event]:
    """The events that `chunk` completes; none any more once one was longer than is read."""
    try:
        return decoder.feed(chunk)
    except LimitExceeded:
        return []


class _Events(_Pieces):
    """The same in an event stream."""

    def __init__(self, read: list[str] | None) -> None:
        super().__init__(read)
        self._decoder = Decoder(max_event_bytes=EVENT_BYTES)

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        found: list[AnswerEvent] = []
        for event in events_in(self._decoder, chunk):
            found += self.value(event.data.encode("utf-8", "replace"))
        return found


class _EventText(_Events):
    """The data of each event is a piece of the text, as most tutorials write it and their pages read it."""

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        found: list[AnswerEvent] = []
        for event in events_in(self._decoder, chunk):
            if self.ended:
                break
            if event.event == "error":
                found.append(failure(Code.UPSTREAM_ERROR, event.data))
                self.ended = True
            elif event.event == "message" and event.data == "[DONE]":
                found.append(Ended(outcome=Outcome.COMPLETE))
                self.ended = True
            elif event.event == "message" and event.data:
                found.append(Text(event.data))
        return found


class _Plain:
    """Plain text: nothing but the answer."""

    def __init__(self, _: list[str] | None) -> None:
        self.ended = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        text = self._decoder.decode(chunk)
        return [Text(text)] if text else []

    def close(self) -> list[AnswerEvent]:
        if self.ended:
            return []
        self.ended = True
        rest = self._decoder.decode(b"", final=True)
        return [*([Text(rest)] if rest else []), Ended(outcome=Outcome.COMPLETE)]


FORMS: Mapping[str, Callable[[list[str] | None], Hearing]] = MappingProxyType(
    {"events": _Events, "event-text": _EventText, "json-lines": _Pieces, "plain-text": _Plain}
)
"""The forms of an answer that `template` makes presets for."""


def with_headers(request: Request, headers: Sequence[tuple[str, str]]) -> Request:
    """`request` with headers of the owner's, in the place of ours of the same name."""
    given = {name.lower() for name, _ in headers}
    kept = tuple((name, value) for name, value in request.headers if name.lower() not in given)
    return replace(request, headers=(*kept, *headers))


def named_in(request: Request, talk: Talk) -> Request:
    """`request` with the talk's own names where it says `{{conversation}}`, `{{visitor}}` or `{{exchange}}`.

    The conversation and the exchange are called as the server has called them, if it has.
    """
    url, body = request.url, request.body
    names = {"conversation": talk.told or talk.id, "visitor": talk.visitor, "exchange": talk.exchange or ""}
    for name, value in names.items():
        url = url.replace(f"{{{{{name}}}}}", quote(value, safe=""))
        body = body.replace(f"{{{{{name}}}}}".encode(), json.dumps(value)[1:-1].encode())
    return replace(request, url=url, body=body)
