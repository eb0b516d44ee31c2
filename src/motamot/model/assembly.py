"""One completion put together from the bytes of its response, whatever dialect they are in."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from motamot.limits import Limits
from motamot.model.anthropic import AnthropicAssembly
from motamot.model.base import Assembly, Dialect
from motamot.model.ollama import OllamaAssembly
from motamot.model.openai import OpenAIAssembly

__all__ = ["Assembly", "Dialect", "Kind", "assembly_for"]


class Kind(StrEnum):
    """How a model's server answers: what its bytes are."""

    OPENAI_CHAT = "openai-chat"  # an event stream of chat completion chunks
    OPENAI_JSON = "openai-json"  # one JSON chat completion, where a stream was asked for
    ANTHROPIC_MESSAGES = "anthropic-messages"  # an event stream of Anthropic's messages API
    OLLAMA_NDJSON = "ollama-ndjson"  # one JSON object a line, Ollama's own API


def assembly_for(kind: Kind | str, *, dialect: Dialect | None = None, limits: Limits | None = None) -> Assembly:
    """A new `Assembly` for a body of that kind.

    Raises: ValueError for a kind that does not exist.
    """
    kind = Kind(kind)
    match kind:
        case Kind.OPENAI_CHAT | Kind.OPENAI_JSON:  # the body tells which: gateways name it wrongly
            return OpenAIAssembly(dialect=dialect, limits=limits)
        case Kind.ANTHROPIC_MESSAGES:
            return AnthropicAssembly(dialect=dialect, limits=limits)
        case Kind.OLLAMA_NDJSON:
            return OllamaAssembly(dialect=dialect, limits=limits)
        case _:
            assert_never(kind)
