"""`POST /api/ag-ui`: a run, for the frontends that speak AG-UI. The history is the client's; leaving is a stop.

Everything of it is a stranger's, and each question of a thread sends it anew at the owner's cost: of the messages
before the question as much is taken as of a history of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.protocols.ag_ui import PROTOCOL
from motamot.protocols.base import name_field
from motamot.server import guards
from motamot.server.asking import ask
from motamot.server.refusals import Refused
from motamot.server.site import answered
from motamot.server.streams import Streamed

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes"]

_EVENT_STREAM = "text/event-stream"
_PROTOBUF = "application/vnd.ag-ui.event+proto"
_TAKES_EVENTS = (_EVENT_STREAM, "text/*", "*/*")


def routes(site: Site) -> list[Route]:
    """What clients of AG-UI use."""
    return [Route("/api/ag-ui", answered(run, site), methods=["POST"])]


async def run(site: Site, request: Request) -> Response:
    """POST /api/ag-ui: the run as it goes. `?assistant=` names who answers; the same `runId` joins its run."""
    _check_accept(request)
    guards.check_origin(request, site.origins)
    asked = PROTOCOL.parse(await guards.json_body(request, site.limits), site.limits)
    assistant = site.assistant(name_field(request.query_params, "assistant", site.limits))
    exchange, visitor = await ask(site, request, asked, assistant, past_tokens=assistant.limits.history_tokens)
    return Streamed(site, request, exchange.follow(), PROTOCOL.writer(asked), PROTOCOL, visitor)


def _check_accept(request: Request) -> None:
    """Whoever takes AG-UI's binary form alone would read our events as noise. Raises: Refused (406)."""
    kinds = ",".join(request.headers.getlist("accept")).split(",")
    named = {kind.partition(";")[0].strip().lower() for kind in kinds}
    if _PROTOBUF in named and named.isdisjoint(_TAKES_EVENTS):
        raise Refused(f"events are given as {_EVENT_STREAM}, not as {_PROTOBUF}", status=406, code="not_acceptable")
