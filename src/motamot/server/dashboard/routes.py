"""The addresses below /dashboard: who may come in, and which page answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from motamot.errors import MotamotError
from motamot.server import guards, refusals
from motamot.server.dashboard import conversations, exchange, export, figures, overview, reconcile, visitor
from motamot.server.dashboard.languages import LANGUAGES, language_of
from motamot.server.dashboard.markup import el, join
from motamot.server.dashboard.sessions import Sessions
from motamot.server.dashboard.visit import SAFE, Page, Visit, cookie_of, set_cookie
from motamot.server.operator import DEVICE
from motamot.server.shipped import shipped
from motamot.server.site import answered

if TYPE_CHECKING:
    from motamot.server.site import Site

__all__ = ["routes"]

_logger = logging.getLogger("motamot.server")

Made = Page | Callable[[], Page | Response]
Handler = Callable[[Visit], Awaitable[Made | Response]]
"""Reads what a page tells. A function that makes the page of it is called in a thread: no stream waits for a page."""

_SESSION = "motamot_operator"
_LANGUAGE = "motamot_language"
_YEAR = 365 * 24 * 3600
_OF_FILES = {"Cross-Origin-Resource-Policy": "same-origin"}


def routes(site: Site) -> list[Route]:
    """The dashboard's addresses."""
    desk = _Desk(site)
    return [
        desk.open("/dashboard/sign-in", desk.sign_in, "GET", "POST"),
        desk.open("/dashboard/language", desk.language, "GET"),
        Route("/dashboard/dashboard.css", answered(_css, site), methods=["GET"]),
        Route("/dashboard/icon.svg", answered(_icon, site), methods=["GET"]),
        desk.shut("/dashboard/sign-out", desk.sign_out, "POST"),
        desk.shut("/dashboard", overview.page, "GET"),
        desk.shut("/dashboard/", desk.without_slash, "GET"),
        desk.shut("/dashboard/conversations", conversations.page, "GET"),
        desk.shut("/dashboard/conversations/{conversation}", conversations.conversation, "GET"),
        desk.shut("/dashboard/exchanges/{exchange}", exchange.page, "GET"),
        desk.shut("/dashboard/exchanges/{exchange}/stop", exchange.stop, "POST"),
        desk.file("/dashboard/exchanges/{exchange}/tape", exchange.tape),
        desk.file("/dashboard/export.csv", export.as_csv),
        desk.file("/dashboard/export.jsonl", export.as_json_lines),
        desk.shut("/dashboard/figures", figures.page, "GET"),
        desk.shut("/dashboard/reconcile", reconcile.page, "GET", "POST"),
        desk.shut("/dashboard/visitor", visitor.page, "GET"),
        desk.file("/dashboard/visitor.json", visitor.export),
        desk.shut("/dashboard/visitor/delete", visitor.delete, "POST"),
    ]


