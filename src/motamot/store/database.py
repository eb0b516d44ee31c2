"""Where the books lie: finding, making, opening and migrating the database, and saying what is wrong with it.

Every error of the driver leaves here as a `StoreError` whose message a user can act on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from motamot.errors import StoreError
from motamot.store import searching
from motamot.store.schema import REVISION, VERSION_TABLE

__all__ = ["BUSY_MILLISECONDS", "Database", "explain", "is_busy"]

_logger = logging.getLogger("motamot.store")

BUSY_MILLISECONDS = 1_000  # one try at the write lock; the writer tries again, so that it can hear of other things
MEMORY = (":memory:", "sqlite://", "sqlite:///:memory:")


class Database:
    """One SQLite file and how to open it.

    url: `sqlite:///relative.db`, `sqlite:////absolute.db`, a path, or ":memory:": a file of its own in a temporary
         folder, gone when the store is closed (WAL and several connections need a file).
    """

    def __init__(self, url: str | Path) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(url, str) and url in MEMORY:
            self._folder = tempfile.TemporaryDirectory(prefix="motamot-")
            self.path = Path(self._folder.name) / "store.db"
        else:
            self.path = _path(url)
        self._inode: tuple[int, int] | None = None

    def prepare(self, wait: float) -> None:
        """Make the folder and the file where they are missing (0700, 0600), and bring the tables up to date.

        A file that others of this machine can read is used as it is, with a warning: it may be meant so.
        wait: seconds to wait for another program's lock.
        Raises: StoreError, in words; nothing was changed then.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.is_dir():
                raise StoreError(f"the store {self.path} is a folder: give the path of a file in it")
            with contextlib.suppress(FileExistsError):
                # SQLite gives its -wal and -shm files the mode of the main file.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            status = self.path.stat()
        except OSError as error:
            raise StoreError(
                f"the store {self.path} cannot be made: {error.strerror or error}; "
                "name another place or make that folder writable",
                detail=str(error),
            ) from error
        self._inode = (status.st_dev, status.st_ino)
        deadline = time.monotonic() + wait
        while True:
            try:
                self._bring_up_to_date()
                break
            except (DBAPIError, sqlite3.Error) as error:
                # Two processes that make the file at the same moment: SQLite refuses the change to WAL without
                # asking the busy handler.
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise explain(error, self.path) from error
                time.sleep(0.02)
        if status.st_mode & (stat.S_IRGRP | stat.S_IROTH):
            told = "other users of this machine can read the conversations in %s: run chmod 600 %s"
            _logger.warning(told, self.path, shlex.quote(str(self.path)))

    def _bring_up_to_date(self) -> None:
        with _disposed(self.reading()) as engine, engine.connect() as connection, connection.begin():
            found = _revision(connection)  # refuses another program's file before anything in it is changed
            ready = found == REVISION and searching.is_ready(connection)
        self._use_wal()
        if ready:
            return
        with _disposed(self.writing()) as engine, engine.connect() as connection, connection.begin():
            found = _revision(connection)  # under the write lock: of two processes, one migrates and one waits
            if found != REVISION:
                _migrate(connection, found, self.path)
            searching.prepare(connection)

    def _use_wal(self) -> None:
        """Write-ahead logging, so that readers and the writer never wait for each other; kept in the file."""
        with contextlib.closing(self._connect()) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise StoreError(
                f"the store {self.path} lies on a file system that cannot share memory between processes; "
                "put it on a local disk",
                detail=f"journal_mode is {mode!r}",
            )

    def writing(self) -> Engine:
        """An engine whose transactions take the write lock at once (a lock taken later cannot wait: it fails)."""
        return self._engine("BEGIN IMMEDIATE", "PRAGMA secure_delete=ON")

    def reading(self) -> Engine:
        """An engine that cannot write, for readers; one connection a thread."""
        return self._engine("BEGIN", "PRAGMA query_only=ON")

    def _connect(self, *pragmas: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",  # a file that has gone is an error, never a new empty book
            uri=True,
            timeout=BUSY_MILLISECONDS / 1000,
            isolation_level=None,  # the engine's event says BEGIN, not the driver's guesses
            check_same_thread=False,
        )
        try:
            for pragma in pragmas:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
        return connection

    def _engine(self, begin: str, *pragmas: str) -> Engine:
        def connect() -> sqlite3.Connection:
            return self._connect("PRAGMA foreign_keys=ON", "PRAGMA synchronous=NORMAL", *pragmas)

        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        return engine

    def moved(self) -> bool:
        """Whether the file at this path is no longer the one that was opened: what is written then is lost."""
        try:
            status = self.path.stat()
        except OSError:
            return True
        return self._inode != (status.st_dev, status.st_ino)

    def remove_temporary(self) -> None:
        """Remove the temporary folder, if this was one."""
        if self._folder is not None:
            self._folder.cleanup()


@contextlib.contextmanager
def _disposed(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.dispose()


def _path(url: str | Path) -> Path:
    if isinstance(url, str) and "://" in url:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError) as error:
            raise StoreError(f"the store's address {url!r} is not a URL; write sqlite:///path/to/file.db") from error
        if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
            raise StoreError(f"a store on {parsed.drivername!r} is not supported yet; write sqlite:///path/to/file.db")
        url = parsed.database or ""
    if not str(url).strip() or "\0" in str(url):
        raise StoreError("the store's address names no file; write sqlite:///path/to/file.db")
    return Path(url).expanduser().absolute()


def _revision(connection: Connection) -> str | None:
    """The database's revision, or None for an empty file."""
    tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    if VERSION_TABLE in tables:
        return connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608
    if tables:
        raise StoreError(
            f"this database holds another program's tables ({', '.join(sorted(tables)[:3])}); "
            "give motamot a file of its own"
        )
    return None


def _migrate(connection: Connection, found: str | None, path: Path) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    if found is not None:
        try:
            ScriptDirectory.from_config(config).get_revision(found)
        except CommandError as error:
            raise StoreError(
                f"the store {path} was written by a newer motamot (revision {found}, this program knows {REVISION}); "
                "update motamot, or name another file",
                detail=str(error),
            ) from error
    command.upgrade(config, "head")


def _original(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the lock."""
    name = getattr(_original(error), "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


_SENTENCES = {
    "SQLITE_BUSY": "is locked by another program; close that program, or wait for it",
    "SQLITE_LOCKED": "is locked by another program; close that program, or wait for it",
    "SQLITE_READONLY": "is read-only; make the file and its folder writable for this user",
    "SQLITE_PERM": "may not be opened by this user; make the file and its folder writable",
    "SQLITE_CANTOPEN": "cannot be opened; see that the file is there and its folder writable",
    "SQLITE_FULL": "cannot grow: the disk is full; free some space",
    "SQLITE_IOERR": "cannot be written or read: the disk reports an error, or is full",
    "SQLITE_NOTADB": "is not an SQLite database; name another file",
    "SQLITE_CORRUPT": "is damaged; restore a copy, or name another file",
}


def explain(error: BaseException, path: Path) -> StoreError:
    """A driver's error as a sentence with the way out; the driver's own words are its detail."""
    original = _original(error)
    name = getattr(original, "sqlite_errorname", "") or ""
    for prefix, sentence in _SENTENCES.items():
        if name.startswith(prefix):
            return StoreError(f"the store {path} {sentence}", detail=f"{name}: {original}")
    return StoreError(f"the store {path} cannot be used: {original}", detail=f"{name}: {original}")
