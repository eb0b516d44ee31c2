"""What a request must be before anything is done for it. Each check is a security check and says so in its refusal."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Collection, Sequence

from starlette.requests import ClientDisconnect, Request

from motamot.errors import LimitExceeded
from motamot.limits import Limits
from motamot.server.refusals import Refused

__all__ = ["check_host", "check_key", "check_origin", "cors", "json_body"]

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::[0-9]{1,5})?")
_JSON = "application/json"


def check_host(request: Request, hosts: Collection[str]) -> None:
    """The request's Host is one of ours: a page that rebinds a name of its own to our address is kept out.

    Raises: Refused (421) for another name, (400) for what is no host at all.
    """
    given = request.headers.getlist("host")
    match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    if match is None:
        raise Refused("the request must name one Host", status=400, code="bad_host")
    if hosts and match[1].lower() not in hosts:
        told = "this server does not answer to that Host; see `hosts` in its settings"
        raise Refused(told, status=421, code="bad_host")


def check_origin(request: Request, origins: Collection[str]) -> None:
    """A page of another site may only ask if it is on the list. Raises: Refused (403)."""
    origin = request.headers.get("origin")
    if origin is None:
        if request.headers.get("sec-fetch-site", "none") == "cross-site":
            raise _foreign()
        return
    if origin != _own_origin(request) and origin not in origins:
        raise _foreign()


def _foreign() -> Refused:
    return Refused("this site may not ask here; see `origins` in the settings", status=403, code="forbidden_origin")


def _own_origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


def cors(request: Request, origins: Collection[str]) -> dict[str, str]:
    """The headers that let a listed site read the answer; none for any other."""
    origin = request.headers.get("origin")
    if origin is None or origin not in origins:
        return {}
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def check_key(request: Request, keys: Sequence[str]) -> str:
    """The key a caller holds, compared in constant time. Raises: Refused (401)."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        for key in keys:
            if key and hmac.compare_digest(given.strip().encode(), key.encode()):
                return key
    raise Refused(
        "a valid API key is needed: Authorization: Bearer …",
        status=401,
        code="unauthorized",
        headers={"WWW-Authenticate": "Bearer"},
    )


async def json_body(request: Request, limits: Limits) -> bytes:
    """The body, which must be declared as JSON and come within size and time.

    Raises: Refused (415, 408), LimitExceeded (`body_bytes`).
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:  # a form of another site can't send this without asking first
        raise Refused(f"the body must be {_JSON}", status=415, code="unsupported_media_type")
    return await body(request, limits)


async def body(request: Request, limits: Limits) -> bytes:
    """The body within size and time. Raises: Refused (400, 408), LimitExceeded (`body_bytes`)."""
    declared = request.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > limits.body_bytes):
        raise _too_large(limits)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.body_bytes:
                    raise _too_large(limits)
                parts.append(part)
    except TimeoutError:
        seconds = f"{limits.body_seconds:g} s"
        raise Refused(f"the body did not come within {seconds}", status=408, code="timeout") from None
    except ClientDisconnect:
        raise Refused("the client left before its question was whole", status=400, code="disconnected") from None
    return b"".join(parts)


def _too_large(limits: Limits) -> LimitExceeded:
    maximum = limits.body_bytes
    return LimitExceeded(f"the body may have {maximum} bytes at most", limit="body_bytes", maximum=maximum)
