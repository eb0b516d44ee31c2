"""A place to run commands in, for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Place
from tests.store.conftest import make_read_only, tiny_disk

__all__ = ["make_read_only", "place", "tiny_disk"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
