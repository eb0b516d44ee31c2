"""Bodies compressed against our asking, inflated in bounded pieces. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

__all__ = ["Inflater"]

_PIECE_BYTES = 64 << 10
"""The most that is inflated at once: a compressed byte can stand for a thousand."""

_ZLIB = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Inflater:
    """Inflates one body. `needed` is False for a body that is not compressed, which passes through."""

    def __init__(self, window: int | None) -> None:
        self.needed = window is not None
        self._window = window or 0
        self._stream = zlib.decompressobj(self._window) if window is not None else None

    @classmethod
    def named(cls, encoding: str) -> Inflater | None:
        """The inflater for a `Content-Encoding`, or None for one that we cannot read."""
        encoding = encoding.strip().lower()
        if encoding in ("", "identity"):
            return cls(None)
        return cls(_ZLIB[encoding]) if encoding in _ZLIB else None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What `chunk` completes, in pieces of at most 64 kB, none empty.

        Raises: zlib.error where the body is not compressed as it says.
        """
        if self._stream is None:
            if chunk:
                yield chunk
            return
        piece = b""
        while chunk or len(piece) == _PIECE_BYTES:  # a full piece: there may be more of it inside
            piece = self._stream.decompress(chunk, _PIECE_BYTES)
            if piece:
                yield piece
            chunk = self._stream.unconsumed_tail
            if self._stream.eof:  # a gzip body may be several, end to end (RFC 1952, 2.2)
                chunk = self._stream.unused_data
                self._stream = zlib.decompressobj(self._window)
