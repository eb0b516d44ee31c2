"""`GET /`: a page that is one chat. Nothing in it comes from another host."""

from __future__ import annotations

import html
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.server.routes.widget import title
from motamot.server.site import answered
from motamot.server.visitors import visitor_of

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["POLICY", "routes"]

POLICY = "; ".join(
    [
        "default-src 'none'",  # no style either: the chat's are not of the page's text
        "script-src 'self'",  # no script in the page's own text: what a stranger wrote can't become one
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
        "require-trusted-types-for 'script'",  # and no text of anybody's can become markup by a slip of ours
        "trusted-types 'none'",
    ]
)
"""The page's Content-Security-Policy."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    # not `no-referrer`: browsers then say `Origin: null` where they need not name one
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",  # for what does not know frame-ancestors
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",  # it sets the visitor's cookie
}


def routes(site: Site) -> list[Route]:
    """The page, wherever the site is mounted."""
    return [Route("/", answered(page, site), methods=["GET"])]


async def page(site: Site, request: Request) -> Response:
    """GET /: the page. A visitor that is new gets the cookie that makes them known.

    Where the host has a login of its own it is left to the host who sees the page; asking is refused to nobody's guest.
    """
    wanted = site.assistants.get(request.query_params.get("assistant", ""), site.default)
    text = _template().substitute(title=html.escape(title(wanted)))
    response = Response(text, headers=_HEADERS, media_type="text/html")
    if site.identify is None:
        response.raw_headers.extend((await visitor_of(request)).cookie)
    return response


@cache
def _template() -> Template:
    return Template(files("motamot.server").joinpath("page/index.html").read_text("utf-8"))
