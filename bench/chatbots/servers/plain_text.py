"""FastAPI and the synchronous OpenAI client in a generator, sent as plain text."""

import os
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import OpenAI
from pydantic import BaseModel

app = FastAPI()
client = OpenAI()


class Question(BaseModel):
    """What the page sends."""

    message: str


@app.post("/chat")
def chat(question: Question) -> StreamingResponse:
    """The answer's text."""

    def text() -> Iterator[str]:
        stream = client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": question.message}], stream=True
        )
        for chunk in stream:
            yield chunk.choices[0].delta.content or ""

    return StreamingResponse(text(), media_type="text/plain")


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
