"""Refusing a request before any stream: one JSON shape for every error, and the status that goes with it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from motamot.errors import (
    Conflict,
    InvalidRequest,
    LimitExceeded,
    ModelUnavailable,
    MotamotError,
    NotFound,
    SettingsError,
    StoreError,
    UpstreamError,
)
from motamot.protocols.base import Protocol

__all__ = ["FRESH", "UNEXPECTED", "Refused", "body", "response", "status"]


FRESH = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""The headers of every answer that is somebody's own: no cache keeps it, no browser takes it for another type."""


class Refused(MotamotError):
    """A request that is not let in. status: HTTP's; headers: what goes with it (`Retry-After`, `Allow`, …)."""

    code = "refused"

    def __init__(self, message: str, *, status: int, code: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


_STATUS: list[tuple[type[MotamotError], int]] = [
    (InvalidRequest, 400),
    (NotFound, 404),
    (Conflict, 409),
    (StoreError, 503),
    (UpstreamError, 502),
    (ModelUnavailable, 503),
    (SettingsError, 500),
]
_PER_VISITOR = {
    "bodies_address_bytes",
    "exchanges_per_visitor",
    "readers_per_exchange",
    "requests_per_hour",
    "sign_in_failures",
    "sign_in_failures_all",
    "tokens_per_hour",
    "money_per_day",
}
_SECONDS = 5  # to come back after, where nothing is known


def status(error: MotamotError) -> int:
    """The HTTP status of an error that came before the stream."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, LimitExceeded):
        if error.limit == "body_bytes":
            return 413
        return 429 if error.limit in _PER_VISITOR else 503
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def body(error: MotamotError) -> dict[str, object]:
    """`{"error": {"code", "message", "field"?, "limit"?}}`."""
    told: dict[str, object] = {"code": error.code, "message": error.message}
    for name in ("field", "limit"):
        if (value := getattr(error, name, None)) is not None:
            told[name] = value
    return {"error": told}


def response(
    error: MotamotError, protocol: Protocol | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """An error as a response, in the protocol's own shape where it has one. headers: further ones."""
    code = status(error)
    sent = {**FRESH, **(headers or {})}
    if code in (429, 503):
        seconds = getattr(error, "retry_after", None) or _SECONDS
        sent["Retry-After"] = str(math.ceil(seconds))
    if getattr(error, "limit", None) in ("body_bytes", "bodies_bytes", "bodies_address_bytes"):
        sent["Connection"] = "close"  # the rest of the body is not waited for
    if isinstance(error, Refused):
        sent |= error.headers
    if protocol is not None:
        return Response(protocol.refusal(error), status_code=code, headers=sent, media_type=protocol.refusal_type)
    return Response(msgspec.json.encode(body(error)), status_code=code, headers=sent, media_type="application/json")


UNEXPECTED = Refused("Something went wrong here; it is in the log.", status=500, code="internal")
"""A fault of ours: no word of it leaves."""
