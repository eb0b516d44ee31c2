"""The dashboard behind a proxy, under a path that the server knows nothing of, and mounted in somebody's app."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from motamot.assistant import Assistant
from motamot.server.options import Options
from motamot.server.site import Site
from tests.dashboard.support import Browser, signed_in
from tests.deploy.support import caddy_prefix, house, nginx_prefix
from tests.server.reading import run
from tests.server.support import OPERATOR_KEY, running

HELLO = {"default": "hello", "scripts": {"hello": "Hello."}}


@dataclass
class At:
    url: str


async def all_of_it(browser: Browser) -> None:
    """Every page of the navigation is found, and the way out."""
    page = await browser.get("/dashboard")
    assert page.url == f"{browser.served.url}/dashboard"
    for name in ("conversations", "figures", "reconcile", "dashboard$"):
        page = await browser.get(page.link(name))
        assert page.status == 200 and "Sign out" in page.text
    page = await browser.get((await browser.get("/dashboard/conversations")).link("exchanges/"))
    assert page.status == 200 and "Exchange" in page.text
    async with browser.client.get(f"{browser.served.url}/dashboard/dashboard.css") as response:
        assert response.status == 200
    french = await browser.get(page.link("language"))
    assert french.url == page.url and "Se déconnecter" in french.text
    assert "déconnecté" in (await browser.send(french, "sign-out")).text


@pytest.mark.parametrize("front", [nginx_prefix, caddy_prefix], ids=["nginx", "caddy"])
def test_it_is_whole_under_a_prefix_that_the_proxy_takes_off(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, HELLO) as h:
            url = f"{h.front.url}/chat"
            async with h.client().post(f"{url}/api/chat", json={"message": "hello"}) as response:
                assert response.status == 200
            async with await signed_in(At(url)) as browser:
                paths = {cookie["path"] for cookie in browser.client.cookie_jar}
                assert paths == {"/chat/dashboard"}
                await all_of_it(browser)

    run(scenario())


def test_it_is_whole_where_it_is_mounted_in_an_app(tmp_path: Path) -> None:
    async def scenario() -> None:
        chat = Assistant(upstream="http://127.0.0.1:1/v1", model="none")
        site = Site([chat], store=tmp_path / "books.sqlite3", options=Options(operator_key=OPERATOR_KEY))
        app = Starlette(routes=[Mount("/help", app=site)], lifespan=site.lifespan)
        async with running(site, around=lambda _: app) as (_, url), Browser(At(f"{url}/help")) as browser:
            async with browser.client.post(f"{url}/help/api/chat", json={"message": "hello"}) as response:
                assert response.status == 502
            await browser.sign_in()
            paths = {cookie.key: cookie["path"] for cookie in browser.client.cookie_jar}
            assert paths["motamot_operator"] == "/help/dashboard" == paths["motamot_device"]
            await all_of_it(browser)

    run(scenario())
