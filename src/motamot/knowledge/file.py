"""The file that `motamot learn` writes and an assistant reads: articles, their passages, and an index of the words.

It is written whole beside the old one and put in its place: whoever reads the old one goes on reading it, and the next
question finds the new one. It is never changed in place.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from motamot.errors import SettingsError, StoreError
from motamot.knowledge.article import Article, Passage
from motamot.knowledge.words import language, searchable

__all__ = ["Kept", "Numbered", "connect", "count", "read", "write"]

_APPLICATION = 0x6D6F746C  # "motl": what `file` and we know it by
_VERSION = 1
READER = "1"
"""Of the code that takes pages apart: what another one has read is read again."""

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE articles (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, root TEXT NOT NULL, title TEXT NOT NULL, url TEXT,
    section TEXT NOT NULL, version TEXT NOT NULL, etag TEXT NOT NULL, modified TEXT NOT NULL
);
CREATE TABLE passages (id INTEGER PRIMARY KEY, article INTEGER NOT NULL, headings TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX passages_of ON passages (article);
CREATE VIRTUAL TABLE search USING fts5(
    title, headings, text, content='', tokenize="unicode61 remove_diacritics 2"
);
"""
_COLUMNS = ("key", "title", "url", "section", "version", "etag", "modified")
_NO_SEARCH = "this Python's SQLite has no full-text search (FTS5), which the pages need; another Python has"
_LEFT_SECONDS = 3_600.0  # writing takes some seconds: a new file of an hour ago is of a process that was killed
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")


@dataclass(frozen=True, slots=True)
class Numbered:
    """An article with its number, which is its alone for ever, and the source that led to it."""

    number: int
    article: Article
    root: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file holds. next: the number of the next new article. current: read by this version's reader.

    file: which one of those that have stood there it was, None where there was none.
    """

    articles: Sequence[Numbered] = ()
    next: int = 1
    current: bool = True
    file: tuple[int, int] | None = None


@contextmanager
def connect(file: Path) -> Iterator[sqlite3.Connection]:
    """The file, to be read. Raises: SettingsError where there is none, or another program's."""
    if not file.exists():
        raise SettingsError(f"there is no file {file}; `motamot learn` makes it of your pages")
    try:
        # Nobody writes it where it stands: no lock is needed, nor a journal beside it.
        address = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            ids = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if ids[0] != _APPLICATION:
                raise SettingsError(f"{file} is not a file that `motamot learn` has made")
            if ids[1] != _VERSION:
                raise SettingsError(f"{file} was made by another version of `motamot learn`: make it again")
            yield connection
    except sqlite3.DatabaseError as error:
        if "fts5" in str(error):
            raise SettingsError(_NO_SEARCH) from None
        raise SettingsError(
            f"{file} is not a file that `motamot learn` has made, or is damaged", detail=str(error)
        ) from None


def count(file: Path) -> tuple[int, int]:
    """How many articles and passages `file` holds. Raises: SettingsError."""
    with connect(file) as connection:
        articles, passages = connection.execute(
            "SELECT (SELECT count(*) FROM articles), (SELECT count(*) FROM passages)"
        ).fetchone()
    return articles, passages


def read(file: Path) -> Kept:
    """All that `file` holds; nothing where it is not there. Raises: SettingsError."""
    standing = _standing(file)
    if standing is None:
        return Kept()
    with connect(file) as connection:
        passages: dict[int, list[Passage]] = {}
        for article, headings, text in connection.execute("SELECT article, headings, text FROM passages ORDER BY id"):
            passages.setdefault(article, []).append(Passage(headings, text))
        facts = dict(connection.execute("SELECT name, value FROM facts").fetchall())
        rows = connection.execute(
            "SELECT number, root, key, title, url, section, version, etag, modified FROM articles ORDER BY number"
        )
        articles = [
            Numbered(
                number,
                Article(**dict(zip(_COLUMNS, more, strict=True)), passages=tuple(passages.get(number, ()))),
                root,
            )
            for number, root, *more in rows
        ]
        return Kept(articles, int(facts["next"]), facts["reader"] == READER, standing)


def _standing(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def write(file: Path, kept: Kept) -> None:
    """Put a new file in the place of the one that `kept.file` tells.

    Raises: StoreError, also where another one stands there by now, which may have given away the same numbers; what
            stands there is then as it was.
    """
    target = file.resolve()
    fresh = None
    try:
        _remove_left(target)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
        os.close(descriptor)
        fresh = Path(name)
        with contextlib.closing(sqlite3.connect(fresh)) as connection:
            _fill(connection, kept)
        fresh.chmod(mode)
        _sync(fresh)
        if _standing(target) != kept.file:
            raise StoreError(f"{file} was written by another `motamot learn` meanwhile; run this one again")
        fresh.replace(target)
        _sync(target.parent)
        fresh = None
    except sqlite3.OperationalError as error:
        if "fts5" in str(error):
            raise StoreError(_NO_SEARCH) from None
        raise StoreError(f"{file} cannot be written: {error}") from None
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"{file} cannot be written: {why or error}") from None
    finally:
        if fresh is not None:
            fresh.unlink(missing_ok=True)


def _remove_left(target: Path) -> None:
    """New files that a process left beside it when it was killed."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.new"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                left.unlink()


def _fill(connection: sqlite3.Connection, kept: Kept) -> None:
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}; {_SCHEMA}")
    connection.executemany("INSERT INTO facts VALUES (?, ?)", [("next", str(kept.next)), ("reader", READER)])
    passage = 0
    for numbered in kept.articles:
        one = numbered.article
        connection.execute(
            "INSERT INTO articles VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [numbered.number, one.key, numbered.root, *(getattr(one, name) for name in _COLUMNS[1:])],
        )
        written = language(" ".join([one.title, *(each.text for each in one.passages)]))
        title = searchable(one.title, written)
        for each in one.passages:
            passage += 1
            connection.execute(
                "INSERT INTO passages VALUES (?, ?, ?, ?)", (passage, numbered.number, each.headings, each.text)
            )
            connection.execute(
                "INSERT INTO search (rowid, title, headings, text) VALUES (?, ?, ?, ?)",
                (
                    passage,
                    title,
                    searchable(each.headings, written),
                    searchable(_LINK_TARGET.sub("]", each.text), written),
                ),
            )
    connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    connection.commit()


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
