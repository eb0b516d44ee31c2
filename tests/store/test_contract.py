"""The contract of every store, on SQLite."""

from __future__ import annotations

from pathlib import Path

from motamot.store.contract import StoreContract
from motamot.store.store import Store


class TestSQLite(StoreContract):
    """A file in a folder of its own."""

    def open(self, folder: Path) -> Store:
        return Store.open(f"sqlite:///{folder}/store.db")
