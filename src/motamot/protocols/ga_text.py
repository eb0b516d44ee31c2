"""`ga-text`: raw text in `data:` lines, as the clients of Guitar Alchemist's chatbot read it.

    data: {"type":"routing","agentId":"direct","confidence":0,"routingMethod":"none","trace":null,"grounding":null}

    data: First line
    data: second line

    data: [DONE]

Text stands in the data as it is, a `data:` line per line of text, so that CR cannot be carried and some texts look
like the protocol's own words. What can be helped is: `[DONE]` inside the text is cut in two; a piece ends with its line
(ga-client takes a piece's first line only); and it never begins with `{` where a character before it can be kept back
for it (ga-client parses such a piece as JSON and drops it, or throws). The rest is named in `cannot_carry`.
`WHOLE_PIECES` helps ga-client in neither way: it writes each piece as one event, as GaChatbot.Api does.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from motamot.answer import AnswerEvent, Code, Ended, Outcome, Routed, Started, Text
from motamot.errors import InvalidRequest, MotamotError
from motamot.limits import Limits
from motamot.protocols._json import encodable, kind, loads, plain, request_object
from motamot.protocols.base import (
    READER_EVENT_BYTES,
    Asked,
    Loss,
    PastMessage,
    Protocol,
    Reader,
    Writer,
    bounded,
    failure,
    failure_read,
    failure_words,
    flag_field,
    has_failed,
    text_field,
)
from motamot.sse import Event

__all__ = [
    "HELD_CHARACTERS",
    "HISTORY_TURNS",
    "MESSAGE_CHARACTERS",
    "PROTOCOL",
    "WHOLE_PIECES",
    "GaText",
    "GaTextReader",
    "GaTextWriter",
]

MESSAGE_CHARACTERS = 2_000
"""The longest message, and the longest user's turn of a history, as Guitar Alchemist's hosts take it: UTF-16 units.

Those hosts take no longer turn of an assistant either: a client that sends back a longer answer, as their page does,
is refused from then on. Here it is taken up to `message_bytes`.
"""
HISTORY_TURNS = 50
"""The longest history those hosts take."""
HELD_CHARACTERS = 1_024
"""How much white space and how many braces in a row are kept back at most, waiting for what follows them."""

_DONE = b"data: [DONE]\n\n"
_NO_ROUTING = Routed(agent="direct", confidence=0.0, method="none")
_ERROR_START = '{"error":'  # how both our writer and Guitar Alchemist's begin an error
_INSIDE_DONE = re.compile(r"(?<=\[DO)(?=NE\])")
# White space for JavaScript's trim, .NET's and Python's: any of them may trim a piece before it looks for `{`.
_BLANK = "".join(chr(point) for point in range(0x3001) if chr(point).isspace()) + "\ufeff"
_UNSAFE_START = _BLANK + "{"
_LINE_START = re.compile(rf"(?<=\n)(?!\n)(?![{re.escape(_BLANK)}]*(?:\{{|\Z))")


class GaTextWriter(Writer):
    """The server's end. Keeps back the text's last character, so that a piece need not begin with `{`.

    Only what must wait waits: the last character that can stand before a `{`, with the white space and braces after
    it, at most `HELD_CHARACTERS`; until the next delta, the end of the turn, a tool's call, or the end of the answer.

    whole_pieces: nothing is kept back, and a piece is one event however many lines it has.
    """

    __slots__ = ("_after_cr", "_held", "_routed", "_whole_pieces")

    def __init__(self, *, whole_pieces: bool = False) -> None:
        self._whole_pieces = whole_pieces
        self._routed = False
        self._after_cr = False
        self._held = ""

    def write(self, number: int, event: AnswerEvent) -> bytes:
        if isinstance(event, Text):
            return self._feed(event.text) if self._routed else self._routing(_NO_ROUTING) + self._feed(event.text)
        if isinstance(event, Started):
            return b""
        if isinstance(event, Routed):
            return self._routing(event)
        if not isinstance(event, Ended):
            return self._flush()
        if has_failed(event):
            # Like the hosts: an error before any text stands alone, and none is followed by [DONE].
            return self._flush() + b"data: " + _ascii({"error": failure_words(event)[1]}) + b"\n\n"
        return self._routing(_NO_ROUTING) + self._flush() + _DONE

    def _routing(self, routed: Routed) -> bytes:
        if self._routed:
            return b""
        self._routed = True
        return b"data: " + _ascii({"type": "routing", **_route(routed), "grounding": None}) + b"\n\n"

    def _feed(self, text: str) -> bytes:
        if self._after_cr and text.startswith("\n"):
            text = text[1:]  # the CR before it was this line end already
        elif not text:
            return b""
        self._after_cr = text.endswith("\r")
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self._whole_pieces:
            return _pieces(text, by_line=False)
        text = self._held + text
        safe = len(text if text[-1:] not in _UNSAFE_START else text.rstrip(_UNSAFE_START)) - 1
        if safe < 0 and "{" not in text:
            safe = 0  # white space only: it goes with what follows
        self._held = text[safe:] if safe >= 0 else ""
        if len(self._held) > HELD_CHARACTERS or safe < 0:
            self._held = ""
            return _pieces(text)
        return _pieces(text[:safe])

    def _flush(self) -> bytes:
        held, self._held = self._held, ""
        return _pieces(held)


class GaTextReader(Reader):
    """The client's end: routing first, then text, until `[DONE]` or an error object."""

    def __init__(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes=max_event_bytes)
        self._first = True

    def _take(self, event: Event) -> Iterable[AnswerEvent]:
        data = event.data
        first, self._first = self._first, False
        if data == "[DONE]":
            return (Ended(outcome=Outcome.COMPLETE),)
        if data.startswith("{"):
            told: dict[str, Any] = plain(_object(data))
            if first and told.get("type") == "routing":
                return _routed(told)
            if data.startswith(_ERROR_START) and len(told) == 1 and isinstance(told["error"], str):
                return (failure_read(None, told["error"]),)
        return (Text(data),)


