"""One request to the dashboard, and the page that answers it."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from motamot.errors import InvalidRequest
from motamot.server import guards
from motamot.server.cookies import cookies, is_https
from motamot.server.dashboard.forms import fields_of, parts_of
from motamot.server.dashboard.markup import Child, Html, el, join
from motamot.server.dashboard.sessions import Session
from motamot.server.dashboard.words import Words, moment_of
from motamot.server.refusals import Refused

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["POLICY", "SAFE", "Page", "Visit", "attachment", "cookie_of", "set_cookie"]

POLICY = "; ".join(
    [
        "default-src 'none'",  # no script at all, and nothing of another host
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""The Content-Security-Policy of every page."""

SAFE = {
    **guards.FRESH,
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",  # for what does not know frame-ancestors
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    # not `no-referrer`: browsers then say `Origin: null` with our own forms
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie, Accept-Language",
}
"""The headers of every page."""

T = TypeVar("T")

_FORM = "application/x-www-form-urlencoded"
_BACK_CHARACTERS = 2_000
_BACK = re.compile(r"([A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)?(\?[A-Za-z0-9_.=&%+*-]*)?")

_NAVIGATION = (("", "overview"), ("conversations", "conversations"), ("figures", "figures"), ("reconcile", "reconcile"))


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says. title: also its heading. now: which of the pages of the navigation it is."""

    title: str
    content: Child
    now: str | None = None
    status: int = 200
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request with what is known of who sent it. session: None for somebody who is not signed in.

    thread: where pages are made.
    """

    site: Site
    request: Request
    words: Words
    session: Session | None
    thread: Executor

    def to(self, path: str = "", /, **query: str | int | float | None) -> str:
        """The address of one of these pages, relative to this one: no prefix of any proxy has to be known."""
        given = {key: str(value) for key, value in query.items() if value not in (None, "")}
        address = "../" * (self._path.count("/") - 1) + "dashboard" + (f"/{quote(path)}" if path else "")
        return address + (f"?{urlencode(given)}" if given else "")

    @property
    def query(self) -> dict[str, str]:
        """The fields of the address. Raises: InvalidRequest for too many or too long ones."""
        return fields_of(self.request.scope.get("query_string", b""))

    @property
    def here(self) -> str:
        """This page as a path and query below /dashboard, as `back` takes it."""
        path = self._path.removeprefix("/dashboard").strip("/")
        try:
            query = urlencode(self.query)
        except InvalidRequest:  # the page that tells so has a header, too
            query = ""
        return self.checked_back(quote(path) + (f"?{query}" if query else ""))

    @property
    def _path(self) -> str:
        """This address's path below where the site is mounted."""
        path: str = self.request.scope["path"]
        root: str = self.request.scope.get("root_path", "").rstrip("/")
        return path[len(root) :] if root and path.startswith(f"{root}/") else path

    @staticmethod
    def checked_back(given: str) -> str:
        """A path and query below /dashboard; the overview for what is none: nobody is led away from here."""
        return given if len(given) <= _BACK_CHARACTERS and _BACK.fullmatch(given) else ""

    def back(self, given: str) -> str:
        """The address of a page that `here` named, or somebody says it did."""
        path, _, query = self.checked_back(given).partition("?")
        return self.to(path) + (f"?{query}" if query else "")

    def form(self, path: str, *children: Child, **attributes: str | None) -> Html:
        """A form that is posted, with the token that shows it was made for this session."""
        token = self.session.forms.token() if self.session is not None else None
        hidden = el("input", type="hidden", name="token", value=token) if token else None
        return el("form", hidden, *children, method="post", action=self.to(path), **attributes)

    async def fields(self, *, of_session: bool = True) -> dict[str, str]:
        """The fields of a form that was posted.

        of_session: whether it must have been made for this session.
        Raises:     InvalidRequest, Refused (403), and what `guards.body` raises.
        """
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _FORM:
            raise InvalidRequest(f"a form is to be sent as {_FORM}")
        fields = fields_of(await guards.body(self.request, self.site.limits))
        if of_session:
            self._check_token(fields)
        return fields

    async def upload(self) -> tuple[dict[str, str], bytes]:
        """The fields of a form that was posted with a file, and the file. Raises: as `fields`."""
        kind = self.request.headers.get("content-type", "")[:200]
        fields, file = parts_of(kind, await guards.body(self.request, self.site.limits))
        self._check_token(fields)
        return fields, file

    async def aside(self, function: Callable[..., T], *given: Any) -> T:
        """Call a function that takes its time in the dashboard's own thread: no stream waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, function, *given)

    def _check_token(self, fields: Mapping[str, str]) -> None:
        """Raises: Refused (403) for a form that was not made for this session."""
        if self.session is None or not self.session.forms.is_ours(fields.get("token", "")):
            raise Refused(self.words.form_old, status=403, code="forbidden")

    def moment(self, at: float) -> Html:
        """A time, for people and for programs."""
        return el("time", self.words.moment(at), datetime=moment_of(at).strftime("%Y-%m-%dT%H:%M:%SZ"))

    def table(self, caption: str, heads: list[str], rows: list[list[Child]]) -> Html:
        """A table with a caption for those who hear it, that scrolls within itself where it is wide."""
        body = [el("tr", [el("td", cell) for cell in row]) for row in rows]
        table = el(
            "table",
            el("caption", caption, class_="unseen"),
            el("thead", el("tr", [el("th", head, scope="col") for head in heads])),
            el("tbody", body),
        )
        label = f"{caption} ({self.words.scroll})"
        return el("div", table, class_="wide", tabindex="0", role="region", aria_label=label)

    def response(self, page: Page) -> Response:
        """The page in its frame."""
        headers = {**SAFE, "Content-Language": self.words.language, **(page.headers or {})}
        return Response(
            f"<!doctype html>\n{self._document(page)}".encode("utf-8", "replace"),
            status_code=page.status,
            headers=headers,
            media_type="text/html",
        )

    def _document(self, page: Page) -> Html:
        words = self.words
        head = el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("meta", name="robots", content="noindex"),
            el("title", f"{page.title} · motamot"),
            el("link", rel="icon", href=self.to("icon.svg"), type="image/svg+xml"),
            el("link", rel="stylesheet", href=self.to("dashboard.css")),
        )
        body = el(
            "body",
            el("a", words.to_content, href="#content", class_="skip"),
            self._header(page),
            el("main", el("h1", page.title), page.content, id="content", tabindex="-1"),
            el("footer", words.utc),
        )
        return el("html", head, body, lang=words.language)

    def _header(self, page: Page) -> Html:
        words = self.words
        back = self.here if self.request.method in ("GET", "HEAD") else ""
        code = "fr" if words.language == "en" else "en"
        other = el("a", words.other, href=self.to("language", to=code, back=back), lang=code, hreflang=code)
        brand = el("span", "motamot", class_="brand")
        if self.session is None:
            return el("header", brand, el("div", other, class_="own"))
        links = [
            el(
                "li",
                el("a", getattr(words, name), href=self.to(path), aria_current="page" if page.now == name else None),
            )
            for path, name in _NAVIGATION
        ]
        out = self.form("sign-out", el("button", words.sign_out, class_="quiet"))
        return el(
            "header",
            brand,
            el("nav", el("ul", links), aria_label=words.pages),
            el("div", other, out, class_="own"),
        )

    def refusal(self, status: int, message: str, retry_after: float | None = None) -> Response:
        """An error as a page."""
        headers = {"Retry-After": str(math.ceil(retry_after))} if retry_after is not None else {}
        content = join(
            el("p", message, class_="notice bad", role="alert"),
            el("p", el("a", self.words.back, href=self.to())) if self.session is not None else None,
        )
        return self.response(Page(self.words.error, content, status=status, headers=headers))


def attachment(name: str) -> dict[str, str]:
    """The headers of a file that is saved under this name."""
    return {**SAFE, "Content-Disposition": f'attachment; filename="{name}"'}


def cookie_of(request: Request, name: str) -> str:
    """A cookie's value, of several the first; over https that with the prefix which a sibling over http can't set."""
    wanted = f"__Secure-{name}" if is_https(request) else name
    return next((value[:200] for value in cookies(request, wanted) if value), "")


def set_cookie(request: Request, response: Response, name: str, value: str, seconds: int | None = None) -> None:
    """Set a cookie for the dashboard alone; "": take it away. seconds: how long it is kept; None: as the browser runs.

    It has no Path: browsers then take the folder of the address they asked (RFC 6265, 5.1.4), which is the dashboard's
    own under whatever prefix a proxy has put before it. So it is set by addresses right below /dashboard alone.
    """
    prefix, secure = ("__Secure-", "; Secure") if is_https(request) else ("", "")
    age = "; Max-Age=0" if not value else f"; Max-Age={seconds}" if seconds is not None else ""
    full = f"{prefix}{name}={value}{age}; HttpOnly; SameSite=Strict{secure}"
    response.raw_headers.append((b"set-cookie", full.encode("latin-1")))
