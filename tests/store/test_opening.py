"""Opening: making, migrating, and the sentences that say why it cannot be."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import motamot.store
from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.store.contract import closed, completion, ended, exchange
from motamot.store.database import Database
from motamot.store.schema import REVISION, VERSION_TABLE, metadata
from motamot.store.store import Store

QUICK = Limits(store_seconds=0.3)
DUMP = Path(__file__).parent / "revision-0001.sql"

Python = Callable[[str], "subprocess.Popen[str]"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("written", ["sqlite:///{}", "{}"])
def test_opening_makes_folder_and_file_for_this_user_alone(tmp_path: Path, written: str) -> None:
    path = tmp_path / "new" / "deep" / "store.db"
    store = Store.open(written.format(path))
    assert [mode(path.parent), mode(path)] == [0o700, 0o600]
    assert {mode(beside) for beside in path.parent.iterdir()} == {0o600}, "the log beside it holds the same text"
    store.close_sync()


@pytest.mark.parametrize(
    ("given", "told"), [(0o640, True), (0o604, True), (0o644, True), (0o600, False), (0o622, False)]
)
def test_a_file_that_others_can_read_is_used_and_told_with_the_way_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: int, told: bool
) -> None:
    path = tmp_path / "a store.db"
    Store.open(path).close_sync()
    assert not caplog.messages, "a new one is for this user alone"
    path.chmod(given)
    Store.open(path).close_sync()
    sentence = f"other users of this machine can read the conversations in {path}: run chmod 600 '{path}'"
    assert caplog.messages == ([sentence] if told else [])
    assert mode(path) == given


def test_a_relative_url_and_a_home_folder_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for url in ("sqlite:///here.db", "here too.db", "~/store.db", "odd ?#%41.db"):
        Store.open(url).close_sync()
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.db")}
    assert names == {"here.db", "here too.db", "home/store.db", "odd ?#%41.db"}


def test_a_store_in_memory_goes_with_its_close() -> None:
    async def run() -> Path:
        store, other = Store.open(":memory:"), Store.open("sqlite://")
        await store.begin(exchange("e"))
        assert await store.exchange("e") is not None
        assert await other.exchange("e") is None, "each is one of its own"
        await store.close()
        await other.close()
        return store.path

    assert not asyncio.run(run()).parent.exists()


def test_opening_again_keeps_what_is_there_and_needs_no_alembic(tmp_path: Path, python: Python) -> None:
    Store.open(tmp_path / "store.db").close_sync()
    code = (
        "import sys, time; from motamot.store.store import Store; start = time.perf_counter(); "
        f"Store.open({str(tmp_path / 'store.db')!r}).close_sync(); "
        "print(time.perf_counter() - start < 1, 'alembic' in sys.modules, 'genai_prices' in sys.modules)"
    )
    assert python(code).communicate() == ("True False False\n", "")


def test_many_processes_may_make_the_same_new_store_at_once(tmp_path: Path, python: Python) -> None:
    code = (
        "import sys; from motamot.store.store import Store; print('ready', flush=True); sys.stdin.readline(); "
        f"s = Store.open({str(tmp_path / 'sub' / 'store.db')!r}); s.close_sync(); print('opened')"
    )
    processes = [python(code) for _ in range(6)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate() for process in processes] == [("opened\n", "")] * 6


def refusal(url: str | Path, limits: Limits = QUICK) -> str:
    """The sentence with which opening is refused."""
    with pytest.raises(StoreError) as caught:
        Store.open(url, limits=limits)
    return caught.value.message


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://localhost/books", "'postgresql' is not supported yet"),
        ("sqlite+aiosqlite:///x.db", "'sqlite+aiosqlite' is not supported yet"),
        ("://", "is not a URL"),
        ("", "names no file"),
        ("  ", "names no file"),
        ("a\0b", "names no file"),
    ],
)
def test_an_address_that_is_none_says_how_one_is_written(
    url: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refusal(url)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = refusal(tmp_path / "file" / "store.db")
    assert str(tmp_path / "file" / "store.db") in message
    assert "cannot be made" in message


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path, make_read_only: Callable[[Path], None]) -> None:
    folder = tmp_path / "frozen"
    folder.mkdir()
    make_read_only(folder)
    assert "cannot be made" in refusal(folder / "store.db")


def test_a_read_only_store_says_so(tmp_path: Path, make_read_only: Callable[[Path], None]) -> None:
    folder = tmp_path / "frozen"
    Store.open(folder / "store.db").close_sync()
    make_read_only(folder)
    message = refusal(folder / "store.db")
    assert "read-only" in message or "cannot be opened" in message
    assert "writable" in message


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, this is not a database. " * 100)
    before = path.read_bytes()
    assert "is not an SQLite database" in refusal(path)
    assert path.read_bytes() == before


def test_a_damaged_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store.open(path).close_sync()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    assert "is damaged" in refusal(path)


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    message = refusal(path)
    assert "another program's tables (songs)" in message
    assert path.read_bytes() == before


def test_a_store_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store.open(path).close_sync()
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.commit()
    connection.close()
    message = refusal(path)
    assert "newer motamot" in message
    assert "9999" in message
    assert "update motamot" in message


@pytest.mark.parametrize("new", [True, False])
def test_a_store_locked_by_another_program_says_so_in_bounded_time(tmp_path: Path, python: Python, new: bool) -> None:
    path = tmp_path / "store.db"
    if not new:
        Store.open(path).close_sync()
    holder = python(
        f"import sqlite3, sys; c = sqlite3.connect({str(path)!r}, isolation_level=None); "
        "c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.readline()"
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    start = time.monotonic()
    assert "locked by another program" in refusal(path)
    assert time.monotonic() - start < 4
    holder.communicate("\n")
    Store.open(path).close_sync()


def test_a_lock_that_is_let_go_in_time_is_waited_for(tmp_path: Path, python: Python) -> None:
    path = tmp_path / "store.db"
    Store.open(path).close_sync()
    holder = python(
        f"import sqlite3, time; c = sqlite3.connect({str(path)!r}, isolation_level=None); "
        "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); time.sleep(1.5)"
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    Store.open(path).close_sync()


def test_a_full_disk_says_so_at_opening(tiny_disk: Path) -> None:
    free = 3 * 1024 * 1024 - 16 * 1024
    (tiny_disk / "fill").write_bytes(b"x" * free)
    assert "the disk is full" in refusal(tiny_disk / "store.db") or "or is full" in refusal(tiny_disk / "store.db")
    (tiny_disk / "fill").unlink()
    Store.open(tiny_disk / "store.db").close_sync()


# Migrations


def migrations() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(motamot.store.__file__).parent / "migrations"))
    return ScriptDirectory.from_config(config)


def test_the_newest_migration_is_the_one_the_program_knows() -> None:
    scripts = migrations()
    assert scripts.get_current_head() == REVISION
    assert len(scripts.get_bases()) == 1
    assert len(list(scripts.walk_revisions())) == len(list(Path(scripts.versions).glob("r*.py")))


def test_the_migrations_make_the_tables_that_the_code_uses(tmp_path: Path) -> None:
    Store.open(tmp_path / "store.db").close_sync()
    engine = Database(tmp_path / "store.db").reading()
    with engine.connect() as connection:
        opts = {
            "version_table": VERSION_TABLE,
            "compare_type": True,
            # The index of texts is made at opening, where this Python has FTS5: no migration can.
            "include_name": lambda name, kind, _: kind != "table" or not name.startswith("search"),
        }
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_a_store_of_the_first_release_opens_with_all_that_is_in_it(tmp_path: Path) -> None:
    """The dump is frozen: it is what the first release wrote."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.executescript(DUMP.read_text("utf-8"))
    connection.close()

    async def run() -> None:
        store = Store.open(path)
        row = await store.exchange("e1")
        assert row is not None
        assert (row.question, row.shown, row.boundaries) == ("Où est l’arrêt ?", "Mot à mot", ((2, 3), (3, 9)))
        assert row.marks == ("recorded", "test_model")
        killed = await store.exchange("e2")
        assert killed is not None
        assert (killed.outcome, killed.shown) == ("interrupted", "Mot"), "its owner is in the books no more"
        figures = [(row.id, row.outcome, row.prompt_tokens, row.source) for row in await store.completions()]
        assert figures == [("p1", "complete", 42, "reported"), ("p2", "interrupted", 40, "estimated")]
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one transaction: the file is as empty as before, and the next try succeeds."""
    from alembic import op

    def full(*_given: object, **_named: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    path = tmp_path / "store.db"
    with monkeypatch.context() as patch:
        patch.setattr(op, "create_index", full)
        with pytest.raises(StoreError):
            Store.open(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()
    Store.open(path).close_sync()


def test_lock_files_that_nobody_holds_are_removed(tmp_path: Path) -> None:
    living = Store.open(tmp_path / "store.db")
    (tmp_path / "store.db-owner-killed-while-it-opened").touch()
    (tmp_path / "other.db-owner-1").touch()
    Store.open(tmp_path / "store.db").close_sync()
    names = {path.name for path in tmp_path.glob("*-owner-*")}
    assert names == {f"store.db-owner-{living._writer.owner.id}", "other.db-owner-1"}
    living.close_sync()


# Not closed


def test_a_store_that_nobody_closes_is_written_when_the_interpreter_ends(tmp_path: Path, python: Python) -> None:
    path = tmp_path / "store.db"
    code = f"""
