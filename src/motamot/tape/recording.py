"""Asking once over a real socket, and keeping what comes with the time of each read.

Not by an HTTP client library: what a recorder is for is what those smooth over. aiohttp tells no reset of a body
without a length, hands on no data that came together with an error, and waits for ever after a malformed chunk.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterable

import httptools
from yarl import URL

from motamot import __version__
from motamot.errors import InvalidRequest, TapeError
from motamot.tape import bounds
from motamot.tape.hiding import clean_address, without_secrets
from motamot.tape.http1 import Inflater
from motamot.tape.tape import Piece, Request, Tape

__all__ = ["Recorder", "record"]

_DEFAULTS = (
    ("Accept", "text/event-stream, application/json;q=0.9, */*;q=0.8"),
    ("Accept-Encoding", "gzip, deflate"),  # as browsers ask: whether the stream is compressed is to be seen
    ("User-Agent", f"motamot/{__version__}"),
)
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_AS_IT_IS = re.compile(r"[!-~]+")  # goes out as it was typed; anything else is quoted first
_READ_BYTES = 1 << 18


async def record(
    url: str,
    *,
    method: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    seconds: float = bounds.RECORD_SECONDS,
    most_bytes: int = bounds.RECORD_BYTES,
) -> Tape:
    """Ask `url` once, and give what came as a tape: each read of the body with its time, and how it ended.

    Raises: as `Recorder.run`.
    """
    return await Recorder(url, method=method, headers=headers, body=body, seconds=seconds, most_bytes=most_bytes).run()


class Recorder:
    """One request, and the tape of its response.

    Nothing is asked twice, and no redirect is followed. What is compressed is unpacked, read by read.

    method:     GET, or POST where there is a body, unless given.
    headers:    beside those every client sends; a body that begins as JSON does is sent as `application/json`.
    seconds:    from the first moment to the end: then the recorder leaves, as by `leave`.
    most_bytes: of the unpacked body: likewise.
    on_piece:   told each read as it comes.
    Raises:     InvalidRequest where that cannot be asked.
    """

    def __init__(
        self,
        url: str,
        *,
        method: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        seconds: float = bounds.RECORD_SECONDS,
        most_bytes: int = bounds.RECORD_BYTES,
        on_piece: Callable[[Piece], None] | None = None,
    ) -> None:
        self._url = _address(url)
        self._request = Request(
            method=method or ("POST" if body else "GET"),
            url=url,
            headers=_with_defaults(self._url, list(headers), body),
            body=body,
        )
        self._head = _request_head(self._url, self._request)
        self._seconds = seconds
        self._response = _Response(self._request.method == "HEAD", most_bytes, on_piece)
        self._end = "left"
        self._ended_at: float | None = None
        self._notes: list[str] = []
        self._task: asyncio.Task[None] | None = None
        self._left = ""

    @property
    def tape(self) -> Tape:
        """What came until now, without the secrets in it."""
        came = self._response
        return without_secrets(
            Tape(
                pieces=tuple(came.pieces),
                status=came.status,
                headers=tuple(came.headers),
                request=self._request,
                end=self._end,
                head_at=came.head_at,
                ended_at=self._ended_at,
                source="live",
                notes=(*came.notes(), *self._notes),
            )
        )

    def leave(self, why: str = "Whoever recorded it left before the end.") -> None:
        """Close the connection; `run` ends, and what came is on the tape. To be called on the loop that runs it."""
        if self._task is not None and not self._task.done() and not self._left:
            self._left = why
            self._task.cancel()

    async def run(self) -> Tape:
        """Ask, and read to the end.

        Returns: the tape, also of a response that broke off (`end` is `reset`) or was left (`left`).
        Raises:  TapeError where there is no response at all: no connection, no HTTP, nothing within the time.
                 When cancelled, `tape` has what came until then.
        """
        self._task = asyncio.ensure_future(self._ask())
        timer = asyncio.get_running_loop().call_later(
            self._seconds, self.leave, f"It had not ended after {self._seconds:g} s, and was left."
        )
        try:
            await asyncio.wait({self._task})
        finally:
            timer.cancel()
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()
        elif self._response.status is None:
            raise TapeError(f"{self._shown} gave no answer: {self._left[0].lower()}{self._left[1:].rstrip('.')}")
        if self._left:
            self._notes.append(self._left)
        return self.tape

    @property
    def _shown(self) -> str:
        return clean_address(str(self._url))

    async def _ask(self) -> None:
        reader, writer = await self._connected()
        try:
            self._response.asked_at = time.monotonic()
            writer.writelines((self._head, self._request.body))
            await self._read(reader, writer)
        finally:
            self._ended_at = time.monotonic() - self._response.asked_at
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = self._url
        context = None
        if url.scheme == "https":
            context = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout(bounds.CONNECT_SECONDS):
                return await asyncio.open_connection(url.raw_host, url.port, ssl=context, limit=_READ_BYTES)
        except TimeoutError as error:
            raise TapeError(f"{self._shown} takes no connection within {bounds.CONNECT_SECONDS:g} s") from error
        except ssl.SSLCertVerificationError as error:
            told = error.verify_message or "it cannot be verified"
            raise TapeError(f"{self._shown} shows a certificate that is not trusted here: {told}") from error
        except ssl.SSLError as error:
            raise TapeError(f"{self._shown} does not speak TLS, as https needs it", detail=str(error)) from error
        except socket.gaierror as error:
            raise TapeError(f"{self._shown}: the name of its host is not known", detail=error.strerror) from error
        except OSError as error:
            raise TapeError(f"{self._shown} takes no connection: {_words(error)}") from error

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read to the end of the response, or to where it breaks."""
        came = self._response
        broke = ""
        try:
            await writer.drain()
            while not came.complete and not came.full and (data := await reader.read(_READ_BYTES)):
                came.feed(data)
        except OSError as error:
            broke = f"The connection broke before the end: {_words(error)}."
        except httptools.HttpParserError as error:
            if came.status is None:
                raise TapeError(f"what answers at {self._shown} does not speak HTTP", detail=str(error)) from error
            broke = f"The response is malformed after byte {came.size:,} of its body, and ends there: {error}."
        if came.full:
            self._left = came.full
        elif came.status is None:
            raise TapeError(f"{self._shown} closed the connection without an answer") from None
        elif broke or not came.may_end_here:
            self._end = "reset"
            self._notes.append(broke or "The connection was closed before the end of the body that its head promised.")
        else:
            self._end = "closed"


