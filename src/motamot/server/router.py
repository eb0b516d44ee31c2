"""Which handler a request goes to, and the answers of the paths and methods that have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from motamot.errors import MotamotError
from motamot.server.guards import check_host, preflight
from motamot.server.refusals import Refused

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["Router"]


class Router:
    """Starlette's routes behind the Host check, with JSON for what is not there, and with browsers' preflights."""

    def __init__(self, site: Site, routes: Iterable[BaseRoute]) -> None:
        self._site = site
        self._routes = list(routes)
        for route in self._routes:
            if isinstance(route, Route) and route.path.startswith(("/api", "/flux", "/v1")) and route.methods:
                route.methods.discard("HEAD")  # starlette adds it to GET: nobody may begin an answer and not read it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            check_host(request, self._site.options)
            methods: set[str] = set()
            for route in self._routes:
                match, found = route.matches(scope)
                if match is Match.FULL:
                    break
                if match is Match.PARTIAL and isinstance(route, Route):
                    methods |= route.methods or set()
            else:
                response = self._without_route(request, methods)
                await response(scope, receive, send)
                return
        except MotamotError as error:
            await self._site.refuse(request, error)(scope, receive, send)
            return
        scope.update(found)
        await route.handle(scope, receive, send)

    def _without_route(self, request: Request, methods: set[str]) -> Response:
        if not methods:
            raise Refused("there is nothing here; see openapi.json", status=404, code="not_found")
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=preflight(request, self._site.origins, methods))
        allowed = ", ".join(sorted(methods))
        told = f"this address takes {allowed}"
        raise Refused(told, status=405, code="method_not_allowed", headers={"Allow": allowed})
