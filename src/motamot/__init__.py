"""motamot: put a model's answer on a page word for word, and find what any chatbot loses on the way.

Names are loaded on first use, so that `import motamot.sse` pulls nothing but the standard library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from motamot.answer import (
        AnswerEvent,
        Cited,
        Ended,
        Outcome,
        Reasoning,
        Routed,
        Started,
        Text,
        ToolCalled,
        ToolReturned,
        TurnEnded,
        Usage,
    )
    from motamot.assistant import Assistant, Question, Sourced, ToolContext
    from motamot.errors import MotamotError
    from motamot.limits import Limits

_HOMES = {
    "Assistant": "motamot.assistant",
    "Question": "motamot.assistant",
    "Sourced": "motamot.assistant",
    "ToolContext": "motamot.assistant",
    "AnswerEvent": "motamot.answer",
    "Cited": "motamot.answer",
    "Ended": "motamot.answer",
    "Outcome": "motamot.answer",
    "Reasoning": "motamot.answer",
    "Routed": "motamot.answer",
    "Started": "motamot.answer",
    "Text": "motamot.answer",
    "ToolCalled": "motamot.answer",
    "ToolReturned": "motamot.answer",
    "TurnEnded": "motamot.answer",
    "Usage": "motamot.answer",
    "Limits": "motamot.limits",
    "MotamotError": "motamot.errors",
}

__version__ = "0.1.0.dev0"
__all__ = [
    "AnswerEvent",
    "Assistant",
    "Cited",
    "Ended",
    "Limits",
    "MotamotError",
    "Outcome",
    "Question",
    "Reasoning",
    "Routed",
    "Sourced",
    "Started",
    "Text",
    "ToolCalled",
    "ToolContext",
    "ToolReturned",
    "TurnEnded",
    "Usage",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'motamot' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
