"""`ScriptedModel` in an event loop, and in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from motamot.errors import ScriptError
from motamot.scripted import ScriptedModel, load_scripts, scripted_model

from .wire import Client, ask, fetch, text_of


def fetched(url: str, question: str = "hello") -> bytes:
    body = ask(question).partition(b"\r\n\r\n")[2]
    with urlopen(Request(f"{url}/chat/completions", data=body), timeout=5) as response:
        data: bytes = response.read()
    return data


def test_the_example_of_the_documentation_runs() -> None:
    async def run() -> None:
        async with ScriptedModel([[{"say": "Hello, world."}]]) as server:
            assert text_of(await asyncio.to_thread(fetched, server.url)) == "Hello, world."
            assert server.requests[0].body["stream"] is True
            assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"

    asyncio.run(run())


def test_in_a_thread_it_serves_programs_without_an_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "scripts.yaml"
    path.write_text("scripts:\n  held:\n  - say: a\n  - gate: g\n  - say: b\n", "utf-8")
    with scripted_model(path, keep_pieces=False) as server:
        found: list[bytes] = []
        asker = threading.Thread(target=lambda: found.append(fetched(server.url, "held")))
        asker.start()
        received = server.wait_request(0)
        server.wait_gate("g")
        server.wait_pieces(0, 2)
        assert received.sent_pieces == 2
        server.release("g")
        assert server.wait_ended(0) is received
        asker.join()
        assert text_of(found[0]) == "ab"
        assert received.script == "held"
        server.hold("g")
        with socket.create_connection(("127.0.0.1", server.port)) as leaver:
            leaver.sendall(ask("held"))
            server.wait_gate("g")
        assert server.wait_left(1).cancelled
        assert server.url == f"http://127.0.0.1:{server.port}/v1"
        assert server.requests[0] is received
        assert server.others == []
    assert not [thread for thread in threading.enumerate() if thread.name == "scripted-model"]


def test_mistakes_are_raised_in_the_callers_thread() -> None:
    with pytest.raises(ScriptError):
        scripted_model([{"sya": "x"}])
    server = scripted_model([{"say": "x"}])
    with pytest.raises(RuntimeError, match="not running"):
        server.wait_request(0)
    with server:
        with pytest.raises(ValueError, match="no script has a gate 'g'"):
            server.release("g")
        with pytest.raises(TimeoutError, match=r"request 0 did not come within 0.02 s"):
            server.wait_request(0, timeout=0.02)
    with pytest.raises(RuntimeError, match="not running"):
        server.release("g")


def test_a_port_that_is_taken_is_an_os_error_in_both_forms() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"), scripted_model([{"say": "x"}], port=port):
            pass

        async def run() -> None:
            with pytest.raises(OSError, match="in use"):
                async with ScriptedModel([{"say": "x"}], port=port):
                    pass

        asyncio.run(run())
    assert not [thread for thread in threading.enumerate() if thread.name == "scripted-model"]


def test_a_name_with_two_addresses_gets_one_port() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "x"}], host="localhost") as server:
            assert server.url == f"http://localhost:{server.port}/v1"
            assert (await fetch(server.port, ask())).status == 200

    asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "http://127.0.0.1:"), ("::1", "http://[::1]:"), ("::", "http://[::1]:")]
)
def test_the_url_is_one_that_clients_can_reach(host: str, url: str) -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "x"}], host=host) as server:
            assert server.url == f"{url}{server.port}/v1"
            assert text_of(await asyncio.to_thread(fetched, server.url)) == "x"

    if ":" in host and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    asyncio.run(run())


def test_nothing_is_kept_where_nothing_shall_be() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": "x"}], keep_requests=False) as server:
            await fetch(server.port, ask())
            assert server.requests == []

    asyncio.run(run())


def test_waiting_ends_with_what_it_waits_for() -> None:
    async def run() -> None:
        async with ScriptedModel([{"say": ["a", "b", "c"], "pace": 20}]) as server:
            client = await Client.to(server.port)
            await client.send(ask())
            received = await server.wait_pieces(0, 3)  # the role, "a" and "b"
            assert received.sent_pieces == 3
            with pytest.raises(TimeoutError, match="the client of request 0 is still there within"):
                await server.wait_left(0, timeout=0.01)
            await client.close()
            assert (await server.wait_left(0)).cancelled

    asyncio.run(run())


def test_one_set_of_scripts_serves_several_models() -> None:
    scripts = load_scripts([[{"say": "one"}], [{"say": "two"}]])

    async def run() -> None:
        async with ScriptedModel(scripts) as first, ScriptedModel(scripts) as second:
            assert first.port != second.port
            for server in (first, second):
                assert [text_of((await fetch(server.port, ask())).body) for _ in range(2)] == ["one", "two"]

    asyncio.run(run())
