"""A chatbot whose process ends a moment after the model's answer broke off: `python -m tests.exam.crashing PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


async def chat(request: Request) -> StreamingResponse:
    """POST /v1/chat/completions: what the model sends, as it comes."""
    body = await request.body()

    async def chunks() -> AsyncIterator[bytes]:
        async with aiohttp.ClientSession() as session:
            url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
            try:
                async with session.post(url, data=body) as response:
                    async for chunk in response.content.iter_any():
                        yield chunk
            except aiohttp.ClientError:
                asyncio.get_running_loop().call_later(0.3, os._exit, 3)

    return StreamingResponse(chunks(), media_type="text/event-stream")


if __name__ == "__main__":
    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
