"""Text that is removed: after some days by itself, and of a whole visitor."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from motamot.errors import NotFound
from motamot.store import chores
from motamot.store.contract import closed, completion, ended, exchange, refused
from motamot.store.store import Store
from motamot.store.views import Filter
from tests.store import support
from tests.store.support import in_file

DAY = 86_400.0

with_store = partial(support.with_store, now=100 * DAY)


async def texts(store: Store, *ids: str) -> list[bool]:
    """Whether each of these exchanges has text."""
    rows = [await store.exchange(id_) for id_ in ids]
    return [row is not None and (row.question, row.generated) != (None, None) for row in rows]


async def booked(store: Store, id_: str, day: float, **asked: str) -> None:
    await store.begin_with_completion(exchange(id_, started_at=day * DAY, **asked), completion(f"{id_}.1", id_))
    store.close_completion(closed(f"{id_}.1", cost=0.5, detail="quoting it"))
    store.end(ended(id_, "zeppelinanswer", boundaries=((2, 14),)))


def test_text_that_is_too_old_is_removed_by_itself_and_no_other(tmp_path: Path) -> None:
    """Also of a conversation that goes on; what runs is left alone."""

    async def prepared(store: Store) -> None:
        await booked(store, "old", 10)
        await booked(store, "old of a living one", 11, conversation="living")
        await booked(store, "new of a living one", 95, conversation="living")
        await booked(store, "new", 99)
        assert await texts(store, "old", "new") == [True, True]

    with_store(tmp_path, prepared)

    async def scenario(store: Store) -> None:
        await store.begin(exchange("runs", started_at=10 * DAY))
        names = ("old", "old of a living one", "new of a living one", "new", "runs")
        async with asyncio.timeout(20):
            while await texts(store, *names) != [False, False, True, True, True]:
                await asyncio.sleep(0.02)
        [conversation, living] = [await store.conversation(name) for name in ("conversation of old", "living")]
        assert conversation is not None
        assert living is not None
        assert (conversation.deleted_at is None, living.deleted_at is None) == (False, True)
        assert (await store.spent(None, 0)).cost == {"USD": 2.0}
        history = await store.history("living", "visitor")
        assert [row.question is None for row in history] == [True, False]
        await store.begin(exchange("next", conversation="living"))  # it goes on
        assert [row.exchange for row in (await store.browse(Filter(text="zeppelin"))).rows] == [
            "new",
            "new of a living one",
        ]

    with_store(tmp_path, scenario, retention=30)


def test_without_retention_nothing_is_removed(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await booked(store, "old", 1)
        await asyncio.sleep(1.3)  # the first look around is after a second
        assert await texts(store, "old") == [True]

    with_store(tmp_path, scenario)


def test_text_becomes_too_old_while_the_store_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chores, "FORGET_SECONDS", 0.1)
    now = [100 * DAY]

    async def run() -> None:
        store = Store.open(tmp_path / "store.db", clock=lambda: now[0], retention_days=30)
        await booked(store, "e", 99)
        await asyncio.sleep(1.5)
        assert await texts(store, "e") == [True]
        now[0] = 130 * DAY
        async with asyncio.timeout(20):
            while await texts(store, "e") == [True] or in_file(tmp_path, "zeppelinanswer"):
                await asyncio.sleep(0.02)
        await store.close()

    asyncio.run(run())


def test_more_than_fits_into_one_step_is_removed_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("motamot.store.chores.FORGOTTEN_AT_ONCE", 3)
    monkeypatch.setattr("motamot.store.store.FORGOTTEN_AT_ONCE", 3)

    async def scenario(store: Store) -> None:
        for number in range(10):
            await booked(store, f"e{number}", 10)
            await booked(store, f"mine {number}", 99, visitor="me")
        async with asyncio.timeout(20):
            while any(await texts(store, *[f"e{number}" for number in range(10)])):
                await asyncio.sleep(0.02)
        assert await store.delete_visitor("me") == 10
        assert not any(await texts(store, *[f"mine {number}" for number in range(10)]))

    with_store(tmp_path, scenario, retention=30)


def test_a_visitor_is_deleted_with_all_conversations_and_their_name(tmp_path: Path) -> None:
    """A host's own login may have given the name of a person."""

    async def scenario(store: Store) -> None:
        name = "alice@example.com"
        await booked(store, "a", 1, visitor=name, key="k")
        await booked(store, "b", 2, visitor=name, conversation="two")
        await store.delete_conversation("two", name)
        await booked(store, "theirs", 3, visitor="else")
        assert await store.delete_visitor(name) == 1
        assert await texts(store, "a", "b", "theirs") == [False, False, True]
        assert await store.visitor_conversations(name) == ()
        [a, b] = [await store.exchange(id_) for id_ in "ab"]
        assert a is not None
        assert b is not None
        assert a.visitor == b.visitor  # still one's
        assert a.visitor.startswith("erased ")
        async with asyncio.timeout(20):
            while in_file(tmp_path, name) or in_file(tmp_path, "question of a"):
                await asyncio.sleep(0.05)
        assert (await store.spent(None, 0)).cost == {"USD": 1.5}
        await refused(NotFound, store.begin(exchange("c", visitor=name, conversation="two")))
        await booked(store, "d", 4, visitor=name, key="k")  # somebody new
        assert await texts(store, "d") == [True]
        assert await store.delete_visitor("nobody") == 0

    with_store(tmp_path, scenario)
