"""The scripted model on a real socket: bytes, pieces, ends, and the client's leaving."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

import pytest

from motamot.scripted import ScriptedModel, bounds

from .wire import Client, ask, fetch, get, text_of

SSE = "text/event-stream; charset=utf-8"


def one(*steps: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [list(steps)]


# Bytes


def test_raw_steps_arrive_byte_for_byte_one_piece_a_chunk() -> None:
    steps = one({"send": "da"}, {"send": "ta: é\u2028\r\n"}, {"send_base64": "/wA="}, {"send": "x"}, {"close": "clean"})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            assert await client.head() == (
                200,
                {"content-type": SSE, "cache-control": "no-cache", "transfer-encoding": "chunked"},
            )
            got = [await client.chunk() for _ in range(5)]
            assert got == [b"da", "ta: é\u2028\r\n".encode(), b"\xff\x00", b"x", b""]
            await client.close()
            assert [piece.data for piece in server.requests[0].pieces] == got[:-1]

    asyncio.run(run())


def test_raw_bytes_are_sent_also_where_json_was_asked_for() -> None:
    async def run() -> None:
        async with ScriptedModel(one({"send": "data: x\n\n"})) as server:
            response = await fetch(server.port, ask(stream=False))
            assert response.body == b"data: x\n\n"
            assert response.headers["content-type"] == SSE

    asyncio.run(run())


def test_send_repeat_writes_the_text_that_many_times() -> None:
    steps = one({"send_repeat": "ab", "times": 200_001}, {"send_repeat": "x", "times": 0}, {"close": "clean"})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            response = await fetch(server.port, ask())
            assert response.body == b"ab" * 200_001

    asyncio.run(run())


def test_pieces_are_written_one_by_one_with_tcp_nodelay() -> None:
    """Each is readable before the next is sent, and none waits for an acknowledgement (Nagle: 40 ms here)."""
    steps = one({"repeat": 20, "steps": [{"send": "a"}, {"send": "b"}, {"wait_ms": 2}]}, {"close": "clean"})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.head()
            begun = time.monotonic()
            assert [await client.chunk() for _ in range(40)] == [b"a", b"b"] * 20
            assert time.monotonic() - begun < 0.6
            await client.close()

    asyncio.run(run())


# The head


def test_the_head_is_held_back_while_a_script_waits_before_its_first_byte() -> None:
    steps = one({"wait_ms": 150}, {"send": "x"}, {"close": "clean"})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.reader.read(1), 0.08)
            assert (await client.head())[0] == 200
            await client.close()
            assert 0.14 < server.requests[0].pieces[0].at - server.requests[0].started_at < 1

    asyncio.run(run())


def test_an_empty_send_lets_the_head_go_alone() -> None:
    async def run() -> None:
        async with ScriptedModel(one({"send": ""}, {"gate": "body"}, {"send": "x"})) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            assert (await client.head())[0] == 200
            server.release("body")
            assert await client.chunk() == b"x"
            await client.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ({"status": 503, "headers": {"Retry-After": 1, "Content-Type": "text/html"}}, b"<p>busy"),
        ({"status": 200, "headers": {"content-length": 7}}, b"<p>busy"),
        ({"status": 299}, b"<p>busy"),
    ],
)
def test_status_and_headers_are_those_of_the_script(status: dict[str, Any], body: bytes) -> None:
    async def run() -> None:
        async with ScriptedModel(one({"wait_ms": 1}, status, {"send": body.decode()}, {"close": "clean"})) as server:
            response = await fetch(server.port, ask())
            assert response.status == status["status"]
            for name, value in status.get("headers", {}).items():
                assert response.headers[name.lower()] == str(value)
            assert response.body == body
            assert response.complete

    asyncio.run(run())


def test_a_status_without_a_body_has_none() -> None:
    async def run() -> None:
        async with ScriptedModel([[{"status": 204}, {"send": "x"}], [{"say": "next"}]]) as server:
            client = await Client.to(server.port)
            await client.send(ask() + ask())
            first = await client.response()
            assert (first.status, first.headers) == (204, {"cache-control": "no-cache"})
            assert text_of((await client.response()).body) == "next"
            await client.close()

    asyncio.run(run())


# The end


def talk(port: int) -> tuple[bytes, type[BaseException] | None]:
    """Ask over a plain socket, which gives what came before a reset: asyncio's reader drops it."""
    got = []
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(ask())
        try:
            while data := sock.recv(1 << 20):
                got.append(data)
        except OSError as error:
            return b"".join(got), type(error)
    return b"".join(got), None


