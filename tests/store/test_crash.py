"""Killed at any moment: every request that left is booked exactly once, nothing stays open, little text is lost."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from motamot.answer import Source, Usage
from motamot.errors import MotamotError
from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.records import CompletionRow
from motamot.store.store import Store
from tests.store.crashing import crash

KILLS = int(os.environ.get("MOTAMOT_STORE_KILLS", "12"))

Python = Callable[[str], "subprocess.Popen[str]"]

# Says on its standard output, in one write each, what the books must hold from then on.
LOAD = """
import asyncio, os, random, sys
from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.store import Store

def say(*words):
    os.write(1, (" ".join(words) + "\\n").encode())

async def answer(store, name):
    await store.begin(exchange(name, conversation=f"c{random.randrange(9)}"))
    say("begun", name)
    text, pairs = "", []
    for turn in range(1, random.choice((1, 1, 3)) + 1):
        await store.open_completion(completion(f"{name}.{turn}", name, turn=turn, prompt_estimate=40))
        say("left", f"{name}.{turn}")
        for _ in range(random.randrange(4)):
            text += "mot " * random.randrange(1, 500)
            pairs.append((len(pairs) + 2, len(text)))
            store.checkpoint([checkpoint(name, text, sent=len(pairs), boundaries=(pairs[-1],),
                                         completion=f"{name}.{turn}", completion_tokens=len(pairs))])
            if random.random() < 0.5:
                await store.flush()
                say("text", name, str(len(text)))
            await asyncio.sleep(random.random() / 100)
        store.close_completion(closed(f"{name}.{turn}"))
        if random.random() < 0.3:
            await store.flush()
            say("closed", f"{name}.{turn}")
    store.end(ended(name, text, events=len(pairs) + 2, sent=len(pairs)))
    if random.random() < 0.3:
        await store.flush()
        say("ended", name, str(len(text)))

async def worker(store, name):
    n = 0
    while True:
        n += 1
        await answer(store, f"{name}-{n}")

async def run():
    store = Store.open(PATH)
    say("ready")
    await asyncio.gather(*[worker(store, f"{os.getpid()}-{n}") for n in range(20)])

