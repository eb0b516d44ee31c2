"""Where the rules stand that a fault breaks: name and link of each source, once."""

from __future__ import annotations

__all__ = [
    "AG_UI",
    "ANTHROPIC",
    "CACHE",
    "DECODE",
    "GEMINI",
    "HTTP",
    "HTTP_INCOMPLETE",
    "HTTP_TYPE",
    "JSON",
    "NGINX",
    "OLLAMA",
    "OPENAI",
    "OPENAI_STREAM",
    "OPENAI_TOOLS",
    "OPENAI_USAGE",
    "RESPONSES",
    "SSE_AUTHORING",
    "SSE_INTERPRET",
    "SSE_PARSE",
    "SSE_PROCESS",
    "UI_MESSAGE",
]

_HTML = "https://html.spec.whatwg.org/multipage/server-sent-events.html"
SSE_PARSE = f"[WHATWG HTML, Parsing an event stream]({_HTML}#parsing-an-event-stream)"
SSE_INTERPRET = f"[WHATWG HTML, Interpreting an event stream]({_HTML}#event-stream-interpretation)"
SSE_AUTHORING = f"[WHATWG HTML, server-sent events, Authoring notes]({_HTML}#authoring-notes)"
SSE_PROCESS = f"[WHATWG HTML, server-sent events, Processing model]({_HTML}#sse-processing-model)"
DECODE = "[WHATWG Encoding, UTF-8 decode](https://encoding.spec.whatwg.org/#utf-8-decode)"
GEMINI = "[Gemini API, generating content](https://ai.google.dev/api/generate-content)"
JSON = "[RFC 8259, The JSON Data Interchange Format](https://www.rfc-editor.org/rfc/rfc8259)"
HTTP = "[RFC 9110, HTTP Semantics](https://www.rfc-editor.org/rfc/rfc9110)"
HTTP_INCOMPLETE = (
    "[RFC 9112, section 8, Handling Incomplete Messages](https://www.rfc-editor.org/rfc/rfc9112#section-8)"
)
HTTP_TYPE = "[RFC 9110, section 8.3, Content-Type](https://www.rfc-editor.org/rfc/rfc9110#section-8.3)"
CACHE = "[RFC 9111, section 5.2.2, Cache-Control](https://www.rfc-editor.org/rfc/rfc9111#section-5.2.2)"
NGINX = "[nginx, proxy_buffering](https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering)"
OPENAI = "[OpenAI API reference, chat completion chunk](https://platform.openai.com/docs/api-reference/chat-streaming)"
OPENAI_STREAM = (
    "[OpenAI API reference, create a chat completion](https://platform.openai.com/docs/api-reference/chat/create)"
)
OPENAI_TOOLS = f"{OPENAI}, `choices[].delta.tool_calls`"
OPENAI_USAGE = f"{OPENAI}, `usage` and `stream_options.include_usage`"
RESPONSES = (
    "[OpenAI API reference, Responses streaming](https://platform.openai.com/docs/api-reference/responses-streaming)"
)
ANTHROPIC = "[Anthropic, streaming messages](https://docs.anthropic.com/en/docs/build-with-claude/streaming)"
OLLAMA = "[Ollama, API](https://github.com/ollama/ollama/blob/main/docs/api.md)"
AG_UI = "[AG-UI, events](https://docs.ag-ui.com/concepts/events)"
UI_MESSAGE = "[AI SDK, UI message stream](https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol)"
