"""Responses that follow an exchange: live, at any reader's pace, and gone when the reader is."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response as HTTPResponse
from starlette.types import ASGIApp, Message, Scope

from motamot.answer import Outcome, Text
from motamot.limits import Limits
from motamot.server.site import Site
from motamot.server.streams import Heartbeats
from motamot.server.wire import Leaving
from tests.scripted.wire import Client
from tests.server.reading import Stream, Visitor, request, run
from tests.server.support import V1_KEY, Served, serving

V1 = {"Authorization": f"Bearer {V1_KEY}"}
FLUX = {"Accept": "text/event-stream"}
MESSAGES = [{"role": "user", "content": "Hello"}]
HELD = [{"say": ["One ", "two "]}, {"gate": "more"}, {"say": ["three."]}]
SILENT = [{"gate": "first"}, {"say": "Hello."}]

Opens = Callable[[Visitor], Awaitable[Stream]]


async def native(v: Visitor) -> Stream:
    return await v.open("POST", "/api/chat/stream", {"message": "Hello"}, head=False)


async def flux(v: Visitor) -> Stream:
    return await v.open("GET", "/flux?message=Hello", headers=FLUX, protocol="morceaux", head=False)


async def ga(v: Visitor) -> Stream:
    return await v.open("POST", "/api/chatbot/chat/stream", {"message": "Hello"}, protocol="ga-text", head=False)


async def v1(v: Visitor) -> Stream:
    body = {"messages": MESSAGES, "stream": True}
    return await v.open("POST", "/v1/chat/completions", body, headers=V1, protocol="openai", head=False)


async def native_json(v: Visitor) -> Stream:
    return await v.open("POST", "/api/chat", {"message": "Hello"}, head=False)


async def ga_json(v: Visitor) -> Stream:
    return await v.open("POST", "/api/chatbot/chat", {"message": "Hello"}, head=False)


async def v1_json(v: Visitor) -> Stream:
    return await v.open("POST", "/v1/chat/completions", {"messages": MESSAGES}, headers=V1, head=False)


STREAMS = [native, flux, ga, v1]
EVERY = [*STREAMS, native_json, ga_json, v1_json]
by_name = pytest.mark.parametrize("opens", STREAMS, ids=lambda opens: opens.__name__)
every_way = pytest.mark.parametrize("opens", EVERY, ids=lambda opens: opens.__name__)


class TestLive:
    @pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
    @by_name
    def test_each_piece_leaves_when_the_model_has_sent_it(self, tmp_path: Path, opens: Opens, loop: str) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                stream = await opens(Visitor(s.port))
                await stream.head()
                await stream.until("One two" if opens is not ga else "One")  # ga-text keeps back a last character
                assert s.model.requests[0].done_at is None
                s.model.release("more")
                await stream.to_end()
                assert stream.text == "One two three."
                await stream.close()

        run(scenario(), loop=loop)

    @pytest.mark.parametrize("opens", [native, flux, ga], ids=lambda opens: opens.__name__)
    def test_the_head_leaves_once_the_question_is_admitted(self, tmp_path: Path, opens: Opens) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                stream = await opens(Visitor(s.port))
                await asyncio.wait_for(stream.head(), 2)
                assert stream.status == 200
                assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
                assert stream.headers["cache-control"] == "no-cache, no-transform"
                assert stream.headers["x-accel-buffering"] == "no"
                assert "connection" not in stream.headers
                assert "content-length" not in stream.headers
                if opens is not ga:  # the others say at once whose answer it is
                    await asyncio.wait_for(stream.piece(), 2)
                    assert stream.last_id.endswith(".1")
                await s.model.wait_gate("first")
                await stream.close()
                await s.model.wait_left(0)

        run(scenario())

    def test_a_v1_stream_holds_its_head_for_the_first_delta(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                stream = await v1(Visitor(s.port))
                head = asyncio.ensure_future(stream.head())
                await s.model.wait_gate("first")
                await asyncio.sleep(0.2)
                assert not head.done()
                s.model.release("first")
                assert await asyncio.wait_for(head, 5) == 200
                assert (await stream.to_end()).text == "Hello."
                await stream.close()

        run(scenario())

    def test_a_v1_stream_holds_its_head_for_one_heartbeat_at_most(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT], limits=Limits(heartbeat_seconds=0.3)) as s:
                stream = await v1(Visitor(s.port))
                assert await asyncio.wait_for(stream.head(), 2) == 200
                assert await stream.piece() == b":\n"
                s.model.release("first")
                assert (await stream.to_end()).text == "Hello."
                await stream.close()

        run(scenario())

    @by_name
    def test_silence_is_filled_with_comments_between_whole_events(self, tmp_path: Path, opens: Opens) -> None:
        async def scenario() -> None:
            half = '{"choices":[{"index":0,"delta":{"content":"Hel'
            script = [{"send": f"data: {half}"}, {"gate": "rest"}, {"send": 'lo"}}]}\n\ndata: [DONE]\n\n'}]
            async with serving(tmp_path, [script], limits=Limits(heartbeat_seconds=0.15)) as s:
                stream = await opens(Visitor(s.port))
                await stream.head()
                began = time.monotonic()
                comments = b":\n"
                while stream.body.count(comments) < 4:
                    await asyncio.wait_for(stream.piece(), 2)
                assert time.monotonic() - began < 2  # at most 0.15 s of silence, on a machine that is busy
                s.model.release("rest")
                await stream.to_end()
                assert stream.text == "Hello"
                assert stream.ended is not None
                assert stream.ended.outcome is Outcome.COMPLETE
                between = re.sub(rb"(?:^|(?<=\n\n))(?::\n)+", b"", stream.body)
                assert b"\n:" not in between
                assert not between.startswith(b":")
                assert not [block for block in stream.blocks if not block.data]
                await stream.close()

        run(scenario())

    def test_heartbeats_stop_with_the_stream(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT], limits=Limits(heartbeat_seconds=0.1)) as s:
                stream = await Visitor(s.port).ask()
                assert s.site.heartbeats.open == 1
                await stream.close()
                await quiet(s)
                await asyncio.sleep(0.05)
                assert s.site.heartbeats.open == 0

        run(scenario())

    def test_heartbeats_begin_anew_on_another_event_loop(self) -> None:
        """A site may be started again where the loop it ran on is gone."""

        class Silent:
            number = 1
            nudged = 0

            def nudge(self) -> None:
                self.nudged += 1

        heartbeats = Heartbeats(0.03)
        nudged = []
        for _ in range(2):
            silent: Any = Silent()

            async def listen(to: Any = silent) -> None:
                heartbeats.add(to)
                assert heartbeats.open == 1
                await asyncio.sleep(0.1)

            run(listen())  # and the loop is gone, with the stream still open
            nudged.append(silent.nudged)
        assert all(nudged)

    def test_nothing_in_front_of_the_site_holds_a_stream_back(self, tmp_path: Path) -> None:
        """Compression, and the kind of middleware that reads each response anew."""

        async def pass_on(request: Request, call: Callable[[Request], Awaitable[HTTPResponse]]) -> HTTPResponse:
            return await call(request)

        def around(app: ASGIApp) -> ASGIApp:
            return GZipMiddleware(BaseHTTPMiddleware(app, dispatch=pass_on), minimum_size=1)

        async def scenario() -> None:
            async with serving(tmp_path, [HELD], around=around) as s:
                stream = await Visitor(s.port).ask(headers={"Accept-Encoding": "gzip"})
                assert "content-encoding" not in stream.headers
                await stream.until("One two")
                assert s.model.requests[0].done_at is None
                await stream.close()
                left = await s.model.wait_left(0, timeout=1)
                assert left.cancelled

        run(scenario())


class TestLeaving:
    @pytest.mark.parametrize("how", ["closes", "resets"])
    @every_way
    def test_the_model_is_stopped_within_a_second_though_it_is_silent(
        self, tmp_path: Path, opens: Opens, how: str
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                stream = await opens(Visitor(s.port))
                await s.model.wait_gate("first")
                if how == "resets":
                    stream.client.reset()
                at = time.monotonic()
                await stream.close()
                left = await s.model.wait_left(0, timeout=1)
                assert left.left_at is not None
                assert left.left_at - at < 1
                await quiet(s)
                assert await outcomes(s) == ["stopped"]

        run(scenario())

    @by_name
    def test_the_model_is_stopped_in_the_middle_of_an_answer(self, tmp_path: Path, opens: Opens) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                stream = await opens(Visitor(s.port))
                await stream.head()
                await stream.until("One")
                await stream.close()
                assert (await s.model.wait_left(0, timeout=1)).cancelled

        run(scenario())

    @pytest.mark.parametrize("when", ["with the question", "later"])
    @pytest.mark.parametrize("second", ["GET /healthz", "another question", "half a request"])
    @pytest.mark.parametrize("opens", [native, native_json], ids=lambda opens: opens.__name__)
    def test_a_second_request_on_the_connection_hides_it_from_nobody(
        self, tmp_path: Path, opens: Opens, second: str, when: str
    ) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                v = Visitor(s.port)
                more = {
                    "GET /healthz": request("GET", "/healthz"),
                    "another question": request("POST", "/api/chat", {"message": "More"}, headers=v.headers),
                    "half a request": b"GET /healthz HTTP/1.1\r\nHo",
                }[second]
                path = "/api/chat/stream" if opens is native else "/api/chat"
                first = request("POST", path, {"message": "Hello"}, headers=v.headers)
                client = await Client.to(s.port)
                await client.send(first + more if when == "with the question" else first)
                await s.model.wait_gate("first")
                if when == "later":
                    await client.send(more)
                    await asyncio.sleep(0.05)
                await client.close()
                assert (await s.model.wait_left(0, timeout=1)).cancelled
                assert len(s.model.requests) == 1

        run(scenario())

    def test_requests_that_were_sent_ahead_are_answered_in_their_order(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "Hello."}]]) as s:
                v = Visitor(s.port)
                client = await Client.to(s.port)
                question = request("POST", "/api/chat", {"message": "Hello"}, headers=v.headers)
                await client.send(question + request("GET", "/healthz") + request("GET", "/nothing"))
                assert (await client.response()).json["text"] == "Hello."
                assert (await client.response()).json == {"status": "ok"}
                assert (await client.response()).status == 404
                await client.close()

        run(scenario())

    @pytest.mark.parametrize(
        "flood",
        [
            request("GET", "/healthz") * 100,
            request("POST", "/api/chat", raw=b"x" * 900_000),
        ],
        ids=["many requests", "a large one"],
    )
    def test_who_sends_a_lot_ahead_is_cut_off(self, tmp_path: Path, flood: bytes) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                stream = await Visitor(s.port).ask()
                await s.model.wait_gate("first")
                stream.client.writer.write(flood)
                assert (await s.model.wait_left(0, timeout=2)).cancelled
                await stream.close()

        run(scenario())

    def test_another_reader_keeps_the_answer_going(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD]) as s:
                v = Visitor(s.port)
                first = await (await v.ask()).until("One two")
                second = await v.open("GET", f"/api/exchanges/{first.exchange}/events")
                await second.until("One two")
                await first.close()
                await asyncio.sleep(0.1)
                s.model.release("more")
                assert (await second.to_end()).text == "One two three."
                await second.close()

        run(scenario())


def test_whoever_asks_late_learns_that_the_client_has_left_and_once() -> None:
    told: list[str] = []
    leaving = Leaving()
    leaving.left()
    leaving.then(lambda: told.append("late"))
    leaving.left()
    assert told == ["late"]


def test_whoever_asks_no_more_is_not_told() -> None:
    told: list[str] = []
    leaving = Leaving()
    leaving.then(lambda: told.append("gone"))
    leaving.then(None)
    leaving.left()
    assert told == []


class TestKeptConnections:
    """The next question needs no new connection: over TLS that is two ways there and back before its first text."""

    def test_one_connection_carries_one_stream_after_the_other(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "One."}], [{"say": "Two."}], [{"say": "Three."}]]) as s:
                client = await Client.to(s.port)
                for text in ("One.", "Two.", "Three."):
                    await client.send(request("POST", "/api/chat/stream", {"message": "Hello"}))
                    stream = await Stream(client).to_head()
                    assert (await stream.to_end()).text == text
                assert len(s.server.server_state.connections) == 1
                await client.close()

        run(scenario())

    def test_leaving_in_a_later_stream_stops_the_model_too(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "One."}], HELD]) as s:
                client = await Client.to(s.port)
                await client.send(request("POST", "/api/chat/stream", {"message": "Hello"}))
                await (await Stream(client).to_head()).to_end()
                await client.send(request("POST", "/api/chat/stream", {"message": "Hello"}))
                await (await Stream(client).to_head()).until("two ")
                await client.close()
                await s.model.wait_left(1, timeout=1)
                await quiet(s)
                assert await outcomes(s) == ["complete", "stopped"]

        run(scenario())

    def test_a_client_of_http_1_0_gets_its_end_by_the_end_of_the_connection(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "One."}]]) as s:
                asked = request("POST", "/api/chat/stream", {"message": "Hello"}).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
                got = await s.raw(asked)  # to the end of the connection
                assert b"connection: close" in got and b"One." in got

        run(scenario())


class TestAnyServer:
    """The app itself, called as a server calls it."""

    @staticmethod
    def scope(path: str, *, version: str = "1.1") -> Scope:
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        return {
            "type": "http",
            "http_version": version,
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }

    @pytest.mark.parametrize("fails_at", [0, 1, 2])
    @pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("closed"), ValueError("?")], ids=repr)
    def test_any_exception_out_of_send_means_that_the_client_is_gone(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, fails_at: int
    ) -> None:
        async def scenario() -> None:
            script = [{"say": "One "}, {"gate": "two"}, {"say": "two "}, {"gate": "more"}]
            async with serving(tmp_path, [script]) as s:
                calls = 0

                async def send(message: Message) -> None:
                    nonlocal calls
                    calls += 1
                    if calls > fails_at:
                        raise error
                    if b'"One "' in message.get("body", b""):
                        s.model.release("two")

                body = [{"type": "http.request", "body": json.dumps({"message": "Hi"}).encode()}]

                async def receive() -> Message:
                    if body:
                        return body.pop()
                    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

                await asyncio.wait_for(s.site(self.scope("/api/chat/stream"), receive, send), 5)
                assert calls == fails_at + 1
                await quiet(s)
                assert await outcomes(s) == ["stopped"]
                if s.model.requests:
                    await s.model.wait_left(0, timeout=1)

        with caplog.at_level(logging.WARNING):
            run(scenario())
        assert "Traceback" not in caplog.text

    def test_a_receive_that_raises_means_it_too(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [SILENT]) as s:
                body = [{"type": "http.request", "body": json.dumps({"message": "Hi"}).encode()}]

                async def receive() -> Message:
                    if body:
                        return body.pop()
                    await s.model.wait_gate("first")
                    raise ConnectionResetError("gone")

                async def send(message: Message) -> None:
                    pass

                await asyncio.wait_for(s.site(self.scope("/api/chat/stream"), receive, send), 5)
                await s.model.wait_left(0, timeout=1)

        run(scenario())

    def test_what_was_under_way_to_a_client_that_left_counts_as_not_sent(self, tmp_path: Path) -> None:
        """Servers return from `send` without a word for a client that is gone."""

        async def scenario() -> None:
            async with serving(
                tmp_path, [[{"say": ["One "]}, {"gate": "more"}, {"say": ["two "]}, {"gate": "end"}]]
            ) as s:
                leaving, left = asyncio.Event(), asyncio.Event()
                body = [{"type": "http.request", "body": json.dumps({"message": "Hi"}).encode()}]

                async def send(message: Message) -> None:
                    if b'"One "' in message.get("body", b""):
                        s.model.release("more")
                    if b'"two "' in message.get("body", b""):
                        leaving.set()
                        await left.wait()

                async def receive() -> Message:
                    if body:
                        return body.pop()
                    await leaving.wait()
                    left.set()  # the connection's end wakes both, this one first
                    return {"type": "http.disconnect"}

                await asyncio.wait_for(s.site(self.scope("/api/chat/stream"), receive, send), 5)
                await quiet(s)
                [exchange] = s.site.exchanges._by_id.values()
                row = await s.site.exchanges.store.exchange(exchange.id)
                assert row is not None
                assert (row.outcome, row.shown, row.generated) == ("stopped", "One ", "One two ")

        run(scenario())

    @pytest.mark.parametrize("version", ["1.0", "1.1", "2", "3"])
    def test_connections_are_left_to_the_server(self, tmp_path: Path, version: str) -> None:
        """In HTTP/2 such a field makes the response malformed (RFC 9113, 8.2.2)."""

        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": "Hi"}]]) as s:
                sent, _ = await call(s.site, self.scope("/api/chat/stream", version=version), {"message": "Hi"})
                assert b"connection" not in dict(sent[0]["headers"])
                assert [message.get("more_body", True) for message in sent[-2:]] == [True, False]

        run(scenario())

    def test_what_waits_goes_out_in_one_write_of_a_bounded_size(self, tmp_path: Path) -> None:
        """A reader that blocks: the model ends meanwhile; then few writes, none large, and every character."""
        words = [f"word{number} " for number in range(20_000)]

        async def scenario() -> None:
            async with serving(tmp_path, [[{"say": words}]]) as s:
                blocked = asyncio.Event()
                sent: list[bytes] = []

                async def send(message: Message) -> None:
                    if message["type"] == "http.response.body":
                        [exchange] = s.site.exchanges._by_id.values()
                        assert exchange.sent == sum(one.count(b"\n\n") for one in sent)  # all before, nothing more
                        sent.append(message["body"])
                        if len(sent) == 2:
                            await blocked.wait()

                body = [{"type": "http.request", "body": json.dumps({"message": "Hi"}).encode()}]

                async def receive() -> Message:
                    if body:
                        return body.pop()
                    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

                answering = asyncio.ensure_future(s.site(self.scope("/api/chat/stream"), receive, send))
                await s.model.wait_ended(0, timeout=30)
                await quiet(s, 20)
                assert len(sent) == 2
                [exchange] = s.site.exchanges._by_id.values()
                assert exchange.sent < 100  # what the reader has not taken is not sent
                blocked.set()
                await answering
                stream = Stream(await Client.to(s.port))
                stream.events = stream._reader.feed(b"".join(sent))
                assert stream.text == "".join(words)
                assert max(map(len, sent)) < 66_000
                assert len(sent) < 60
                await stream.close()

        run(scenario())


class TestSlowReader:
    def test_the_model_is_not_slowed_and_every_character_arrives(self, tmp_path: Path) -> None:
        """A megabyte for a reader that takes nothing until the model has ended."""

        async def scenario() -> None:
            pieces = [f"{number:08d}é\n" * 10 for number in range(10_000)]
            async with serving(tmp_path, [[{"say": pieces}]]) as s:
                stream = await Visitor(s.port).ask()
                ended = await s.model.wait_ended(0, timeout=30)
                assert ended.ended == "clean"
                await stream.to_end()
                assert stream.text == "".join(pieces)
                await stream.close()

        run(scenario())

    def test_one_slow_reader_does_not_hold_up_another(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            pieces = ["x" * 1_000] * 3_000
            async with serving(tmp_path, [[{"say": pieces}, {"gate": "end"}]]) as s:
                v = Visitor(s.port)
                slow = await v.ask()
                await slow.piece()
                fast = await v.open("GET", f"/api/exchanges/{slow.exchange}/events")
                await fast.until(lambda stream: len(stream.text) == 3_000_000, 20)
                s.model.release("end")
                await fast.to_end()
                await slow.to_end()
                assert slow.text == fast.text == "".join(pieces)
                await slow.close()
                await fast.close()

        run(scenario())

    def test_an_answer_has_a_bounded_number_of_readers(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with serving(tmp_path, [HELD], limits=Limits(readers_per_exchange=3)) as s:
                v = Visitor(s.port)
                streams = [await (await v.ask()).until("One")]
                path = f"/api/exchanges/{streams[0].exchange}/events"
                streams += [await v.open("GET", path) for _ in range(2)]
                refused = await v.fetch("GET", path)
                assert refused.status == 429
                assert refused.json["error"]["limit"] == "readers_per_exchange"
                await streams.pop().close()
                await asyncio.sleep(0.1)
                streams.append(await v.open("GET", path))
                assert streams[-1].status == 200
                for stream in streams:
                    await stream.close()

        run(scenario())


async def call(site: Site, scope: Scope, body: object) -> tuple[list[Message], str]:
    """What a site answers to one request, to the end."""
    sent: list[Message] = []
    parts = [{"type": "http.request", "body": json.dumps(body).encode()}]

    async def receive() -> Message:
        if parts:
            return parts.pop()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def send(message: Message) -> None:
        sent.append(message)

    await asyncio.wait_for(site(scope, receive, send), 10)
    return sent, b"".join(message.get("body", b"") for message in sent).decode()


async def quiet(s: Served, seconds: float = 2) -> None:
    """Wait until nothing is under way any more."""
    async with asyncio.timeout(seconds):
        while s.site.exchanges.running:
            await asyncio.sleep(0.005)


async def outcomes(s: Served) -> list[Any]:
    """How the exchanges ended, oldest first."""
    return [str(exchange.ended and exchange.ended.outcome) for exchange in s.site.exchanges._by_id.values()]


def test_text_is_what_the_model_wrote_on_every_route(tmp_path: Path) -> None:
    """One answer with what breaks writers: line ends, colons, half characters, markup, and the protocols' own words."""
    text = 'a\r\nb\rc\n\nd: e\ndata: x\n\u2028\u2029\x85\x00é😀</script>[DONE] {"error":"x"} :\nfin'

    async def scenario() -> None:
        script = [{"say": text, "cut": "utf16"}]
        async with serving(tmp_path, [script] * 4) as s:
            for opens in STREAMS:
                stream = await opens(Visitor(s.port))
                await stream.head()
                await stream.to_end()
                expected = text.replace("\r\n", "\n").replace("\r", "\n") if opens is ga else text
                assert stream.text == expected, opens
                assert any(isinstance(event, Text) for event in stream.events)
                await stream.close()

    run(scenario())
