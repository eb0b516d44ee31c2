"""The plain endpoints of Guitar Alchemist's chatbot, in the shapes its clients read. The history is the client's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.answer import Outcome
from motamot.exchange.exchange import Exchange
from motamot.protocols.base import Asked
from motamot.protocols.ga_text import PROTOCOL, WHOLE_PIECES
from motamot.server import guards
from motamot.server.asking import ask
from motamot.server.site import answered
from motamot.server.streams import Streamed, whole
from motamot.server.visitors import Visitor

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes"]


def routes(site: Site) -> list[Route]:
    """What Guitar Alchemist's page and ga-client use."""
    return [
        Route("/api/chatbot/chat", answered(chat, site, PROTOCOL), methods=["POST"]),
        Route("/api/chatbot/chat/stream", answered(chat_stream, site, PROTOCOL), methods=["POST"]),
    ]


async def chat_stream(site: Site, request: Request) -> Response:
    """POST /api/chatbot/chat/stream: 200 at once, and routing, text and `[DONE]`, or an error event."""
    exchange, visitor, asked = await _begun(site, request)
    protocol = WHOLE_PIECES if site.options.ga_whole_pieces else PROTOCOL
    return Streamed(site, request, exchange.follow(), protocol.writer(asked), protocol, visitor)


async def chat(site: Site, request: Request) -> Response:
    """POST /api/chatbot/chat: the whole answer; 500 where it failed, 503 where this server was stopped."""
    began = time.monotonic()
    exchange, visitor, asked = await _begun(site, request)
    got = await whole(exchange.follow(), request.receive)
    outcome = exchange.ended.outcome if exchange.ended else Outcome.INTERRUPTED
    response = Response(
        PROTOCOL.whole(got, asked, elapsed=time.monotonic() - began),
        status_code={Outcome.FAILED: 500, Outcome.INTERRUPTED: 503}.get(outcome, 200),
        headers={**guards.FRESH, **guards.cors(request, site.origins)},
        media_type="application/json",
    )
    response.raw_headers.extend(visitor.cookie)
    return response


async def _begun(site: Site, request: Request) -> tuple[Exchange, Visitor, Asked]:
    guards.check_origin(request, site.origins)
    asked = PROTOCOL.parse(await guards.json_body(request, site.limits), site.limits)
    # A stranger sends the history anew each time, and the owner pays for it: of theirs as much is taken as of ours.
    exchange, visitor = await ask(site, request, asked, site.default, past_tokens=site.default.limits.history_tokens)
    return exchange, visitor, asked