class GaText(Protocol):
    """The protocol of Guitar Alchemist's plain endpoints, `POST /api/chatbot/chat` and `…/chat/stream`.

    whole_pieces: as of `GaTextWriter`.
    """

    def __init__(self, *, whole_pieces: bool = False) -> None:
        self._whole_pieces = whole_pieces

    name = "ga-text"
    request = (
        '`POST /api/chatbot/chat/stream` with `{"message", "conversationHistory"?, "useSemanticSearch"?}`; the history '
        "is the client's"
    )
    stream = "routing as JSON, then text, a `data:` line per line of text"
    ends: Mapping[str, str] = MappingProxyType(
        {
            **dict.fromkeys(map(str, Outcome), "`data: [DONE]`"),
            Outcome.FAILED: '`data: {"error":"…"}` and no `[DONE]`',
            Outcome.INTERRUPTED: "as failed",
        }
    )
    stop = "closing the request"
    resume = "none"
    cannot_carry = (
        Loss("cr", "CR and CRLF: each becomes LF."),
        Loss("cuts", "Where the model's pieces began and ended: the last character of one may come with the next."),
        Loss("brace", "For ga-client, an answer or a turn that begins with `{`: it takes the piece for JSON."),
        Loss("trim", "For ga-client's `chatService`, white space at the ends of a piece, so line breaks, too."),
        Loss(
            "lines",
            "For ga-client, a line that begins with `{`: `chatService` leaves it out, `chatApi` takes it for JSON, and "
            "drops it or throws; and for `chatApi` all line breaks.",
        ),
        Loss("separators", "For readers that cut lines at them, U+2028, U+2029, U+0085 and control characters."),
        Loss("started", "The exchange, the conversation, the assistant and the model."),
        Loss("routing_late", "An agent named after the first text, or as `direct`, 0, `none`, which means no routing."),
        Loss("reasoning", "Reasoning."),
        Loss("tools", "Tool calls and their results."),
        Loss("sources", "Sources."),
        Loss("turns", "The ends of turns."),
        Loss("usage", "Tokens."),
        Loss("end", "Whether the answer was cut, filtered or stopped: `[DONE]` is all it says."),
        Loss("end_details", "Of the end: who stopped, what was shown."),
        Loss("marks", "Marks, as of a recorded sample."),
        Loss("code", "An error's code; interrupted is read as failed."),
    )

    def parse(self, body: bytes | Mapping[str, Any], limits: Limits) -> Asked:
        asked = request_object(body, limits)
        message = text_field(asked, "message", limits.message_bytes)
        _short(message, "message")
        flag_field(asked, "useSemanticSearch")  # taken for compatibility; there is nothing here to search
        return Asked(message=message, history=_history(asked.get("conversationHistory"), limits))

    def writer(self, asked: Asked | None = None, *, exchange: str | None = None, now: int = 0) -> GaTextWriter:
        return GaTextWriter(whole_pieces=self._whole_pieces)

    def reader(self, *, max_event_bytes: int = READER_EVENT_BYTES) -> GaTextReader:
        return GaTextReader(max_event_bytes=max_event_bytes)

    def whole(
        self, events: Sequence[AnswerEvent], asked: Asked | None = None, *, now: int = 0, elapsed: float = 0.0
    ) -> bytes:
        """`{"naturalLanguageAnswer", "agentId", …}`, or `{"error"}` where the exchange failed."""
        end = events[-1] if events and isinstance(events[-1], Ended) else failure(Code.UPSTREAM_CUT)
        if has_failed(end):
            return _ascii({"error": failure_words(end)[1]})
        route = _route(next((event for event in events if isinstance(event, Routed)), _NO_ROUTING))
        trace = route.pop("trace")
        return _ascii(
            {
                "naturalLanguageAnswer": "".join(event.text for event in events if isinstance(event, Text)),
                **route,
                "grounding": None,
                "elapsedMs": round(elapsed * 1000),
                "traceId": trace.get("traceId") if isinstance(trace, dict) else None,
                "trace": trace,
            }
        )

    def refusal(self, error: MotamotError) -> bytes:
        return _ascii({"error": error.message})


