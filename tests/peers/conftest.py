"""A browser for the pages that read with the peers."""

from __future__ import annotations

from tests.page.conftest import chromium

__all__ = ["chromium"]
