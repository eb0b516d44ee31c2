"""For those who run the server: whether it lives, whether it is ready, what it counts, and what it offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.errors import StoreError
from motamot.server import guards
from motamot.server.counts import exposition
from motamot.server.openapi import document
from motamot.server.site import answered

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes"]


def routes(site: Site) -> list[Route]:
    """What an operator's tools use."""
    return [
        Route("/healthz", alive, methods=["GET"]),
        Route("/readyz", answered(ready, site), methods=["GET"]),
        Route("/metrics", answered(metrics, site), methods=["GET"]),
        Route("/openapi.json", answered(openapi, site), methods=["GET"]),
    ]


async def alive(_request: Request) -> Response:
    """GET /healthz: the process lives and its event loop turns. Nothing is started for it."""
    return _json({"status": "ok"})


async def ready(site: Site, _request: Request) -> Response:
    """GET /readyz: it takes questions, and can book them; else 503."""
    if site.ending:
        raise StoreError("this server is shutting down")
    if site.exchanges.store.failing is not None:
        raise StoreError("the books cannot be written; the log says why")
    return _json({"status": "ready"})


async def metrics(site: Site, request: Request) -> Response:
    """GET /metrics: Prometheus's text format, for who holds the operator's key."""
    await site.operator.check(request)
    told, kind = exposition(site)
    return Response(told, headers={"Content-Type": kind, **guards.FRESH})


async def openapi(site: Site, request: Request) -> Response:
    """GET /openapi.json: the API's description."""
    return _json(document(site.limits, request.scope.get("root_path", "")))


def _json(told: object) -> Response:
    return Response(msgspec.json.encode(told), headers=guards.FRESH, media_type="application/json")
