"""Looking for text: what is found, what is not syntax, and what leaves the file with the text."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from motamot.errors import InvalidRequest, StoreError
from motamot.store import searching
from motamot.store.contract import checkpoint, ended, exchange
from motamot.store.database import Database
from motamot.store.forgetting import forget_theirs
from motamot.store.store import Store
from motamot.store.views import Filter
from tests.store.support import in_file, with_store

DUMP = Path(__file__).parent / "revision-0001.sql"


async def said(store: Store, id_: str, question: str, answer: str, **ending: object) -> None:
    await store.begin(exchange(id_, question=question))
    store.end(ended(id_, answer, **ending))


async def found(store: Store, text: str, **filters: object) -> list[str]:
    page = await store.browse(Filter(text=text, **filters))  # type: ignore[arg-type]
    return [row.exchange for row in page.rows]


@pytest.fixture
def no_fts5(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Says whether this Python is one whose SQLite has no FTS5, as some builds are."""

    def say(lacking: bool) -> None:
        monkeypatch.setattr(searching, "available", lambda: not lacking)

    return say


def test_words_are_found_without_their_accents_and_capitals(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await said(store, "fr", "Où réserver un VOYAGE ?", "À l’arrêt, été comme hiver.")
        await said(store, "en", "Where is the café?", "At the corner.")
        for text in ("reserver", "RÉSERVER", "où", "ou", "arret", "ete", "Ete hiver", "l’arrêt"):
            assert await found(store, text) == ["fr"], text
        assert await found(store, "cafe corner") == ["en"]
        assert await found(store, "café voyage") == []

    with_store(tmp_path, scenario)


def test_the_beginning_of_a_word_finds_it_and_quoted_words_stand_together(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await said(store, "one", "?", "the last bus stops here")
        await said(store, "two", "?", "the bus of the last line")
        assert await found(store, "stop") == ["one"]
        assert await found(store, "la bu") == ["two", "one"]
        assert await found(store, '"last bus"') == ["one"]
        assert await found(store, '"last bu"') == []  # quoted words are whole
        assert await found(store, '"the bus" line') == ["two"]
        assert await found(store, '"last bus') == ["two", "one"]  # a quotation that is not closed is none

    with_store(tmp_path, scenario)


@pytest.mark.parametrize(
    "text",
    [
        "AND",
        "a OR",
        "NOT bus",
        "NEAR(bus stop)",
        "bus*",
        "^bus",
        "question:bus",
        "-bus",
        "bus + stop",
        "{bus}",
        "bus'; DROP TABLE exchanges; --",
        '"bus" "',
        '"""bus',
        "bus\0stop",
        "(((bus",
        "bus \\",
        "\N{PILE OF POO} bus",
        "\ud83d bus",
    ],
)
def test_nothing_that_is_looked_for_is_syntax(tmp_path: Path, text: str) -> None:
    async def scenario(store: Store) -> None:
        await said(store, "one", "?", "a question: bus and near bus stop, or not; drop table exchanges")
        assert await found(store, text) == ["one"]

    with_store(tmp_path, scenario)


@pytest.mark.parametrize("text", ["", "  ", "?!", '""', "\N{PILE OF POO}", "a " * 33, "a" * 1_001, "é" * 501])
def test_a_search_without_words_or_with_too_many_is_refused_in_words(tmp_path: Path, text: str) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(InvalidRequest):
            await store.browse(Filter(text=text))

    with_store(tmp_path, scenario)


def test_what_was_generated_is_found_also_where_less_was_shown_and_what_runs_is_not(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await said(store, "stopped", "?", "shown and hidden", shown="shown ", outcome="stopped")
        await store.begin(exchange("running", question="shown"))
        store.checkpoint([checkpoint("running", "hidden")])
        assert await found(store, "hidden") == ["stopped"]
        store.end(ended("running", "hidden no more"))
        assert await found(store, "hidden") == ["running", "stopped"]
        assert await found(store, "hidden", outcome="complete") == ["running"]

    with_store(tmp_path, scenario)


def test_what_a_killed_process_left_is_found_once_it_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.executescript(DUMP.read_text("utf-8"))
    connection.close()

    async def scenario(store: Store) -> None:
        assert await found(store, "mot") == ["e2", "e1"]  # texts of the first release, too
        assert await found(store, "arret") == ["e1"]

    with_store(tmp_path, scenario)


async def gone(folder: Path, word: str) -> None:
    async with asyncio.timeout(20):
        while in_file(folder, word):
            await asyncio.sleep(0.05)


def test_the_words_of_a_deleted_conversation_leave_the_file(tmp_path: Path) -> None:
    """Also those that only the index held, in a book with other texts, old and new; also from the write-ahead log."""

    async def scenario(store: Store) -> None:
        for number in range(300):
            await said(store, f"before {number}", f"number {number}", f"an answer, the {number}th of some")
        await said(store, "secret", "xylophonequestion ?", "zeppelinanswer " * 20)
        assert await found(store, "xylophone zeppelin") == ["secret"]
        for number in range(300):
            await said(store, f"after {number}", f"number {number}", f"an answer, the {number}th of others")
        await found(store, "number")
        await store.flush()
        assert in_file(tmp_path, "xylophonequestion")
        assert in_file(tmp_path, "zeppelinanswer")
        assert await store.delete_conversation("conversation of secret", "visitor")
        assert await found(store, "xylophone") == []  # at once
        await gone(tmp_path, "ylophonequestion")
        await gone(tmp_path, "eppelinanswer")
        assert len(await found(store, "number")) == 50
        assert await found(store, "299th others") == ["after 299"]

    with_store(tmp_path, scenario)


def test_a_text_that_was_never_indexed_leaves_the_file_too(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await said(store, "secret", "xylophonequestion ?", "zeppelinanswer")
        await store.delete_conversation("conversation of secret", "visitor")
        await gone(tmp_path, "ylophonequestion")
        assert await found(store, "zeppelin") == []

    with_store(tmp_path, scenario)


def test_a_merge_that_was_left_half_done_is_done_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def prepared(store: Store) -> None:
        await said(store, "secret", "xylophonequestion ?", "zeppelinanswer")
        await said(store, "other", "another question", "another answer")
        await found(store, "zeppelin")

    with_store(tmp_path, prepared)
    engine = Database(path).writing()
    with engine.begin() as connection:
        forget_theirs(connection, "conversation of secret", "visitor", 1.0)
    with engine.begin() as connection:
        searching.step(connection)
        connection.exec_driver_sql("INSERT OR IGNORE INTO unsearchable VALUES (-2)")  # killed before its last step
    engine.dispose()

    async def scenario(store: Store) -> None:
        await gone(tmp_path, "ylophonequestion")

    with_store(tmp_path, scenario)


def test_without_fts5_all_but_the_search_works(tmp_path: Path, no_fts5: Callable[[bool], None]) -> None:
    no_fts5(True)

    async def scenario(store: Store) -> None:
        await said(store, "one", "a question", "an answer")
        assert not (await store.facets()).search
        with pytest.raises(StoreError, match="FTS5"):
            await store.browse(Filter(text="question"))
        assert [row.exchange for row in (await store.browse(Filter(outcome="complete"))).rows] == ["one"]
        assert await store.delete_conversation("conversation of one", "visitor")

    with_store(tmp_path, scenario)
    no_fts5(False)

    async def later(store: Store) -> None:
        await said(store, "two", "a question", "an answer")
        assert await found(store, "question") == ["two"]

    with_store(tmp_path, later)


def test_a_text_removed_without_fts5_takes_the_index_with_it_and_the_rest_is_indexed_again(
    tmp_path: Path, no_fts5: Callable[[bool], None]
) -> None:
    path = tmp_path / "store.db"

    async def prepared(store: Store) -> None:
        await said(store, "secret", "xylophonequestion ?", "zeppelinanswer")
        await said(store, "other", "another question", "another answer")
        assert await found(store, "zeppelin") == ["secret"]

    with_store(tmp_path, prepared)
    no_fts5(True)

    async def lacking(store: Store) -> None:
        await store.delete_conversation("conversation of secret", "visitor")
        await store.flush()

    asyncio.run(_unverified(path, lacking))
    assert not in_file(tmp_path, "ylophonequestion")
    no_fts5(False)

    async def later(store: Store) -> None:
        assert await found(store, "another") == ["other"]
        assert await found(store, "zeppelin") == []

    with_store(tmp_path, later)


async def _unverified(path: Path, scenario: Callable[[Store], Awaitable[None]]) -> None:
    store = Store.open(path)
    await scenario(store)
    await store.close()


def damage(connection: Connection) -> None:
    connection.exec_driver_sql("UPDATE search_data SET block = x'0102030405'")


def test_a_damaged_index_keeps_no_text_in_the_file_and_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def prepared(store: Store) -> None:
        await said(store, "secret", "xylophonequestion ?", "zeppelinanswer")
        await said(store, "other", "another question", "another answer")
        assert await found(store, "zeppelin") == ["secret"]

    with_store(tmp_path, prepared)
    engine = Database(path).writing()
    with engine.begin() as connection:
        damage(connection)
    engine.dispose()

    async def scenario(store: Store) -> None:
        assert await store.delete_conversation("conversation of secret", "visitor")
        await said(store, "new", "a new question", "a new answer")
        await gone(tmp_path, "ylophonequestion")
        async with asyncio.timeout(20):
            while await found(store, "question") != ["new", "other"]:
                await asyncio.sleep(0.05)

    with_store(tmp_path, scenario)
