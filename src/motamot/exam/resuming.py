"""How a visitor whose connection broke comes back to the answer under way, where its kind of client can.

`motamot` goes on behind the last event it has; the AI SDK's client reads the whole answer again; a browser's
`EventSource` asks the same address once more and names the last event it has.
"""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import quote, urlsplit, urlunsplit

from motamot.errors import LimitExceeded
from motamot.exam.presets import EVENT_BYTES, Talk
from motamot.sse import Decoder
from motamot.tape import Piece, Request

__all__ = ["NOTHING_THERE", "claims", "replays", "resume", "with_return"]

NOTHING_THERE = frozenset({204, 400, 404, 405, 501})
"""How a chatbot says that it has no way back to an answer."""

_CLAIMS = {
    "motamot": frozenset({"resume", "reconnect"}),
    "ui-message": frozenset({"resume", "reconnect"}),
    "morceaux": frozenset({"reconnect"}),  # its close is a stop: coming back begins nothing, and promises no more
}


def claims(preset: str) -> frozenset[str]:
    """`resume`: an answer can be gone on with; `reconnect`: its clients ask again by themselves."""
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


def _last_event_id(pieces: list[Piece]) -> str:
    decoder = Decoder(max_event_bytes=EVENT_BYTES)
    try:
        for piece in pieces:
            decoder.feed(piece.data)
    except LimitExceeded:
        pass
    return decoder.last_event_id
