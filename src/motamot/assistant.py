"""An assistant in Python: its model, its tools, and asking it with no server at all."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from motamot.answer import AnswerEvent, By, Ended, Outcome, Text, Usage
from motamot.errors import SettingsError
from motamot.exchange.exchange import Answer, Ending, Exchange, Visible, Wishes
from motamot.exchange.exchanges import Asking, Exchanges
from motamot.exchange.loop import ModelAnswer
from motamot.exchange.own import OwnAnswer, Question
from motamot.exchange.tools import Sourced, Tool, ToolContext, ToolError, tool_from
from motamot.knowledge.library import Pages
from motamot.limits import Limits
from motamot.model.local import LocalModel
from motamot.model.recorded import RecordedModel
from motamot.model.sources import Wanted, resolve
from motamot.model.turn import Model
from motamot.store.location import default_database
from motamot.store.prices import PriceBook, Prices
from motamot.store.redaction import Redact
from motamot.store.store import Store

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

__all__ = ["Asked", "Assistant", "Question", "Sourced", "ToolContext", "ToolError", "check_name"]

_logger = logging.getLogger("motamot.model")

OPENING = "Saluez un voyageur de bus en une phrase courte."  # the lesson's question


def check_name(name: str) -> None:
    """Raises SettingsError for a name that clients could not write, or that would break a line it stands in."""
    if not 1 <= len(name) <= 100 or not name.isprintable() or not name.strip():
        raise SettingsError("a name has 1 to 100 printable characters")


def _checked_redact(redact: Redact | None) -> Redact | None:
    if inspect.iscoroutinefunction(redact):
        raise SettingsError("redact is a plain function, from a text to a text: it runs in a thread, nothing awaits it")
    return redact


def _checked_retention(days: float | None) -> float | None:
    if days is not None and not 0 < days < float("inf"):
        raise SettingsError(f"retention_days is a number above 0, not {days!r}")
    return days


class Assistant:
    """A named configuration of a model: ask it from Python, or mount it in an app.

    upstream:  address of an OpenAI-compatible API (`https://api.openai.com/v1`), or a `Model`; without one, the
               environment or a server on this machine, as docs/models.md says.
    model:     the model's name there. api_key: its key.
    system:    the system prompt. name: 1 to 100 printable characters.
    tools:     plain typed functions, sync or async; their schema comes from annotations and docstring.
    store:     the database (a path or URL), or a `Store`; docs/models.md says where it is without one.
    visible:   what visitors see of tools, reasoning and routing.
    extra:     further fields of each request to the model, as `{"temperature": 0.2}`.
    prices:    what tokens cost, where the maintained table does not know this model.
    recorded:  sample answers that stand in, marked, when the model can't be reached, or there is none.
    opening:   the question put to the model where a page opens a stream without one (`GET /flux`).
    origins:   other sites whose pages may ask (`https://shop.example`).
    redact:    what every text goes through before it is written, `str -> str`, called in the store's thread; where it
               fails, the text is not written. Later history is made of what was written (docs/privacy.md).
    retention_days: text older than that is removed by itself, with all of its store; None: none is.
    knowledge: pages that it answers from, a file of `motamot learn`; the sources that an answer cites go with it.
    knowledge_mode: `tool`: the model searches them; `given`: the passages that fit stand before each question, for
               models without tools. Without it, `given` for the embedded model and `tool` for others.
    knowledge_overview_tokens: how much of the system prompt the pages' titles may take.
    Raises: SettingsError.

    In an app: `app.mount("/chat", chat.asgi)`, with `chat.lifespan` as the app's own lifespan or within it, and
    `chat.identify` where the app has a login.
    """

    identify: Callable[[Request], Awaitable[str | None]] | None = None
    """The host's own login: gives the user's name for a request, or None for nobody (answered with 401).

    Without one, visitors are known by a secret that only they have.
    """

    def __init__(
        self,
        *,
        upstream: str | Model | None = None,
        model: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        name: str = "default",
        store: str | Path | Store | None = None,
        limits: Limits = Limits(),
        visible: Visible = Visible(),
        extra: Mapping[str, Any] | None = None,
        prices: Prices | None = None,
        recorded: Sequence[str] = (),
        opening: str = OPENING,
        origins: Sequence[str] = (),
        redact: Redact | None = None,
        retention_days: float | None = None,
        knowledge: str | Path | None = None,
        knowledge_mode: Literal["tool", "given"] | None = None,
        knowledge_overview_tokens: int = 400,
    ) -> None:
        check_name(name)
        self.name = name
        self.system = system
        self.tools: list[Tool] = [tool_from(function) for function in tools]
        self.limits = limits
        self.visible = visible
        self.extra = dict(extra or {})
        self.prices = PriceBook({name: prices} if prices else {})
        self._upstream = upstream
        self._model_name = model
        self._api_key = api_key
        self._recorded = tuple(recorded)
        self.opening = opening
        self.origins = frozenset(origins)
        self.redact = _checked_redact(redact)
        self.retention_days = _checked_retention(retention_days)
        self._pages = None
        if knowledge is not None:
            self._pages = partial(
                Pages,
                Path(knowledge),
                overview_tokens=knowledge_overview_tokens,
                taken=[tool.spec.name for tool in self.tools],
            )
            self._pages()  # a file that is not there is told now
        self._knowledge_mode = knowledge_mode
        self._shared: Exchanges | None = None
        self._where = store
        self._own: Callable[[Question], AsyncIterator[AnswerEvent]] | None = None
        self._open = 0
        self._opening: asyncio.Lock | None = None
        self._running: _Running | None = None
        self._site: Any = None

    @property
    def asgi(self) -> ASGIApp:
        """The chat as an ASGI app, to mount anywhere: every address in it is relative to where that is.

        Where the host app runs no lifespan of ours, it starts on first use, and ends with the event loop. The host's
        business stay its own: which Host it answers to, TLS, proxies. `motamot.server.site.Site` takes further
        choices (budgets, keys of /v1, several assistants).
        """
        return self._served()  # type: ignore[no-any-return]  # a Site

    @property
    def lifespan(self) -> Callable[[Any], AbstractAsyncContextManager[None]]:
        """For `FastAPI(lifespan=chat.lifespan)`, or `async with chat.lifespan(app):` in a lifespan of one's own."""
        return self._served().lifespan  # type: ignore[no-any-return]  # a Site's

    def _served(self) -> Any:
        if self._site is None:
            # The server's room is above this one: loaded only where somebody mounts, so that asking needs none of it.
            site = importlib.import_module("motamot.server.site")
            self._site = site.Site([self], store=self._where, limits=self.limits)
        return self._site

    def answer(
        self, generator: Callable[[Question], AsyncIterator[AnswerEvent]]
    ) -> Callable[[Question], AsyncIterator[AnswerEvent]]:
        """Bring your own answer: an async generator of answer events takes the model's place.

        Stop, resume, booking, protocols and transcript stay. `question.model_answer()` gives the model's answer.
        """
        self._own = generator
        return generator

    @asynccontextmanager
    async def ask(
        self,
        message: str,
        *,
        conversation: str | None = None,
        visitor: str = "local",
        key: str | None = None,
        replaces: str | None = None,
    ) -> AsyncIterator[Asked]:
        """Ask, and read the answer's events as they come; leaving early stops the model.

        conversation: `exchange.conversation` of an earlier answer, to go on with it.
        key:          asked again under the same key, the same exchange is joined: nothing is generated twice.
        Raises:       InvalidRequest, Conflict, NotFound, LimitExceeded, SettingsError, StoreError. What the model
                      does wrong is not raised: it is the outcome of the answer.
        """
        async with self:
            asking = Asking(message=message, visitor=visitor, conversation=conversation, key=key, replaces=replaces)
            asked = Asked(await self.begin(asking))
            try:
                yield asked
            finally:
                await asked.close()
                await self.exchanges.store.flush()

    async def __aenter__(self) -> Assistant:
        """Open the store and the model's connections, and keep them for as long as anybody is inside."""
        if self._open == 0:
            self._opening = asyncio.Lock()  # of the event loop that is running now
        self._open += 1
        try:
            assert self._opening is not None
            async with self._opening:
                if self._running is None:
                    self._running = await self._start()
        except BaseException:
            self._open -= 1
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open -= 1
        if self._open == 0 and self._running is not None:
            running, self._running = self._running, None
            await running.close()

    @property
    def exchanges(self) -> Exchanges:
        """The exchanges under way. Raises RuntimeError outside `async with chat`."""
        if self._running is None:
            raise RuntimeError("the assistant is not open: use it inside `async with chat:`")
        return self._running.exchanges

    @property
    def marks(self) -> tuple[str, ...]:
        """What its model's answers are marked with (`demo_model`, `recorded`, …); empty while it is not open."""
        return self._running.marks if self._running is not None else ()

    async def warm(self, say: Callable[[str], None] | None = None) -> None:
        """Load an embedded model ahead of the first question; others need no such thing. say: that it still loads.

        Raises: ModelUnavailable, and RuntimeError outside `async with chat`.
        """
        if self._running is None:
            raise RuntimeError("the assistant is not open: use it inside `async with chat:`")
        if isinstance(self._running.model, LocalModel):
            await self._running.model.open(say)

    def price(self, usage: Usage) -> tuple[float, str] | None:
        """What this usage of its model costs, and the currency; None where no price is known, or it is not open."""
        model = self._running.model if self._running is not None else None
        return self.prices.cost(self.name, model.name, usage) if model is not None else None

    async def begin(self, asking: Asking, *, limits: Limits | None = None, wishes: Wishes = Wishes()) -> Exchange:
        """Begin to answer, or join the exchange that the question's key names; `asking`'s assistant and model are set.

        For servers: `ask` reads the answer, too. Raises: as `ask`, and RuntimeError outside `async with chat`.
        """
        running = self._running
        if running is None:
            raise RuntimeError("the assistant is not open: use it inside `async with chat:`")
        model = running.model.name if running.model else ""
        return await running.exchanges.begin(
            msgspec.structs.replace(asking, assistant=self.name, model=model),
            running.answer,
            limits=limits or self.limits,
            visible=self.visible,
            wishes=wishes,
            marks=running.marks,
            redact=self.redact,
        )

    def share(self, exchanges: Exchanges | None) -> None:
        """Use the exchanges, and the store, of a server with several assistants; None: its own again.

        Raises: RuntimeError where it is open already, with its own.
        """
        if exchanges is not None and self._running is not None:
            raise RuntimeError("the assistant is in use already: mount it, and start the app, before it is asked")
        self._shared = exchanges

    async def _start(self) -> _Running:
        model = await asyncio.to_thread(self._model)
        if self._shared is not None:
            return _Running(
                store=self._shared.store,
                own_store=False,
                model=model,
                own_model=model is not self._upstream,
                exchanges=self._shared,
                own_exchanges=False,
                answer=self._answer(model),
                marks=model.marks if model else (),
            )
        where = self._where
        own_store = not isinstance(where, Store)
        if isinstance(where, Store):
            store = where
        else:
            opened = partial(Store.open, limits=self.limits, prices=self.prices, retention_days=self.retention_days)
            store = await asyncio.to_thread(opened, where or default_database())
        try:
            return _Running(
                store=store,
                own_store=own_store,
                model=model,
                own_model=model is not self._upstream,
                exchanges=Exchanges(store, self.limits),
                answer=self._answer(model),
                marks=model.marks if model else (),
            )
        except BaseException:
            if own_store:
                await store.close()
            raise

    def _model(self) -> Model | None:
        """Blocks: a server may have to be looked for, and asked what it has."""
        if self._upstream is not None and not isinstance(self._upstream, str):
            return self._upstream
        if self._own is not None and self._upstream is None and self._model_name is None:
            return None
        wanted = Wanted(
            upstream=self._upstream,
            model=self._model_name,
            api_key=self._api_key,
            recorded=self._recorded,
            fallback="recorded" if self._recorded else None,
            limits=self.limits,
            said_by="upstream" if self._upstream else None,
        )
        choice = resolve(wanted, ask=None, say=_logger.info, embedded=False)
        _logger.info(choice.why)
        return choice.make()

    def _answer(self, model: Model | None) -> Answer:
        fallback = RecordedModel(self._recorded, reason="the model could not be reached") if self._recorded else None
        price = partial(self.prices.cost, self.name)
        loop = None
        if model is not None:
            mode = self._knowledge_mode or ("given" if model.origin == "local" else "tool")
            pages = self._pages(reads_first=mode == "given") if self._pages is not None else None
            loop = ModelAnswer(
                model=model,
                price=price,
                system=self.system,
                tools=[*self.tools, pages.tool()] if pages is not None and not pages.reads_first else self.tools,
                extra=self.extra,
                fallback=fallback,
                library=pages,
            )
        if self._own is not None:
            return OwnAnswer(generator=self._own, price=price, model_answer=loop)
        assert loop is not None
        return loop


