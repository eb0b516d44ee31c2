"""Files that come with the package, as a browser fetches them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["shipped"]


def shipped(request: Request, place: str, kind: str, headers: Mapping[str, str]) -> Response:
    """One of our files; kept by browsers, and asked for again: 304 while it is the same.

    place: its path below this package: one of ours, no stranger's. kind: its media type. headers: further ones.
    """
    content, tag = _read(place)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "ETag": tag, **headers}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers={**headers, "Content-Type": kind})


@cache
def _read(place: str) -> tuple[bytes, str]:
    """What is in a file, read once, and its tag."""
    content = files("motamot.server").joinpath(place).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
