"""The widget: its two files, and what it has to know before anybody asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.server import guards
from motamot.server.shipped import shipped
from motamot.server.site import answered
from motamot.server.visitors import visitor_of

if TYPE_CHECKING:
    from motamot.assistant import Assistant
    from motamot.server.site import Site

__all__ = ["routes", "title"]

_FRESH_SECONDS = 60  # how long a browser need not ask again who answers
_FILES = (  # path, the file, its type
    ("/widget.js", "widget/widget.js", "text/javascript; charset=utf-8"),
    ("/widget.mjs", "widget/motamot.mjs", "text/javascript; charset=utf-8"),
    ("/icon.svg", "page/icon.svg", "image/svg+xml"),
)
_HEADERS = {
    # Pages of any site may show the chat: whom it answers is decided where it is asked.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",  # a module is always read across origins, a script where it has `integrity`
}


def routes(site: Site) -> list[Route]:
    """The widget's files, relative to wherever the site is mounted, and what it asks first."""
    return [
        Route("/api/widget", answered(introduction, site), methods=["GET"]),
        *(Route(path, answered(_file(place, kind), site), methods=["GET"]) for path, place, kind in _FILES),
    ]


async def introduction(site: Site, request: Request) -> Response:
    """GET /api/widget: who answers here, and what a client must know to ask: `{assistants, heartbeat, message_bytes}`.

    A page of another site is told of those assistants that it may ask. A page of our own gets the visitor's cookie, if
    the visitor is new: a first question that is posted again, because its answer was lost, then comes from the same.
    """
    guards.check_origin(request, site.origins)
    cors = guards.cors(request, site.origins)
    own = "Access-Control-Allow-Origin" not in cors
    origin = request.headers.get("origin", "")
    told = {
        "assistants": [
            {"name": assistant.name, "title": title(assistant), "marks": assistant.marks}
            for assistant in site.assistants.values()
            if own or origin in assistant.origins
        ],
        "heartbeat": site.limits.heartbeat_seconds,
        "message_bytes": site.limits.message_bytes,
    }
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": f"private, max-age={_FRESH_SECONDS}",
        "Vary": "Origin",
        **cors,
    }
    response = Response(msgspec.json.encode(told), headers=headers, media_type="application/json")
    if own and site.identify is None and "authorization" not in request.headers:
        response.raw_headers.extend((await visitor_of(request)).cookie)
    return response


def title(assistant: Assistant) -> str:
    """What an assistant is called where people read it."""
    return "motamot" if assistant.name == "default" else assistant.name


def _file(place: str, kind: str) -> Callable[[Site, Request], Awaitable[Response]]:
    async def file(_site: Site, request: Request) -> Response:
        return shipped(request, place, kind, _HEADERS)

    return file
