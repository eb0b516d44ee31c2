"""Who lives and who is dead: known at once on this host, by a lease elsewhere; never a living owner's rows."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.store import owners, writer
from motamot.store.contract import closed, completion, exchange
from motamot.store.owners import Lock, Owner, Watch, myself
from motamot.store.store import Store
from tests.store.crashing import crash

Python = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture(params=["proc", "ps"])
def sleeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, python: Python) -> subprocess.Popen[str]:
    """A process of its own; asked about through /proc, and as on a system that has none."""
    if request.param == "ps":
        monkeypatch.setattr(owners, "_PROC", Path("/nowhere"))
    elif not Path("/proc/self/stat").exists():
        pytest.skip("this system has no /proc")
    return python("import time; time.sleep(60)")


def owner_of(process: subprocess.Popen[str]) -> Owner:
    return replace(myself(), pid=process.pid, started=owners._started(process.pid) or "")


NOWHERE = Path("/nowhere/store.db")


def dead(other: Owner, *, at: float = 0.0, watch: Watch | None = None) -> bool:
    return bool((watch or Watch(NOWHERE, 15.0)).dead([other], at, here=set()))


def test_a_running_process_lives(sleeper: subprocess.Popen[str]) -> None:
    other, watch = owner_of(sleeper), Watch(NOWHERE, 15.0)
    assert other.started
    assert not dead(other, at=0.0, watch=watch)
    assert not dead(other, at=1000.0, watch=watch), "however long it has not renewed its lease: it may be suspended"


def test_a_killed_process_is_dead_at_once(sleeper: subprocess.Popen[str]) -> None:
    other = owner_of(sleeper)
    sleeper.kill()
    sleeper.wait()
    assert dead(other)


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="this system cannot wait without reaping")
def test_a_killed_process_that_nobody_waited_for_is_dead_at_once(sleeper: subprocess.Popen[str]) -> None:
    other = owner_of(sleeper)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert dead(other)


def test_a_process_id_used_again_is_not_the_same_owner(sleeper: subprocess.Popen[str]) -> None:
    assert dead(replace(owner_of(sleeper), started="an earlier start"))


def test_an_owner_that_died_while_it_was_watched_is_dead(sleeper: subprocess.Popen[str]) -> None:
    other, watch = owner_of(sleeper), Watch(NOWHERE, 15.0)
    assert not dead(other, at=0.0, watch=watch)
    assert not dead(replace(other, renewals=1), at=1.0, watch=watch)
    sleeper.kill()
    sleeper.wait()
    assert dead(replace(other, renewals=1), at=2.0, watch=watch)


def test_this_process_is_not_the_owner_that_had_its_id_before() -> None:
    """In a container each start may have the same process id."""
    other = replace(myself(), started="an earlier start")
    assert dead(other)
    assert Watch(NOWHERE, 15.0).dead([other], 0.0, here={other.id}) == []


def test_an_earlier_boot_of_this_host_is_over() -> None:
    other = replace(myself(), place="another-boot/pid:[1]")
    assert dead(other)


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "another", "place": "another-boot/pid:[1]"},
        {"place": f"{owners._boot()}/pid:[1]"},
        {"place": ""},
        {"host": "", "place": "another-boot/pid:[1]"},
    ],
    ids=["another host", "another container of this host", "a system that tells no boot", "an unknown host"],
)
def test_an_owner_elsewhere_is_dead_when_its_lease_is_not_renewed_on_our_clock(changes: dict[str, str]) -> None:
    other, watch = replace(myself(), **changes), Watch(NOWHERE, 15.0)  # type: ignore[arg-type] # all of them are texts
    assert not dead(other, at=100.0, watch=watch), "at first sight nobody knows how old its lease is"
    assert not dead(other, at=114.9, watch=watch)
    assert not dead(replace(other, renewals=1), at=115.0, watch=watch)
    assert not dead(replace(other, renewals=1), at=129.9, watch=watch)
    assert dead(replace(other, renewals=1), at=130.0, watch=watch)


def test_a_process_that_is_hidden_from_us_is_judged_by_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's, on a system that shows each user only its own."""
    other, watch = replace(myself(), pid=1), Watch(NOWHERE, 15.0)

    def forbidden(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    monkeypatch.setattr(owners, "_started", lambda _pid: None)
    assert not dead(other, at=0.0, watch=watch)
    assert dead(other, at=15.0, watch=watch)


def test_what_is_known_of_owners_that_are_gone_is_forgotten() -> None:
    watch = Watch(NOWHERE, 15.0)
    others = [replace(myself(), place="", id=f"o{n}") for n in range(100)]
    watch.dead(others, 0.0, here=set())
    watch.dead([], 1.0, here=set())
    assert watch._seen == {}


# Between processes

SCRIPT = """
import asyncio, sys
from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.store import owners
from motamot.store.contract import closed, completion, ended, exchange
from motamot.store.store import Store
from tests.store.crashing import crash
{before}
async def run():
    store = Store.open({path!r}, limits=Limits(lease_seconds=0.6))
    await store.begin_with_completion(exchange("e"), completion("p", "e", prompt_estimate=40))
    print("open", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    {after}
asyncio.run(run())
"""


def started(python: Python, path: Path, *, before: str = "", after: str = "pass") -> subprocess.Popen[str]:
    process = python(SCRIPT.format(path=str(path), before=before, after=after))
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


async def outcome(store: Store) -> str | None:
    (row,) = await store.completions()
    return row.outcome


def test_a_living_store_closes_a_killed_ones_rows_within_two_seconds(tmp_path: Path, python: Python) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        process = started(python, store.path)
        await asyncio.sleep(1.2)
        assert await outcome(store) is None
        process.kill()
        start = time.monotonic()
        while await outcome(store) is None:
            await asyncio.sleep(0.02)
        assert time.monotonic() - start < 2
        assert await outcome(store) == "interrupted"
        await store.close()

    asyncio.run(run())


def test_opening_after_a_kill_finds_nothing_open(tmp_path: Path, python: Python) -> None:
    process = started(python, tmp_path / "store.db")
    process.kill()
    process.wait()

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        assert await outcome(store) == "interrupted"
        await store.close()

    asyncio.run(run())


CONTAINER = "owners._place.cache_clear(); owners._place = lambda: owners._boot() + '/pid:[1]'"


@pytest.mark.skipif(not owners._boot(), reason="this system does not tell its boot")
def test_a_killed_container_is_known_dead_without_waiting_for_its_lease(tmp_path: Path, python: Python) -> None:
    """Its process ids mean nothing here; the lock it held is free."""

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        process = started(python, store.path, before=CONTAINER)
        await asyncio.sleep(1.2)
        assert await outcome(store) is None
        process.kill()
        start = time.monotonic()
        while await outcome(store) is None:
            await asyncio.sleep(0.02)
        assert time.monotonic() - start < 2
        await store.close()
        assert list(tmp_path.glob("store.db-owner-*")) == [], "no lock file is left"

    asyncio.run(run())


@pytest.mark.skipif(not owners._boot(), reason="this system does not tell its boot")
def test_a_suspended_container_keeps_its_rows(tmp_path: Path, python: Python) -> None:
    after = "store.close_completion(closed('p')); await store.close()"
    process = started(python, tmp_path / "store.db", before=CONTAINER, after=after)
    process.send_signal(signal.SIGSTOP)

    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=Limits(lease_seconds=0.6))
        await asyncio.sleep(2)
        assert await outcome(store) is None
        process.send_signal(signal.SIGCONT)
        assert process.communicate("\n") == ("", "")
        assert await outcome(store) == "complete"
        await store.close()

    asyncio.run(run())


