"""The chat under a path of somebody's site, and two nginx in a chain."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.support import (
    DEPLOY,
    Front,
    Reading,
    caddy_prefix,
    house,
    nginx,
    nginx_at,
    nginx_plain,
    nginx_prefix,
)
from tests.deploy.test_proxies import run, several_addresses, statuses
from tests.server.support import free_port

HELLO = {"default": "hello", "scripts": {"hello": "Hello."}}
GATED = [[{"say": ["Before."]}, {"gate": "curtain"}, {"say": [" After."]}]]


@pytest.mark.parametrize("front", [nginx_prefix, caddy_prefix], ids=["nginx", "caddy"])
def test_the_chat_is_whole_under_a_prefix(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, GATED) as h:
            client = h.client()
            async with client.get(f"{h.front.url}/") as response:
                assert await response.text() == "the shop"
            async with client.get(f"{h.front.url}/chat", allow_redirects=False) as response:
                assert response.status in (301, 302)
                assert response.headers["Location"] == "/chat/"
            async with client.get(f"{h.front.url}/chat/") as response:
                assert response.status == 200
                page = await response.text()
                cookie = response.headers["Set-Cookie"]
            assert "; Path=/chat/;" in cookie
            links = re.findall(r'(?:href|src)="([^"#]+)"', page)
            assert len(links) >= 2  # the widget and the icon
            for link in links:
                assert not link.startswith("/"), "an address that leaves the prefix"
                async with client.get(f"{h.front.url}/chat/{link}") as response:
                    assert response.status == 200, link
            url = f"{h.front.url}/chat"
            reading = await h.ask(client, url=url, key="question-1", headers={"Origin": h.front.url})
            await reading.until("Before.")
            h.model.release("curtain")
            assert await reading.to_end() == "Before. After."
            async with client.get(f"{url}/api/exchanges/question-1/events?after=0") as response:
                assert await Reading(response).to_end() == "Before. After."

    run(scenario())


@contextmanager
def untold(folder: Path, backend: int) -> Iterator[Front]:
    """An inner nginx that passes on, with a bare `proxy_pass`."""
    with nginx_plain(folder, backend) as front:
        yield front


@contextmanager
def told(folder: Path, backend: int) -> Iterator[Front]:
    """An inner nginx with deploy/nginx-motamot.conf."""
    port = free_port()
    location = f"proxy_pass http://127.0.0.1:{backend}; include {DEPLOY}/nginx-motamot.conf;"
    with nginx_at(folder, port, f"server {{ listen 127.0.0.1:{port}; location / {{ {location} }} }}") as front:
        yield front


@contextmanager
def behind_another(folder: Path, backend: int, *, inner: Any) -> Iterator[Front]:
    """An outer nginx, with nothing set, before an inner one."""
    with (
        inner(folder, backend) as front,
        nginx_plain(folder.with_name("outer"), front.port, settings="proxy_set_header Host $http_host;") as outer,
    ):
        yield outer


def test_a_single_nginx_that_nobody_told_of_streams_passes_them_as_they_come(tmp_path: Path) -> None:
    """motamot's streams say so themselves, by X-Accel-Buffering."""

    async def scenario() -> None:
        async with house(tmp_path, untold, GATED) as h:
            reading = await h.ask(h.client())
            await reading.until("Before.")
            h.model.release("curtain")
            assert await reading.to_end() == "Before. After."

    run(scenario())


def test_the_second_nginx_of_a_chain_holds_the_answer_back_where_the_first_does_not_pass_the_word_on(
    tmp_path: Path,
) -> None:
    """Why deploy/nginx-motamot.conf has its `proxy_pass_header`: without it this is what visitors get."""

    async def scenario() -> None:
        def front(folder: Path, backend: int) -> Any:
            return behind_another(folder, backend, inner=untold)

        async with house(tmp_path, front, GATED) as h:
            asking = asyncio.create_task(h.ask(h.client()))
            await h.model.wait_pieces(0, 1)
            done, _ = await asyncio.wait({asking}, timeout=1.5)
            assert not done, "not even the head has come"
            h.model.release("curtain")
            assert await (await asking).to_end() == "Before. After."  # all at once

    run(scenario())


def test_the_second_nginx_of_a_chain_passes_each_piece_where_the_first_is_ours(tmp_path: Path) -> None:
    async def scenario() -> None:
        def front(folder: Path, backend: int) -> Any:
            return behind_another(folder, backend, inner=told)

        async with house(tmp_path, front, GATED) as h:
            reading = await h.ask(h.client())
            await reading.until("Before.")
            h.model.release("curtain")
            assert await reading.to_end() == "Before. After."

    run(scenario())


@contextmanager
def https_before_another(folder: Path, backend: int) -> Iterator[Front]:
    """deploy/nginx.conf in front, and behind it an nginx that hands on what the first one says of https."""
    port = free_port()
    words = (DEPLOY / "nginx-motamot.conf").read_text()
    assert "X-Forwarded-Proto $scheme;" in words
    words = words.replace("X-Forwarded-Proto $scheme;", "X-Forwarded-Proto $http_x_forwarded_proto;")
    inner = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{backend};\n{words} }} }}"
    with nginx_at(folder.with_name("inner"), port, inner), nginx(folder, port) as front:
        yield front


def test_through_a_chain_the_visitors_address_and_https_arrive(tmp_path: Path) -> None:
    several_addresses()

    async def scenario() -> None:
        budget = "requests_per_hour = 2\naddress_factor = 1"
        async with house(tmp_path, https_before_another, HELLO, server=budget) as h:
            one, other = h.client("127.0.0.2", cookies=False), h.client("127.0.0.3", cookies=False)
            async with one.get(f"{h.front.url}/") as response:
                assert "; Secure" in response.headers["Set-Cookie"]
            reading = await h.ask(one, headers={"Origin": h.front.url})
            assert await reading.to_end() == "Hello."
            assert await statuses(one, h.front.url, 2, X_Forwarded_For="198.51.100.{number}") == [200, 429]
            assert await statuses(other, h.front.url, 1) == [200]

    run(scenario())