class _Desk:
    """Lets in who is signed in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions = Sessions(site.limits)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="motamot-dashboard")

    def open(self, path: str, handler: Handler, *methods: str) -> Route:
        """An address for everybody."""
        return Route(path, answered(self._answering(handler, for_all=True), self._site), methods=list(methods))

    def shut(self, path: str, handler: Handler, *methods: str) -> Route:
        """An address for who is signed in; others are asked for the key first."""
        return Route(path, answered(self._answering(handler, for_all=False), self._site), methods=list(methods))

    def file(self, path: str, handler: Handler) -> Route:
        """The same of a file that is made while it is sent: nobody may have it made and not take it (HEAD)."""
        route = self.shut(path, handler, "GET")
        assert route.methods is not None
        route.methods.discard("HEAD")
        return route

    def _answering(self, handler: Handler, *, for_all: bool) -> Callable[[Site, Request], Awaitable[Response]]:
        async def answer(site: Site, request: Request) -> Response:
            visit = self._visit(request)
            try:
                if not site.operator.is_set:
                    told = el("p", visit.words.how_to_set)
                    return visit.response(Page(visit.words.not_set, told, status=404))
                if request.method == "POST":
                    guards.check_origin(request, ())  # not even a listed site's page: those may ask, not look
                if visit.session is None and not for_all:
                    back = visit.here if request.method in ("GET", "HEAD") else ""
                    return _redirect(visit.to("sign-in", back=back))
                made = await handler(visit)
                if isinstance(made, Response):
                    return made
                return await visit.aside(_response, visit, made)
            except MotamotError as error:
                site.counts.refused(error)
                return visit.refusal(refusals.status(error), error.message, getattr(error, "retry_after", None))

        return answer

    def _visit(self, request: Request) -> Visit:
        session = self._sessions.find(cookie_of(request, _SESSION))
        words = LANGUAGES.get(cookie_of(request, _LANGUAGE)) or language_of(request.headers.get("accept-language", ""))
        return Visit(site=self._site, request=request, words=words, session=session, thread=self._thread)

    async def sign_in(self, visit: Visit) -> Page | Response:
        """GET and POST /dashboard/sign-in: the form, and the key in it.

        Its form has no token: there is no session to bind one to, and who would have somebody signed in against their
        will has to know the key. A session that the browser came with is never taken over, but ended.
        """
        if visit.request.method != "POST":
            return _sign_in_form(visit, visit.query.get("back", ""))
        fields = await visit.fields(of_session=False)
        request, back = visit.request, fields.get("back", "")
        device = cookie_of(request, DEVICE)
        if not await visit.site.operator.holds(request, fields.get("key", "").strip(), device):
            _logger.warning("a wrong operator's key was given by %.100r", guards.client_address(request))
            return _sign_in_form(visit, back, wrong=True)
        self._sessions.close(cookie_of(request, _SESSION))
        response = _redirect(visit.back(back))
        set_cookie(request, response, _SESSION, self._sessions.open())
        set_cookie(request, response, DEVICE, visit.site.operator.device(), _YEAR)
        return response

    async def without_slash(self, visit: Visit) -> Response:
        """GET /dashboard/: as somebody types it."""
        return _redirect(visit.to())

    async def sign_out(self, visit: Visit) -> Response:
        """POST /dashboard/sign-out."""
        await visit.fields()  # its token
        self._sessions.close(cookie_of(visit.request, _SESSION))
        response = _redirect(visit.to("sign-in", out="1"))
        set_cookie(visit.request, response, _SESSION, "")
        return response

    async def language(self, visit: Visit) -> Response:
        """GET /dashboard/language: the other language from here on. It changes nothing but how this browser is told."""
        response = _redirect(visit.back(visit.query.get("back", "")))
        if (chosen := visit.query.get("to", "")) in LANGUAGES:
            set_cookie(visit.request, response, _LANGUAGE, chosen, _YEAR)
        return response


def _response(visit: Visit, made: Made) -> Response:
    told = made if isinstance(made, Page) else made()
    return visit.response(told) if isinstance(told, Page) else told


def _sign_in_form(visit: Visit, back: str, *, wrong: bool = False) -> Page:
    words = visit.words
    notice = None
    if wrong:
        notice = el("p", words.wrong_key, class_="notice bad", role="alert", id="wrong")
    elif visit.query.get("out"):
        notice = el("p", words.signed_out, class_="notice", role="status")
    form = visit.form(
        "sign-in",
        el("input", type="hidden", name="back", value=visit.checked_back(back)),
        # A password manager files a key under a name.
        el("input", type="text", name="name", value="motamot", autocomplete="username", hidden=True),
        el("label", words.key, for_="key"),
        el(
            "input",
            id="key",
            name="key",
            type="password",
            autocomplete="current-password",
            required=True,
            autofocus=True,
            aria_describedby="wrong help" if wrong else "help",
            aria_invalid="true" if wrong else None,
        ),
        el("p", words.key_help, class_="help", id="help"),
        el("button", words.sign_in),
        class_="card narrow",
    )
    return Page(words.sign_in, join(notice, form), status=403 if wrong else 200)


def _redirect(address: str) -> Response:
    """See Other (303): relative, as every address here."""
    return RedirectResponse(address, status_code=303, headers=SAFE)


async def _css(_site: Site, request: Request) -> Response:
    return shipped(request, "dashboard/dashboard.css", "text/css; charset=utf-8", _OF_FILES)


async def _icon(_site: Site, request: Request) -> Response:
    return shipped(request, "page/icon.svg", "image/svg+xml", _OF_FILES)
