"""What every protocol is made of: how its clients ask, its writer, its reader, and what it cannot carry.

A protocol is one kind of client's habits. Its two ends meet in one law, which the tests prove with any text and any
cut: `reader(writer(events)) == events`, up to what `cannot_carry` names. Nothing here does I/O.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from motamot.answer import AnswerEvent, Code, Ended, Outcome, SurrogateJoiner, Text
from motamot.errors import InvalidRequest, LimitExceeded, MotamotError
from motamot.limits import Limits
from motamot.protocols._json import encodable, encode_line, kind
from motamot.sse import Decoder, Event

__all__ = [
    "HEADERS",
    "READER_EVENT_BYTES",
    "Asked",
    "Loss",
    "OfferedTool",
    "PastCall",
    "PastMessage",
    "Protocol",
    "Reader",
    "Writer",
    "checked_id",
    "event_id",
    "failure",
    "parse_event_id",
]

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        # no-transform: a proxy that compresses holds a stream back; nginx buffers unless X-Accel-Buffering says no.
        "Cache-Control": "no-cache, no-transform",
        "X-Accel-Buffering": "no",
        "X-Content-Type-Options": "nosniff",
    }
)

READER_EVENT_BYTES = 6 * (4 << 20) + 65_536
"""The largest event our readers take: a whole answer (4 MiB) of characters that JSON writes as six bytes each."""

HEARTBEAT = b":\n"  # one line end: no reader may take a comment for an event (facts: openai-python, httpx-sse)

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_EVENT_ID = re.compile(r"([A-Za-z0-9_-]{1,128})\.([0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A tool call in a history the caller gave. arguments: JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage:
    """One message of a history the caller gave. role: `user`, `assistant` or `tool`.

    calls:   the tools an assistant message called (content may then be "").
    call_id: on a tool message, the call it answers.
    """

    role: str
    content: str = ""
    calls: tuple[PastCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool of the caller's own, which nothing here runs. parameters: a JSON Schema of an object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, whatever protocol it came by; every text in it can be written as UTF-8.

    message:      the user's words, never blank; "" only on `morceaux`, where it stands for the assistant's own
                  opening question.
    conversation, assistant, replaces: ids and names as the client gives them; none of them is a permission.
    thread:       the client's own name for its conversation, where its protocol has one: a new one makes it.
    key:          the client's name for this exchange: the same key joins the exchange it already names.
    resumable:    the client says that it can come back after a lost connection.
    history:      what was said before `message`, where the client keeps the history; None where we keep it.
    followed:     what came after `message` (`openai`: tool calls the caller has run, with their results).
    system:       the caller's own instructions (`openai`), to follow the assistant's own prompt; "" for none.
    tools:        the caller's own tools: their calls are returned to the caller, and nothing is run here.
    tool_choice:  `auto`, `none`, `required`, or None to say nothing (one tool by its name: see `options`).
    stream:       an event stream is wanted; else one JSON document.
    include_usage: the stream is to name its tokens (`openai`).
    max_tokens:   the caller's own bound on the answer; the assistant's stands beside it.
    options:      what else goes into the model's request as the caller set it (`temperature`, …), checked.
    """

    message: str
    conversation: str | None = None
    assistant: str | None = None
    thread: str | None = None
    key: str | None = None
    resumable: bool = False
    replaces: str | None = None
    history: tuple[PastMessage, ...] | None = None
    followed: tuple[PastMessage, ...] = ()
    system: str = ""
    tools: tuple[OfferedTool, ...] = ()
    tool_choice: str | None = None
    stream: bool = True
    include_usage: bool = False
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something a protocol cannot carry. name: a word for programs; sentence: for the documentation."""

    name: str
    sentence: str


class Writer(ABC):
    """The server's end of one response. Not for two threads; holds no more than a few characters.

    Every block it writes has data, uses LF only, and is ended by an empty line. The bytes of several calls may be
    put together and cut anywhere.
    """

    @abstractmethod
    def write(self, number: int, event: AnswerEvent) -> bytes:
        """The bytes of event `number` (from 1, in order, without gaps); b"" where the protocol has none for it."""

    def prime(self, number: int, event: AnswerEvent) -> None:
        """Take note of an event that an earlier response has carried: what follows is written as if it had here."""
        self.write(number, event)

    def heartbeat(self) -> bytes:
        """A sign of life between two events: a comment, one line end, no event in any reader."""
        return HEARTBEAT


class Reader:
    """The client's end of one response: bytes in, answer events out.

    Never raises, whatever the bytes: what it does not know or cannot read is skipped. Exactly one `Ended` comes, last;
    bytes after it are ignored. `Text` may be cut otherwise than it was written, and can always be encoded.

    ended:         the `Ended` has come.
    last_event_id: what a reconnection sends as `Last-Event-ID`; "" if there is none.
    retry:         milliseconds the server asked to wait before one, or None.
    """

    def __init__(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> None:
        self.ended = False
        self._decoder = Decoder(max_event_bytes=max_event_bytes)
        self._joiner = SurrogateJoiner()

    @property
    def last_event_id(self) -> str:
        return self._decoder.last_event_id

    @property
    def retry(self) -> int | None:
        return self._decoder.retry

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Read the next bytes, cut anywhere; give the answer events they complete, in order."""
        if self.ended:
            return []
        try:
            events = self._decoder.feed(chunk)
        except LimitExceeded as error:
            return self._finish(failure(Code.LIMIT, error.message))
        return self._given(answer for event in events for answer in self._take(event))

    def close(self) -> list[AnswerEvent]:
        """The bytes have ended. An answer without its end was cut: it is given one, failed with `upstream_cut`.

        A client that can resume does so instead of believing that end.
        """
        if self.ended:
            return []
        try:
            self._decoder.close()
        except LimitExceeded as error:
            return self._finish(failure(Code.LIMIT, error.message))
        return self._given(self._at_close())

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        """What one event of the stream means; empty for one that is not known."""
        raise NotImplementedError

    def _at_close(self) -> Iterable[AnswerEvent]:
        """What the end of the bytes means where no end was said: an `Ended`, last."""
        return (failure(Code.UPSTREAM_CUT),)

    def _given(self, answers: Iterable[AnswerEvent]) -> list[AnswerEvent]:
        """The answers up to the end, with texts that can be encoded."""
        given: list[AnswerEvent] = []
        for answer in answers:
            if isinstance(answer, Ended):
                return given + self._finish(answer)
            if isinstance(answer, Text):
                given += self._text(answer.text)
            else:
                given += self._orphan()
                given.append(answer)
        return given

    def _text(self, delta: str) -> list[AnswerEvent]:
        text = self._joiner.feed(delta)
        return [Text(text)] if text else []

    def _orphan(self) -> list[AnswerEvent]:
        orphan = self._joiner.close()
        return [Text(orphan)] if orphan else []

    def _finish(self, end: Ended) -> list[AnswerEvent]:
        self.ended = True
        return [*self._orphan(), end]


