"""`verify` finds each contradiction that it looks for, and none in books that are right."""

from __future__ import annotations

import asyncio
import sqlite3
from array import array
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import TurnEnded
from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.records import Noted
from motamot.store.store import Store
from motamot.store.views import Filter


async def books(path: Path) -> Store:
    """Books with something of everything, all of it right."""
    store = Store.open(path)
    for name in ("done", "deleted", "running"):
        await store.begin_with_completion(exchange(name, conversation=name), completion(f"{name}.1", name))
        store.checkpoint([checkpoint(name, "Mot", sent=2, boundaries=((2, 3),))])
    for name in ("done", "deleted"):
        store.close_completion(closed(f"{name}.1", cost=0.5))
        noted = (Noted(1, True, 0.1, TurnEnded(turn=1, finish="stop")),)
        kept: dict[str, Any] = {"noted": noted, "times": array("I", (1, 2, 3, 4)), "boundaries": ((3, 9),)}
        store.end(ended(name, "Mot à mot", shown="Mot", events=4, sent=3, seen=2, **kept))
    await store.delete_conversation("deleted", "visitor")
    await store.begin_with_completion(exchange("old", started_at=7.0), completion("old.1", "old", opened_at=7.0))
    store.close_completion(closed("old.1"))
    store.end(ended("old"))
    await store.browse(Filter(text="mot"))  # has the texts indexed
    return store


async def counted_days(store: Store) -> None:
    """The days that are over are counted in the background, soon after the store is open."""
    async with asyncio.timeout(10):
        while True:
            connection = sqlite3.connect(store.path)
            [number] = connection.execute("SELECT count(*) FROM past_days").fetchone()
            connection.close()
            if number:
                return
            await asyncio.sleep(0.05)


def test_right_books_have_no_contradictions(tmp_path: Path) -> None:
    async def run() -> None:
        store = await books(tmp_path / "store.db")
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("kind", "id_", "statement"),
    [
        ("end", "done", "UPDATE exchanges SET ended_at = NULL WHERE id = 'done'"),
        ("end", "running", "UPDATE exchanges SET ended_at = 1 WHERE id = 'running'"),
        ("end", "done.1", "UPDATE completions SET closed_at = NULL WHERE id = 'done.1'"),
        ("owner", "running", "UPDATE exchanges SET owner = 'nobody' WHERE id = 'running'"),
        ("owner", "running.1", "UPDATE completions SET owner = 'nobody' WHERE id = 'running.1'"),
        ("conversation", "done", "UPDATE exchanges SET visitor = 'stranger' WHERE id = 'done'"),
        ("numbers", "done", "UPDATE exchanges SET sent = 5 WHERE id = 'done'"),
        ("numbers", "done", "UPDATE exchanges SET seen = 4 WHERE id = 'done'"),
        ("shown", "done", "UPDATE exchanges SET shown = 'mot' WHERE id = 'done'"),
        ("boundaries", "done", "UPDATE exchanges SET generated = 'Mot', shown = NULL WHERE id = 'done'"),
        ("boundaries", "done", "UPDATE boundaries SET pairs = x'0900000001000000' WHERE first_event = 3"),
        ("boundaries", "done", "UPDATE exchanges SET events = 2, sent = 2 WHERE id = 'done'"),
        ("deleted", "deleted", "UPDATE exchanges SET generated = 'back again' WHERE id = 'deleted'"),
        ("deleted", "deleted", "INSERT INTO details VALUES (2, x'00', x'00', NULL)"),
        ("orphan", "details 99", "INSERT INTO details VALUES (99, x'00', x'00', NULL)"),
        ("details", "running", "INSERT INTO details VALUES (3, x'00', x'00', NULL)"),
        ("details", "done", "UPDATE details SET events = x'00' WHERE number = 1"),
        ("details", "done", "UPDATE details SET times = x'00020100' WHERE number = 1"),
        ("cost", "done", "UPDATE exchanges SET cost = 1.0 WHERE id = 'done'"),
        ("cost", "done", "UPDATE completions SET cost = NULL WHERE id = 'done.1'"),
        ("day", "0", "UPDATE completions SET prompt_tokens = 43 WHERE id = 'old.1'"),
        ("day", "0", "UPDATE past_days SET figures = '[]' WHERE day = 0"),
        ("search", "1", "DELETE FROM search_docsize WHERE id = 1"),
        ("search", "2", "INSERT INTO search_docsize VALUES (2, x'00')"),
        ("deleted", "done", "UPDATE conversations SET deleted_at = 1 WHERE id = 'done'"),
        ("deleted", "deleted", "INSERT INTO boundaries VALUES ('deleted', 2, x'0200000003000000')"),
        ("orphan", "gone", "INSERT INTO boundaries VALUES ('gone', 2, x'0200000003000000')"),
        ("orphan", "exchanges 1", "DELETE FROM conversations WHERE id = 'done'"),
        ("open", "done.1", "UPDATE completions SET outcome = NULL, closed_at = NULL WHERE id = 'done.1'"),
        ("source", "done.1", "UPDATE completions SET source = NULL WHERE id = 'done.1'"),
        ("tokens", "done.1", "UPDATE completions SET prompt_tokens = NULL WHERE id = 'done.1'"),
        ("assistant", "done.1", "UPDATE completions SET assistant = 'train' WHERE id = 'done.1'"),
    ],
)
def test_a_contradiction_is_found_and_named(tmp_path: Path, kind: str, id_: str, statement: str) -> None:
    async def run() -> None:
        store = await books(tmp_path / "store.db")
        if kind == "day":
            await counted_days(store)
        connection = sqlite3.connect(store.path)
        assert connection.execute(statement).rowcount == 1
        connection.commit()
        connection.close()
        found = [(one.kind, one.id) for one in await store.verify()]
        assert (kind, id_) in found
        await store.close()

    asyncio.run(run())


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    async def run() -> None:
        store = await books(tmp_path / "store.db")
        await store.close()
        connection = sqlite3.connect(store.path)
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'completions_exchange'"
        ).fetchone()
        connection.close()
        content = store.path.read_bytes()
        start = (page - 1) * 4096
        damaged = content[start : start + 4096].replace(b"done", b"dona")
        assert damaged != content[start : start + 4096]
        store.path.write_bytes(content[:start] + damaged + content[start + 4096 :])
        store = Store.open(store.path)
        assert "file" in {one.kind for one in await store.verify()}
        await store.close()

    asyncio.run(run())
