"""`motamot learn`: what it says, where it says it, and how it ends."""

from __future__ import annotations

import asyncio
import signal

import pytest
from aiohttp import web

from tests.cli.support import Place
from tests.knowledge.support import html, run, site, write


def test_it_tells_what_it_read_and_what_has_changed(place: Place) -> None:
    root = write(place.folder, {"a.md": "# One\n\ntext", "b.md": "# Two\n\ntext two"})
    done = place.run("learn", "help", "--base", "https://bus.example")
    assert (done.status, done.out.decode(), done.err) == (
        0,
        "new      [1] One  https://bus.example/a\nnew      [2] Two  https://bus.example/b\n",
        "help.db: 2 articles, 2 passages (2 new)\n",
    )
    done = place.run("learn", "help", "--base", "https://bus.example")
    assert (done.status, done.out, done.err) == (0, b"", "help.db is up to date: 2 articles, 2 passages\n")
    (root / "a.md").write_text("# One\n\nother text")
    (root / "b.md").unlink()
    (root / "c.md").write_text("# Three\n\ntext three")
    done = place.run("learn", "help", "-o", "help.db")
    assert done.out.decode() == (
        "new      [3] Three  help/c.md\nchanged  [1] One  help/a.md\ngone     [2] Two  https://bus.example/b\n"
    )
    assert done.err == "help.db: 2 articles, 2 passages (1 new, 1 changed, 1 gone)\n"


def test_what_cannot_be_read_is_told_and_ends_with_1(place: Place) -> None:
    write(place.folder, {"a.md": "# One\n\ntext", "bad.md": b"\x00\x01", "draft.md": "---\ndraft: true\n---\ntext"})
    done = place.run("learn", "help")
    assert done.status == 1
    assert done.err.splitlines() == [
        "motamot: help/bad.md is no text",
        "motamot: help/draft.md is a draft, as its frontmatter says",
        "help.db: 1 article, 1 passage (1 new)",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing",), "there is no folder or file nothing"),
        (("help", "--base", "bus.example"), "--base wants an address"),
        (("help", "-o", "notes.txt"), "notes.txt is not a file that `motamot learn` has made"),
        (("empty",), "no article could be read; nothing was written"),
        (("http://127.0.0.1:1/sitemap.xml",), "cannot be reached"),
        (("ftp://help.example/",), "is no address of a page"),
        ((), "Missing argument"),
        (("help", "--max-pages", "0"), "max-pages"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_ends_with_2(place: Place, arguments: tuple[str, ...], told: str) -> None:
    write(place.folder)
    (place.folder / "empty").mkdir()
    (place.folder / "notes.txt").write_text("mine")
    done = place.run("learn", *arguments)
    assert done.status == 2 and told in done.err, done.err
    assert "Traceback" not in done.err and not (place.folder / "help.db").exists()
    assert (place.folder / "notes.txt").read_text() == "mine"


def test_no_control_character_of_a_page_reaches_the_terminal(place: Place) -> None:
    write(
        place.folder,
        {"a.html": "<title>\x1b[31mRed\u202e</title><p>\x1b]0;owned\x07text of the page", "b\x1b.md": b"\x00"},
    )
    done = place.run("learn", "help")
    assert b"\x1b" not in done.out and "\x1b" not in done.err and "\u202e" not in done.out.decode()


def test_a_site_is_read_by_its_sitemap(place: Place) -> None:
    async def scenario() -> None:
        async with site({"/a": html("One", "A page.")}) as made:
            sitemap = made.sitemap("/a", "/b")
            done = await asyncio.to_thread(place.run, "learn", sitemap, "-o", "site.db")
            assert done.out.decode() == f"new      [1] One  {made.url}/a\n"
            assert done.err == f"motamot: {made.url}/b answered 404\nsite.db: 1 article, 1 passage (1 new)\n"
            assert done.status == 1

    run(scenario())


def test_interrupted_it_leaves_the_file_as_it_was(place: Place) -> None:
    write(place.folder)
    place.run("learn", "help")
    before = (place.folder / "help.db").read_bytes()

    async def scenario() -> None:
        asked = asyncio.Event()

        async def never(request: web.Request) -> web.StreamResponse:
            asked.set()
            await asyncio.sleep(20)
            return web.Response()

        async with site({"/never": never}) as made:
            with place.start("learn", "help", f"{made.url}/never") as running:
                await asked.wait()
                running.process.send_signal(signal.SIGINT)
                status = await asyncio.to_thread(running.process.wait, 20)
        assert status == 130

    run(scenario())
    assert (place.folder / "help.db").read_bytes() == before
    assert sorted(path.name for path in place.folder.iterdir()) == ["help", "help.db"]