class Protocol(ABC):
    """How one kind of client asks, reads, stops and resumes.

    name:         as in the settings and on the command line.
    content_type, headers: of the stream's response; `Connection` is the server's to set.
    refusal_type: the media type of what `refusal` gives.
    request, stop, resume: for the documentation, one sentence each.
    stream:       likewise, what the stream looks like; ends: what is written for each outcome.
    cannot_carry: what gets lost between the two ends, by the protocol's nature.
    """

    name: str
    content_type: str = "text/event-stream; charset=utf-8"
    headers: Mapping[str, str] = HEADERS
    refusal_type: str = "application/json"
    request: str
    stream: str
    ends: Mapping[str, str]
    stop: str
    resume: str
    cannot_carry: tuple[Loss, ...] = ()

    @abstractmethod
    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> Asked:
        """What a client asks.

        body:   the request's body (`morceaux`: its query string), or the object or query already decoded.
        Raises: InvalidRequest, with the field, and the limit where one was passed. Nothing is trusted before.
        """

    @abstractmethod
    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> Writer:
        """A writer for one response.

        asked:    what was asked, where the answer's form depends on it (`openai`).
        exchange: the exchange's id, for a writer that resumes and is not primed from the first event on.
        now:      seconds since the epoch, where the stream carries a date (`openai`).
        """

    @abstractmethod
    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> Reader:
        """A reader for one response; it takes no event of more than `max_event_bytes`."""

    def whole(
        self, events: Sequence[AnswerEvent], asked: Asked | None = None, *, now: int = 0, elapsed: float = 0.0
    ) -> bytes | None:
        """The whole answer as one JSON document, or None where the protocol has no such form.

        elapsed: seconds the exchange took. The HTTP status is the server's to choose, by `Ended`.
        """
        return None

    def refusal(self, error: MotamotError) -> bytes:
        """The body of a response that refuses a request, before any stream."""
        told = {"code": error.code, "message": error.message}
        if isinstance(error, InvalidRequest):
            told |= {name: value for name in ("field", "limit") if (value := getattr(error, name)) is not None}
        return encode_line({"error": told})


