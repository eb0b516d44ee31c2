"""When the disk is full, the file locked or gone: no booking is lost, and nothing leaves unbooked."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.store import Store

QUICK = Limits(store_seconds=0.5, shutdown_seconds=0.5)

Python = Callable[[str], "subprocess.Popen[str]"]


class Locker:
    """Another program that holds the write lock."""

    def __init__(self, python: Python, path: Path) -> None:
        self._process = python(
            f"import sqlite3, sys; c = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
            "for line in sys.stdin: c.execute(line); print('done', flush=True)"
        )

    def _say(self, statement: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(statement + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    @contextmanager
    def lock(self) -> Any:
        self._say("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._say("ROLLBACK")


async def recovered(store: Store) -> float:
    """Seconds until everything is written again."""
    start = time.monotonic()
    while True:
        try:
            await store.flush()
            return time.monotonic() - start
        except StoreError:
            assert time.monotonic() - start < 10
            await asyncio.sleep(0.05)


def test_a_full_disk_refuses_questions_and_keeps_bookings_until_there_is_room(
    tiny_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        store = Store.open(tiny_disk / "store.db", limits=QUICK)
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        (tiny_disk / "fill").write_bytes(b"x" * (5 << 19))
        refused = None
        for n in range(200):
            try:
                await store.begin(exchange(f"f{n}", question="q" * 30_000))
            except StoreError as error:
                refused, last = error, n
                break
        assert refused is not None
        assert "the disk is full; free some space" in refused.message
        assert refused.detail is not None
        assert "SQLITE_FULL" in refused.detail
        store.close_completion(closed("p"))
        store.end(ended("e", "x" * 20_000))
        row = await store.exchange("e")
        assert row is not None, "what was written before can still be read"
        (tiny_disk / "fill").unlink()
        assert await recovered(store) < 3
        row = await store.exchange("e")
        assert row is not None
        assert row.shown == "x" * 20_000
        assert [row.outcome for row in await store.completions()] == ["complete"]
        assert await store.exchange(f"f{last}") is None, "what was refused is not in the books"
        await store.begin(exchange("h"))
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1, "it is said once, not at every try"


def test_a_question_too_large_for_the_disk_keeps_no_booking_waiting(tiny_disk: Path) -> None:
    async def run() -> None:
        store = Store.open(tiny_disk / "store.db", limits=QUICK)
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        (tiny_disk / "fill").write_bytes(b"x" * (2 << 20))
        large = [asyncio.create_task(store.begin(exchange(f"f{n}", question="q" * 4_000_000))) for n in range(3)]
        await asyncio.sleep(0.1)
        store.close_completion(closed("p"))
        store.end(ended("e"))
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in large)
        connection = sqlite3.connect(store.path)
        assert connection.execute("SELECT outcome FROM completions").fetchall() == [("complete",)]
        connection.close()
        assert [type(answer) for answer in await asyncio.gather(*large, return_exceptions=True)] == [StoreError] * 3
        await store.close()

    asyncio.run(run())


@pytest.mark.skipif(sys.platform == "win32", reason="a limit on a file's size is a POSIX matter")
def test_an_error_of_the_disk_while_writing_loses_nothing(tmp_path: Path, python: Python) -> None:
    """A limit on the size of files makes real writes fail, for every user."""
    code = f"""
import asyncio, os, resource
from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.store.contract import closed, completion, ended, exchange
from motamot.store.store import Store
async def run():
    store = Store.open({str(tmp_path / "store.db")!r}, limits=Limits(store_seconds=0.5))
    await store.begin_with_completion(exchange("e"), completion("p", "e"))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat({str(tmp_path / "store.db-wal")!r}).st_size, hard))
    store.close_completion(closed("p"))
    store.end(ended("e", "x" * 100_000))
    try:
        await store.begin(exchange("f"))
    except StoreError as error:
        print(error.message.partition(" store.db ")[2] or error.message)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    while True:
        try:
            await store.flush()
            break
        except StoreError:
            await asyncio.sleep(0.05)
    row = await store.exchange("e")
    print(len(row.shown), [row.outcome for row in await store.completions()], await store.exchange("f"))
    print(await store.verify())
    await store.close()