class _Running:
    """What an open assistant holds."""

    def __init__(
        self,
        *,
        store: Store,
        own_store: bool,
        model: Model | None,
        own_model: bool,
        exchanges: Exchanges,
        own_exchanges: bool = True,
        answer: Answer,
        marks: tuple[str, ...],
    ) -> None:
        self.store = store
        self.model = model
        self.exchanges = exchanges
        self.answer = answer
        self.marks = marks
        self._own_exchanges = own_exchanges
        self._own_store = own_store
        self._own_model = own_model

    async def close(self) -> None:
        if self._own_exchanges:
            await self.exchanges.close()
        if self.model is not None and self._own_model:
            await self.model.close()
        if self._own_store:
            await self.store.close()


class Asked:
    """An answer being read: iterate over it for its events, once. After the last one, see `ended`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._follower = exchange.follow()
        self._number = 0
        self.text = ""  # of the events read so far

    @property
    def id(self) -> str:
        """The exchange's id."""
        return self._exchange.id

    @property
    def conversation(self) -> str:
        """Give it to the next `ask` to go on."""
        return self._exchange.begun.conversation

    @property
    def ended(self) -> Ended | None:
        """How it ended; None while the answer is coming."""
        return self._exchange.ended

    @property
    def outcome(self) -> Outcome | None:
        """In one word; None while the answer is coming."""
        return self._exchange.ended.outcome if self._exchange.ended else None

    @property
    def usage(self) -> Usage:
        """Tokens of the completions booked so far."""
        return self._exchange.usage

    async def __aiter__(self) -> AsyncIterator[AnswerEvent]:
        while batch := await self._follower.next():
            for number, event in batch:
                self._number = number
                if isinstance(event, Text):
                    self.text += event.text
                yield event

    async def stop(self) -> Ended:
        """Stop the model; back when its connection is closed. What was read so far is what was shown."""
        self._follower.delivered(self._number)
        return await self._exchange.stop(seen=self._number, by=By.VISITOR)

    async def close(self) -> None:
        """Leave: an answer that has not ended is stopped."""
        self._follower.delivered(self._number)
        self._follower.close()
        await self._exchange.end(Ending(outcome=Outcome.STOPPED, by=By.DISCONNECT))