FAILURES: Mapping[Code, str] = MappingProxyType(
    {
        Code.UPSTREAM_ERROR: "The model could not answer.",
        Code.UPSTREAM_CUT: "The answer broke off before its end.",
        Code.TIMEOUT: "The answer took too long.",
        Code.TOOL_BUDGET: "The answer needed more tool calls than are allowed.",
        Code.LIMIT: "The answer grew past a limit.",
    }
)
_CODES = frozenset(str(code) for code in Code)
INTERRUPTED = "interrupted"  # the code of an exchange whose server ended, where a protocol writes it as failed
_INTERRUPTED_MESSAGE = "The server was stopped before the answer's end."


def failure(code: Code, message: str | None = None) -> Ended:
    """The end of an answer that failed, with our own words for it where none are given."""
    return Ended(outcome=Outcome.FAILED, code=code, message=message or FAILURES[code])


def has_failed(end: Ended) -> bool:
    """Protocols with a single word for it write `interrupted` as failed."""
    return end.outcome in (Outcome.FAILED, Outcome.INTERRUPTED)


def failure_words(end: Ended) -> tuple[str, str]:
    """The code and the message a visitor is told for an exchange that failed or was interrupted; never empty."""
    if end.outcome is Outcome.INTERRUPTED:
        return INTERRUPTED, end.message or _INTERRUPTED_MESSAGE
    code = end.code or Code.UPSTREAM_ERROR
    return str(code), end.message or FAILURES[code]


def failure_read(code: object, message: object) -> Ended:
    """The reader's side of `failure_words`, from whatever a server wrote there."""
    said = encodable(message) if isinstance(message, str) and message else None
    if code == INTERRUPTED:
        return Ended(outcome=Outcome.INTERRUPTED, message=said or _INTERRUPTED_MESSAGE)
    known = Code(code) if isinstance(code, str) and code in _CODES else Code.UPSTREAM_ERROR
    return failure(known, said)


def checked_id(exchange: str) -> str:
    """`exchange`, if it may stand in an `id:` line and in a header.

    Raises: ValueError for anything but 1 to 128 of A-Z, a-z, 0-9, `_` and `-`: a line end there would forge an event.
    """
    if not _ID.fullmatch(exchange):
        raise ValueError("an exchange's id holds 1 to 128 of A-Z, a-z, 0-9, _ and - only")
    return exchange


def event_id(exchange: str, number: int) -> str:
    """The id of event `number` of an exchange, as `id:` lines and `Last-Event-ID` carry it."""
    return f"{checked_id(exchange)}.{number}"


def parse_event_id(text: str) -> tuple[str, int] | None:
    """Exchange and event number of such an id, or None for anything else (a stranger may send any text)."""
    found = _EVENT_ID.fullmatch(text)
    return (found[1], int(found[2])) if found else None


# --- fields of a request


def text_field(asked: Mapping[str, Any], name: str, most: int) -> str:
    """A required text of at most `most` bytes of UTF-8, with something to read in it."""
    value = asked.get(name)
    if not isinstance(value, str):
        found = "is missing" if name not in asked else f"must be a string, not {kind(value)}"
        raise InvalidRequest(f"The field `{name}` {found}.", field=name)
    if not value.strip():
        raise InvalidRequest("Message cannot be empty.", field=name)
    bounded(value, name, most)
    return value


def bounded(value: str, name: str, most: int) -> None:
    """Raises InvalidRequest when `value` takes more than `most` bytes of UTF-8."""
    if len(value) > most or len(value.encode()) > most:
        raise InvalidRequest(f"The field `{name}` is longer than {most} bytes.", field=name, limit=most)


def name_field(asked: Mapping[str, Any], name: str, limits: Limits) -> str | None:
    """An optional id, name or key of at most `key_bytes`: printable, so that no log and no header is broken by it."""
    value = asked.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRequest(f"The field `{name}` must be a string, not {kind(value)}.", field=name)
    bounded(value, name, limits.key_bytes)
    if not value or not value.isprintable() or "\ufffd" in value:
        raise InvalidRequest(f"The field `{name}` must hold printable characters.", field=name)
    return value


def flag_field(asked: Mapping[str, Any], name: str) -> bool:
    """An optional boolean, false by default."""
    value = asked.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(f"The field `{name}` must be true or false, not {kind(value)}.", field=name)
    return value
