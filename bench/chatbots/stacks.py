"""The chatbots that are examined: what each is made of, how it is started and asked."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LEFT_OUT", "STACKS", "Stack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One chatbot.

    name:   in commands and in results.json. title: on the page. about: what it is, one sentence.
    pip:    packages of PyPI, pinned; npm: of npm, with `name@version`. The first is the one that is examined.
    server: a file of `servers/`, which listens on the port in `PORT`; or `command`, with `{bin}`, `{port}` and
            `{servers}` to be filled in.
    asked:  the arguments of `motamot exam`, the path of the address first.
    """

    name: str
    title: str
    about: str
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    server: str = ""
    command: str = ""
    path: str
    asked: tuple[str, ...]


_WEB = ("fastapi==0.165.0", "uvicorn==0.54.0")
_OPENAI = "openai==3.57.0"
_AI = ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "zod@4.6.7")
_MESSAGE = ("--preset", "events", "--request", "message.json", "--read", "text")

STACKS: tuple[Stack, ...] = (
    Stack(
        name="motamot",
        title="motamot",
        about="This package by its own protocol, with a tool.",
        server="with_motamot.py",
        path="/api/chat/stream",
        asked=("--preset", "motamot"),
    ),
    Stack(
        name="tutorial",
        title="FastAPI and openai, f-strings",
        about='What most tutorials write: the async client, and `yield f"data: {content}\\n\\n"`.',
        pip=(*_WEB, _OPENAI),
        server="tutorial.py",
        path="/chat",
        asked=("--preset", "event-text"),
    ),
    Stack(
        name="sse-starlette",
        title="FastAPI, sse-starlette and openai",
        about='The same with `EventSourceResponse` and `yield {"data": content}`.',
        pip=("sse-starlette==3.7.0", *_WEB, _OPENAI),
        server="with_sse_starlette.py",
        path="/chat",
        asked=("--preset", "event-text"),
    ),
    Stack(
        name="plain-text",
        title="FastAPI and openai, plain text",
        about="The synchronous client in a generator, sent as `text/plain`.",
        pip=(*_WEB, _OPENAI),
        server="plain_text.py",
        path="/chat",
        asked=("--preset", "plain-text"),
    ),
    Stack(
        name="pydantic-ai-ui",
        title="pydantic-ai, Vercel AI adapter",
        about="`VercelAIAdapter.dispatch_request`, an agent with a tool, by chat completions.",
        pip=("pydantic-ai-slim[openai]==2.68.0", *_WEB, _OPENAI),
        server="pydantic_ai_ui.py",
        path="/chat",
        asked=("--preset", "ui-message"),
    ),
    Stack(
        name="pydantic-ai-ag-ui",
        title="pydantic-ai, AG-UI adapter",
        about="`AGUIAdapter.dispatch_request`, an agent with a tool, by chat completions.",
        pip=("pydantic-ai-slim[openai,ag-ui]==2.68.0", "ag-ui-protocol==1.0.0", *_WEB, _OPENAI),
        server="pydantic_ai_ag_ui.py",
        path="/chat",
        asked=("--preset", "ag-ui"),
    ),
    Stack(
        name="openai-agents",
        title="openai-agents behind FastAPI",
        about="`Runner.run_streamed` with a tool and a `SQLiteSession`; text deltas as JSON events; by Responses.",
        pip=("openai-agents==0.24.0", *_WEB, _OPENAI),
        server="with_openai_agents.py",
        path="/chat",
        asked=_MESSAGE,
    ),
    Stack(
        name="langgraph",
        title="LangChain agent on LangGraph behind FastAPI",
        about='`create_agent` with a tool and a checkpointer, `astream(stream_mode="messages")`; text as JSON events.',
        pip=("langgraph==1.2.24", "langchain==1.5.2", "langchain-openai==1.7.4", *_WEB, _OPENAI),
        server="with_langgraph.py",
        path="/chat",
        asked=_MESSAGE,
    ),
    Stack(
        name="ai-sdk",
        title="AI SDK on Node's http server",
        about="`streamText` with a tool and `pipeUIMessageStreamToResponse`, as in its example for Node; by Responses.",
        npm=_AI,
        server="ai_sdk.mjs",
        path="/api/chat",
        asked=("--preset", "ui-message"),
    ),
    Stack(
        name="ai-sdk-signal",
        title="AI SDK on Hono, abort signal wired",
        about="The same with `abortSignal: c.req.raw.signal` and `toUIMessageStreamResponse`.",
        npm=(*_AI, "hono@4.13.19", "@hono/node-server@2.1.9"),
        server="ai_sdk_signal.mjs",
        path="/api/chat",
        asked=("--preset", "ui-message"),
    ),
    Stack(
        name="litellm",
        title="LiteLLM's proxy",
        about="`litellm --config` in front of an OpenAI model.",
        pip=("litellm[proxy]==1.108.7",),
        command="{bin}/litellm --config {servers}/litellm.yaml --port {port} --host 127.0.0.1",
        path="/v1/chat/completions",
        asked=("--preset", "openai", "-H", "Authorization: Bearer sk-only-for-this-examination-7f3a9c5e"),
    ),
    Stack(
        name="gradio",
        title="Gradio's ChatInterface",
        about="`gr.ChatInterface` over a generator; asked by its API, `/call`, as its guide for curl shows.",
        pip=("gradio==6.31.0", _OPENAI),
        server="with_gradio.py",
        path="/gradio_api/call/chat",
        asked=("--preset", "gradio"),
    ),
)
"""In the order of the page."""

LEFT_OUT = (
    (
        "Chainlit",
        "speaks Socket.IO to its page: there is no request that a visitor without a browser could send.",
    ),
    (
        "llama.cpp's server",
        "is itself the model: nothing stands behind it that could be given a script, to know what it was to say.",
    ),
)
"""Asked for by people, and not examined: name, and why."""