async def kept_open(client: Client) -> bool:
    """The connection still answers."""
    await client.send(get("/v1/models"))
    return (await client.response()).status == 200


def test_a_clean_end_leaves_the_connection_to_the_next_request() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            for _ in range(3):
                await client.send(ask())
                response = await client.response()
                assert response.complete
                assert text_of(response.body) == "Hello"
            assert await kept_open(client)
            await client.close()
            assert [received.ended for received in server.requests] == ["clean"] * 3

    asyncio.run(run())


@pytest.mark.parametrize("request_", [ask(headers="Connection: close\r\n"), ask(version="1.0")])
def test_a_client_that_wants_no_more_gets_the_end_of_the_connection(request_: bytes) -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            await client.send(request_)
            response = await client.response()
            assert text_of(response.body) == "Hello"
            assert response.headers["connection"] == "close"
            assert await client.ended()
            await client.close()
            assert server.requests[0].left_at is None  # the server hung up, the client did not leave

    asyncio.run(run())


def test_http_1_0_may_keep_the_connection_where_the_length_is_known() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            await client.send(ask(stream=False, version="1.0", headers="Connection: keep-alive\r\n"))
            response = await client.response()
            assert response.headers["connection"] == "keep-alive"
            assert response.json["choices"][0]["message"]["content"] == "Hello"
            assert await kept_open(client)
            await client.close()

    asyncio.run(run())


def test_a_script_may_close_the_connection_by_its_header() -> None:
    steps = one({"status": 200, "headers": {"Connection": "close"}}, {"say": "x"})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            assert (await client.response()).complete
            assert await client.ended()
            await client.close()

    asyncio.run(run())


@pytest.mark.parametrize(("length", "complete"), [(9, False), (5, True), (3, True)])
def test_a_content_length_that_lies_ends_with_the_connection(length: int, complete: bool) -> None:
    steps = one({"status": 200, "headers": {"content-length": length}}, {"send": "hello"}, {"close": "clean"})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            response = await client.response()
            assert response.complete is complete
            assert b"hello".startswith(response.body)
            if length == 5:
                assert await kept_open(client)
            else:
                assert await client.reader.read() == b"hello"[length:]
            await client.close()

    asyncio.run(run())


def test_a_reset_comes_after_everything_that_was_sent() -> None:
    big = 20_000_000  # more than the sockets hold: some of it is still here when the script comes to its end
    steps = one({"send_repeat": "@", "times": big}, {"send": "end"}, {"close": "reset"})

    async def run() -> None:
        async with ScriptedModel(steps, keep_pieces=False) as server:
            got, raised = await asyncio.to_thread(talk, server.port)
            assert raised is ConnectionResetError
            assert got.count(b"@") == big
            assert got.endswith(b"\r\n3\r\nend\r\n")
            received = await server.wait_ended(0)
            assert received.ended == "reset"
            assert received.left_at is None

    asyncio.run(run())


def test_a_reset_is_a_reset_and_not_an_end() -> None:
    async def run() -> None:
        for how, error in (("reset", ConnectionResetError), ("fin", None), ("half-chunk", None)):
            async with ScriptedModel(one({"send": "x"}, {"wait_ms": 30}, {"close": how})) as server:
                got, raised = await asyncio.to_thread(talk, server.port)
                assert raised is error
                head, _, body = got.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                assert body == (b"1\r\nx\r\n400\r\n" if how == "half-chunk" else b"1\r\nx\r\n")
                assert (await server.wait_ended(0)).ended == how

    asyncio.run(run())