PROTOCOL = GaText()
WHOLE_PIECES = GaText(whole_pieces=True)
"""For pages that read as Guitar Alchemist's: an event per piece, to the byte as GaChatbot.Api writes it (CR aside)."""


def _route(routed: Routed) -> dict[str, Any]:
    confidence = routed.confidence if math.isfinite(routed.confidence) else 0.0
    return {
        "agentId": routed.agent,
        "confidence": int(confidence) if confidence == int(confidence) else confidence,
        "routingMethod": routed.method,
        "trace": plain(routed.trace),
    }


def _routed(told: dict[str, Any]) -> Iterable[AnswerEvent]:
    agent, confidence, method = told.get("agentId"), told.get("confidence"), told.get("routingMethod")
    routed = Routed(
        agent=agent if isinstance(agent, str) else "",
        confidence=float(confidence) if isinstance(confidence, int | float) else 0.0,
        method=method if isinstance(method, str) else "",
        trace=told.get("trace"),
    )
    return () if routed == _NO_ROUTING else (routed,)


def _ascii(value: Any) -> bytes:
    """JSON as those hosts write it: on one line, and every character that is not ASCII escaped."""
    return json.dumps(plain(value), separators=(",", ":")).encode("ascii")


def _object(data: str) -> dict[str, Any]:
    try:
        told = loads(data)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _pieces(text: str, *, by_line: bool = True) -> bytes:
    """`text` as text events, none of which any reader takes for the end or for an error; b"" for no text."""
    if not text:
        return b""
    if "[DONE]" not in text and "\n" not in text and not text.startswith(_ERROR_START):
        return b"data: " + _utf8(text) + b"\n\n"
    lines = _LINE_START.split(text) if by_line else [text]
    pieces = [piece for line in lines for piece in _INSIDE_DONE.split(line)]
    if pieces[0].startswith(_ERROR_START):
        pieces[:1] = ["{", pieces[0][1:]]
    return b"".join(b"data: " + _utf8(piece.replace("\n", "\ndata: ")) + b"\n\n" for piece in pieces)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encodable(text).encode()


def _history(turns: Any, limits: Limits) -> tuple[PastMessage, ...]:
    if turns is None:
        return ()
    name = "conversationHistory"
    if not isinstance(turns, list):
        raise InvalidRequest(f"The field `{name}` must be a list, not {kind(turns)}.", field=name)
    if len(turns) > HISTORY_TURNS:
        raise InvalidRequest(f"The history has more than {HISTORY_TURNS} turns.", field=name, limit=HISTORY_TURNS)
    return tuple(_turn(turn, f"{name}[{place}]", limits) for place, turn in enumerate(turns))


def _turn(turn: Any, where: str, limits: Limits) -> PastMessage:
    if not isinstance(turn, dict):
        raise InvalidRequest(f"A turn must be an object, not {kind(turn)}.", field=where)
    role, content = turn.get("role"), turn.get("content")
    if role not in ("user", "assistant"):
        raise InvalidRequest("A turn's role must be `user` or `assistant`.", field=f"{where}.role")
    if not isinstance(content, str):
        raise InvalidRequest(f"A turn's content must be a string, not {kind(content)}.", field=f"{where}.content")
    if role == "user":
        _short(content, f"{where}.content")
    else:
        bounded(content, f"{where}.content", limits.message_bytes)
    return PastMessage(role=role, content=content)


def _short(text: str, where: str) -> None:
    if len(text.encode("utf-16-le")) // 2 > MESSAGE_CHARACTERS:
        raise InvalidRequest(
            f"The text is longer than {MESSAGE_CHARACTERS} characters.", field=where, limit=MESSAGE_CHARACTERS
        )
