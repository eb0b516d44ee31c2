"""Pages over HTTP: from the hosts that the owner named and no other, each of them bounded in bytes and time."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urldefrag, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from motamot import __version__
from motamot.knowledge import bounds
from motamot.knowledge.article import Unreadable, address
from motamot.knowledge.robots import AGENT, Robots
from motamot.model.inflate import Inflater

__all__ = ["Fetched", "Fetcher", "Gone"]

_WEB_PORTS = frozenset((80, 443))
_BUSY = (429, 503)
_BUSY_SECONDS = 10.0  # a busy site is waited for once, for so long at most


class Gone(Unreadable):
    """The site says that there is no such page (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """url: after redirections. body: None where it is the version that was known already."""

    url: str
    body: bytes | None
    charset: str | None = None
    kind: str = ""  # its media type, in small letters, without parameters
    etag: str = ""
    modified: str = ""


class Fetcher:
    """Asks as `motamot`, and follows robots.txt. Use it as `async with`.

    named:   addresses that the owner gave: their hosts are read. hosts: further ones, as `help.example`.
    """

    def __init__(self, named: Iterable[str], hosts: Iterable[str] = ()) -> None:
        self._origins = {origin for url in named for origin in _origins(url)}
        self._origins |= {origin for host in hosts for origin in _origins(f"https://{host}")}
        self._robots: dict[str, asyncio.Task[Robots]] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Fetcher:
        resolver = _Resolver(frozenset(host for host, _ in self._origins))
        connector = aiohttp.TCPConnector(resolver=resolver, limit=bounds.AT_ONCE, use_dns_cache=False)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,  # bounded, here
            trust_env=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=bounds.CONNECT_SECONDS),
            headers={"User-Agent": f"{AGENT}/{__version__}", "Accept-Encoding": "gzip, deflate"},
        )
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        for task in self._robots.values():
            task.cancel()
        assert self._session is not None
        await self._session.close()

    def takes(self, url: str) -> bool:
        """Whether this is an address of a host that is read."""
        return bool(address(url)) and _origin(url) in self._origins

    async def get(self, url: str, *, most: int = bounds.PAGE_BYTES, etag: str = "", modified: str = "") -> Fetched:
        """The page. etag, modified: of the version that is known.

        Raises: Gone, Unreadable.
        """
        if not address(url):
            raise Unreadable("is no address of a page")
        robots = await self.robots(url)
        if not robots.allows(url):
            raise Unreadable("is not to be read by programs, as robots.txt says", fault=False)
        return await self._get(url, most, etag, modified)

    async def robots(self, url: str) -> Robots:
        """Of the site that this is an address of; asked for once."""
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._robots:
            self._robots[site] = asyncio.create_task(self._read_robots(f"{site}/robots.txt"))
        return await asyncio.shield(self._robots[site])

    async def _read_robots(self, url: str) -> Robots:
        try:
            fetched = await self._get(url, bounds.ROBOTS_BYTES, "", "", cut=True)
        except Gone:
            return Robots()
        except Unreadable as error:
            if error.why.startswith("answered 4"):  # RFC 9309, 2.3.1.3: as if there were none
                return Robots()
            # 2.3.1.4: then nothing may be read; it is the site's fault, and what was known of it stays.
            raise Unreadable(f"is not read: robots.txt {error.why}") from None
        return Robots.parse((fetched.body or b"").decode("utf-8", "replace"))

    async def _get(self, url: str, most: int, etag: str, modified: str, *, cut: bool = False) -> Fetched:
        known = {"If-None-Match": etag, "If-Modified-Since": modified}
        headers = {name: value for name, value in known.items() if value and value.isprintable()}
        try:
            async with asyncio.timeout(bounds.FETCH_SECONDS):
                fetched = await self._follow(url, headers, most, cut=cut)
        except TimeoutError:
            raise Unreadable(f"did not come within {bounds.FETCH_SECONDS:g} seconds") from None
        except zlib.error:
            raise Unreadable("is not compressed as it says") from None
        except aiohttp.ClientConnectorError as error:
            why = error.os_error.strerror or str(error.os_error)
            raise Unreadable(f"cannot be reached: {why}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreadable(f"cannot be had: {type(error).__name__}") from None
        return fetched

    async def _follow(self, url: str, headers: dict[str, str], most: int, *, cut: bool) -> Fetched:
        assert self._session is not None
        busy = False
        for _ in range(bounds.REDIRECTS + 1):
            if not self.takes(url):
                if not address(url):
                    raise Unreadable("leads to no address of a page")
                host = urlsplit(url).netloc[:100]
                raise Unreadable(f"leads to {host}, which is not read (--host {host} would)")
            async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                status = response.status
                if status in (301, 302, 303, 307, 308) and "Location" in response.headers:
                    url = urldefrag(urljoin(url, response.headers["Location"])).url
                    response.close()
                    continue
                if status in _BUSY and not busy:
                    busy = True
                    response.close()
                    await asyncio.sleep(_wait(response.headers.get("Retry-After", "")))
                    continue
                if status == 304:
                    return Fetched(url=url, body=None)
                if status in (404, 410):
                    response.close()
                    raise Gone(f"answered {status}")
                if status != 200:
                    response.close()
                    raise Unreadable(f"answered {status}")
                body = await _read(response, most, cut=cut)
                return Fetched(
                    url=url,
                    body=body,
                    charset=response.charset,
                    kind=response.content_type.lower(),
                    etag=response.headers.get("ETag", "")[:500],
                    modified=response.headers.get("Last-Modified", "")[:100],
                )
        raise Unreadable(f"is redirected more than {bounds.REDIRECTS} times")


async def _read(response: aiohttp.ClientResponse, most: int, *, cut: bool) -> bytes:
    inflater = Inflater.named(response.headers.get("Content-Encoding", ""))
    if inflater is None:
        response.close()
        raise Unreadable("is compressed in a way that was not asked for")
    body = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        for piece in inflater.feed(chunk):
            body += piece
            if len(body) > most:
                response.close()  # and the rest never comes
                if cut:
                    return bytes(body[:most])
                raise Unreadable(f"has more than {most:,} bytes")
    return bytes(body)


def _wait(said: str) -> float:
    return min(float(said), _BUSY_SECONDS) if said.isascii() and said.isdigit() else 1.0


def _origin(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


def _origins(url: str) -> Iterable[tuple[str, int]]:
    """Of an address that the owner typed: its own, and that of http and https where it is one of them."""
    host, port = _origin(url)
    return [(host, web) for web in _WEB_PORTS] if port in _WEB_PORTS else [(host, port)]


class _Resolver(AbstractResolver):
    """A name that once had an address of the Internet may not lead into the own network later (DNS rebinding).

    One that leads there from the first is the owner's own choice: they typed it.
    """

    def __init__(self, minded: frozenset[str]) -> None:
        self._inner = DefaultResolver()
        self._minded = minded  # a proxy's name is not
        self._public: set[str] = set()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if host in self._minded:
            public = [one for one in found if _is_public(one["host"])]
            if public:
                self._public.add(host)
            if host in self._public:
                found = public
            if not found:
                raise OSError("it leads into the own network now, and did not before")
        return found

    async def close(self) -> None:
        await self._inner.close()


def _is_public(text: str) -> bool:
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped.is_global
    return found.is_global
