"""A question on its way in, whatever protocol it came by: who asks, what they may spend, what they bring."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from motamot.assistant import Assistant
from motamot.exchange.exchange import Exchange, Wishes
from motamot.exchange.exchanges import Asking
from motamot.model.turn import Message, ToolCall, ToolSpec
from motamot.protocols.base import Asked, PastCall, PastMessage
from motamot.server import guards
from motamot.server.visitors import Visitor, visitor_of

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["ask", "weight", "wishes"]


async def ask(
    site: Site,
    request: Request,
    asked: Asked,
    assistant: Assistant,
    visitor: Visitor | None = None,
    *,
    past_tokens: int | None = None,
) -> tuple[Exchange, Visitor]:
    """Let a question in, and begin to answer it, or join the exchange that its key names.

    visitor:     where it is known already.
    past_tokens: how much is taken of a history that the client keeps; None: all of it.
    Raises:      every refusal there is.
    """
    guards.check_origin(request, assistant.origins)
    visitor = visitor or await visitor_of(request, site.identify)
    asking = Asking(
        message=asked.message,
        visitor=visitor.name,
        conversation=asked.conversation,
        thread=asked.thread,
        key=asked.key,
        replaces=asked.replaces,
        brought=_brought(asked),
    )
    if asked.key is not None and site.exchanges.named(visitor.name, asked.key):
        return await assistant.begin(asking), visitor  # joins it: nothing is spent by that
    brought, address = weight(asked, past_tokens), guards.client_address(request)
    with await site.budgets.admit(visitor.name, address, assistant, brought=brought) as ticket:
        exchange = await assistant.begin(asking, wishes=wishes(asked, past_tokens))
        ticket.spend(exchange)
    return exchange, visitor


def wishes(asked: Asked, past_tokens: int | None = None) -> Wishes:
    """What the client brings with its question, in the exchange's words."""
    options = dict(asked.options)
    choice = options.pop("tool_choice", asked.tool_choice)
    return Wishes(
        past=None if asked.history is None else tuple(map(_message, asked.history)),
        past_tokens=past_tokens,
        followed=tuple(map(_message, asked.followed)),
        system=asked.system,
        tools=tuple(
            ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in asked.tools
        ),
        tool_choice=choice,
        max_tokens=asked.max_tokens,
        options=options,
    )


def weight(asked: Asked, past_tokens: int | None = None) -> int:
    """Bytes of what the client brings beside its question, less a history of which only as much is taken as of ours."""
    messages = [*asked.followed, *(asked.history or () if past_tokens is None else ())]
    size = len(msgspec.json.encode((messages, asked.tools))) if messages or asked.tools else 0
    return size + len((asked.system or "").encode())


def _brought(asked: Asked) -> str:
    """A digest of what the client brings: under one key it must be the same."""
    if asked.history is None:
        return ""
    told = msgspec.json.encode((asked.history, asked.followed, asked.tools))
    return hashlib.sha256(told).hexdigest()


def _message(past: PastMessage) -> Message:
    calls = tuple(map(_call, past.calls))
    return Message(role=past.role, content=past.content, tool_calls=calls, tool_call_id=past.call_id)


def _call(call: PastCall) -> ToolCall:
    """A call the caller has run: it goes to the model as it was written, whatever it holds."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    return ToolCall(
        id=call.id,
        name=call.name,
        raw=call.arguments,
        arguments=arguments if isinstance(arguments, dict) else None,
    )
