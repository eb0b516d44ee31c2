"""`/api/ui-message`: what `useChat` of the AI SDK asks, comes back to and stops. The history is ours.

The SDK's client names its chat and its messages. A chat is a conversation of its visitor; a message is a question, and
the same message is asked once: sent twice, by a button pressed twice or a request that went astray, it is joined. What
was said before is told to the model from our own books, as far as the client's list of messages still shows it: after
an edit in the middle the model has forgotten what the visitor has.

Leaving is a stop, as the SDK's own `stop()` means it, unless the client can come back: then it is a disconnect, as the
SDK's documentation has it, and the application stops with a request of its own. A client says so with `resumable` in
its body; one that was made with `resume: true` has said so by asking for its chat's stream when it was opened.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from motamot.answer import By, Ended, Outcome, Text
from motamot.assistant import Assistant
from motamot.errors import NotFound
from motamot.exchange.exchange import Exchange
from motamot.exchange.exchanges import of_thread
from motamot.protocols.base import PastMessage
from motamot.protocols.ui_message import PROTOCOL
from motamot.protocols.ui_message_request import UIAsked, parse_stop
from motamot.server import guards
from motamot.server.asking import ask
from motamot.server.refusals import FRESH, Refused
from motamot.server.site import answered
from motamot.server.streams import Streamed
from motamot.server.visitors import Visitor, visitor_of
from motamot.store.records import ExchangeRow

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["Chats", "routes"]

_JSON = "application/json"
_DELETIONS = 8  # of one chat's conversation that are looked behind
_GOOD = (Outcome.COMPLETE, Outcome.TRUNCATED, Outcome.FILTERED)
_PREFIX = 26  # letters that the keys of all answers to one message have in common


def routes(site: Site) -> list[Route]:
    """What the AI SDK's `DefaultChatTransport` uses, and a stop."""
    chats = Chats(site.limits.chats_remembered)
    # A chat's id may hold any printable character, a slash too.
    return [
        Route("/api/ui-message", answered(chats.ask, site, PROTOCOL), methods=["POST"]),
        Route("/api/ui-message/{chat:path}/stream", answered(chats.stream, site, PROTOCOL), methods=["GET"]),
        Route("/api/ui-message/{chat:path}/stop", answered(chats.stop, site, PROTOCOL), methods=["POST"]),
    ]


