"""A help site's pages, as files and as a real web site."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from motamot.knowledge.learn import Learned, learn

T = TypeVar("T")
PAGES = {
    "booking.md": "# Booking a seat\n\nYou book a seat on the line's page until one hour before it leaves.\n\n"
    "## Two seats\n\nChoose the number of passengers first.\n",
    "refunds.md": "---\ntitle: Getting your money back\n---\nA ticket is refunded until the day before.\n",
    "fr/annuler.md": "# Annuler une réservation\n\nUne réservation s'annule en ligne, jusqu'à la veille du départ.\n\n"
    "## Remboursement\n\nLe remboursement arrive sous cinq jours.\n",
    "bikes.html": "<title>Bicycles | Bus</title><nav>Home Prices</nav><main><h1>Bicycles</h1>"
    "<p>A bicycle travels in the hold for three euros, if there is room.</p></main><footer>Imprint</footer>",
}


def write(folder: Path, pages: Mapping[str, str | bytes] = PAGES) -> Path:
    """The pages as files of a folder called `help`."""
    root = folder / "help"
    for name, text in pages.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def run(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(40):
            return await work

    return asyncio.run(bounded())


def learned(*sources: str | Path, output: Path, **options: Any) -> Learned:
    """What `motamot learn` makes of them."""
    return run(learn([str(source) for source in sources], output, **options))


def numbers(learned: Learned) -> dict[str, int]:
    """Each article's number by its key."""
    return {one.article.key: one.number for one in learned.articles}


def notes(learned: Learned) -> list[str]:
    return [f"{Path(note.what).name if '://' not in note.what else note.what} {note.why}" for note in learned.notes]


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A web site on a free port: what it answers by path, and what it was asked."""

    url: str = ""
    pages: dict[str, Any] = field(default_factory=dict)
    asked: list[web.Request] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [request.path_qs for request in self.asked]

    def sitemap(self, *paths: str, name: str = "/sitemap.xml") -> str:
        """Put a sitemap of these paths there."""
        listed = "".join(f"<url><loc>{path if '://' in path else self.url + path}</loc></url>" for path in paths)
        self.pages[name] = web.Response(
            text='<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"{listed}</urlset>",
            content_type="application/xml",
        )
        return f"{self.url}{name}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        found = self.pages.get(request.path_qs)
        if found is None:
            return web.Response(status=404)
        if callable(found):
            answered: web.StreamResponse = await found(request)
            return answered
        if isinstance(found, str):
            return web.Response(text=found, content_type="text/html")
        assert isinstance(found, web.Response)
        body = found.body if isinstance(found.body, bytes) else b""
        return web.Response(status=found.status, body=body, headers=found.headers)


def html(title: str, text: str) -> str:
    return f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"


@asynccontextmanager
async def site(pages: Mapping[str, Any] | None = None) -> AsyncIterator[Site]:
    """A real web site."""
    made = Site(pages=dict(pages or {}))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made._answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0)
    await listening.start()
    port = runner.addresses[0][1]
    made.url = f"http://127.0.0.1:{port}"
    try:
        yield made
    finally:
        await runner.cleanup()
