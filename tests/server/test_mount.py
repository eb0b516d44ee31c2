"""A chat inside somebody else's app: under a prefix, with a lifespan or without, with a login or without."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import LifespanType

from motamot import Assistant
from motamot.errors import SettingsError
from motamot.model.http import HttpModel
from motamot.scripted import ScriptedModel, scripted_model
from motamot.server.options import Options
from motamot.server.site import Site
from tests.server.reading import run
from tests.server.support import free_port

SCRIPTS = {
    "default": "hello",
    "scripts": {"hello": "Hello.", "slow": [{"say": "Wait"}, {"wait": "30s"}, {"say": "."}]},
}
QUESTION = {"message": "hello"}


@asynccontextmanager
async def host(
    app: ASGIApp, *, lifespan: LifespanType = "auto", root_path: str = ""
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """Somebody else's app, behind a plain uvicorn."""
    port = free_port()
    config = uvicorn.Config(app, port=port, lifespan=lifespan, log_config=None, root_path=root_path)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done()
        await asyncio.sleep(0.01)
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            yield f"http://127.0.0.1:{port}", client
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def chat(folder: Path, **arguments: Any) -> AsyncIterator[Assistant]:
    async with ScriptedModel(SCRIPTS) as server:
        model = HttpModel(server.url, "scripted")
        try:
            yield Assistant(upstream=model, store=folder / "books.sqlite3", **arguments)
        finally:
            await model.close()


async def ask(client: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, dict[str, Any]]:
    async with client.post(f"{url}/api/chat", json=QUESTION, headers=headers) as response:
        return response.status, await response.json()


def starlette(chat: Assistant) -> ASGIApp:
    return Starlette(
        routes=[Route("/", lambda _: PlainTextResponse("mine")), Mount("/chat", chat.asgi)], lifespan=chat.lifespan
    )


def fastapi(chat: Assistant) -> ASGIApp:
    app = FastAPI(lifespan=chat.lifespan)
    app.mount("/chat", chat.asgi)
    theirs: ASGIApp = app
    return theirs


def without_lifespan(chat: Assistant) -> ASGIApp:
    app = FastAPI()
    app.mount("/chat", chat.asgi)
    theirs: ASGIApp = app
    return theirs


def django(chat: Assistant) -> ASGIApp:
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    if not settings.configured:
        settings.configure(SECRET_KEY="s" * 50, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
    theirs = get_asgi_application()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/chat/"):
            await chat.asgi({**scope, "root_path": scope.get("root_path", "") + "/chat"}, receive, send)
        else:
            await theirs(scope, receive, send)

    return app


urlpatterns: list[object] = []  # Django's own pages: none

APPS = [starlette, fastapi, without_lifespan, django]


@pytest.mark.parametrize("make", APPS)
def test_it_answers_under_a_prefix_whatever_app_is_around_it(
    tmp_path: Path, make: Callable[[Assistant], ASGIApp]
) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine, host(make(mine)) as (url, client):
            status, told = await ask(client, f"{url}/chat")
            assert (status, told["text"], told["outcome"]) == (200, "Hello.", "complete")
            async with client.post(f"{url}/chat/api/chat/stream", json={**QUESTION, "key": "k"}) as response:
                body = await response.text()
                assert response.headers["Content-Type"].startswith("text/event-stream")
                assert body.count('"type":"ended"') == 1
            async with client.get(f"{url}/chat/api/exchanges/k/events") as response:
                assert await response.text() == body
            async with client.get(f"{url}/chat/api/conversations/{told['conversation']}") as response:
                assert (await response.json())["exchanges"][0]["text"] == "Hello."
            async with client.get(f"{url}/chat/openapi.json") as response:
                assert (await response.json())["servers"] == [{"url": "/chat"}]
            async with client.get(f"{url}/chat/no/such/thing") as response:
                assert response.status == 404 and (await response.json())["error"]["code"] == "not_found"

    run(scenario())


def test_the_cookie_is_for_the_place_where_it_is_mounted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            chat(tmp_path) as mine,
            host(starlette(mine)) as (url, client),
            client.get(f"{url}/chat/") as response,
        ):
            assert response.status == 200
            assert "Path=/chat;" in response.headers["Set-Cookie"]

    run(scenario())


NAMES = ("127.0.0.1", "localhost")


def by_middleware(chat: Assistant, _folder: Path) -> ASGIApp:
    app = FastAPI(lifespan=chat.lifespan)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(NAMES))
    app.mount("/chat", chat.asgi)
    theirs: ASGIApp = app
    return theirs


def by_options(chat: Assistant, folder: Path) -> ASGIApp:
    site = Site([chat], store=folder / "books.sqlite3", options=Options(hosts=frozenset(NAMES)))
    return Starlette(routes=[Mount("/chat", site)], lifespan=site.lifespan)


