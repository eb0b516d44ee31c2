"""A page made with `useChat` of Vercel's AI SDK: asks, stops, asks again, and goes on with the answer after a reload.

pip install .    # in a checkout of motamot
npm install && npm run build    # here: the AI SDK and React come from npm
OPENAI_API_KEY=… python app.py    # or OPENAI_BASE_URL, AI_URL, a running Ollama
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


def departures(stop: str) -> str:
    """When buses leave from a stop.

    Args:
        stop: the stop's name
    """
    return f"From {stop}: at five past and thirty-five past each hour."


chat = Assistant(system="You are a bus driver. You answer passengers in one sentence.", tools=[departures])


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
