"""What some kinds of clients can say of an answer under way: that they come back to it, and what of it was seen.

`motamot` goes on behind the last event it has; the AI SDK's client reads the whole answer again; a browser's
`EventSource` asks the same address once more and names the last event it has.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from urllib.parse import quote, urlsplit, urlunsplit

from motamot.errors import LimitExceeded
from motamot.exam.presets import EVENT_BYTES, Talk
from motamot.sse import Decoder, Event
from motamot.tape import Piece, Request

__all__ = ["NOTHING_THERE", "claims", "replays", "resume", "with_return", "with_seen"]

NOTHING_THERE = frozenset({204, 400, 404, 405, 501})
"""How a chatbot says that it has no way back to an answer."""

_CLAIMS = {
    "motamot": frozenset({"resume", "reconnect", "seen"}),
    "ui-message": frozenset({"resume", "reconnect"}),
    "morceaux": frozenset({"reconnect"}),  # its close is a stop: coming back begins nothing, and promises no more
}


def claims(preset: str) -> frozenset[str]:
    """`resume`: an answer can be gone on with; `reconnect`: its clients ask again by themselves; `seen`: their stop
    says what of the answer was seen.
    """
    return _CLAIMS.get(preset, frozenset())


def replays(preset: str) -> bool:
    """Whether coming back brings the whole answer again, rather than what was missed."""
    return preset == "ui-message"


def with_return(preset: str, asked: Request) -> Request:
    """The question of a client that says it can come back, where the protocol has a word for it."""
    if preset not in ("motamot", "ui-message"):
        return asked
    return replace(asked, body=json.dumps({**json.loads(asked.body), "resumable": True}).encode())


def resume(preset: str, asked: Request, talk: Talk, pieces: list[Piece]) -> Request:
    """The request that comes back to the answer that `asked` began and of which `pieces` have come."""
    last = _last_event_id(pieces)
    kept = tuple(one for one in asked.headers if one[0].lower() not in ("content-type", "last-event-id"))
    parts = urlsplit(asked.url)
    match preset:
        case "motamot":
            base = parts.path.rsplit("/api/chat", 1)[0]
            path = f"{base}/api/exchanges/{quote(talk.exchange or 'unknown', safe='')}/events"
        case "ui-message":
            path = f"{parts.path.rstrip('/')}/{quote(talk.id, safe='')}/stream"
        case _:
            path = parts.path
    query = parts.query if preset == "morceaux" else ""
    headers = (*kept, ("Last-Event-ID", last)) if last and preset != "ui-message" else kept
    return Request(method="GET", url=urlunsplit(parts._replace(path=path, query=query)), headers=headers)


def with_seen(stop: Request, pieces: list[Piece], text: str) -> Request:
    """A stop that says how far a visitor has seen the answer: to where it first held `text`. For `motamot` alone."""
    had = ""
    for event in _events(pieces)[0]:
        number = event.id.rpartition(".")[2]
        with contextlib.suppress(ValueError, RecursionError):
            told = json.loads(event.data)
            if isinstance(told, dict) and told.get("type") == "text":
                had += str(told.get("text"))
        if text in had and number.isascii() and number.isdigit():
            return replace(stop, body=json.dumps({"seen": int(number)}).encode())
    return stop


def _last_event_id(pieces: list[Piece]) -> str:
    return _events(pieces)[1]


def _events(pieces: list[Piece]) -> tuple[list[Event], str]:
    """The events of an event stream as far as it came, and its last id."""
    decoder = Decoder(max_event_bytes=EVENT_BYTES)
    found: list[Event] = []
    with contextlib.suppress(LimitExceeded):
        for piece in pieces:
            found += decoder.feed(piece.data)
    return found, decoder.last_event_id
