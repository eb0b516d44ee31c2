"""What a request must be before anything is done for it. Each check is a security check and says so in its refusal."""

from __future__ import annotations

import asyncio
import functools
import hmac
import ipaddress
import re
from collections.abc import Collection, Sequence

from starlette.requests import ClientDisconnect, Request

from motamot.errors import LimitExceeded
from motamot.limits import Limits
from motamot.server.bodies import IN_SCOPE, Bodies
from motamot.server.options import Options
from motamot.server.refusals import FRESH, Refused

__all__ = [
    "FRESH",
    "bearer",
    "body",
    "check_host",
    "check_key",
    "check_link",
    "check_origin",
    "client_address",
    "cors",
    "json_body",
    "no_key",
    "preflight",
]

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?")
_ADDRESS_AND_PORT = re.compile(r"(?:\[([^\[\]]+)\]|([0-9.]+))(?::[0-9]+)?")
_DEFAULT_PORT = {"http": ":80", "https": ":443"}
_JSON = "application/json"
_FIELD_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,1000}")
_PREFLIGHT_SECONDS = 600


# Where to, and from where


def check_host(request: Request, options: Options) -> None:
    """The request's Host is one of ours: a page that rebinds a name of its own to our address is kept out.

    Raises: Refused (421) for another name, (400) for what is no host at all.
    """
    if not options.hosts:
        return
    given = request.headers.getlist("host")
    match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    if match is None:
        raise Refused("the request must name one Host", status=400, code="bad_host")
    name = match[1].lower().removesuffix(".")
    if name not in options.hosts and not (options.any_address and _is_address(name)):
        told = "this server does not answer to that Host; see `hosts` in its settings"
        raise Refused(told, status=421, code="bad_host")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def check_origin(request: Request, origins: Collection[str]) -> None:
    """A page of another site may only ask if it is on the list. Raises: Refused (403).

    Browsers send an Origin with each POST, and with a GET that a script wants to read. Without one it is a link, an
    image, a script's GET that nobody reads (`no-cors`), or no browser at all: `Sec-Fetch-Site` says whose page it is
    on, and a sibling's (`same-site`) is another's, too. But they say it to https and loopback addresses alone: see
    `check_link` for a GET that costs something.
    """
    given = request.headers.getlist("origin")
    if not given:
        if request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
            raise _foreign()
    elif len(given) > 1 or not (given[0] == _own_origin(request) or _listed(given[0], origins)):
        raise _foreign()


def check_link(request: Request, *, known: bool) -> None:
    """A GET that spends is our own page's or no browser's, also where browsers do not say whose page they are on.

    Over plain http off loopback they send no `Sec-Fetch-Site`, and a `no-cors` GET of any page has no Origin, may
    say `Accept: text/event-stream`, and comes from wherever the visitor is. What such a page cannot send is our
    cookie (SameSite=Lax), a Bearer, or a Referer of ours.

    known:  whether the request has a visitor's secret that no page of another site can send.
    Raises: Refused (403). Source: Fetch Metadata, 2 (only to a potentially trustworthy URL); Fetch, 2.2.2
            (CORS-safelisted request-header).
    """
    headers = request.headers
    if known or "origin" in headers or "sec-fetch-site" in headers or _is_loopback(headers.get("host", "")):
        return
    if bearer(request) is not None:
        return
    own = _own_origin(request)
    page = headers.get("referer", "").split("/", 3)[:3]  # scheme, nothing, host and port
    if "/".join(page).lower().removesuffix(_DEFAULT_PORT.get(request.scope.get("scheme", "http"), "")) == own:
        return
    raise Refused(
        "nothing says that no page of another site asks this: send the visitor's cookie, "
        f"Authorization: Bearer with a secret of 22 letters or more, or Referer: {own}/",
        status=403,
        code="forbidden_origin",
    )


def _is_loopback(host: str) -> bool:
    """Whether browsers trust this Host over plain http, too, and say there whose page they are on."""
    match = _HOST.fullmatch(host)
    name = match[1].lower().removesuffix(".") if match else ""
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _foreign() -> Refused:
    return Refused(
        "a page of another site may not ask here, unless it is in `origins` of the settings; "
        "and a proxy in front must be in `proxies`, or its https is not known",
        status=403,
        code="forbidden_origin",
    )


def _own_origin(request: Request) -> str:
    """Of the address the browser used. Not starlette's `request.url`: that takes the first of several Hosts."""
    scheme = request.scope.get("scheme", "http")
    host = request.headers.get("host", "").lower()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORT.get(scheme, ''))}"


def _listed(origin: str, origins: Collection[str]) -> bool:
    return origin != "null" and origin in origins  # "null" is any sandboxed frame's: nobody can mean it