@pytest.mark.parametrize("how", ["reset", "fin"])
def test_a_script_may_hang_up_without_a_word(how: str) -> None:
    async def run() -> None:
        async with ScriptedModel(one({"close": how})) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            try:
                assert await client.reader.read() == b""
                assert how == "fin"
            except ConnectionResetError:
                assert how == "reset"
            await client.close()
            assert server.requests[0].status is None

    asyncio.run(run())


# The client leaves


SILENT = [[{"send": "data: x\n\n"}, {"hold_open_ms": 20_000}, {"send": "late"}, {"expect_cancel_within_ms": 500}]]


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_client_that_leaves_a_silent_script_is_seen_at_once(how: str) -> None:
    async def run() -> None:
        async with ScriptedModel(SILENT) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.head()
            await client.chunk()
            left = time.monotonic()
            if how == "closed":
                await client.close()
            else:
                client.reset()
            received = await server.wait_left(0)
            assert received.left_at is not None
            assert received.left_at - left < 0.1
            assert received.left_how == how
            await server.wait_ended(0)
            assert received.cancelled
            assert received.ended == "left"
            assert received.done_at is None
            assert received.cancel_seconds == 0.5
            assert received.sent == b"data: x\n\n"

    asyncio.run(run())


def test_a_client_that_leaves_before_the_head_is_seen_too() -> None:
    async def run() -> None:
        async with ScriptedModel(one({"wait_ms": 20_000}, {"say": "late"})) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await server.wait_request(0)
            await client.close()
            received = await server.wait_left(0, timeout=1)
            assert received.cancelled
            assert received.status is None

    asyncio.run(run())


def test_a_client_that_asks_and_leaves_in_one_breath_is_counted_and_ended() -> None:
    async def run() -> None:
        async with ScriptedModel(SILENT) as server:
            client = await Client.to(server.port)
            client.writer.write(ask())
            client.writer.write_eof()
            received = await server.wait_ended(0)
            assert received.cancelled
            await client.close()

    asyncio.run(run())


def test_a_client_that_leaves_while_the_script_sends_without_a_pause_ends_it() -> None:
    steps = one({"repeat": 1_000_000, "steps": [{"send": "x"}]})

    async def run() -> None:
        async with ScriptedModel(steps, keep_pieces=False) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.head()
            client.reset()
            received = await server.wait_ended(0)
            assert received.cancelled
            assert received.sent_pieces < 1_000_000

    asyncio.run(run())


def test_leaving_after_the_script_has_run_out_cancels_nothing() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.response()
            await client.close()
            received = await server.wait_left(0)
            assert received.left_at is not None
            assert not received.cancelled
            assert received.ended == "clean"

    asyncio.run(run())


def test_a_slow_reader_holds_up_its_own_script_alone_and_bounds_what_is_held() -> None:
    steps = {
        "scripts": {"much": [{"repeat": 2000, "steps": [{"send_repeat": "x", "times": 50_000}]}], "hello": "Hello"}
    }

    async def run() -> None:
        async with ScriptedModel(steps, keep_pieces=False) as server:
            slow = await Client.to(server.port)
            await slow.send(ask("much"))
            await server.wait_pieces(0, 1)
            await asyncio.sleep(0.3)
            before = server.requests[0].sent_bytes
            assert before < 30_000_000  # what the system's buffers take
            assert text_of((await fetch(server.port, ask("hello"))).body) == "Hello"
            assert server.requests[0].sent_bytes == before
            slow.reset()
            assert (await server.wait_ended(0)).cancelled

    asyncio.run(run())


# Many


