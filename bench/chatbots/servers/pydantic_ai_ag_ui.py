"""pydantic-ai's agent behind its AG-UI adapter."""

import os

import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic_ai import Agent
from pydantic_ai.ui.ag_ui import AGUIAdapter

agent = Agent("openai-chat:gpt-4o-mini")
app = FastAPI()


@agent.tool_plain
def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


@app.post("/chat")
async def chat(request: Request) -> Response:
    """The answer as AG-UI events."""
    return await AGUIAdapter.dispatch_request(request, agent=agent)


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
