"""The page's Chromium, for the dashboard's tests."""

from __future__ import annotations

from tests.page.conftest import chromium

__all__ = ["chromium"]
