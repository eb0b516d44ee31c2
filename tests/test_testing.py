"""`motamot.testing`: an app called without a network, as one client would."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

import motamot.scripted
import motamot.store.contract
from motamot import Assistant, testing
from motamot.sse import encode
from motamot.store.store import Store
from motamot.testing import ScriptedModel, call, running

HAZARDS = 'a\nb\r\nc\u2028d <b>&amp; \U0001f68c data: x\n\n- e {"morceau": "f"}'


async def echo(request: Request) -> Response:
    """Tells what came."""
    return JSONResponse(
        {
            "method": request.method,
            "path": request.scope["path"],
            "root_path": request.scope["root_path"],
            "query": dict(request.query_params),
            "headers": dict(request.headers),
            "body": (await request.body()).decode(),
            "client": request.client.host if request.client else None,
        },
        headers={"X-Seen": "yes"},
    )


def streaming(pieces: list[bytes], closed: list[str], kind: str = "text/plain") -> Starlette:
    """An app that streams, slowly after the first two pieces, and says when its generator was closed."""

    async def body() -> AsyncIterator[bytes]:
        try:
            for number, piece in enumerate(pieces):
                await asyncio.sleep(0 if number < 2 else 20)
                yield piece
        finally:
            closed.append("closed")

    async def stream(_: Request) -> Response:
        return StreamingResponse(body(), media_type=kind)

    return Starlette(routes=[Route("/stream", stream)])


ECHO = Starlette(routes=[Route("/echo/{rest:path}", echo, methods=["GET", "POST", "PUT"])])


class TestAsking:
    """What the app gets."""

    def test_an_app_sees_the_request_as_a_server_would_show_it(self) -> None:
        got = asyncio.run(call(ECHO, "GET /echo/été à l'heure?q=où est%20le bus&r=1%2B1"))
        assert (got.status, got.headers["x-seen"], got.headers["X-SEEN"]) == (200, "yes", "yes")
        told = got.json()
        assert told["path"] == "/echo/été à l'heure"
        assert told["query"] == {"q": "où est le bus", "r": "1+1"}
        assert told["headers"] == {"host": "localhost", "accept": "text/event-stream, */*"}
        assert (told["method"], told["body"], told["client"]) == ("GET", "", "127.0.0.1")
        assert (got.events, got.left) == ([], False)
        assert got.body == got.text.encode()

    def test_a_body_goes_as_it_is_or_as_json(self) -> None:
        async def asked(body: object, **more: Any) -> Any:
            return (await call(ECHO, "POST /echo/x", body=body, **more)).json()

        as_bytes, as_text, as_json = (asyncio.run(asked(body)) for body in (b"\xc3\xa9", "é", {"message": "é"}))
        assert as_bytes["body"] == as_text["body"] == "é"
        assert as_bytes["headers"]["content-length"] == "2" and "content-type" not in as_bytes["headers"]
        assert json.loads(as_json["body"]) == {"message": "é"}
        assert as_json["headers"]["content-type"] == "application/json"
        plain = asyncio.run(asked({"a": 1}, headers={"Content-Type": "text/plain"}))
        assert plain["headers"]["content-type"] == "text/plain"

    def test_headers_client_and_mount_are_the_callers(self) -> None:
        app = Starlette(routes=[Mount("/under", ECHO)])
        pairs = [("Cookie", "a=1"), ("Cookie", "b=2"), ("Host", "shop.example")]
        got = asyncio.run(
            call(app, "GET /app/under/echo/x", headers=pairs, root_path="/app", client=("192.0.2.7", 1))
        ).json()
        assert (got["root_path"], got["client"]) == ("/app/under", "192.0.2.7")
        assert got["headers"]["host"] == "shop.example"

    @pytest.mark.parametrize("request_", ["/flux", "GET flux", "GET", "", "GET http://x/flux", "G T /x"])
    def test_what_is_no_request_is_told(self, request_: str) -> None:
        with pytest.raises(ValueError, match="a request is a method and an address"):
            asyncio.run(call(ECHO, request_))

    def test_nobody_can_stop_after_nothing(self) -> None:
        with pytest.raises(ValueError, match="stop_after"):
            asyncio.run(call(ECHO, "GET /echo/x", stop_after=0))


class TestReading:
    """What comes of the answer."""

    def test_each_write_of_a_plain_stream_is_a_piece(self) -> None:
        closed: list[str] = []
        word = "été".encode()
        app = streaming([word[:1], word[1:]], closed)
        got = asyncio.run(call(app, "GET /stream"))
        assert (got.pieces, got.body, got.left) == (["été"], word, False)

    def test_a_client_leaves_after_so_many_pieces_and_the_app_has_noticed(self) -> None:
        closed: list[str] = []
        app_ended: list[str] = []
        streamed = streaming([b"one", b"two", b"three"], closed)
        began = time.monotonic()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await streamed(scope, receive, send)
            app_ended.append("ended")

        async def stopped() -> testing.Answered:
            got = await call(app, "GET /stream", stop_after=2)
            assert app_ended == ["ended"]
            return got

        got = asyncio.run(stopped())
        assert (got.pieces, got.body, got.left) == (["one", "two"], b"onetwo", True)
        assert time.monotonic() - began < 5
        assert closed == ["closed"]

    def test_what_came_at_once_behind_the_last_piece_is_not_read(self) -> None:
        events = [b": hello\r\n", *(b"id: %d\r\ndata: piece %d\r\n\r\n" % (n, n) for n in range(3))]
        app = streaming([b"".join(events)], [], "text/event-stream; charset=utf-8")
        got = asyncio.run(call(app, "GET /stream", stop_after=2))
        assert got.pieces == ["piece 0", "piece 1"]
        assert got.body == b"".join(events[:3])
        assert [event.id for event in got.events] == ["0", "1"]
        assert got.left
        whole = asyncio.run(call(app, "GET /stream", stop_after=4))
        assert (len(whole.events), whole.left) == (3, False)

    @pytest.mark.parametrize(
        ("data", "name", "piece"),
        [
            ('{"morceau":"a"}', None, "a"),
            ('{"morceau":""}', None, ""),
            ('{"type":"text","text":"a"}', None, "a"),
            ('{"type":"started","exchange":"x"}', None, ""),
            ('{"choices":[{"delta":{"content":"a"}}]}', None, "a"),
            ('{"choices":[{"delta":{"role":"assistant"}}]}', None, ""),
            ('{"choices":[],"usage":{}}', None, ""),
            ('{"error":{"code":"timeout"}}', None, ""),
            ("[DONE]", None, ""),
            ("first\nsecond", None, "first\nsecond"),
            ("12", None, "12"),
            ('{"token":"a"}', None, '{"token":"a"}'),
            ("fin", "fin", ""),
            ("[" * 100_000, None, "[" * 100_000),
        ],
    )
    def test_a_piece_is_what_an_event_adds_to_the_text(self, data: str, name: str | None, piece: str) -> None:
        app = streaming([encode(data, event=name)], [], "text/event-stream")
        got = asyncio.run(call(app, "GET /stream"))
        assert got.pieces == ([piece] if piece else [])
        assert [event.data for event in got.events] == [data]

    def test_a_head_has_no_body(self) -> None:
        got = asyncio.run(call(ECHO, "HEAD /echo/x"))
        assert (got.status, got.body, got.pieces) == (200, b"", [])


class TestFaults:
    """What an app does wrong is told."""

    def test_an_app_that_does_not_notice_is_told_with_what_it_sent(self) -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200})
            while True:
                await send({"type": "http.response.body", "body": b"more", "more_body": True})
                await asyncio.sleep(0.01)

        with pytest.raises(TimeoutError, match=r"did not notice that the client had left within 0\.3 s.*b'more'"):
            asyncio.run(call(app, "GET /", stop_after=1, timeout=0.3))
        with pytest.raises(TimeoutError, match=r"was not done within 0\.1 s"):
            asyncio.run(call(app, "GET /", timeout=0.1))

    def test_what_the_app_raises_is_raised(self) -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            asyncio.run(call(app, "GET /"))

    def test_an_app_that_breaks_off_is_told(self) -> None:
        async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()

        async def half(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})

        for app, sent in ((nothing, "b''"), (half, "b'half'")):
            with pytest.raises(RuntimeError, match=f"ended before its answer did; it had sent {sent}"):
                asyncio.run(call(app, "GET /"))

    def test_messages_no_server_takes_are_told(self) -> None:
        async def headless(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.body", "body": b"x"})

        async def twice(scope: Scope, receive: Receive, send: Send) -> None:
            await PlainTextResponse("one")(scope, receive, send)
            await PlainTextResponse("two")(scope, receive, send)

        with pytest.raises(RuntimeError, match=r"http\.response\.body where http\.response\.start may come"):
            asyncio.run(call(headless, "GET /"))
        with pytest.raises(RuntimeError, match=r"http\.response\.start where nothing may come"):
            asyncio.run(call(twice, "GET /"))

    def test_a_caller_that_is_cancelled_leaves_nothing_running(self) -> None:
        ended: list[str] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await asyncio.sleep(20)
            finally:
                ended.append("ended")

        async def main() -> None:
            task = asyncio.create_task(call(app, "GET /"))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ended == ["ended"]

        asyncio.run(main())


class TestLifespan:
    """`running`."""

    def test_the_lifespan_runs_around_the_calls_and_its_state_is_theirs(self) -> None:
        told: list[str] = []

        @contextlib.asynccontextmanager
        async def lifespan(_: object) -> AsyncIterator[dict[str, str]]:
            told.append("started")
            yield {"who": "me"}
            told.append("stopped")

        async def who(request: Request) -> Response:
            told.append("asked")
            return PlainTextResponse(request.state.who)

        async def main() -> None:
            async with running(Starlette(routes=[Route("/", who)], lifespan=lifespan)) as app:
                assert (await call(app, "GET /")).text == "me"

        asyncio.run(main())
        assert told == ["started", "asked", "stopped"]

    def test_an_app_without_one_is_taken_as_it_is(self) -> None:
        async def returns(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await PlainTextResponse("hello")(scope, receive, send)

        async def raises(scope: Scope, receive: Receive, send: Send) -> None:
            assert scope["type"] == "http"
            await returns(scope, receive, send)

        async def main() -> None:
            for bare in (returns, raises):
                async with running(bare) as app:
                    assert (await call(app, "GET /")).text == "hello"

        asyncio.run(main())

    def test_an_app_that_cannot_start_is_told(self, tmp_path: Path) -> None:
        @contextlib.asynccontextmanager
        async def lifespan(_: object) -> AsyncIterator[None]:
            if not (tmp_path / "disk").exists():
                raise OSError("no disk")
            yield

        async def main() -> None:
            async with running(Starlette(lifespan=lifespan)):
                pytest.fail("it did not start")

        with pytest.raises(RuntimeError, match=r"(?s)the app.s startup failed: .*no disk"):
            asyncio.run(main())


class TestOurs:
    """Our own app, as its users test it."""

    def test_a_lesson_stream_is_read_to_its_end(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with ScriptedModel([[{"say": HAZARDS, "cut": "utf16"}]]) as model:
                chat = Assistant(upstream=model.url, model="scripted", store=tmp_path / "books.sqlite3")
                got = await call(chat.asgi, "GET /flux?message=Bonjour")
                assert got.status == 200
                assert got.headers["content-type"].startswith("text/event-stream")
                assert got.text == HAZARDS
                assert json.loads(got.events[0].data) == {"morceau": ""}
                assert (got.events[-1].event, got.events[-1].data) == ("fin", "fin")
                assert len(model.requests) == 1

        asyncio.run(main())

    def test_a_client_that_leaves_stops_the_model_and_is_booked(self, tmp_path: Path) -> None:
        async def main() -> None:
            steps = [{"say": ["one", "two", "three"], "pace": 20}, {"gate": "never"}, {"say": "four"}]
            async with ScriptedModel([steps]) as model:
                chat = Assistant(upstream=model.url, model="scripted", store=tmp_path / "books.sqlite3")
                got = await call(chat.asgi, "GET /flux", stop_after=2)
                assert (got.pieces, got.left) == (["one", "two"], True)
                assert all(event.event == "message" for event in got.events)
                assert (await model.wait_left(0)).cancelled

        async def booked() -> None:
            store = Store.open(tmp_path / "books.sqlite3")
            [row] = await store.completions()
            assert (row.outcome, row.source) == ("stopped", "estimated")
            await store.close()

        asyncio.run(main())
        asyncio.run(booked())

    def test_each_call_may_have_an_event_loop_of_its_own(self, tmp_path: Path) -> None:
        chat = Assistant(
            upstream="http://127.0.0.1:9", model="none", recorded=["Bonjour."], store=tmp_path / "b.sqlite3"
        )
        for _ in range(2):
            got = asyncio.run(call(chat.asgi, "POST /api/chat", body={"message": "Bonjour"}))
            assert (got.status, got.json()["text"]) == (200, "Bonjour.")


def test_doubles_and_contract_are_the_ones_we_use_ourselves() -> None:
    assert testing.ScriptedModel is motamot.scripted.ScriptedModel
    assert testing.scripted_model is motamot.scripted.scripted_model
    assert testing.StoreContract is motamot.store.contract.StoreContract
