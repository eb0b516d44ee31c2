"""A page that shows an answer while it comes: one `EventSource`, pieces appended as text, and a button that stops.

    pip install .    # in a checkout of motamot
    OPENAI_API_KEY=… python app.py          # or OPENAI_BASE_URL, AI_URL, a running Ollama; else the recorded sample

What a page with a bare `EventSource` and a server of ten lines lack: the browser connects again by itself whenever a
stream ends otherwise than by `close()`, and each time another answer is generated, and paid for. Here a failure, a
stop, a restart of this server or a lost connection never begin a second one.
"""

from __future__ import annotations

from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from motamot import Assistant, Limits
from motamot.server.visitors import visitor_of

PAGE = (Path(__file__).parent / "page.html").read_text("utf-8")

chat = Assistant(
    opening="Saluez un voyageur de bus en une phrase courte.",
    limits=Limits(max_tokens=60, answer_timeout=30),
    recorded=["Bonjour, prenez place : nous partons dans deux minutes. Jusqu'où allez-vous ?"],
)


async def page(request: Request) -> Response:
    """The page, with the cookie by which its stream is known to be this visitor's from the first request on."""
    response = HTMLResponse(PAGE)
    response.raw_headers.extend((await visitor_of(request)).cookie)
    return response


app = Starlette(routes=[Route("/", page), Mount("/", chat.asgi)], lifespan=chat.lifespan)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8000, access_log=False)  # an address may hold a question
