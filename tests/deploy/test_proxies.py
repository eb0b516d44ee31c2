"""What must hold through nginx and through Caddy, with the files of deploy/."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.deploy.support import FRONTS, NAME, House, Reading, caddy, house, program
from tests.need import need
from tests.server.support import OPERATOR_KEY, V1_KEY

fronts = pytest.mark.parametrize("front", FRONTS.values(), ids=FRONTS.keys())
PIECES = ["Alpha", " Bravo", " Charlie", " Delta", " Echo."]
GATED = [step for number, piece in enumerate(PIECES) for step in ({"say": [piece]}, {"gate": f"after-{number}"})]
ENDLESS = [[{"repeat": 1000, "steps": [{"say": ["word "]}, {"wait": "20ms"}]}]] * 10


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 50))


def several_addresses() -> None:
    need(sys.platform == "linux", "a network 127/8, as Linux has")


def leave(response: aiohttp.ClientResponse) -> None:
    """Close the connection as a browser does: TCP is closed at once, whatever TLS has still to say."""
    assert response.connection is not None
    assert response.connection.transport is not None
    response.connection.transport.abort()
    response.close()


def curl(h: House) -> list[str]:
    """curl, which takes chat.example for this machine."""
    assert h.front.root is not None
    resolved = f"{NAME}:{h.front.port}:127.0.0.1"
    return [program("curl"), "--silent", "--show-error", "--cacert", str(h.front.root), "--resolve", resolved]


@fronts
def test_each_piece_passes_while_the_next_is_not_there_yet(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, [GATED]) as h:
            reading = await h.ask(h.client())
            for number in range(len(PIECES)):
                await reading.until("".join(PIECES[: number + 1]))
                h.model.release(f"after-{number}")
            assert await reading.to_end() == "".join(PIECES)

    run(scenario())


@fronts
def test_the_streams_of_others_pass_as_they_come_too(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, {"default": "gated", "scripts": {"gated": GATED}}) as h:
            client = h.client()
            key = {"Authorization": f"Bearer {V1_KEY}"}
            body = {"model": "default", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
            stream = {"Accept": "text/event-stream"}
            asked: list[tuple[str, str, dict[str, Any]]] = [
                ("GET", "/flux?message=hello", {"headers": {**stream, "Referer": f"{h.front.url}/"}}),
                ("POST", "/api/chatbot/chat/stream", {"json": {"message": "hello"}}),
                ("POST", "/v1/chat/completions", {"json": body, "headers": key}),
            ]
            for method, path, options in asked:
                for number in range(len(PIECES)):
                    h.model.hold(f"after-{number}")
                async with client.request(method, f"{h.front.url}{path}", **options) as response:
                    assert response.status == 200, await response.text()
                    got = b""
                    for number, piece in enumerate(PIECES):
                        async with asyncio.timeout(5):
                            # ga-text keeps the last character back until it knows what follows.
                            while piece.strip()[:-1].encode() not in got:
                                chunk = await response.content.readany()
                                assert chunk, got
                                got += chunk
                        h.model.release(f"after-{number}")
                    async with asyncio.timeout(10):
                        await response.content.read()

    run(scenario())


@fronts
def test_the_first_text_is_not_delayed(tmp_path: Path, front: Any) -> None:
    """Difference of medians of interleaved questions, over a connection of its own each, with TLS through the proxy."""

    async def first_text(h: House, client: aiohttp.ClientSession, url: str) -> float:
        began = time.perf_counter()
        reading = await h.ask(client, url=url)
        await reading.until("First.")
        took = time.perf_counter() - began
        h.model.release("rest")
        await reading.to_end()
        h.model.hold("rest")
        return took

    async def scenario() -> None:
        scripts = {"default": "it", "scripts": {"it": [{"say": ["First."]}, {"gate": "rest"}, {"say": [" Rest."]}]}}
        async with house(tmp_path, front, scripts, server="requests_per_hour = 1000") as h:
            client = h.client()
            took: dict[str, list[float]] = {h.served.url: [], h.front.url: []}
            for _ in range(11):
                for url, each in took.items():
                    each.append(await first_text(h, client, url))
            direct, through = (statistics.median(each) for each in took.values())
            print(f"first text: {direct * 1000:.1f} ms, through the proxy {through * 1000:.1f} ms")
            assert through - direct < 0.1

    run(scenario())


@fronts
def test_a_client_that_leaves_is_gone_for_the_model_within_a_second(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, ENDLESS) as h:
            client = h.client()
            stream = {"Accept": "text/event-stream"}
            reading = await h.ask(client)
            await reading.until("word word ")
            closed = time.monotonic()
            leave(reading.response)
            left = await h.model.wait_left(0)
            assert left.left_at is not None
            assert left.left_at - closed < 1
            page = {"Referer": f"{h.front.url}/"}
            async with client.get(f"{h.front.url}/flux?message=hello", headers={**stream, **page}) as response:
                await response.content.readany()
                await h.model.wait_pieces(1, 3)
                closed = time.monotonic()
                leave(response)
            left = await h.model.wait_left(1)
            assert left.left_at is not None
            assert left.left_at - closed < 1
            # An answer that is not streamed, too: whose client has gone, nobody reads it. The client is one whose end
            # is the connection's: asyncio's says goodbye in TLS and waits, which nginx does not look at.
            data = ("--header", "Content-Type: application/json", "--data", '{"message": "hello"}')
            process = await asyncio.create_subprocess_exec(
                *curl(h), *data, f"{h.front.url}/api/chat", stdout=subprocess.DEVNULL
            )
            await h.model.wait_pieces(2, 3)
            closed = time.monotonic()
            process.kill()
            await process.wait()
            left = await h.model.wait_left(2)
            assert left.left_at is not None
            assert left.left_at - closed < 1

    run(scenario())


@fronts
def test_a_stop_reaches_the_model_within_a_second(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, ENDLESS) as h:
            client = h.client()
            async with client.get(f"{h.front.url}/"):
                pass  # the cookie
            reading = await h.ask(client, key="question-1", resumable=True)
            await reading.until("word word ")
            asked = time.monotonic()
            async with client.post(f"{h.front.url}/api/exchanges/question-1/stop", json={"seen": 1}) as response:
                assert response.status == 200, await response.text()
                assert (await response.json())["outcome"] == "stopped"
            left = await h.model.wait_left(0)
            assert left.left_at is not None
            assert left.left_at - asked < 1
            await reading.to_end()

    run(scenario())


@fronts
def test_an_answer_goes_on_behind_what_was_had_when_the_connection_is_lost(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, [GATED]) as h:
            client = h.client()
            async with client.get(f"{h.front.url}/"):
                pass
            first = await h.ask(client, key="question-1", resumable=True)
            await first.until(PIECES[0])
            last = first.last_event_id
            first.response.close()
            for number in range(len(PIECES)):
                h.model.release(f"after-{number}")
            url = f"{h.front.url}/api/exchanges/question-1/events"
            async with client.get(url, headers={"Last-Event-ID": last}) as response:
                assert await Reading(response).to_end() == "".join(PIECES[1:])
            assert len(h.model.requests) == 1

    run(scenario())


@fronts
def test_silence_is_filled_with_comments_that_pass(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, [GATED], server="[server.limits]\nheartbeat_seconds = 0.3") as h:
            reading = await h.ask(h.client())
            await reading.until(PIECES[0])
            before = len(reading.raw)
            await reading.until_raw(b"\n:")
            assert len(reading.raw) > before

    run(scenario())


async def statuses(client: aiohttp.ClientSession, url: str, count: int, **forged: str) -> list[int]:
    got = []
    for number in range(count):
        headers = {name.replace("_", "-"): value.format(number=number) for name, value in forged.items()}
        async with client.post(f"{url}/api/chat", json={"message": "hello"}, headers=headers) as response:
            await response.read()
            got.append(response.status)
    return got


@fronts
def test_budgets_are_of_the_address_that_the_listed_proxy_saw(tmp_path: Path, front: Any) -> None:
    several_addresses()

    async def scenario() -> None:
        budget = "requests_per_hour = 2\naddress_factor = 1"
        async with house(tmp_path, front, {"default": "hello", "scripts": {"hello": "Hello."}}, server=budget) as h:
            one, other, third, direct = (h.client(f"127.0.0.{n}", cookies=False) for n in (2, 3, 4, 5))
            assert await statuses(one, h.front.url, 3) == [200, 200, 429]
            assert await statuses(other, h.front.url, 1) == [200]  # another address has a budget of its own
            # Whatever a client says of itself: it is the address that the proxy saw.
            forged = {"X_Forwarded_For": "198.51.100.{number}", "Forwarded": "for=198.51.100.{number}"}
            assert await statuses(third, h.front.url, 3, **forged) == [200, 200, 429]
            # And who is no listed proxy says nothing that is believed.
            assert await statuses(direct, h.served.url, 3, X_Forwarded_For="198.51.100.{number}") == [200, 200, 429]

    run(scenario())


@fronts
def test_behind_a_proxy_that_is_not_listed_all_share_one_budget_and_no_origin_is_ours(
    tmp_path: Path, front: Any
) -> None:
    """What docs/deploy.md says happens where `proxies` is forgotten: it fails closed, and says why."""
    several_addresses()

    async def scenario() -> None:
        budget = "requests_per_hour = 2\naddress_factor = 1"
        scripts = {"default": "hello", "scripts": {"hello": "Hello."}}
        async with house(tmp_path, front, scripts, server=budget, proxies="[]") as h:
            one, other = h.client("127.0.0.2", cookies=False), h.client("127.0.0.3", cookies=False)
            body = {"message": "hello"}
            async with one.post(f"{h.front.url}/api/chat", json=body, headers={"Origin": h.front.url}) as response:
                assert response.status == 403
                assert "proxies" in await response.text()
            assert await statuses(one, h.front.url, 2) == [200, 200]
            assert await statuses(other, h.front.url, 1) == [429]

    run(scenario())


@fronts
def test_the_sites_own_page_may_ask_and_its_cookie_is_for_https_alone(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, {"default": "hello", "scripts": {"hello": "Hello."}}) as h:
            client = h.client()
            async with client.get(f"{h.front.url}/") as response:
                assert response.status == 200
                cookie = response.headers["Set-Cookie"]
                assert "; Secure" in cookie
                assert "max-age" in response.headers["Strict-Transport-Security"]
            reading = await h.ask(client, headers={"Origin": h.front.url, "Sec-Fetch-Site": "same-origin"})
            assert await reading.to_end() == "Hello."
            strange = {"Origin": "https://evil.example"}
            async with client.post(f"{h.front.url}/api/chat", json={"message": "x"}, headers=strange) as response:
                assert response.status == 403
            async with client.get(f"{h.front.url}/", headers={"Host": "evil.example"}) as response:
                # nginx and Caddy know the name or not; motamot does not answer to it.
                assert response.status == 421 or not await response.text()

    run(scenario())


@fronts
def test_operators_pages_stay_behind_their_key(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, {"default": "hello", "scripts": {"hello": "Hello."}}) as h:
            client = h.client()
            async with client.get(f"{h.front.url}/metrics") as response:
                assert response.status == 401  # though the peer of motamot is loopback
            async with client.get(
                f"{h.front.url}/metrics", headers={"Authorization": f"Bearer {OPERATOR_KEY}"}
            ) as response:
                assert response.status == 200
            for path in ("/healthz", "/readyz"):
                async with client.get(f"{h.front.url}{path}") as response:
                    assert response.status == 200

    run(scenario())


@fronts
def test_a_body_that_is_too_large_is_refused_as_such(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, {"default": "hello", "scripts": {"hello": "Hello."}}) as h:
            client = h.client()
            async with client.post(f"{h.front.url}/api/chat", json={"message": "x" * 1_000_100}) as response:
                assert response.status == 413
            async with client.post(f"{h.front.url}/api/chat", json={"message": "x" * 900_000}) as response:
                assert response.status == 400  # a body that may be so long, with a message that may not
                assert (await response.json())["error"]["field"] == "message"

    run(scenario())


@fronts
def test_no_log_of_the_proxy_holds_a_question_or_a_secret(tmp_path: Path, front: Any) -> None:
    async def scenario() -> None:
        async with house(tmp_path, front, {"default": "hello", "scripts": {"hello": "Hello."}}) as h:
            client = h.client()
            secret = "a-secret-of-a-visitor-0001"
            headers = {
                "Accept": "text/event-stream",
                "Authorization": f"Bearer {secret}",
                "Referer": f"{h.front.url}/flux?message=my-illness",
            }
            url = f"{h.front.url}/flux?message=my-illness"
            async with client.get(url, headers=headers) as response:
                assert response.status == 200, await response.text()
                assert b"Hello" in await response.read()
            h.served.close()
            async with client.get(url, headers=headers) as response:
                assert response.status == 502  # what fails is logged, too
            await asyncio.sleep(0.2)
            logs = h.front.logs()
            assert "flux" in logs
            assert "illness" not in logs
            assert secret not in logs

    run(scenario())


@fronts
def test_curl_shows_the_pieces_as_they_come_over_http_2(tmp_path: Path, front: Any) -> None:
    """The check of docs/deploy.md: `curl -N` through the public address."""

    async def scenario() -> None:
        async with house(tmp_path, front, [GATED]) as h:
            process = await asyncio.create_subprocess_exec(
                *curl(h),
                *("--no-buffer", "--http2", "--max-time", "20"),
                *("--dump-header", str(tmp_path / "head"), "--header", "Accept: text/event-stream"),
                *("--referer", f"{h.front.url}/"),
                f"{h.front.url}/flux?message=hello",
                stdout=subprocess.PIPE,
            )
            try:
                assert process.stdout is not None
                got = b""
                for number, piece in enumerate(PIECES):
                    async with asyncio.timeout(5):
                        while piece.strip().encode() not in got:
                            chunk = await process.stdout.read(4096)
                            assert chunk, got
                            got += chunk
                    h.model.release(f"after-{number}")
                got += await process.stdout.read()
                assert b"event: fin" in got
                assert await process.wait() == 0
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            head = (tmp_path / "head").read_text().lower()
            assert head.startswith("http/2 200")
            assert "content-encoding" not in head

    run(scenario())


def test_caddys_limit_on_heads_does_not_cut_streams(tmp_path: Path) -> None:
    def front(folder: Path, backend: int) -> Any:
        return caddy(folder, backend, read_header="1s")

    async def scenario() -> None:
        async with house(tmp_path, front, [[{"say": ["Long"]}, {"wait": "3s"}, {"say": [" enough."]}]]) as h:
            assert await (await h.ask(h.client())).to_end() == "Long enough."

    run(scenario())


def test_nginx_sends_plain_http_to_https(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with house(tmp_path, FRONTS["nginx"], {"default": "hello", "scripts": {"hello": "Hello."}}) as h:
            conf = (tmp_path / "front" / "nginx" / "main.conf").read_text()
            plain = next(
                line.split()[1].rstrip(";") for line in conf.splitlines() if line.strip().startswith("listen ")
            )
            url = f"http://{NAME}:{plain}/flux?message=x"
            async with h.client().get(url, allow_redirects=False) as response:
                assert response.status == 301
                assert response.headers["Location"] == f"https://{NAME}/flux?message=x"

    run(scenario())
