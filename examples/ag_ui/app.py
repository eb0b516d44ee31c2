"""A page made with AG-UI's own client, and a tool of the page's own that the model may use.

    pip install .    # in a checkout of motamot
    npm install && npm run build    # here: AG-UI's client comes from npm
    OPENAI_API_KEY=… python app.py    # or OPENAI_BASE_URL, AI_URL, a running Ollama

Ask for a stop by its name, or for the first one: the model calls `choose_stop`, the page chooses it in its list and
says so, and the answer goes on. Nothing of that tool runs here.
"""

from __future__ import annotations

from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route

from motamot import Assistant

HERE = Path(__file__).parent

chat = Assistant(system="You are a bus driver. You answer passengers in one sentence.")


async def page(_: Request) -> Response:
    return FileResponse(HERE / "page.html")


async def script(_: Request) -> Response:
    return FileResponse(HERE / "build" / "page.js")


app = Starlette(
    routes=[Route("/", page), Route("/page.js", script), Mount("/chat", chat.asgi)],
    lifespan=chat.lifespan,
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8000)
