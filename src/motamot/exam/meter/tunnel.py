"""The bytes between a chatbot and its model: passed on as they come, and looked at on the way.

One connection of the chatbot's has one to the model's server, so that what belongs together stays together: reuse,
order, who left and how. Of a request the Host and the path's beginning are another's, and an offer of HTTP/2 is left
out (`Upgrade: h2c`, RFC 9110, 7.8); no other byte changes, and of a response none does. HTTP/1.1 (RFC 9112).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import urlsplit

import httptools

from motamot.errors import InvalidRequest
from motamot.exam.meter.completion import Completion

__all__ = ["Meter", "Upstream"]

HEAD_BYTES = 64_000
"""A request's line and headers; also what comes after its body, and of a chunk before its bytes."""
CONNECTIONS = 2_000
"""Open at a time; more are told 503."""
CONNECT_SECONDS = 10.0
WAITING_BYTES = 64 << 20
"""Of all requests that are read before the model's server is reached; then their chatbots have to wait."""
LEFT_SECONDS = 0.5
"""How often a chatbot that is not read from is looked at: it may have left."""
IDLE_SECONDS = 300.0
"""A connection is let go without a request for so long, with a head that is not whole, or no more of a body."""
_TOO_LONG = f"the request's head has more than {HEAD_BYTES} bytes"
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where requests go. path: what stands before theirs."""

    host: str
    port: int
    tls: bool
    path: str = ""

    @classmethod
    def at(cls, url: str) -> Upstream:
        """From `https://api.example/…`. Raises: InvalidRequest."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise InvalidRequest(
                f"{url!r} is no address of a model's server: https://api.openai.com/v1", field="upstream"
            )
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def target(self, given: str) -> str:
        """The request's target there. `/v1` stands in most base URLs, on either side: it is not said twice."""
        if self.path.endswith("/v1") and (given == "/v1" or given.startswith("/v1/")):
            given = given[len("/v1") :]
        return self.path + given


