"""A deleted text is gone: from the rows, from the file, from the log beside it."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import string
import time
from pathlib import Path

from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.store import Store


def secret(chance: random.Random, size: int) -> str:
    """Text in which every eight characters are found nowhere else."""
    return "".join(chance.choices(string.ascii_letters, k=size))


def found(folder: Path, texts: list[str]) -> set[bytes]:
    """Pieces of these texts in any file of the store."""
    pieces = {text[n : n + 8].encode() for text in texts for n in range(0, len(text) - 8, 8)}
    left = set()
    for file in folder.glob("store.db*"):
        content = file.read_bytes()
        left |= pieces.intersection(content[n : n + 8] for n in range(len(content)))
    return left


def test_no_piece_of_a_deleted_text_stays_in_the_files(tmp_path: Path) -> None:
    """Whatever its length, wherever pages were split and texts rewritten by checkpoints."""

    async def run() -> None:
        chance = random.Random(1)
        store = Store.open(tmp_path / "store.db")
        texts: list[str] = []
        for n in range(60):
            conversation = "deleted" if n % 2 else f"kept {n}"
            question, answer, detail = [secret(chance, chance.choice((20, 300, 9000))) for _ in range(3)]
            await store.begin(exchange(f"e{n}", conversation=conversation, question=question))
            await store.open_completion(completion(f"p{n}", f"e{n}"))
            for end in (len(answer) // 3, len(answer) // 2):
                store.checkpoint([checkpoint(f"e{n}", answer[:end])])
                await store.flush()
            store.close_completion(closed(f"p{n}", detail=detail))
            store.end(ended(f"e{n}", answer, shown=answer[: len(answer) // 2], detail=detail))
            if n % 2:
                texts += [question, answer, detail]
        await store.flush()
        assert found(tmp_path, texts), "they are in the files before"
        assert await store.delete_conversation("deleted", "visitor")
        deadline = time.monotonic() + 5
        while left := found(tmp_path, texts):
            assert time.monotonic() < deadline, f"{len(left)} pieces are left"
            await asyncio.sleep(0.1)
        kept = await store.exchange("e0")
        assert kept is not None
        assert kept.shown
        await store.close()
        assert found(tmp_path, texts) == set()

    asyncio.run(run())


def test_a_reader_in_the_way_delays_it_and_blocks_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        question = secret(random.Random(2), 400)
        await store.begin(exchange("e", conversation="c", question=question))
        reader = sqlite3.connect(store.path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM exchanges").fetchone()
        await store.delete_conversation("c", "visitor")
        slowest = 0.0
        for n in range(20):
            start = time.monotonic()
            await store.begin(exchange(f"f{n}"))
            slowest = max(slowest, time.monotonic() - start)
            await asyncio.sleep(0.1)
        assert slowest < 0.5
        reader.close()
        deadline = time.monotonic() + 5
        while found(tmp_path, [question]):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        await store.close()

    asyncio.run(run())
