"""`GET /flux`: an answer for a plain `EventSource`, which can only ask with an address, and stops by closing.

A browser connects again by itself whenever the stream ends in another way than the page's `close()`, to the same
address and with the same question: only `Last-Event-ID` tells that apart from a new one. So whoever sends one gets what
was logged after it and then 204, which ends the browser's attempts, and never a second generation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.errors import NotFound
from motamot.protocols.base import parse_event_id
from motamot.protocols.morceaux import PROTOCOL
from motamot.server import guards
from motamot.server.asking import ask
from motamot.server.refusals import Refused
from motamot.server.site import answered
from motamot.server.streams import Streamed, primed
from motamot.server.visitors import Visitor, has_cookie, visitor_of

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes"]

_EVENT_STREAM = "text/event-stream"


def routes(site: Site) -> list[Route]:
    """What a page with an `EventSource` uses."""
    return [Route("/flux", answered(flux, site), methods=["GET"])]


async def flux(site: Site, request: Request) -> Response:
    """GET /flux: ask, with `?message=` or with the assistant's own opening question; or come back to an answer."""
    if not _wants_a_stream(request):  # no image or link does: it would spend money by being seen
        told = f"this address gives a stream: ask with Accept: {_EVENT_STREAM}, as EventSource does"
        raise Refused(told, status=406, code="not_acceptable")
    guards.check_origin(request, site.origins)
    asked = PROTOCOL.parse(request.scope["query_string"], site.limits)
    assistant = site.assistant(asked.assistant)
    visitor = await visitor_of(request, site.identify)
    if last := request.headers.get("last-event-id"):
        return await _back(site, request, visitor, last)
    # A host's login is known by a cookie of the host's own, which other pages' requests may carry.
    guards.check_link(request, known=site.identify is None and has_cookie(request))
    question = replace(asked, message=asked.message or assistant.opening)
    exchange, visitor = await ask(site, request, question, assistant, visitor)
    return Streamed(site, request, exchange.follow(), PROTOCOL.writer(), PROTOCOL, visitor)


async def _back(site: Site, request: Request, visitor: Visitor, last: str) -> Response:
    """The rest of the answer for a browser that came back; 204 where there is none, or none of theirs."""
    nothing = Response(status_code=204, headers={**guards.FRESH, **guards.cors(request, site.origins)})
    place = parse_event_id(last)
    if place is None:
        return nothing
    name, after = place
    try:
        exchange = await site.exchanges.find(name, visitor.name)
    except NotFound:
        return nothing
    if exchange.id != name:  # it was found by a key
        return nothing
    events = len(exchange.log.events)
    if exchange.ended is not None:
        if after == events:
            return nothing
        after = min(after, events - 1)  # had more than a killed process could book: there is still the end to tell
    writer = primed(PROTOCOL.writer(exchange=exchange.id), exchange, after)
    return Streamed(site, request, exchange.follow(after), writer, PROTOCOL, visitor)


def _wants_a_stream(request: Request) -> bool:
    """Whether `Accept` names event streams; `*/*` is what everything sends.

    Source: HTML standard, the EventSource constructor sets `Accept: text/event-stream`.
    """
    kinds = ",".join(request.headers.getlist("accept")).split(",")
    return any(kind.partition(";")[0].strip().lower() == _EVENT_STREAM for kind in kinds)
