"""How an attempt is ended: by a cancellation, which must be seen at the model's server, or by a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import sys
import time
from pathlib import Path

import pytest
import trustme

from motamot.answer import Source, Usage
from motamot.errors import UpstreamError
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.model.turn import TurnRequest
from motamot.model.watchdog import Watchdog
from tests.model.wire import (
    DONE,
    FINISH,
    HEAD,
    LAST,
    QUESTION,
    UNTIL_CLOSE,
    USAGE,
    Peer,
    Script,
    Upstream,
    ask_once,
    chunk,
    reply,
    run,
    said,
)

SEEN_WITHIN = 0.1
CERTIFICATES = trustme.CA()


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CERTIFICATES.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@pytest.fixture(scope="module")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    CERTIFICATES.cert_pem.write_to_path(path)
    return str(path)


async def held(peer: Peer) -> None:
    await peer.gone()


async def silent_after_text(peer: Peer) -> None:
    await peer.send(HEAD, chunk(said("Hello ")))
    await peer.gone()


async def talking(peer: Peer) -> None:
    await peer.send(HEAD)
    while peer.gone_at is None:
        await peer.send(chunk(said("word ")), pause=0.02)


async def flooding(peer: Peer) -> None:
    await peer.send(HEAD)
    while peer.gone_at is None:
        await peer.send(chunk(b": " + b"x" * 60_000 + b"\n\n"))
        await asyncio.sleep(0)


async def mid_head(peer: Peer) -> None:
    await peer.send(HEAD[:30])
    await peer.gone()


async def mid_refusal(peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nsorr")
    await peer.gone()


def descriptors() -> int:
    """How many files and sockets this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


async def cancelled(task: asyncio.Task[object]) -> float:
    """Cancel, wait for the cancellation to get out, give the time it was asked."""
    at = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - at < SEEN_WITHIN
    return at


@pytest.mark.parametrize("script", [held, silent_after_text, talking, flooding, mid_head, mid_refusal])
@pytest.mark.parametrize("tls", [False, True])
def test_a_cancelled_attempt_is_seen_by_the_server_within_100_ms(script: Script, tls: bool, ca_file: str) -> None:
    async def main() -> None:
        async with Upstream(script, tls=server_tls() if tls else None) as upstream:
            model = HttpModel(upstream.url, "m", ca_file=ca_file)
            task = asyncio.create_task(model.attempt(QUESTION).run(lambda _: None))
            await upstream.asked.wait()
            await asyncio.sleep(0.1)
            at = await cancelled(task)
            gone = await asyncio.wait_for(upstream.peers[0].gone(), 2)
            assert gone - at < SEEN_WITHIN
            assert len(upstream.requests) == 1
            assert len(Watchdog.here()) == 0
            await model.close()

    run(main())


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_that_does_not_read_the_question_is_left_at_once_all_the_same(tls: bool, ca_file: str) -> None:
    """What still waits to be written must not keep the connection open."""
    request = TurnRequest(messages=[], max_tokens=1, extra={"metadata": "x" * 20_000_000})

    async def main() -> None:
        accepted = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(
            lambda reader, writer: accepted.set_result((reader, writer)),
            "127.0.0.1",
            0,
            ssl=server_tls() if tls else None,
            limit=1024,
        )
        port = server.sockets[0].getsockname()[1]
        model = HttpModel(f"http{'s' if tls else ''}://127.0.0.1:{port}", "m", ca_file=ca_file)
        task = asyncio.create_task(model.attempt(request).run(lambda _: None))
        reader, writer = await accepted
        await asyncio.sleep(0.2)
        before = descriptors()
        await cancelled(task)
        assert descriptors() < before, "our end of the connection is still open"
        received = 0
        with contextlib.suppress(ConnectionError):
            while data := await asyncio.wait_for(reader.read(1 << 20), 2):
                received += len(data)
        assert received < 20_000_000, "the rest of the question was still sent"
        writer.transport.abort()
        await model.close()
        server.close()
        await server.wait_closed()

    run(main())


def test_the_connection_is_closed_before_the_cancellation_gets_out() -> None:
    """Looked at without giving the loop a chance to close it later."""
    ends: list[socket.socket] = []

    async def ask_and_look(model: HttpModel) -> None:
        try:
            await model.attempt(QUESTION).run(lambda _: None)
        finally:
            ends[0].settimeout(0.5)
            assert ends[0].recv(1) == b""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            model = HttpModel(f"http://127.0.0.1:{listening.getsockname()[1]}", "m")
            task = asyncio.create_task(ask_and_look(model))
            peer, _ = await loop.sock_accept(listening)
            with peer:
                assert await loop.sock_recv(peer, 100_000)
                ends.append(peer)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        await model.close()

    run(main())


