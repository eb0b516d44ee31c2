"""What a model's server and the way to it can do wrong, on real sockets: one request, a sentence for the visitor,
the provider's words for the operator, never a key, never an exception."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import time
import zlib
from pathlib import Path

import pytest

from motamot.errors import UpstreamError
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.model.turn import TurnRequest
from tests.model.wire import (
    ANSWER,
    DONE,
    FINISH,
    HEAD,
    LAST,
    UNTIL_CLOSE,
    Answer,
    Peer,
    Script,
    Upstream,
    ask,
    ask_once,
    chunk,
    reply,
    run,
    said,
    sends,
    sends_and_closes,
    sends_and_resets,
)

KEY = "sk-proj-0123456789abcdef"


def failed(answer: Answer, code: str) -> UpstreamError:
    error = answer.turn.error
    assert error is not None
    assert error.code == code
    assert error.message.endswith(".")
    for secret in (KEY, "127.0.0.1", "HTTP/"):
        assert secret not in error.message
    assert KEY not in (error.detail or "")
    assert len(error.detail or "") <= 500
    assert (error.detail or "").isprintable()
    return error


def refusal(script: Script) -> UpstreamError:
    """What one refused question gives; nothing of it is answer text."""
    got: list[UpstreamError] = []

    async def main() -> None:
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream, api_key=KEY)
        got.append(failed(answer, "upstream_error"))
        assert answer.text == ""
        assert not answer.turn.started
        assert answer.turn.finish == "error"

    run(main())
    return got[0]


def said_no(status: int, message: str, *, code: object = None, kind: str = "x", **headers: str) -> Script:
    body = json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()
    return sends(reply(status, body, Content_Type="application/json", **headers))


@pytest.mark.parametrize(
    ("script", "visitor"),
    [
        (said_no(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"), "did not accept the key"),
        (said_no(403, "no"), "does not allow this key"),
        (said_no(402, "pay first"), "no credit"),
        (said_no(404, "The model `m` does not exist", code="model_not_found"), "“m” is not known"),
        (said_no(404, "model 'm' not found", kind="api_error"), "“m” is not known"),
        (said_no(404, "Not Found"), "does not answer at this address"),
        (said_no(400, "too long", code="context_length_exceeded"), "too long for this model"),
        (said_no(400, "the request exceeds", kind="exceed_context_size_error", code=400), "too long for this model"),
        (said_no(400, "This model's maximum context length is 4096 tokens"), "too long for this model"),
        (said_no(400, "messages is required"), "refused the request"),
        (said_no(400, "filtered", code="content_filter"), "because of what it says"),
        (said_no(422, "bad"), "refused the request"),
        (said_no(413, "big"), "too large"),
        (said_no(429, "slow down"), "asked too much"),
        (said_no(429, "You exceeded your current quota", kind="insufficient_quota"), "no credit"),
        (said_no(500, "boom"), "server failed"),
        (said_no(502, "bad gateway"), "server failed"),
        (said_no(503, "loading"), "overloaded"),
        (said_no(529, "overloaded", kind="overloaded_error"), "overloaded"),
    ],
)
def test_each_refusal_is_a_sentence_for_the_visitor_and_the_providers_words_for_the_operator(
    script: Script, visitor: str
) -> None:
    error = refusal(script)
    assert visitor in error.message
    assert "/v1/chat/completions: HTTP " in (error.detail or "")
    assert error.status is not None
    assert f"HTTP {error.status}" in (error.detail or "")


def test_the_providers_words_are_kept_for_the_operator() -> None:
    error = refusal(said_no(400, "messages is required", code="bad_messages"))
    assert "messages is required (bad_messages, x)" in (error.detail or "")
    assert error.status == 400


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "token_field"),
        ("Unrecognized request argument supplied: stream_options", "ask_usage"),
    ],
)
def test_a_refused_field_names_the_setting_that_leaves_it_out(message: str, hint: str) -> None:
    assert hint in (refusal(said_no(400, message)).detail or "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"plain words",
        b"<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1>nginx</body></html>",
        b'{"error": "a string"}',
        b'{"detail": [{"loc": ["body"], "msg": "field required"}]}',
        b'[{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}]',
        b'{"message": "Internal error"}',
        b'{"error": {"message": null}}',
        b"null",
        b"[" * 100_000,
        b'{"error": {"message": "\\ud83d half, \\u0000 NUL, \\u001b[31m red"}}',
        b"\xff\xfe\x00" * 1000,
        KEY.encode() * 1000,
        b"<" * 100_000,
    ],
)
@pytest.mark.parametrize("status", [400, 500])
def test_any_body_of_a_refusal_is_taken(body: bytes, status: int) -> None:
    error = refusal(sends(reply(status, body)))
    assert error.status == status


@pytest.mark.parametrize(
    ("key", "words", "kept"),
    [
        ("sk-proj-0123456789abcdef", "key sk-proj-0123456789abcdef, sk-proj-****cdef", "key [hidden], [hidden]"),
        ("x", "unexpected x, x.", "unexpected [hidden], [hidden]."),
        ("ollama", "ollama says ollamas", "[hidden] says ollamas"),
        ("a.b+c(d", "a.b+c(d axb", "[hidden] axb"),
        ("sk-" + "k" * 300, "sk-" + "k" * 200, "[hidden]"),
    ],
)
def test_a_key_is_hidden_whole_or_in_part_and_the_words_around_it_stay(key: str, words: str, kept: str) -> None:
    got: list[str | None] = []

    async def main() -> None:
        async with Upstream(said_no(400, words, kind="kind")) as upstream:
            error = (await ask_once(upstream, api_key=key)).turn.error
        assert error is not None
        got.append(error.detail)

    run(main())
    assert f"HTTP 400 {kept} (kind)" in (got[0] or "")


def test_a_key_in_the_address_or_in_a_header_is_hidden_too() -> None:
    async def main() -> None:
        async with Upstream(said_no(400, "secret-in-query and secret-in-header")) as upstream:
            model = HttpModel(
                f"{upstream.url}?key=secret-in-query&api-version=7", "m", headers={"api-key": "secret-in-header"}
            )
            error = (await ask(model)).turn.error
            await model.close()
            assert upstream.requests[0].line.startswith("POST /v1/chat/completions?key=secret-in-query&api-version=7 ")
        assert error is not None
        assert "secret" not in (error.detail or "")
        assert "api-version=7" in (error.detail or "")
        assert "secret" not in repr(model)

    run(main())


def test_the_words_of_a_web_page_are_told_without_its_tags() -> None:
    error = refusal(
        sends(reply(502, b"<html><title>502 Bad Gateway</title><hr>nginx</html>", Content_Type="text/html"))
    )
    assert "502 Bad Gateway nginx" in (error.detail or "")


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/event-stream", ""])
def test_a_web_page_instead_of_an_answer_is_an_error_and_never_text(content_type: str) -> None:
    page = b"\n<!DOCTYPE html><html><body>Please log in to the Wi-Fi</body></html>"

    async def main() -> None:
        async with Upstream(sends(reply(200, page, Content_Type=content_type))) as upstream:
            answer = await ask_once(upstream)
        error = failed(answer, "upstream_error")
        assert answer.text == ""
        assert "web page" in error.message
        assert "Please log in" in (error.detail or "")

    run(main())


@pytest.mark.parametrize("status", [200, 204])
def test_an_empty_reply_is_an_error(status: int) -> None:
    script = sends(reply(status, b"", Content_Type="text/event-stream"))

    async def main() -> None:
        async with Upstream(script) as upstream:
            error = failed(await ask_once(upstream), "upstream_cut")
        assert "without an answer" in error.message
        assert not error.safe_to_retry

    run(main())


def test_an_error_reply_labelled_as_a_stream_is_an_error_and_never_text() -> None:
    async def main() -> None:
        script = sends(reply(200, b'{"message":"Internal error"}', Content_Type="text/event-stream"))
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        assert answer.text == ""
        assert answer.turn.error is not None
        assert "Internal error" in (answer.turn.error.detail or "")

    run(main())


def test_an_error_inside_the_stream_keeps_what_came_and_hides_the_key() -> None:
    event = f'data: {{"error":{{"message":"quota exceeded for {KEY}"}}}}\n\n'.encode()

    async def main() -> None:
        async with Upstream(sends(HEAD, chunk(said("Hello ") + event), LAST)) as upstream:
            answer = await ask_once(upstream, api_key=KEY)
        error = failed(answer, "upstream_error")
        assert answer.text == "Hello "
        assert "quota exceeded" in (error.detail or "")
        assert not error.safe_to_retry

    run(main())


@pytest.mark.parametrize("begin", [b"", b"HT", b"HTTP/1.1 200 OK\r\nContent-Ty"])
@pytest.mark.parametrize("how", [sends_and_closes, sends_and_resets])
def test_a_connection_that_ends_before_the_head_is_cut_and_not_asked_again(begin: bytes, how: object) -> None:
    async def main() -> None:
        assert callable(how)
        async with Upstream(how(begin)) as upstream:
            answer = await ask_once(upstream)
        error = failed(answer, "upstream_cut")
        assert "without an answer" in error.message
        assert not error.safe_to_retry, "a new connection: the question may have been read"
        assert not answer.turn.started

    run(main())


@pytest.mark.parametrize("how", [sends_and_closes, sends_and_resets])
@pytest.mark.parametrize(
    "body",
    [
        HEAD + chunk(said("Hello ")),
        HEAD + chunk(said("Hello "))[:-2],
        HEAD + chunk(said("Hello ") + b'data: {"cho'),
        HEAD + chunk(said("Hello ")) + LAST,
        UNTIL_CLOSE + said("Hello "),
        UNTIL_CLOSE + said("Hello ") + b'data: {"choices":[{"del',
        reply(200, said("Hello ") + b"x" * 99)[:-99].replace(
            b"\r\n\r\n", b"\r\nContent-Type: text/event-stream\r\n\r\n", 1
        ),
    ],
)
def test_a_connection_that_ends_in_mid_answer_keeps_what_came(how: object, body: bytes) -> None:
    async def main() -> None:
        assert callable(how)
        async with Upstream(how(body)) as upstream:
            answer = await ask_once(upstream)
        error = failed(answer, "upstream_cut")
        assert answer.text == "Hello "
        assert answer.turn.finish == "incomplete"
        assert answer.turn.started
        assert not error.safe_to_retry

    run(main())


@pytest.mark.parametrize("how", [sends_and_closes, sends_and_resets])
@pytest.mark.parametrize("end", [FINISH, DONE, FINISH + DONE])
def test_a_connection_that_ends_after_the_end_of_the_answer_loses_nothing(how: object, end: bytes) -> None:
    async def main() -> None:
        assert callable(how)
        async with Upstream(how(HEAD + chunk(said("Hello") + end))) as upstream:
            answer = await ask_once(upstream)
        assert answer.text == "Hello"
        assert answer.turn.error is None
        assert answer.turn.finish in ("stop", "unknown")

    run(main())


def test_a_half_closed_connection_still_carries_the_answer() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(UNTIL_CLOSE + said("Hello") + FINISH + DONE)
        peer.writer.write_eof()
        await peer.gone()

    async def main() -> None:
        async with Upstream(script) as upstream:
            assert (await ask_once(upstream)).text == "Hello"

    run(main())


def test_provisional_replies_are_passed_over() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"

    async def main() -> None:
        async with Upstream(sends(early, ANSWER)) as upstream:
            assert (await ask_once(upstream)).text == "Hello"

    run(main())


@pytest.mark.parametrize(
    ("piece", "times"),
    [
        (b"X-More: " + b"y" * 4000 + b"\r\n", 100_000),
        (b"y" * 50_000, 10_000),
    ],
)
def test_headers_without_end_are_refused_long_before_they_fill_the_memory(piece: bytes, times: int) -> None:
    sent: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\n" + (b"" if b":" in piece else b"X-Huge: "))
        for _ in range(times):
            await peer.send(piece)
            sent.append(len(piece))

    async def main() -> None:
        async with Upstream(script) as upstream:
            failed(await ask_once(upstream), "upstream_error")
        assert sum(sent) < 16_000_000

    run(main())


def test_provisional_replies_without_end_are_refused() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)

    async def main() -> None:
        async with Upstream(script) as upstream:
            began = time.monotonic()
            error = failed(await ask_once(upstream, limits=Limits(first_delta_seconds=20)), "upstream_error")
            assert time.monotonic() - began < 10
        assert "head" in (error.detail or "")

    run(main())


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"HTTP/1.1 two hundred OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
    ],
)
def test_what_is_not_http_or_no_answer_is_an_error(garbage: bytes) -> None:
    async def main() -> None:
        async with Upstream(sends_and_closes(garbage)) as upstream:
            answer = await ask_once(upstream)
        assert answer.turn.error is not None
        assert answer.turn.error.code in ("upstream_error", "upstream_cut")
        assert answer.text == ""

    run(main())


def test_a_broken_chunk_size_in_mid_answer_is_a_cut() -> None:
    async def main() -> None:
        async def script(peer: Peer) -> None:
            await peer.send(HEAD)
            await asyncio.sleep(0.05)
            await peer.send(chunk(said("Hello ")) + b"zz\r\nwhat\r\n")
            await peer.gone()

        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        failed(answer, "upstream_cut")
        assert answer.text == "Hello ", "what arrived before the break is shown"

    run(main())


def test_a_body_that_is_not_compressed_as_it_says_is_an_error() -> None:
    async def main() -> None:
        script = sends(reply(200, said("Hello"), Content_Type="text/event-stream", Content_Encoding="gzip"))
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        assert answer.turn.error is not None
        assert answer.text == ""

    run(main())


@pytest.mark.parametrize("reset", [False, True])
def test_text_that_arrived_before_the_cut_is_shown_though_it_was_not_read_yet(reset: bool) -> None:
    """Inflating much takes many rounds of the loop: more text and the end of the connection come meanwhile."""
    press = zlib.compressobj(wbits=31)

    def pressed(data: bytes) -> bytes:
        return chunk(press.compress(data) + press.flush(zlib.Z_SYNC_FLUSH))

    head = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    much = pressed((b": " + b"x" * 50_000 + b"\n\n") * 400)

    async def script(peer: Peer) -> None:
        await peer.send(head + much)
        await asyncio.sleep(0.02)
        await peer.send(pressed(said("Hello ")))
        await asyncio.sleep(0.01)
        peer.reset() if reset else peer.writer.close()

    async def main() -> None:
        async with Upstream(script) as upstream:
            answer = await ask_once(upstream)
        failed(answer, "upstream_cut")
        assert answer.text == "Hello "

    run(main())


def test_random_bytes_never_make_an_attempt_raise() -> None:
    """Any reply, cut anywhere and spoiled anywhere, gives a turn."""
    chance = random.Random(20261129)

    def spoiled() -> Script:
        wire = bytearray(ANSWER)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(wire))
            wire[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        end = chance.choice([sends_and_closes, sends_and_resets])
        return end(bytes(wire[: chance.randrange(1, len(wire))]))

    async def main() -> None:
        async with Upstream(*(spoiled() for _ in range(300))) as upstream:
            for number in range(1, 301):
                await ask_once(upstream, limits=Limits(silence_seconds=2, first_delta_seconds=2))
                assert len(upstream.requests) == number

    run(main())


def test_a_refusal_says_whether_the_model_surely_did_not_start_and_when_to_come_back() -> None:
    async def main() -> None:
        scripts = [
            said_no(429, "slow", Retry_After="2"),
            said_no(429, "slow", retry_after_ms="300"),
            said_no(503, "busy", Retry_After="1"),
            said_no(503, "busy"),
            said_no(429, "no money", kind="insufficient_quota", Retry_After="2"),
            said_no(500, "boom", Retry_After="1"),
            said_no(401, "who?"),
            said_no(400, "no", code="content_filter"),
            said_no(408, "slow"),
        ]
        async with Upstream(*scripts) as upstream:
            errors = [failed(await ask_once(upstream), "upstream_error") for _ in scripts]
        assert [error.retry_after for error in errors] == [2, 0.3, 1, None, None, 1, None, None, None]
        assert [error.safe_to_retry for error in errors] == [True, True, True, False, True, False, True, False, False]

    run(main())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("url", "visitor", "operator"),
    [
        ("http://127.0.0.1:{port}", "cannot be reached", "Connect"),
        ("http://localhost:{port}", "cannot be reached", "Connect"),
        ("http://[::1]:{port}", "cannot be reached", ""),
        ("http://no-such-host.invalid", "was not found", "no such host"),
        ("http://" + "a" * 70 + ".invalid", "", ""),
        ("http://xn--.invalid", "", ""),
    ],
)
def test_a_server_that_is_not_there_is_a_sentence_and_may_be_asked_again(url: str, visitor: str, operator: str) -> None:
    async def main() -> None:
        model = HttpModel(url.format(port=free_port()), "m", api_key=KEY)
        answer = await ask(model)
        await model.close()
        error = failed(answer, "upstream_error")
        assert visitor in error.message
        assert operator in (error.detail or "")
        assert "/v1/chat/completions" in (error.detail or "")
        assert error.safe_to_retry
        assert not answer.turn.started

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="needs a full backlog that drops what comes after")
def test_a_connection_that_is_not_taken_is_given_up_after_its_own_limit() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            waiting = [socket.socket() for _ in range(3)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            await asyncio.sleep(0.1)
            model = HttpModel(f"http://127.0.0.1:{full.getsockname()[1]}", "m", limits=Limits(connect_seconds=0.5))
            began = time.monotonic()
            error = failed(await ask(model), "timeout")
            assert 0.5 <= time.monotonic() - began < 1
            assert "within 0.5 s" in error.message
            assert error.safe_to_retry
            await model.close()
            for one in waiting:
                one.close()

    run(main())


def test_a_kept_connection_closed_before_a_byte_came_may_be_asked_again() -> None:
    """The server closes the idle connection just as the question is on its way: it cannot have read it."""

    async def closes_on_the_next(peer: Peer) -> None:
        await peer.send(ANSWER)
        await peer.take(len)  # a byte of the next question: it is on this connection
        peer.reset()

    async def main() -> None:
        async with Upstream(closes_on_the_next, sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m")
            assert (await ask(model)).text == "Hello"
            await asyncio.sleep(0.05)
            error = failed(await ask(model), "upstream_cut")
            assert error.safe_to_retry
            assert error.status is None
            assert (await ask(model)).text == "Hello"
            await model.close()
            assert len(upstream.peers) == 2

    run(main())


def test_a_kept_connection_cut_after_a_byte_came_is_never_asked_again() -> None:
    async def begins_the_next(peer: Peer) -> None:
        await peer.send(ANSWER)
        await peer.take(len)
        await peer.send(b"H")
        await asyncio.sleep(0.05)
        peer.writer.close()

    async def main() -> None:
        async with Upstream(begins_the_next) as upstream:
            model = HttpModel(upstream.url, "m")
            assert (await ask(model)).text == "Hello"
            await asyncio.sleep(0.05)
            assert not failed(await ask(model), "upstream_cut").safe_to_retry
            await model.close()

    run(main())


def test_an_idle_connection_that_its_server_closed_is_not_used_again() -> None:
    async def main() -> None:
        async with Upstream(sends_and_closes(ANSWER), sends(ANSWER)) as upstream:
            model = HttpModel(upstream.url, "m")
            assert (await ask(model)).text == "Hello"
            await asyncio.sleep(0.1)
            assert (await ask(model)).text == "Hello"
            await model.close()
            assert len(upstream.peers) == 2

    run(main())


def test_a_server_that_answers_before_it_has_read_the_question_is_heard() -> None:
    """A refusal by size often comes while the question is still being written."""
    request = TurnRequest(messages=[], max_tokens=1, extra={"metadata": "x" * 8_000_000})

    async def main() -> None:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply(413, b'{"error":{"message":"too big"}}', Connection="close"))
            await writer.drain()
            while await reader.read(1 << 16):
                pass
            writer.close()

        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        model = HttpModel(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "m")
        error = failed(await ask(model, request), "upstream_error")
        assert error.status == 413
        await model.close()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.05)

    run(main())


def test_no_descriptor_is_left_open_by_failures() -> None:
    def descriptors() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    async def main() -> None:
        scripts = [sends_and_resets(b"HT"), sends(reply(500, b"x")), sends_and_closes(HEAD), said_no(401, "no")] * 5
        async with Upstream(*scripts) as upstream:
            model = HttpModel(upstream.url, "m")
            await ask(model)
            before = descriptors()
            for _ in range(len(scripts) - 1):
                await ask(model)
            await asyncio.sleep(0.05)
            assert descriptors() <= before + 2
            await model.close()

    run(main())
