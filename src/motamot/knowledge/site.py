"""Articles on a web site: those that its sitemap lists, or that are named one by one."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urldefrag, urlsplit

from motamot.errors import InvalidRequest
from motamot.knowledge import bounds, html, markdown
from motamot.knowledge.article import Article, Page, Unreadable, address, clean
from motamot.knowledge.charset import decode
from motamot.knowledge.fetch import Fetched, Fetcher, Gone
from motamot.knowledge.sitemap import looks_like_one, parse
from motamot.model.inflate import Inflater

__all__ = ["Note", "Read", "read"]

_MARKUP = frozenset(("text/html", "application/xhtml+xml", ""))
_MARKDOWN = frozenset(("text/markdown", "text/x-markdown", "text/plain"))


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell of a page or a file: `what` it is, and `why` it is told. fault: something is wrong."""

    what: str
    why: str
    fault: bool = True


@dataclass(slots=True)
class Read:
    """What was found.

    articles: with the root that led to each. unsure: roots of which not all could be seen: what of them was known
    before, and was not seen now, may still be there. gone: keys of pages that are not there any more.
    """

    articles: list[tuple[Article, str]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)


async def read(
    named: Sequence[str], *, hosts: Sequence[str], known: Mapping[str, Article], most: int, seconds: float
) -> Read:
    """The articles behind the addresses `named`, each a page or a sitemap.

    hosts: further ones that are read. known: articles of an earlier time, by key. most: articles.
    Raises: InvalidRequest for what is no address.
    """
    for url in named:
        if not address(url):
            raise InvalidRequest(f"{url[:200]} is no address of a page: https://help.example/sitemap.xml is one")
    for host in hosts:
        if not address(f"https://{host}"):
            raise InvalidRequest(f"{host[:200]} is no name of a host: help.example is one")
    found = Read()
    async with Fetcher(named, hosts) as fetcher:
        reading = _Reading(fetcher, known, most, found)
        try:
            async with asyncio.timeout(seconds) as timeout:
                for root in named:
                    await reading.root(root)
        except TimeoutError:
            if not timeout.expired():
                raise
            found.unsure |= set(named)
            found.notes.append(Note("the rest", f"was not read within {seconds:g} seconds (--max-seconds)"))
    return found