def test_cancelling_during_the_tls_handshake_closes_the_connection() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            model = HttpModel(f"https://127.0.0.1:{listening.getsockname()[1]}", "m")
            task = asyncio.create_task(model.attempt(QUESTION).run(lambda _: None))
            peer, _ = await loop.sock_accept(listening)
            with peer:
                assert await loop.sock_recv(peer, 10_000)  # the hello, never answered
                at = await cancelled(task)
                assert await asyncio.wait_for(loop.sock_recv(peer, 10_000), 2) == b""
                assert time.monotonic() - at < SEEN_WITHIN
        await model.close()

    run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_cancelling_while_a_proxy_is_silent_closes_the_connection_to_it(scheme: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
            model = HttpModel(f"{scheme}://model.invalid/v1", "m", proxy=proxy)
            task = asyncio.create_task(model.attempt(QUESTION).run(lambda _: None))
            peer, _ = await loop.sock_accept(listening)
            with peer:
                first = await loop.sock_recv(peer, 10_000)
                assert first.startswith(b"CONNECT" if scheme == "https" else b"POST http://model.invalid/v1/")
                at = await cancelled(task)
                while await asyncio.wait_for(loop.sock_recv(peer, 10_000), 2):
                    pass
                assert time.monotonic() - at < SEEN_WITHIN
        await model.close()

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="needs a full backlog that drops what comes after")
def test_cancelling_while_the_connection_is_not_taken_leaves_no_socket() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            waiting = [socket.socket() for _ in range(3)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            await asyncio.sleep(0.1)
            model = HttpModel(f"http://127.0.0.1:{full.getsockname()[1]}", "m")
            attempt = model.attempt(QUESTION)
            task = asyncio.create_task(attempt.run(lambda _: None))
            await asyncio.sleep(0.2)
            await cancelled(task)
            assert attempt.snapshot().usage == Usage(source=Source.REPORTED), "the question never left"
            await model.close()
            for one in waiting:
                one.close()

    run(main())


def test_cancelling_while_the_name_is_looked_up_gets_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def slow(host: object, *rest: object, **more: object) -> object:
        if host == "slow.invalid":
            time.sleep(0.5)
        return real(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def main() -> None:
        model = HttpModel("http://slow.invalid", "m")
        task = asyncio.create_task(model.attempt(QUESTION).run(lambda _: None))
        await asyncio.sleep(0.1)
        await cancelled(task)
        await model.close()
        await asyncio.sleep(0.6)

    run(main())


def test_an_attempt_cancelled_before_it_ran_asks_nothing() -> None:
    async def main() -> None:
        async with Upstream() as upstream:
            model = HttpModel(upstream.url, "m")
            task = asyncio.create_task(model.attempt(QUESTION).run(lambda _: None))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.05)
            assert not upstream.peers
            await model.close()

    run(main())


def test_hundreds_cancelled_at_any_moment_leave_nothing_behind() -> None:
    async def main() -> None:
        count = 200
        async with Upstream(*[talking] * count) as upstream:
            model = HttpModel(upstream.url, "m")
            tasks = [asyncio.create_task(model.attempt(QUESTION).run(lambda _: None)) for _ in range(count)]
            for task in tasks:
                await asyncio.sleep(0.002)
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in ended)
            await asyncio.sleep(0.2)
            assert all(peer.gone_at is not None for peer in upstream.peers)
            assert len(Watchdog.here()) == 0
            await model.close()

    run(main())


def test_closing_the_model_ends_its_attempts_with_an_error() -> None:
    async def main() -> None:
        async with Upstream(silent_after_text) as upstream:
            model = HttpModel(upstream.url, "m")
            seen = asyncio.Event()
            task = asyncio.create_task(model.attempt(QUESTION).run(lambda _: seen.set()))
            await seen.wait()
            await model.close()
            turn = await asyncio.wait_for(task, 1)
            assert turn.text == "Hello "
            assert turn.error is not None
            assert turn.error.code == "upstream_cut"

    run(main())


# Time limits


def timed_out(script: Script, limits: Limits) -> tuple[UpstreamError, str, float]:
    """The error, the text that came, and how long it took."""
    got: list[tuple[UpstreamError, str, float]] = []

    async def main() -> None:
        async with Upstream(script) as upstream:
            began = time.monotonic()
            answer = await ask_once(upstream, limits=limits)
            took = time.monotonic() - began
            assert answer.turn.error is not None
            assert answer.turn.error.code == "timeout"
            assert not answer.turn.error.safe_to_retry
            got.append((answer.turn.error, answer.text, took))
            await asyncio.wait_for(upstream.peers[0].gone(), 1)
            assert len(Watchdog.here()) == 0

    run(main())
    return got[0]


async def commenting(peer: Peer) -> None:
    await peer.send(HEAD)
    while peer.gone_at is None:
        await peer.send(chunk(b": still thinking\n\n"), pause=0.05)


