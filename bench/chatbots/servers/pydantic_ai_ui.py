"""pydantic-ai's agent behind its adapter for the AI SDK's pages."""

import os

import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic_ai import Agent
from pydantic_ai.ui.vercel_ai import VercelAIAdapter

agent = Agent("openai-chat:gpt-4o-mini")
app = FastAPI()


@agent.tool_plain
def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


@app.post("/chat")
async def chat(request: Request) -> Response:
    """The answer as a UI message stream."""
    return await VercelAIAdapter.dispatch_request(request, agent=agent)


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]))
