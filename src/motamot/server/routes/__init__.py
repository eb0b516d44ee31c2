"""All routes of a site: one file per kind of client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from motamot.server import refusals
from motamot.server.refusals import Refused
from motamot.server.routes import native

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["router"]


def router(site: Site) -> ASGIApp:
    """The site's routes."""
    routes: Iterable[BaseRoute] = [*native.routes(site)]
    return Router(list(routes), redirect_slashes=False, default=_Nothing(), lifespan=None)


class _Nothing:
    """Answers where no route does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = Refused("there is nothing here; see /openapi.json", status=404, code="not_found")
        await refusals.response(refused)(scope, receive, send)
