"""A site: assistants behind one ASGI app, with one store and one set of running exchanges."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from motamot.assistant import Assistant
from motamot.errors import MotamotError, NotFound, SettingsError
from motamot.exchange.exchange import Exchange
from motamot.exchange.exchanges import Exchanges
from motamot.limits import Limits
from motamot.protocols.base import Protocol
from motamot.server import refusals
from motamot.server.bodies import IN_SCOPE, Bodies
from motamot.server.budgets import Budgets
from motamot.server.counts import Counts
from motamot.server.ending import Signals
from motamot.server.guards import cors
from motamot.server.operator import Operator
from motamot.server.options import Options
from motamot.server.refusals import Refused
from motamot.server.streams import Heartbeats
from motamot.server.troubles import Troubles
from motamot.server.visitors import Identify
from motamot.store.location import default_database
from motamot.store.prices import PriceBook
from motamot.store.store import Store

__all__ = ["Handler", "Site", "answered"]

_logger = logging.getLogger("motamot.server")

Handler = Callable[["Site", Request], Awaitable[Response]]


class Site:
    """One or more assistants as an ASGI app. The first is the one that answers where none is named.

    store:    the database (a path or URL), or a `Store` that the caller closes.
    identify: the host's own login; without it the first assistant's.
    It starts on first use where its lifespan is not run, and then ends with the event loop. One event loop at a time.
    """

    def __init__(
        self,
        assistants: Sequence[Assistant],
        *,
        store: str | Path | Store | None = None,
        options: Options = Options(),
        limits: Limits | None = None,
        identify: Identify | None = None,
    ) -> None:
        from motamot.server.routes import router  # the routes import this module

        self.assistants = {assistant.name: assistant for assistant in assistants}
        self.default = assistants[0]
        self.options = options
        self.limits = limits or self.default.limits
        self.origins = frozenset(origin for assistant in assistants for origin in assistant.origins)
        self.heartbeats = Heartbeats(self.limits.heartbeat_seconds)
        self.bodies = Bodies(self.limits)
        self.counts = Counts()
        self.troubles = Troubles()
        self.budgets = Budgets(options, self._ended)
        self.operator = Operator(options.operator_key, self.limits)
        self._identify = identify
        self._where = store
        self._router = router(self)
        self._exchanges: Exchanges | None = None
        self._stack: AsyncExitStack | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Lock | None = None
        self._until_loop_ends: AsyncGenerator[None, None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self.unfinished: MotamotError | None = None  # why its last end left something unbooked

    @property
    def identify(self) -> Identify | None:
        """The host's own login, if it has one."""
        return self._identify or self.default.identify

    @property
    def exchanges(self) -> Exchanges:
        """The exchanges under way. Raises: RuntimeError before the start."""
        if self._exchanges is None:
            raise RuntimeError("the site has not started")
        return self._exchanges

    @property
    def started(self) -> bool:
        """Whether it is ready to answer."""
        return self._exchanges is not None

    @property
    def ending(self) -> bool:
        """Whether it has been told to end, and takes no more questions."""
        return self._ending is not None

    async def start(self) -> None:
        """Open the store and the models. Idempotent.

        Raises: StoreError, SettingsError, ModelUnavailable; RuntimeError where another event loop is using it.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise RuntimeError("this chat runs on another event loop: make one for each")
            self._forget()  # the loop it ran on is gone, and everything on it
            self._loop, self._starting = loop, asyncio.Lock()
        if self._exchanges is not None:
            return
        assert self._starting is not None
        async with self._starting:
            if self._exchanges is None:
                await self._start()

    @property
    def _retention_days(self) -> float | None:
        """The shortest of the assistants': they share the store."""
        return min((days for one in self.assistants.values() if (days := one.retention_days) is not None), default=None)

    async def _start(self) -> None:
        _check_logins(self.assistants.values(), self.identify)
        async with AsyncExitStack() as stack:
            store = self._where
            if not isinstance(store, Store):
                prices = {name: one for a in self.assistants.values() for name, one in a.prices.by_assistant.items()}
                opened = functools.partial(
                    Store.open, limits=self.limits, prices=PriceBook(prices), retention_days=self._retention_days
                )
                store = await asyncio.to_thread(opened, store or default_database())
                stack.push_async_callback(store.close)
            exchanges = Exchanges(store, self.limits)
            for assistant in self.assistants.values():
                assistant.share(exchanges)
                stack.callback(assistant.share, None)
                await stack.enter_async_context(assistant)
            stack.push_async_callback(exchanges.close)  # ends what runs, before the models are let go
            await self.budgets.remember(store)
            stack.callback(Signals(self.begin_end).forget)
            self._stack = stack.pop_all()
        self._exchanges = exchanges

    async def start_on_use(self) -> None:
        """`start` for the first request where nobody runs the lifespan: it ends with the event loop."""
        if self._exchanges is not None and self._loop is asyncio.get_running_loop():
            return
        await self.start()
        if self._until_loop_ends is None:
            # asyncio closes what async generators are left before it closes the loop: the one hook there is.
            self._until_loop_ends = self._stopping()
            await anext(self._until_loop_ends)

    async def _stopping(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._until_loop_ends = None
            await self.stop()

    def begin_end(self) -> None:
        """End and book what runs, as `interrupted`; streams close by it. New questions are refused from here on."""
        if self._ending is None and self._exchanges is not None:
            self.bodies.end()
            self._ending = asyncio.get_running_loop().create_task(self._exchanges.close())
            self._ending.add_done_callback(_log_failure)

    async def stop(self) -> None:
        """End what runs as `interrupted`, book it, and let go of everything."""
        stack = self._stack
        self.bodies.end()
        self._forget()
        if stack is not None:
            await stack.aclose()

    def _forget(self) -> None:
        self._stack = None
        self._exchanges = None
        self._ending = None
        self.bodies = Bodies(self.limits)
        self._loop = None
        self._starting = None

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """For a server, or for the lifespan of the app this one is mounted in."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI app."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        await self._router(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except MotamotError as error:
            await send({"type": "lifespan.startup.failed", "message": error.message})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await self.stop()
        except MotamotError as error:
            self.unfinished = error
            await send({"type": "lifespan.shutdown.failed", "message": error.message})
            return
        await send({"type": "lifespan.shutdown.complete"})

    def _ended(self, exchange: Exchange) -> None:
        self.counts.ended(exchange)
        self.troubles.ended(exchange)

    def refuse(self, request: Request, error: MotamotError, protocol: Protocol | None = None) -> Response:
        """An error as a response, counted; one that is ours is logged. What a provider said is not: it may quote."""
        self.counts.refused(error)
        if refusals.status(error) >= 500 and error.code != "interrupted":  # a question cut short by our end is no fault
            _logger.warning("%s: %s (%s)", _shown(request), error.message, error.code)
        return refusals.response(error, protocol, cors(request, self.origins))

    def assistant(self, name: str | None) -> Assistant:
        """The assistant of this name. Raises: NotFound."""
        found = self.default if name is None else self.assistants.get(name)
        if found is None:
            raise NotFound("there is no such assistant")
        return found


@dataclass(frozen=True, slots=True)
class answered:  # noqa: N801 - it reads as the decorator it stands for
    """`handler` on a site that has started; errors become responses, in the protocol's shape if it has one.

    An ASGI app, not a function: Starlette wraps functions, and would have each piece of an answer go through it.
    """

    handler: Handler
    site: Site
    protocol: Protocol | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._response(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        site, protocol = self.site, self.protocol
        try:
            await site.start_on_use()
            request.scope[IN_SCOPE] = site.bodies
            return await self.handler(site, request)
        except MotamotError as error:
            return site.refuse(request, error, protocol)
        except HTTPException as error:  # of the host's login
            told = error.detail if error.status_code < 500 else "this is not possible now"
            refused = Refused(told, status=error.status_code, code="refused", headers=error.headers)
            return site.refuse(request, refused, protocol)
        except Exception:
            _logger.exception("%s failed", _shown(request))
            return refusals.response(refusals.UNEXPECTED, protocol, cors(request, site.origins))


def _shown(request: Request) -> str:
    """A request for the log: no query, and nothing a stranger wrote that could be taken for a line of its own."""
    return f"{request.method} {request.scope['path'][:200]!a}"


def _check_logins(assistants: Iterable[Assistant], login: Identify | None) -> None:
    """Raises: SettingsError where an assistant's own login would not be asked."""
    for assistant in assistants:
        if assistant.identify not in (None, login):
            raise SettingsError(
                f"{assistant.name!r} has a login of its own, and one site has one: give it as Site(identify=…)"
            )


def _log_failure(ending: asyncio.Task[None]) -> None:
    if not ending.cancelled() and (error := ending.exception()) is not None:
        _logger.error("what runs could not be ended and booked in time: %s", str(error) or type(error).__name__)
