"""A store for the time of a test, and what its files hold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from motamot.store.store import Store

__all__ = ["in_file", "with_store"]


def with_store(
    folder: Path,
    scenario: Callable[[Store], Awaitable[None]],
    *,
    now: float | None = None,
    retention: float | None = None,
) -> None:
    """Play it with the `store.db` of a folder, whose books have no contradictions then. now: None for the real time."""

    async def run() -> None:
        clock = time.time if now is None else lambda: now
        store = Store.open(folder / "store.db", clock=clock, retention_days=retention)
        try:
            await scenario(store)
            assert await store.verify() == []
        finally:
            await store.close()

    asyncio.run(run())


def in_file(folder: Path, text: str) -> bool:
    """Whether it stands in any file of the folder."""
    return any(text.encode() in file.read_bytes() for file in folder.iterdir() if file.is_file())
