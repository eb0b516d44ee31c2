"""`morceaux`: pieces for a plain `EventSource`, as lessons teach it.

    id: Xq3.1
    data: {"morceau":""}

    id: Xq3.4
    data: {"morceau":"Bonjour"}

    id: Xq3.9
    event: fin
    data: fin

The page appends each `morceau` as text and closes at `fin`. A browser reconnects by itself when a stream ends in any
other way: the `id` of the empty opening piece lets the server see that, so that no second answer is generated. A page
that gives a `key` of its own is safe even where the connection is lost before that piece has come. What an answer is
marked with (`recorded`: it is a sample, no model's) stands in an event `marques` just before its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from motamot.answer import AnswerEvent, Ended, Outcome, Started, Text
from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols._json import encodable, encode_line, loads, one_line, request_object, shown
from motamot.protocols.base import (
    READER_EVENT_BYTES,
    Asked,
    Loss,
    Protocol,
    Reader,
    Writer,
    checked_id,
    failure_read,
    failure_words,
    has_failed,
    name_field,
    parse_event_id,
    text_field,
)
from motamot.sse import Event

__all__ = ["PROTOCOL", "Morceaux", "MorceauxReader", "MorceauxWriter"]

_FIELDS = ("message", "conversation", "assistant", "key")
_FIN: Mapping[Outcome, bytes] = {Outcome.COMPLETE: b"fin", Outcome.TRUNCATED: b"coupe", Outcome.FILTERED: b"filtre"}
_FIN_READ = {word.decode(): outcome for outcome, word in _FIN.items()}
_encode = msgspec.json.Encoder().encode


class MorceauxWriter(Writer):
    """The server's end. The id of the exchange comes with `Started`, written or primed, or with the constructor."""

    __slots__ = ("_head",)

    def __init__(self, exchange: str | None = None) -> None:
        self._head = _head(exchange) if exchange is not None else b""

    def write(self, number: int, event: AnswerEvent) -> bytes:
        if isinstance(event, Text):
            return b'%b%d\ndata: {"morceau":%b}\n\n' % (self._known(), number, one_line(_encode(event.text)))
        if isinstance(event, Started):
            self.prime(number, event)
            return b'%b%d\ndata: {"morceau":""}\n\n' % (self._head, number)
        if isinstance(event, Ended):
            name, data = _end(event)
            marks = b"event: marques\ndata: %b\n\n" % encode_line(event.marks) if event.marks else b""
            return b"%b%b%d\nevent: %b\ndata: %b\n\n" % (marks, self._known(), number, name, data)
        return b""

    def prime(self, number: int, event: AnswerEvent) -> None:
        if isinstance(event, Started):
            self._head = _head(event.exchange)

    def _known(self) -> bytes:
        if not self._head:
            raise ValueError("the exchange's id is not known: write or prime `Started` first, or give the id")
        return self._head


class MorceauxReader(Reader):
    """The client's end: what a page's `onmessage`, `marques`, `fin`, `arret` and `erreur` handlers see."""

    _marks: tuple[str, ...] = ()

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        if event.event == "message":
            return self._piece(event)
        if event.event == "marques":
            self._marks = _marks(event.data)
        elif event.event == "fin":
            return (Ended(outcome=_FIN_READ.get(event.data, Outcome.COMPLETE), marks=self._marks),)
        elif event.event == "arret":
            return (Ended(outcome=Outcome.STOPPED, marks=self._marks),)
        elif event.event == "erreur":
            return (msgspec.structs.replace(_failure(event.data), marks=self._marks),)
        return ()

    def _piece(self, event: Event) -> Iterable[AnswerEvent]:
        try:
            told = loads(event.data)
        except ValueError:
            return ()
        piece = told.get("morceau") if isinstance(told, dict) else None
        if not isinstance(piece, str):
            return ()
        place = parse_event_id(event.id)
        if not piece and place and place[1] == 1:
            return (Started(exchange=place[0], conversation=""),)
        return (Text(piece),)


class Morceaux(Protocol):
    """The protocol of a plain `EventSource`: it can only ask with a GET, and stops by closing."""

    name = "morceaux"
    request = "`GET /flux?message=…` (also `assistant`, `conversation`, `key`); without a message, the opening question"
    stream = (
        '`data: {"morceau":"…"}` with an `id`; opens with an `id` and an empty piece; '
        'before the end of a marked answer `event: marques`, `data: ["recorded"]`'
    )
    ends: Mapping[str, str] = MappingProxyType(
        {
            Outcome.COMPLETE: "`event: fin`, `data: fin`",
            Outcome.TRUNCATED: "`event: fin`, `data: coupe`",
            Outcome.FILTERED: "`event: fin`, `data: filtre`",
            Outcome.STOPPED: "nothing for the one who closed; `event: arret` for whoever still reads",
            Outcome.ABANDONED: "as stopped",
            Outcome.FAILED: '`event: erreur`, `data: {"code", "message"}`',
            Outcome.INTERRUPTED: "as failed, with the code `interrupted`",
        }
    )
    stop = "closing the stream"
    resume = (
        "a reconnection gets what was logged after its `Last-Event-ID`, then 204, which ends the browser's attempts"
    )
    cannot_carry = (
        Loss("conversation", "The names of the conversation, the assistant and the model."),
        Loss("routing", "Which agent answers."),
        Loss("reasoning", "Reasoning."),
        Loss("tools", "Tool calls and their results."),
        Loss("sources", "Sources."),
        Loss("turns", "The ends of turns."),
        Loss("usage", "Tokens."),
        Loss("end_details", "Of the end: who stopped, what was shown; abandoned is read as stopped."),
    )

    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> Asked:
        """What the query asks. `message` is "" where the query has none: the assistant's opening question is meant."""
        asked = request_object(body if isinstance(body, Mapping) else _query(body), limits)
        most = min(limits.opening_bytes, limits.message_bytes)
        message = text_field(asked, "message", most) if "message" in asked else ""
        return Asked(
            message=message,
            conversation=name_field(asked, "conversation", limits),
            assistant=name_field(asked, "assistant", limits),
            key=name_field(asked, "key", limits),
        )

    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> MorceauxWriter:
        return MorceauxWriter(exchange)

    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> MorceauxReader:
        return MorceauxReader(max_event_bytes=max_event_bytes)


PROTOCOL = Morceaux()


def _head(exchange: str) -> bytes:
    return b"id: " + checked_id(exchange).encode("ascii") + b"."


def _end(end: Ended) -> tuple[bytes, bytes]:
    if has_failed(end):
        code, message = failure_words(end)
        return b"erreur", encode_line({"code": code, "message": message})
    word = _FIN.get(end.outcome)
    return (b"fin", word) if word else (b"arret", b"arret")


def _failure(data: str) -> Ended:
    try:
        told = loads(data)
    except ValueError:
        told = data
    if not isinstance(told, dict):
        told = {"message": told}
    return failure_read(told.get("code"), told.get("message"))


def _marks(data: str) -> tuple[str, ...]:
    try:
        told = loads(data)
    except ValueError:
        return ()
    return tuple(encodable(mark) for mark in told if isinstance(mark, str)) if isinstance(told, list) else ()


def _query(body: bytes) -> dict[str, Any]:
    """The fields of a query string, each at most once; what is not UTF-8 in it is U+FFFD."""
    try:
        pairs = parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=32)
    except ValueError:
        raise InvalidRequest("The query has too many fields.", limit=32) from None
    asked: dict[str, Any] = {}
    for name, value in pairs:
        if name in asked and name in _FIELDS:
            raise InvalidRequest("A field is given twice.", field=shown(name))
        asked[name] = value
    return asked
