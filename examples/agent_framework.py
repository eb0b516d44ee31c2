"""An agent of Pydantic AI answers: its own loop, its own tools, streamed and booked as any answer here.

    pip install . 'pydantic-ai-slim[openai]'    # in a checkout of motamot
    OPENAI_API_KEY=… uvicorn agent_framework:app

The framework makes the requests, so only it can tell what they cost: each is put in the books before it leaves
(`question.completion`), with its own figures when it is over, and with an estimate when a visitor stops it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable

from openai import AsyncOpenAI
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPartDelta,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from motamot import AnswerEvent, Assistant, Question, Reasoning, Text, ToolCalled, ToolReturned, Usage
from motamot.answer import Source
from motamot.model.turn import Message

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
INSTRUCTIONS = "You help the customers of a shop. Be brief."

client = AsyncOpenAI(max_retries=0)  # its own two retries would be paid for and booked by nobody
agent = Agent(
    OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client)),
    instructions=INSTRUCTIONS,
    model_settings={"max_tokens": 1_000},
)
chat = Assistant()


@agent.tool_plain
async def order_status(order: str) -> str:
    """Where an order is."""
    return f"Order {order} left the warehouse this morning."


@chat.answer
async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
    """Each request of the agent's loop is a turn; what it streams goes on at once."""
    *past, _ = await question.history()
    history = [told(message) for message in past]
    async with agent.iter(question.message, message_history=history, usage_limits=UsageLimits(request_limit=8)) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                prompt = words([*run.all_messages(), node.request])
                async with question.completion(MODEL, prompt=prompt) as completion, node.stream(run.ctx) as stream:
                    async for event in stream:
                        piece, kind = generated(event)
                        completion.add(piece)
                        if kind is not None:
                            yield kind(piece)
                    finish = FINISH.get(stream.response.finish_reason or "", "unknown")
                    yield completion.done(finish, reported(stream.response.usage))
            elif Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as calls:
                    async for call in calls:
                        if (told_of := tool_event(call)) is not None:
                            yield told_of


FINISH = {"stop": "stop", "length": "length", "content_filter": "content_filter", "tool_call": "tool_calls"}


def generated(event: object) -> tuple[str, type[Text] | type[Reasoning] | None]:
    """What an event of the framework adds to what the model made, and what of it a visitor may see."""
    match event:
        case PartStartEvent(part=TextPart(content=str(text))) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text, Text
        case PartStartEvent(part=ThinkingPart(content=str(text))):
            return text, Reasoning
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            return text, Reasoning
        case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
            return text, None
    return "", None


def tool_event(event: object) -> AnswerEvent | None:
    """A tool that is about to run, or has run."""
    match event:
        case FunctionToolCallEvent(part=call):
            return ToolCalled(id=call.tool_call_id, name=call.tool_name, arguments=call.args)
        case FunctionToolResultEvent(part=done):
            status = "ok" if done.outcome == "success" else "error"
            result = done.model_response_str()
            return ToolReturned(id=done.tool_call_id, name=done.tool_name, status=status, result=result)
    return None


def told(message: Message) -> ModelMessage:
    """A message of the conversation, in the framework's words."""
    if message.role == "assistant":
        return ModelResponse(parts=[TextPart(message.content)])
    return ModelRequest(parts=[UserPromptPart(message.content)])


def words(messages: Iterable[ModelMessage]) -> str:
    """All text of a request: what its tokens are estimated from if they are never reported."""
    contents = [getattr(part, "content", None) for message in messages for part in message.parts]
    return "\n".join([INSTRUCTIONS, *(text for text in contents if isinstance(text, str))])


def reported(usage: RequestUsage) -> Usage | None:
    """What the provider said one request cost; None where it said nothing."""
    if not usage.has_values():
        return None
    return Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        source=Source.REPORTED,
    )


app = chat.asgi