def test_two_hundred_clients_at_once_each_get_their_own_answer() -> None:
    steps = [[{"say": f"answer {n}", "cut": "characters", "pace": 1}] for n in range(200)]

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            responses = await asyncio.gather(*(fetch(server.port, ask(f"q{n}")) for n in range(200)))
            assert sorted(text_of(response.body) for response in responses) == sorted(f"answer {n}" for n in range(200))
            assert len(server.requests) == 200

    asyncio.run(run())


def test_ten_thousand_deltas_are_sent_as_fast_as_the_socket_takes_them() -> None:
    steps = one({"repeat": 5000, "steps": [{"say": ["a", "b"]}]})

    async def run() -> None:
        async with ScriptedModel(steps) as server:
            begun = time.monotonic()
            response = await fetch(server.port, ask())
            taken = time.monotonic() - begun
            assert text_of(response.body) == "ab" * 5000
            assert len(server.requests[0].pieces) == 10_003
            assert taken < 5  # 0.2 s on an idle machine

    asyncio.run(run())


def test_what_is_kept_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "KEPT_BYTES", 10)

    async def run() -> None:
        async with ScriptedModel(one({"send": "12345678"}, {"send": "12"}, {"send": "3"})) as server:
            assert (await fetch(server.port, ask())).body == b"12345678123"
            received = server.requests[0]
            assert [(piece.size, piece.data) for piece in received.pieces] == [(8, b"12345678"), (2, b"12"), (1, None)]
            assert received.sent_bytes == 11

    asyncio.run(run())


# Gates


def test_a_gate_holds_a_script_until_it_is_released_and_stays_open() -> None:
    async def run() -> None:
        async with ScriptedModel([{"send": "a"}, {"gate": "g"}, {"send": "b"}]) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.head()
            assert await client.chunk() == b"a"
            await server.wait_gate("g")
            assert server.requests[0].sent == b"a"
            server.release("g")
            assert await client.chunk() == b"b"
            await client.close()
            assert (await fetch(server.port, ask())).body == b"ab"
            server.hold("g")
            held = await Client.to(server.port)
            await held.send(ask())
            await server.wait_gate("g")
            await held.close()
            await server.wait_ended(2)
            with pytest.raises(TimeoutError, match="no script came to the gate g within"):
                await server.wait_gate("g", timeout=0.05)

    asyncio.run(run())


def test_a_gate_that_nobody_opens_lets_the_script_on_after_its_timeout() -> None:
    async def run() -> None:
        async with ScriptedModel(one({"gate": "g", "timeout": "50ms"}, {"send": "x"})) as server:
            assert (await fetch(server.port, ask())).body == b"x"

    asyncio.run(run())


def test_a_gate_is_opened_and_closed_over_http_too() -> None:
    async def run() -> None:
        async with ScriptedModel([{"send": "a"}, {"gate": "g"}, {"send": "b"}]) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await server.wait_gate("g")
            released = await fetch(server.port, get("/scripted/gates/g/release", method="POST"))
            assert released.json == {"gate": "g", "open": True, "waiting": 1}
            assert (await client.response()).body == b"ab"
            await client.close()
            held = await fetch(server.port, get("/scripted/gates/g/hold", method="POST"))
            assert held.json == {"gate": "g", "open": False, "waiting": 0}
            for path in ("/scripted/gates/h/release", "/scripted/gates/g/push", "/scripted/gates/g"):
                assert (await fetch(server.port, get(path, method="POST"))).status == 404

    asyncio.run(run())


def test_a_gate_that_no_script_has_is_a_mistake_of_the_caller() -> None:
    async def run() -> None:
        async with ScriptedModel([{"gate": "g"}]) as server:
            for act in (server.release, server.hold):
                with pytest.raises(ValueError, match=r"no script has a gate 'h' \(there are: g\)"):
                    act("h")
            with pytest.raises(ValueError, match="no script has a gate"):
                await server.wait_gate("h")

    asyncio.run(run())


# Choosing


TOOLS = {
    "default": "hello",
    "scripts": {
        "hello": "Hello",
        "tool": {"turns": [[{"call": {"name": "f"}}], [{"say": "first"}, {"call": {"name": "g"}}], [{"say": "last"}]]},
    },
}


