"""A recorder keeps what came over a real socket, when it came, and how it ended."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from pathlib import Path
from typing import Any

import pytest
import trustme

from motamot.errors import InvalidRequest, TapeError
from motamot.scripted.model import scripted_model
from motamot.tape import Piece, Recorder, Tape, bounds, record
from tests.tape.support import answering

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def recorded(*steps: bytes | float | str, **asked: Any) -> Tape:
    with answering(steps) as server:
        return asyncio.run(record(server.url, **asked))


def test_each_read_is_kept_with_the_time_it_came() -> None:
    tape = recorded(CHUNKED, 0.1, chunk(b"data: a\n\n"), 0.2, chunk(b"data: b") + chunk(b"\n\n"), 0.1, b"0\r\n\r\n")
    assert [piece.data for piece in tape.pieces] == [b"data: a\n\n", b"data: b\n\n"]
    first, second = (piece.at or 0 for piece in tape.pieces)
    assert tape.head_at is not None and tape.ended_at is not None
    assert 0 <= tape.head_at <= first and first >= 0.1 and second >= 0.3 and 0.4 <= tape.ended_at < 10
    assert (tape.status, tape.end, tape.source, tape.timed, tape.notes) == (200, "closed", "live", True, ())
    assert tape.headers == (("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))


@pytest.mark.parametrize(
    ("steps", "end", "body"),
    [
        ((HEAD + b"Content-Length: 5\r\n\r\nhello",), "closed", b"hello"),
        ((HEAD + b"\r\nhello",), "closed", b"hello"),
        ((b"HTTP/1.0 200 OK\r\n\r\nhello",), "closed", b"hello"),
        ((CHUNKED + chunk(b"hello") + b"0\r\n\r\n",), "closed", b"hello"),
        ((b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 5\r\n\r\nhello",), "closed", b"hello"),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), "closed", b""),
        ((HEAD + b"Content-Length: 9\r\n\r\nhello",), "reset", b"hello"),
        ((CHUNKED + chunk(b"hello"),), "reset", b"hello"),
        ((CHUNKED + chunk(b"hello"), 0.05, "reset"), "reset", b"hello"),
        ((HEAD + b"\r\nhello", 0.05, "reset"), "reset", b"hello"),
        ((CHUNKED + chunk(b"hello"), 0.05, b"xyz\r\nno chunk\r\n", 5.0), "reset", b"hello"),
        ((CHUNKED + chunk(b"hello") + b"xyz\r\n",), "reset", b"hello"),
    ],
)
def test_how_it_ended_is_told_and_nothing_that_came_is_lost(
    steps: tuple[bytes | float | str, ...], end: str, body: bytes
) -> None:
    tape = recorded(*steps)
    assert (tape.end, tape.body) == (end, body)
    assert bool(tape.notes) == (end == "reset")


def test_what_is_asked_arrives_as_it_was_meant_and_no_secret_stays() -> None:
    with answering([HEAD + b"Content-Length: 0\r\n\r\n"]) as server:
        address = server.url.replace("127.0.0.1", "user:p%40ss@127.0.0.1") + "a%20b?x=é&key=geheim"
        tape = asyncio.run(
            record(address, headers=[("Authorization", "Bearer geheim"), ("Accept", "x/y")], body=b'{"message":"Hi"}')
        )
    head, _, body = server.asked[0].partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert first == "POST /a%20b?x=%C3%A9&key=geheim HTTP/1.1"
    assert f"Host: 127.0.0.1:{server.port}" in fields
    assert [line for line in fields if line.startswith("Auth")] == ["Authorization: Bearer geheim"], "given beats made"
    assert {"Accept: x/y", "Content-Type: application/json", "Content-Length: 16"} <= set(fields)
    assert body == b'{"message":"Hi"}'
    assert tape.request is not None
    assert (tape.request.method, tape.request.body) == ("POST", body)
    assert "geheim" not in repr(tape) and "p%40ss" not in repr(tape)
    assert ("Accept", "x/y") in tape.request.headers


def test_a_user_in_the_address_logs_in_as_curl_does() -> None:
    with answering([HEAD + b"Content-Length: 0\r\n\r\n"]) as server:
        asyncio.run(record(server.url.replace("127.0.0.1", "user:p%40ss@127.0.0.1")))
    assert b"Authorization: Basic dXNlcjpwQHNz\r\n" in server.asked[0]


def test_trailers_are_no_headers() -> None:
    tape = recorded(CHUNKED + chunk(b"x") + b"0\r\nX-Late: 1\r\n\r\n")
    assert (tape.body, tape.end, tape.header("x-late")) == (b"x", "closed", None)


def test_a_redirect_is_not_followed_but_noted() -> None:
    tape = recorded(b"HTTP/1.1 302 Found\r\nLocation: /there?token=geheim\r\nContent-Length: 0\r\n\r\n")
    assert (tape.status, tape.end) == (302, "closed")
    assert "sends on to /there?token=[removed]. It was not followed" in tape.notes[0]


@pytest.mark.parametrize(("coding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_compressed_body_is_unpacked_read_by_read(coding: str, packed: Any) -> None:
    body = packed(b"data: hello\n\n" * 3)
    tape = recorded(HEAD + f"Content-Encoding: {coding}\r\n\r\n".encode() + body[:12], 0.1, body[12:])
    assert tape.body == b"data: hello\n\n" * 3
    assert f"came compressed ({coding})" in tape.notes[0]
    assert tape.header("content-encoding") == coding
    asked = recorded(HEAD + b"Content-Encoding: gzip\r\n\r\nnot packed at all")
    assert asked.body == b"not packed at all", "a header that lies takes nothing away"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip"])
def test_a_compression_that_cannot_be_read_is_told(coding: str) -> None:
    body = b"\x1f\x8b\x08" + b"\xff" * 40 if coding == "gzip" else b"\x1b\x0a\x00"
    tape = recorded(HEAD + f"Content-Encoding: {coding}\r\n\r\n".encode() + body, 5.0)
    assert (tape.end, tape.body) == ("left", b"")
    assert "compress" in tape.notes[-1]


def test_it_leaves_after_its_time_and_at_its_size() -> None:
    tape = recorded(CHUNKED, chunk(b"data: a\n\n"), 30.0, seconds=0.2)
    assert (tape.end, tape.body) == ("left", b"data: a\n\n")
    assert "had not ended after 0.2 s" in tape.notes[0]
    tape = recorded(CHUNKED, chunk(b"x" * 1000), 30.0, most_bytes=100)
    assert (tape.end, tape.body) == ("left", b"x" * 100)
    assert "larger than 100 bytes" in tape.notes[0]
    bomb = recorded(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"x" * 50_000_000), 30.0, most_bytes=1000)
    assert (bomb.end, bomb.body) == ("left", b"x" * 1000)


def test_whoever_records_can_leave_and_keeps_what_came() -> None:
    async def leaving(url: str) -> tuple[Tape, list[Piece]]:
        heard: list[Piece] = []

        def one(piece: Piece) -> None:
            heard.append(piece)
            recorder.leave()

        recorder = Recorder(url, on_piece=one)
        return await recorder.run(), heard

    with answering([CHUNKED, chunk(b"data: a\n\n"), 30.0]) as server:
        tape, heard = asyncio.run(leaving(server.url))
    assert (tape.end, tape.body, list(tape.pieces)) == ("left", b"data: a\n\n", heard)
    assert "left before the end" in tape.notes[0]


def test_a_recorder_that_is_cancelled_still_has_what_came() -> None:
    async def cancelled(url: str) -> Tape:
        came = asyncio.Event()
        recorder = Recorder(url, on_piece=lambda _: came.set())
        task = asyncio.create_task(recorder.run())
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return recorder.tape

    with answering([CHUNKED, chunk(b"data: a\n\n"), 30.0]) as server:
        tape = asyncio.run(cancelled(server.url))
    assert (tape.end, tape.body) == ("left", b"data: a\n\n")


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((b"",), "closed the connection without an answer"),
        (("reset",), "closed the connection without an answer"),
        ((b"HTTP/1.1 200 OK\r\nContent-",), "closed the connection without an answer"),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), "does not speak HTTP"),
        ((b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200_000,), "does not speak HTTP"),
    ],
)
def test_where_there_is_no_response_the_sentence_says_why(steps: tuple[bytes | str, ...], told: str) -> None:
    with pytest.raises(TapeError, match=told):
        recorded(*steps)


def test_an_address_that_cannot_be_reached_is_told() -> None:
    with pytest.raises(TapeError, match=r"http://127.0.0.1:1/ takes no connection: Connection refused"):
        asyncio.run(record("http://127.0.0.1:1/"))
    with pytest.raises(TapeError, match="the name of its host is not known"):
        asyncio.run(record("http://nowhere.invalid/"))
    with pytest.raises(TapeError, match=r"gave no answer: it had not ended after 0.1 s"):
        recorded(30.0, seconds=0.1)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("ftp://x/", {}),
        ("chat.example.com", {}),
        ("http://", {}),
        ("http://x:99999/", {}),
        ("", {}),
        ("http://127.0.0.1/", {"headers": [("A", "b\r\nC: d")]}),
        ("http://127.0.0.1/", {"headers": [("A b", "c")]}),
        ("http://127.0.0.1/", {"method": "GET /x"}),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(url: str, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Recorder(url, **asked)


def test_https_is_spoken_and_a_strangers_certificate_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"Content-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def ask(answer: Any = answer, context: ssl.SSLContext | None = context) -> Tape:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        async with server:
            return await record(f"https://localhost:{server.sockets[0].getsockname()[1]}/")

    with pytest.raises(TapeError, match="certificate that is not trusted here"):
        asyncio.run(ask())
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert asyncio.run(ask()).body == b"hello"
    with pytest.raises(TapeError, match="does not speak TLS, as https needs it"):
        asyncio.run(ask(plain, None))


def test_a_scripted_models_stream_is_on_the_tape_to_the_byte() -> None:
    script = [{"say": "Hel"}, {"wait_ms": 80}, {"say": "lo"}, {"finish": "stop"}]
    with scripted_model([script]) as model:
        tape = asyncio.run(
            record(
                f"{model.url}/chat/completions",
                body=b'{"model":"m","stream":true,"messages":[{"role":"user","content":"?"}]}',
            )
        )
        assert tape.body.count(b"data: ") >= 4
        assert tape.body.endswith(b"data: [DONE]\n\n")
        times = [piece.at or 0 for piece in tape.pieces]
        assert times == sorted(times) and times[-1] >= 0.08
        assert len(model.requests) == 1
    assert bounds.RECORD_SECONDS == 600
