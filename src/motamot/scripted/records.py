"""What the scripted model saw and sent: in memory for tests, as JSON Lines for everybody."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple

from motamot.scripted import bounds

__all__ = ["JsonLines", "Observer", "Piece", "Received", "dumped"]

_SECRETS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})


class Piece(NamedTuple):
    """One write of body bytes. at: `time.monotonic()`. data: None once more is kept than fits in memory."""

    at: float
    size: int
    data: bytes | None


@dataclass(slots=True, kw_only=True, eq=False)
class Received:
    """One request to the model, and what became of it. All `…_at` are `time.monotonic()` seconds.

    arrived:   the time of day, UTC.
    number:    counts every request from 1, as in the record.
    headers:   by lower-case name, as they came (the record masks secrets).
    body:      the JSON value, or None where the body was none; raw: its bytes.
    script:    the name of the script that answered, or None: the request was refused; turn counts from 0.
    status:    of the response, None until its head has left.
    pieces:    the body bytes sent, write by write.
    done_at:   the script had run out. left_at: the client had closed the connection, left_how `closed` or `reset`.
    ended:     how the response ended: `clean`, `reset`, `fin`, `half-chunk`, `left`, `server-closed`, `failed`;
                None: it runs.
    cancel_seconds: the script's `expect_cancel_within_ms`, in seconds, or None.
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    raw: bytes = field(repr=False)
    body: Any = field(default=None, repr=False)
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))
    started_at: float = field(default_factory=time.monotonic)
    script: str | None = None
    turn: int = 0
    stream: bool = False
    status: int | None = None
    pieces: list[Piece] = field(default_factory=list, repr=False)
    sent_pieces: int = 0
    sent_bytes: int = 0
    done_at: float | None = None
    left_at: float | None = None
    left_how: str | None = None
    ended: str | None = None
    cancel_seconds: float | None = None

    @property
    def cancelled(self) -> bool:
        """The client left before the script had run out."""
        return self.left_at is not None and (self.done_at is None or self.left_at < self.done_at)

    def ms(self, at: float) -> float:
        """Milliseconds from the request to `at`, a `time.monotonic()`."""
        return round((at - self.started_at) * 1000, 3)

    @property
    def sent(self) -> bytes:
        """The body as far as it was sent and kept."""
        return b"".join(piece.data or b"" for piece in self.pieces)


Observer = Callable[[dict[str, Any]], None]
"""Is told each event of the record, as the object of its line."""


class JsonLines:
    """Writes the record: one JSON object a line, handed to the system when the model has nothing else to do.

    file:   opened for bytes and without a buffer of its own, which would be written once more at the program's end.
    failed: called once, when the file cannot be written any more (disk full, nobody reads the pipe).
    error:  why it cannot, or None. The answers go on.
    """

    def __init__(self, file: IO[bytes], failed: Callable[[], None] = lambda: None) -> None:
        self._file = file
        self._failed = failed
        self._waiting: list[bytes] = []
        self.error: OSError | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        if self.error is None:
            self._waiting.append(dumped(event) + b"\n")
            if len(self._waiting) >= bounds.RECORD_LINES:
                self.flush()

    def flush(self) -> None:
        """Hand what was recorded to the system."""
        data = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        try:
            while data:
                data = data[self._file.write(data) :]  # a pipe may take less than it is given
        except OSError as error:
            self.error = error
            self._failed()


def request_event(received: Received) -> dict[str, Any]:
    body = received.body if received.body is not None else shown(received.raw) if received.raw else None
    return {
        "event": "request",
        "request": received.number,
        "time": received.arrived.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "method": received.method,
        "path": received.path,
        "headers": {name: masked(name, value) for name, value in received.headers.items()},
        "body": body,
    }


def masked(name: str, value: str) -> str:
    """A header's value without its secret: the scheme stays."""
    if name not in _SECRETS:
        return value
    scheme, space, _ = value.partition(" ")
    return f"{scheme} ***" if space and name.endswith("authorization") else "***"


def shown(data: bytes) -> dict[str, str]:
    """Bytes in a JSON object: as text where they are UTF-8, else in base64."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def dumped(value: Any) -> bytes:
    """Compact JSON in UTF-8; half a surrogate pair can only be written as an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
