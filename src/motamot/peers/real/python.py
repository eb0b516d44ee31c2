"""Client libraries from PyPI, in this process, each by the call that its users make.

A library is imported when it is first looked for, and never needed: what is missing is told.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from motamot.peers.libraries.seen import Seen, SeenEvent
from motamot.peers.real.library import Library
from motamot.peers.real.wire import SECONDS, Stream, Wire

__all__ = ["python_libraries"]

_MESSAGE_CHARS = 200  # of what a library throws: enough to tell it by


_QUESTION = [{"role": "user", "content": "-"}]  # nobody answers it: the stream is there


class _Ended(Exception):
    """The body has ended, or there was none, and the library would ask again: its user, as ours, stops it there."""


class _Counter:
    """Reads that a library has taken, where we can see it. at: the number of the last one."""

    def __init__(self) -> None:
        self.taken = 0

    @property
    def at(self) -> int:
        return max(0, self.taken - 1)


Read = Callable[[Stream], Iterator[SeenEvent]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A library as it is used. make: imports it, and gives what reads one stream."""

    name: str
    package: str
    how: str
    make: Callable[[], Read]
    stream: str = "text"
    tells: frozenset[str] = frozenset({"event", "id"})


def python_libraries(wire: Wire) -> tuple[list[Library], list[str]]:
    """The libraries that are installed, and a sentence for each that is not.

    wire: what serves the streams; must stay open as long as the libraries read.
    """
    found, missing = [], []
    for kind in _KINDS:
        try:
            installed = version(kind.package)
            read = kind.make()
        except (ImportError, PackageNotFoundError):
            missing.append(f"{kind.package} is not installed: pip install {kind.package}")
            continue
        except Exception as error:  # noqa: BLE001 - of another version than was met here
            missing.append(f"{kind.package} {installed} cannot be used: {_told(error)}")
            continue
        library = Library(
            name=kind.name,
            package=kind.package,
            version=installed,
            home="PyPI",
            how=kind.how,
            stream=kind.stream,
            tells=kind.tells,
            read=_bounded(wire, read),
        )
        found.append(library)
    return found, list(dict.fromkeys(missing))  # a package may be used in two ways


def _bounded(wire: Wire, read: Read) -> Callable[[Iterable[bytes]], Seen]:
    def seen(reads: Iterable[bytes]) -> Seen:
        events: list[SeenEvent] = []
        with wire.stream(tuple(reads)) as stream:
            try:
                events.extend(read(stream))
            except _Ended as ended:
                return Seen(events=tuple(events), threw=_told(ended.__context__))
            except Exception as error:  # noqa: BLE001 - whatever a library throws is what its user gets
                return Seen(events=tuple(events), threw=_told(error))
        return Seen(events=tuple(events))

    return seen


