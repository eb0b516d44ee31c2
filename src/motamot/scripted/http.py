"""HTTP/1.1 requests from bytes, without I/O (RFC 9112). Only what a model's client sends; anything else is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from motamot.scripted import bounds

__all__ = ["HttpRequest", "RefusedRequest", "RequestReader", "response_head"]

_TARGET = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,15}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_CHUNK_LINE_BYTES: Final = 1024
_REASONS: Final = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    301: "Moved Permanently",
    302: "Found",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class RefusedRequest(Exception):
    """Bytes that are no request we take. The connection must be closed after the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request. headers: by lower-case name; of several with one name, joined by a comma."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    http_1_0: bool
    keep_alive: bool


class RequestReader:
    """Puts requests together from the bytes of one connection.

    After RefusedRequest the reader is finished.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer known to hold no end of a head
        self._head: tuple[str, str, dict[str, str], bool] | None = None
        self._length: int | None = None  # of the body; None: it comes in chunks
        self._body = bytearray()
        self._chunk = -1  # bytes left of the current chunk; -1: its line is next; -2: the trailer is
        self.wants_continue = False

    @property
    def started(self) -> bool:
        """Bytes of an unfinished request have come."""
        return bool(self._buffer) or self._head is not None

    @property
    def held(self) -> int:
        """Bytes not yet made into a request."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take bytes. `next` gives what they complete."""
        self._buffer += data

    def next(self) -> HttpRequest | None:
        """The next whole request, or None. Raises RefusedRequest."""
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        if not (self._read_chunks() if self._length is None else self._read_length(self._length)):
            return None
        method, path, headers, http_1_0 = self._head
        self._head = None
        self.wants_continue = False
        connection = {word.strip().lower() for word in headers.get("connection", "").split(",")}
        body, self._body = bytes(self._body), bytearray()
        return HttpRequest(
            method=method,
            path=path,
            headers=headers,
            body=body,
            http_1_0=http_1_0,
            keep_alive="keep-alive" in connection if http_1_0 else "close" not in connection,
        )

    def _read_head(self) -> bool:
        while self._buffer.startswith(b"\r\n"):  # RFC 9112 2.2: empty lines before a request are skipped
            del self._buffer[:2]
        end = self._buffer.find(b"\r\n\r\n", self._searched, bounds.HEAD_BYTES)
        self._searched = 0 if end >= 0 else max(0, len(self._buffer) - 3)
        if end < 0:
            if len(self._buffer) >= bounds.HEAD_BYTES:
                raise RefusedRequest(431, f"the request's head is larger than {bounds.HEAD_BYTES} bytes")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = lines[0].split(" ")
        if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
            raise RefusedRequest(400, "the first line is no HTTP request line")
        if parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
            raise RefusedRequest(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
        headers = _headers(lines[1:])
        self._head = (parts[0], parts[1], headers, parts[2] == "HTTP/1.0")
        self._length = _body_length(headers)
        self._chunk = -1
        self.wants_continue = headers.get("expect", "").lower() == "100-continue"
        return True

    def _read_length(self, length: int) -> bool:
        missing = length - len(self._body)
        self._body += self._buffer[:missing]
        del self._buffer[:missing]
        return len(self._body) == length

    def _read_chunks(self) -> bool:
        while True:
            if self._chunk > 0:
                taken = min(self._chunk, len(self._buffer))
                self._body += self._buffer[:taken]
                del self._buffer[:taken]
                self._chunk -= taken
                if self._chunk:
                    return False
            if self._chunk == 0:
                if len(self._buffer) < 2:
                    return False
                if not self._buffer.startswith(b"\r\n"):
                    raise RefusedRequest(400, "a chunk of the body is longer than it says")
                del self._buffer[:2]
                self._chunk = -1
            line = self._line()
            if line is None:
                return False
            if self._chunk == -2:  # trailer fields are dropped
                if not line:
                    return True
                continue
            size = line.split(b";", 1)[0].strip()
            if not _SIZE.fullmatch(size):
                raise RefusedRequest(400, "a chunk of the body has no size")
            self._chunk = int(size, 16)
            if len(self._body) + self._chunk > bounds.BODY_BYTES:
                raise _too_large()
            if self._chunk == 0:
                self._chunk = -2

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", 0, _CHUNK_LINE_BYTES)
        if end < 0:
            if len(self._buffer) >= _CHUNK_LINE_BYTES:
                raise RefusedRequest(400, "a chunk of the body has no size")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line


def _too_large() -> RefusedRequest:
    return RefusedRequest(413, f"the request's body is larger than {bounds.BODY_BYTES} bytes")


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        value = value.strip(" \t")
        # RFC 9112 5.1 and 9110 5.5: no space before the colon, no folded line, no bare CR, LF or NUL in a value.
        if not colon or not _TOKEN.fullmatch(name) or any(char in value for char in "\r\n\0"):
            raise RefusedRequest(400, "a header field is broken")
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body_length(headers: dict[str, str]) -> int | None:
    """Bytes of the body, or None for chunks. RFC 9112 6.3: both, or two different ones, are an attack."""
    coding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if coding is not None:
        if length is not None or coding.lower() != "chunked":
            raise RefusedRequest(400, "the length of the body is said twice, or in an unknown coding")
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise RefusedRequest(400, "the length of the body is no number")
    if int(length) > bounds.BODY_BYTES:
        raise _too_large()
    return int(length)


def response_head(status: int, headers: Mapping[str, str]) -> bytes:
    """The bytes of a response's head. Names and values are known to be safe."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
