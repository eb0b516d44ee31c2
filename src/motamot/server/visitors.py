"""Who asks: a visitor is known by a secret of 128 bits or more, of which only the hash is kept."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request

from motamot.server import guards
from motamot.server.cookies import cookies, is_https
from motamot.server.refusals import Refused

__all__ = ["COOKIE", "Identify", "Visitor", "has_cookie", "new_visitor", "visitor_of"]

COOKIE = "motamot_visitor"
_HOST_COOKIE = "__Host-" + COOKIE
"""Its name over https: browsers take it from this very host alone, so that no sibling subdomain can plant one."""

_SECRET = re.compile(r"[A-Za-z0-9_-]{22,128}")  # 22 characters of base64url hold 128 bits
_YEAR = 365 * 24 * 3600

Identify = Callable[[Request], Awaitable[str | None]]
"""A host's own login: the user's name, or None for nobody."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """name: what the store knows: the host's own name for its user, else the hash of a secret.

    cookie: a header field for a visitor that is new, else empty.
    """

    name: str
    cookie: tuple[tuple[bytes, bytes], ...] = ()


async def visitor_of(request: Request, identify: Identify | None = None) -> Visitor:
    """The visitor of a request; one without a secret is new, and gets a cookie with the answer.

    Raises: Refused (401) for a Bearer that can't be a secret, or where the host's login knows nobody.
    """
    if identify is not None:
        user = await identify(request)
        if not user:
            raise Refused("sign in first", status=401, code="unauthorized")
        return Visitor(user)  # tools and answers of the host's own look up what is theirs by it
    if (token := guards.bearer(request)) is not None:
        if not _SECRET.fullmatch(token):
            raise Refused(
                "the Bearer must be the visitor's secret: 22 to 128 of A-Z, a-z, 0-9, - and _",
                status=401,
                code="unauthorized",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return Visitor(_hash(token))
    if (secret := _cookie(request)) is not None:
        return Visitor(_hash(secret))
    return new_visitor(request)


def has_cookie(request: Request) -> bool:
    """Whether a visitor's cookie came along, as it does with our own site's requests alone (SameSite=Lax)."""
    return _cookie(request) is not None


def _cookie(request: Request) -> str | None:
    """The secret in the cookie; of several the first."""
    wanted = _HOST_COOKIE if is_https(request) else COOKIE
    return next((value for value in cookies(request, wanted) if _SECRET.fullmatch(value)), None)


def new_visitor(request: Request) -> Visitor:
    """A visitor nobody has seen, with the cookie that makes them known: HttpOnly, and never sent cross-site."""
    secret = secrets.token_urlsafe(32)
    if is_https(request):  # the prefix asks for the whole host as path, wherever the chat is mounted
        name, path, secure = _HOST_COOKIE, "/", "; Secure"
    else:
        name, path, secure = COOKIE, quote(request.scope.get("root_path") or "/"), ""  # a stranger may have written it
    cookie = f"{name}={secret}; Max-Age={_YEAR}; Path={path}; HttpOnly; SameSite=Lax{secure}"
    return Visitor(_hash(secret), ((b"set-cookie", cookie.encode("latin-1")),))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
