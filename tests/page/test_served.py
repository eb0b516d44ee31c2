"""The page as it is served: its headers, its files, its cookie, and under any prefix."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp, Message

from motamot.assistant import Assistant
from motamot.limits import Limits
from motamot.model.recorded import RecordedModel
from motamot.server.options import Options
from motamot.server.run import Server, listen
from motamot.server.site import Site
from tests.page.support import Chromium, opened

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "src" / "motamot" / "server"
SOURCES = ROOT / "widget" / "src"


class Got:
    """A response of an app that was called without a network."""

    def __init__(self, messages: list[Message]) -> None:
        self.status: int = messages[0]["status"]
        self.fields = [(name.decode(), value.decode()) for name, value in messages[0]["headers"]]
        self.headers = dict(self.fields)
        self.body = b"".join(message.get("body", b"") for message in messages[1:])


async def get(app: ASGIApp, path: str, *, method: str = "GET", root: str = "", query: str = "", **headers: str) -> Got:
    fields = {"host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root + path,
        "raw_path": (root + path).encode(),
        "query_string": query.encode(),
        "root_path": root,
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 80),
    }
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return Got(messages)


def served(
    tmp_path: Path, play: Callable[[Site], Awaitable[None]], *names: str, options: Options = Options(), **site: Any
) -> None:
    async def scenario() -> None:
        chats = [
            Assistant(name=name, upstream=RecordedModel(["Yes."], "a test", pace=0)) for name in names or ("default",)
        ]
        made = Site(chats, store=tmp_path / "books.sqlite3", options=options, **site)
        async with made.lifespan():
            await play(made)

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_the_page_lets_nothing_in_but_its_own_files(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        got = await get(site, "/")
        assert got.status == 200 and got.headers["content-type"] == "text/html; charset=utf-8"
        policy = {name: rest for name, _, rest in (part.partition(" ") for part in _policy(got).split("; "))}
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == policy["img-src"] == "'self'"
        assert "style-src" not in policy, "its styles are none of the page's text"
        assert policy["base-uri"] == policy["form-action"] == "'none'" and policy["frame-ancestors"] == "'self'"
        assert "unsafe" not in _policy(got) and "*" not in _policy(got)
        assert got.headers["x-content-type-options"] == "nosniff" and got.headers["x-frame-options"] == "SAMEORIGIN"
        assert got.headers["cache-control"] == "no-store" and got.headers["referrer-policy"] == "same-origin"
        told = await get(site, "/", method="HEAD")
        assert told.status == 200 and "set-cookie" in told.headers

    served(tmp_path, play)


def _policy(got: Got) -> str:
    return str(got.headers["content-security-policy"])


def test_a_new_visitor_gets_a_cookie_and_a_known_one_keeps_it(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        new = (await get(site, "/", root="/chat")).headers["set-cookie"]
        assert "Path=/chat" in new and "HttpOnly" in new and "SameSite=Lax" in new
        assert new != (await get(site, "/", root="/chat")).headers["set-cookie"]
        assert "set-cookie" not in (await get(site, "/", cookie=new.partition(";")[0])).headers

    served(tmp_path, play)


def test_where_the_host_knows_its_users_the_page_sets_no_cookie(tmp_path: Path) -> None:
    async def nobody(_request: Request) -> str | None:
        return None

    async def play(site: Site) -> None:
        got = await get(site, "/")
        assert got.status == 200 and "set-cookie" not in got.headers

    served(tmp_path, play, identify=nobody)


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "\"'&<>", "a\" onload='x", "${title} $page", "é"]
)
def test_what_an_assistant_is_called_stays_text(tmp_path: Path, name: str) -> None:
    async def play(site: Site) -> None:
        text = (await get(site, "/")).body.decode()
        assert text.count("<script") == 1 and text.count("<title>") == 1
        assert f"<title>{html.escape(name)}</title>" in text
        other = (await get(site, "/", query="assistant=other")).body.decode()
        assert "<title>other</title>" in other

    served(tmp_path, play, name, "other")


def test_the_page_and_the_widget_are_told_who_answers(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        got = await get(site, "/api/widget")
        assert got.status == 200 and got.headers["content-type"] == "application/json"
        assert json.loads(got.body) == {
            "assistants": [{"name": name, "title": name, "marks": ["recorded"]} for name in ("<b>", "other")],
            "heartbeat": 15,
            "message_bytes": Limits().message_bytes,
        }
        assert got.headers["cache-control"] == "private, max-age=60" and got.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in got.headers

    served(tmp_path, play, "<b>", "other")


def test_a_page_of_another_site_is_told_of_the_assistants_that_it_may_ask(tmp_path: Path) -> None:
    async def scenario() -> None:
        chats = [
            Assistant(name=name, origins=origins, upstream=RecordedModel(["Yes."], "a test", pace=0))
            for name, origins in (("ours", ["https://a.example"]), ("theirs", ["https://b.example"]))
        ]
        site = Site(chats, store=tmp_path / "books.sqlite3")
        async with site.lifespan():
            for origin, names in (("https://a.example", ["ours"]), ("https://b.example", ["theirs"])):
                got = await get(site, "/api/widget", origin=origin)
                assert [one["name"] for one in json.loads(got.body)["assistants"]] == names
                assert got.headers["access-control-allow-origin"] == origin and "set-cookie" not in got.headers
            assert (await get(site, "/api/widget", origin="https://c.example")).status == 403
            assert (await get(site, "/api/widget", sec_fetch_site="cross-site")).status == 403
            assert len(json.loads((await get(site, "/api/widget")).body)["assistants"]) == 2

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_visitor_of_a_page_that_shows_the_element_is_known_before_the_first_question(tmp_path: Path) -> None:
    """Posted again because its answer was lost, a question comes from the same visitor, and is not asked twice."""

    async def play(site: Site) -> None:
        new = await get(site, "/api/widget", sec_fetch_site="same-origin")
        assert "motamot_visitor=" in new.headers["set-cookie"]
        known = await get(site, "/api/widget", cookie=new.headers["set-cookie"].partition(";")[0])
        assert "set-cookie" not in known.headers
        assert "set-cookie" not in (await get(site, "/api/widget", authorization="Bearer " + "s" * 22)).headers

    served(tmp_path, play)


def test_any_site_may_load_the_widget_and_asks_again_only_when_it_changes(tmp_path: Path) -> None:
    script, image = "text/javascript; charset=utf-8", "image/svg+xml"
    paths = {
        "/widget.js": ("widget/widget.js", script),
        "/widget.mjs": ("widget/motamot.mjs", script),
        "/icon.svg": ("page/icon.svg", image),
    }

    async def play(site: Site) -> None:
        for path, (name, kind) in paths.items():
            got = await get(site, path, origin="https://anybody.example", sec_fetch_site="cross-site")
            assert got.status == 200 and got.body == (SERVER / name).read_bytes()
            assert got.headers["content-type"] == kind and got.headers["x-content-type-options"] == "nosniff"
            assert got.headers["access-control-allow-origin"] == "*" and "set-cookie" not in got.headers
            assert got.headers["cross-origin-resource-policy"] == "cross-origin"
            again = await get(site, path, if_none_match=got.headers["etag"])
            assert again.status == 304 and again.body == b""

    served(tmp_path, play)


@pytest.mark.parametrize(
    "path", ["/page/index.html", "/widget/widget.js", "/widget.js/", "/..%2fsite.py", "/motamot.mjs"]
)
def test_nothing_else_is_served(tmp_path: Path, path: str) -> None:
    async def play(site: Site) -> None:
        got = await get(site, path)
        assert got.status == 404 and json.loads(got.body)["error"]["code"] == "not_found"

    served(tmp_path, play)


def test_a_host_that_is_not_ours_gets_no_page(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        for path in ("/", "/widget.js", "/api/widget"):
            assert (await get(site, path, host="evil.example")).status == 421

    served(tmp_path, play, options=Options(hosts=frozenset({"chat.example"})))


def test_mounted_in_another_app_the_page_works_under_its_prefix(chromium: Chromium, tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        one = Assistant(upstream=RecordedModel(["From here."], "a test", pace=0), store=tmp_path / "books.sqlite3")
        app = Starlette(routes=[Mount("/deep/chat", app=one.asgi)], lifespan=one.lifespan)
        listening = listen("127.0.0.1", 0)
        ready = asyncio.Event()
        site = one.asgi
        assert isinstance(site, Site)
        server = Server(site, ready=ready.set)
        server.config.app = app
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await asyncio.wait_for(ready.wait(), 10)
        try:
            root = f"http://127.0.0.1:{listening.getsockname()[1]}/deep/chat"
            async with opened(browser, root + "/", go=False) as reader:
                await reader.page.goto(root)  # the host adds the slash
                await reader.ask("Hello")
                await reader.shows("From here.")
                await reader.page.reload()
                await reader.shows("From here.")
                assert all(url.startswith(root) for url in reader.requests)
                await expect(reader.page.locator("#send")).to_have_css("border-radius", "50%")
        finally:
            server.end()
            await serving

    chromium.run(scenario)


def test_the_page_about_the_page_tells_its_limits() -> None:
    """docs/page.md names the waits and sizes that the scripts have."""
    told = (ROOT / "docs" / "page.md").read_text("utf-8")
    follow = (SOURCES / "follow.ts").read_text("utf-8")
    assert "const PAUSES = [0.5, 1, 2, 4, 8, 16, 32, 64];" in follow and "0.5, 1, 2, 4, 8, 16, 32 and 64 s" in told
    assert "const STOP_PAUSES = [0.5, 1, 2, 4, 8];" in follow and "again after 0.5, 1, 2, 4 and 8 s" in told
    assert "const SILENT_BEATS = 2.5;" in follow and "silent for 2.5 heartbeats" in told
    assert "const AFTER_MOST = 30;" in follow and "30 s of it at most" in told
    assert "EVENT_CHARACTERS = 1 << 25" in (SOURCES / "decoder.ts").read_text("utf-8") and f"{1 << 25:,}" in told
    assert "const UNSENT = 60_000;" in (SOURCES / "chat.ts").read_text("utf-8") and "older than a minute" in told