class _Response:
    """What httptools makes of the bytes, kept. full: why no more is taken, or ""."""

    def __init__(self, bodiless: bool, most: int, on_piece: Callable[[Piece], None] | None) -> None:
        self.asked_at = time.monotonic()
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.head_at: float | None = None
        self.pieces: list[Piece] = []
        self.size = 0
        self.complete = False
        self.full = ""
        self._bodiless = bodiless
        self._most = most
        self._on_piece = on_piece
        self._head_bytes = 0
        self._coming: list[tuple[str, str]] = []
        self._read: list[bytes] = []
        self._inflater: Inflater | None = None
        self._started = False
        self._problem = ""
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """The next read. Raises: httptools.HttpParserError; what came before the fault is kept."""
        at = time.monotonic() - self.asked_at
        if self.status is None:
            self._head_bytes += len(data)
            if self._head_bytes > bounds.HEAD_BYTES + _READ_BYTES:
                raise httptools.HttpParserError(f"a head of more than {bounds.HEAD_BYTES:,} bytes")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.complete = True
        finally:
            if self.status is not None and self.head_at is None:
                self.head_at = at
            if body := b"".join(self._read):
                self._read.clear()
                self._take(at, body)

    def _take(self, at: float, data: bytes) -> None:
        data = self._unpacked(data)
        room = self._most - self.size
        if len(data) > room:
            data = data[:room]
            self.full = f"It is larger than {self._most:,} bytes, and was left there."
        if data:
            self.size += len(data)
            piece = Piece(at, data)
            self.pieces.append(piece)
            if self._on_piece is not None:
                self._on_piece(piece)
        if len(self.pieces) >= bounds.PIECES:
            self.full = f"It came in more than {bounds.PIECES:,} reads, and was left there."

    def _unpacked(self, data: bytes) -> bytes:
        coding = self._coding
        if not self._started:
            self._started = True
            self._inflater = Inflater.for_body(coding, data)
            if self._inflater is None and coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
                self.full = f"Its body is compressed with {coding[:50]}, which was not asked for: it was left there."
        if self._inflater is None:
            return b"" if self.full else data
        out = bytearray()
        try:
            self._inflater.feed(data, out, self._most - self.size + 1)
        except TapeError:
            pass  # too much came out: told by whoever measures it
        except zlib.error as error:
            self.full = (
                f"Its compression cannot be read after {self.size + len(out):,} bytes ({error}): it was left there."
            )
        return bytes(out)

    @property
    def _coding(self) -> str:
        return next((value for name, value in self.headers if name.lower() == "content-encoding"), "").strip().lower()

    @property
    def may_end_here(self) -> bool:
        """Whether the end of the connection is the body's own (RFC 9112, 6.3)."""
        names = {name.lower() for name, _ in self.headers}
        return self.complete or not names & {"content-length", "transfer-encoding"}

    def notes(self) -> list[str]:
        """What whoever reads the tape must know of its head."""
        notes = []
        if self._inflater is not None:
            notes.append(
                f"The body came compressed ({self._coding[:50]}): the tape holds what was in it, read by read."
            )
        location = next((value for name, value in self.headers if name.lower() == "location"), None)
        if self.status is not None and 300 <= self.status < 400 and location is not None:
            notes.append(
                f"The server sends on to {clean_address(location)[:300]}. It was not followed: that would have been a "
                "second request."
            )
        return notes

    # What httptools calls

    def on_message_begin(self) -> None:
        self._coming = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._coming.append((name.decode("latin-1"), value.decode("utf-8", "replace")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 or status == 101:
            self.status, self.headers = status, self._coming
            self._coming = []  # what comes after the body are trailers
            self.complete = self._bodiless

    def on_body(self, body: bytes) -> None:
        self._read.append(body)

    def on_message_complete(self) -> None:
        if self.status is not None:
            self.complete = True


def _address(url: str) -> URL:
    """Raises: InvalidRequest."""
    try:
        address = URL(url, encoded=_AS_IT_IS.fullmatch(url) is not None)
        if address.scheme in ("http", "https") and address.raw_host and address.port:
            return address
    except ValueError:
        pass
    raise InvalidRequest(f"{clean_address(url)[:200]!r} is no address of the web: it begins with http:// or https://")


def _with_defaults(url: URL, headers: list[tuple[str, str]], body: bytes) -> tuple[tuple[str, str], ...]:
    given = {name.lower() for name, _ in headers}
    host = f"[{url.raw_host}]" if ":" in (url.raw_host or "") else url.raw_host or ""
    first = [("Host", host if url.is_default_port() else f"{host}:{url.port}")]
    if url.user is not None:
        login = base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
        first.append(("Authorization", f"Basic {login}"))
    if body:
        json = body.lstrip()[:1] in (b"{", b"[")
        first.append(("Content-Type", "application/json" if json else "text/plain; charset=utf-8"))
    first += _DEFAULTS
    return (*((name, value) for name, value in first if name.lower() not in given), *headers)


def _request_head(url: URL, request: Request) -> bytes:
    """Raises: InvalidRequest for what would break the request's lines."""
    if not _NAME.fullmatch(request.method):
        raise InvalidRequest(f"{request.method[:50]!r} is no method", field="method")
    lines = [f"{request.method} {url.raw_path_qs} HTTP/1.1"]
    for name, value in request.headers:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidRequest(
                f"the header {name[:50]!r} cannot be sent: a name, a colon, and one line", field="headers"
            )
        if name.lower() not in ("content-length", "transfer-encoding"):
            lines.append(f"{name}: {value}")
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(request.body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")


def _words(error: OSError) -> str:
    """The system's own: asyncio repeats the address in its own, and joins those of several addresses."""
    if isinstance(error, ConnectionResetError):
        return "it was reset"
    return os.strerror(error.errno) if error.errno is not None else str(error) or type(error).__name__