@dataclass(slots=True)
class _Chat:
    """What is known of a chat beside the books. exchange: the latest; questions: the ids of the messages that asked it.

    comes_back: its client has asked for its stream. asking: one question at a time, as the second of two may be the
    first once more.
    """

    exchange: str = ""
    questions: frozenset[str] = frozenset()
    comes_back: bool = False
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Chats:
    """The chats of one site, those used last. most: so many of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chats: OrderedDict[tuple[str, str], _Chat] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, site: Site, request: Request) -> Response:
        """POST /api/ui-message: the answer as it comes, from its first chunk; one under way is joined."""
        guards.check_origin(request, site.origins)
        asked = PROTOCOL.parse(await guards.json_body(request, site.limits), site.limits)
        assistant = site.assistant(asked.assistant)
        guards.check_origin(request, assistant.origins)
        visitor = await visitor_of(request, site.identify)
        chat = self._chat(visitor, asked.thread or "")
        async with chat.asking:
            exchange = await self._exchange(site, request, chat, asked, assistant, visitor)
            comes_back = chat.comes_back if asked.comes_back is None else asked.comes_back
            follower = exchange.follow(resumable=comes_back)
        return Streamed(site, request, follower, PROTOCOL.writer(), PROTOCOL, visitor)

    async def stream(self, site: Site, request: Request) -> Response:
        """GET /api/ui-message/{chat}/stream: the answer under way from its first chunk, or one whose end nobody had.

        204 where there is none, for strangers, too. Who asks can come back.
        """
        guards.check_origin(request, site.origins)
        visitor = await visitor_of(request, site.identify)
        name = request.path_params["chat"]
        if not _is_name(name, site):
            return _nothing(site, request, visitor)
        self._chat(visitor, name).comes_back = True
        exchange = await self._latest(site, visitor, name)
        if exchange is None or (exchange.ended is not None and exchange.sent >= len(exchange.log.events)):
            return _nothing(site, request, visitor)
        follower = exchange.follow(resumable=True)
        return Streamed(site, request, follower, PROTOCOL.writer(), PROTOCOL, visitor)

    async def stop(self, site: Site, request: Request) -> Response:
        """POST /api/ui-message/{chat}/stop: told when the model has been let go. Idempotent.

        202 where there is nothing to stop; a question that is named, and comes within a while, is stopped at once.
        """
        guards.check_origin(request, site.origins)
        asked = parse_stop(await _stop_body(request, site), site.limits)
        visitor = await visitor_of(request, site.identify)
        name = request.path_params["chat"]
        if not _is_name(name, site):
            return _stopped(site, request, visitor, None)
        if asked.answer is not None:
            exchange = await _found(site, visitor, asked.answer)
        else:
            exchange = await self._latest(site, visitor, name)
        if exchange is not None and (exchange.ended is None or asked.answer is not None or asked.question is None):
            seen = None if asked.text is None else _seen(exchange, asked.text)
            return _stopped(site, request, visitor, await exchange.stop(seen=seen))
        if asked.question is None:
            return _stopped(site, request, visitor, None)
        ended = None
        for assistant in site.assistants.values():  # a stop names none
            thread, _ = await _history(site, assistant, visitor, name)
            key = _prefix(assistant, thread, asked.question) + "0"
            ended = await site.exchanges.stop(key, visitor.name) or ended
        return _stopped(site, request, visitor, ended)

    def _chat(self, visitor: Visitor, name: str) -> _Chat:
        """What is known of a chat; it is remembered from here on, and the one used longest ago is not."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a site may be started again on another: locks belong to the one they are made on
            self._loop = loop
            self._chats.clear()
        chat = self._chats.setdefault((visitor.name, name), _Chat())
        self._chats.move_to_end((visitor.name, name))
        while len(self._chats) > self._most:
            self._chats.popitem(last=False)
        return chat

    async def _latest(self, site: Site, visitor: Visitor, name: str) -> Exchange | None:
        """The chat's latest exchange: the one that is remembered, else what the books have of the last minutes."""
        chat = self._chats.get((visitor.name, name))
        if chat is not None and chat.exchange:
            return await _found(site, visitor, chat.exchange)
        if visitor.cookie:  # new here
            return None
        rows = [
            row
            for assistant in site.assistants.values()
            for row in (await _history(site, assistant, visitor, name, most=1))[1]
            if row.ended_at is None or time.time() - row.ended_at <= assistant.limits.replay_seconds
        ]
        row = max(rows, key=lambda row: row.started_at, default=None)
        if row is None or (row.outcome is None and not any(one.id == row.id for one in site.exchanges.running)):
            return None  # what another process answers cannot be followed here
        return await _found(site, visitor, row.id)

    async def _exchange(
        self, site: Site, request: Request, chat: _Chat, asked: UIAsked, assistant: Assistant, visitor: Visitor
    ) -> Exchange:
        """The exchange that answers: one that does already, or a new one."""
        thread, rows = await _history(site, assistant, visitor, asked.thread or "")
        prefix, *others = (_prefix(assistant, thread, message) for message in asked.same)
        last = next((row for row in reversed(rows) if (row.key or "")[:_PREFIX] in (prefix, *others)), None)
        before = next((row for row in rows if row.id == asked.instead_of), last)
        running = rows[-1].id if rows and rows[-1].outcome is None else ""
        latest = await _found(site, visitor, chat.exchange or running)
        known = latest if chat.questions & set(asked.same) else None
        if known is None and last is not None:
            known = await _found(site, visitor, last.id)
        if known is not None and _is_the_same(known, asked, assistant):
            if latest is None or latest is known:  # else a request that went astray, of a question long before
                chat.exchange, chat.questions = known.id, frozenset(asked.same)
            return known
        if before is not None and before.outcome is None:
            replaced = await _found(site, visitor, before.id)
            if replaced is not None:
                await replaced.stop()
        if latest is not None and not latest.followed:  # its client has gone on, and will not come back to it
            await latest.stop(by=By.DISCONNECT)
        question = replace(
            asked,
            thread=thread,
            key=prefix + (before.id if before is not None else "0"),
            replaces=before.id if before is not None else None,
            history=_past(rows, asked, assistant, thread),
        )
        tokens = assistant.limits.history_tokens
        exchange, _ = await ask(site, request, question, assistant, visitor, past_tokens=tokens)
        chat.exchange, chat.questions = exchange.id, frozenset(asked.same)
        return exchange


