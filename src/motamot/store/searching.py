"""Looking for text: an index of words over question and answer, in the database itself (SQLite's FTS5).

The index holds words and their places; the texts stay where they are. Ended exchanges wait in `unsearchable` and go in
many at once: one by one, writing the index would cost as much as all the other bookings of an exchange together.

Removing a text must remove its words from the file. FTS5 only notes that they are gone; they lie in the file until the
index is merged. That is done in small steps in the background (0.5 s of CPU for 100,000 exchanges, measured). FTS5's
own `secure-delete` is not used: it makes the file unreadable for SQLite before 3.42, which Debian 12 has.

Some builds of Python have an SQLite without FTS5. Then nothing can be looked for, and a text that is removed takes the
whole index with it; the next program that has FTS5 makes it again.
"""

from __future__ import annotations

import re
import sqlite3
from functools import cache

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from motamot.errors import InvalidRequest, StoreError

__all__ = [
    "add_waiting",
    "available",
    "due",
    "empty",
    "is_ready",
    "made",
    "match",
    "prepare",
    "remove",
    "step",
    "waiting",
]

WORDS = 32  # that a search may have
QUERY_BYTES = 1_000
PREFIX_FROM = 2  # letters; with one, half the book would be found
_AT_ONCE = 100  # exchanges put in in one step: 5 ms, for which a question waits
_PAGES = 200  # merged in one step: 10 ms

# Rows of `unsearchable` that are no exchange's: the index is to be merged, and: it is being merged.
_MERGE_DUE, _MERGING = -1, -2

_VIEW = """
CREATE VIEW searchable AS
    SELECT number, question, generated FROM exchanges WHERE outcome IS NOT NULL AND question IS NOT NULL
"""
_CREATE = """
CREATE VIRTUAL TABLE search USING fts5(
    question, generated, content='searchable', content_rowid='number', tokenize='unicode61 remove_diacritics 2'
)
"""
_ADD = """
INSERT INTO search (rowid, question, generated)
    SELECT number, question, generated FROM searchable
    WHERE number IN (SELECT number FROM unsearchable WHERE number > 0 ORDER BY number LIMIT ?)
    AND number NOT IN (SELECT id FROM search_docsize)
"""
_ADDED = """
DELETE FROM unsearchable
    WHERE number IN (SELECT number FROM unsearchable WHERE number > 0 ORDER BY number LIMIT ?)
"""
_TAKE_OUT = """
INSERT INTO search (search, rowid, question, generated)
    SELECT 'delete', number, question, generated FROM searchable
    WHERE number = ? AND number IN (SELECT id FROM search_docsize)
"""

# FTS5's own tables, as it makes them for an index of nothing.
_EMPTY = (
    "DELETE FROM search_idx",
    "DELETE FROM search_docsize",
    "DELETE FROM search_data",
    "DELETE FROM search_config",
    "INSERT INTO search_data VALUES (1, x''), (10, x'00000000000000')",
    "INSERT INTO search_config VALUES ('version', 4)",
)


