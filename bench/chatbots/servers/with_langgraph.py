"""A LangChain agent, which is a graph of LangGraph's, behind FastAPI; its checkpointer keeps each conversation."""

import json
import os
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel


def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


agent = create_agent("openai:gpt-4o-mini", tools=[weather], checkpointer=InMemorySaver())
app = FastAPI()


class Question(BaseModel):
    """What the page sends."""

    message: str
    conversation: str


@app.post("/chat")
async def chat(question: Question) -> StreamingResponse:
    """The answer, each token in an event of JSON."""

    async def events() -> AsyncIterator[str]:
        asked = {"messages": [{"role": "user", "content": question.message}]}
        config = {"configurable": {"thread_id": question.conversation}}
        async for token, _ in agent.astream(asked, config, stream_mode="messages"):
            if token.text and token.type == "AIMessageChunk":
                yield f"data: {json.dumps({'text': token.text})}\n\n"
        yield f"data: {json.dumps({'done': True})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