import asyncio
from motamot.store.store import Store
from motamot.store.contract import closed, completion, ended, exchange
async def run():
    await store.begin_with_completion(exchange("e"), completion("p", "e"))
    store.close_completion(closed("p"))
    store.end(ended("e", "the last words"))
store = Store.open({str(path)!r})
asyncio.run(run())
"""
    assert python(code).communicate() == ("", "")

    async def run() -> None:
        store = Store.open(path)
        row = await store.exchange("e")
        assert row is not None
        assert row.shown == "the last words"
        await store.close()

    asyncio.run(run())


def test_a_store_that_is_dropped_is_written_and_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def drop() -> None:
        store = Store.open(path)
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        store.close_completion(closed("p"))
        store.end(ended("e"))

    asyncio.run(drop())
    gc.collect()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT outcome FROM exchanges").fetchall() == [("complete",)]
    assert connection.execute("SELECT count(*) FROM owners").fetchone() == (0,)
    connection.close()


def test_a_store_refuses_to_work_in_a_forked_child(tmp_path: Path, python: Python) -> None:
    code = f"""
import asyncio, os, sys
from motamot.store.store import Store
from motamot.store.contract import exchange
store = Store.open({str(tmp_path / "store.db")!r})
child = os.fork()
if not child:
    print("lock", store._writer._owners_lock._held, flush=True)
    try:
        asyncio.run(store.begin(exchange("e")))
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    sys.exit(0)
os.waitpid(child, 0)
asyncio.run(store.begin(exchange("f")))
store.close_sync()
"""
    out, err = python(code).communicate()
    assert "lock None" in out, "or a child that lives on would keep its dead parent's rows open"
    assert "StoreError this store was opened before the process forked" in out
    assert "Traceback" not in err  # newer Pythons warn of forking itself
