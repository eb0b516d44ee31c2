"""What passes the meter is what came: bytes, order, who left and how."""

from __future__ import annotations

import asyncio
import json
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from motamot.errors import InvalidRequest
from motamot.exam.meter.completion import Completion
from motamot.exam.meter.exchanges import Exchanges, Metered
from motamot.exam.meter.tunnel import HEAD_BYTES, Meter, Upstream
from motamot.scripted import ScriptedModel
from tests.scripted.wire import ask, get


@dataclass
class Seen:
    """What the meter told."""

    port: int = 0
    begun: list[Metered] = field(default_factory=list)
    ended: list[Completion] = field(default_factory=list)
    meter: Meter | None = None


@asynccontextmanager
async def metered(url: str) -> AsyncIterator[Seen]:
    seen, exchanges = Seen(), Exchanges()
    seen.meter = Meter(
        Upstream.at(url),
        begun=lambda completion: seen.begun.append(exchanges.begun(completion)),
        ended=seen.ended.append,
    )
    seen.port = await seen.meter.start()
    try:
        yield seen
    finally:
        await seen.meter.close()


async def exchange(port: int, *requests: bytes, wait: float = 5) -> bytes:
    """All that comes back for these requests on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for sent in requests:
        writer.write(sent)
    got = b""
    try:
        async with asyncio.timeout(wait):
            while data := await reader.read(65_536):
                got += data
    except (TimeoutError, ConnectionResetError):
        pass
    writer.close()
    with suppress(ConnectionResetError):
        await writer.wait_closed()
    return got


@asynccontextmanager
async def server(handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server of bytes."""
    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    finally:
        listening.close()


def test_a_response_passes_to_the_byte_however_it_is_framed_and_cut() -> None:
    chance = random.Random(7)
    bodies = [
        (
            b"HTTP/1.1 200 OK\r\nX-Odd:  two  blanks \r\nx-odd: again\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5;ext=1\r\nhello\r\n0\r\nTrailer: yes\r\n\r\n"
        ),
        b"HTTP/1.1 200 \r\nContent-Length: 4\r\n\r\n\xff\x00\r\n",
        b'HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"x": \xf0\x9f',  # ended by its close
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        b"this is no HTTP at all",
    ]

    async def scenario() -> None:
        for body in bodies:

            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes = body) -> None:
                await reader.readuntil(b"\r\n\r\n")
                at = 0
                while at < len(body):
                    size = chance.randint(1, 9)
                    writer.write(body[at : at + size])
                    await writer.drain()
                    await asyncio.sleep(0)
                    at += size
                writer.close()

            async with server(answer) as url, metered(url) as seen:
                assert await exchange(seen.port, ask()) == body

    asyncio.run(scenario())


def test_a_request_passes_but_for_its_host_and_the_beginning_of_its_path() -> None:
    got: list[bytes] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(100_000))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    sent = (
        b"POST /v1/files?purpose=x HTTP/1.1\r\nhOsT: localhost:4000\r\nX-Case: Kept\r\nAuthorization: Bearer s\r\n"
        b"Content-Length: 5\r\n\r\n\x00\xff\r\n!"
    )

    async def scenario() -> None:
        async with server(keep) as url, metered(url) as seen:
            await exchange(seen.port, sent)
            assert got == [sent.replace(b"localhost:4000", Upstream.at(url).host_header.encode())]
            assert seen.meter is not None and seen.meter.others == 1 and not seen.begun

    asyncio.run(scenario())


def test_a_chunked_request_arrives_with_the_same_body() -> None:
    async def scenario() -> None:
        async with ScriptedModel({"default": "hi", "scripts": {"hi": "Hi."}}) as model, metered(model.url) as seen:
            body = json.dumps({"messages": [{"role": "user", "content": "chunked"}]}).encode()
            chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body)))
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            head += b"Transfer-Encoding: chunked\r\n\r\n"
            got = await exchange(seen.port, head + chunks + b"0\r\n\r\n")
            assert b" 200 " in got and model.requests[0].body == json.loads(body)
            assert [one.messages and one.messages.question for one in seen.ended] == ["chunked"]

    asyncio.run(scenario())


def test_several_requests_on_one_connection_keep_their_order() -> None:
    async def scenario() -> None:
        scripts = {"default": "echo", "scripts": {"echo": "E.", "first": "First.", "second": "Second."}}
        async with ScriptedModel(scripts) as model, metered(model.url) as seen:
            last = get("/v1/models", "Connection: close\r\n")
            got = await exchange(seen.port, ask("first", stream=False), ask("second", stream=False), last)
            assert got.index(b"First.") < got.index(b"Second.") < got.index(b'"object":"list"')
            assert [one.messages and one.messages.question for one in seen.ended] == ["first", "second"]
            assert [one.ended for one in seen.ended] == ["complete", "complete"]

    asyncio.run(scenario())


