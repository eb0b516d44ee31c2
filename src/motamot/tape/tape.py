"""A tape: one response as it came over the wire, with the time each read arrived where that is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["END_KINDS", "Piece", "Request", "Tape"]

END_KINDS = ("closed", "reset", "left", "unknown")
"""How a response ended: the server closed it properly; the connection broke; whoever recorded it left; not known."""


class Piece(NamedTuple):
    """What one read gave.

    at:   seconds from the moment the request was sent to the read, by a monotonic clock; None where the recording
          holds no times.
    data: the bytes of the body, without transfer coding or compression.
    """

    at: float | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked. headers: names as sent; secrets (Authorization, Cookie, keys) are never kept."""

    method: str = "GET"
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """One response, as recorded.

    pieces:  the reads of the body, in order. One piece where the recording kept no boundaries.
    status:  the HTTP status, or None where only a body was saved.
    headers: of the response, in order, names as sent; () where not known.
    request: what was asked, or None.
    end:     one of `END_KINDS`.
    head_at: seconds from the request to the head of the response, or None.
    ended_at: seconds from the request to the end of the body, or None.
    upstream_at: seconds from the request at which the model produced its pieces, where whoever recorded it held the
             model's end as well; () otherwise.
    source:  where it comes from: `own`, `har`, `curl`, `raw`, `live`.
    notes:   what a reader of findings must know of the recording (sentences): what it cannot hold, where it broke off.
    """

    pieces: tuple[Piece, ...] = ()
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    request: Request | None = None
    end: str = "unknown"
    head_at: float | None = None
    ended_at: float | None = None
    upstream_at: tuple[float, ...] = ()
    source: str = "raw"
    notes: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """All bytes of the body."""
        return b"".join(piece.data for piece in self.pieces)

    @property
    def timed(self) -> bool:
        """Whether the reads have times: only then can be told whether the answer was live."""
        return bool(self.pieces) and all(piece.at is not None for piece in self.pieces)

    def header(self, name: str) -> str | None:
        """The first header of that name, whatever its case, or None."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    def reads(self) -> Iterator[bytes]:
        """The bytes of the body as they were read."""
        return (piece.data for piece in self.pieces)
