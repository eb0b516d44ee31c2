"""The native routes: asking, following, stopping, and the transcript."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from motamot.answer import AnswerEvent, Ended, Outcome
from motamot.errors import InvalidRequest, NotFound
from motamot.exchange.exchange import Exchange, Follower
from motamot.protocols.base import Asked, Writer, parse_event_id
from motamot.protocols.native import PROTOCOL, parse_stop
from motamot.server import guards
from motamot.server.site import answered
from motamot.server.streams import leaves, stream
from motamot.server.visitors import Visitor, visitor_of

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["Streamed", "ask", "routes", "whole", "whole_status"]

_JSON = "application/json"


def routes(site: Site) -> list[BaseRoute]:
    """What our own page and widget use."""
    return [
        Route("/api/chat", answered(chat, site), methods=["POST"]),
        Route("/api/chat/stream", answered(chat_stream, site), methods=["POST"]),
        Route("/api/exchanges/{name}/events", answered(events, site), methods=["GET"]),
        Route("/api/exchanges/{name}/stop", answered(stop, site), methods=["POST"]),
        Route("/api/conversations/{name}", answered(conversation, site), methods=["GET", "DELETE"]),
    ]


class Streamed(Response):
    """A response that follows an exchange."""

    def __init__(self, site: Site, request: Request, follower: Follower, writer: Writer, visitor: Visitor) -> None:
        self._site = site
        self._follower = follower
        self._writer = writer
        self._first = visitor.cookie
        self._cors = guards.cors(request, site.origins)
        self.background = None

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"Content-Type": PROTOCOL.content_type, **PROTOCOL.headers, "Connection": "close", **self._cors}
        await stream(
            self._follower,
            self._writer,
            receive,
            send,
            headers=headers,
            heartbeats=self._site.heartbeats,
            first=self._first,
        )


async def ask(site: Site, request: Request, asked: Asked) -> tuple[Exchange, Visitor]:
    """Let a question in, and begin to answer it. Raises: every refusal there is."""
    assistant = site.assistant(asked.assistant)
    guards.check_origin(request, assistant.origins)
    visitor = await visitor_of(request, site.identify)
    with await site.budgets.admit(visitor.name, guards.client_address(request), assistant) as ticket:
        exchange = await assistant.begin(site.asking(asked, visitor))
        ticket.spend(exchange)
    return exchange, visitor


async def chat_stream(site: Site, request: Request) -> Response:
    """POST /api/chat/stream: the answer as it comes."""
    asked = await _asked(site, request)
    exchange, visitor = await ask(site, request, asked)
    follower = exchange.follow(resumable=asked.resumable)
    return Streamed(site, request, follower, PROTOCOL.writer(asked, exchange=exchange.id), visitor)


async def chat(site: Site, request: Request) -> Response:
    """POST /api/chat: the whole answer as JSON, when it is there."""
    asked = await _asked(site, request)
    began = time.monotonic()
    exchange, visitor = await ask(site, request, asked)
    events = await whole(exchange.follow(resumable=asked.resumable), request.receive)
    data = PROTOCOL.whole(events, asked, elapsed=time.monotonic() - began)
    response = Response(data, status_code=whole_status(exchange.ended), media_type=_JSON)
    response.headers.update({"Cache-Control": "no-store", **guards.cors(request, site.origins)})
    response.raw_headers.extend(visitor.cookie)
    return response


async def events(site: Site, request: Request) -> Response:
    """GET /api/exchanges/{id}/events: follow, or go on behind `Last-Event-ID` or `?after=`; 204 when all was had."""
    guards.check_origin(request, site.origins)
    visitor = await visitor_of(request, site.identify)
    exchange = await site.exchanges.find(request.path_params["name"], visitor.name)
    after = _after(request, exchange.id)
    if exchange.ended is not None and after >= len(exchange.log.events):
        return Response(status_code=204, headers=guards.cors(request, site.origins))
    resumable = request.query_params.get("resumable") in ("true", "1")
    follower = exchange.follow(after, resumable=resumable)
    return Streamed(site, request, follower, PROTOCOL.writer(exchange=exchange.id), visitor)


async def stop(site: Site, request: Request) -> Response:
    """POST /api/exchanges/{id or key}/stop: answered when the upstream is closed. Idempotent."""
    guards.check_origin(request, site.origins)
    seen = parse_stop(await guards.json_body(request, site.limits), site.limits)
    visitor = await visitor_of(request, site.identify)
    ended = await site.exchanges.stop(request.path_params["name"], visitor.name, seen=seen)
    told = {"outcome": ended.outcome if ended else None, "shown": ended.shown if ended else 0}
    return _json(told, guards.cors(request, site.origins), status=200 if ended else 202)


async def conversation(site: Site, request: Request) -> Response:
    """GET, DELETE /api/conversations/{id}: the transcript, for its visitor; delete it."""
    guards.check_origin(request, site.origins)
    visitor = await visitor_of(request, site.identify)
    name = request.path_params["name"]
    store = site.exchanges.store
    row = await store.conversation(name)
    if row is None or row.visitor != visitor.name or row.deleted_at is not None:
        raise NotFound("there is no such conversation")
    headers = {"Cache-Control": "no-store", **guards.cors(request, site.origins)}
    if request.method == "DELETE":
        await store.delete_conversation(name, visitor.name)
        return Response(status_code=204, headers=headers)
    rows = await store.history(name, visitor.name)
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
        }
        for one in rows
    ]
    return _json({"conversation": name, "assistant": row.assistant, "exchanges": told}, headers)


async def whole(follower: Follower, receive: Receive) -> list[AnswerEvent]:
    """All events of an answer; leaving before its end is leaving, here too."""
    watcher = asyncio.ensure_future(leaves(follower, receive))
    got: list[AnswerEvent] = []
    try:
        while batch := await follower.next():
            got += [event for _, event in batch]
    finally:
        watcher.cancel()
        follower.close()
    return got


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
    given = request.query_params.get("after")
    if given is not None:
        if not (given.isascii() and given.isdigit() and len(given) < 10):
            raise InvalidRequest("after must be an event's number", field="after")
        return int(given)
    last = parse_event_id(request.headers.get("last-event-id", ""))
    return last[1] if last is not None and last[0] == exchange else 0


def _json(told: object, headers: dict[str, str], status: int = 200) -> Response:
    return Response(msgspec.json.encode(told), status_code=status, headers=headers, media_type=_JSON)
