"""A model behind HTTP: one streaming chat completion per attempt, asked once, never in secret again.

aiohttp carries it (3.3 times nginx per delta; httpx 9 to 11, the openai client 21 to 29). What it is kept from:
it has no limit on connections (admission is ours), follows no redirection, keeps no cookies, decompresses
nothing by itself, has no timers of its own once connected, and never gets an unfinished response back into
its pool. The reading loop makes no task, timer or queue per delta.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import urllib.request
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler

from motamot import __version__
from motamot.answer import Source, Usage
from motamot.errors import SettingsError, UpstreamError
from motamot.limits import Limits
from motamot.model.assembly import Assembly, Dialect, assembly_for
from motamot.model.failures import Teller
from motamot.model.inflate import Inflater
from motamot.model.request import body, check_headers, endpoint, redirected
from motamot.model.turn import Emit, Turn, TurnRequest
from motamot.model.watchdog import Watch, Watchdog

if TYPE_CHECKING:
    from aiohttp.client import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

__all__ = ["HttpAttempt", "HttpModel"]

_KEPT_SECONDS = 15.0
"""How long an idle connection is kept. Longer ones meet more servers that have just closed theirs
(llama.cpp does after 5 s, uvicorn too), shorter ones pay for a TLS handshake in each turn of a tool loop."""

_LARGE_BODY = 1 << 20
"""Bytes of a request's body from which it is written in pieces (aiohttp warns above)."""

_NETWORK = (aiohttp.ClientError, OSError, ValueError)
"""What aiohttp raises for what a network or a peer does. asyncio's TimeoutError is an OSError."""

_POST_AGAIN = (307, 308)
_MOVED = (301, 302, 303, *_POST_AGAIN)