@pytest.mark.parametrize("script", [held, mid_head, commenting])
def test_a_model_that_does_not_begin_is_given_up_and_comments_are_no_beginning(script: Script) -> None:
    error, text, took = timed_out(script, Limits(first_delta_seconds=0.5, silence_seconds=0.2))
    assert text == ""
    assert "did not begin to answer within 0.5 s" in error.message
    assert 0.5 <= took < 0.8


def test_a_model_that_falls_silent_is_given_up_and_what_it_said_is_kept() -> None:
    error, text, took = timed_out(silent_after_text, Limits(silence_seconds=0.4, first_delta_seconds=5))
    assert text == "Hello "
    assert "silent for 0.4 s" in error.message
    assert 0.4 <= took < 0.7


def test_comments_and_reasoning_are_signs_of_life() -> None:
    thought = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(thought))
        for sign in (b": ping\n\n", thought, b":\n\n", thought, b": ping\n\n", b": "):
            await asyncio.sleep(0.25)
            await peer.send(chunk(sign))
        await peer.send(chunk(b"\n\n" + said("Hello") + FINISH + DONE), LAST)

    async def main() -> None:
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream, limits=Limits(silence_seconds=0.5, first_delta_seconds=0.5))
        assert (answer.text, answer.turn.reasoning, answer.turn.error) == ("Hello", "hmhmhm", None)

    run(main())


def test_a_tool_call_is_a_beginning() -> None:
    piece = (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":'
        b'{"name":"f","arguments":""}}]}}]}\n\n'
    )

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(piece))
        await asyncio.sleep(0.8)
        end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
        await peer.send(chunk(end + DONE), LAST)

    async def main() -> None:
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream, limits=Limits(first_delta_seconds=0.4))
        assert answer.turn.finish == "tool_calls"
        assert answer.turn.error is None

    run(main())


def test_a_trickle_without_end_is_ended_by_the_time_limit_of_the_whole() -> None:
    error, text, took = timed_out(talking, Limits(exchange_seconds=0.7, silence_seconds=0.5))
    assert text.startswith("word word ")
    assert "longer than 0.7 s" in error.message
    assert 0.7 <= took < 1


def test_a_byte_at_a_time_inside_a_line_is_life_but_not_for_ever() -> None:
    async def loris(peer: Peer) -> None:
        await peer.send(HEAD, chunk(said("Hello ")))
        while peer.gone_at is None:
            await peer.send(chunk(b"x"), pause=0.1)

    _, text, took = timed_out(loris, Limits(exchange_seconds=1, silence_seconds=0.5))
    assert text == "Hello "
    assert 1 <= took < 1.3


@pytest.mark.parametrize("usage", ["never", "late"])
def test_usage_is_waited_for_a_little_after_the_finish_reason_and_no_longer(usage: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(said("Hello") + FINISH))
        if usage == "late":
            await asyncio.sleep(0.3)
            await peer.send(chunk(USAGE))
        while peer.gone_at is None:
            await peer.send(chunk(b": ping\n\n"), pause=0.1)

    async def main() -> None:
        async with Upstream(script) as upstream:
            began = time.monotonic()
            answer = await ask_once(upstream, limits=Limits(usage_grace_seconds=0.6))
            assert 0.6 <= time.monotonic() - began < 1
            await asyncio.wait_for(upstream.peers[0].gone(), 1)
        assert (answer.text, answer.turn.finish, answer.turn.error) == ("Hello", "stop", None)
        assert (answer.turn.usage is not None) == (usage == "late")

    run(main())


def test_a_refusal_that_trickles_in_is_not_waited_for() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(b'HTTP/1.1 401 No\r\nContent-Length: 900\r\n\r\n{"error": {"message": "wrong')
        while peer.gone_at is None:
            await peer.send(b" ", pause=0.1)

    async def main() -> None:
        async with Upstream(script) as upstream:
            began = time.monotonic()
            answer = await ask_once(upstream, limits=Limits(error_body_seconds=0.5))
            assert 0.5 <= time.monotonic() - began < 0.8
        assert answer.turn.error is not None
        assert answer.turn.error.status == 401
        assert "wrong" in (answer.turn.error.detail or "")

    run(main())


def test_a_refusal_without_end_is_read_in_part() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n")
        while peer.gone_at is None:
            await peer.send(b"sorry " * 10_000)
            await asyncio.sleep(0)

    async def main() -> None:
        async with Upstream(script) as upstream:
            began = time.monotonic()
            answer = await ask_once(upstream)
            assert time.monotonic() - began < 1
        assert answer.turn.error is not None
        assert answer.turn.error.status == 500

    run(main())


@pytest.mark.parametrize(
    "body", [reply(200, b'{"choices":' + b" " * 99)[:-50], HEAD + chunk(b'data: {"choi'), UNTIL_CLOSE]
)
def test_a_reply_that_stops_before_its_first_delta_is_a_timeout(body: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(body)
        await peer.gone()

    error, text, took = timed_out(script, Limits(first_delta_seconds=0.4))
    assert text == ""
    assert "did not begin" in error.message
    assert 0.4 <= took < 0.8
