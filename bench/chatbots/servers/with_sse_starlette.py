"""FastAPI, sse-starlette and the asynchronous OpenAI client."""

import os
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from openai import AsyncOpenAI
from pydantic import BaseModel
from sse_starlette import EventSourceResponse

app = FastAPI()
client = AsyncOpenAI()


class Question(BaseModel):
    """What the page sends."""

    message: str


@app.post("/chat")
async def chat(question: Question) -> EventSourceResponse:
    """The answer, each delta in an event."""

    async def events() -> AsyncIterator[dict[str, str]]:
        stream = await client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": question.message}], stream=True
        )
        async for chunk in stream:
            content = chunk.choices[0].delta.content
            if content:
                yield {"data": content}
        yield {"data": "[DONE]"}

    return EventSourceResponse(events())


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
