"""What no chatbot and no model's server can do to the meter, or through it: smuggle, stay for ever, fill it up."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from motamot.exam.meter import tunnel
from motamot.exam.meter.completion import MESSAGES, Completion
from motamot.exam.meter.exchanges import Exchanges
from motamot.exam.meter.tunnel import Meter, Upstream
from motamot.scripted import ScriptedModel
from tests.exam.meter.test_tunnel import exchange, metered, server
from tests.scripted.wire import ask

ASKS = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def taking(reply: bytes = ANSWER) -> AsyncIterator[tuple[str, bytearray]]:
    """A model's server that keeps all it is sent and answers once, as soon as there is a head."""
    got = bytearray()
    open_now: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.append(writer)
        answered = False
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                got.extend(data)
                if not answered and b"\r\n\r\n" in got:
                    answered = True
                    writer.write(reply)
        writer.close()

    async with server(handle) as url:
        yield url, got
        for writer in open_now:
            with suppress(ConnectionError):
                await writer.wait_closed()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /other HTTP/1.1\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /other HTTP/1.1\r\n\r\n",
        b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nhello",
        b"Content-Length: 5, 5\r\n\r\nhello",
        b"Content-Length: +5\r\n\r\nhello",
        b"Content-Length : 5\r\n\r\nhello",
        b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"X: a\nContent-Length: 2\r\n\r\nhi",
        b"X: a\rContent-Length: 2\r\n\r\nhi",
        b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nhi",
        b"X: a\0b\r\nContent-Length: 2\r\n\r\nhi",
        b"Transfer-Encoding: chunked\r\n\r\n2;a=b\nc\r\nhi\r\n0\r\n\r\n",
    ],
)
def test_a_request_that_two_servers_would_read_as_two_requests_is_not_passed_on(head: bytes) -> None:
    async def scenario() -> None:
        async with taking() as (url, got), metered(url) as seen:
            answer = await exchange(seen.port, ASKS + head)
            assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1
            assert not got and not seen.begun and not seen.ended

    asyncio.run(scenario())