def _is_the_same(exchange: Exchange, asked: UIAsked, assistant: Assistant) -> bool:
    """Whether this exchange answers the question, and no other answer is wanted.

    An answer that was asked for again is asked for again once: of two such requests the second finds the first read.
    """
    begun = exchange.begun
    if (begun.question, begun.assistant) != (asked.message, assistant.name):
        return False
    if exchange.ended is None and exchange.ending is None:
        if not asked.again:
            return True
        return begun.replaces is not None and exchange.followed and asked.instead_of != exchange.id
    return not asked.again and exchange.ended is not None and exchange.ended.outcome in _GOOD


async def _history(
    site: Site, assistant: Assistant, visitor: Visitor, thread: str, *, most: int = 200
) -> tuple[str, Sequence[ExchangeRow]]:
    """The name that the chat's conversation goes by, and its latest exchanges, oldest first.

    One that was deleted, or forgotten, takes no more questions: behind it the chat goes on in another.
    """
    store = site.exchanges.store
    for _ in range(_DELETIONS):
        rows = await store.history(of_thread(visitor.name, assistant.name, thread), visitor.name, limit=most)
        if not rows or rows[-1].question is not None:
            return thread, rows
        thread = rows[-1].id
    raise NotFound("this chat was deleted; begin another")


def _past(rows: Sequence[ExchangeRow], asked: UIAsked, assistant: Assistant, thread: str) -> tuple[PastMessage, ...]:
    """What the client's list shows of the conversation, in its order and in our words.

    An answer it names comes with its question; a question alone, where its answer is not in the list.
    """
    by_id = {row.id: row for row in rows}
    answers: dict[str, list[ExchangeRow]] = {}
    for row in rows:
        answers.setdefault((row.key or "")[:_PREFIX], []).append(row)
    named = {message.id for message in asked.earlier if message.role == "assistant"}
    past: list[PastMessage] = []
    for message in asked.earlier:
        if message.role == "assistant":
            answer = by_id.pop(message.id, None)
            if answer is not None:
                past.append(PastMessage(role="user", content=answer.question or ""))
                if answer.shown:
                    past.append(PastMessage(role="assistant", content=answer.shown))
        elif message.id not in asked.same:
            own = answers.get(_prefix(assistant, thread, message.id), ())
            if own and not any(row.id in named for row in own):
                past.append(PastMessage(role="user", content=own[-1].question or ""))
    return tuple(past)


def _prefix(assistant: Assistant, thread: str, message: str) -> str:
    """What the keys of all exchanges begin with that answer this message."""
    parts = "\0".join((assistant.name, thread, message))
    digest = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).digest()[:16]
    return f"ui-{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}-"


async def _found(site: Site, visitor: Visitor, exchange: str) -> Exchange | None:
    """The visitor's exchange of this id; None where there is none of theirs."""
    if not exchange:
        return None
    try:
        found = await site.exchanges.find(exchange, visitor.name)
    except NotFound:
        return None
    return found if found.id == exchange else None  # else it was found by a key


def _is_name(name: str, site: Site) -> bool:
    return name.isprintable() and 0 < len(name.encode("utf-8", "surrogatepass")) <= site.limits.key_bytes


async def _stop_body(request: Request, site: Site) -> bytes:
    """The body of a stop, or nothing: the SDK's documentation shows one without."""
    if "content-type" in request.headers:
        return await guards.json_body(request, site.limits)
    if await guards.body(request, site.limits):
        raise Refused(f"the body must be {_JSON}", status=415, code="unsupported_media_type")
    return b""


def _seen(exchange: Exchange, text: str) -> int:
    """Number of the last event whose text the page says it has shown."""
    rest, seen = len(text), 0
    for number, event in enumerate(exchange.log.events, 1):
        if isinstance(event, Text):
            rest -= len(event.text)
            if rest < 0:
                break
        seen = number
    return seen


def _stopped(site: Site, request: Request, visitor: Visitor, ended: Ended | None) -> Response:
    told = {
        "success": True,
        "outcome": ended.outcome if ended is not None else None,
        "shown": ended.shown if ended is not None else 0,
    }
    return _with_cookie(
        Response(
            msgspec.json.encode(told),
            status_code=200 if ended is not None else 202,
            headers={**FRESH, **guards.cors(request, site.origins)},
            media_type=_JSON,
        ),
        visitor,
    )


def _nothing(site: Site, request: Request, visitor: Visitor) -> Response:
    """204; a new visitor gets the cookie already here, so that the two first questions of a page are one visitor's."""
    response = Response(status_code=204, headers={**FRESH, **guards.cors(request, site.origins)})
    return _with_cookie(response, visitor)


def _with_cookie(response: Response, visitor: Visitor) -> Response:
    response.raw_headers.extend(visitor.cookie)
    return response