def test_a_chatbot_that_leaves_stops_the_model() -> None:
    async def scenario() -> None:
        scripts = [[{"say": ["a", "b"]}, {"wait": "20s"}, {"say": "c"}]]
        async with ScriptedModel(scripts) as model, metered(model.url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(ask())
            await reader.readuntil(b'"content":"b"')
            writer.close()
            await asyncio.sleep(0.3)
            assert model.requests[0].ended == "left"
            (completion,) = seen.ended
            assert completion.ended == "left" and not completion.failed
            assert "left after" in seen.begun[0].notes()[0]

    asyncio.run(scenario())


def test_a_model_that_resets_is_seen_to_reset() -> None:
    async def scenario() -> None:
        scripts = [[{"say": ["a"]}, {"close": "reset"}]]
        async with ScriptedModel(scripts) as model, metered(model.url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(ask())
            with pytest.raises(ConnectionResetError):
                while await reader.read(65_536):
                    pass
            writer.close()
            assert [one.ended for one in seen.ended] == ["reset"]

    asyncio.run(scenario())


def test_a_response_without_its_end_is_seen_to_have_none() -> None:
    async def scenario() -> None:
        scripts = [[{"say": ["a"]}, {"close": "fin"}]]
        async with ScriptedModel(scripts) as model, metered(model.url) as seen:
            got = await exchange(seen.port, ask())
            assert b'"content":"a"' in got and not got.endswith(b"0\r\n\r\n")
            assert [one.ended for one in seen.ended] == ["cut"]

    asyncio.run(scenario())


def test_a_server_that_is_not_there_is_told_as_the_meters_own_word() -> None:
    async def scenario() -> None:
        async with metered("http://127.0.0.1:9/v1") as seen:
            got = await exchange(seen.port, ask())
            assert got.startswith(b"HTTP/1.1 502 ") and b"motamot meter: the model's server 127.0.0.1:9" in got
            assert [one.ended for one in seen.ended] == ["not reached"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"no request at all\r\n\r\n", 400),
        (b"GET http://elsewhere.example/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES + b"\r\n\r\n", 431),
        (b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 501),
    ],
)
def test_what_it_cannot_pass_on_is_refused_in_words(sent: bytes, status: int) -> None:
    async def scenario() -> None:
        async with ScriptedModel([[{"say": "x"}]]) as model, metered(model.url) as seen:
            got = await exchange(seen.port, sent)
            assert got.startswith(b"HTTP/1.1 %d " % status) and b"motamot meter: " in got

    asyncio.run(scenario())


def test_a_head_that_trickles_in_is_bounded_too() -> None:
    async def scenario() -> None:
        async with ScriptedModel([[{"say": "x"}]]) as model, metered(model.url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(b"GET / HTTP/1.1\r\n")
            got = b""
            for _ in range(HEAD_BYTES // 1_000 + 2):
                writer.write(b"X: " + b"x" * 1_000 + b"\r\n")
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                got = await reader.read(1_000)
            assert got.startswith(b"HTTP/1.1 431 ")
            writer.close()

    asyncio.run(scenario())


def test_a_slow_chatbot_slows_the_model_and_not_the_memory() -> None:
    async def scenario() -> None:
        sent = 0

        async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            try:
                async with asyncio.timeout(1):
                    while True:
                        writer.write(b": " + b"x" * 65_534)
                        await writer.drain()
                        sent += 65_536
            except TimeoutError:
                writer.close()

        async with server(flood) as url, metered(url) as seen:
            _, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(ask())
            await asyncio.sleep(1.2)
            assert 0 < sent < 40 << 20  # what sockets and transports hold, and no more
            writer.close()

    asyncio.run(scenario())


def test_a_compressed_response_passes_and_is_counted() -> None:
    body = json.dumps(
        {
            "choices": [{"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
        }
    ).encode()
    for encoding, data, known in (
        ("gzip", zlib.compress(body, wbits=31), True),
        ("br", b"\x0b\x02\x80Hi", False),
    ):

        async def answer(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, encoding: str = encoding, data: bytes = data
        ) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)
            writer.close()

        async def scenario(data: bytes = data, known: bool = known) -> None:
            async with server(answer) as url, metered(url) as seen:
                assert (await exchange(seen.port, ask())).endswith(data)
                (completion,) = seen.ended
                assert (completion.usage.completion_tokens == 3) is known
                assert bool(completion.notes) is not known

        asyncio.run(scenario())


@pytest.mark.parametrize("url", ["", "ftp://x", "https://", "http://x:99999/", "http://u:p@x/", "http://x/?q=1", "x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="no address of a model's server"):
        Upstream.at(url)


@pytest.mark.parametrize(
    ("url", "given", "target"),
    [
        ("https://a.example", "/v1/chat/completions", "/v1/chat/completions"),
        ("https://a.example/v1", "/v1/chat/completions", "/v1/chat/completions"),
        ("https://a.example/v1/", "/chat/completions?x=1", "/v1/chat/completions?x=1"),
        ("https://a.example/openai/v1", "/v1/models", "/openai/v1/models"),
        ("https://a.example/v1", "/v10", "/v1/v10"),
    ],
)
def test_v1_is_not_said_twice(url: str, given: str, target: str) -> None:
    assert Upstream.at(url).target(given) == target
