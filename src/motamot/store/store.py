"""The store: what the rest of the house books with, and reads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from motamot.answer import Source
from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.store import browsing, reading, searching
from motamot.store.beside import beside_of
from motamot.store.chores import FORGOTTEN_AT_ONCE
from motamot.store.cleaning import clean
from motamot.store.database import Database, explain
from motamot.store.days import DAY, days_between
from motamot.store.estimates import Estimates, Estimator
from motamot.store.forgetting import forget_older, forget_theirs, forget_visitor
from motamot.store.owners import myself
from motamot.store.prices import PriceBook
from motamot.store.reading import Spent
from motamot.store.records import (
    Begun,
    Checkpoint,
    CompletionClosed,
    CompletionOpened,
    CompletionRow,
    ConversationRow,
    ExchangeBegun,
    ExchangeEnded,
    ExchangeRow,
    ExchangeSent,
)
from motamot.store.redaction import Redact
from motamot.store.verify import Inconsistency, inconsistencies
from motamot.store.views import Beside, Day, Detail, Facets, Filter, Found, Listed, VisitorConversation
from motamot.store.writer import Job, Writer

__all__ = ["Store"]

_logger = logging.getLogger("motamot.store")

READERS = 3  # threads, each with a connection that cannot write

INDEX_STEPS = 10  # before a search: a thousand exchanges; `Facets.unsearchable` tells what that leaves

T = TypeVar("T")


class Store:
    """Conversations, transcripts and the ledger in one SQLite file. Made by `open`.

    Order       What one thread hands over is written in that order, begin before open before close before end.
    Durability  `begin` and `open_completion` return when it is written; `close_completion`, `checkpoint` and `end`
                return at once and are written within milliseconds, at the latest by `flush` or `close`. What is
                written survives the death of the process (kill -9). It may not survive a power cut: WAL with
                synchronous=NORMAL can then lose the last moments, never the file.
    Atomicity   What is written together is there together or not at all: a checkpoint's text and boundaries, the
                two rows of `begin_with_completion`. Each row is closed once: the first close stands, whoever made
                it; a later one changes nothing.
    A crash     loses hand-overs of the last milliseconds. Their rows are open then, and whoever opens the store next
                (or has it open) closes them as `interrupted`, with the tokens the last checkpoint knew as an estimate.
    Failure     While nothing can be written (disk full, locked, read-only), hand-overs are kept in memory and tried
                again until they are written; `begin` and `open_completion` raise `StoreError` after
                `limits.store_seconds`, and at once when it has lasted that long already. If either raises, also by
                cancellation, nothing of it stays in the books. Reads then show what was written last.

    Usable from any number of event loops and threads of one process; not across a fork.
    """

    def __init__(self, database: Database, writer: Writer, *, limits: Limits, clock: Callable[[], float]) -> None:
        self._database = database
        self._writer = writer
        self._limits = limits
        self._clock = clock
        self._estimates = Estimates()
        self._models: dict[str, str] = {}  # of open completions, to learn from what is reported of them
        self._engine = database.reading()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="motamot-store-reader")
        self._local = threading.local()
        self._connections: list[Connection] = []
        self._closed = False
        self._finalizer = weakref.finalize(self, _abandon, writer, limits.shutdown_seconds)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        limits: Limits = Limits(),
        clock: Callable[[], float] = time.time,
        prices: PriceBook | None = None,
        retention_days: float | None = None,
    ) -> Store:
        """Open the store, making or migrating it where needed, and close what dead owners left open.

        url:    `sqlite:///relative.db`, `sqlite:////absolute.db`, a path, or ":memory:" for one that goes with `close`.
        clock:  seconds since the epoch.
        prices: for what is closed here after a crash; None: the table's.
        retention_days: text older than that is removed, now and each hour; None: it stays until somebody deletes it.
        Raises: StoreError with a sentence: locked, read-only, not a database, newer than the program, folder missing
                or not writable, disk full.
        """
        database = Database(url)
        try:
            database.prepare(limits.store_seconds)
            writer = Writer(
                database,
                myself(),
                limits=limits,
                clock=clock,
                price=(prices or PriceBook()).cost,
                retention=None if retention_days is None else retention_days * DAY,
            )
            writer.start()
        except BaseException:
            database.remove_temporary()
            raise
        store = cls(database, writer, limits=limits, clock=clock)
        store._remember_reports()
        return store

    @property
    def path(self) -> Path:
        """The database file."""
        return self._database.path

    @property
    def failing(self) -> StoreError | None:
        """What has kept the books from being written for longer than anybody waits; None: they can be written."""
        return self._writer.failing

    # Booking

    async def begin(self, begun: ExchangeBegun, *, redact: Redact | None = None) -> Begun:
        """Book a question before anything is done for it; its conversation is made if it is new.

        redact:  what the texts go through before they are written, here and below.
        Returns: `Begun()`, or the existing exchange where this visitor's key already names the same question.
                 Of two at the same moment, also in two processes, one is new and the other is told of it.
        Raises:  Conflict (the key names another question), NotFound (the conversation is somebody else's, another
                 assistant's, or deleted), StoreError (it could not be written in time).
        """
        return cast(Begun, await self._ask(Job(records=(begun,), redact=redact)))

    async def begin_with_completion(
        self, begun: ExchangeBegun, opened: CompletionOpened, *, redact: Redact | None = None
    ) -> Begun:
        """`begin` and, if the exchange is new, `open_completion`, in one transaction."""
        answer = cast(Begun, await self._ask(Job(records=(begun, opened), redact=redact)))
        if answer.existing is None:
            self._models[opened.id] = opened.model
        return answer

    async def open_completion(self, opened: CompletionOpened) -> None:
        """Book an upstream request that is about to leave. Only once this has returned may it leave.

        Raises: StoreError: it could not be written in time, or the exchange is not open here any more (it ended, or
                this process was taken for dead).
        """
        await self._ask(Job(records=(opened,)))
        self._models[opened.id] = opened.model

    def close_completion(self, closed: CompletionClosed, *, redact: Redact | None = None) -> None:
        """Hand over what became of an upstream request. The first close of a completion stands."""
        self._writer.submit(Job(records=(closed,), redact=redact))
        model = self._models.pop(closed.id, None)
        usage = closed.usage
        # Reasoning that is paid for and not sent would make every text look dearer than it is.
        if model is not None and usage.source is Source.REPORTED and not usage.reasoning_tokens:
            self._estimates.learn(model, [(usage.completion_tokens, closed.completion_bytes)])

    def checkpoint(self, checkpoints: Sequence[Checkpoint], *, redact: Redact | None = None) -> None:
        """Hand over the state of running exchanges. What has ended meanwhile stays as it is."""
        self._writer.submit(*(Job(records=(checkpoint,), redact=redact) for checkpoint in checkpoints))

    def end(self, ended: ExchangeEnded, *, redact: Redact | None = None) -> None:
        """Hand over how an exchange ended. The first end of an exchange stands."""
        self._writer.submit(Job(records=(ended,), redact=redact))

    def sent(self, sent: ExchangeSent) -> None:
        """Hand over that more of an answer was sent after its end had been handed over."""
        self._writer.submit(Job(records=(sent,)))

    def underway(self, exchanges: int) -> None:
        """How many exchanges are: while there are many, their bookings wait a moment for each other."""
        self._writer.underway = exchanges

    async def flush(self) -> None:
        """Wait until everything handed over so far is written. Raises StoreError if it is not in time."""
        await self._ask(Job(call=_nothing))

    async def delete_conversation(self, conversation: str, visitor: str) -> bool:
        """Remove a conversation's text for good, also what a running exchange of it will still say.

        Token rows, times and outcomes stay. Pages that held text are overwritten with zeros, and the write-ahead log
        is emptied within a second or so, as soon as no reader of another program is in the way. The search finds it no
        more at once; single words of it leave the file when the index was merged: a minute or so for a large book.
        Returns: False where it is not this visitor's, or already deleted.
        """

        def delete(connection: Connection) -> bool:
            self._writer.truncate_due = True
            return forget_theirs(connection, clean(conversation), clean(visitor), self._clock())

        return bool(await self._ask(Job(call=delete)))

    async def delete_visitor(self, visitor: str) -> int:
        """`delete_conversation` for all of a visitor's, and what they are called is in the books no more.

        Returns: how many conversations had text.
        """

        def delete(connection: Connection) -> int:
            self._writer.truncate_due = True
            return forget_visitor(connection, clean(visitor), self._clock(), FORGOTTEN_AT_ONCE)

        total = 0
        while (found := cast(int, await self._ask(Job(call=delete)))) == FORGOTTEN_AT_ONCE:
            total += found
        return total + found

    async def forget_before(self, moment: float) -> int:
        """Remove the text of what was asked before then, and does not run.

        Returns: how many conversations went as a whole, as nothing was asked in them since.
        """

        def delete(connection: Connection) -> tuple[int, int]:
            self._writer.truncate_due = True
            return forget_older(connection, moment, self._clock(), FORGOTTEN_AT_ONCE)

        total = 0
        while any(found := cast(tuple[int, int], await self._ask(Job(call=delete)))):
            total += found[0]
        return total

    async def sweep(self) -> int:
        """Close what dead owners left open, now. Runs by itself at `open` and every second. Returns: rows closed."""
        return cast(int, await self._ask(Job(call=self._writer.sweep)))

    async def verify(self) -> list[Inconsistency]:
        """Derive again what the books say twice, and report every contradiction; empty: they are right."""
        return await self._read(inconsistencies)

    # Reading. What this process handed over before is written first, so that it is seen (see `Failure` above).

    async def exchange(self, exchange: str) -> ExchangeRow | None:
        """One exchange, with its boundaries."""
        return await self._read(reading.exchange_by_id, exchange)

    async def exchange_by_key(self, visitor: str, key: str) -> ExchangeRow | None:
        """The exchange that this visitor's key names, with its boundaries."""
        return await self._read(reading.exchange_by_key, visitor, key)

    async def history(self, conversation: str, visitor: str, *, limit: int = 200) -> list[ExchangeRow]:
        """The latest `limit` exchanges of this visitor's conversation, oldest first; none where it is not theirs."""
        return await self._read(reading.history_of, conversation, visitor, limit)

    async def beside(self, conversation: str, visitor: str, *, limit: int = 200) -> dict[str, Beside]:
        """By exchange, of the latest `limit` of this visitor's conversation: what was shown beside the text.

        An exchange that runs, or that a killed process left, has nothing here.
        """
        return await self._read(beside_of, conversation, visitor, limit)

    async def conversation(self, conversation: str) -> ConversationRow | None:
        """One conversation, also a deleted one."""
        return await self._read(reading.conversation_by_id, conversation)

    async def completions(
        self, *, exchange: str | None = None, open_only: bool = False, since: float | None = None, limit: int = 1000
    ) -> list[CompletionRow]:
        """The latest `limit` completions that fit, oldest first. since: opened at or after this time."""
        return await self._read(reading.completions_where, exchange, open_only, since, limit)

    async def spent(self, assistant: str | None, since: float) -> Spent:
        """What an assistant (None: all of them) has spent in completions opened at or after `since`."""
        return await self._read(reading.spent_by, assistant, since)

    # What an operator is shown

    async def browse(self, filter: Filter, *, before: int | None = None, limit: int = 50) -> Found:  # noqa: A002
        """A page of the exchanges that fit, newest first; `Found.before` of one page gives the next.

        Raises: InvalidRequest for a text without words, or `limit` over 200; StoreError where this Python's SQLite has
                no full-text search and a text is looked for.
        """
        await self._make_searchable(filter)
        return await self._read(browsing.found, filter, before, limit)

    async def detail(self, exchange: str) -> Detail | None:
        """One exchange, with all that the books know of it."""
        return await self._read(browsing.exchange_detail, exchange)

    async def days(
        self, since: float, until: float, *, assistant: str | None = None, model: str | None = None
    ) -> tuple[Day, ...]:
        """The days (UTC) that have a moment in [since, until), by assistant and model; in order."""
        return await self._read(days_between, since, until, assistant, model)

    async def facets(self) -> Facets:
        """What there is to filter by."""
        return await self._read(browsing.facets)

    async def visitor_conversations(self, visitor: str) -> tuple[VisitorConversation, ...]:
        """A visitor's latest conversations, newest first, at most 1,000."""
        return await self._read(browsing.visitor_conversations, visitor)

    async def export(self, filter: Filter) -> AsyncIterator[Listed]:  # noqa: A002
        """All exchanges that fit, newest first, with their whole texts; a few at a time are held. Raises as `browse`.

        What is asked meanwhile is not among them.
        """
        await self._make_searchable(filter)
        before: int | None = None
        while True:
            page = await self._read(browsing.export_page, filter, before)
            for line in page.rows:
                yield line
            if (before := page.before) is None:
                return

    async def export_visitor(self, visitor: str) -> AsyncIterator[dict[str, Any]]:
        """All that is kept of a visitor: their exchanges, newest first, each as values that JSON has."""
        before: int | None = None
        while True:
            page, before = await self._read(browsing.visitor_page, visitor, before)
            for detail in page:
                yield msgspec.to_builtins(detail)
            if before is None:
                return

    async def _make_searchable(self, wanted: Filter) -> None:
        """What has ended a moment ago is to be found, too. Where that cannot be written, the rest is."""
        if wanted.text is not None and searching.available():
            with contextlib.suppress(StoreError):
                for _ in range(INDEX_STEPS):
                    if not await self._ask(Job(call=searching.add_waiting)):
                        break

    def estimate(self, model: str) -> Estimator:
        """Tokens of a text for this model: `estimate(model)(text)`; learnt from its reports, else a rule of thumb."""
        return self._estimates.of(model)

    # The end

    async def close(self) -> None:
        """Write everything, close what is still open here as `interrupted`, and let go of the file. Idempotent.

        Raises: StoreError if something could not be written within `limits.shutdown_seconds`.
        """
        await asyncio.get_running_loop().run_in_executor(None, self.close_sync)

    def close_sync(self) -> None:
        """`close`, for where no event loop runs."""
        self._finalizer.detach()
        self._closed = True
        try:
            self._writer.close(self._limits.shutdown_seconds)
        finally:
            self._threads.shutdown(wait=True)
            for connection in self._connections:
                connection.close()
            self._connections.clear()
            self._database.remove_temporary()

    # Inside

    async def _ask(self, job: Job) -> object:
        writer = self._writer
        if (failing := writer.failing) is not None:
            raise failing
        loop = asyncio.get_running_loop()
        job.loop, job.future = loop, loop.create_future()
        writer.submit(job)
        timer = loop.call_later(self._limits.store_seconds, _expire, writer, job)
        try:
            return await job.future
        except BaseException:
            writer.withdraw(job)
            raise
        finally:
            timer.cancel()

    async def _read(self, query: Callable[..., T], *given: Any) -> T:
        if self._writer.behind:
            # While nothing can be written for long, nothing can begin either: what was written last may be read.
            with contextlib.suppress(StoreError):
                await self.flush()
        if self._closed:
            raise StoreError("the store is closed")
        asked = [clean(value) if isinstance(value, str) else value for value in given]
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: self._query(query, *asked))

    def _query(self, query: Callable[..., T], *given: Any) -> T:
        connection: Connection | None = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self._engine.connect()
                self._connections.append(connection)
            with connection.begin():
                return query(connection, *given)
        except (DBAPIError, sqlite3.Error) as error:
            if connection is not None:
                connection.invalidate()
            raise explain(error, self._database.path) from error

    def _remember_reports(self) -> None:
        for model, pairs in self._query(reading.reports).items():
            self._estimates.learn(model, pairs)


def _nothing(_connection: Connection) -> None:
    """Everything before it is written when it is its turn."""


def _expire(writer: Writer, job: Job) -> None:
    assert job.future is not None
    if not job.future.done():
        error = writer.error
        why = error.message if error else "the disk takes too long"
        job.future.set_exception(
            StoreError(f"this could not be booked in time: {why}", detail=error.detail if error else None)
        )


def _abandon(writer: Writer, wait: float) -> None:
    """A store that nobody closed: still written in full, when it is collected or the interpreter ends."""
    try:
        writer.close(wait)
    except StoreError as error:
        _logger.error("%s", error)  # noqa: TRY400 - nobody is there to catch it, and the trace says nothing more
