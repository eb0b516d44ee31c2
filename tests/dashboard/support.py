"""An operator's browser before a real server: it keeps cookies, follows links and sends forms, and runs no script."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import aiohttp

from tests.server.support import OPERATOR_KEY

__all__ = ["At", "Browser", "Form", "Seen", "signed_in"]


@dataclass
class Form:
    """A form of a page: where it goes, and what its fields hold."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes += named.items()
        if tag == "form":
            self.forms.append(Form(named.get("action", ""), named.get("method", "get")))
        elif tag == "input" and "name" in named and self.forms and named.get("type") != "checkbox":
            self.forms[-1].fields[named["name"]] = named.get("value", "")
        elif tag == "select" and self.forms:
            self._select = named["name"]
            self.forms[-1].fields[self._select] = ""
        elif tag == "option" and "selected" in named and self.forms:
            self.forms[-1].fields[self._select] = named.get("value", "")
        elif tag == "a":
            self.links.append(named.get("href", ""))

    def handle_data(self, data: str) -> None:
        self.text += data + " "


@dataclass
class Seen:
    """A page as it came, and what is in it."""

    status: int
    url: str
    headers: Any
    body: str

    def __post_init__(self) -> None:
        reader = _Reader()
        reader.feed(self.body)
        self.forms, self.links, self.tags, self.attributes = reader.forms, reader.links, reader.tags, reader.attributes
        self.text = re.sub(r"\s+", " ", reader.text).strip()

    def form(self, action: str) -> Form:
        """The form that goes there."""
        [found] = [one for one in self.forms if re.search(action, one.action)]
        return found

    def link(self, wanted: str) -> str:
        """The address of the first link that matches."""
        return next(urljoin(self.url, link) for link in self.links if re.search(wanted, link))


class At(Protocol):
    """Where a site is: its address, with the prefix of a proxy if it has one."""

    @property
    def url(self) -> str: ...


class Browser:
    """One browser, with cookies of its own."""

    def __init__(self, served: At, **headers: str) -> None:
        self.served = served
        self.client = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), headers=headers)

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def get(self, path: str, **more: Any) -> Seen:
        """A page, redirections followed."""
        address = self.served.url + path if path.startswith("/") else path
        async with self.client.get(address, **more) as response:
            return await _seen(response)

    async def send(self, page: Seen, action: str, /, headers: dict[str, str] | None = None, **fields: str) -> Seen:
        """A form of a page, as a browser sends it: with the page's Origin. fields: what is filled in."""
        form = page.form(action)
        data = {**form.fields, **fields}
        address = urljoin(page.url, form.action)
        if form.method != "post":
            async with self.client.get(address, params=data) as response:
                return await _seen(response)
        parts = urlsplit(self.served.url)
        sent = {"Origin": f"{parts.scheme}://{parts.netloc}", "Sec-Fetch-Site": "same-origin", **(headers or {})}
        async with self.client.post(address, data=data, headers=sent) as response:
            return await _seen(response)

    async def sign_in(self, key: str = OPERATOR_KEY) -> Seen:
        """The overview, after the key was typed; the form again where it was not the key."""
        return await self.send(await self.get("/dashboard"), "sign-in", key=key)

    def cookies(self) -> dict[str, str]:
        """What it keeps."""
        return {cookie.key: cookie.value for cookie in self.client.cookie_jar}


async def _seen(response: aiohttp.ClientResponse) -> Seen:
    return Seen(response.status, str(response.url), response.headers, await response.text())


async def signed_in(served: At, **headers: str) -> Browser:
    """A browser whose owner has typed the key."""
    browser = Browser(served, **headers)
    seen = await browser.sign_in()
    assert seen.status == 200 and seen.url.endswith("/dashboard"), seen.body
    return browser
