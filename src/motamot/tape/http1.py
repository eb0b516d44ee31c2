"""HTTP as recordings hold it: heads in text, chunked bodies, compressed ones. Pure, bounded, and never surprised."""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from motamot.errors import TapeError
from motamot.tape import bounds

__all__ = ["Head", "Inflater", "Unchunked", "Unpacked", "body_end", "is_head", "read_head", "unchunked", "unpacked"]

_START = re.compile(rb"HTTP/(\d(?:\.\d)?) (\d{3})(?: [^\r\n]*)?\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]{0,4096})?\r\n")
_STEP = 1 << 16  # bytes that are unpacked at once


class Head(NamedTuple):
    """A response's status line and headers. end: bytes up to the body's first one."""

    status: int
    version: str
    headers: tuple[tuple[str, str], ...]
    end: int

    def header(self, name: str) -> str:
        """The values of that header, joined as RFC 9110 5.3 allows; "" for none."""
        return ", ".join(value for key, value in self.headers if key.lower() == name)


def is_head(data: bytes, start: int = 0) -> bool:
    """Whether a response's head begins at `start`."""
    return _START.match(data, start) is not None


def read_head(data: bytes, start: int = 0) -> Head:
    """The head that begins at `start`; lines end with CRLF or, as editors leave them, LF.

    Raises: TapeError where none begins, or it does not end, or is too large.
    """
    first = _START.match(data, start)
    if first is None:
        raise TapeError(f"no response's head begins at byte {start:,}", offset=start)
    window_end = min(len(data), start + bounds.HEAD_BYTES)
    end = _HEAD_END.search(data, first.end() - 1, window_end)
    if end is None and window_end < len(data):
        raise TapeError(f"the response's head is larger than {bounds.HEAD_BYTES:,} bytes", offset=start)
    if end is None:
        raise TapeError(
            f"the recording breaks off inside the response's head, at byte {len(data):,}: it holds no body",
            offset=len(data),
        )
    return Head(int(first[2]), first[1].decode(), read_fields(data[first.end() : end.start()]), end.end())


def read_fields(data: bytes) -> tuple[tuple[str, str], ...]:
    """Header lines as names and values. A line that is none is left out; a folded one goes on (RFC 9112, 5.2)."""
    fields: list[tuple[str, str]] = []
    for line in data.decode("latin-1").split("\n"):
        line = line.rstrip("\r")
        if line[:1] in (" ", "\t") and fields:
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon and _TOKEN.fullmatch(name):
            fields.append((name, value.strip()))
    return tuple(fields)


class Unchunked(NamedTuple):
    """A body without its chunks. ended: the last chunk came; broke: where the coding broke off, else None."""

    pieces: list[bytes]
    ended: bool
    broke: int | None
    end: int


def unchunked(data: bytes, start: int) -> Unchunked | None:
    """The chunked body that begins at `start` (RFC 9112, 7.1), or None where there are no chunks.

    A body that a tool has put together already begins with no chunk; only a first chunk that ends as it says counts.
    """
    pieces: list[bytes] = []
    at = start
    while True:
        size = _CHUNK.match(data, at, at + 5000)
        if size is None:
            return Unchunked(pieces, False, at, len(data)) if pieces else None
        length = int(size[1], 16)
        begin, end = size.end(), size.end() + length
        if length == 0:
            return Unchunked(pieces, True, None, _trailers_end(data, begin))
        if end > len(data):
            pieces.append(data[begin:])
            return Unchunked(pieces, False, len(data), len(data))
        if data[end : end + 2] not in (b"\r\n", b"\r", b""):
            return Unchunked(pieces, False, at, len(data)) if pieces else None
        pieces.append(data[begin:end])
        at = end + 2
        if at >= len(data):
            return Unchunked(pieces, False, len(data), len(data))


def _trailers_end(data: bytes, start: int) -> int:
    if data.startswith(b"\r\n", start):
        return start + 2
    end = data.find(b"\r\n\r\n", start, start + bounds.HEAD_BYTES)
    return len(data) if end < 0 else end + 4


class Unpacked(NamedTuple):
    """A body without its compression. problem: why it is not whole, a sentence, or ""."""

    pieces: list[bytes]
    problem: str


def unpacked(pieces: list[bytes], encoding: str) -> Unpacked:
    """The pieces of a body decompressed one by one, so that boundaries stay; as they are where they are not compressed.

    A tool may have decompressed them already and left the header: what does not begin as its coding does is left.
    """
    coding = encoding.lower().strip()
    first = b"".join(pieces[:3])[:4]
    if (inflater := Inflater.for_body(coding, first)) is not None:
        return _inflated(pieces, inflater)
    if coding in ("br", "zstd", "compress") and not _is_text(first):
        return Unpacked([], f"its body is compressed with {coding}, which is not read here")
    return Unpacked(pieces, "")


def _inflated(pieces: list[bytes], inflater: Inflater) -> Unpacked:
    size, inflated = 0, list[bytes]()
    for piece in pieces:
        out = bytearray()
        try:
            inflater.feed(piece, out, bounds.BODY_BYTES - size)
        except (zlib.error, TapeError) as error:
            if out:
                inflated.append(bytes(out))
            return Unpacked(inflated, f"its compression breaks after {size + len(out):,} unpacked bytes: {error}")
        size += len(out)
        if out:
            inflated.append(bytes(out))
    problem = "" if inflater.ended else f"its compression breaks off after {size:,} unpacked bytes"
    return Unpacked(inflated, problem)


class Inflater:
    """Unpacks one body, piece by piece."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    @classmethod
    def for_body(cls, coding: str, start: bytes) -> Inflater | None:
        """The one for a body that begins with `start` (2 bytes), or None where that is not compressed so."""
        if start[:2] == b"\x1f\x8b":
            return cls(31)
        if coding == "deflate" and start[:1] == b"\x78" and int.from_bytes(start[:2], "big") % 31 == 0:
            return cls(15)
        return None

    def feed(self, data: bytes, out: bytearray, room: int) -> None:
        """Unpack `data` to the end of `out`, which may hold `room` bytes. Raises: zlib.error, TapeError."""
        # In small steps: zlib copies what it has not used, which for one large piece would be quadratic.
        for start in range(0, len(data), _STEP):
            self._feed(data[start : start + _STEP], out, room)

    def _feed(self, data: bytes, out: bytearray, room: int) -> None:
        while data:
            if self._stream.eof:  # a gzip body may be several, end to end (RFC 1952, 2.2), or be padded
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._stream = zlib.decompressobj(self._window)
            out += self._stream.decompress(data, _STEP * 16)
            if len(out) > room:
                del out[room:]
                raise TapeError("more comes out of it than is taken")
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail


def _is_text(start: bytes) -> bool:
    return bool(start) and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start)


def body_end(head: Head, received: int, ended: bool | None) -> tuple[str, tuple[str, ...]]:
    """How a response ended, from what its head promised; and a note where it broke the promise.

    received: bytes of the body as it was on the wire; ended: whether its last chunk came, None where not chunked.
    """
    if ended is not None:
        if ended:
            return "closed", ()
        return "reset", ("The body breaks off: its last chunk is missing, so the connection broke.",)
    promised = head.header("content-length")
    if not re.fullmatch(r"\d{1,15}", promised) or head.header("content-encoding"):
        return "unknown", ()
    if received < int(promised):
        return "reset", (f"The body breaks off: {received:,} of the {int(promised):,} bytes that were promised came.",)
    if received > int(promised):
        return "unknown", (f"The body has {received:,} bytes, and content-length says {int(promised):,}.",)
    return "closed", ()