@cache
def available() -> bool:
    """Whether this Python's SQLite has FTS5."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def is_ready(connection: Connection) -> bool:
    """Whether `prepare` has nothing to do."""
    return not available() or (made(connection) and not _is_due(connection, _MERGING))


def prepare(connection: Connection) -> None:
    """Make the index where it is missing. Within a transaction."""
    if not available():
        return
    if not made(connection):
        connection.exec_driver_sql(_VIEW)
        connection.exec_driver_sql(_CREATE)
    if _is_due(connection, _MERGING):  # by a program that ended meanwhile
        _note(connection, _MERGE_DUE)
        _strike(connection, _MERGING)


def waiting(connection: Connection) -> int:
    """How many exchanges cannot be found by their text yet."""
    return int(connection.exec_driver_sql("SELECT count(*) FROM unsearchable WHERE number > 0").scalar_one())


def remove(connection: Connection, numbers: list[int]) -> None:
    """Take the words of these exchanges out, while their texts are still there. Within a transaction."""
    if not numbers:
        return
    try:
        if available():
            for number in numbers:
                connection.exec_driver_sql(_TAKE_OUT, (number,))
        else:
            empty(connection)
    except DBAPIError as error:
        if not _damaged(error):
            raise
        empty(connection)  # a broken index must not keep a text in the file
    for number in numbers:
        _strike(connection, number)
    _note(connection, _MERGE_DUE)


def empty(connection: Connection) -> None:
    """Take everything out, also without FTS5, and from what is damaged; it is put in again bit by bit."""
    if not made(connection):
        return
    for statement in _EMPTY:
        connection.exec_driver_sql(statement)
    if available():  # what FTS5 itself remembers of the index
        connection.exec_driver_sql("INSERT INTO search (search) VALUES ('delete-all')")
    connection.exec_driver_sql("INSERT OR IGNORE INTO unsearchable SELECT number FROM searchable")


def add_waiting(connection: Connection) -> bool:
    """Make some of what waits searchable. Returns: more waits. Within a transaction."""
    if not available():
        return False
    try:
        connection.exec_driver_sql(_ADD, (_AT_ONCE,))
        return connection.exec_driver_sql(_ADDED, (_AT_ONCE,)).rowcount == _AT_ONCE
    except DBAPIError as error:
        if not _damaged(error):
            raise
        empty(connection)
        return True


def step(connection: Connection) -> tuple[bool, bool]:
    """Some of what there is to do for the index. Within a transaction.

    Returns: more of it is due; words of removed texts were removed.
    """
    if not available():
        return False, False
    more = add_waiting(connection)
    begun = _is_due(connection, _MERGING) or _is_due(connection, _MERGE_DUE)
    try:
        return _merge(connection) or more, begun
    except DBAPIError as error:
        if not _damaged(error):
            raise
        empty(connection)
        return True, False


def due(connection: Connection) -> bool:
    """Whether `step` has anything to do."""
    return available() and connection.exec_driver_sql("SELECT 1 FROM unsearchable LIMIT 1").first() is not None


def _damaged(error: DBAPIError) -> bool:
    return (getattr(error.orig, "sqlite_errorname", "") or "").startswith("SQLITE_CORRUPT")


def _merge(connection: Connection) -> bool:
    """A step towards an index without the words that were taken out. Returns: another one is due."""
    begins = not _is_due(connection, _MERGING)
    if begins:
        if not _is_due(connection, _MERGE_DUE):
            return False
        _strike(connection, _MERGE_DUE)
        _note(connection, _MERGING)
    before = _changes(connection)
    # A negative number begins to merge everything; FTS5's documentation, "The 'merge' Command".
    connection.exec_driver_sql(
        "INSERT INTO search (search, rank) VALUES ('merge', ?)", (-_PAGES if begins else _PAGES,)
    )
    if _changes(connection) - before >= 2:
        return True
    _strike(connection, _MERGING)
    return _is_due(connection, _MERGE_DUE)  # more was taken out meanwhile


def match(text: str) -> str:
    """What FTS5 is asked for the words of an operator: all of them, beginnings of words too, quoted words together.

    Nothing in `text` is syntax beside the quotation mark. Raises: StoreError where nothing can be looked for,
    InvalidRequest for a text without a word, or with too many.
    """
    if not available():
        raise StoreError("text cannot be looked for: the SQLite of this Python has no full-text search (FTS5)")
    if len(text.encode("utf-8", "surrogatepass")) > QUERY_BYTES:
        raise InvalidRequest(f"a search has at most {QUERY_BYTES} bytes", field="text", limit=QUERY_BYTES)
    parts = []
    for quoted, plain in re.findall(r'"([^"]*)"|([^"]+)', text.replace("\0", " ")):
        words = [quoted] if quoted else plain.split()
        for word in words:
            letters = [letter for letter in word if letter.isalnum()]
            if letters:
                beginning = "*" if not quoted and len(letters) >= PREFIX_FROM and word[-1].isalnum() else ""
                parts.append(f'"{word}"{beginning}')
    if not parts or len(parts) > WORDS:
        raise InvalidRequest(f"look for 1 to {WORDS} words", field="text", limit=WORDS)
    return " AND ".join(parts)


def made(connection: Connection) -> bool:
    """Whether there is an index, by whatever Python it was made."""
    return connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'search'").first() is not None


def _changes(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT total_changes()").scalar_one())


def _is_due(connection: Connection, mark: int) -> bool:
    return connection.exec_driver_sql("SELECT 1 FROM unsearchable WHERE number = ?", (mark,)).first() is not None


def _note(connection: Connection, mark: int) -> None:
    connection.exec_driver_sql("INSERT OR IGNORE INTO unsearchable VALUES (?)", (mark,))


def _strike(connection: Connection, mark: int) -> None:
    connection.exec_driver_sql("DELETE FROM unsearchable WHERE number = ?", (mark,))
