"""The native routes: asking, following, stopping, and the transcript."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.answer import Ended, Outcome
from motamot.errors import InvalidRequest, NotFound
from motamot.exchange.exchange import Exchange
from motamot.protocols.base import Asked, parse_event_id
from motamot.protocols.native import PROTOCOL, parse_stop, source_json
from motamot.server import guards
from motamot.server.asking import ask
from motamot.server.site import answered
from motamot.server.streams import Streamed, primed, whole
from motamot.server.visitors import Visitor, visitor_of
from motamot.store.views import Beside

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes", "whole_status"]

_JSON = "application/json"


def routes(site: Site) -> list[Route]:
    """What our own page and widget use."""
    return [
        Route("/api/chat", answered(chat, site), methods=["POST"]),
        Route("/api/chat/stream", answered(chat_stream, site), methods=["POST"]),
        # A key may hold any printable character, a slash too.
        Route("/api/exchanges/{name:path}/events", answered(events, site), methods=["GET"]),
        Route("/api/exchanges/{name:path}/stop", answered(stop, site), methods=["POST"]),
        Route("/api/conversations/{name}", answered(conversation, site), methods=["GET", "DELETE"]),
    ]


async def chat_stream(site: Site, request: Request) -> Response:
    """POST /api/chat/stream: the answer as it comes.

    Asked again under its key, an answer is joined: from its beginning, or from behind `Last-Event-ID` or `?after=`.
    """
    asked = await _asked(site, request)
    exchange, visitor = await ask(site, request, asked, site.assistant(asked.assistant))
    return _followed(site, request, exchange, visitor, resumable=asked.resumable)


async def chat(site: Site, request: Request) -> Response:
    """POST /api/chat: the whole answer as JSON, when it is there."""
    asked = await _asked(site, request)
    began = time.monotonic()
    exchange, visitor = await ask(site, request, asked, site.assistant(asked.assistant))
    got = await whole(exchange.follow(resumable=asked.resumable), request.receive)
    data = PROTOCOL.whole(got, asked, elapsed=time.monotonic() - began)
    headers = {**guards.FRESH, **guards.cors(request, site.origins)}
    response = Response(data, status_code=whole_status(exchange.ended), headers=headers, media_type=_JSON)
    response.raw_headers.extend(visitor.cookie)
    return response


async def events(site: Site, request: Request) -> Response:
    """GET /api/exchanges/{id or key}/events: follow, or go on behind `Last-Event-ID` or `?after=`.

    204 when all was had. `?resumable=true` says, as in a question, that this reader can come back.
    """
    guards.check_origin(request, site.origins)
    visitor = await visitor_of(request, site.identify)
    exchange = await site.exchanges.find(request.path_params["name"], visitor.name)
    return _followed(site, request, exchange, visitor, resumable=request.query_params.get("resumable") == "true")


def _followed(site: Site, request: Request, exchange: Exchange, visitor: Visitor, *, resumable: bool) -> Response:
    after = _after(request, exchange.id)
    last = len(exchange.log.events)
    if exchange.ended is not None:
        if after == last:
            return Response(status_code=204, headers={**guards.FRESH, **guards.cors(request, site.origins)})
        # What was had of a killed process's last moment is in no book: there is still the end to tell.
        after = min(after, last - 1)
    follower = exchange.follow(after, resumable=resumable)
    writer = primed(PROTOCOL.writer(exchange=exchange.id), exchange, after)
    return Streamed(site, request, follower, writer, PROTOCOL, visitor)


async def stop(site: Site, request: Request) -> Response:
    """POST /api/exchanges/{id or key}/stop: answered when the upstream is closed. Idempotent.

    202 where there is nothing of that name yet: a question that comes under it within a while is stopped at once.
    """
    guards.check_origin(request, site.origins)
    seen = parse_stop(await guards.json_body(request, site.limits), site.limits)
    visitor = await visitor_of(request, site.identify)
    ended = await site.exchanges.stop(request.path_params["name"], visitor.name, seen=seen)
    told: dict[str, object] = {"outcome": ended.outcome if ended else None, "shown": ended.shown if ended else 0}
    if ended is None:
        seconds = f"{site.limits.stop_memory_seconds:g} s"
        told["message"] = f"nothing of this name is yours: a question that comes under it within {seconds} is stopped"
    return _json(site, request, told, status=200 if ended else 202)


async def conversation(site: Site, request: Request) -> Response:
    """GET, DELETE /api/conversations/{id}: the transcript, for its visitor; delete it, and stop what runs in it."""
    guards.check_origin(request, site.origins)
    visitor = await visitor_of(request, site.identify)
    name = request.path_params["name"]
    if request.method == "DELETE":
        await site.exchanges.delete_conversation(name, visitor.name)
        return Response(status_code=204, headers={**guards.FRESH, **guards.cors(request, site.origins)})
    store = site.exchanges.store
    row = await store.conversation(name)
    if row is None or row.visitor != visitor.name or row.deleted_at is not None:
        raise NotFound("there is no such conversation")
    beside = await store.beside(name, visitor.name)
    told = [
        {
            "exchange": one.id,
            "question": one.question,
            "text": one.shown or "",
            "outcome": one.outcome,
            "code": one.code,
            "message": one.message,
            "asked_at": one.started_at,
            "marks": one.marks,
            "key": one.key,
            "replaces": one.replaces,
            **_beside(beside.get(one.id)),
        }
        for one in await store.history(name, visitor.name)
        if one.question is not None  # removed: it was older than texts may become here
    ]
    return _json(site, request, {"conversation": name, "assistant": row.assistant, "exchanges": told})


def _beside(beside: Beside | None) -> dict[str, object]:
    """What a page shows beside the text, without arguments or results of tools."""
    if beside is None:
        return {"sources": [], "tools": []}
    return {
        "sources": [source_json(one) for one in beside.sources],
        "tools": [{"name": name, "status": status} for name, status in beside.tools],
    }


def whole_status(ended: Ended | None) -> int:
    """The status of a whole answer: true to how it ended."""
    if ended is None or ended.outcome is Outcome.INTERRUPTED:
        return 503
    if ended.outcome is not Outcome.FAILED:
        return 200
    return 504 if ended.code == "timeout" else 502


async def _asked(site: Site, request: Request) -> Asked:
    guards.check_origin(request, site.origins)
    return PROTOCOL.parse(await guards.json_body(request, site.limits), site.limits)


def _after(request: Request, exchange: str) -> int:
    """How much of the answer the client has: `?after=`, else `Last-Event-ID`. Raises: InvalidRequest."""
    given = request.query_params.get("after") if request.scope.get("query_string") else None
    if given is not None:
        if not (given.isascii() and given.isdigit() and len(given) < 10):
            raise InvalidRequest("after must be an event's number", field="after")
        return int(given)
    last = parse_event_id(request.headers.get("last-event-id", ""))
    return last[1] if last is not None and last[0] == exchange else 0


def _json(site: Site, request: Request, told: object, status: int = 200) -> Response:
    headers = {**guards.FRESH, **guards.cors(request, site.origins)}
    return Response(msgspec.json.encode(told), status_code=status, headers=headers, media_type=_JSON)
