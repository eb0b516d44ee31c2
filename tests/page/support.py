"""A real Chromium before a real server, with a scripted model behind: what the page's tests stand on."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Request,
    Route,
    async_playwright,
    expect,
)

from motamot.answer import AnswerEvent
from motamot.assistant import Assistant, Question
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.scripted.model import ScriptedModel
from motamot.server.options import Options
from motamot.server.run import Server, listen
from motamot.server.site import Site
from tests.need import need

__all__ = ["NO_STORAGE", "Chat", "Chromium", "Reader", "Scripts", "chat", "deliver", "opened"]

T = TypeVar("T")
Scripts = object

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = [
    "--headless",
    "--no-sandbox",  # Debian's chromium as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_SECONDS = 50  # of one test's scenario

NO_STORAGE = """
    for (const name of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError") } })
"""


class Chromium:
    """One browser for all tests, on an event loop in a thread of its own: pytest's thread has none to share."""

    def __init__(self) -> None:
        found = next((path for name in _NAMES if (path := shutil.which(name))), None)
        need(found, "Chromium: apt-get install chromium")
        assert found is not None
        self._path = found
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def start(self) -> None:
        self._thread.start()
        self._call(self._launch())

    async def _launch(self) -> None:
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(executable_path=self._path, args=_FLAGS)

    def run(self, scenario: Callable[[Browser], Awaitable[T]], seconds: float = _SECONDS) -> T:
        """Play a scenario to its end, within its time."""

        async def bounded() -> T:
            assert self._browser is not None
            async with asyncio.timeout(seconds):
                return await scenario(self._browser)

        return self._call(bounded(), seconds)

    def _call(self, coroutine: Coroutine[Any, Any, T], seconds: float = _SECONDS) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds + 8)

    def close(self) -> None:
        async def end() -> None:
            if self._browser is not None:
                await self._browser.close()
            if self._playwright is not None:
                await self._playwright.stop()

        self._call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class Chat:
    """A site being served, which may be ended and begun again at the same address with the same books."""

    model: ScriptedModel
    port: int
    made: Callable[[], tuple[Site, HttpModel]]
    site: Site = field(init=False)
    _server: Server | None = None
    _task: asyncio.Task[None] | None = None
    _model: HttpModel | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def start(self) -> None:
        listening = listen("127.0.0.1", self.port)
        self.port = listening.getsockname()[1]
        self.site, self._model = self.made()
        ready = asyncio.Event()
        self._server = Server(self.site, ready=ready.set)
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            waiting.cancel()
            self._task.result()

    async def stop(self) -> None:
        """As SIGTERM does."""
        if self._server is not None and self._task is not None:
            self._server.end()
            await self._task
            self._server = self._task = None
        if self._model is not None:
            await self._model.close()

    async def outcomes(self, seconds: float = 3) -> list[str]:
        """How the exchanges so far have ended, by the books, once all have."""
        async with asyncio.timeout(seconds):
            while self.site.exchanges.running:
                await asyncio.sleep(0.01)
        await self.site.exchanges.store.flush()
        ids = dict.fromkeys(row.exchange for row in await self.site.exchanges.store.completions())
        rows = [await self.site.exchanges.store.exchange(one) for one in ids]
        return [str(row.outcome) for row in rows if row is not None]


@asynccontextmanager
async def chat(
    folder: Path,
    scripts: Scripts,
    *,
    limits: Limits = Limits(),
    options: Options = Options(),
    others: Sequence[Assistant] = (),
    marks: tuple[str, ...] = (),
    answer: Callable[[Question], AsyncIterator[AnswerEvent]] | None = None,
    **assistant: Any,
) -> AsyncIterator[Chat]:
    """A site on a free port, with one assistant whose model plays `scripts`.

    others: further assistants. marks: of the first one's model. answer: in its place. assistant: as in `Assistant`.
    """
    async with ScriptedModel(scripts) as model:

        def made() -> tuple[Site, HttpModel]:
            upstream = HttpModel(model.url, "scripted", limits=limits, marks=marks)
            first = Assistant(upstream=upstream, limits=limits, **assistant)
            if answer is not None:
                first.answer(answer)
            return Site([first, *others], store=folder / "books.sqlite3", options=options, limits=limits), upstream

        served = Chat(model, 0, made)
        await served.start()
        try:
            yield served
        finally:
            await served.stop()


