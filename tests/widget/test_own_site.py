"""The element on a page of the very app that the chat is mounted in: known by cookie, or by the app's own login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Route
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.routing import Route as At

from motamot.assistant import Assistant
from motamot.model.http import HttpModel
from motamot.scripted.model import ScriptedModel
from motamot.server.run import Server, listen
from motamot.server.site import Site
from tests.page.support import Chromium, deliver, opened

GATED = [{"say": ["First ", "piece."]}, {"gate": "curtain"}, {"say": [" And", " the rest."]}]
PAGE = (
    "<!doctype html><title>Ours</title><h1>Our app</h1>"
    '<script src="/chat/widget.js" data-launcher="none" defer></script><motamot-chat></motamot-chat>'
)
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"


async def signed_in(request: Request) -> str | None:
    """The app's own login."""
    return request.cookies.get("session")


@asynccontextmanager
async def app(folder: Path, scripts: object, *, login: bool) -> AsyncIterator[tuple[str, ScriptedModel, Site]]:
    """Somebody's app with a chat under /chat, and a page of its own that shows it."""

    async def page(_request: Request) -> Response:
        return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})

    async with ScriptedModel(scripts) as model:
        upstream = HttpModel(model.url, "scripted")
        one = Assistant(upstream=upstream, store=folder / "books.sqlite3")
        if login:
            one.identify = signed_in
        site = one.asgi
        assert isinstance(site, Site)
        listening = listen("127.0.0.1", 0)
        ready = asyncio.Event()
        server = Server(site, ready=ready.set)
        server.config.app = Starlette(routes=[At("/", page), Mount("/chat", app=site)], lifespan=one.lifespan)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await asyncio.wait_for(ready.wait(), 10)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/", model, site
        finally:
            server.end()
            await serving
            await upstream.close()


def test_a_first_question_whose_answer_was_lost_is_asked_once(chromium: Chromium, tmp_path: Path) -> None:
    """Nobody has been to the chat's own page: the cookie is there all the same before anything is asked."""

    async def scenario(browser: Browser) -> None:
        async with app(tmp_path, [GATED], login=False) as (url, model, _), opened(browser, url) as reader:

            async def deliver_but_answer_nothing(route: Route) -> None:
                if len(reader.asked) > 1:
                    await route.continue_()
                    return
                sending = deliver(reader, route)
                await model.wait_gate("curtain")
                await route.abort()
                sending.cancel()

            await reader.page.route("**/api/chat/stream", deliver_but_answer_nothing)
            await reader.ask("Hello")
            await reader.shows("First piece.")
            model.release("curtain")
            await reader.ended("complete")
            assert len(model.requests) == 1 and len(reader.asked) == 2
            for request in reader.asked:
                assert "authorization" not in await request.all_headers()

    chromium.run(scenario)


def test_with_a_login_of_the_apps_own_its_user_is_the_visitor(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with app(tmp_path, [[{"say": "Yes."}]], login=True) as (url, model, site):
            async with opened(browser, url) as reader:
                await reader.ask("Hello")
                await reader.ended("failed")
                assert (await reader.mark()).startswith("sign in first")
                assert not model.requests
                await reader.page.context.add_cookies([{"name": "session", "value": "ana", "url": url}])
                await reader.page.get_by_role("button", name="Try again").click()
                await reader.shows("Yes.")
                await reader.page.reload()
                await reader.shows("Yes.")
                cookies = {cookie.get("name") for cookie in await reader.page.context.cookies()}
                assert cookies == {"session"}
            assert len(await site.exchanges.store.visitor_conversations("ana")) == 1

    chromium.run(scenario)