def cors(request: Request, origins: Collection[str]) -> dict[str, str]:
    """The headers that let a listed site read the answer; none for any other."""
    if not origins:
        return {}
    origin = request.headers.get("origin", "")
    if not _listed(origin, origins):
        return {"Vary": "Origin"}
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": "Retry-After", "Vary": "Origin"}


def preflight(request: Request, origins: Collection[str], methods: Collection[str]) -> dict[str, str]:
    """The headers that answer a browser which asks first. methods: those of the path. Raises: Refused (403).

    A listed site may send any header: what it may read and do is decided when the request itself comes.
    """
    check_origin(request, origins)
    allowed = ", ".join(sorted(methods))
    headers = cors(request, origins)
    if "Access-Control-Allow-Origin" in headers and "access-control-request-method" in request.headers:
        headers["Access-Control-Allow-Methods"] = allowed
        headers["Access-Control-Max-Age"] = str(_PREFLIGHT_SECONDS)
        headers["Vary"] = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
        wanted = request.headers.get("access-control-request-headers", "")
        if _FIELD_NAMES.fullmatch(wanted):
            headers["Access-Control-Allow-Headers"] = wanted
    return {"Allow": allowed, **headers}


def client_address(request: Request) -> str:
    """Whose budget a request is on: the address, as a listed proxy reports it.

    Of IPv6 the first 64 bits: whoever has one address there has them all.
    """
    client = request.client
    return _whose(client.host[:100]) if client else ""


@functools.lru_cache(maxsize=4096)
def _whose(given: str) -> str:
    # Some proxies name the port, too, and not every server takes it off: each connection would have its own budget.
    with_port = _ADDRESS_AND_PORT.fullmatch(given)
    try:
        address = ipaddress.ip_address((with_port[1] or with_port[2] if with_port else given).partition("%")[0])
    except ValueError:
        return given
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((address, 64), strict=False).network_address)
        address = address.ipv4_mapped
    return str(address)


# Who


def bearer(request: Request) -> str | None:
    """The secret that comes as `Authorization: Bearer …` (RFC 6750, 2.1); None where no Bearer comes."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def check_key(request: Request, keys: Sequence[str]) -> str:
    """The key a caller holds, compared in constant time. Raises: Refused (401)."""
    if (given := bearer(request)) is not None:
        for key in keys:
            if key and hmac.compare_digest(given.encode(), key.encode()):
                return key
    raise no_key()


def no_key() -> Refused:
    """What a caller without the right key is told (401)."""
    return Refused(
        "a valid API key is needed: Authorization: Bearer …",
        status=401,
        code="unauthorized",
        headers={"WWW-Authenticate": "Bearer"},
    )


# What


async def json_body(request: Request, limits: Limits) -> bytes:
    """The body, which must be declared as JSON and come within size and time.

    Raises: Refused (415), and what `body` raises.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:  # a form of another site can't send this without asking first
        raise Refused(f"the body must be {_JSON}", status=415, code="unsupported_media_type")
    if request.headers.get("content-encoding", "identity").lower() != "identity":  # a small one may hold gigabytes
        raise Refused("the body must not be compressed", status=415, code="unsupported_media_type")
    return await body(request, limits)


async def body(request: Request, limits: Limits) -> bytes:
    """The body within size and time.

    Raises: Refused (400, 408, 503 where the site ends meanwhile), LimitExceeded (`body_bytes`, `bodies_bytes`,
    `bodies_address_bytes`).
    """
    declared = request.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > limits.body_bytes):
        raise _too_large(limits)
    bodies: Bodies = request.scope[IN_SCOPE]
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds) as waiting:
            with bodies.coming(waiting, client_address(request)) as count:
                async for part in request.stream():
                    size += len(part)
                    if size > limits.body_bytes:
                        raise _too_large(limits)
                    count(len(part))
                    parts.append(part)
    except TimeoutError:
        if bodies.ended:
            told = "the server ends, and the question was not whole; ask again in a moment"
            raise Refused(told, status=503, code="interrupted", headers={"Connection": "close"}) from None
        seconds = f"{limits.body_seconds:g} s"
        raise Refused(
            f"the body did not come within {seconds}", status=408, code="timeout", headers={"Connection": "close"}
        ) from None
    except ClientDisconnect:
        raise Refused("the client left before its question was whole", status=400, code="disconnected") from None
    return b"".join(parts)


def _too_large(limits: Limits) -> LimitExceeded:
    maximum = limits.body_bytes
    return LimitExceeded(f"the body may have {maximum} bytes at most", limit="body_bytes", maximum=maximum)
