"""Secrets that a recording never keeps: their places stay, with `[removed]` in them. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from urllib.parse import unquote_plus

from motamot.tape.tape import Request, Tape

__all__ = ["REMOVED", "without_secrets"]

REMOVED = "[removed]"

# Words that names are made of, as in `X-Goog-Api-Key`, `access_token` and `apikey`. A cookie lets its holder in.
_WORDS = (
    "auth|authorization|cookie2?|cookies|key|[a-z]*apikey|[a-z]*token|[a-z]*secret|password|passwd|pwd|credentials?|"
    "signature|sig|session|sessionid|jwt|assertion|bearer|csrf|xsrf"
)
_SECRET = re.compile(rf"(?:^|[-_.])(?:{_WORDS})(?:$|[-_.])")
_NO_SECRET = frozenset({"sec-websocket-key", "access-control-allow-credentials", "idempotency-key", "surrogate-key"})
"""Names that look it and let nobody in."""
_ADDRESS_HEADERS = frozenset({"location", "content-location", "referer", "origin", "link", "refresh"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER = re.compile(r"(?<=//)[^/?#@\s]+@")
_PARAMETER = re.compile(r"(?<=[?&;#])([^=&;#\s]{1,200})=([^&;#\s\"'>]+)")


def without_secrets(tape: Tape) -> Tape:
    """`tape` with `[removed]` for what would let its reader in: credentials in headers and addresses.

    The bodies stay as they are: what a question or an answer says is what the tape is for.
    """
    request = tape.request
    if request is not None:
        request = Request(
            method=request.method,
            url=clean_address(request.url),
            headers=clean_headers(request.headers),
            body=request.body,
        )
    return dataclasses.replace(tape, headers=clean_headers(tape.headers), request=request)


def clean_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Headers whose secrets are removed."""
    return tuple((name, _clean_value(name.lower(), value)) for name, value in headers)


def clean_address(url: str) -> str:
    """An address without its user's name and password, and without the values of parameters that hold secrets."""
    return _PARAMETER.sub(_clean_parameter, _USER.sub(REMOVED + "@", url))


def _clean_value(name: str, value: str) -> str:
    if name in _NO_SECRET:
        return value
    if _SECRET.search(name):
        return REMOVED
    return clean_address(value) if name in _ADDRESS_HEADERS else value


def _clean_parameter(found: re.Match[str]) -> str:
    name = _CAMEL.sub("_", unquote_plus(found[1])).lower()
    return f"{found[1]}={REMOVED}" if _SECRET.search(name) else found[0]