class HttpModel:
    """A server of OpenAI-compatible chat completions.

    url:         the server, its base up to `/v1`, or the whole address (`motamot.model.request.endpoint`).
    model:       the model's name as its server knows it.
    api_key:     sent as a Bearer token; never logged, never in an error, never taken to another origin.
    limits:      times and sizes; `limits.exchange_seconds` bounds one attempt as well.
    headers:     further request headers, such as Azure's `api-key`.
    proxy:       `http://[user:password@]host:port`. None: the environment's (`HTTPS_PROXY`, `NO_PROXY`, …) if
                 `trust_env`, but never for a loopback address.
    ca_file:     certificate authorities (PEM) trusted instead of the system's.
    token_field: the request field of the token limit: `max_tokens`, or `max_completion_tokens`. None: the
                 latter for api.openai.com, whose newer models refuse the former; else the former. A server that
                 refuses it says so in an error with the way out: nothing is asked twice in silence.
    ask_usage:   send `stream_options.include_usage`. Only for servers that refuse the field: False.
    dialect:     faults of this server that are to be repaired.
    origin, marks: as `motamot.model.turn.Model` has them, for models served by a child process of ours.
    Raises:      SettingsError for settings that cannot work.

    Belongs to one event loop at a time; `close` it before that loop ends.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        limits: Limits | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        ca_file: str | Path | None = None,
        token_field: str | None = None,
        ask_usage: bool = True,
        dialect: Dialect | None = None,
        user_agent: str = f"motamot/{__version__}",
        origin: str = "http",
        marks: tuple[str, ...] = (),
    ) -> None:
        self.name = _checked_name(model)
        self.origin = origin
        self.marks = marks
        self.url = endpoint(url)
        self.limits = limits or Limits()
        self.dialect = dialect
        self._token_field = _checked_token_field(token_field, self.url)
        self._ask_usage = ask_usage
        self._headers = _headers(api_key, headers or {}, user_agent)
        self._proxy = _checked_proxy(proxy) if proxy else _environment_proxy(self.url) if trust_env else None
        self._tls = _tls(ca_file)
        self._teller = Teller(self.name, self.url, _secrets(self.url, self._headers, self._proxy))
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lingering: dict[aiohttp.ClientResponse, Watch] = {}

    def __repr__(self) -> str:
        return f"HttpModel({self._teller.detail(self.url)!r}, {self.name!r})"

    def attempt(self, request: TurnRequest) -> HttpAttempt:
        """A completion that has not been asked for yet; no I/O happens here.

        `request.extra` or `request.headers` that cannot be sent make an attempt that fails without asking: its
        row of the ledger is opened and closed like any other.
        """
        try:
            check_headers(request.headers)
            asked = body(request, self.name, token_field=self._token_field, ask_usage=self._ask_usage)
        except SettingsError as error:
            return HttpAttempt(self, b"", {}, error)
        return HttpAttempt(self, asked, request.headers)

    async def close(self) -> None:
        """Close all connections, those of attempts under way too. A later attempt opens new ones."""
        session, self._session = self._session, None
        for response, watch in list(self._lingering.items()):
            watch.cancel()
            response.close()
        self._lingering.clear()
        if session is not None:
            await session.close()
            await asyncio.sleep(0)  # sockets are closed in the loop's next round

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            self._lingering.clear()
            self._session = aiohttp.ClientSession(
                connector=_Connector(
                    limit=0,
                    ssl=self._tls,
                    keepalive_timeout=_KEPT_SECONDS,
                    resolver=aiohttp.ThreadedResolver(),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._session

    def _linger(self, response: aiohttp.ClientResponse) -> None:
        """Keep a complete answer's connection if its body ends soon, as the last chunk often comes after the
        end mark; close it if not. Nobody waits for this."""

        def give_up() -> None:
            self._lingering.pop(response, None)
            response.close()

        def ended() -> None:  # aiohttp has taken the connection back by now
            watch.cancel()
            self._lingering.pop(response, None)

        watch = Watchdog.here().watch(self.limits.linger_seconds, give_up)
        self._lingering[response] = watch
        response.content.on_eof(ended)


class HttpAttempt:
    """One request to a model's server: `motamot.model.turn.Attempt`."""

    def __init__(
        self, model: HttpModel, asked: bytes, headers: Mapping[str, str], unsendable: SettingsError | None = None
    ) -> None:
        self._model = model
        self._asked = asked
        self._headers = headers
        self._unsendable = unsendable
        self._left = False  # the question, for the model's server: until then nothing was spent
        self._assembly: Assembly | None = None
        self._error: UpstreamError | None = None
        self._watch: Watch | None = None
        self._late: tuple[str, str] | None = None  # the time limit that passed, for the visitor and the operator
        self._connection: tuple[asyncio.Transport, _Wire] | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._first_delta_at: float | None = None

    @property
    def first_delta_at(self) -> float | None:
        """`time.monotonic()` of the first delta (text, reasoning or tool call), or None."""
        return self._first_delta_at

    def snapshot(self) -> Turn:
        """The turn as far as it has come. Its usage is zero as long as the question has not left."""
        if self._assembly is None:
            usage = None if self._left else Usage(source=Source.REPORTED)
            return Turn(finish="incomplete" if self._error is None else "error", error=self._error, usage=usage)
        turn = self._assembly.turn(error=self._error)
        if turn.error is not None and turn.error.detail is not None:
            turn.error.detail = self._model._teller.detail(turn.error.detail)
        return turn

    async def run(self, emit: Emit) -> Turn:
        """Ask, pass on what comes, and give the turn, also where it failed (`turn.error`).

        Cancelling it closes the connection before the cancellation gets out: also while connecting, while the
        server is silent, or while it does not take the question.
        Raises: RuntimeError when run a second time: an attempt is one request.
        """
        if self._watch is not None:
            raise RuntimeError("an attempt is one request, and this one was made")
        limits = self._model.limits
        watchdog = Watchdog.here()
        whole = watchdog.watch(limits.exchange_seconds, self._took_too_long)
        self._watch = watchdog.watch(limits.first_delta_seconds, self._fell_silent)
        attempt = _asking.set(self)
        try:
            await self._read(await self._answered(), emit)
        except UpstreamError as error:
            self._error = error
        except asyncio.CancelledError:
            self._drop()
            await asyncio.sleep(0)  # the socket is closed in the loop's next round
            raise
        finally:
            _asking.reset(attempt)
            self._watch.cancel()
            whole.cancel()
            self._drop()
        return self.snapshot()

    # Asking

    async def _answered(self) -> aiohttp.ClientResponse:
        """The head of the reply, after redirections within the origin: nothing is started by those."""
        if self._unsendable is not None:
            raise self._model._teller.unsendable(self._unsendable)
        url = self._model.url
        for _ in range(self._model.limits.redirects + 1):
            response = await self._post(url)
            if response.status not in _MOVED:
                return response
            self._drop()
            url, same_origin = redirected(url, response.headers.get("Location", ""))
            if not same_origin or response.status not in _POST_AGAIN:
                break
        raise self._model._teller.moved(response.status, url)

    async def _post(self, url: str) -> aiohttp.ClientResponse:
        limits = self._model.limits
        connect = min(limits.connect_seconds, limits.first_delta_seconds, limits.exchange_seconds)
        try:
            self._response = await self._model._opened().post(
                url,
                data=self._asked if len(self._asked) < _LARGE_BODY else io.BytesIO(self._asked),
                headers={**self._model._headers, **self._headers},
                proxy=self._model._proxy,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=connect, ceil_threshold=float("inf")),
            )
        except _NETWORK as error:
            raise self._unanswered(error, connect) from error
        if self._connection is not None:
            self._connection[1].head_came(self._response.content)
        return self._response

    def _connected(self, connection: Connection) -> None:
        """aiohttp has made or found a connection, and is about to write the request on it."""
        wire = connection.protocol
        transport = connection.transport
        assert isinstance(wire, _Wire)
        assert transport is not None
        wire.begin(self._model.limits.response_head_bytes)
        self._connection = (transport, wire)
        self._left = True
        if self._late is not None:
            transport.abort()

    def _unanswered(self, error: Exception, connect_seconds: float) -> UpstreamError:
        """Why no head of a reply came."""
        teller = self._model._teller
        if self._late is not None:
            return teller.too_slow(*self._late)
        if self._connection is None:
            return teller.unreachable(error, connect_seconds)
        wire = self._connection[1]
        if wire.head_too_large:
            return teller.unreadable(f"a head of more than {self._model.limits.response_head_bytes} bytes")
        if isinstance(error, aiohttp.ClientResponseError):
            return teller.unreadable(f"not HTTP: {error.message}")
        never_asked = wire.uses > 1 and wire.received == 0
        return teller.cut(_said(error), begun=False, never_asked=never_asked)

    # Reading

    async def _read(self, response: aiohttp.ClientResponse, emit: Emit) -> None:
        teller = self._model._teller
        inflater = Inflater.named(response.headers.get("Content-Encoding", ""))
        if not 200 <= response.status < 300:
            raise teller.refused(response.status, response.headers, await self._refusal(response, inflater))
        if inflater is None:
            encoding = response.headers.get("Content-Encoding", "")
            raise teller.unreadable(f"the reply is encoded as {encoding!r}, which was not asked for", response.status)
        reason = ""
        try:
            if inflater.needed:
                await self._read_inflated(response, inflater, emit)
            else:
                await self._read_plain(response, emit)
        except _NETWORK as error:
            reason = _said(error)
        self._ended(response, reason, emit)

    async def _read_plain(self, response: aiohttp.ClientResponse, emit: Emit) -> None:
        content = response.content
        try:
            while chunk := await content.readany():
                self._take(response, chunk, emit)
                if self._assembly is not None and self._assembly.done:
                    return
        except _NETWORK:
            if chunk := _unread(content):
                self._take(response, chunk, emit)
            raise

    async def _read_inflated(self, response: aiohttp.ClientResponse, inflater: Inflater, emit: Emit) -> None:
        """The same for a server that compresses although `identity` was asked for. Each piece is bounded, and the
        loop is given back between two of them: a few bytes can hold millions."""
        content = response.content
        cut: Exception | None = None
        while cut is None:
            try:
                chunk = await content.readany()
            except _NETWORK as error:
                chunk, cut = _unread(content), error
            if not chunk:
                break
            for piece in inflater.feed(chunk):
                self._take(response, piece, emit)
                if self._assembly is not None and self._assembly.done:
                    return
                await asyncio.sleep(0)
        if cut is not None:
            raise cut

    def _take(self, response: aiohttp.ClientResponse, piece: bytes, emit: Emit) -> None:
        """Pass on what `piece` completes, and say that the model lives. This runs once per delta."""
        assembly = self._assembly
        if assembly is None:
            assembly = self._assembly = self._assembly_of(response, piece)
        events = assembly.feed(piece)
        if events:
            emit(events)
        watch = self._watch
        assert watch is not None
        if self._first_delta_at is not None:
            if not assembly.finished:
                watch.at = monotonic()
                return
        elif assembly.deltas:
            self._first_delta_at = monotonic()
            watch.rearm(self._model.limits.silence_seconds)
        if assembly.finished and watch.seconds != self._model.limits.usage_grace_seconds:
            watch.rearm(self._model.limits.usage_grace_seconds)

    def _assembly_of(self, response: aiohttp.ClientResponse, first: bytes) -> Assembly:
        """What the reply is, by its content type, and by its first byte where that says better: servers label
        streams as plain text, and errors as streams."""
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        begins = first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if begins == b"<" or (not begins and "html" in content_type):
            raise self._model._teller.web_page(response.status, first)
        if content_type in _LINES:
            kind = "ollama-ndjson"
        elif begins in (b"{", b"[") or (not begins and content_type.endswith("json")):
            kind = "openai-json"
        else:
            kind = "openai-chat"
        return assembly_for(kind, dialect=self._model.dialect, limits=self._model.limits)

    def _ended(self, response: aiohttp.ClientResponse, reason: str, emit: Emit) -> None:
        """The body has ended, was cut, or nobody wants more of it. reason: the network's, "" for a proper end."""
        teller = self._model._teller
        assembly = self._assembly
        if assembly is None:
            if self._late is not None:
                raise teller.too_slow(*self._late)
            raise teller.cut(reason, begun=False) if reason else teller.empty(response.status)
        whole = assembly.done
        events = assembly.close()
        if events:
            emit(events)
        if self._first_delta_at is None and assembly.deltas:
            self._first_delta_at = monotonic()
        if whole and response.connection is not None and not self._late:
            self._connection = self._response = None
            self._model._linger(response)
        elif self._late is not None:
            self._error = teller.too_slow(*self._late)
        elif not whole:
            begun = assembly.deltas > 0
            self._error = teller.cut(reason or "the stream ended without an end mark or a finish reason", begun=begun)

    async def _refusal(self, response: aiohttp.ClientResponse, inflater: Inflater | None) -> bytes:
        """The first bytes of a refusal's body; what comes of it too late, cut or garbled is left out."""
        limits = self._model.limits
        assert self._watch is not None
        self._watch.rearm(limits.error_body_seconds)
        kept = bytearray()
        try:
            while len(kept) < limits.error_body_bytes and (chunk := await response.content.readany()):
                for piece in inflater.feed(chunk) if inflater is not None else ():
                    kept += piece
                    if len(kept) >= limits.error_body_bytes:
                        break
        except _NETWORK:
            pass  # the status says enough
        return bytes(kept[: limits.error_body_bytes])

    # Ending

    def _drop(self) -> None:
        """Close the connection at once, whatever of the question or the answer is still on its way.

        `transport.abort()`, because `close()` first sends what waits to be written, and TLS then says goodbye and
        waits for the answer: a server that reads nothing would keep the generation.
        """
        connection, self._connection = self._connection, None
        response, self._response = self._response, None
        if response is not None and response.connection is None:
            return  # read to its end: the connection is not ours any more
        if connection is not None:
            connection[0].abort()
        if response is not None:
            response.close()

    def _late_by(self, message: str, reason: str) -> None:
        self._late = self._late or (message, reason)
        if self._connection is not None:
            self._connection[0].abort()  # wakes the reader with an end or an error

    def _took_too_long(self) -> None:
        seconds = self._model.limits.exchange_seconds
        self._late_by(f"The answer took longer than {seconds:g} s.", f"exchange_seconds is {seconds:g}")

    def _fell_silent(self) -> None:
        limits = self._model.limits
        if self._assembly is not None and self._assembly.finished:
            self._late_by("", "")  # the usage never came: the answer is complete without it
        elif self._first_delta_at is not None:
            seconds = limits.silence_seconds
            self._late_by(f"The model fell silent for {seconds:g} s.", f"silence_seconds is {seconds:g}")
        else:
            seconds = limits.first_delta_seconds
            self._late_by(
                f"The model did not begin to answer within {seconds:g} s.", f"first_delta_seconds is {seconds:g}"
            )


