"""`GET /`: a page with the chat, and the files it is made of. Nothing in it comes from another host."""

from __future__ import annotations

import hashlib
import html
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.errors import NotFound
from motamot.server.site import answered
from motamot.server.visitors import visitor_of

if TYPE_CHECKING:
    from motamot.assistant import Assistant
    from motamot.server.site import Site

__all__ = ["POLICY", "routes"]

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX = "index.html"

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",  # no script in the page's own text: what a stranger wrote can't become one
        "style-src 'self'",
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

_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    # not `no-referrer`: browsers then say `Origin: null` where they need not name one
    "Referrer-Policy": "same-origin",
}
_PAGE = {
    **_SAFE,
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "SAMEORIGIN",  # for what does not know frame-ancestors
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",  # it sets the visitor's cookie
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    kind: str
    tag: str


def routes(site: Site) -> list[Route]:
    """The page and its files, relative to wherever the site is mounted."""
    return [
        Route("/", answered(page, site), methods=["GET"]),
        Route("/page/{name}", answered(file, site), methods=["GET"]),
    ]


async def page(site: Site, request: Request) -> Response:
    """GET /: the page. A visitor that is new gets the cookie that makes them known.

    Where the host has a login of its own it is left to the host who sees the page; asking is refused to nobody's guest.
    """
    response = Response(_filled(site), headers=_PAGE, media_type="text/html")
    if site.identify is None:
        response.raw_headers.extend((await visitor_of(request)).cookie)
    return response


async def file(_site: Site, request: Request) -> Response:
    """GET /page/{name}: one of the page's files; asked for again, 304 while it is the same."""
    found = _files().get(request.path_params["name"])
    if found is None:
        raise NotFound("there is no such file")
    headers = {**_SAFE, "Cache-Control": "no-cache", "ETag": found.tag}
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers={**headers, "Content-Type": found.kind})


@cache
def _files() -> dict[str, _File]:
    """The files by name, but for the page itself, read once. Names of strangers never reach the disk."""
    folder = files("motamot.server") / "page"
    found = {}
    for one in folder.iterdir():
        kind = _TYPES.get(one.name[one.name.rfind(".") :])
        if kind is not None:
            content = one.read_bytes()
            found[one.name] = _File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


@cache
def _template() -> Template:
    return Template((files("motamot.server") / "page" / _INDEX).read_text("utf-8"))


def _filled(site: Site) -> str:
    return _template().substitute(page=html.escape(_told(site)), title=html.escape(_title(site.default)))


def _told(site: Site) -> str:
    """What page.js has to know, as JSON."""
    told = {
        "assistants": [
            {"name": assistant.name, "title": _title(assistant), "marks": assistant.marks}
            for assistant in site.assistants.values()
        ],
        "heartbeat": site.limits.heartbeat_seconds,
        "message_bytes": site.limits.message_bytes,
    }
    return json.dumps(told)


def _title(assistant: Assistant) -> str:
    return "motamot" if assistant.name == "default" else assistant.name
