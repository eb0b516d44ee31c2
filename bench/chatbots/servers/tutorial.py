"""FastAPI and the asynchronous OpenAI client, as most tutorials write a streaming chat."""

import os
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

app = FastAPI()
client = AsyncOpenAI()


class Question(BaseModel):
    """What the page sends."""

    message: str


@app.post("/chat")
async def chat(question: Question) -> StreamingResponse:
    """The answer, each delta in an event."""

    async def events() -> AsyncIterator[str]:
        stream = await client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": question.message}], stream=True
        )
        async for chunk in stream:
            content = chunk.choices[0].delta.content
            if content:
                yield f"data: {content}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