class _Wire(ResponseHandler):
    """aiohttp's end of a connection, which also counts: how often it was used, and what came back this time."""

    uses = 0
    received = 0
    head_too_large = False
    _head_expected = False
    _head_bytes = 0
    _body: aiohttp.StreamReader | None = None
    _lost = False

    def begin(self, head_bytes: int) -> None:
        """Another request goes out on this connection."""
        self.uses += 1
        self.received = 0
        self._body = None
        self._head_expected = True
        self._head_bytes = head_bytes

    def head_came(self, body: aiohttp.StreamReader) -> None:
        """The head has been read, and `body` is what follows it."""
        self._head_expected = False
        self._body = body
        if self._lost:
            self._tell()

    def data_received(self, data: bytes) -> None:
        if self._head_expected and self.received > self._head_bytes:
            self.head_too_large = True
            self.abort()
            return
        self.received += len(data)
        super().data_received(data)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._lost = True
        self._tell()

    def _tell(self) -> None:
        """aiohttp 3.14 closes the connection on a malformed chunk and forgets to tell who reads the body."""
        body, self._body = self._body, None
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("the body is malformed"))


class _Connector(aiohttp.TCPConnector):
    """aiohttp's pool, which tells the attempt that asks what connection it got."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        wire: type[ResponseHandler] = _Wire
        self._factory = partial(wire, loop=self._loop)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  (aiohttp's own signature)
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        _asking.get()._connected(connection)
        return connection


_asking: ContextVar[HttpAttempt] = ContextVar("_asking")
_LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})


def _unread(content: aiohttp.StreamReader) -> bytes:
    """What arrived before the error that `content` now raises first: with TLS and on uvloop the last bytes and the
    end of the connection often come in one go, and the text in them was sent."""
    content.set_exception(None)  # type: ignore[arg-type]
    return content.read_nowait(-1)


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


# Settings


def _checked_name(model: str) -> str:
    if not model.strip() or len(model) > 200 or not model.isprintable():
        raise SettingsError("the model's name is empty, longer than 200 characters, or holds a control character")
    return model.strip()


def _checked_token_field(token_field: str | None, url: str) -> str:
    if token_field is None:
        return "max_completion_tokens" if urlsplit(url).hostname == "api.openai.com" else "max_tokens"
    if token_field not in ("max_tokens", "max_completion_tokens"):
        raise SettingsError(f"token_field is max_tokens or max_completion_tokens, not {token_field!r}")
    return token_field


def _headers(api_key: str | None, headers: Mapping[str, str], user_agent: str) -> dict[str, str]:
    check_headers({**headers, "User-Agent": user_agent})
    ours = {"User-Agent": user_agent, **headers}
    if api_key is not None and api_key.strip():
        key = api_key.strip()  # a key read from a file ends in a line end
        if not key.isascii() or not key.isprintable() or " " in key:
            raise SettingsError("the key for the model holds a space, a line end or another character no key has")
        if any(name.lower() == "authorization" for name in headers):
            raise SettingsError("give the key for the model, or an Authorization header, not both")
        ours["Authorization"] = f"Bearer {key}"
    return {
        **ours,
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # a compressor holds small pieces back
        "Content-Type": "application/json",
    }


def _checked_proxy(proxy: str) -> str:
    address = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable:
        raise SettingsError("the proxy is not http://host:port or https://host:port; other kinds are not supported")
    return address


def _environment_proxy(url: str) -> str | None:
    """The proxy the environment names for `url`. Never for this machine itself: a proxy elsewhere cannot reach
    a model on it, and forgetting `NO_PROXY=localhost` is common."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    host = parts.hostname or ""
    if not proxy or _loopback(host) or urllib.request.proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    return _checked_proxy(proxy)


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _tls(ca_file: str | Path | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"the certificate authorities in {str(ca_file)!r} cannot be read: {error}") from error


def _secrets(url: str, headers: Mapping[str, str], proxy: str | None) -> list[str]:
    """What must not be read in any message: the key, header values that look like one, passwords."""
    hidden = [value.removeprefix("Bearer ") for name, value in headers.items() if _secret_name(name)]
    hidden += [value for name, value in parse_qsl(urlsplit(url).query) if _secret_name(name)]
    if proxy is not None and (password := urlsplit(proxy).password):
        hidden += [password, unquote(password)]
    return hidden


def _secret_name(name: str) -> bool:
    return any(word in name.lower() for word in ("auth", "key", "token", "secret", "cookie", "password", "sig"))
