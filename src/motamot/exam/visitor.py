"""The visitor of an examination: asks over a real socket, reads as its kind of client does, stops, leaves, goes on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import aiohttp

from motamot.answer import AnswerEvent, Ended, Outcome, Text, Usage
from motamot.exam import resuming
from motamot.exam.presets import Preset, Talk, named_in, with_headers
from motamot.tape import Piece, Request, Tape

__all__ = ["Heard", "Visitor"]

ANSWER_SECONDS = 30.0
"""For one answer, from the question to its end."""
ANSWER_BYTES = 8 << 20
"""The longest answer of a case has some hundred kilobytes, with all that stands around its text."""
_KEPT_BYTES = 65_536  # of an answer that has been judged
_SLOW_SEGMENT_BYTES = 1024
_WHERE_BYTES = 65_536  # of a body that only says where the answer is
_SLOW_BYTES = 4096  # that a slow visitor's system takes before the chatbot has to wait


@dataclass(slots=True, eq=False)
class Heard:
    """What came for one question. Times are seconds since it was sent.

    refused: the status and the body's beginning, where it is not 2xx. broke: how the connection ended before its time.
    left:    the visitor closed it, or stopped the answer. too_much: it read no further than `ANSWER_BYTES`.
    before:  the text it had when its connection broke, where this response goes on with it.
    """

    request: Request
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    pieces: list[Piece] = field(default_factory=list)
    events: list[tuple[float, AnswerEvent]] = field(default_factory=list)
    refused: str = ""
    broke: str = ""
    left: bool = False
    before: str = ""
    timed_out: bool = False
    too_much: bool = False
    began: float = field(default_factory=time.monotonic)
    over_at: float | None = None
    sent: asyncio.Event = field(default_factory=asyncio.Event, repr=False)  # the request has left

    @property
    def text(self) -> str:
        """The answer's text, as the visitor has it."""
        return _whole(self.before + "".join(event.text for _, event in self.events if isinstance(event, Text)))

    @property
    def end(self) -> Ended | None:
        """How the answer ended, as the client was told."""
        return next((event for _, event in reversed(self.events) if isinstance(event, Ended)), None)

    @property
    def failed(self) -> bool:
        """Whether the visitor is told that it failed."""
        if self.refused or self.broke:
            return True
        return self.end is not None and self.end.outcome in (Outcome.FAILED, Outcome.INTERRUPTED)

    @property
    def whole(self) -> bool:
        """Whether the visitor takes the answer for a complete one."""
        return not self.failed and self.end is not None and self.end.outcome is Outcome.COMPLETE

    @property
    def usage(self) -> Usage | None:
        """The tokens that the client is told."""
        return self.end.usage if self.end is not None else None

    @property
    def first_text(self) -> float | None:
        """When the first text came."""
        return next((at for at, event in self.events if isinstance(event, Text)), None)

    def forget(self) -> None:
        """It is judged: only what a report shows of it is kept."""
        size = 0
        for place, piece in enumerate(self.pieces):
            size += len(piece.data)
            if size > _KEPT_BYTES:
                self.pieces[place:] = [Piece(piece.at, piece.data[:_KEPT_BYTES])]
                break
        self.events = [(at, event) for at, event in self.events if isinstance(event, Ended)]

    def tape(self) -> Tape:
        """What came over the wire."""
        return Tape(
            pieces=tuple(self.pieces),
            status=self.status,
            headers=self.headers,
            request=self.request,
            end="left" if self.left else "reset" if self.broke else "closed",
            ended_at=self.over_at,
            source="live",
        )


