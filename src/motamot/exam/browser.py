"""A Chromium for the examination of pages: which one, and what to install where there is none.

Playwright is an extra (`motamot[page]`): loaded here and nowhere else, when a page is to be visited.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from motamot.errors import MotamotError

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["BrowserMissing", "opened"]

_DEBIAN = ("chromium", "chromium-browser")
_CHROME = ("google-chrome", "google-chrome-stable")
_MAC = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",)
_START_MS = 30_000


class BrowserMissing(MotamotError):
    """No browser can be opened: a part is not installed, or there is no screen for its window."""

    code = "browser_missing"


def _installed() -> str | None:
    """The browser of this machine: the system's Chromium, else a Chrome; None for Playwright's own download."""
    on_path = (found for name in (*_DEBIAN, *_CHROME) if (found := shutil.which(name)))
    return next(on_path, next((path for path in _MAC if Path(path).exists()), None))


@asynccontextmanager
async def opened(*, window: bool) -> AsyncIterator[Browser]:
    """A browser of its own, with nothing of the user's; closed at the end.

    window: with a window, to chat by hand.
    Raises: BrowserMissing, saying what to install.
    """
    try:
        from playwright.async_api import Error, async_playwright
    except ImportError:
        raise BrowserMissing(
            "visiting a page needs Playwright: pip install 'motamot[page]', and Chromium (apt-get install chromium) "
            "or Chrome, or: playwright install chromium"
        ) from None
    if window and sys.platform.startswith("linux") and not _screen():
        raise BrowserMissing(
            "there is no screen here to open a window on: chat without one (--send TEXT), or watch a page that asks "
            "by itself (--headless)"
        )
    # Chromium's sandbox refuses to run as root; whoever runs a checker as root runs it in a container, as CI does.
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        path = _installed()
        try:
            browser = await playwright.chromium.launch(
                executable_path=path,
                headless=not window,
                args=["--disable-quic", "--no-first-run", *flags],
                handle_sigint=False,  # Ctrl-C ends the visit: what was heard by then is reported
                timeout=_START_MS,
            )
        except Error as error:
            first = error.message.strip().splitlines()[0] if error.message.strip() else ""
            raise BrowserMissing(_not_started(path, window=window), detail=first) from error
        try:
            yield browser
        finally:
            await browser.close()


def _not_started(path: str | None, *, window: bool) -> str:
    if path is None:
        return "there is no browser: apt-get install chromium, or install Chrome, or run: playwright install chromium"
    if window and sys.platform.startswith("linux"):
        return f"{path} could not open a window: is there a screen? Without one, chat with --send TEXT"
    return f"{path} could not be started"


def _screen() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