@pytest.mark.parametrize(("make", "status"), [(by_middleware, 400), (by_options, 421)])
def test_a_name_that_a_page_points_at_this_address_is_refused_where_names_are_told(
    tmp_path: Path, make: Callable[[Assistant, Path], ASGIApp], status: int
) -> None:
    """As docs/mount.md says: to the browser such a page is of the same origin."""

    async def scenario() -> None:
        async with chat(tmp_path) as mine, host(make(mine, tmp_path)) as (url, client):
            port = url.rpartition(":")[2]
            rebound = {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}
            async with client.post(f"{url}/chat/api/chat", json=QUESTION, headers=rebound) as response:
                assert response.status == status
            assert (await ask(client, f"{url}/chat"))[0] == 200

    run(scenario())


def test_a_path_that_a_stranger_wrote_cannot_change_the_cookie(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine:
            app = Starlette(routes=[Mount("/{tenant}/chat", mine.asgi)], lifespan=mine.lifespan)
            path = "a%3B%20Domain=evil.example%3B%0D%0A/chat/"
            async with host(app) as (url, client), client.get(f"{url}/{path}") as response:
                cookie = response.headers["Set-Cookie"]
                assert "domain" not in [part.partition("=")[0].strip().lower() for part in cookie.split(";")]

    run(scenario())


def test_a_proxy_with_a_prefix_of_its_own_is_named_by_root_path(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine, host(starlette(mine), root_path="/service") as (url, client):
            status, _ = await ask(client, f"{url}/chat")
            assert status == 200
            async with client.get(f"{url}/chat/openapi.json") as response:
                assert (await response.json())["servers"] == [{"url": "/service/chat"}]

    run(scenario())


def test_the_chat_alone_is_an_app_with_a_lifespan(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine, host(mine.asgi, lifespan="on") as (url, client):
            assert (await ask(client, url))[0] == 200

    run(scenario())


def test_a_lifespan_of_ones_own_goes_around(tmp_path: Path) -> None:
    async def scenario() -> None:
        seen = []

        async with chat(tmp_path) as mine:

            @asynccontextmanager
            async def own(app: Starlette) -> AsyncIterator[None]:
                seen.append("before")
                async with mine.lifespan(app):
                    yield
                seen.append("after")

            app = Starlette(routes=[Mount("/chat", mine.asgi)], lifespan=own)
            async with host(app, lifespan="on") as (url, client):
                assert (await ask(client, f"{url}/chat"))[0] == 200
        assert seen == ["before", "after"]

    run(scenario())


# Login


def test_the_hosts_own_login_says_who_asks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine:

            async def user(request: Request) -> str | None:
                return request.headers.get("x-user")

            app = starlette(mine)
            mine.identify = user  # also after it was mounted
            async with host(app) as (url, client):
                url += "/chat"
                status, told = await ask(client, url)
                assert (status, told["error"]["code"]) == (401, "unauthorized")
                assert (await ask(client, url, **{"x-user": ""}))[0] == 401
                assert (await ask(client, url, Authorization="Bearer " + "s" * 30))[0] == 401
                status, told = await ask(client, url, **{"x-user": "bo"})
                assert status == 200
                for name, there in (("bo", 200), ("al", 404)):
                    path = f"{url}/api/conversations/{told['conversation']}"
                    async with client.get(path, headers={"x-user": name}) as response:
                        assert response.status == there
                        assert "Set-Cookie" not in response.headers
                with closing(sqlite3.connect(tmp_path / "books.sqlite3")) as books:
                    names = [row[0] for row in books.execute("SELECT visitor FROM conversations")]
                assert names == ["bo"]  # as the host's own tools know them

    run(scenario())


@pytest.mark.parametrize(("status", "told"), [(403, "not you"), (503, "this is not possible now")])
def test_what_the_login_refuses_is_refused_with_its_own_status(tmp_path: Path, status: int, told: str) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine:

            async def user(_: Request) -> str | None:
                raise HTTPException(status, detail="not you")

            mine.identify = user
            async with host(starlette(mine)) as (url, client):
                got, error = await ask(client, f"{url}/chat")
                assert (got, error["error"]["message"]) == (status, told)

    run(scenario())


def test_a_login_that_breaks_lets_nobody_in_and_tells_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine:

            async def user(_: Request) -> str | None:
                raise ValueError("secret of the database")

            mine.identify = user
            async with host(starlette(mine)) as (url, client):
                status, told = await ask(client, f"{url}/chat")
                assert status == 500 and "secret" not in str(told)

    run(scenario())


def test_two_logins_on_one_site_are_refused(tmp_path: Path) -> None:
    async def one(_: Request) -> str | None:
        return "one"

    async def scenario() -> None:
        first, second = (Assistant(upstream="http://127.0.0.1:1", model="m", name=name) for name in ("a", "b"))
        second.identify = one
        site = Site([first, second], store=tmp_path / "books.sqlite3")
        with pytest.raises(SettingsError, match="login"):
            await site.start()
        site = Site([first, second], store=tmp_path / "books.sqlite3", identify=one)
        await site.start()
        await site.stop()

    run(scenario())


# Starting and ending


def test_it_can_be_used_again_in_a_new_event_loop(tmp_path: Path) -> None:
    """As test clients do, which run each request in a loop of its own."""
    with scripted_model(SCRIPTS) as server:
        mine = Assistant(upstream=server.url, model="scripted", store=tmp_path / "books.sqlite3")
        app = without_lifespan(mine)

        async def once() -> int:
            async with host(app) as (url, client):
                return (await ask(client, f"{url}/chat"))[0]

        assert [asyncio.run(once()) for _ in range(3)] == [200, 200, 200]


def test_two_event_loops_at_once_are_refused_in_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine, mine.lifespan(None):

            async def elsewhere() -> None:
                with pytest.raises(RuntimeError, match="another event loop"):
                    async with mine.lifespan(None):
                        pass

            await asyncio.to_thread(asyncio.run, elsewhere())

    run(scenario())


def test_it_can_be_asked_in_python_while_it_is_served_and_after(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine:
            async with host(starlette(mine)) as (url, client):
                assert (await ask(client, f"{url}/chat"))[0] == 200
                async with mine.ask("hello") as asked:
                    assert [event async for event in asked] and asked.text == "Hello."
            async with mine.ask("hello") as asked:
                assert [event async for event in asked] and asked.text == "Hello."

    run(scenario())


def test_what_is_open_already_cannot_be_shared(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chat(tmp_path) as mine, mine:
            with pytest.raises(RuntimeError, match="in use already"):
                await mine.asgi.start()  # type: ignore[attr-defined]  # a Site

    run(scenario())


PROGRAM = """
import sys
import uvicorn
from fastapi import FastAPI
from motamot import Assistant

chat = Assistant(upstream=sys.argv[1], model="scripted", store=sys.argv[2])
app = FastAPI(lifespan=chat.lifespan if sys.argv[4] == "lifespan" else None)
app.mount("/chat", chat.asgi)
uvicorn.run(app, port=int(sys.argv[3]), log_config=None, loop=sys.argv[5])
"""


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("lifespan", ["lifespan", "none"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_hosts_end_ends_what_runs_and_books_it(
    tmp_path: Path, lifespan: str, loop: str, number: signal.Signals
) -> None:
    """The host is a plain uvicorn, which waits for open streams as long as they last."""

    async def scenario(url: str, process: subprocess.Popen[str]) -> str:
        async with aiohttp.ClientSession() as client:
            for _ in range(400):
                try:
                    async with client.post(f"{url}/chat/api/chat", json=QUESTION) as response:
                        assert response.status == 200
                        break
                except aiohttp.ClientConnectorError:
                    assert process.poll() is None
                    await asyncio.sleep(0.05)
            async with client.post(f"{url}/chat/api/chat/stream", json={"message": "slow"}) as response:
                await response.content.readuntil(b"Wait")
                process.send_signal(number)
                async with asyncio.timeout(8):
                    rest = await response.text()
        return rest

    port = free_port()
    program = tmp_path / "app.py"
    program.write_text(textwrap.dedent(PROGRAM))
    with scripted_model(SCRIPTS) as server:
        command = [
            sys.executable,
            "-X",
            "dev",
            str(program),
            server.url,
            str(tmp_path / "b.sqlite3"),
            str(port),
            lifespan,
            loop,
        ]
        environ = {**os.environ, "PYTHONWARNINGS": "error"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ, cwd=tmp_path) as process:
            try:
                rest = run(scenario(f"http://127.0.0.1:{port}", process))
                _, said = process.communicate(timeout=8)
            finally:
                process.kill()
    assert '"outcome":"interrupted"' in rest
    assert "Traceback" not in said.replace("KeyboardInterrupt", "") or number is signal.SIGINT, said
    assert "ResourceWarning" not in said and "never retrieved" not in said, said
    with closing(sqlite3.connect(tmp_path / "b.sqlite3")) as books:
        outcomes = [row[0] for row in books.execute("SELECT outcome FROM exchanges ORDER BY started_at")]
        completions = [row[0] for row in books.execute("SELECT outcome FROM completions ORDER BY opened_at")]
    assert outcomes == completions == ["complete", "interrupted"]