@pytest.mark.parametrize("apart", [True, False], ids=["by itself", "in one piece"])
@pytest.mark.parametrize(
    "head",
    [
        b"POST http://other.example/ HTTP/1.1\r\nHost: x\r\n",
        b"POST /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * tunnel.HEAD_BYTES + b"\r\n",
    ],
    ids=["proxy", "websocket", "too long"],
)
def test_the_body_of_a_request_that_is_refused_does_not_reach_the_model_as_a_request(head: bytes, apart: bool) -> None:
    async def scenario() -> None:
        first = ASKS + b"Content-Length: 2\r\n\r\n{}"
        refused = head + b"Content-Length: 26\r\n\r\nGET /other HTTP/1.1\r\n\r\n1234"
        async with taking() as (url, got), metered(url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(first if apart else first + refused)
            if apart:
                assert await reader.readuntil(b"ok") == ANSWER
                writer.write(refused)
            async with asyncio.timeout(5):
                rest = await reader.read()
            assert rest.count(b"HTTP/1.1 ") == (1 if apart else 0)  # a refusal is never the answer to another request
            await _closed(writer)
            await asyncio.sleep(0.05)
            assert b"other" not in got and b"X: x" not in got
            assert len(seen.begun) == len(seen.ended) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("head", "arrives"),
    [
        (b"GET /v1/models HTTP/1.0\r\n\r\n", b"GET /v1/models HTTP/1.0\r\nHost: {host}\r\n\r\n"),
        (
            b"GET /v1/models HTTP/1.1\r\nA: b\r\nHost: x\r\nhost: y\r\nC: d\r\n\r\n",
            b"GET /v1/models HTTP/1.1\r\nA: b\r\nHost: {host}\r\nC: d\r\n\r\n",
        ),
    ],
    ids=["none", "two"],
)
def test_the_model_is_told_one_host_and_the_version_that_was_spoken(head: bytes, arrives: bytes) -> None:
    async def scenario() -> None:
        async with taking() as (url, got), metered(url) as seen:
            assert (await exchange(seen.port, head, wait=0.3)).startswith(ANSWER)
            assert bytes(got) == arrives.replace(b"{host}", url.split("/")[2].encode())

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1, 7, 1_000], ids=lambda size: f"in pieces of {size}")
def test_a_client_that_offers_http_2_is_passed_on_without_its_offer(size: int) -> None:
    """Java's HttpClient does so with its first request to each http address, a body behind it."""

    async def scenario() -> None:
        offer = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\n"
        sent = ask("first", stream=False)
        offered = sent.replace(b"\r\n", b"\r\n" + offer, 1) + ask("second", stream=False)
        async with ScriptedModel({"default": "e", "scripts": {"e": "Yes."}}) as model, metered(model.url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            for start in range(0, len(offered), size):
                writer.write(offered[start : start + size])
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                assert (await reader.readuntil(b"Yes.")).startswith(b"HTTP/1.1 200 ")
                await reader.readuntil(b"Yes.")
            await _closed(writer)
            assert [one.messages and one.messages.question for one in seen.ended] == ["first", "second"]
            assert not {"upgrade", "http2-settings"} & set(dict(model.requests[0].headers))

    asyncio.run(scenario())


def test_a_refusal_before_the_request_is_whole_is_counted_when_it_is() -> None:
    async def scenario() -> None:
        early = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
        async with taking(early) as (url, _), metered(url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(ASKS + b"Content-Length: 2\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == early
            assert not seen.begun and not seen.ended
            writer.write(b"{}")
            await asyncio.sleep(0.1)
            assert len(seen.begun) == 1
            assert [(one.status, one.ended) for one in seen.ended] == [(413, "complete")]
            await _closed(writer)

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["a..b", "x" * 70 + ".example"])
def test_a_name_that_is_none_is_told_as_a_server_that_is_not_reached(name: str) -> None:
    async def scenario() -> None:
        async with metered(f"http://{name}:1/v1") as seen:
            assert (await exchange(seen.port, ask())).startswith(b"HTTP/1.1 502 ")
            assert [one.ended for one in seen.ended] == ["not reached"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param((b"0\r\n", b"X-%d: " + b"x" * 900 + b"\r\n"), id="trailers"),
        pytest.param((b"0\r\nX: ", b"x" * 900), id="one trailer"),
        pytest.param((b"2;a=", b"x" * 900), id="chunk extension"),
    ],
)
def test_what_stands_around_the_pieces_of_a_body_is_bounded(endless: tuple[bytes, bytes]) -> None:
    async def scenario() -> None:
        first, more = endless
        async with taking(b"") as (url, _), metered(url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(ASKS + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n" + first)
            for number in range(2 * tunnel.HEAD_BYTES // len(more)):
                writer.write(more.replace(b"%d", b"%d" % number))
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
            await _closed(writer)
            await asyncio.sleep(0.05)
            assert seen.meter is not None and not seen.meter.connections

    asyncio.run(scenario())


@pytest.mark.parametrize("begun", [b"X: ", b"Content-Length: 9\r\n\r\n{}"], ids=["head", "body"])
def test_a_request_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(tunnel, "IDLE_SECONDS", 0.3)
        async with taking(b"") as (url, _), metered(url) as seen:
            reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
            writer.write(ASKS + begun)
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            assert not seen.begun and not seen.ended
            await _closed(writer)

    asyncio.run(scenario())


def test_a_model_that_is_silent_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(tunnel, "IDLE_SECONDS", 0.1)
        scripts = [[{"say": "a"}, {"wait": "400ms"}, {"say": "b"}]]
        async with ScriptedModel(scripts) as model, metered(model.url) as seen:
            got = await exchange(seen.port, ask())
            assert b'"content":"b"' in got and [one.ended for one in seen.ended] == ["complete"]

    asyncio.run(scenario())


def test_a_server_whose_certificate_is_not_trusted_is_not_told_a_word(tmp_path: Path) -> None:
    names = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate"), "-subj", "/CN=other.example"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names]
    subprocess.run(made, check=True, capture_output=True)
    identity = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    identity.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    by_name = ssl.create_default_context(cafile=str(tmp_path / "certificate"))
    heard = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(65_536))
        writer.close()

    async def scenario(trusted: ssl.SSLContext | None) -> None:
        server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=identity)
        ended: list[Completion] = []
        upstream = Upstream("127.0.0.1", server.sockets[0].getsockname()[1], tls=True)
        meter = Meter(upstream, ended=ended.append, trusted=trusted)
        port = await meter.start()
        got = await exchange(port, ask())
        await meter.close()
        server.close()
        await server.wait_closed()
        assert got.startswith(b"HTTP/1.1 502 ") and b"certificate verify failed" in got
        assert [one.ended for one in ended] == ["not reached"] and not heard

    asyncio.run(scenario(None))  # nobody's
    asyncio.run(scenario(by_name))  # another's


def test_a_body_of_any_depth_is_passed_on_and_counted() -> None:
    for depth in (10, 500, *range(900, 1_010), 100_000):
        nested = b"[" * depth + b"]" * depth
        for body in (
            b'{"model":%b}' % nested,
            b'{"messages":[{"role":"user","content":"x","a":%b}]}' % nested,
            b'{"messages":[{"role":"user","content":[{"text":%b}]}]}' % nested,
        ):
            completion = Completion.of("POST", "/v1/chat/completions", {})
            assert completion is not None
            completion.asked(body)
            assert Exchanges().begun(completion).completion.ended_at is None


def test_nothing_is_kept_of_a_request_that_is_as_long_as_a_stranger_likes() -> None:
    book = Exchanges("X-Name")
    long = "x" * 50_000
    body = {
        "model": long,
        "messages": [{"role": "user", "content": long}] * 3,
        "metadata": {"run_id": long, "more": {"a": long}},
    }
    completion = Completion.of("POST", f"/{long}/chat/completions", {"x-name": long, "x-other": long})
    assert completion is not None
    completion.asked(json.dumps(body).encode())
    metered = book.begun(completion)
    told = [completion.model, completion.path, metered.exchange.id, completion.texts, completion.metadata]
    assert all(len(one) <= 200 for one in told) and not completion.headers
    assert completion.path.endswith("/chat/completions")


def test_more_messages_than_anybody_writes_are_not_compared() -> None:
    completion = Completion.of("POST", "/v1/chat/completions", {})
    assert completion is not None
    completion.asked(json.dumps({"messages": [{"role": "user", "content": "x"}] * (MESSAGES + 1)}).encode())
    metered = Exchanges().begun(completion)
    assert completion.messages is None
    assert any("messages and was not compared" in note for note in metered.notes())


async def _left(url: str, sent: bytes) -> tuple[float, list[str]]:
    """A chatbot asks through the meter and leaves. Returns: how long until that was noticed, and how it ended."""
    ended: asyncio.Queue[Completion] = asyncio.Queue()
    meter = Meter(Upstream.at(url), ended=ended.put_nowait)
    port = await meter.start()
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await asyncio.sleep(0.5)
        assert len(meter.connections) == 1
        left = asyncio.get_running_loop().time()
        writer.transport.abort()
        async with asyncio.timeout(5):
            while meter.connections or meter.behind:
                await asyncio.sleep(0.01)
        took = asyncio.get_running_loop().time() - left
        return took, [ended.get_nowait().ended or "" for _ in range(ended.qsize())]
    finally:
        await meter.close()


BODY = b'{"messages":[{"role":"user","content":"hi"}]}'
SMALL = ASKS + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
LARGE = ASKS + b"Content-Length: 40000000\r\n\r\n" + b" " * 1_000_000


@pytest.mark.parametrize("sent", [SMALL, LARGE], ids=["a request", "a part of a long one"])
@pytest.mark.parametrize("tls", [True, False], ids=["still connecting", "no word yet"])
def test_a_chatbot_that_leaves_before_the_model_says_a_word_is_noticed_within_a_second(sent: bytes, tls: bool) -> None:
    """Still connecting: the server takes the connection and never answers the handshake. No word yet: nor reads on."""

    async def scenario() -> tuple[float, list[str]]:
        over = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            writer.transport.abort()

        async with server(silent) as url:
            try:
                return await _left(url.replace("http:", "https:") if tls else url, sent)
            finally:
                over.set()

    took, ended = asyncio.run(scenario())
    assert took < 1
    assert ended == (["left"] if sent is SMALL else [])  # of what never was whole, nothing has begun


def test_requests_that_wait_for_the_model_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel, "WAITING_BYTES", 500_000)
    monkeypatch.setattr(tunnel, "CONNECT_SECONDS", 2)

    async def scenario() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                await reader.read()
            await _closed(writer)

        async with server(silent) as url:
            meter = Meter(Upstream.at(url.replace("http:", "https:")))
            port = await meter.start()
            chatbots = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            for _, writer in chatbots:
                writer.write(ASKS + b"Content-Length: 40000000\r\n\r\n" + b" " * 5_000_000)
            most = 0
            async with asyncio.timeout(10):
                while meter.connections or not most:
                    most = max(most, meter.waiting)
                    await asyncio.sleep(0.01)
            assert 500_000 < most < 2_500_000  # and what each had read when it was told to wait
            assert meter.waiting == 0
            for _, writer in chatbots:
                writer.transport.abort()
            await meter.close()
            await asyncio.sleep(0.1)  # the server's side

    asyncio.run(scenario())


def test_a_model_that_takes_nothing_of_what_waited_for_it_holds_up_its_chatbot(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is reached late, and is busy then: the meter keeps what had come, and no more."""
    first, more, reach = 20_000_000, 40_000_000, asyncio.Event()
    connect = tunnel._Front._connect

    async def late(front: tunnel._Front) -> None:
        await reach.wait()
        await connect(front)

    monkeypatch.setattr(tunnel._Front, "_connect", late)

    async def scenario() -> None:
        over = asyncio.Event()

        async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            writer.transport.abort()

        async with server(busy) as url:
            meter = Meter(Upstream.at(url))
            port = await meter.start()
            _, chatbot = await asyncio.open_connection("127.0.0.1", port)
            chatbot.write(ASKS + b"Content-Length: %d\r\n\r\n" % (first + more) + b" " * first)
            async with asyncio.timeout(10):
                while meter.waiting < first:
                    await asyncio.sleep(0.01)
            reach.set()
            chatbot.write(b" " * more)
            await asyncio.sleep(1)
            [back] = meter.behind
            assert back._transport.get_write_buffer_size() < first + 1_000_000
            assert chatbot.transport.get_write_buffer_size() > more / 2
            chatbot.transport.abort()
            over.set()
            await meter.close()

    asyncio.run(scenario())
