"""Pages made with libraries from npm, bundled as their users bundle them, in Chromium before a real `motamot serve`."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from motamot.testing import ThreadedScriptedModel, scripted_model
from tests.need import need
from tests.node import node, npm_package
from tests.server.support import serve_process, upstream

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ESBUILD = "esbuild@0.28.2"

_PAGE = '<!doctype html><meta charset="utf-8"><div id="root"></div><script src="/page.js"></script>'
SOURCES = Path(__file__).parents[1] / "clients_js"
_SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


@contextmanager
def launched() -> Iterator[Browser]:
    """A Chromium."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    need(path, "Chromium (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=_SWITCHES)
        try:
            yield browser
        finally:
            browser.close()


def bundled(source: Path, *packages: str) -> str:
    """A page's script with everything in it, as `esbuild` makes it for development: React then checks what it can.

    packages: `name@version`, the first one's name before the rest.
    """
    name, _, version = packages[0].rpartition("@")
    place = npm_package(name, version, *packages[1:], ESBUILD)
    shutil.copyfile(source, place / source.name)  # beside the packages: that is where esbuild looks for them
    command = [node(), place / "node_modules" / "esbuild" / "bin" / "esbuild", place / source.name]
    done = subprocess.run(
        [*command, "--bundle", "--jsx=automatic", "--log-level=warning"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Served:
    """`motamot serve`, its model, and a page of another site that may ask it."""

    url: str
    model: ThreadedScriptedModel
    page: str
    context: BrowserContext
    secret: str

    def open(self, **settings: Any) -> Page:
        """The page in a window; its visitor is the same in each."""
        page = self.context.new_page()
        page.set_default_timeout(15_000)
        told = {"api": f"{self.url}/api/ui-message", "secret": self.secret, **settings}
        page.add_init_script(f"window.settings = {json.dumps(told)}")
        page.goto(self.page)
        return page


@contextmanager
def served(browser: Browser, folder: Path, script: str, *scripts: object) -> Iterator[Served]:
    """`motamot serve` with a model that plays `scripts`; a page of another site is in its `origins`."""
    from tests.widget.shop import site  # needs Playwright, without which `launched` skips

    with ExitStack() as stack:
        shop = stack.enter_context(site())
        shop["/"], shop["/page.js"] = _PAGE, script
        (folder / "motamot.toml").write_text(f'[assistants.default]\norigins = ["{shop.origin}"]\n', "utf-8")
        model = stack.enter_context(scripted_model([*scripts]))
        process = stack.enter_context(serve_process(folder, *upstream(model.url)))
        context = stack.enter_context(browser.new_context())
        yield Served(process.url, model, shop.origin, context, secrets.token_urlsafe(16))