def test_a_real_container_that_was_killed_is_swept_when_the_next_one_opens(tmp_path: Path) -> None:
    code = SCRIPT.format(path=str(tmp_path / "store.db"), before="", after="pass")
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", code]
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        pytest.skip("this system has no unshare")
    assert process.stdout is not None
    if process.stdout.readline() != b"open\n":
        process.communicate()
        pytest.skip("this user may make no process-id namespace")
    process.kill()
    process.communicate()

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        assert await outcome(store) == "interrupted"
        await store.close()

    asyncio.run(run())


def test_a_lock_is_held_until_it_is_let_go(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "store.db", "o")
    other = Lock(tmp_path / "store.db", "o")
    assert other.held() is None, "no file, nothing known"
    lock.hold()
    assert other.held() is True
    assert other.held() is True, "asking changes nothing"
    lock.release()
    assert other.held() is False
    lock.remove()
    assert other.held() is None


def test_a_suspended_process_on_this_host_keeps_its_rows(tmp_path: Path, python: Python) -> None:
    process = started(python, tmp_path / "store.db", after="store.close_completion(closed('p')); await store.close()")
    process.send_signal(signal.SIGSTOP)

    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=Limits(lease_seconds=0.6))
        await asyncio.sleep(2.5)
        assert await outcome(store) is None
        process.send_signal(signal.SIGCONT)
        assert process.communicate("\n") == ("", "")
        assert await outcome(store) == "complete"
        await store.close()

    asyncio.run(run())