def test_the_turn_of_a_script_follows_the_tool_results_and_the_last_one_repeats() -> None:
    async def run() -> None:
        async with ScriptedModel(TOOLS) as server:
            messages: list[dict[str, Any]] = [{"role": "user", "content": "use the tool"}]
            said = []
            for _ in range(4):
                response = await fetch(server.port, ask(stream=False, messages=messages))
                message = response.json["choices"][0]["message"]
                said.append(message["content"])
                messages += [message, {"role": "tool", "tool_call_id": "x", "content": "r"}]
            assert said == [None, "first", "last", "last"]
            assert [received.turn for received in server.requests] == [0, 1, 2, 2]
            assert {received.script for received in server.requests} == {"tool"}

    asyncio.run(run())


def test_requests_beyond_the_list_are_answered_500_and_counted() -> None:
    async def run() -> None:
        async with ScriptedModel([[{"say": "one"}]]) as server:
            assert (await fetch(server.port, get("/v1/models"))).status == 200  # takes nothing from the list
            assert (await fetch(server.port, ask(messages=[]))).status == 400  # nor does what is no question
            assert text_of((await fetch(server.port, ask())).body) == "one"
            beyond = await fetch(server.port, ask())
            assert beyond.status == 500
            assert beyond.json["error"]["message"] == "the script has answers for 1 requests; this is number 2"
            assert len(server.requests) == 3
            assert server.requests[2].script is None
            assert [received.path for received in server.others] == ["/v1/models"]

    asyncio.run(run())


def test_a_question_that_nothing_answers_is_an_error_that_says_why() -> None:
    async def run() -> None:
        async with ScriptedModel({"scripts": {"a": "A"}}) as server:
            response = await fetch(server.port, ask("b"))
            assert response.status == 500
            assert "names a script" in response.json["error"]["message"]
            assert response.json["error"]["type"] == "server_error"

    asyncio.run(run())


# Routes and refusals


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions", "/v1/chat/completions/?api-version=1"])
def test_completions_are_answered_with_and_without_v1(path: str) -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            assert text_of((await fetch(server.port, ask(path=path))).body) == "Hello"
            assert len(server.requests) == 1

    asyncio.run(run())


def test_models_are_listed_and_told_one_by_one() -> None:
    async def run() -> None:
        async with ScriptedModel({"models": ["a", "org/b"], "scripts": {"x": "y"}}) as server:
            for path in ("/v1/models", "/models", "/models/"):
                listed = (await fetch(server.port, get(path))).json
                assert listed["object"] == "list"
                assert [model["id"] for model in listed["data"]] == ["a", "org/b"]
            assert (await fetch(server.port, get("/v1/models/org/b"))).json["id"] == "org/b"
            assert (await fetch(server.port, get("/v1/models/c"))).json["error"]["code"] == "model_not_found"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (get("/"), 404, "unknown_url"),
        (get("/v1"), 404, "unknown_url"),
        (ask(path="/v1/realtime"), 404, "unknown_url"),
        (get("/v1/chat/completions"), 405, None),
        (ask(path="/v1/models"), 405, None),
        (ask(messages=None), 400, None),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 3\r\n\r\n{x}", 400, None),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400, None),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000, 400, None),
        (b"nonsense\r\n\r\n", 400, None),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413, None),
    ],
)
def test_what_is_not_answered_is_refused_in_openais_shape(request_: bytes, status: int, code: str | None) -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            response = await fetch(server.port, request_)
            assert response.status == status
            assert response.headers["content-type"] == "application/json"
            error = response.json["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert error["type"] == "invalid_request_error"
            assert error["code"] == code
            if status == 405:
                assert response.headers["allow"] in ("GET", "POST")

    asyncio.run(run())


def test_a_head_request_gets_no_body_and_the_connection_stays_in_step() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            await client.send(get("/v1/models", method="HEAD"))
            assert (await client.response(bodiless=True)).status == 405
            assert await kept_open(client)
            await client.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        ("Authorization: Basic secret\r\n", 401),
        ("Authorization: Bearer sécret\r\n", 401),
        ("Authorization: Bearer secret\r\n", 200),
        ("authorization: bearer secret\r\n", 200),
        ("x-api-key: secret\r\n", 200),
        ("api-key: secret\r\n", 200),
    ],
)
def test_where_a_key_is_wanted_no_other_opens(headers: str, status: int) -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}], api_key="secret") as server:
            response = await fetch(server.port, ask(headers=headers))
            assert response.status == status
            assert (await fetch(server.port, get("/v1/models", headers))).status == status
            if status == 401:
                assert response.json["error"]["code"] == "invalid_api_key"
                assert server.requests[0].script is None

    asyncio.run(run())


