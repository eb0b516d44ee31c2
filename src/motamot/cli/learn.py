"""`motamot learn`: the owner's pages into a file that an assistant answers from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.console import Exit, counted, harmless, say, write_result
from motamot.errors import InvalidRequest
from motamot.knowledge import bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from motamot.knowledge.file import Numbered
    from motamot.knowledge.learn import Learned

__all__ = ["learn"]

_TOLD = 200  # lines of each kind; a site of thousands of pages is not listed whole


def learn(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="DIR|SITEMAP|URL...", help="Folders, sitemaps, or single pages.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to make.")] = Path("help.db"),
    base: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where a folder's articles are on the web; {path} and {file} stand for theirs."
        ),
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further host whose pages may be read; repeatable.")
    ] = None,
    max_pages: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="Articles, at most.")
    ] = bounds.ARTICLES,
    max_seconds: Annotated[float, typer.Option(metavar="S", min=1, help="For all sites together, at most.")] = (
        bounds.SITE_SECONDS
    ),
) -> None:
    """Read Markdown and HTML articles into one file: knowledge = "help.db" has an assistant answer from it.

    The file then holds what the sources lead to and nothing else. Run again, it is brought up to date: each article
    keeps its number, a server that uses the file sees the new one with its next question, and what cannot be read
    leaves what was known of it.

    Exit status: 0 all was read, 1 something was left out that should not have been, 2 nothing was written.
    """
    from motamot.knowledge import learn as learning

    if base is not None and not base.startswith(("http://", "https://")):
        raise InvalidRequest("--base wants an address, as https://help.example/docs or https://help.example/{path}/")
    learned = asyncio.run(
        learning.learn(sources, output, base=base, hosts=host or (), most=max_pages, seconds=max_seconds)
    )
    write_result("".join(f"{line}\n" for line in _lines(learned)))
    for note in learned.notes[: _TOLD * 5]:
        say(f"motamot: {harmless(note.what)[:300]} {note.why}")
    if len(learned.notes) > _TOLD * 5:
        say(f"motamot: … and {len(learned.notes) - _TOLD * 5:,} more like these")
    say(_summary(learned, output))
    if learned.faults:
        raise typer.Exit(Exit.FAILED)


def _lines(learned: Learned) -> list[str]:
    """What has changed: a line for each article."""
    lines = [
        *_of("new", learned.new),
        *_of("changed", learned.changed),
        *_of("gone", learned.gone),
    ]
    return [harmless(line) for line in lines]


def _of(word: str, articles: Sequence[Numbered]) -> list[str]:
    lines = []
    for one in articles[:_TOLD]:
        where = one.article.url or one.article.key
        lines.append(f"{word:<8} [{one.number}] {one.article.title}  {where}")
    if len(articles) > _TOLD:
        lines.append(f"{word:<8} … and {len(articles) - _TOLD:,} more")
    return lines


def _summary(learned: Learned, output: Path) -> str:
    held = f"{counted(len(learned.articles), 'article')}, {counted(learned.passages, 'passage')}"
    if not learned.written:
        return f"{output} is up to date: {held}"
    same = len(learned.articles) - len(learned.new) - len(learned.changed)
    parts = {"new": len(learned.new), "changed": len(learned.changed), "unchanged": same, "gone": len(learned.gone)}
    told = ", ".join(f"{count:,} {word}" for word, count in parts.items() if count)
    return f"{output}: {held} ({told})"