def _told(error: BaseException | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"[:_MESSAGE_CHARS]


def _event(data: str, event: str | None, own: str | None, at: int) -> SeenEvent:
    return SeenEvent(data, event or "message", own, at)


def _value(value: object, at: int, event: str | None = None, own: str | None = None) -> SeenEvent:
    return _event(json.dumps(value, ensure_ascii=False, separators=(",", ":")), event, own, at)


def _counted(module: Any) -> tuple[Any, _Counter]:
    """A client of httpx (or httpx2) that counts the reads of a body as they come from the network."""
    counter = _Counter()

    class Counting(module.SyncByteStream):  # type: ignore[misc]  # the module is known at run time only
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __iter__(self) -> Iterator[bytes]:
            for piece in self.inner:
                counter.taken += 1
                yield piece
            counter.taken += 1

        def close(self) -> None:
            self.inner.close()

    class Transport(module.BaseTransport):  # type: ignore[misc]
        def __init__(self) -> None:
            self.inner = module.HTTPTransport(verify=False)  # only this machine is asked, without TLS

        def handle_request(self, request: Any) -> Any:
            counter.taken = 0
            response = self.inner.handle_request(request)
            response.stream = Counting(response.stream)
            return response

    return module.Client(transport=Transport(), timeout=SECONDS, trust_env=False), counter


def _fields(lines: Iterable[str], at: Callable[[], int]) -> Iterator[SeenEvent]:
    """The standard's rules for lines, for clients that give lines and leave the rest to their user.

    Source: WHATWG HTML, "Interpreting an event stream". What differs from the standard is then the lines' fault.
    """
    data: list[str] = []
    event = last_id = ""
    for number, line in enumerate(lines):
        if number == 0:
            line = line.removeprefix("\ufeff")
        if not line:
            if data:
                yield _event("\n".join(data), event, last_id, at())
            data, event = [], ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            event = value
        elif field == "id" and "\0" not in value:
            last_id = value


def _httpx_sse() -> Read:
    httpx_sse = importlib.import_module("httpx_sse")
    client, counter = _counted(importlib.import_module("httpx"))

    def read(stream: Stream) -> Iterator[SeenEvent]:
        with httpx_sse.connect_sse(client, "GET", stream.url) as source:
            for sse in source.iter_sse():
                yield _event(sse.data, sse.event, sse.id, counter.at)

    return read


def _httpx_lines() -> Read:
    client, counter = _counted(importlib.import_module("httpx"))

    def read(stream: Stream) -> Iterator[SeenEvent]:
        with client.stream("GET", stream.url) as response:
            yield from _fields(response.iter_lines(), lambda: counter.at)

    return read


def _openai_stream(private: bool) -> Callable[[], Read]:
    def make() -> Read:
        openai = importlib.import_module("openai")
        http, counter = _counted(importlib.import_module("httpx2"))
        client = openai.OpenAI(api_key="-", base_url="http://127.0.0.1", http_client=http, max_retries=0)

        def read(stream: Stream) -> Iterator[SeenEvent]:
            with client.get(stream.url, cast_to=object, stream=True, stream_cls=openai.Stream[object]) as chunks:
                if private:
                    for sse in chunks._iter_events():
                        yield _event(sse.data, sse.event, sse.id, counter.at)
                else:
                    for value in chunks:
                        yield _value(value, counter.at)

        return read

    return make


def _anthropic() -> Read:
    anthropic = importlib.import_module("anthropic")
    http, counter = _counted(importlib.import_module("httpx2"))
    client = anthropic.Anthropic(api_key="-", base_url="http://127.0.0.1", http_client=http, max_retries=0)

    def read(stream: Stream) -> Iterator[SeenEvent]:
        with client.get(stream.url, cast_to=object, stream=True, stream_cls=anthropic.Stream[object]) as chunks:
            for sse in anthropic.Stream.raw_events(chunks.response):
                yield _event(sse.data, sse.event, sse.id, counter.at)

    return read


def _openai_chat() -> Read:
    openai = importlib.import_module("openai")
    http, counter = _counted(importlib.import_module("httpx2"))
    client = openai.OpenAI(api_key="-", base_url="http://127.0.0.1", http_client=http, max_retries=0)

    def read(stream: Stream) -> Iterator[SeenEvent]:
        chat = client.with_options(base_url=stream.url).chat.completions
        with chat.create(model="-", messages=_QUESTION, stream=True) as chunks:
            for chunk in chunks:
                for choice in chunk.choices[:1]:
                    yield _value({"text": choice.delta.content}, counter.at)

    return read


def _anthropic_messages() -> Read:
    anthropic = importlib.import_module("anthropic")
    http, counter = _counted(importlib.import_module("httpx2"))
    client = anthropic.Anthropic(api_key="-", base_url="http://127.0.0.1", http_client=http, max_retries=0)

    def read(stream: Stream) -> Iterator[SeenEvent]:
        messages = client.with_options(base_url=stream.url).messages
        with messages.create(model="-", max_tokens=1, messages=_QUESTION, stream=True) as events:
            for event in events:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    yield _value({"text": event.delta.text}, counter.at)

    return read


def _langgraph() -> Read:
    http = importlib.import_module("langgraph_sdk.client").SyncHttpClient
    client, counter = _counted(importlib.import_module("httpx"))
    sdk = http(client)

    def read(stream: Stream) -> Iterator[SeenEvent]:
        for part in sdk.stream(stream.url, "GET"):
            yield _value(part.data, counter.at, part.event, part.id)

    return read


def _session() -> Any:
    """Of requests, past any proxy that the environment names: only this machine is asked."""
    session = importlib.import_module("requests").Session()
    session.trust_env = False
    return session


def _sseclient() -> Read:
    sseclient, session = importlib.import_module("sseclient"), _session()

    def read(stream: Stream) -> Iterator[SeenEvent]:
        with session.get(stream.url, stream=True, timeout=SECONDS) as response:
            for sse in sseclient.SSEClient(response).events():
                yield _event(sse.data, sse.event, sse.id, stream.at)

    return read


def _requests_lines() -> Read:
    session = _session()

    def read(stream: Stream) -> Iterator[SeenEvent]:
        with session.get(stream.url, stream=True, timeout=SECONDS) as response:
            lines = (line.decode("utf-8", "replace") for line in response.iter_lines(chunk_size=None))
            yield from _fields(lines, lambda: stream.at)

    return read


def _requests_sse() -> Read:
    source, session = importlib.import_module("requests_sse").EventSource, _session()

    def read(stream: Stream) -> Iterator[SeenEvent]:
        with source(stream.url, session=session, timeout=SECONDS, max_connect_retry=0, on_error=_stop) as events:
            for sse in events:
                yield _event(sse.data, sse.type, sse.last_event_id, stream.at)

    return read


def _launchdarkly() -> Read:
    ld = importlib.import_module("ld_eventsource")
    urllib3 = importlib.import_module("urllib3")

    def read(stream: Stream) -> Iterator[SeenEvent]:
        connect = importlib.import_module("ld_eventsource.config").ConnectStrategy.http(
            stream.url, pool=urllib3.PoolManager(timeout=SECONDS)
        )
        client = ld.SSEClient(connect)
        try:
            for sse in client.events:
                yield _event(sse.data, sse.event, sse.last_event_id, stream.at)
        finally:
            client.close()

    return read


def _aiohttp_lines() -> Read:
    aiohttp = importlib.import_module("aiohttp")

    async def read(stream: Stream) -> AsyncIterator[SeenEvent]:
        async with aiohttp.ClientSession() as session, session.get(stream.url) as response:
            lines = [line.decode("utf-8", "replace") async for line in response.content]
        for event in _fields((line.removesuffix("\n").removesuffix("\r") for line in lines), lambda: stream.at):
            yield event

    return _in_loop(read)


def _aiohttp_sse_client() -> Read:
    source = importlib.import_module("aiohttp_sse_client.client").EventSource
    aiohttp = importlib.import_module("aiohttp")

    async def read(stream: Stream) -> AsyncIterator[SeenEvent]:
        # It leaves a session of its own open when it cannot connect.
        async with aiohttp.ClientSession() as session, source(stream.url, session=session, on_error=_stop) as events:
            async for sse in events:
                yield _event(sse.data, sse.type, sse.last_event_id, stream.at)

    return _in_loop(read)


def _stop() -> None:
    raise _Ended


def _in_loop(read: Callable[[Stream], AsyncIterator[SeenEvent]]) -> Read:
    """Run an asynchronous reader in a loop and a thread of its own: whoever calls may have a loop running."""

    async def collect(stream: Stream, events: list[SeenEvent]) -> None:
        async with asyncio.timeout(SECONDS):
            async for event in read(stream):  # not a comprehension: what came before an error counts
                events.append(event)  # noqa: PERF401

    def seen(stream: Stream) -> Iterator[SeenEvent]:
        events: list[SeenEvent] = []
        with ThreadPoolExecutor(1) as thread:
            error = thread.submit(asyncio.run, collect(stream, events)).exception()
        yield from events
        if error is not None:
            raise error

    return seen


_NONE: frozenset[str] = frozenset()
_KINDS = (
    _Kind("real-httpx-sse", "httpx-sse", "connect_sse(…).iter_sse()", _httpx_sse),
    _Kind("real-openai", "openai", "client.get(…, stream=True), a Stream", _openai_stream(False), "json", _NONE),
    _Kind(
        "real-openai-chat", "openai", "client.chat.completions.create(…, stream=True)", _openai_chat, "openai", _NONE
    ),
    _Kind("real-openai-events", "openai", "Stream._iter_events(), below the JSON", _openai_stream(True)),
    _Kind(
        "real-anthropic-chat",
        "anthropic",
        "client.messages.create(…, stream=True)",
        _anthropic_messages,
        "anthropic",
        _NONE,
    ),
    _Kind("real-anthropic-events", "anthropic", "Stream.raw_events(response)", _anthropic),
    _Kind(
        "real-sseclient",
        "sseclient-py",
        "SSEClient(requests.get(…, stream=True)).events()",
        _sseclient,
        tells=frozenset({"event", "own id"}),
    ),
    _Kind("real-launchdarkly", "launchdarkly-eventsource", "SSEClient(url).events", _launchdarkly),
    _Kind("real-requests-sse", "requests-sse", "EventSource(url)", _requests_sse),
    _Kind("real-aiohttp-sse-client", "aiohttp-sse-client", "EventSource(url)", _aiohttp_sse_client),
    _Kind("real-langgraph", "langgraph-sdk", "SyncHttpClient(…).stream(…)", _langgraph, "json"),
    _Kind("real-httpx-lines", "httpx", "response.iter_lines(), fields read by the standard's rules", _httpx_lines),
    _Kind(
        "real-requests-lines", "requests", "response.iter_lines(), fields read by the standard's rules", _requests_lines
    ),
    _Kind(
        "real-aiohttp-lines",
        "aiohttp",
        "async for line in response.content, fields read by the standard's rules",
        _aiohttp_lines,
    ),
)
