"""Two assistants inside a Starlette app that has a lifespan of its own.

    pip install .    # in a checkout of motamot
    OPENAI_API_KEY=… uvicorn starlette_app:app

A request says which assistant it means: `{"assistant": "porter", "message": "…"}`; the first answers where it does not.
Both share one database, one set of budgets and one page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from motamot import Assistant, Limits
from motamot.server.options import Options
from motamot.server.site import Site

guide = Assistant(name="guide", system="You explain a museum's paintings to visitors.")
porter = Assistant(
    name="porter",
    system="You tell visitors of a museum where things are, in one sentence.",
    limits=Limits(max_tokens=100, answer_timeout=20),
)
site = Site([guide, porter], options=Options(requests_per_hour=30, money_per_day=5.0))

OPENING_HOURS = {"monday": "closed", "tuesday": "10 to 18"}


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, object]]:
    """The app's own: the chat's runs within it."""
    async with site.lifespan(app):
        yield {"hours": OPENING_HOURS}


async def hours(request: Request) -> Response:
    return JSONResponse(request.state.hours)


app = Starlette(routes=[Route("/hours", hours), Mount("/ask", site)], lifespan=lifespan)