asyncio.run(run())
"""
    out, _ = python(code).communicate(timeout=30)
    refusal, booked, verified = out.splitlines()
    assert "the disk reports an error, or is full" in refusal or "the disk is full" in refusal
    assert booked == "100000 ['complete'] None"
    assert verified == "[]"


def test_another_programs_lock_refuses_questions_in_time_and_delays_bookings(tmp_path: Path, python: Python) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=QUICK)
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        with Locker(python, store.path).lock():
            start = time.monotonic()
            refusals = await asyncio.gather(
                store.begin(exchange("f")),
                store.open_completion(completion("q", "e", turn=2)),
                store.begin_with_completion(exchange("g"), completion("r", "g")),
                return_exceptions=True,
            )
            assert 0.4 < time.monotonic() - start < 2
            assert [type(refusal) for refusal in refusals] == [StoreError] * 3
            for n in range(50):
                store.checkpoint([checkpoint("e", "x" * n, boundaries=((n + 2, n),))])
                await asyncio.sleep(0.01)
            store.close_completion(closed("p"))
            await asyncio.sleep(1.5)  # two tries fail: what waited for the first is replaced at the second
        await recovered(store)
        assert [row.id for row in await store.completions()] == ["p"], "what was refused is not in the books"
        assert [await store.exchange(id_) for id_ in ("f", "g")] == [None, None]
        row = await store.exchange("e")
        assert row is not None
        assert row.generated == "x" * 49
        assert row.boundaries == tuple((n + 2, n) for n in range(50)), "no boundary is lost where texts are replaced"
        await store.close()

    asyncio.run(run())


def test_checkpoints_that_cannot_be_written_do_not_pile_up(tmp_path: Path, python: Python) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=QUICK)
        await store.begin(exchange("e"))
        with Locker(python, store.path).lock():
            for n in range(100):
                store.checkpoint([checkpoint("e", f"{n}")])
                await asyncio.sleep(0.03)
            waiting = store._writer._pending
            assert len(waiting) < 60, "some of them, since the last try"
        await store.close()

    asyncio.run(run())


def test_a_file_that_was_moved_away_is_missed_and_found_again(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=QUICK)
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        files = list(tmp_path.glob("store.db*"))
        for file in files:
            file.rename(elsewhere / file.name)
        with pytest.raises(StoreError, match="was moved, removed or replaced while it was in use"):
            await store.begin(exchange("f"))
        store.close_completion(closed("p"))
        await asyncio.sleep(0.5)
        start = time.monotonic()
        with pytest.raises(StoreError, match="was moved"):
            await store.begin(exchange("f"))
        assert time.monotonic() - start < 0.1, "once it lasts, nobody waits any more"
        assert not (tmp_path / "store.db").exists(), "no new, empty book is begun"
        for file in files:
            (elsewhere / file.name).rename(file)
        await recovered(store)
        assert [row.outcome for row in await store.completions()] == ["complete"]
        await store.close()

    asyncio.run(run())


def test_a_writer_with_nothing_to_write_finds_out_by_itself_that_it_can_again(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=QUICK)
        away = tmp_path / "away.db"
        store.path.rename(away)
        with pytest.raises(StoreError):
            await store.begin(exchange("e"))
        await asyncio.sleep(0.6)
        away.rename(store.path)
        start = time.monotonic()
        while True:
            try:
                await store.begin(exchange("f"))
                break
            except StoreError:
                assert time.monotonic() - start < 5
                await asyncio.sleep(0.1)
        await store.close()

    asyncio.run(run())


def test_closing_while_nothing_can_be_written_says_what_becomes_of_it(tmp_path: Path, python: Python) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=QUICK)
        await store.begin_with_completion(exchange("e"), completion("p", "e", prompt_estimate=9))
        with Locker(python, store.path).lock():
            store.close_completion(closed("p"))
            start = time.monotonic()
            with pytest.raises(StoreError, match=r"1 bookings could not be written.*locked by another program"):
                await store.close()
            assert time.monotonic() - start < 4
        store = Store.open(tmp_path / "store.db")
        (row,) = await store.completions()
        assert (row.outcome, row.prompt_tokens) == ("interrupted", 9), "booked all the same, with the estimate"
        await store.close()

    asyncio.run(run())


# A wait that is given up


def test_a_begin_cancelled_while_it_waits_leaves_nothing(tmp_path: Path, python: Python) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        with Locker(python, store.path).lock():
            task = asyncio.create_task(store.begin_with_completion(exchange("e"), completion("p", "e")))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await recovered(store)
        assert await store.exchange("e") is None
        assert await store.conversation("conversation of e") is None
        assert await store.completions() == []
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("told", [False, True])
def test_a_begin_cancelled_just_as_it_was_written_is_taken_out_again(tmp_path: Path, told: bool) -> None:
    """Between the commit and the caller's next step: its answer is on the way, or has just arrived."""

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin(exchange("kept", conversation="c"))
        task = asyncio.create_task(
            store.begin_with_completion(exchange("e", conversation="c", key="k", body_hash="h"), completion("p", "e"))
        )
        await asyncio.sleep(0)
        time.sleep(0.3)  # the loop must not turn while the writer commits
        if told:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.flush()
        await store.flush()
        assert await store.exchange("e") is None
        assert await store.completions() == []
        again = await store.begin(exchange("f", conversation="c", key="k", body_hash="h"))
        assert again.existing is None, "its key is free again"
        assert [row.id for row in await store.history("c", "visitor")] == ["kept", "f"]
        await store.close()

    asyncio.run(run())


