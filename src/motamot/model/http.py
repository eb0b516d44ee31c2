"""A model behind HTTP: one streaming chat completion per attempt, asked once, never in secret again.

aiohttp carries it (3.3 times nginx per delta; httpx 9 to 11, the openai client 21 to 29). What it is kept from:
it has no limit on connections (admission is ours), follows no redirection, keeps no cookies, decompresses
nothing by itself, has no timers of its own once connected, and never gets an unfinished response back into
its pool. The reading loop makes no task, timer or queue per delta.
"""

from __future__ import annotations

import asyncio
import io
import zlib
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import aiohttp

from motamot import __version__
from motamot.answer import Source, Usage
from motamot.errors import SettingsError, UpstreamError
from motamot.limits import Limits
from motamot.model.assembly import Assembly, Dialect, Kind, assembly_for
from motamot.model.connection import Connector, Wire, asking, unread
from motamot.model.failures import Teller
from motamot.model.http_settings import checked_name, checked_token_field, own_headers, proxy_for, secrets_of, trusted
from motamot.model.inflate import Inflater
from motamot.model.request import body, check_headers, endpoint, redirected
from motamot.model.turn import Emit, Turn, TurnRequest
from motamot.model.watchdog import Watch, Watchdog

if TYPE_CHECKING:
    from aiohttp.connector import Connection

__all__ = ["HttpAttempt", "HttpModel"]

_KEPT_SECONDS = 15.0
"""How long an idle connection is kept. Longer ones meet more servers that have just closed theirs
(llama.cpp does after 5 s, uvicorn too), shorter ones pay for a TLS handshake in each turn of a tool loop."""

_LARGE_BODY = 1 << 20
"""Bytes of a request's body from which it is written in pieces (aiohttp warns above)."""

_LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})

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
    keep_alive:  keep connections for the next request. False for a server that closes them unseen.
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
        keep_alive: bool = True,
        origin: str = "http",
        marks: tuple[str, ...] = (),
    ) -> None:
        self.name = checked_name(model)
        self.origin = origin
        self.marks = marks
        self.url = endpoint(url)
        self.limits = limits or Limits()
        self.dialect = dialect
        self._token_field = checked_token_field(token_field, self.url)
        self._ask_usage = ask_usage
        self._headers = own_headers(api_key, headers or {}, user_agent)
        self._proxy = proxy_for(self.url, proxy, trust_env=trust_env)
        self._tls = trusted(ca_file)
        self._teller = Teller(self.name, self.url, secrets_of(self.url, self._headers, self._proxy))
        self._keep_alive = keep_alive
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
                connector=Connector(
                    limit=0,
                    ssl=self._tls,
                    **({"keepalive_timeout": _KEPT_SECONDS} if self._keep_alive else {"force_close": True}),
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
        self._connection: tuple[asyncio.Transport, Wire] | None = None
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
        asks = asking.set(self._connected)
        try:
            await self._read(await self._answered(), emit)
        except UpstreamError as error:
            self._error = error
        except asyncio.CancelledError:
            self._drop()
            await asyncio.sleep(0)  # the socket is closed in the loop's next round
            raise
        finally:
            asking.reset(asks)
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
                headers=_merged(self._model._headers, self._headers),
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
        assert isinstance(wire, Wire)
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
        reading = self._read_inflated(response, inflater, emit) if inflater.needed else self._read_plain(response, emit)
        self._ended(response, await reading, emit)

    async def _read_plain(self, response: aiohttp.ClientResponse, emit: Emit) -> str:
        """Read until the end of the answer or of the body. Returns why it was cut, "" where it was not."""
        content = response.content
        while True:
            try:
                chunk = await content.readany()
            except _NETWORK as error:
                if chunk := unread(content):
                    self._take(response, chunk, emit)
                return _said(error)
            if not chunk or self._take(response, chunk, emit):
                return ""

    async def _read_inflated(self, response: aiohttp.ClientResponse, inflater: Inflater, emit: Emit) -> str:
        """The same for a server that compresses although `identity` was asked for. Each piece is bounded, and the
        loop is given back between two of them: a few bytes can hold millions."""
        content = response.content
        cut = ""
        while not cut:
            try:
                chunk = await content.readany()
            except _NETWORK as error:
                chunk, cut = unread(content), _said(error)
            if not chunk:
                break
            try:
                for piece in inflater.feed(chunk):
                    if self._take(response, piece, emit):
                        return ""
                    await asyncio.sleep(0)
            except zlib.error as error:
                return f"the body is not compressed as it says: {error}"
        return cut

    def _take(self, response: aiohttp.ClientResponse, piece: bytes, emit: Emit) -> bool:
        """Pass on what `piece` completes, and say that the model lives. This runs once per delta.

        Returns: the answer is over, nothing more is wanted.
        """
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
                return assembly.done
        elif assembly.deltas:
            self._first_delta_at = monotonic()
            watch.rearm(self._model.limits.silence_seconds)
        if assembly.finished and watch.seconds != self._model.limits.usage_grace_seconds:
            watch.rearm(self._model.limits.usage_grace_seconds)
        return assembly.done

    def _assembly_of(self, response: aiohttp.ClientResponse, first: bytes) -> Assembly:
        """What the reply is, by its content type, and by its first byte where that says better: servers label
        streams as plain text, and errors as streams."""
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        begins = first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if begins == b"<" or (not begins and "html" in content_type):
            raise self._model._teller.web_page(response.status, first)
        if content_type in _LINES:
            kind = Kind.OLLAMA_NDJSON
        elif begins in (b"{", b"[") or (not begins and content_type.endswith("json")):
            kind = Kind.OPENAI_JSON
        else:
            kind = Kind.OPENAI_CHAT
        return assembly_for(kind, dialect=self._model.dialect, limits=self._model.limits)

    def _ended(self, response: aiohttp.ClientResponse, reason: str, emit: Emit) -> None:
        """The body has ended, was cut, or nobody wants more of it. reason: the network's, "" for a proper end."""
        teller = self._model._teller
        assembly = self._assembly
        if assembly is None:
            if self._late is not None:
                raise teller.too_slow(*self._late)
            raise teller.cut(reason, begun=False) if reason else teller.empty(response.status)
        done = assembly.done
        events = assembly.close()
        if events:
            emit(events)
        if self._first_delta_at is None and assembly.deltas:
            self._first_delta_at = monotonic()
        if done and response.connection is not None and self._late is None:
            self._connection = self._response = None
            self._model._linger(response)
        elif done or assembly.finished:
            return  # whatever became of the connection, the answer is whole
        elif self._late is not None:
            self._error = teller.too_slow(*self._late)
        elif reason:
            self._error = teller.cut(reason, begun=assembly.deltas > 0)

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
        except (*_NETWORK, zlib.error):
            pass  # the status says enough
        return bytes(kept[: limits.error_body_bytes])

    # Ending

    def _drop(self) -> None:
        """Close the connection at once, whatever of the question or the answer is still on its way.

        `transport.abort()`, because `close()` first sends what waits to be written, and TLS then says goodbye and
        waits for the answer: a server that reads nothing would keep the generation.
        """
        self._abort()
        self._connection = None
        response, self._response = self._response, None
        if response is not None:
            response.close()

    def _abort(self) -> None:
        """End the connection, unless the body was read to its end: then it is another attempt's by now."""
        if self._connection is not None and (self._response is None or self._response.connection is not None):
            self._connection[0].abort()

    def _late_by(self, message: str, reason: str) -> None:
        """A time limit has passed: the reader is woken by the end of its connection."""
        self._late = self._late or (message, reason)
        self._abort()

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


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _merged(headers: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """`headers` and `more`; where both have a name, in whatever case, `more` counts."""
    replaced = {name.lower() for name in more}
    return {**{name: value for name, value in headers.items() if name.lower() not in replaced}, **more}