def test_an_owner_elsewhere_that_was_suspended_finds_out_and_closes_nothing_twice(
    tmp_path: Path, python: Python
) -> None:
    after = """
    try:
        await store.open_completion(completion("q", "e", turn=2))
    except StoreError as error:
        print("refused", flush=True)
    store.close_completion(closed("p"))
    store.end(ended("e"))
    await store.begin_with_completion(exchange("f"), completion("r", "f"))
    await asyncio.sleep(2)
    store.close_completion(closed("r"))
    store.end(ended("f"))
    await store.close()
"""
    elsewhere = "owners._place = lambda: ''"
    process = started(python, tmp_path / "store.db", before=elsewhere, after=after)
    process.send_signal(signal.SIGSTOP)

    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=Limits(lease_seconds=0.6))
        start = time.monotonic()
        while await outcome(store) is None:
            await asyncio.sleep(0.05)
        assert 0.5 < time.monotonic() - start < 4
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate("\n")
        assert out == "refused\n"
        assert "was taken for dead" in err
        rows = [(row.id, row.outcome) for row in await store.completions()]
        assert rows == [("p", "interrupted"), ("r", "complete")], "the new one lived, with a lease of its own"
        ends = [row.outcome for id_ in ("e", "f") if (row := await store.exchange(id_))]
        assert ends == ["interrupted", "complete"]
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


def test_a_lease_is_renewed_while_nothing_happens(tmp_path: Path, python: Python) -> None:
    elsewhere = "owners._place = lambda: ''"
    process = started(python, tmp_path / "store.db", before=elsewhere, after="await store.close()")

    async def run() -> None:
        store = Store.open(tmp_path / "store.db", limits=Limits(lease_seconds=0.6))
        await asyncio.sleep(2.5)
        assert await outcome(store) is None
        process.communicate("\n")
        await store.close()

    asyncio.run(run())


def test_rows_whose_owner_was_struck_off_are_closed(tmp_path: Path, python: Python) -> None:
    """A sweeper writes both in one transaction; a file that was meddled with may still hold such rows."""
    process = started(python, tmp_path / "store.db")
    process.kill()
    process.wait()
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.execute("DELETE FROM owners")
    connection.commit()
    connection.close()

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        assert await outcome(store) == "interrupted"
        await store.close()

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_store_dropped_in_this_process_is_swept_by_the_next(tmp_path: Path) -> None:
    """Its thread is gone, its process is not."""

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        crash(store)
        store = Store.open(tmp_path / "store.db")
        assert await outcome(store) == "interrupted"
        await store.close()

    asyncio.run(run())


def test_of_many_sweepers_each_row_is_closed_once(
    tmp_path: Path, python: Python, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        stores = [Store.open(tmp_path / "store.db") for _ in range(4)]
        for n in range(5):
            process = python(
                SCRIPT.format(path=str(tmp_path / "store.db"), before="", after="pass")
                .replace('exchange("e")', f'exchange("e{n}")')
                .replace('completion("p", "e"', f'completion("p{n}", "e{n}"')
            )
            assert process.stdout is not None
            process.stdout.readline()
            process.kill()
        start = time.monotonic()
        closed_rows = 0
        while any(row.outcome is None for row in await stores[0].completions()):
            closed_rows += sum(await asyncio.gather(*[store.sweep() for store in stores]))
            assert time.monotonic() - start < 5
        assert closed_rows <= 10
        assert [row.outcome for row in await stores[0].completions()] == ["interrupted"] * 5
        for store in stores:
            await store.close()

    asyncio.run(run())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_closed_completion_stays_closed_whatever_its_owner_says_later(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin_with_completion(exchange("e"), completion("p", "e", prompt_estimate=4))
        other = Store.open(tmp_path / "store.db")
        writer.here.discard(store._writer.owner.id)  # as if it were of another process with the same id
        await other.sweep()
        writer.here.add(store._writer.owner.id)
        store.close_completion(closed("p"))
        (row,) = await store.completions()
        assert (row.outcome, row.prompt_tokens) == ("interrupted", 4)
        with pytest.raises(StoreError, match="not open here"):
            await store.open_completion(completion("q", "e", turn=2))
        await store.close()
        await other.close()

    asyncio.run(run())
