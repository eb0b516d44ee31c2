"""The wire as a browser's network layer tells it: Chrome DevTools Protocol events in, tapes out. No I/O of its own.

The bytes come from the network layer, before any script of the page sees them, and the page's own requests are left as
they are: no `fetch` is wrapped. `Network.streamResourceContent` gives what came so far, and from then on the bytes with
each `Network.dataReceived` (Chrome DevTools Protocol, domain Network); measured with Chromium 156 for `fetch`,
`XMLHttpRequest` and `EventSource`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from motamot.tape import Piece, Request, Tape
from motamot.tape.hiding import without_secrets

__all__ = [
    "RECONNECT_SECONDS",
    "STREAMS",
    "STREAM_BYTES",
    "VISIT_BYTES",
    "Stream",
    "Wire",
    "asks_anew",
    "same_requests",
]

STREAM_BYTES = 64 << 20
"""Bytes kept of one response; what comes after is left out, and said."""
VISIT_BYTES = 256 << 20
"""Bytes kept of all responses of one visit."""
STREAMS = 500
"""Responses kept of one visit."""
RECONNECT_SECONDS = 4.5
"""By then an EventSource that the server ended has come back: after 3 s in Chromium."""

_SCRIPTS = ("Fetch", "XHR", "EventSource")
_STREAMING = ("text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl")
_ANSWERS = ("text/plain", "application/octet-stream", "application/json", "application/problem+json", "text/html")

Send = Callable[[str, dict[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(slots=True, weakref_slot=True)
class Stream:
    """One response that a script of the page asked for.

    sent_wall: seconds since the epoch at which the request was sent, by the browser's clock.
    streams:   its content type is one of streams; else it may still be an answer, whole.
    noted:     up to when something was made of it: a page may keep one stream open for all of its answers.
    size: bytes of its body that are kept.
    """

    request: Request
    sent_wall: float
    kind: str
    sent_at: float  # the browser's monotonic clock, as all times of its events
    streams: bool = False
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    head_at: float | None = None
    last_at: float = 0.0
    ended_at: float | None = None
    end: str = "unknown"
    notes: list[str] = field(default_factory=list)
    noted: float = -1.0
    _reads: list[tuple[float, int, bytes | None]] = field(default_factory=list)
    size: int = 0
    _early: bytes = b""

    @property
    def open(self) -> bool:
        """Its body has not ended."""
        return self.ended_at is None

    @property
    def fresh(self) -> bool:
        """Nothing was made of it yet."""
        return self.noted < self.sent_at

    @property
    def news(self) -> bool:
        """It was asked for, or something came, since something was made of it."""
        return self.last_at > self.noted

    @property
    def began(self) -> float:
        """Seconds since the epoch at which that began which is new of it."""
        return self.wall(max(self.sent_at, self.noted))

    def wall(self, at: float) -> float:
        """Seconds since the epoch of a moment by the clock of the browser's events."""
        return self.sent_wall + at - self.sent_at

    def note(self) -> None:
        """Something was made of it up to here."""
        self.noted = max(self.last_at, self.sent_at)

    def tape(self) -> Tape:
        """What came since something was made of it, without secrets; times are seconds since then, or the request."""
        new = [(at, data) for at, _, data in self._reads if data and at > self.noted]
        pieces = tuple(Piece(max(0.0, at - max(self.sent_at, self.noted)), data) for at, data in new)
        tape = Tape(
            pieces=pieces,
            status=self.status,
            headers=self.headers,
            request=self.request,
            end="left" if self.open else self.end,  # it goes on, and whoever heard it does not
            head_at=self._since(self.head_at) if self.fresh else None,
            ended_at=self._since(self.ended_at),
            source="live",
            notes=tuple(self.notes),
        )
        return without_secrets(tape)

    def read(self, at: float, length: int, data: bytes | None, room: int = VISIT_BYTES) -> None:
        """A read of `length` bytes; data: None where the browser has not told them yet. room: left of the visit's."""
        self.last_at = at
        if length > min(STREAM_BYTES - self.size, room):
            most = STREAM_BYTES if length <= room else VISIT_BYTES
            of = "" if most == STREAM_BYTES else " in all"
            note = f"more than {most >> 20} MiB came{of}: the rest was not kept"
            if note not in self.notes:
                self.notes.append(note)
            return
        self.size += length
        if data is None and len(self._early) >= length:
            data, self._early = self._early[:length], self._early[length:]
        self._reads.append((at, length, data))

    def fill(self, data: bytes, *, whole: bool = False) -> bool:
        """The bytes of the reads that had none (whole: of all), put together. Returns: whether their lengths fit."""
        places = [place for place, (_, _, known) in enumerate(self._reads) if whole or known is None]
        if not whole and data and not places:
            self._early = data  # told before the event that announces them
            return True
        if sum(self._reads[place][1] for place in places) != len(data):
            return False
        offset = 0
        for place in places:
            at, length, _ = self._reads[place]
            self._reads[place] = (at, length, data[offset : offset + length])
            offset += length
        return True

    @property
    def untold(self) -> bool:
        """Bytes came that the browser has not told."""
        return any(known is None for _, _, known in self._reads)

    def _since(self, at: float | None) -> float | None:
        return None if at is None else max(0.0, at - max(self.sent_at, self.noted))