def test_joining_an_exchange_and_giving_up_takes_nothing_out(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin(exchange("e", key="k", body_hash="h"))
        task = asyncio.create_task(store.begin(exchange("f", key="k", body_hash="h")))
        await asyncio.sleep(0)
        time.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.flush()
        assert await store.exchange("e") is not None
        await store.close()

    asyncio.run(run())


def test_what_a_loop_that_is_gone_was_waiting_for_is_taken_out_again(tmp_path: Path, python: Python) -> None:
    store = Store.open(tmp_path / "store.db")
    locker = Locker(python, store.path)

    loop = asyncio.new_event_loop()

    async def leave() -> asyncio.Task[object]:
        task = asyncio.create_task(store.begin(exchange("e")))
        await asyncio.sleep(0.05)
        return cast("asyncio.Task[object]", task)

    with locker.lock():
        left = loop.run_until_complete(leave())
        loop.close()

    async def look() -> None:
        await recovered(store)
        await store.flush()
        assert await store.exchange("e") is None
        await store.close()

    asyncio.run(look())
    assert not left.done(), "nobody cancelled it: its loop just ended"


# Records that cannot be written


def test_one_record_that_cannot_be_written_keeps_no_other_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A caller's mistake, of a kind no check of ours foresees."""

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        wrong = cast(str, object())
        answers = await asyncio.gather(
            *[store.begin(exchange(f"e{n}")) for n in range(3)],
            store.begin(exchange("wrong", model=wrong)),
            *[store.begin(exchange(f"f{n}")) for n in range(3)],
            return_exceptions=True,
        )
        assert isinstance(answers[3], StoreError)
        assert "cannot be written" in answers[3].message
        store.end(ended("e0", outcome=cast(str, None), by=wrong))
        store.end(ended("e1"))
        assert [row.outcome for n in range(2) if (row := await store.exchange(f"e{n}"))] == [None, "complete"]
        assert len([n for n in range(3) if await store.exchange(f"f{n}")]) == 3
        await store.close()

    asyncio.run(run())
    assert "this booking cannot be written: ['e0']" in caplog.text


def test_a_store_serves_several_event_loops_at_once(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.db")
    failures: list[BaseException] = []

    async def work(name: str) -> None:
        for n in range(50):
            await store.begin(exchange(f"{name}{n}"))
            store.end(ended(f"{name}{n}"))
            row = await store.exchange(f"{name}{n}")
            assert row is not None
            assert row.outcome == "complete"

    def thread(name: str) -> None:
        try:
            asyncio.run(work(name))
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(name,)) for name in "abc"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    store.close_sync()
    assert failures == []
