"""Every error motamot raises: one root, a handful of classes, each saying whose fault it was.

A message gives what was expected, what came, where, and the way out. `code` is the word a program may
compare; `detail` is what a provider or the system said: for the operator alone, never for a visitor.
"""

from __future__ import annotations

__all__ = [
    "Conflict",
    "InvalidRequest",
    "LimitExceeded",
    "ModelUnavailable",
    "MotamotError",
    "NotFound",
    "ProtocolViolation",
    "ScriptError",
    "SettingsError",
    "StoreError",
    "TapeError",
    "UpstreamError",
]


class MotamotError(Exception):
    """The root of all errors of this package."""

    code = "error"

    def __init__(self, message: str, *, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail


class LimitExceeded(MotamotError):
    """A limit of ours was passed; `limit` is its name in docs/limits.md, `maximum` its value in `unit`.

    retry_after: seconds until it may be tried again, where that is known.
    """

    code = "limit"

    def __init__(
        self, message: str, *, limit: str, maximum: float, unit: str = "bytes", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.maximum = maximum
        self.unit = unit
        self.retry_after = retry_after


class InvalidRequest(MotamotError):
    """The caller sent something we do not take: `field` names the place, `limit` the bound if there is one."""

    code = "invalid_request"

    def __init__(self, message: str, *, field: str | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.limit = limit


class NotFound(MotamotError):
    """There is no such thing, or it is not yours: strangers are not told which."""

    code = "not_found"


class Conflict(MotamotError):
    """The same key was used for another request."""

    code = "conflict"


class ProtocolViolation(MotamotError):
    """A peer's bytes break the protocol they claim to speak."""

    code = "protocol"


class UpstreamError(MotamotError):
    """The model could not be asked. `message` is for the visitor, `detail` is what the provider said.

    code:        `upstream_error`, `upstream_cut`, `timeout` or `limit`.
    status:      the HTTP status the model's server gave, or None when none came.
    safe_to_retry: the model surely did not start, so that asking again cannot pay twice.
    retry_after: seconds the server asked us to wait, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "upstream_error",
        detail: str | None = None,
        status: int | None = None,
        safe_to_retry: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, detail=detail)
        self.code = code
        self.status = status
        self.safe_to_retry = safe_to_retry
        self.retry_after = retry_after


class ModelUnavailable(MotamotError):
    """There is no model to ask: none was found, or the embedded one cannot be fetched or started.

    reason: `unreachable` (the place it comes from), `refused` (the user said no, or could not be asked),
            `disk` (full or not writable), `damaged` (not the pinned file), `missing` (a part to install, a file
            that is not there), `start` (its server did not come up), `none` (no source of answers at all).
    """

    code = "model_unavailable"

    def __init__(self, message: str, *, reason: str, detail: str | None = None) -> None:
        super().__init__(message, detail=detail)
        self.reason = reason


class SettingsError(MotamotError):
    """A setting is wrong: the message names the file, the line and the key where there are any."""

    code = "settings"


class ScriptError(MotamotError):
    """A scripted model's script is wrong: the message names the file and the place in it."""

    code = "script"


class StoreError(MotamotError):
    """The store cannot be used: locked, read-only, full, or written by a newer program."""

    code = "store"


class TapeError(MotamotError):
    """A recording cannot be read or made: the message says what it is instead, or where it broke, and the way out.

    offset: bytes from the start of the file to where it broke, or None where that is not what is wrong.
    """

    code = "tape"

    def __init__(self, message: str, *, offset: int | None = None, detail: str | None = None) -> None:
        super().__init__(message, detail=detail)
        self.offset = offset
