"""The one thread that writes: it takes everything that waits, writes it in one transaction, and tells all callers.

What is handed over stays in memory until it is committed; an error is waited out and the same batch tried again.
Memory is bounded by what is under way: a checkpoint not yet written is replaced by the next one of its exchange,
every end and close belongs to a row that could be opened, and nothing can be opened while nothing can be written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from motamot.errors import MotamotError, StoreError
from motamot.limits import Limits
from motamot.store import sweeping
from motamot.store.booking import Batch, Record, undo_begin, undo_open
from motamot.store.chores import Chores
from motamot.store.database import BUSY_MILLISECONDS, Database, explain, is_busy
from motamot.store.owners import Lock, Owner, Watch, tidy
from motamot.store.records import Begun, Checkpoint, CompletionOpened, ExchangeBegun
from motamot.store.redaction import Redact, Redactions

__all__ = ["Job", "Writer", "here"]

_logger = logging.getLogger("motamot.store")

SWEEP_SECONDS = 1.0  # how often the others are looked at
BATCH = 1_000  # jobs in one transaction: other processes want the write lock too
LINGER_SECONDS = 0.02  # how long a booking nobody waits for is kept for company; a killed process loses as much
CHORE_SECONDS = 0.05  # between two steps of what can wait
SIBLINGS = 12  # with so many exchanges under way,
COMPANY_SECONDS = 0.003  # a question waits so long for others; measured: half the CPU of an exchange's bookings
LOG_SECONDS = 60.0  # a disk that stays full is no news; one that is full now and then is little more
BACKOFF = (0.01, 0.05, 0.2, 0.5, 1.0)  # seconds between tries, the last one repeating

# One record's own fault, as SQLAlchemy tells it and as the driver does. All other errors of the driver are the
# database's: they are waited out.
_ITEM = (
    IntegrityError,
    DataError,
    ProgrammingError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
)
_DATABASE = (DBAPIError, sqlite3.Error, StoreError)
here: set[str] = set()
"""Ids of the owners that live in this process."""

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


@dataclass(slots=True, eq=False)
class Job:
    """Something to be written. future, loop: who waits for it, if anybody does.

    redact:    what the texts of its records go through first.
    withdrawn: set on the waiting loop when the wait was given up; what was written by then is taken out again.
    """

    records: tuple[Record, ...] = ()
    call: Callable[[Connection], Any] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None
    redact: Redact | None = None
    withdrawn: bool = False


class Writer:
    """The writer thread and its inbox.

    error:        what keeps it from writing at the moment, or None. Hand-overs are taken all the same.
    underway:     how many exchanges are, as its user says.
    truncate_due: set where text was deleted: the write-ahead log is emptied within a second or so.
    """

    def __init__(
        self,
        database: Database,
        owner: Owner,
        *,
        limits: Limits,
        clock: Callable[[], float],
        price: sweeping.PriceOf,
        retention: float | None = None,
    ) -> None:
        self.database = database
        self.owner = owner
        self.error: StoreError | None = None
        self.truncate_due = False
        self.underway = 0
        self._failing_since: float | None = None
        self._limits = limits
        self._clock = clock
        self._price = price
        self._chores = Chores(clock, retention)
        self._redactions = Redactions()
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._awake = False  # it has been woken, and has not looked into the inbox since
        self._pending: list[Job] = []
        self._lock = threading.Lock()
        self._taken = 0
        self._done = 0
        self._engine: Engine = database.writing()
        self._connection: Connection | None = None
        self._watch = Watch(database.path, limits.lease_seconds)
        self._owners_lock = Lock(database.path, owner.id)
        self._renewed = (0.0, 0.0)  # when the lease was renewed, on the monotonic clock and on the wall's
        self._reading: Engine = database.reading()
        self._looker: Connection | None = None
        self._failures = 0
        self._logged = float("-inf")
        self._retry_at = 0.0
        self._tick_at = 0.0
        self._tick_every = min(SWEEP_SECONDS, limits.lease_seconds / 3)
        self._forked = False
        self._ending = False  # the thread's own: the inbox's end has been read
        self._closing = False
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._run, name="motamot-store", daemon=True)

    # Called by any thread

    def start(self) -> None:
        """Enter the owner, close what dead ones left, and start the thread. Raises StoreError."""
        deadline = time.monotonic() + self._limits.store_seconds
        here.add(self.owner.id)
        self._owners_lock.hold()
        while True:
            try:
                self._renewed = (time.monotonic(), self._clock())
                with self._transaction() as connection:
                    sweeping.register(connection, self.owner, self._renewed[1])
                self._sweep()
                break
            except _DATABASE as error:
                self._disconnect()
                if not is_busy(error) or time.monotonic() >= deadline:
                    self._leave()
                    raise (error if isinstance(error, StoreError) else explain(error, self.database.path)) from error
        tidy(self.database.path)
        self._tick_at = time.monotonic() + self._tick_every
        _writers.add(self)
        self._thread.start()

    def forked(self) -> None:
        """In a child process: the thread is not there, and its mutexes may be held for ever: they are not touched."""
        self._forked = True
        self._owners_lock.release()

    def submit(self, *jobs: Job) -> None:
        """Hand jobs over. Raises StoreError when the store is closed or belongs to another process."""
        if self._forked:
            raise StoreError("this store was opened before the process forked; open it in the process that uses it")
        with self._lock:
            if self._closing:
                raise StoreError("the store is closed")
            self._taken += len(jobs)
            for job in jobs:
                self._inbox.put(job)
            self._wake(waited=any(job.future is not None for job in jobs))

    def _wake(self, *, waited: bool) -> None:
        """Have the inbox looked into: at once for what is waited for; the rest wakes the thread once, not each."""
        if waited or not self._awake:
            self._awake = True
            self._wakes.put(None)

    @property
    def behind(self) -> bool:
        """Whether something handed over is not on disk yet."""
        return self._taken != self._done

    @property
    def failing(self) -> StoreError | None:
        """The error that has kept it from writing for longer than anybody waits, or None."""
        since, error = self._failing_since, self.error
        if since is None or error is None or time.monotonic() - since <= self._limits.store_seconds:
            return None
        return StoreError(error.message, detail=error.detail)  # a new one for each who raises it

    def withdraw(self, job: Job) -> None:
        """On the waiting loop: its caller has given up. What was written, or will be, is taken out again."""
        job.withdrawn = True
        future = job.future
        if future is not None and future.done() and not future.cancelled() and future.exception() is None:
            self._undo(job, future.result())

    def _undo(self, job: Job, result: object) -> None:
        if isinstance(result, BaseException) or (isinstance(result, Begun) and result.existing):
            return
        owner = self.owner.id
        written = [record for record in job.records if isinstance(record, ExchangeBegun | CompletionOpened)]
        if not written:
            return

        def take_out(connection: Connection) -> None:
            for record in reversed(written):
                if isinstance(record, CompletionOpened):
                    undo_open(connection, record, owner)
                else:
                    undo_begin(connection, record, owner)

        with contextlib.suppress(StoreError):  # closed meanwhile: its rows were closed with it
            self.submit(Job(call=take_out))

    def close(self, wait: float) -> None:
        """Write everything, close the own open rows as `interrupted`, strike the owner off, end the thread.

        wait: seconds until it gives up.
        Raises: StoreError if something could not be written by then. Nothing is lost from the books even so:
                the rows are open, and the next program that opens the store closes them with an estimate.
        """
        if self._forked:
            return
        with self._lock:
            first, self._closing = not self._closing, True
            if first:
                self._deadline = time.monotonic() + wait
                self._inbox.put(None)
                self._wake(waited=True)
        self._thread.join(wait + 2 * BUSY_MILLISECONDS / 1000)
        if first and self._pending:
            why = self.error or StoreError("the disk does not answer")
            raise StoreError(f"{len(self._pending)} bookings could not be written: {why.message}", detail=why.detail)

    # The thread

    def _run(self) -> None:
        while True:
            self._receive()
            now = time.monotonic()
            if self._pending and (now >= self._retry_at or self._ending):
                self._write()
            if now >= self._tick_at:
                self._tick_at = now + self._tick_every
                self._tick(now)
            if self._ending and (not self._pending or now >= self._deadline):
                break
        self._finish()

    def _receive(self) -> None:
        """Wait for something to do, and take in all that waits.

        A transaction costs more than what is in it. What nobody waits for is left for a moment, to be written with what
        comes next; and while many exchanges are under way, so is what is waited for (PostgreSQL's `commit_siblings`).
        """
        wake = min(self._retry_at, self._tick_at) if self._pending else self._tick_at
        pause = max(0.0, wake - time.monotonic())
        if self._ending:
            pause = min(pause, BACKOFF[0])
        waits = self._pending
        with contextlib.suppress(queue.Empty):
            self._wakes.get(timeout=pause)
            waited = self._take_in()
            if not waited and not waits:
                self._wakes.get(timeout=LINGER_SECONDS)
            elif self.underway >= SIBLINGS and not self._ending:
                time.sleep(COMPANY_SECONDS)
        self._awake = False
        self._take_in()

    def _take_in(self) -> bool:
        """Empty the inbox. Returns: somebody waits for what was in it, or it is the last."""
        waited = False
        with contextlib.suppress(queue.Empty):
            while True:
                self._wakes.get_nowait()  # first: what each of these tells of is in the inbox by now
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._inbox.get_nowait()
                if job is None:
                    self._ending = waited = True
                else:
                    if job.redact is not None:
                        redact = job.redact
                        job.records = tuple(self._redactions.of(record, redact) for record in job.records)
                    self._pending.append(job)
                    waited = waited or job.future is not None
        return waited

    def _write(self) -> None:
        jobs = self._pending
        if self.error is not None:
            # What is to be booked goes before new questions: a small write may succeed where a large one does not.
            jobs = [job for job in jobs if job.future is None] or jobs
        jobs = jobs[:BATCH]
        try:
            self._commit(jobs)
        except Exception as error:  # noqa: BLE001 - one bad record must not keep the others out, nor end the thread
            if _of_database(error):
                self._failed(error)
            else:
                self._disconnect()
                self._write_singly(jobs)

    def _write_singly(self, jobs: list[Job]) -> None:
        for job in jobs:
            try:
                self._commit([job])
            except Exception as error:
                if _of_database(error):
                    self._failed(error)
                    return
                self._disconnect()
                if job.future is None:
                    _logger.exception("this booking cannot be written: %s", [_id(record) for record in job.records])
                refusal = StoreError(f"this cannot be written: {error}", detail=f"{type(error).__name__}: {error}")
                self._settle([job], {}, refusal)

    def _commit(self, jobs: list[Job]) -> None:
        """Write these jobs in one transaction, and tell those who wait."""
        batch = Batch(self.owner.id)
        special: dict[str, Begun | MotamotError] = {}
        called: dict[int, Any] = {}
        with self._transaction() as connection:
            for job in jobs:
                if job.withdrawn:
                    continue
                for record in job.records:
                    batch.add(record)
                if job.call is not None:  # everything before it is written first
                    special |= batch.write(connection)
                    batch = Batch(self.owner.id)
                    called[id(job)] = job.call(connection)
            special |= batch.write(connection)
        self._recovered()
        self._settle(jobs, called, special)

    def _settle(
        self, jobs: list[Job], called: dict[int, Any], special: dict[str, Begun | MotamotError] | StoreError
    ) -> None:
        settled = set(map(id, jobs))
        self._pending = [job for job in self._pending if id(job) not in settled]
        with self._lock:
            self._done += len(jobs)
        answers: dict[asyncio.AbstractEventLoop, list[tuple[Job, object]]] = {}
        for job in jobs:
            if job.loop is None:
                continue
            answer: object = called.get(id(job))
            if isinstance(special, StoreError):
                answer = special
            elif job.records:
                answer = special.get(_id(job.records[0])) or Begun()
            answers.setdefault(job.loop, []).append((job, answer))
        for loop, mine in answers.items():
            try:
                loop.call_soon_threadsafe(self._tell, mine)
            except RuntimeError:  # that loop is closed: nobody waits any more
                for job, answer in mine:
                    self._undo(job, answer)

    def _tell(self, answers: list[tuple[Job, object]]) -> None:
        for job, answer in answers:
            assert job.future is not None
            if job.withdrawn or job.future.done():
                self._undo(job, answer)
            elif isinstance(answer, BaseException):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction that holds the write lock, in which this owner's lease is good."""
        self._check_place()
        if self._connection is None:
            self._connection = self._engine.connect()
        with self._connection.begin():
            now, clock = time.monotonic(), self._clock()
            # Both clocks: the monotonic one stands still while the machine sleeps, the other one may be set.
            if max(now - self._renewed[0], abs(clock - self._renewed[1])) >= self._limits.lease_seconds / 3:
                self.owner = replace(self.owner, renewals=self.owner.renewals + 1)
                if not sweeping.renew(self._connection, self.owner, clock):
                    _logger.warning("this store was taken for dead; what it had open was closed as interrupted")
                self._renewed = (now, clock)
            yield self._connection

    def _check_place(self) -> None:
        if self.database.moved():
            raise StoreError(f"the store {self.database.path} was moved, removed or replaced while it was in use")

    def _failed(self, error: Exception) -> None:
        explained = error if isinstance(error, StoreError) else explain(error, self.database.path)
        now = time.monotonic()
        if self.error is None:
            self._failing_since = now
        if now - self._logged > LOG_SECONDS:
            self._logged = now
            why = f" ({explained.detail})" if explained.detail else ""
            _logger.error("%s; what is to be booked is kept and tried again%s", explained, why)
        self.error = explained
        if not is_busy(error):
            self._disconnect()
        self._retry_at = now + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1
        self._compact()

    def _recovered(self) -> None:
        since = self._failing_since
        if since is not None and time.monotonic() - since > BUSY_MILLISECONDS / 1000:
            _logger.info("the store can be written again: %s", self.database.path)
        self.error = self._failing_since = None
        self._failures, self._retry_at = 0, 0.0

    def _compact(self) -> None:
        """Keep one checkpoint of an exchange: the last text, and all boundaries. Drop what was withdrawn."""
        latest: dict[str, Job] = {}
        kept: list[Job] = []
        for job in reversed(self._pending):
            if job.withdrawn:
                continue
            if len(job.records) == 1 and isinstance(record := job.records[0], Checkpoint):
                if (newer := latest.get(record.exchange)) is not None:
                    last = newer.records[0]
                    assert isinstance(last, Checkpoint)
                    if not last.whole:
                        newer.records = (replace(last, boundaries=record.boundaries + last.boundaries),)
                    continue
                latest[record.exchange] = job
            kept.append(job)
        with self._lock:
            self._done += len(self._pending) - len(kept)
        self._pending = kept[::-1]

    def _tick(self, now: float) -> None:
        """Look at the others; keep the lease; and where writing had failed, find out whether it works again."""
        try:
            due = max(now - self._renewed[0], abs(self._clock() - self._renewed[1])) >= self._limits.lease_seconds / 3
            if due or (self.error is not None and not self._pending):
                self._renewed = (0.0, 0.0)
                with self._transaction():
                    pass
                self._recovered()
            self._sweep()
            if self._do_chores():
                self._tick_at = time.monotonic() + CHORE_SECONDS
            if self.truncate_due:
                self._truncate()
        except _DATABASE as error:
            self._failed(error)
        except Exception:
            self._disconnect()
            _logger.exception("looking after other owners' rows failed; it is tried again")

    def _do_chores(self) -> bool:
        """A step of what can wait. Returns: more of it is due."""
        with self._looking() as connection:
            due = self._chores.due(connection)
        if not due or self._pending:
            return due
        with self._transaction() as connection:
            more, forgotten = self._chores.step(connection)
        self.truncate_due = self.truncate_due or forgotten
        return more

    def _truncate(self) -> None:
        """Empty the write-ahead log: it still holds the text of what was deleted. Waits for no reader: tries again."""
        if self._connection is None:
            return
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.execute("PRAGMA busy_timeout=0")
        try:
            (busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            driver.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        self.truncate_due = bool(busy)

    def _sweep(self) -> None:
        with self._looking() as connection:
            dead = self._dead(connection)
        if dead:
            with self._transaction() as connection:
                self.sweep(connection)

    def sweep(self, connection: Connection) -> int:
        """Within a transaction: close what dead owners left open. Returns: how many rows."""
        dead = self._dead(connection)
        closed = sweeping.close_rows(connection, dead, self._clock(), self._price)
        for owner in dead:
            Lock(self.database.path, owner).remove()
        return closed

    def _dead(self, connection: Connection) -> list[str]:
        known = sweeping.others(connection, self.owner.id)
        lapsed = [owner for owner in sweeping.lapsed(connection, self.owner.id, known) if owner not in here]
        return self._watch.dead(known, time.monotonic(), here=here) + lapsed

    @contextlib.contextmanager
    def _looking(self) -> Iterator[Connection]:
        self._check_place()
        if self._looker is None:
            self._looker = self._reading.connect()
        with self._looker.begin():
            yield self._looker

    def _finish(self) -> None:
        try:
            if not self._pending:
                with self._transaction() as connection:
                    sweeping.close_rows(connection, [self.owner.id], self._clock(), self._price)
        except _DATABASE:
            _logger.exception("the store could not be closed in order; the next to open it closes its rows")
        finally:
            self._disconnect()
            self._leave()

    def _leave(self) -> None:
        here.discard(self.owner.id)
        self._owners_lock.remove()

    def _disconnect(self) -> None:
        for connection in (self._connection, self._looker):
            if connection is not None:
                with contextlib.suppress(*_DATABASE):
                    connection.close()
        self._connection = self._looker = None


def _of_database(error: Exception) -> bool:
    return isinstance(error, _DATABASE) and not isinstance(error, _ITEM)


def _id(record: Record) -> str:
    return record.exchange if isinstance(record, Checkpoint) else record.id


def _forked() -> None:
    here.clear()
    for writer in _writers:
        writer.forked()


os.register_at_fork(after_in_child=_forked)
