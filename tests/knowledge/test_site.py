"""A web site's pages: those of its sitemap, again and again, and nothing that the site could make of it."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult

from motamot.errors import InvalidRequest, MotamotError
from motamot.knowledge import bounds, fetch, file, library
from motamot.knowledge.learn import Learned, learn
from tests.knowledge.support import Site, html, numbers, run, site


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "help.db"


async def read(output: Path, *sources: str, **options: Any) -> Learned:
    return await learn(sources, output, **options)


def keys(learned: Learned, made: Site) -> list[str]:
    return sorted(key.removeprefix(made.url) for key in numbers(learned))


def told(learned: Learned, made: Site) -> list[str]:
    return sorted(f"{note.what.removeprefix(made.url)} {note.why}" for note in learned.notes)


def body(content: bytes, **headers: str) -> web.Response:
    return web.Response(body=content, headers={"Content-Type": "text/html", **headers})


def test_the_pages_of_a_sitemap_are_read_with_their_addresses(output: Path) -> None:
    async def scenario() -> None:
        async with site(
            {"/help/a": html("Réserver", "Une page."), "/help/b": html("Refunds", "Another page.")}
        ) as made:
            sitemap = made.sitemap("/help/a", "/help/b", "/help/a#part")
            told = await read(output, sitemap)
            assert [(one.article.title, one.article.url) for one in told.articles] == [
                ("Réserver", f"{made.url}/help/a"),
                ("Refunds", f"{made.url}/help/b"),
            ]
            assert sorted(made.paths()) == ["/help/a", "/help/b", "/robots.txt", "/sitemap.xml"]
            assert {request.headers["User-Agent"].partition("/")[0] for request in made.asked} == {"motamot"}
            assert library.search(output, "reserver")[0].url == f"{made.url}/help/a"

    run(scenario())


def test_an_index_of_sitemaps_is_followed_also_compressed(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One."), "/b": html("B", "Two.")}) as made:
            made.sitemap("/a", name="/one.xml")
            made.sitemap("/b", name="/two.xml")
            two = made.pages.pop("/two.xml").body
            made.pages["/two.xml.gz"] = body(gzip.compress(two), **{"Content-Type": "application/x-gzip"})
            listed = "".join(f"<sitemap><loc>{made.url}/{name}</loc></sitemap>" for name in ("one.xml", "two.xml.gz"))
            made.pages["/index.xml"] = body(f"<sitemapindex>{listed}</sitemapindex>".encode())
            assert keys(await read(output, f"{made.url}/index.xml"), made) == ["/a", "/b"]

    run(scenario())


def test_single_pages_and_markdown_are_read(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One.")}) as made:
            made.pages["/b.md"] = body(b"# B\n\nTwo.", **{"Content-Type": "text/markdown; charset=utf-8"})
            found = await read(output, f"{made.url}/a", f"{made.url}/b.md")
            assert [one.article.title for one in found.articles] == ["A", "B"]

    run(scenario())


def test_of_a_sites_first_page_the_way_to_all_of_them_is_told(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/": html("Home", "Welcome.")}) as made:
            found = await read(output, f"{made.url}/")
            assert told(found, made) == ["/ is read as one page; for the site name its sitemap, as /sitemap.xml"]
            made.pages["/robots.txt"] = body(f"Sitemap: {made.url}/all.xml".encode())
            found = await read(output, f"{made.url}/")
            assert told(found, made) == [f"/ is read as one page; for the site name {made.url}/all.xml"]
            assert found.faults == 0

    run(scenario())


def test_unchanged_pages_are_not_sent_or_not_taken_apart_again(output: Path) -> None:
    async def scenario() -> None:
        async def tagged(request: web.Request) -> web.StreamResponse:
            if request.headers.get("If-None-Match") == '"v1"':
                return web.Response(status=304)
            return web.Response(text=html("A", "One."), content_type="text/html", headers={"ETag": '"v1"'})

        async with site({"/a": tagged, "/b": html("B", "Two.")}) as made:
            sitemap = made.sitemap("/a", "/b")
            first = await read(output, sitemap)
            again = await read(output, sitemap)
            assert again.written is False and numbers(again) == numbers(first)
            made.pages["/b"] = html("B", "Two, and more.")
            changed = await read(output, sitemap)
            assert [one.article.title for one in changed.changed] == ["B"] and numbers(changed) == numbers(first)

    run(scenario())


def test_what_is_gone_is_removed_and_what_is_only_out_of_reach_stays(output: Path) -> None:
    async def scenario() -> None:
        pages = {f"/{name}": html(name, f"Text of {name}.") for name in "abcd"}
        async with site(pages) as made:
            sitemap = made.sitemap("/a", "/b", "/c", "/d")
            await read(output, sitemap)
            made.sitemap("/a", "/b", "/c")
            made.pages["/b"] = web.Response(status=500)
            del made.pages["/c"]
            found = await read(output, sitemap)
            assert keys(found, made) == ["/a", "/b"]
            assert told(found, made) == ["/b answered 500; what was known of it stays", "/c answered 404"]
            assert [one.article.title for one in found.gone] == ["c", "d"] and found.faults == 2

    run(scenario())


def test_a_newer_reader_reads_all_again_and_keeps_what_is_out_of_reach(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async def tagged(request: web.Request) -> web.StreamResponse:
            assert "If-None-Match" not in request.headers
            return web.Response(text=html("A", "One."), content_type="text/html", headers={"ETag": '"v1"'})

        async with site({"/a": tagged, "/b": html("B", "Two.")}) as made:
            sitemap = made.sitemap("/a", "/b")
            await read(output, sitemap)
            monkeypatch.setattr(file, "READER", "a newer one")
            made.pages["/b"] = web.Response(status=500)
            found = await read(output, sitemap)
            assert keys(found, made) == ["/a", "/b"] and found.written

    run(scenario())


def test_a_sitemap_that_cannot_be_had_removes_nothing(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One."), "/b": html("B", "Two.")}) as made:
            sitemap = made.sitemap("/a", "/b")
            await read(output, sitemap)
            made.pages["/sitemap.xml"] = web.Response(status=503)
            found = await read(output, sitemap, f"{made.url}/a")
            assert keys(found, made) == ["/a", "/b"] and found.faults == 1

    run(scenario())


def test_a_site_that_cannot_be_reached_is_an_error_and_the_file_stays(output: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(MotamotError, match="cannot be reached"):
            await read(output, f"http://127.0.0.1:{port}/sitemap.xml")
        assert not output.exists()
        with pytest.raises(InvalidRequest, match="no address"):
            await read(output, "ftp://help.example/")

    run(scenario())


# What robots.txt and the owner allow


def test_robots_txt_is_followed(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One."), "/private/b": html("B", "Two.")}) as made:
            made.pages["/robots.txt"] = body(b"User-agent: *\nDisallow: /private\n")
            found = await read(output, made.sitemap("/a", "/private/b"))
            assert keys(found, made) == ["/a"] and "/private/b" not in made.paths()
            assert told(found, made) == ["/private/b is not to be read by programs, as robots.txt says"]
            assert found.faults == 0

    run(scenario())


def test_where_robots_txt_cannot_be_had_for_a_fault_nothing_is_read(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One."), "/robots.txt": web.Response(status=500)}) as made:
            with pytest.raises(MotamotError, match=r"is not read: robots\.txt answered 500"):
                await read(output, made.sitemap("/a"))
            made.pages["/robots.txt"] = web.Response(status=403)
            assert keys(await read(output, made.sitemap("/a")), made) == ["/a"]
            made.pages["/robots.txt"] = web.Response(status=500)
            found = await read(output, made.sitemap("/a"))
            assert keys(found, made) == ["/a"] and found.faults == 1, "what was known stays"

    run(scenario())


def test_only_the_named_host_and_port_are_read_unless_more_are_named(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One.")}) as made, site({"/b": html("B", "Two.")}) as other:
            sitemap = made.sitemap("/a", f"{other.url}/b", "http://169.254.169.254/latest", "file:///etc/passwd")
            found = await read(output, sitemap)
            assert keys(found, made) == ["/a"] and other.asked == []
            assert any("169.254.169.254 1 listed page there is not read" in line for line in told(found, made))
            made.pages["/a"] = web.Response(status=302, headers={"Location": f"{other.url}/b"})
            found = await read(output, made.sitemap("/a"), sitemap)
            assert other.asked == [] and any("which is not read (--host" in line for line in told(found, made))
            host = other.url.removeprefix("http://")
            assert keys(await read(output, sitemap, hosts=[host]), other) == [f"{made.url}/a"]

    run(scenario())


@pytest.mark.parametrize(
    "wrong",
    [
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://127.0.0.1:0/",
        "http://[::1",
        "http://[::1#x",
        "http://1\uff0f2/",
    ],
)
def test_a_listed_address_that_is_none_costs_a_line_and_none_of_the_others(output: Path, wrong: str) -> None:
    async def scenario() -> None:
        async with site({"/a": html("A", "One.")}) as made:
            sitemap = made.sitemap("/a", wrong)
            found = await read(output, sitemap)
            assert keys(found, made) == ["/a"] and len(found.notes) == 1
            made.sitemap("/a")
            listed = "".join(f"<sitemap><loc>{one}</loc></sitemap>" for one in (sitemap, wrong))
            made.pages["/index.xml"] = web.Response(text=f"<sitemapindex>{listed}</sitemapindex>")
            found = await read(output, f"{made.url}/index.xml")
            assert keys(found, made) == ["/a"] and told(found, made) == [f"{wrong} is no address of a page"]
            for source, hosts in ((wrong, []), (made.url, ["help.example:x"])):
                with pytest.raises(InvalidRequest):
                    await read(output, source, hosts=hosts)

    run(scenario())


def test_redirections_are_followed_to_an_end_and_within_the_host(output: Path) -> None:
    async def scenario() -> None:
        async with site({"/new": html("A", "One.")}) as made:
            made.pages["/old"] = web.Response(status=301, headers={"Location": "/new#part"})
            made.pages["/loop"] = web.Response(status=302, headers={"Location": "/loop"})
            made.pages["/script"] = web.Response(status=302, headers={"Location": "javascript:alert(1)"})
            found = await read(output, made.sitemap("/old", "/loop", "/script"))
            assert [one.article.url for one in found.articles] == [f"{made.url}/new"]
            assert [line.partition(" ")[2] for line in told(found, made)] == [
                "is redirected more than 5 times",
                "leads to no address of a page",
            ]

    run(scenario())


def test_a_name_that_turns_to_the_own_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[str]] = [["93.184.215.14"], ["127.0.0.1"], ["93.184.215.14", "10.0.0.1"]]

    async def resolve(self: object, host: str, port: int = 0, family: object = None) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in answers.pop(0)
        ]

    async def scenario() -> None:
        resolver = fetch._Resolver(frozenset(("help.example",)))
        monkeypatch.setattr(type(resolver._inner), "resolve", resolve)
        assert [one["host"] for one in await resolver.resolve("help.example")] == ["93.184.215.14"]
        with pytest.raises(OSError, match="own network"):
            await resolver.resolve("help.example")
        assert [one["host"] for one in await resolver.resolve("help.example")] == ["93.184.215.14"]
        answers.append(["192.168.1.7"])
        own = fetch._Resolver(frozenset(("help.intern",)))
        assert [one["host"] for one in await own.resolve("help.intern")] == ["192.168.1.7"], "the owner typed it"
        await resolver.close()
        await own.close()

    run(scenario())


# Pages that do harm


def test_hostile_pages_cost_a_line_each_and_none_of_the_others(output: Path) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        await response.prepare(request)
        while True:
            await response.write(b"<p>and so on</p>" * 4_096)

    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"<p>half")
        assert request.transport is not None
        request.transport.close()
        return response

    async def scenario() -> None:
        bomb = gzip.compress(b"<p>" + b"a" * 50_000_000)
        async with site({"/good": html("Good", "A good page."), "/endless": endless, "/cut": cut}) as made:
            made.pages |= {
                "/bomb": body(bomb, **{"Content-Encoding": "gzip"}),
                "/false": body(b"not compressed", **{"Content-Encoding": "gzip"}),
                "/brotli": body(b"x", **{"Content-Encoding": "br"}),
                "/deep": body(b"<div>" * 300_000 + b"deep down"),
                "/picture": body(b"\x89PNG", **{"Content-Type": "image/png"}),
                "/binary": body(bytes(range(256)) * 10),
                "/scripts": body(b"<div id=root></div><script>start()</script>"),
                "/charset": body("réservé : l'été".encode("latin-1"), **{"Content-Type": "text/html; charset=utf-8"}),
                "/klingon": body("réservé : l'hiver".encode(), **{"Content-Type": "text/html; charset=klingon"}),
            }
            found = await read(output, made.sitemap(*(page for page in made.pages if page != "/sitemap.xml")))
            assert keys(found, made) == ["/charset", "/deep", "/good", "/klingon"]
            assert told(found, made) == [
                "/binary is no text",
                "/bomb has more than 4,000,000 bytes",
                "/brotli is compressed in a way that was not asked for",
                "/charset says that it is in utf-8, and was read as Windows-1252",
                "/cut cannot be had: ClientPayloadError",
                "/endless has more than 4,000,000 bytes",
                "/false is not compressed as it says",
                "/klingon says that it is in klingon, and was read as UTF-8",
                "/picture is image/png, no article",
                "/scripts has no text: scripts may fill it in a browser",
            ]
            assert [one.article.passages[0].text for one in found.articles if "charset" in one.article.key] == [
                "réservé : l'été"
            ]

    run(scenario())


def test_a_bomb_of_a_sitemap_is_refused(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SITEMAP_BYTES", 1_000_000)

    async def scenario() -> None:
        async with site() as made:
            packed = zlib.compressobj(wbits=31)
            made.pages["/s.xml.gz"] = body(packed.compress(b"<urlset>" + b" " * 20_000_000) + packed.flush())
            with pytest.raises(MotamotError, match="more than 1,000,000 bytes, unpacked"):
                await read(output, f"{made.url}/s.xml.gz")

    run(scenario())


def test_a_page_that_does_not_come_is_waited_for_no_longer_than_the_bound(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "FETCH_SECONDS", 0.3)

    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async def scenario() -> None:
        async with site({"/a": html("A", "One."), "/never": never}) as made:
            found = await read(output, made.sitemap("/a", "/never"))
            assert keys(found, made) == ["/a"] and told(found, made) == ["/never did not come within 0.3 seconds"]

    run(scenario())


def test_the_bounds_of_pages_and_seconds_leave_what_was_known(output: Path) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    async def scenario() -> None:
        async with site({f"/{name}": html(name, f"Text of {name}.") for name in "abc"}) as made:
            sitemap = made.sitemap("/a", "/b", "/c")
            assert len((await read(output, sitemap)).articles) == 3
            found = await read(output, sitemap, most=2)
            assert keys(found, made) == ["/a", "/b", "/c"] and "lists 3 pages; 2 are read" in told(found, made)[0]
            made.pages["/b"] = slow
            found = await read(output, sitemap, seconds=0.5)
            assert keys(found, made) == ["/a", "/b", "/c"]
            assert told(found, made) == ["the rest was not read within 0.5 seconds (--max-seconds)"]

    run(scenario())


def test_a_busy_site_is_asked_once_more(output: Path) -> None:
    times = 0

    async def busy(request: web.Request) -> web.StreamResponse:
        nonlocal times
        times += 1
        if times == 1:
            return web.Response(status=429, headers={"Retry-After": "0"})
        return web.Response(text=html("A", "One."), content_type="text/html")

    async def scenario() -> None:
        async with site({"/a": busy}) as made:
            assert keys(await read(output, made.sitemap("/a")), made) == ["/a"] and times == 2

    run(scenario())
