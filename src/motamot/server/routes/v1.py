"""`/v1`, for programs that speak OpenAI's chat completions: `model` names an assistant, the history is the caller's.

A caller holds a key of the operator's, so that what strangers may spend an hour does not bound it; an assistant's money
a day does, and how many answers are under way in all.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.answer import AnswerEvent, Ended
from motamot.assistant import Assistant
from motamot.exchange.exchange import Exchange
from motamot.exchange.exchanges import Asking
from motamot.protocols.base import Asked
from motamot.protocols.openai import PROTOCOL
from motamot.server import guards
from motamot.server.asking import weight, wishes
from motamot.server.routes.native import whole_status
from motamot.server.site import answered
from motamot.server.streams import Streamed, whole
from motamot.server.visitors import Visitor

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes"]

_JSON = "application/json"


def routes(site: Site) -> list[Route]:
    """What clients of OpenAI-compatible servers use."""
    return [
        Route("/v1/chat/completions", answered(completions, site, PROTOCOL), methods=["POST"]),
        Route("/v1/models", answered(models, site, PROTOCOL), methods=["GET"]),
        # A name may hold any printable character, a slash too.
        Route("/v1/models/{name:path}", answered(model, site, PROTOCOL), methods=["GET"]),
    ]


async def completions(site: Site, request: Request) -> Response:
    """POST /v1/chat/completions: a stream, or one document; an answer that failed before its first delta has a status.

    The caller's own tools are told to the model in place of the assistant's, and their calls are given back.
    """
    visitor = _caller(site, request)
    asked = PROTOCOL.parse(await guards.json_body(request, site.limits), site.limits)
    exchange = await _begun(site, asked, visitor)
    headers = {"X-Request-Id": exchange.id}
    now = int(time.time())
    if not asked.stream:
        got = await whole(exchange.follow(), request.receive)
        return _whole(site, request, got, asked, exchange.ended, headers, now)

    def held(ended: Ended) -> Response | None:
        return _whole(site, request, [ended], asked, ended, headers, now) if whole_status(ended) >= 500 else None

    writer = PROTOCOL.writer(asked, exchange=exchange.id, now=now)
    return Streamed(site, request, exchange.follow(), writer, PROTOCOL, visitor, headers=headers, held=held)


async def models(site: Site, request: Request) -> Response:
    """GET /v1/models: the assistants, by their names."""
    _caller(site, request)
    return _json(site, request, {"object": "list", "data": [_model(one) for one in site.assistants.values()]})


async def model(site: Site, request: Request) -> Response:
    """GET /v1/models/{name}: one of them."""
    _caller(site, request)
    return _json(site, request, _model(site.assistant(request.path_params["name"])))


def _caller(site: Site, request: Request) -> Visitor:
    """Who holds a key, as the books know them. Raises: Refused (403, 401)."""
    guards.check_origin(request, site.origins)
    key = guards.check_key(request, site.options.v1_keys)
    return Visitor("v1:" + hashlib.sha256(key.encode()).hexdigest())


async def _begun(site: Site, asked: Asked, visitor: Visitor) -> Exchange:
    assistant = site.assistant(asked.assistant)
    limits = replace(assistant.limits, exchanges_per_visitor=assistant.limits.exchanges_running)
    with await site.budgets.admit(None, None, assistant, brought=weight(asked)) as ticket:
        asking = Asking(message=asked.message, visitor=visitor.name)
        exchange = await assistant.begin(asking, limits=limits, wishes=wishes(asked))
        ticket.spend(exchange)
    return exchange


def _whole(
    site: Site,
    request: Request,
    events: list[AnswerEvent],
    asked: Asked,
    ended: Ended | None,
    headers: Mapping[str, str],
    now: int,
) -> Response:
    status = whole_status(ended)
    sent = {**guards.FRESH, **guards.cors(request, site.origins), **headers}
    if status >= 500:
        # We have tried again where the model surely did not start; the clients would, twice, and pay each time.
        sent["X-Should-Retry"] = "false"
    return Response(PROTOCOL.whole(events, asked, now=now), status_code=status, headers=sent, media_type=_JSON)


def _model(assistant: Assistant) -> dict[str, Any]:
    return {"id": assistant.name, "object": "model", "created": 0, "owned_by": "motamot"}


def _json(site: Site, request: Request, told: object) -> Response:
    headers = {**guards.FRESH, **guards.cors(request, site.origins)}
    return Response(msgspec.json.encode(told), headers=headers, media_type=_JSON)
