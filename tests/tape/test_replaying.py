"""A tape is served again as it was: status, headers, pieces, times and end."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser

from motamot.errors import TapeError
from motamot.tape import Piece, Replay, Tape, bounds, record, replay
from tests.page.support import Chromium

PIECES = (Piece(0.05, b"data: a\n\n"), Piece(0.15, b"data: b\n\n"), Piece(0.3, b"data: c\n\n"))
TAPE = Tape(
    pieces=PIECES,
    status=200,
    headers=(("Content-Type", "text/event-stream"), ("X-Own", "1"), ("Connection", "keep-alive")),
    end="closed",
    head_at=0.02,
    ended_at=0.35,
)


def changed(**fields: Any) -> Tape:
    return dataclasses.replace(TAPE, **fields)


def again(tape: Tape, *, asked: dict[str, Any] | None = None, path: str = "", **how: Any) -> Tape:
    """The tape of a replay of `tape`."""

    async def both() -> Tape:
        async with await replay(tape, **how) as server:
            return await record(server.url + path, **asked or {})

    return asyncio.run(both())


def test_it_comes_again_with_its_status_headers_pieces_and_times() -> None:
    tape = again(changed(status=201))
    assert (tape.status, tape.end, tape.body) == (201, "closed", TAPE.body)
    assert tape.headers == (
        ("Content-Type", "text/event-stream"),
        ("X-Own", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
    )
    assert [piece.data for piece in tape.pieces] == [piece.data for piece in PIECES]
    for piece, was in zip(tape.pieces, PIECES, strict=True):
        assert piece.at is not None and was.at is not None and piece.at >= was.at
    assert tape.ended_at is not None and tape.ended_at >= 0.35


def test_it_comes_faster_or_at_once() -> None:
    long = changed(pieces=tuple(Piece(at * 100, data) for at, data in PIECES if at is not None), ended_at=40.0)
    begun = time.monotonic()
    assert again(long, speed=200).body == TAPE.body
    assert 0.2 <= time.monotonic() - begun < 10
    assert again(long, speed=None).body == TAPE.body
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(
    ("end", "seen"), [("closed", "closed"), ("unknown", "closed"), ("reset", "reset"), ("left", "reset")]
)
@pytest.mark.parametrize("size", [10, 3_000_000])
def test_it_ends_as_it_ended_and_all_of_it_has_arrived_by_then(end: str, seen: str, size: int) -> None:
    tape = again(changed(end=end, pieces=(Piece(None, b"x" * size),), ended_at=None))
    assert (tape.end, len(tape.body)) == (seen, size)


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({}, ""),
        ({"method": "DELETE"}, "any/path?x=1"),
        ({"body": b"x" * 1_000_000}, "api/chat"),
        ({"body": b"{}", "headers": [("Expect", "100-continue")]}, "v1"),
    ],
)
def test_any_request_is_answered_and_counted(asked: dict[str, Any], path: str) -> None:
    async def scenario() -> None:
        seen: list[tuple[str, str]] = []
        async with Replay(TAPE, speed=None, asked=lambda *what: seen.append(what)) as server:
            for _ in range(2):
                assert (await record(server.url + path, **asked)).body == TAPE.body
            assert server.requests == 2
            assert seen == [(asked.get("method", "POST" if "body" in asked else "GET"), f"/{path}")] * 2

    asyncio.run(scenario())


def test_head_and_statuses_without_a_body_have_none() -> None:
    assert again(TAPE, asked={"method": "HEAD"}).body == b""
    assert again(changed(status=204)).body == b""


def test_a_content_length_stays_and_one_of_a_compressed_body_goes() -> None:
    headers = (("Content-Length", "27"), ("Content-Type", "text/plain"))
    kept = again(changed(headers=headers))
    assert (kept.header("content-length"), kept.header("transfer-encoding"), kept.end) == ("27", None, "closed")
    lying = again(changed(headers=(("Content-Length", "99"),)))
    assert (lying.body, lying.end) == (TAPE.body, "reset")
    packed = again(changed(headers=(*headers, ("Content-Encoding", "gzip"))))
    assert (packed.header("content-length"), packed.header("content-encoding"), packed.body) == (None, None, TAPE.body)


def test_a_body_alone_is_served_as_an_event_stream() -> None:
    tape = again(Tape(pieces=(Piece(None, b"data: x\n\n"),)))
    assert (tape.status, tape.header("content-type")) == (200, "text/event-stream")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=4), st.integers(100, 999))
def test_no_header_of_a_strangers_tape_can_make_another(headers: list[tuple[str, str]], status: int) -> None:
    if status < 200:
        status += 200
    bad = [("X-A", "b\r\nX-Forged: 1"), ("X-A\r\nX-Forged", "1"), ("X-C", "d\nX-Forged: 1")]
    named = [(f"X-{name}", value) for name, value in headers]
    tape = again(changed(headers=(*named, *bad), status=status), speed=None)
    assert tape.status == status
    assert not any("forged" in name.lower() for name, _ in tape.headers)


async def plain(url: str, request: bytes) -> bytes:
    """All that the server sends back for these bytes."""
    port = int(url.rsplit(":", 1)[1].strip("/"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_pages_of_one_origin_can_be_let_in() -> None:
    async def scenario() -> None:
        origin = "https://chat.example.com"
        tape = changed(headers=(("Access-Control-Allow-Origin", "https://other.example"),))
        async with await replay(tape, speed=None, cors=origin) as server:
            asked = (
                b"OPTIONS /x HTTP/1.1\r\nHost: x\r\nOrigin: https://chat.example.com\r\n"
                b"Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: content-type, x-own\r\n"
                b"Access-Control-Request-Private-Network: true\r\n\r\n"
            )
            before = (await plain(server.url, asked)).decode()
            assert before.startswith("HTTP/1.1 204 No Content\r\n")
            assert "Access-Control-Allow-Origin: https://chat.example.com\r\n" in before
            assert "Access-Control-Allow-Methods: PUT\r\n" in before
            assert "Access-Control-Allow-Headers: content-type, x-own\r\n" in before
            assert "Access-Control-Allow-Private-Network: true\r\n" in before
            assert server.requests == 0
            tape = await record(server.url)
            allowed = [value for name, value in tape.headers if name == "Access-Control-Allow-Origin"]
            assert (allowed, tape.header("Access-Control-Allow-Credentials")) == ([origin], "true")
        async with await replay(TAPE, speed=None) as server:
            assert (await record(server.url)).header("access-control-allow-origin") is None

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    browser = Chromium()
    browser.start()
    yield browser
    browser.close()


@pytest.mark.parametrize("cors", [True, False])
def test_a_page_elsewhere_reads_it_where_it_is_let_in(chromium: Chromium, cors: bool) -> None:
    async def scenario(browser: Browser) -> str:
        async with await replay(TAPE, speed=None) as own:
            page = await browser.new_page()
            await page.goto(own.url.replace("127.0.0.1", "localhost"))
            origin = own.url.replace("127.0.0.1", "localhost").rstrip("/")
            async with await replay(TAPE, speed=10, cors=origin if cors else None) as other:
                script = """url => fetch(url, {method: "PUT", headers: {"x-own": "1"}, body: "{}"})
                  .then(response => response.text()).catch(error => `refused: ${error.message}`)"""
                text: str = await page.evaluate(script, other.url)
            await page.close()
            return text

    text = chromium.run(scenario)
    assert text == TAPE.body.decode() if cors else text.startswith("refused")


@pytest.mark.parametrize(
    "request_bytes", [b"\0\1\2", b"GET\r\n\r\n", b"SSH-2.0\r\n", b"GET / HTTP/1.1\r\nA b: c\r\n\r\n"]
)
def test_who_speaks_no_http_is_hung_up_on_and_the_next_is_answered(request_bytes: bytes) -> None:
    async def scenario() -> None:
        async with await replay(TAPE, speed=None) as server:
            assert b"data:" not in await plain(server.url, request_bytes)
            assert (await record(server.url)).body == TAPE.body

    asyncio.run(scenario())


def test_an_http_1_0_client_gets_no_chunks() -> None:
    async def scenario() -> None:
        async with await replay(TAPE, speed=None) as server:
            answer = await plain(server.url, b"GET / HTTP/1.0\r\n\r\n")
            assert answer.endswith(b"\r\n\r\n" + TAPE.body)
            assert b"chunked" not in answer

    asyncio.run(scenario())


def test_waits_connections_and_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(bounds, "CONNECTIONS", 2)
        monkeypatch.setattr(bounds, "REQUEST_SECONDS", 0.2)
        async with await replay(TAPE, speed=None) as server:
            waiting = [asyncio.create_task(plain(server.url, b"GET / HT")) for _ in range(2)]
            await asyncio.sleep(0.05)
            with pytest.raises(TapeError, match="without an answer"):
                await record(server.url)
            assert await asyncio.gather(*waiting) == [b"", b""]
            assert (await record(server.url)).body == TAPE.body
            monkeypatch.setattr(bounds, "REQUEST_BYTES", 1000)
            with pytest.raises(TapeError, match="without an answer"):
                await record(server.url, body=b"x" * 100_000)

    asyncio.run(scenario())


def test_closing_breaks_off_whoever_is_being_answered() -> None:
    async def scenario() -> Tape:
        server = await replay(changed(ended_at=60.0))
        asking = asyncio.create_task(record(server.url))
        await asyncio.sleep(0.4)
        begun = time.monotonic()
        await server.close()
        await server.close()
        assert time.monotonic() - begun < 2
        return await asking

    tape = asyncio.run(scenario())
    assert (tape.end, tape.body) == ("reset", TAPE.body)


def test_a_client_that_leaves_frees_its_connection() -> None:
    async def scenario() -> None:
        async with await replay(changed(ended_at=60.0)) as server:
            for _ in range(3):
                assert (await record(server.url, seconds=0.1)).end == "left"
            async with asyncio.timeout(5):
                while server._connections:
                    await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TapeError, match=rf"cannot listen on 127.0.0.1 port {port}: Address already in use"):
            asyncio.run(replay(TAPE, port=port))
    with pytest.raises(ValueError, match="speed"):
        Replay(TAPE, speed=0)
