"""Cookies as browsers send them."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request

__all__ = ["cookies", "is_https"]


def is_https(request: Request) -> bool:
    """Whether the browser came by https, as far as the proxies that are believed say."""
    return request.scope.get("scheme") == "https"


def cookies(request: Request, name: str) -> Iterator[str]:
    """The values of this name, in the browser's order: that of the nearest path first (RFC 6265, 5.4)."""
    for header in request.headers.getlist("cookie"):
        for pair in header.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                yield value