class Wire:
    """All responses of one page, in the order of their requests.

    send: sends a command to the browser and gives its result.
    """

    def __init__(self, send: Send, streams: list[Stream]) -> None:
        self._send = send
        # Weakly: what made room in `streams`, by this page or another, is kept nowhere.
        self._by_id: WeakValueDictionary[str, Stream] = WeakValueDictionary()
        self.streams = streams

    def request_will_be_sent(self, event: Mapping[str, Any]) -> None:
        """`Network.requestWillBeSent`."""
        if event.get("type") not in _SCRIPTS or not self._room():
            return
        told = event["request"]
        asked = Request(
            method=told["method"],
            url=told["url"],
            headers=_headers(told["headers"]),
            body=told.get("postData", "").encode("utf-8", "replace"),
        )
        stream = Stream(asked, float(event["wallTime"]), event["type"], float(event["timestamp"]))
        stream.last_at = stream.sent_at
        if event["requestId"] in self._by_id:  # redirected: the request goes on under its number
            self.streams.remove(self._by_id[event["requestId"]])
        self._by_id[event["requestId"]] = stream
        self.streams.append(stream)

    def _room(self) -> bool:
        """Whether one more is kept: of many, the oldest that was no stream and is over makes room."""
        if len(self.streams) < STREAMS:
            return True
        over = next((stream for stream in self.streams if not stream.streams and not stream.open), None)
        if over is not None:
            self.streams.remove(over)
        return over is not None

    async def response_received(self, event: Mapping[str, Any]) -> None:
        """`Network.responseReceived`: from here on the bytes of what may be an answer are asked for."""
        stream = self._by_id.get(event["requestId"])
        if stream is None:
            return
        told = event["response"]
        stream.status, stream.headers = told["status"], _headers(told["headers"])
        stream.head_at = float(event["timestamp"])
        media = str(told.get("mimeType", "")).lower()
        stream.streams = media in _STREAMING
        if not stream.streams and not (media in _ANSWERS and stream.request.method == "POST"):
            del self._by_id[event["requestId"]]
            self.streams.remove(stream)
            return
        try:
            got = await self._send("Network.streamResourceContent", {"requestId": event["requestId"]})
        except Exception as error:  # noqa: BLE001  # of a library that is not loaded here; told in the notes
            await self._whole(event["requestId"], stream, error)
        else:
            stream.fill(_bytes(got.get("bufferedData")))

    def data_received(self, event: Mapping[str, Any]) -> None:
        """`Network.dataReceived`."""
        stream = self._by_id.get(event["requestId"])
        if stream is None or not event["dataLength"]:
            return
        data = event.get("data")
        room = VISIT_BYTES - sum(one.size for one in self.streams)
        stream.read(float(event["timestamp"]), int(event["dataLength"]), None if data is None else _bytes(data), room)

    async def loading_finished(self, event: Mapping[str, Any]) -> None:
        """`Network.loadingFinished`."""
        stream = self._by_id.get(event["requestId"])
        if stream is not None:
            stream.ended_at, stream.end = float(event["timestamp"]), "closed"
            if stream.untold:
                await self._whole(event["requestId"], stream, None)

    def loading_failed(self, event: Mapping[str, Any]) -> None:
        """`Network.loadingFailed`: the page left, or the connection broke."""
        stream = self._by_id.get(event["requestId"])
        if stream is None:
            return
        stream.ended_at = float(event["timestamp"])
        stream.end = "left" if event.get("canceled") else "reset"
        if stream.status is None:
            stream.notes.append(f"the request failed before any response: {event.get('errorText', '')}")

    async def _whole(self, number: str, stream: Stream, why: Exception | None) -> None:
        """The body of a response that had ended before its bytes could be asked for as they came."""
        if not stream.untold:
            return
        try:
            got = await self._send("Network.getResponseBody", {"requestId": number})
        except Exception as error:  # noqa: BLE001  # as above
            if not stream.open:
                stream.notes.append(f"the browser did not keep these bytes ({why or error})")
            return
        body = str(got.get("body", ""))
        if got.get("base64Encoded"):
            stream.fill(_bytes(body), whole=True)
            return
        # A text without a charset is told as windows-1252, whatever it is: the lengths say which was meant.
        for encoding in ("utf-8", "windows-1252", "latin-1"):
            try:
                if stream.fill(body.encode(encoding), whole=True):
                    return
            except UnicodeEncodeError:
                continue
        stream.notes.append("the browser told these bytes as text that cannot be turned back into them")


def same_requests(streams: Sequence[Stream], *, one_question: bool) -> list[list[Stream]]:
    """Requests for the same thing, put together: asked again though nobody had asked for it.

    Where one question was put, all that are equal; else those that overlap, or are a connection that came back.
    """
    groups: list[list[Stream]] = []
    for stream in streams:
        for group in groups:
            if _equal(group[-1], stream) and (one_question or _follows(group[-1], stream)):
                group.append(stream)
                break
        else:
            groups.append([stream])
    return groups


def asks_anew(stream: Stream) -> bool:
    """Whether this request may have begun an answer: not one that only came back for the rest of one (it says what it
    had last), that was told there is nothing (204), or that reached nobody.
    """
    if any(name.lower() == "last-event-id" for name, _ in stream.request.headers):
        return False
    return stream.status != 204 and not (stream.status is None and stream.end == "reset")


def _equal(one: Stream, other: Stream) -> bool:
    return (one.request.method, one.request.url, one.request.body) == (
        other.request.method,
        other.request.url,
        other.request.body,
    )


def _follows(one: Stream, other: Stream) -> bool:
    if one.ended_at is None or other.sent_at < one.ended_at:
        return True
    return other.kind == "EventSource" and other.sent_at - one.ended_at < RECONNECT_SECONDS


def _headers(told: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in told.items())


def _bytes(told: Any) -> bytes:
    try:
        return base64.b64decode(told or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