def _whole(text: str) -> str:
    """Halves of a character that came in two pieces of JSON are one again, as in a page's string."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Visitor:
    """One visitor with one conversation. Use it as a context; leaving the context leaves the chatbot.

    slow: bytes a second that it reads; None: as they come.
    """

    def __init__(
        self,
        url: str,
        preset: Preset,
        *,
        headers: Sequence[tuple[str, str]] = (),
        stop: Request | None = None,
        slow: int | None = None,
    ) -> None:
        self.talk = Talk()
        self.heard: list[Heard] = []
        self._url = url
        self._preset = preset
        self._headers = tuple(headers)
        self._stop = stop
        self._slow = slow
        self._session: aiohttp.ClientSession | None = None
        self._readings: dict[Heard, asyncio.Task[None]] = {}
        self._grown = asyncio.Event()
        self.on_text: Callable[[Heard], None] = lambda _: None

    async def __aenter__(self) -> Visitor:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_sent)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, force_close=True, socket_factory=None if self._slow is None else _narrow
            ),
            read_bufsize=2**16 if self._slow is None else _SLOW_BYTES,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            trace_configs=[trace],
            cookie_jar=aiohttp.CookieJar(unsafe=True),  # of addresses, too: a chatbot under test has no name
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for reading in self._readings.values():
            reading.cancel()
        await asyncio.gather(*self._readings.values(), return_exceptions=True)
        assert self._session is not None
        await self._session.close()

    def ask(self, message: str, times: int = 1, *, resumable: bool = False) -> list[Heard]:
        """Ask, `times` times at once by the very same request. resumable: and say that this client can come back."""
        self.talk.say("user", message)
        asked = with_headers(self._preset.ask(self._url, self.talk, message), self._headers)
        if resumable:
            asked = resuming.with_return(self._preset.name, asked)
        new = [Heard(asked) for _ in range(times)]
        self.heard += new
        for one in new:
            self._readings[one] = asyncio.create_task(self._read(one))
        return new

    async def until_sent(self, heard: Heard) -> None:
        """Wait until the request has left, or failed: on a busy machine that may take longer than what comes next."""
        sent = asyncio.ensure_future(heard.sent.wait())
        await asyncio.wait({sent, self._readings[heard]}, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        sent.cancel()

    async def until(self, heard: Heard, text: str, seconds: float = ANSWER_SECONDS) -> bool:
        """Read until the text holds this; False when it has ended, or too long has passed, without it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while text not in heard.text and not self._readings[heard].done():
                    self._grown.clear()
                    await self._grown.wait()
        return text in heard.text

    async def end(self, heard: Heard) -> None:
        """Read to the end."""
        await asyncio.wait({self._readings[heard]}, timeout=ANSWER_SECONDS)
        if not self._readings[heard].done():
            heard.timed_out = True
            await self._leave(heard)
        if heard.text and not heard.failed:
            self.talk.say("assistant", heard.text)

    async def stop(self, heard: Heard, seen: str = "") -> None:
        """Stop, as this kind of client does: by its route, if there is one, and by leaving.

        seen: the end of what was seen, where the client can say that it was not all that had come.
        """
        heard.left = True
        route = self._stop
        asked = named_in(route, self.talk) if route is not None else self._preset.stop(self._url, self.talk)
        if asked is not None:
            if seen:
                asked = resuming.with_seen(asked, heard.pieces, seen)
            assert self._session is not None
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                sent = with_headers(asked, self._headers)
                async with asyncio.timeout(5):
                    async with self._session.request(
                        sent.method, sent.url, data=sent.body or None, headers=sent.headers, allow_redirects=False
                    ) as response:
                        await response.content.read(_WHERE_BYTES)
        await self._leave(heard)
        if heard.text:
            self.talk.say("assistant", heard.text)

    async def leave(self, heard: Heard) -> None:
        """Close the connection, as a closed tab does."""
        heard.left = True
        await self._leave(heard)

    async def resume(self, heard: Heard) -> Heard:
        """Lose the connection, if it is there, and come back to the same answer. Returns: what comes now."""
        heard.left = True
        await self._leave(heard)
        asked = resuming.resume(self._preset.name, heard.request, self.talk, heard.pieces)
        again = Heard(asked, before="" if resuming.replays(self._preset.name) else heard.text)
        self.heard.append(again)
        self._readings[again] = asyncio.create_task(self._read(again))
        return again

    async def _leave(self, heard: Heard) -> None:
        self._readings[heard].cancel()
        await asyncio.wait({self._readings[heard]})

    async def _read(self, heard: Heard) -> None:
        assert self._session is not None
        hearing = self._preset.hear()
        asked = heard.request
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._session.request(
                asked.method,
                asked.url,
                data=asked.body or None,
                headers=asked.headers,
                allow_redirects=False,
                trace_request_ctx=heard,
            )
            if self._preset.twice and response.status == 200:
                after = self._preset.then(asked, await response.content.read(_WHERE_BYTES))
                if after is not None:
                    response.close()
                    response = await self._session.request(
                        after.method, after.url, headers=after.headers, allow_redirects=False
                    )
            heard.status = response.status
            heard.headers = tuple(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers
            )
            size = 0
            async for data in response.content.iter_any():
                at = time.monotonic() - heard.began
                heard.pieces.append(Piece(at, data))
                size += len(data)
                if size > ANSWER_BYTES:
                    heard.too_much = True
                    heard.broke = f"more than {ANSWER_BYTES} bytes came"
                    break
                if 200 <= response.status < 300:
                    self._take(heard, hearing.feed(data), at)
                if self._slow is not None:
                    await asyncio.sleep(len(data) / self._slow)
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            heard.broke = heard.broke or (str(error) or type(error).__name__)
        finally:
            heard.over_at = time.monotonic() - heard.began
            if response is not None:
                response.close()
            if heard.status is not None and not 200 <= heard.status < 300:
                heard.refused = (
                    f"{heard.status} {b''.join(p.data for p in heard.pieces)[:300].decode('utf-8', 'replace')}"
                )
            elif not heard.left:
                self._take(heard, hearing.close(), heard.over_at)
            self._grown.set()

    def _take(self, heard: Heard, events: Sequence[AnswerEvent], at: float) -> None:
        if not events:
            return
        heard.events += ((at, event) for event in events)
        self.talk.heard(events)
        self.on_text(heard)
        self._grown.set()


async def _sent(
    session: aiohttp.ClientSession, context: SimpleNamespace, told: aiohttp.TraceRequestHeadersSentParams
) -> None:
    """aiohttp writes a request's head, and with it its body."""
    del session, told
    if isinstance(context.trace_request_ctx, Heard):
        context.trace_request_ctx.sent.set()


def _narrow(address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """A socket that takes little ahead, so that a slow reader is one for the chatbot, too."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SLOW_BYTES)
    with contextlib.suppress(OSError):
        # On loopback a segment has 64 kB, and a sender's system holds 40 of them: more than most answers are long.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SLOW_SEGMENT_BYTES)
    made.setblocking(False)
    return made