class Meter:
    """Listens, passes on, and tells `begun` and `ended` of each request that may be a completion.

    begun: told once a request's body is whole. ended: told once of each that has begun, when its response is over,
    however that was.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        begun: Callable[[Completion], None] = lambda _: None,
        ended: Callable[[Completion], None] = lambda _: None,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self.upstream = upstream
        self.begun = begun
        self.ended = ended
        self.others = 0  # requests that are no completions: models, files, …
        self.waiting = 0  # bytes of requests that are kept until the model's server is reached
        self.tls = (trusted or ssl.create_default_context()) if upstream.tls else None
        self.connections: set[_Front] = set()
        self.behind: set[_Back] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen. Returns: the port. Raises: OSError."""
        self._server = await asyncio.get_running_loop().create_server(lambda: _Front(self), host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def over(self, completion: Completion, how: str) -> None:
        """Its response is over; a server may have refused before the request was whole, and then it has not begun."""
        completion.over(how)
        if completion.sent_at is not None:
            self.ended(completion)

    async def close(self) -> None:
        """Let go of everything: what is under way is cut."""
        if self._server is not None:
            self._server.close()
            for front in list(self.connections):
                front.cut()
            while self.connections or self.behind:  # noqa: ASYNC110 - transports say a moment later that they are closed
                await asyncio.sleep(0)
            await self._server.wait_closed()
            self._server = None


def _head(method: bytes, target: bytes, version: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = [method + b" " + target + b" HTTP/" + version, *(name + b": " + value for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _addressed(headers: Iterable[tuple[bytes, bytes]], host: bytes) -> list[tuple[bytes, bytes]]:
    """The headers with this Host and no other, where the first one stood; HTTP/1.0 may have had none."""
    kept = [(name, host if name.lower() == b"host" else value) for name, value in headers]
    hosts = [place for place, (name, _) in enumerate(kept) if name.lower() == b"host"]
    if not hosts:
        return [(b"Host", host), *kept]
    return [header for place, header in enumerate(kept) if place not in hosts[1:]]


def _without_offer(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The headers, less those that offer another protocol."""
    for name, value in headers:
        kind = name.lower()
        if kind == b"connection":
            options = [option.strip() for option in value.split(b",")]
            value = b", ".join(one for one in options if one.lower() not in (b"upgrade", b"http2-settings"))
            if value:
                yield name, value
        elif kind not in (b"upgrade", b"http2-settings"):
            yield name, value


def _no_delay(transport: asyncio.Transport) -> None:
    found = transport.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _NotTaken(Exception):
    """Ends the parsing of a request that is refused by its head."""


class _Front(asyncio.Protocol):
    """The chatbot's side of one connection."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._transport: asyncio.Transport
        self._back: _Back | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._waiting = bytearray()  # for the connection to the model
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0  # since a head or a piece of a body was whole
        self._chunked = False
        self._head_done = False
        self._whole = True  # the last request is
        self._without_offer = b""  # the head of a request that offers HTTP/2, written anew
        self._refusal = (400, "this is no HTTP request")
        self._completion: Completion | None = None
        self._early: list[tuple[Completion | None, bool]] = []  # asked before the model's server was reached
        self._idle: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None  # of a chatbot that is not read from

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvloop's is no subclass
        self._transport = transport
        _no_delay(transport)
        self._meter.connections.add(self)
        self.rest()
        if len(self._meter.connections) > CONNECTIONS:
            self._refuse(503, "too many connections are open at the meter")

    def connection_lost(self, _: Exception | None) -> None:
        self._meter.connections.discard(self)
        for timer in (self._idle, self._watch):
            if timer is not None:
                timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._back is not None:
            self._back.left()
        self._forget()
        self._give_up("left")

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        while data and self._parser is not None:  # else refused: the rest is not wanted
            try:
                self._parser.feed_data(data)
                data = b""
            except httptools.HttpParserUpgrade as offered:  # the parser takes what follows for another protocol's
                data = self._without_offer + data[offered.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                self._refuse(*self._refusal)
        if self._head_bytes > HEAD_BYTES and self._parser is not None:
            self._refuse(431, _TOO_LONG)

    # The request, as the parser reads it

    def on_message_begin(self) -> None:
        self._url, self._headers, self._head_bytes, self._head_done = b"", [], 0, False
        self._without_offer = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_done:  # else a trailer, which nobody waits for (RFC 9110, 6.5.1)
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self._head_done, self._head_bytes = True, 0
        target = self._url.decode("latin-1")
        if len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers) > HEAD_BYTES:
            self._not_taken(431, _TOO_LONG)  # it came in one piece
        if not target.startswith("/"):  # a proxy's form: whose server that is, is settled here
            self._not_taken(
                400, "the meter takes the place of the model's server: name it as the base URL, not as a proxy"
            )
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        if self._parser.should_upgrade():
            if {value.lower() for name, value in self._headers if name.lower() == b"upgrade"} != {b"h2c"}:
                self._not_taken(501, "the meter passes on HTTP requests, no WebSockets")
            # Java's HttpClient offers it with its first request to each http address.
            self._without_offer = _head(method, self._url, version, _without_offer(self._headers))
            return
        self._chunked = any(name.lower() == b"transfer-encoding" for name, _ in self._headers)
        kept = _addressed(self._headers, self._meter.upstream.host_header.encode())
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers}
        self._completion = Completion.of(method.decode(), target, headers)
        if self._completion is None:
            self._meter.others += 1
        self._whole = False
        self._to_model(_head(method, self._meter.upstream.target(target).encode("latin-1"), version, kept))
        self._expect(self._completion, head=method == b"HEAD")

    def _expect(self, completion: Completion | None, *, head: bool) -> None:
        if self._back is not None:
            self._back.expect(completion, head=head)
        else:
            self._early.append((completion, head))

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        self.rest()
        if self._completion is not None:
            self._completion.asked(body)
        self._to_model(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)

    def on_message_complete(self) -> None:
        if self._without_offer:
            return
        self._whole = True
        if self._idle is not None and (self._back is None or self._back.answering):  # else it was refused before
            self._idle.cancel()
            self._idle = None
        if self._chunked:
            self._to_model(b"0\r\n\r\n")
        if (completion := self._completion) is not None:
            self._completion = None
            completion.sent_at = time.monotonic()
            self._meter.begun(completion)
            if completion.ended_at is not None:  # a server that refuses does not wait for the whole of it
                self._meter.ended(completion)

    # The connection to the model

    def _to_model(self, data: bytes) -> None:
        if self._back is not None:
            self._back.write(data)
            return
        self._waiting += data
        self._meter.waiting += len(data)
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        if self._meter.waiting > WAITING_BYTES and self._watch is None:
            self.pause()

    async def _connect(self) -> None:
        meter = self._meter
        upstream = meter.upstream
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, back = await asyncio.get_running_loop().create_connection(
                    lambda: _Back(self, meter),
                    upstream.host,
                    upstream.port,
                    ssl=meter.tls,
                    server_hostname=upstream.host if meter.tls else None,
                )
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: a name that is none, which is found out here
            why = "no answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", None) or str(error)
            self._not_reached(f"the model's server {upstream.host_header} cannot be reached: {why}")
            return
        self.resume()  # before it takes what waited: that may be more than it takes at once, and pauses anew
        back.write(bytes(self._waiting))
        self._forget()
        for completion, head in self._early:
            back.expect(completion, head=head)
        self._early.clear()
        self._back = back
        self._connecting = None

    def _forget(self) -> None:
        self._meter.waiting -= len(self._waiting)
        self._waiting.clear()

    def _not_reached(self, told: str) -> None:
        self._give_up("not reached")
        self._refuse(502, told)

    def _give_up(self, how: str) -> None:
        """What was asked before the model's server was reached gets no response."""
        for completion, _ in self._early:
            if completion is not None:
                self._meter.over(completion, how)
        self._early.clear()

    # To the chatbot

    def write(self, data: bytes) -> None:
        """Bytes of the response."""
        self._transport.write(data)

    def rest(self) -> None:
        """The connection is let go of, unless a request is whole by then, or there is more of its body."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._transport.close)

    def end(self, *, reset: bool) -> None:
        """The model's server has closed, or broken, its side."""
        if reset:
            self.cut()
        else:
            self._transport.close()

    def cut(self) -> None:
        """Break the connection, so that the chatbot sees what the meter saw."""
        found = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def _not_taken(self, status: int, message: str) -> NoReturn:
        """Refuse from within the parser: nothing of this request, nor what follows it, is passed on."""
        self._refusal = (status, message)
        raise _NotTaken

    def _refuse(self, status: int, message: str) -> None:
        """An answer of the meter's own, where no other is owed: it says whose it is."""
        self._parser = None
        before = len(self._early) - (0 if self._whole else 1)  # the one that is refused
        if not (self._back.answering if self._back is not None else before > 0):
            body = json.dumps(
                {"error": {"message": f"motamot meter: {message}", "type": "meter", "code": None}}
            ).encode()
            head = (
                f"HTTP/1.1 {status} Meter\r\ncontent-type: application/json\r\nconnection: close\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            )
            self._transport.write(head.encode() + body)
        self._transport.close()

    def pause_writing(self) -> None:
        """The chatbot reads slowly: so does the meter."""
        if self._back is not None:
            self._back.pause()

    def resume_writing(self) -> None:
        if self._back is not None:
            self._back.resume()

    def pause(self) -> None:
        """The model's side takes no more."""
        self._transport.pause_reading()
        self._watch = asyncio.get_running_loop().call_later(LEFT_SECONDS, self._look)

    def resume(self) -> None:
        """It does again."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._transport.resume_reading()

    def _look(self) -> None:
        """Whether the chatbot is still there: the event loop hears of its end only where it reads.

        (What it has sent and nobody has read holds up its end in the network: of such a request it is not seen.)
        """
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), _GONE)
        if poll.poll(0):
            self._transport.abort()
        else:
            self._watch = asyncio.get_running_loop().call_later(LEFT_SECONDS, self._look)


class _Back(asyncio.Protocol):
    """The model's side: what comes goes to the chatbot first, and is looked at afterwards."""

    def __init__(self, front: _Front, meter: Meter) -> None:
        self._front = front
        self._meter = meter
        self._transport: asyncio.Transport
        self._expected: list[tuple[Completion | None, bool]] = []
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._gone = False  # the chatbot is

    @property
    def answering(self) -> bool:
        """Whether a response is owed."""
        return bool(self._expected)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvloop's is no subclass
        self._transport = transport
        self._meter.behind.add(self)
        _no_delay(transport)

    def expect(self, completion: Completion | None, *, head: bool) -> None:
        """A response will come. completion: what it is the response of. head: it has no body, whatever it says."""
        self._expected.append((completion, head))

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self._gone:
            return
        self._front.write(data)
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):  # whatever it is, it was passed on
            self._parser = None

    def connection_lost(self, error: Exception | None) -> None:
        self._meter.behind.discard(self)
        if self._gone:
            return
        for completion, _ in self._expected:
            self._over(completion, "reset" if error is not None else "cut")
        self._expected.clear()
        self._front.end(reset=error is not None)

    def left(self) -> None:
        """The chatbot has closed its side: the model stops, and what was under way was left."""
        self._gone = True
        for completion, _ in self._expected:
            self._over(completion, "left")
        self._expected.clear()
        self._transport.abort()

    def pause_writing(self) -> None:
        self._front.pause()

    def resume_writing(self) -> None:
        self._front.resume()

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    # The response, as the parser reads it

    def on_message_begin(self) -> None:
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200 or not self._expected:
            return
        completion, head = self._expected[0]
        if completion is not None:
            completion.answered(status, self._headers)
        if head:  # the parser waits for a body that never comes
            self._next()
            self._parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        if self._expected and (completion := self._expected[0][0]) is not None:
            completion.came(body)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if self._parser.get_status_code() >= 200 and self._expected:
            self._next()

    def _next(self) -> None:
        completion, _ = self._expected.pop(0)
        self._over(completion, "complete")
        if not self._expected:
            self._front.rest()

    def _over(self, completion: Completion | None, how: str) -> None:
        if completion is not None:
            self._meter.over(completion, how)
