"""`motamot`, the native protocol: one answer event per SSE event, `id: <exchange>.<number>`, nothing lost.

    id: Xq3.7
    data: {"type":"text","text":"Bon"}

The event's kind is its `type`; the other fields are those of `motamot.answer`, those at their default left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

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
from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols._json import encode_line, loads, one_line, plain, request_object
from motamot.protocols.base import (
    READER_EVENT_BYTES,
    Asked,
    Loss,
    Protocol,
    Reader,
    Writer,
    checked_id,
    failure,
    flag_field,
    name_field,
    text_field,
)
from motamot.sse import Event

__all__ = ["PROTOCOL", "Native", "NativeReader", "NativeWriter", "parse_stop", "source_json"]

_Known = (
    Started | Routed | Text | Reasoning | ToolCalled | ToolReturned | Cited | TurnEnded | Ended
)  # a new kind of answer event is added here, and older readers skip it
_encode = msgspec.json.Encoder().encode
_known = msgspec.json.Decoder(_Known).decode
# A history or a role is nowhere in this protocol: a client that sends one is told, and none is smuggled in.
_REFUSED = ("system", "developer", "role", "messages", "history")
_OUTCOMES = frozenset(str(outcome) for outcome in Outcome)
_SEEN_MOST = 1 << 31


class NativeWriter(Writer):
    """The server's end. The id of the exchange comes with `Started`, written or primed, or with the constructor.

    Raises ValueError, from `write`, for an event before the exchange's id is known, or an id that may not be written.
    """

    __slots__ = ("_head",)

    def __init__(self, exchange: str | None = None) -> None:
        self._head = _head(exchange) if exchange is not None else b""

    def write(self, number: int, event: AnswerEvent) -> bytes:
        if not self._head:
            self.prime(number, event)
        try:
            data = _encode(event)
        except (TypeError, ValueError, OverflowError, RecursionError):
            data = encode_line(event)
        if data.isascii():
            return b"%b%d\ndata: %b\n\n" % (self._head, number, data)
        return b"%b%d\ndata: %b\n\n" % (self._head, number, one_line(data))

    def prime(self, number: int, event: AnswerEvent) -> None:
        if not self._head:
            if not isinstance(event, Started):
                raise ValueError("the exchange's id is not known: write or prime `Started` first, or give the id")
            self._head = _head(event.exchange)


class NativeReader(Reader):
    """The client's end. Unknown kinds and fields are skipped, so that a newer server can be read.

    A known kind whose fields cannot be read is skipped too, except the end: it is read as far as it can be.
    """

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        try:
            return (_known(event.data),)
        except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            return _tolerant(event.data)


class Native(Protocol):
    """The protocol of our own page and of anyone who wants the whole answer, with its end and its place."""

    name = "motamot"
    request = (
        '`POST /api/chat/stream` with `{"message", "conversation"?, "assistant"?, "key"?, "resumable"?, "replaces"?}`'
    )
    stream = 'one answer event per SSE event: `id: <exchange>.<n>`, `data: {"type": …}`'
    ends: Mapping[str, str] = MappingProxyType(dict.fromkeys(map(str, Outcome), "an `ended` event, which says all"))
    stop = '`POST /api/exchanges/{id or key}/stop` with `{"seen": n}`'
    resume = "`Last-Event-ID` or `?after=n`, anywhere in the answer"
    cannot_carry = (
        Loss("json", "Values of a trace or of arguments that JSON has no word for: not-a-number becomes null."),
    )

    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> Asked:
        asked = request_object(body, limits)
        for name in _REFUSED:
            if name in asked:
                raise InvalidRequest(f"The field `{name}` is not taken here: the server keeps the history.", field=name)
        return Asked(
            message=text_field(asked, "message", limits.message_bytes),
            conversation=name_field(asked, "conversation", limits),
            assistant=name_field(asked, "assistant", limits),
            key=name_field(asked, "key", limits),
            resumable=flag_field(asked, "resumable"),
            replaces=name_field(asked, "replaces", limits),
        )

    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> NativeWriter:
        return NativeWriter(exchange)

    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> NativeReader:
        return NativeReader(max_event_bytes=max_event_bytes)

    def whole(
        self, events: Sequence[AnswerEvent], asked: Asked | None = None, *, now: int = 0, elapsed: float = 0.0
    ) -> bytes:
        """`{"text", "outcome", "code"?, "message"?, "exchange", "conversation", "usage", "sources", "marks"?}`."""
        answer: dict[str, Any] = {"text": "".join(event.text for event in events if isinstance(event, Text))}
        started = next((event for event in events if isinstance(event, Started)), None)
        end = events[-1] if events and isinstance(events[-1], Ended) else failure(Code.UPSTREAM_CUT)
        answer["outcome"] = end.outcome
        answer |= {name: value for name in ("code", "message", "by") if (value := getattr(end, name)) is not None}
        answer["exchange"] = started.exchange if started else ""
        answer["conversation"] = started.conversation if started else ""
        answer["usage"] = end.usage
        answer["sources"] = [source_json(event) for event in events if isinstance(event, Cited)]
        if end.marks:
            answer["marks"] = end.marks
        return encode_line(answer)


PROTOCOL = Native()


def source_json(source: Cited) -> dict[str, Any]:
    """A source as whole answers and transcripts have it: `{"title", "url", "quote", "mark"?}`."""
    mark = {"mark": source.mark} if source.mark else {}
    return {"title": source.title, "url": source.url, "quote": source.quote, **mark}


def parse_stop(body: bytes | Mapping[str, Any], limits: Limits) -> int | None:
    """The event number the client says the visitor has seen, from a stop's `{"seen": n}`; None where it does not say.

    An empty body is a stop too: what matters is that it is easy to send.
    Raises: InvalidRequest.
    """
    if not isinstance(body, Mapping) and not body.strip():
        return None
    seen = request_object(body, limits).get("seen")
    if seen is None:
        return None
    if isinstance(seen, bool) or not isinstance(seen, int) or not 0 <= seen < _SEEN_MOST:
        told = f"The field `seen` must be an event's number: a whole one from 0 to {_SEEN_MOST - 1}."
        raise InvalidRequest(told, field="seen")
    return seen


def _head(exchange: str) -> bytes:
    return b"id: " + checked_id(exchange).encode("ascii") + b"."


def _tolerant(data: str) -> Iterable[AnswerEvent]:
    """What can be read of an event that is not by the book; the kinds we do not know give nothing."""
    try:
        value = loads(data)
    except ValueError:
        return ()
    if not isinstance(value, dict):
        return ()
    if value.get("type") == "text" and isinstance(value.get("text"), str):
        return (Text(value["text"]),)  # a surrogate pair cut in two: the reader joins it
    try:
        return (msgspec.convert(plain(value), _Known),)
    except (msgspec.MsgspecError, RecursionError):
        return (_end(value),) if value.get("type") == "ended" else ()


def _end(value: dict[str, Any]) -> Ended:
    """An end we cannot read whole, from a newer server perhaps: an outcome we do not know is a failure."""
    outcome = value.get("outcome")
    known: dict[str, Any] = {}
    for name in ("code", "by", "shown", "usage", "marks"):
        try:
            known[name] = getattr(msgspec.convert({"outcome": "failed", name: value[name]}, Ended), name)
        except (KeyError, msgspec.MsgspecError):
            continue
    message = value.get("message")
    if isinstance(message, str):
        known["message"] = message
    if isinstance(outcome, str) and outcome in _OUTCOMES:
        return Ended(outcome=Outcome(outcome), **known)
    return Ended(outcome=Outcome.FAILED, **{"code": Code.UPSTREAM_ERROR, **known})
