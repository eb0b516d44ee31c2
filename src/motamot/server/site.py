"""A site: assistants behind one ASGI app, with one store and one set of running exchanges."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from motamot.assistant import Assistant
from motamot.errors import MotamotError, NotFound
from motamot.exchange.exchanges import Asking, Exchanges
from motamot.limits import Limits
from motamot.protocols.base import Asked, Protocol
from motamot.server import refusals
from motamot.server.budgets import Budgets
from motamot.server.guards import check_host
from motamot.server.options import Options
from motamot.server.streams import Heartbeats
from motamot.server.visitors import Identify, Visitor
from motamot.store.location import default_database
from motamot.store.store import Store

__all__ = ["Handler", "Site", "answered"]

_logger = logging.getLogger("motamot.server")

Handler = Callable[["Site", Request], Awaitable[Response]]


class Site:
    """One or more assistants as an ASGI app. The first is the one that answers where none is named.

    store:    the database (a path or URL), or a `Store` that the caller closes.
    identify: the host's own login.
    It starts on first use where its lifespan is not run.
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
        self.identify = identify
        self.origins = frozenset(origin for assistant in assistants for origin in assistant.origins)
        self.heartbeats = Heartbeats(self.limits.heartbeat_seconds)
        self.budgets = Budgets(options)
        self._where = store
        self._router = router(self)
        self._exchanges: Exchanges | None = None
        self._stack: AsyncExitStack | None = None
        self._starting: asyncio.Lock | None = None

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

    async def start(self) -> None:
        """Open the store and the models. Idempotent. Raises: StoreError, SettingsError, ModelUnavailable."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._exchanges is not None:
                return
            async with AsyncExitStack() as stack:
                store = self._where
                if not isinstance(store, Store):
                    opened = functools.partial(Store.open, limits=self.limits)
                    store = await asyncio.to_thread(opened, store or default_database())
                    stack.push_async_callback(store.close)
                exchanges = Exchanges(store, self.limits)
                for assistant in self.assistants.values():
                    assistant.share(exchanges)
                    await stack.enter_async_context(assistant)
                stack.push_async_callback(exchanges.close)  # ends what runs, before the models are let go
                await self.budgets.remember(store)
                self._stack = stack.pop_all()
            self._exchanges = exchanges

    async def stop(self) -> None:
        """End what runs as `interrupted`, book it, and let go of everything."""
        stack, self._stack = self._stack, None
        self._exchanges = None
        self._starting = None
        if stack is not None:
            await stack.aclose()

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
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    def assistant(self, name: str | None) -> Assistant:
        """The assistant of this name. Raises: NotFound."""
        found = self.default if name is None else self.assistants.get(name)
        if found is None:
            raise NotFound("there is no such assistant")
        return found

    def asking(self, asked: Asked, visitor: Visitor) -> Asking:
        """What a protocol read, as a question of this visitor."""
        return Asking(
            message=asked.message,
            visitor=visitor.name,
            conversation=asked.conversation,
            key=asked.key,
            replaces=asked.replaces,
        )


Endpoint = Callable[[Request], Awaitable[Response]]


def answered(handler: Handler, site: Site, protocol: Protocol | None = None) -> Endpoint:
    """`handler` behind the checks every route has; errors become responses, in the protocol's shape if it has one."""

    async def endpoint(request: Request) -> Response:
        try:
            check_host(request, site.options.hosts)
            await site.start()
            return await handler(site, request)
        except MotamotError as error:
            content = protocol.refusal(error) if protocol is not None else None
            if refusals.status(error) >= 500:
                _logger.warning("%s %s: %s (%s)", request.method, request.scope["path"], error.message, error.detail)
            return refusals.response(error, content)
        except Exception:
            _logger.exception("%s %s failed", request.method, request.scope["path"])
            return refusals.unexpected()

    return endpoint
