"""The peer most people write: FastAPI, sse-starlette and the `openai` client. Served by uvicorn, one worker."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator

from fastapi import FastAPI
from openai import AsyncOpenAI
from pydantic import BaseModel
from sse_starlette import EventSourceResponse

app = FastAPI()
client = AsyncOpenAI(base_url=os.environ["BENCH_UPSTREAM"], api_key="none", max_retries=0)


class Question(BaseModel):
    """What a page sends."""

    message: str


async def chat(question: Question) -> EventSourceResponse:
    """The answer, a delta an event."""

    async def events() -> AsyncIterator[dict[str, str]]:
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": question.message}],
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            for choice in chunk.choices:
                if choice.delta.content:
                    yield {"data": json.dumps({"text": choice.delta.content})}
        yield {"event": "end", "data": "{}"}

    return EventSourceResponse(events())


app.post("/chat")(chat)