@dataclass(slots=True)
class _Reading:
    fetcher: Fetcher
    known: Mapping[str, Article]
    most: int
    found: Read
    seen: set[str] = field(default_factory=set)

    async def root(self, root: str) -> None:
        """A page, or a sitemap with all that it lists."""
        try:
            fetched = await self.fetcher.get(urldefrag(root).url, most=bounds.SITEMAP_BYTES)
            body = _unpacked(fetched)
            if not looks_like_one(body):
                _check_size(body)
                self.seen.add(urldefrag(root).url)
                if urlsplit(root).path in ("", "/"):
                    listed = (await self.fetcher.robots(root)).sitemaps
                    whole = clean(listed[0]) if listed else "its sitemap, as /sitemap.xml"
                    self.found.notes.append(Note(root, f"is read as one page; for the site name {whole}", fault=False))
                await self._take(urldefrag(root).url, root, replace(fetched, body=body))
                return
            pages = await self._listed(body, root, 0)
        except Unreadable as error:
            self.found.unsure.add(root)
            self.found.notes.append(Note(root, error.why))
            return
        fresh = [url for url in dict.fromkeys(page.partition("#")[0] for page in pages) if url not in self.seen]
        await self._pages(fresh, root)

    async def _listed(self, body: bytes, root: str, deep: int) -> list[str]:
        sitemap = parse(body)
        pages = list(sitemap.pages)
        if sitemap.sitemaps and deep >= bounds.SITEMAPS_DEEP:
            raise Unreadable("is a list of lists of lists")
        for url in dict.fromkeys(sitemap.sitemaps):
            try:
                fetched = await self.fetcher.get(url, most=bounds.SITEMAP_BYTES)
                pages += await self._listed(_unpacked(fetched), root, deep + 1)
            except Unreadable as error:
                self.found.unsure.add(root)
                self.found.notes.append(Note(url, error.why))
        return pages

    async def _pages(self, urls: Sequence[str], root: str) -> None:
        taken: list[str] = []
        elsewhere: Counter[str] = Counter()
        for url in urls:
            if self.fetcher.takes(url):
                taken.append(url)
            else:
                host = clean(urlsplit(url).netloc[:100]) if address(url) else "no address of a page"
                elsewhere[host] += 1
        for host, count in list(elsewhere.items())[:20]:
            why = f"{count} listed page{'s' if count > 1 else ''} there {'are' if count > 1 else 'is'} not read"
            self.found.notes.append(Note(host, f"{why} (--host {host} would)" if "." in host else why, fault=False))
        room = max(self.most - len(self.seen), 0)
        if len(taken) > room:
            self.found.unsure.add(root)
            self.found.notes.append(Note(root, f"lists {len(taken):,} pages; {room:,} are read (--max-pages)"))
        self.seen.update(taken[:room])
        waiting = iter(taken[:room])

        async def work() -> None:
            for url in waiting:
                await self._page(url, root)

        begun = len(self.found.articles)
        async with asyncio.TaskGroup() as group:
            for _ in range(bounds.AT_ONCE):
                group.create_task(work())
        order = {url: number for number, url in enumerate(taken)}
        self.found.articles[begun:] = sorted(self.found.articles[begun:], key=lambda found: order[found[0].key])

    async def _page(self, url: str, root: str) -> None:
        known = self.known.get(url)
        try:
            fetched = await self.fetcher.get(
                url, etag=known.etag if known else "", modified=known.modified if known else ""
            )
        except Unreadable as error:
            self._left(url, root, error)
            return
        await self._take(url, root, fetched)

    async def _take(self, url: str, root: str, fetched: Fetched) -> None:
        known = self.known.get(url)
        if fetched.body is None:
            if known is None:
                self._left(url, root, Unreadable("answered 304 to what was not asked"))
            else:
                self.found.articles.append((known, root))
            return
        try:
            version = hashlib.sha256(fetched.body).hexdigest()
            if known is not None and known.version == version:
                self.found.articles.append((replace(known, etag=fetched.etag, modified=fetched.modified), root))
                return
            page, odd = await asyncio.to_thread(_page_of, fetched)
        except Unreadable as error:
            self._left(url, root, error)
            return
        self.found.notes += [Note(url, why, fault=False) for why in (*page.notes, *((odd,) if odd else ()))]
        self.found.articles.append(
            (
                Article(
                    key=url,
                    title=page.title or unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]) or url,
                    url=fetched.url,
                    section="/".join(unquote(urlsplit(url).path).strip("/").split("/")[:-1]),
                    passages=page.passages,
                    version=version,
                    etag=fetched.etag,
                    modified=fetched.modified,
                ),
                root,
            )
        )

    def _left(self, url: str, root: str, error: Unreadable) -> None:
        """A page that is not read. One that was known stays, unless the site itself says that it is gone."""
        known = self.known.get(url)
        if known is None or isinstance(error, Gone) or not error.fault:
            self.found.gone.add(url)
            self.found.notes.append(Note(url, error.why, error.fault))
            return
        self.found.articles.append((known, root))
        self.found.notes.append(Note(url, f"{error.why}; what was known of it stays", error.fault))


def _unpacked(fetched: Fetched) -> bytes:
    """The body of a file that is compressed itself, as `sitemap.xml.gz`."""
    body = fetched.body or b""
    if not body.startswith(b"\x1f\x8b"):
        return body
    inflater = Inflater.named("gzip")
    assert inflater is not None
    unpacked = bytearray()
    try:
        for piece in inflater.feed(body):
            unpacked += piece
            if len(unpacked) > bounds.SITEMAP_BYTES:
                raise Unreadable(f"has more than {bounds.SITEMAP_BYTES:,} bytes, unpacked")
    except zlib.error:
        raise Unreadable("is no whole gzip file") from None
    return bytes(unpacked)


def _check_size(body: bytes) -> None:
    if len(body) > bounds.PAGE_BYTES:
        raise Unreadable(f"has more than {bounds.PAGE_BYTES:,} bytes")


def _page_of(fetched: Fetched) -> tuple[Page, str | None]:
    """Raises: Unreadable."""
    body = fetched.body or b""
    name = urlsplit(fetched.url).path.lower()
    is_markdown = fetched.kind in _MARKDOWN and (
        fetched.kind != "text/plain" or name.endswith((".md", ".markdown", ".txt"))
    )
    if not is_markdown and fetched.kind not in _MARKUP:
        raise Unreadable(f"is {fetched.kind[:100]}, no article")
    text, odd = decode(body, fetched.charset)
    page = markdown.read(text) if is_markdown else html.read(text)
    if not page.passages:
        raise Unreadable("has no text: scripts may fill it in a browser")
    return page, odd