@dataclass
class Reader:
    """Somebody at the page."""

    page: Page
    asked: list[Request] = field(default_factory=list)  # questions posted
    asked_at: list[float] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # on the console
    faults: list[str] = field(default_factory=list)  # what no page may do

    async def ask(self, question: str) -> None:
        """Type, and send with Enter."""
        await self.page.locator("#question").fill(question)
        await self.page.locator("#question").press("Enter")

    async def shows(self, text: str | re.Pattern[str], number: int = -1) -> None:
        """Wait until the text of an answer (the last, if none is named) is or matches this."""
        await expect(self.answer(number).locator(".text")).to_have_text(text, use_inner_text=False)

    async def ended(self, outcome: str, number: int = -1, seconds: float = 5) -> None:
        """Wait until an answer has ended so; what is refused is marked `failed`, too."""
        answer = self.answer(number)
        await expect(answer).to_have_attribute("data-outcome", outcome, timeout=seconds * 1000)
        await expect(answer).to_have_attribute("aria-busy", "false")

    async def text(self, number: int = -1) -> str:
        """An answer's text as it stands in the page, without what is between its blocks."""
        return await self.answer(number).locator(".text").text_content() or ""

    async def source(self, number: int = -1) -> str:
        """An answer's text as the model wrote it, to the character: what one gets by copying it."""
        await self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await self.answer(number).locator(".copy").click()
        await expect(self.answer(number).locator(".copied")).to_be_visible()
        copied: str = await self.page.evaluate("navigator.clipboard.readText()")
        return copied

    async def mark(self, number: int = -1) -> str:
        """What is said below an answer."""
        end = self.answer(number).locator(".end")
        return await end.inner_text() if await end.is_visible() else ""

    def answer(self, number: int = -1) -> Locator:
        return self.page.locator(".answer").nth(number)

    async def questions(self) -> list[str]:
        return await self.page.locator(".asked").all_text_contents()

    async def answers(self) -> list[str]:
        return await self.page.locator(".text").all_text_contents()

    async def focused(self) -> str:
        focused: str = await self.page.evaluate("""() => {
            let focused = document.activeElement
            while (focused.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement
            return focused.id || focused.className
        }""")
        return focused

    async def transcript(self) -> list[dict[str, Any]]:
        """The conversation as the server tells it to this visitor."""
        conversation = await self.page.evaluate(
            "JSON.parse(sessionStorage.getItem(Object.keys(sessionStorage).find(key => /conversation/.test(key))))"
        )
        told = await self.page.request.get(f"api/conversations/{conversation}")
        exchanges: list[dict[str, Any]] = json.loads(await told.body())["exchanges"]
        return exchanges


def deliver(reader: Reader, route: Route) -> asyncio.Task[Any]:
    """Let a question reach the server, and its answer not reach the page."""
    data = route.request.post_data_buffer
    sent = reader.page.request.post(route.request.url, data=data, headers={"content-type": "application/json"})
    return asyncio.ensure_future(sent)


@asynccontextmanager
async def opened(
    browser: Browser | BrowserContext,
    url: str,
    *,
    before: str = "",
    go: bool = True,
    elsewhere: bool = False,
    **context: Any,
) -> AsyncIterator[Reader]:
    """The page in a window of a visitor of its own, or in another one of `browser`'s where that is a context.

    before: a script that runs before the page's own. Whatever a test is about: no script of the page may raise,
    nothing may be kept from it by its policy, and unless it is of `elsewhere`, no other host may be asked for anything.
    """
    own = None if isinstance(browser, BrowserContext) else await browser.new_context(base_url=url, **context)
    page = await (own or browser).new_page()
    page.set_default_timeout(5_000)
    reader = Reader(page)
    host = urlsplit(url).netloc

    def asked(request: Request) -> None:
        reader.requests.append(request.url)
        if not elsewhere and urlsplit(request.url).netloc != host:
            reader.faults.append(f"asked {request.url}")
        if request.method == "POST" and request.url.endswith("/chat/stream"):
            reader.asked.append(request)
            reader.asked_at.append(asyncio.get_running_loop().time())

    def said(message: ConsoleMessage) -> None:
        reader.said.append(message.text)
        if "Content Security Policy" in message.text or "Trusted" in message.text:
            reader.faults.append(message.text)

    page.on("request", asked)
    page.on("pageerror", lambda error: reader.faults.append(f"raised {error}"))
    page.on("dialog", lambda dialog: reader.faults.append(f"said {dialog.message}"))
    page.on("console", said)
    if before:
        await page.add_init_script(before)
    try:
        if go:
            await page.goto(url)
        yield reader
        assert not reader.faults
    finally:
        await (own.close() if own else page.close())