asyncio.run(run())
"""


async def check(path: Path, said: list[list[str]]) -> None:
    """The books hold what was said, once, and nothing open, as soon as they can be opened."""
    start = time.monotonic()
    store = Store.open(path)
    assert time.monotonic() - start < 2
    rows: dict[str, list[CompletionRow]] = defaultdict(list)
    for row in await store.completions(limit=1_000_000):
        assert row.outcome in ("complete", "interrupted")
        rows[row.id].append(row)
    for what, name, *size in said:
        if what == "left":
            assert len(rows[name]) == 1, f"{name} left, and is booked {len(rows[name])} times"
        elif what == "closed":
            assert [row.outcome for row in rows[name]] == ["complete"]
        else:
            kept = await store.exchange(name)
            assert kept is not None, f"{what} {name}"
            assert kept.outcome is not None
            if size:
                assert len(kept.shown or "") >= int(size[0]), f"{name}: text that was written is lost"
    assert await store.verify() == []
    await store.close()


@pytest.mark.slow
@pytest.mark.timeout(60 + KILLS * 5)
def test_killed_at_random_moments_under_load(tmp_path: Path, python: Python) -> None:
    """`MOTAMOT_STORE_KILLS=200 pytest …` for more of them."""
    path = tmp_path / "store.db"
    chance = random.Random(KILLS)
    left = 0
    for _ in range(KILLS):
        process = python(LOAD.replace("PATH", repr(str(path))))
        assert process.stdout is not None
        if chance.random() < 0.9:
            assert process.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 0.3)
        process.kill()
        out, err = process.communicate()
        assert err == ""
        lines = [line for line in out.splitlines(keepends=True) if line.endswith("\n") and line != "ready\n"]
        said = [line.split() for line in lines]
        left += sum(words[0] == "left" for words in said)
        asyncio.run(check(path, said))
    assert left > KILLS * 5, "it was killed at work"


# Any sequence


@dataclass
class Kept:
    """What the model knows of a row. handed: its first close or end; certain: that is on disk."""

    store: int
    handed: Any = None
    certain: bool = False


@dataclass
class Books:
    """What the books must hold."""

    exchanges: dict[str, Kept] = field(default_factory=dict)
    completions: dict[str, Kept] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def settle(self, store: int, *, gone: bool = False) -> None:
        """What this store was handed is on disk; what it had open is closed if it is `gone`."""
        for kept in (*self.exchanges.values(), *self.completions.values()):
            if kept.store == store:
                kept.certain = kept.certain or kept.handed is not None or gone


STORES = st.integers(0, 1)
TOKENS = st.integers(0, 10**6)


class AnySequence(RuleBasedStateMachine):
    """Two owners of one file; begin, open, checkpoint, close, end, delete, kill and restart in any order."""

    exchanges = Bundle("exchanges")
    completions = Bundle("completions")
    template: Path

    @initialize()
    def open_both(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(self.template, self.folder / "store.db")
        self.runner = asyncio.Runner()
        self.stores = [self.open(), self.open()]
        self.books = Books()
        self.number = 0

    def open(self) -> Store:
        return Store.open(self.folder / "store.db")

    def name(self) -> str:
        self.number += 1
        return f"n{self.number}"

    @rule(target=exchanges, which=STORES, key=st.sampled_from([None, "k1", "k2"]), conversation=st.sampled_from("ab"))
    def begin(self, which: int, key: str | None, conversation: str) -> str:
        name = self.name()
        try:
            answer = self.runner.run(
                self.stores[which].begin(exchange(name, key=key, body_hash="h", conversation=conversation))
            )
        except MotamotError:
            assert conversation in self.books.deleted or key is not None
            self.books.refused.add(name)
            return name
        if answer.existing is not None:
            assert key is not None
            self.books.refused.add(name)
            return answer.existing.id
        self.books.exchanges[name] = Kept(which)
        return name

    @rule(target=completions, which=STORES, of=exchanges, estimate=TOKENS)
    def leave(self, which: int, of: str, estimate: int) -> str:
        name = self.name()
        owner = self.books.exchanges.get(of)
        try:
            self.runner.run(self.stores[which].open_completion(completion(name, of, prompt_estimate=estimate)))
        except MotamotError:
            assert owner is None or owner.store != which or owner.handed is not None or owner.certain
            self.books.refused.add(name)
            return name
        assert owner is not None
        assert owner.store == which
        self.books.completions[name] = Kept(which)
        return name

    @rule(which=STORES, of=completions, tokens=TOKENS)
    def close(self, which: int, of: str, tokens: int) -> None:
        kept = self.books.completions.get(of)
        if kept is not None and kept.store == 1 - which:
            return  # only who opened it closes it; and who comes after a dead one, too late
        usage = Usage(prompt_tokens=tokens, completion_tokens=1, source=Source.REPORTED)
        self.stores[which].close_completion(closed(of, usage=usage))
        if kept is not None and kept.store == which and not kept.certain and kept.handed is None:
            kept.handed = tokens

    @rule(which=STORES, of=exchanges, text=st.text(max_size=20).filter(lambda text: text.isprintable()))
    def write(self, which: int, of: str, text: str) -> None:
        self.stores[which].checkpoint([checkpoint(of, text)])

    @rule(which=STORES, of=exchanges, text=st.text("ab\0", max_size=20))
    def finish(self, which: int, of: str, text: str) -> None:
        kept = self.books.exchanges.get(of)
        if kept is None or kept.store != which:
            return  # only who began an exchange ends it
        open_ones = [name for name, one in self.books.completions.items() if one.store == which and one.handed is None]
        for name in open_ones:
            self.close(which, name, 7)
        self.stores[which].end(ended(of, text))
        if not kept.certain and kept.handed is None:
            kept.handed = text

    @rule(which=STORES)
    def flush(self, which: int) -> None:
        self.runner.run(self.stores[which].flush())
        self.books.settle(which)

    @rule(which=STORES, conversation=st.sampled_from("ab"))
    def delete(self, which: int, conversation: str) -> None:
        if self.runner.run(self.stores[which].delete_conversation(conversation, "visitor")):
            self.books.deleted.add(conversation)
        self.books.settle(which)

    @rule(which=STORES)
    def kill(self, which: int) -> None:
        crash(self.stores[which])
        self.stores[which] = self.open()
        for kept in (*self.books.exchanges.values(), *self.books.completions.values()):
            if kept.store == which:
                kept.store = -1  # nobody's any more

    @rule(which=STORES)
    def restart(self, which: int) -> None:
        self.runner.run(self.stores[which].close())
        self.books.settle(which, gone=True)
        self.stores[which] = self.open()
        for kept in (*self.books.exchanges.values(), *self.books.completions.values()):
            if kept.store == which:
                kept.store = -1

    @rule(which=STORES)
    def sweep(self, which: int) -> None:
        self.runner.run(self.stores[which].sweep())
        self.books.settle(which)

    @precondition(lambda self: hasattr(self, "books"))
    @invariant()
    def nothing_of_a_dead_owner_is_open(self) -> None:
        rows = self.runner.run(self.stores[0].completions())
        self.books.settle(0)
        for row in rows:
            assert row.outcome is not None or self.books.completions[row.id].store >= 0

    def teardown(self) -> None:
        if not hasattr(self, "books"):
            return
        for store in self.stores:
            crash(store)
        self.runner.run(self.compare())
        self.runner.close()
        shutil.rmtree(self.folder)

    async def compare(self) -> None:
        store = self.open()
        rows = await store.completions()
        assert sorted(row.id for row in rows) == sorted(self.books.completions), "each request once, and no other"
        for row in rows:
            kept = self.books.completions[row.id]
            booked = (row.outcome, row.prompt_tokens) == ("complete", kept.handed)
            assert booked or (row.outcome == "interrupted" and not (kept.certain and kept.handed is not None))
        for name in self.books.refused:
            assert await store.exchange(name) is None
        for name, kept in self.books.exchanges.items():
            exchange_row = await store.exchange(name)
            assert exchange_row is not None
            assert exchange_row.outcome == "complete" or not (kept.certain and kept.handed is not None)
            if exchange_row.conversation in self.books.deleted:
                assert (exchange_row.shown, exchange_row.question) == (None, None)
            elif exchange_row.outcome == "complete":
                assert exchange_row.shown == kept.handed
        assert await store.verify() == []
        await store.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.timeout(300)
@pytest.mark.slow
def test_any_sequence_of_work_and_kills_books_everything_once(tmp_path: Path) -> None:
    Store.open(tmp_path / "template.db").close_sync()
    AnySequence.template = tmp_path / "template.db"
    case = AnySequence.TestCase
    case.settings = settings(
        max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case().runTest()
