"""An agent of openai-agents behind FastAPI; the library's session keeps each conversation."""

import json
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

set_tracing_disabled(True)  # traces go to OpenAI, with a key that this machine has not got


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


agent = Agent(name="Assistant", instructions="You answer briefly.", model="gpt-4o-mini", tools=[weather])
app = FastAPI()
kept = Path(tempfile.mkdtemp()) / "conversations.db"


class Question(BaseModel):
    """What the page sends."""

    message: str
    conversation: str


@app.post("/chat")
async def chat(question: Question) -> StreamingResponse:
    """The answer, each text delta in an event of JSON."""

    async def events() -> AsyncIterator[str]:
        session = SQLiteSession(question.conversation, kept)
        result = Runner.run_streamed(agent, question.message, session=session)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
                yield f"data: {json.dumps({'text': event.data.delta})}\n\n"
        yield f"data: {json.dumps({'done': True})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