def test_a_client_that_waits_for_100_continue_gets_it_before_its_body() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            head, _, body = ask(headers="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
            await client.send(head + b"\r\n\r\n")
            assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            await client.send(body)
            assert text_of((await client.response()).body) == "Hello"
            await client.close()

    asyncio.run(run())


def test_requests_sent_without_waiting_are_answered_in_order_and_their_number_is_bounded() -> None:
    async def run() -> None:
        async with ScriptedModel([[{"say": "one", "pace": 5}], [{"say": "two"}], [{"gate": "g"}]]) as server:
            client = await Client.to(server.port)
            await client.send(ask() + ask())
            assert [text_of((await client.response()).body) for _ in range(2)] == ["one", "two"]
            await client.send(ask() + ask("x" * bounds.HEAD_BYTES))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await client.head()
            received = await server.wait_ended(2)
            assert received.left_at is None
            await client.close()

    asyncio.run(run())


def test_a_request_that_trickles_in_for_ever_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "REQUEST_SECONDS", 0.2)

    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            begun = time.monotonic()
            with pytest.raises(ConnectionError):
                for _ in range(200):
                    await client.send(b"x")
                    await asyncio.sleep(0.02)
            assert time.monotonic() - begun < 2
            await client.close()

    asyncio.run(run())


def test_a_connection_without_requests_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "IDLE_SECONDS", 0.1)

    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            await client.response()
            assert await asyncio.wait_for(client.ended(), 2)
            await client.close()
            assert server.requests[0].left_at is None

    asyncio.run(run())


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CONNECTIONS", 2)

    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            kept = [await Client.to(server.port) for _ in range(2)]
            for client in kept:
                assert await kept_open(client)
            response = await fetch(server.port, b"")
            assert response.status == 503
            assert "more than 2 connections" in response.json["error"]["message"]
            for client in kept:
                await client.close()

    asyncio.run(run())


def test_closing_the_server_cuts_every_script_and_waits_for_nobody() -> None:
    async def run() -> None:
        server = ScriptedModel(SILENT * 3)
        await server.start()
        clients = [await Client.to(server.port) for _ in range(3)]
        for client in clients:
            await client.send(ask())
            await client.head()
        idle = await Client.to(server.port)
        begun = time.monotonic()
        await server.close()
        assert time.monotonic() - begun < 1
        assert [received.ended for received in server.requests] == ["server-closed"] * 3
        assert not any(received.cancelled for received in server.requests)
        for client in [*clients, idle]:
            client.reset()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


# Embeddings over HTTP


def test_embeddings_are_served_and_bad_ones_refused() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "Hello"}]) as server:
            body = json.dumps({"input": ["a", "b"], "model": "m", "dimensions": 8}).encode()
            head = b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
            good = await fetch(server.port, head % len(body) + body)
            assert [len(item["embedding"]) for item in good.json["data"]] == [8, 8]
            bad = await fetch(server.port, head % 2 + b"{}")
            assert bad.status == 400
            assert bad.json["error"]["param"] == "input"

    asyncio.run(run())
