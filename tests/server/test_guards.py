"""What a request must be before anything is done for it, over real sockets."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from motamot.limits import Limits
from motamot.server.guards import check_host, check_origin, client_address
from motamot.server.options import Options
from motamot.server.refusals import Refused
from tests.server.reading import request, run
from tests.server.support import OPERATOR_KEY, V1_KEY, Served, serving

HELLO = {"default": "hello", "scripts": {"hello": "Hello."}}
QUESTION = {"message": "hello"}
LISTED = "https://shop.example"


def status_of(got: bytes) -> int:
    return int(got.split(b" ", 2)[1])


def error_of(got: bytes) -> dict[str, Any]:
    """The error in the one JSON shape there is."""
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower(), head
    error: dict[str, Any] = json.loads(body)["error"]
    assert set(error) <= {"code", "message", "field", "limit"} and {"code", "message"} <= set(error)
    return error


def asked(**headers: str) -> bytes:
    """A question with these headers; `_` stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request("POST", "/api/chat", QUESTION, headers={**named, "Connection": "close"})


def bare(headers: list[tuple[str, str]], *, path: str = "/", scheme: str = "http", client: str = "1.2.3.4") -> Request:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "method": "GET", "path": path, "headers": raw, "scheme": scheme, "client": (client, 1)}
    return Request(scope)


# Host

LOOPBACK = Options(hosts=frozenset(("localhost", "127.0.0.1", "[::1]", "chat.example")))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "localhost.", "127.0.0.1:65535", "[::1]:80", "[::1]", "Chat.Example"]
)
def test_a_host_of_ours_is_taken_with_any_port_and_in_any_letters(host: str) -> None:
    check_host(bare([("Host", host)]), LOOPBACK)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil.localhost", "127.0.0.2", "10.0.0.1", "[::2]", "0", "0x7f000001"],
)
def test_another_name_is_misdirected(host: str) -> None:
    with pytest.raises(Refused) as caught:
        check_host(bare([("Host", host)]), LOOPBACK)
    assert (caught.value.status, caught.value.code) == (421, "bad_host")


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "localhost@evil.example",
        "localhost,evil.example",
        "localhost/..",
        "a b",
        "localhost:",
        "localhost:1x",
        "localhost:123456",
        "[::1",
        "é",
        "localhost\t",
    ],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(Refused) as caught:
        check_host(bare([("Host", host)]), LOOPBACK)
    assert caught.value.status == 400


def test_one_host_is_named_and_not_two_or_none() -> None:
    for headers in ([], [("Host", "localhost"), ("Host", "localhost")]):
        with pytest.raises(Refused) as caught:
            check_host(bare(headers), LOOPBACK)
        assert caught.value.status == 400


def test_elsewhere_an_address_is_as_good_as_a_listed_name_and_no_other_name_is() -> None:
    options = Options(hosts=frozenset(("chat.example",)), any_address=True)
    for host in ("chat.example", "192.0.2.7:8000", "[2001:db8::1]:8000"):
        check_host(bare([("Host", host)]), options)
    for host in ("evil.example", "192.0.2.7.evil.example", "[evil]", "1234"):
        with pytest.raises(Refused):
            check_host(bare([("Host", host)]), options)


def test_a_mounted_chat_leaves_the_host_to_the_app_around_it() -> None:
    check_host(bare([("Host", "anything.example")]), Options())
    check_host(bare([]), Options())


def test_every_path_checks_the_host(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            for path in (
                "/",
                "/api/chat",
                "/flux",
                "/v1/models",
                "/healthz",
                "/readyz",
                "/metrics",
                "/openapi.json",
                "/no",
            ):
                for method in ("GET", "POST", "OPTIONS"):
                    got = await s.raw(request(method, path, headers={"Host": "evil.example", "Connection": "close"}))
                    assert (status_of(got), error_of(got)["code"]) == (421, "bad_host"), (method, path)
            assert not s.model.requests

    run(scenario())


# Origin

OURS = [("Host", "chat.example:8000")]


@pytest.mark.parametrize(
    ("scheme", "host", "origin"),
    [
        ("http", "chat.example", "http://chat.example"),
        ("http", "chat.example:80", "http://chat.example"),
        ("https", "chat.example:443", "https://chat.example"),
        ("http", "Chat.Example:8000", "http://chat.example:8000"),
        ("http", "[::1]:8000", "http://[::1]:8000"),
        ("http", "elsewhere.example", LISTED),
    ],
)
def test_the_same_origin_and_a_listed_one_may_ask(scheme: str, host: str, origin: str) -> None:
    check_origin(bare([("Host", host), ("Origin", origin)], scheme=scheme), {LISTED})


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://chat.example:8000.evil.example",
        "https://chat.example:8000",
        "http://chat.example",
        "http://chat.example:8001",
        "http://chat.example:8000/",
        "http://evil@chat.example:8000",
        "https://shop.example:443",
        "https://shop.example.evil.example",
        "http://shop.example",
        "HTTP://CHAT.EXAMPLE:8000",
        "https://sub.shop.example",
        "https://shop.example, http://chat.example:8000",
    ],
)
def test_any_other_origin_may_not(origin: str) -> None:
    with pytest.raises(Refused) as caught:
        check_origin(bare([*OURS, ("Origin", origin)]), {LISTED})
    assert (caught.value.status, caught.value.code) == (403, "forbidden_origin")


def test_the_origin_null_is_nobodys_even_where_it_is_listed() -> None:
    with pytest.raises(Refused):
        check_origin(bare([*OURS, ("Origin", "null")]), {"null"})


def test_two_origins_are_one_too_many() -> None:
    with pytest.raises(Refused):
        check_origin(bare([*OURS, ("Origin", LISTED), ("Origin", LISTED)]), {LISTED})


@pytest.mark.parametrize(
    ("site", "may"), [("none", True), ("same-origin", True), ("same-site", False), ("cross-site", False)]
)
def test_without_an_origin_the_browser_says_whose_page_it_is(site: str, may: bool) -> None:
    told = bare([*OURS, ("Sec-Fetch-Site", site)])
    if may:
        check_origin(told, set())
    else:
        with pytest.raises(Refused):
            check_origin(told, set())


def test_a_foreign_page_gets_no_answer_and_starts_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, origins=[LISTED]) as s:
            for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
                for method, path in (
                    ("POST", "/api/chat"),
                    ("POST", "/api/chat/stream"),
                    ("POST", "/api/chatbot/chat"),
                    ("POST", "/api/chatbot/chat/stream"),
                    ("GET", "/flux?message=hello"),
                    ("POST", "/api/exchanges/x/stop"),
                    ("GET", "/api/exchanges/x/events"),
                    ("GET", "/api/conversations/x"),
                    ("DELETE", "/api/conversations/x"),
                ):
                    body = QUESTION if method == "POST" else None
                    sent = request(
                        method, path, body, headers={**headers, "Accept": "text/event-stream", "Connection": "close"}
                    )
                    got = await s.raw(sent)
                    assert status_of(got) == 403, (headers, method, path, got)
                    assert b"access-control-allow-origin" not in got.lower()
            assert not s.model.requests

    run(scenario())


NAMED = Options(hosts=frozenset(("localhost", "127.0.0.1", "chat.example")))
SECRET = "a-secret-of-a-visitor-0001"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Referer": "http://evil.example/"}, 403),
        ({"Referer": "http://chat.example.evil.example/"}, 403),
        ({"Referer": "http://chat.example@evil.example/"}, 403),
        ({"Referer": "http://chat.example:8001/"}, 403),
        ({"Referer": "http://evil.example/http://chat.example/"}, 403),
        ({"Cookie": "motamot_visitor=short"}, 403),
        ({"Authorization": "Basic eDp5"}, 403),  # browsers send a login they have along
        ({"Host": "localhost.chat.example"}, 421),
        ({"Referer": "http://chat.example/a?b"}, 200),
        ({"Referer": "http://chat.example:80/"}, 200),
        ({"Cookie": f"motamot_visitor={SECRET}"}, 200),
        ({"Authorization": f"Bearer {SECRET}"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://chat.example"}, 200),
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "127.0.0.1:8000"}, 200),
    ],
    ids=str,
)
def test_an_address_that_spends_is_not_asked_by_a_foreign_page_where_browsers_do_not_say_whose(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    """`fetch(…, {mode: "no-cors", headers: {Accept: "text/event-stream"}})` over plain http, off loopback."""

    async def scenario() -> None:
        async with serving(tmp_path, HELLO, options={"hosts": NAMED.hosts}) as s:
            sent = {"Host": "chat.example", "Accept": "text/event-stream", "Connection": "close", **headers}
            got = await s.raw(request("GET", "/flux?message=hello", headers=sent))
            assert status_of(got) == status
            assert len(s.model.requests) == (status == 200)
            if status == 403:
                assert "Referer: http://chat.example/" in error_of(got)["message"]

    run(scenario())


def test_a_hosts_login_does_not_make_an_address_that_spends_its_own_pages(tmp_path: Path) -> None:
    """The host's cookie may come with any page's request: it is not ours to say SameSite of it."""

    async def user(_request: Request) -> str:
        return "anna"

    async def scenario() -> None:
        async with serving(tmp_path, HELLO, options={"hosts": NAMED.hosts}) as s:
            s.site.default.identify = user
            sent = {"Host": "chat.example", "Accept": "text/event-stream", "Connection": "close"}
            cookie = {"Cookie": f"motamot_visitor={SECRET}"}
            assert status_of(await s.raw(request("GET", "/flux?message=hello", headers={**sent, **cookie}))) == 403
            page = {"Referer": "http://chat.example/"}
            assert status_of(await s.raw(request("GET", "/flux?message=hello", headers={**sent, **page}))) == 200

    run(scenario())


# CORS


async def _headers(s: Served, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
    async with s.client.request(method, s.url + path, headers=headers) as response:
        return response.status, response.headers.copy()


def test_a_listed_site_may_read_what_it_asks_for_and_also_why_it_was_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, origins=[LISTED]) as s:
            headers = {"Origin": LISTED}
            for body, status in ((QUESTION, 200), ({"message": ""}, 400)):
                async with s.client.post(f"{s.url}/api/chat", json=body, headers=headers) as response:
                    assert response.status == status
                    assert response.headers["Access-Control-Allow-Origin"] == LISTED
                    assert "Origin" in response.headers["Vary"]
                    assert "Retry-After" in response.headers["Access-Control-Expose-Headers"]
                    assert "Access-Control-Allow-Credentials" not in response.headers
            for path in ("/api/nothing", "/api/chat"):
                status, got = await _headers(s, "GET", path, headers)
                assert status in (404, 405) and got["Access-Control-Allow-Origin"] == LISTED

    run(scenario())


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/api/chat", "POST"),
        ("/api/chat/stream", "POST"),
        ("/api/exchanges/x/events", "GET"),
        ("/api/exchanges/x/stop", "POST"),
        ("/api/conversations/x", "DELETE"),
        ("/api/chatbot/chat", "POST"),
        ("/api/chatbot/chat/stream", "POST"),
        ("/v1/chat/completions", "POST"),
        ("/flux", "GET"),
    ],
)
def test_a_browser_that_asks_first_is_told_what_a_listed_site_may(tmp_path: Path, path: str, method: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, origins=[LISTED]) as s:
            asks = {
                "Origin": LISTED,
                "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": "authorization,content-type,last-event-id",
            }
            status, got = await _headers(s, "OPTIONS", path, asks)
            assert status == 204
            assert got["Access-Control-Allow-Origin"] == LISTED
            assert method in got["Access-Control-Allow-Methods"].split(", ")
            assert got["Access-Control-Allow-Headers"] == asks["Access-Control-Request-Headers"]
            assert int(got["Access-Control-Max-Age"]) > 0
            assert "Origin" in got["Vary"]
            for origin in ("https://evil.example", "null"):
                status, got = await _headers(s, "OPTIONS", path, {**asks, "Origin": origin})
                assert status == 403
                assert not any(name.lower().startswith("access-control-allow") for name in got)

    run(scenario())


def test_a_preflight_cannot_write_a_header_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, origins=[LISTED]) as s:
            asks = {
                "Origin": LISTED,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "a(b)é",
            }
            got = await s.raw(request("OPTIONS", "/api/chat", headers={**asks, "Connection": "close"}))
            assert status_of(got) == 204 and b"allow-headers" not in got.lower()

    run(scenario())


# What is sent


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "application/jsonp",
        "text/json",
        "application/json,text/plain",
        "text/plain; application/json",
    ],
)
def test_a_body_that_is_not_declared_as_json_is_not_read(tmp_path: Path, kind: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            key = {"Authorization": f"Bearer {V1_KEY}"}
            for path, more in (
                ("/api/chat", {}),
                ("/api/chat/stream", {}),
                ("/api/chatbot/chat", {}),
                ("/api/exchanges/x/stop", {}),
                ("/v1/chat/completions", key),
            ):
                body = json.dumps(QUESTION).encode()
                headers = {"Content-Type": kind, "Connection": "close", **more}
                got = await s.raw(request("POST", path, headers=headers, raw=body))
                assert status_of(got) == 415, (path, got)
            assert not s.model.requests

    run(scenario())


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=UTF-8"]
)
def test_json_may_be_declared_in_any_spelling(tmp_path: Path, kind: str) -> None:
    async def scenario() -> None:
        async with (
            serving(tmp_path, HELLO) as s,
            s.client.post(f"{s.url}/api/chat", data=json.dumps(QUESTION), headers={"Content-Type": kind}) as got,
        ):
            assert got.status == 200

    run(scenario())


def test_a_compressed_body_is_not_unpacked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            assert status_of(await s.raw(asked(Content_Encoding="gzip"))) == 415
            assert status_of(await s.raw(asked(Content_Encoding="identity"))) == 200

    run(scenario())


def test_a_body_over_the_limit_is_refused_before_it_is_sent_and_when_it_does_not_say(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, limits=Limits(body_bytes=1000)) as s:
            head = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            for declared in (b"Content-Length: 1001\r\n\r\n", b"Content-Length: 99999999999999999999\r\n\r\n"):
                got = await s.raw(head + declared)
                assert status_of(got) in (400, 413), got  # the second is no number that a parser takes
            chunks = (
                b"Transfer-Encoding: chunked\r\n\r\n200\r\n" + b"x" * 512 + b"\r\n" + b"200\r\n" + b"x" * 512 + b"\r\n"
            )
            got = await s.raw(head + chunks)
            assert status_of(got) == 413
            assert error_of(got)["limit"] == "body_bytes"
            assert b"connection: close" in got.lower()

    run(scenario())


def test_a_body_that_trickles_in_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, limits=Limits(body_seconds=0.3)) as s:
            head = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            got = await asyncio.wait_for(s.raw(head + b"Content-Length: 20\r\n\r\n{"), 3)
            assert status_of(got) == 408
            assert b"connection: close" in got.lower()

    run(scenario())


HALF = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"


def test_all_bodies_that_are_coming_in_are_bounded_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, limits=Limits(bodies_bytes=1_000)) as s:
            halves = []
            for _ in range(2):
                _, half = await asyncio.open_connection("127.0.0.1", s.port)
                half.write(HALF + b" " * 450)
                await half.drain()
                halves.append(half)
            await asyncio.sleep(0.1)
            got = await s.raw(HALF + b" " * 150)
            assert status_of(got) == 503
            assert error_of(got)["limit"] == "bodies_bytes"
            assert b"retry-after: 5\r\n" in got.lower() and b"connection: close\r\n" in got.lower()
            for half in halves:
                half.close()
            await asyncio.sleep(0.1)
            assert status_of(await s.raw(asked())) == 200, "what is gone holds nothing any more"

    run(scenario())


@pytest.mark.skipif(sys.platform == "darwin", reason="has one loopback address until it is given more")
def test_the_bodies_of_one_address_do_not_shut_out_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, limits=Limits(bodies_bytes=1_000, bodies_address_bytes=500)) as s:
            _, half = await asyncio.open_connection("127.0.0.1", s.port)
            half.write(HALF + b" " * 450)
            await half.drain()
            await asyncio.sleep(0.1)
            got = await s.raw(HALF + b" " * 150)
            assert status_of(got) == 429
            assert error_of(got)["limit"] == "bodies_address_bytes"
            assert b"retry-after: 5\r\n" in got.lower() and b"connection: close\r\n" in got.lower()
            reader, other = await asyncio.open_connection("127.0.0.1", s.port, local_addr=("127.0.0.2", 0))
            other.write(asked())
            assert b" 200 " in await asyncio.wait_for(reader.readline(), 3)
            other.close()
            half.close()
            await asyncio.sleep(0.1)
            assert status_of(await s.raw(asked())) == 200, "what is gone holds nothing any more"

    run(scenario())


def test_bodies_that_wait_behind_an_answer_are_bounded_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        gated = {"default": "gated", "scripts": {"gated": [{"say": "a"}, {"gate": "more"}, {"say": "b"}]}}
        async with serving(tmp_path, gated, limits=Limits(bodies_bytes=1_000)) as s:
            ends = []
            for number in range(2):
                reader, end = await asyncio.open_connection("127.0.0.1", s.port)
                end.write(request("POST", "/api/chat/stream", QUESTION))
                await reader.readuntil(b"200 OK")
                end.write(HALF + b" " * (900 if number == 0 else 99))
                await end.drain()
                ends.append((reader, end))
            await asyncio.sleep(0.1)
            assert len(s.server.server_state.connections) == 2
            ends[1][1].write(b" " * 10)
            with suppress(ConnectionResetError):
                await asyncio.wait_for(ends[1][0].read(), 3)
            assert len(s.server.server_state.connections) == 1
            s.model.release("more")
            for _, end in ends:
                end.close()

    run(scenario())


def test_the_body_of_a_get_is_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        gated = [[{"say": "a"}, {"gate": "more"}, {"say": "b"}]]
        async with serving(tmp_path, gated) as s:
            body = b"x" * 50_000
            head = {"Accept": "text/event-stream", "Content-Length": str(len(body))}
            reader, end = await asyncio.open_connection("127.0.0.1", s.port)
            end.write(request("GET", "/flux?message=hello", headers=head) + body)
            await reader.readuntil(b"morceau")
            await asyncio.sleep(0.1)
            cycles = [getattr(one, "cycle", None) for one in s.server.server_state.connections]
            assert [cycle.body for cycle in cycles if cycle is not None] == [b""]
            s.model.release("more")
            end.close()

    run(scenario())


def test_a_body_that_is_not_whole_does_not_keep_the_server_from_ending(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            half = asyncio.create_task(s.raw(HALF + b"{"))
            await asyncio.sleep(0.2)
            began = time.monotonic()
            s.server.end()
            got = await half
            assert time.monotonic() - began < 1
            assert (status_of(got), error_of(got)["code"]) == (503, "interrupted")
            assert b"retry-after: 5\r\n" in got.lower()
        assert time.monotonic() - began < 2

    run(scenario())
    assert not caplog.records


# Who


def test_without_a_secret_one_is_a_new_visitor_and_gets_a_cookie_that_makes_them_known(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            async with s.client.post(f"{s.url}/api/chat", json=QUESTION) as response:
                cookie = response.headers["Set-Cookie"]
                first = await response.json()
            assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie and "Secure" not in cookie
            assert len(cookie.partition("=")[2].partition(";")[0]) >= 22
            async with s.client.post(
                f"{s.url}/api/chat", json={**QUESTION, "conversation": first["conversation"]}
            ) as again:
                assert again.status == 200 and "Set-Cookie" not in again.headers

    run(scenario())


def test_the_cookie_is_for_https_alone_where_a_listed_proxy_says_https(tmp_path: Path) -> None:
    async def scenario() -> None:
        for proxies, secure in ((("127.0.0.1",), True), ((), False)):
            async with serving(tmp_path, HELLO, proxies=proxies) as s:
                got = await s.raw(asked(X_Forwarded_Proto="https"))
                assert (b"; secure" in got.lower()) is secure

    run(scenario())


def test_over_https_only_a_cookie_of_this_very_host_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, proxies=("127.0.0.1",), cookies=False) as s:
            over = {"X-Forwarded-Proto": "https"}
            planted = "motamot_visitor=" + "a" * 22  # any sibling subdomain can set it with Domain=
            async with s.client.post(f"{s.url}/api/chat", json=QUESTION, headers={**over, "Cookie": planted}) as first:
                conversation = (await first.json())["conversation"]
                own = first.headers["Set-Cookie"].partition(";")[0]
                assert own.startswith("__Host-motamot_visitor=")
                assert {"Path=/", "Secure"} <= set(first.headers["Set-Cookie"].split("; "))
                assert "Domain" not in first.headers["Set-Cookie"]
            url = f"{s.url}/api/conversations/{conversation}"
            for cookie, status in ((f"{planted}; {own}", 200), (planted, 404)):
                async with s.client.get(url, headers={**over, "Cookie": cookie}) as found:
                    assert found.status == status

    run(scenario())


@pytest.mark.parametrize("secret", ["", "short", "with blank in its middle aaaa", "é" * 30, "a" * 129, "a/b+c" * 8])
def test_a_bearer_that_is_no_secret_is_refused(tmp_path: Path, secret: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            got = await s.raw(asked(Authorization=f"Bearer {secret}"))
            assert status_of(got) == 401 and b"www-authenticate: bearer" in got.lower()

    run(scenario())


def test_what_is_one_visitors_is_not_there_for_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, cookies=False) as s:
            mine = {"Authorization": "Bearer " + "m" * 22}
            async with s.client.post(f"{s.url}/api/chat", json={**QUESTION, "key": "k"}, headers=mine) as response:
                got = await response.json()
            for who in ({"Authorization": "Bearer " + "t" * 22}, {"Cookie": "motamot_visitor=" + "t" * 22}, {}):
                for method, path in (
                    ("GET", f"/api/exchanges/{got['exchange']}/events"),
                    ("GET", "/api/exchanges/k/events"),
                    ("GET", f"/api/conversations/{got['conversation']}"),
                    ("DELETE", f"/api/conversations/{got['conversation']}"),
                ):
                    async with s.client.request(method, s.url + path, headers=who) as response:
                        assert response.status == 404, (method, path)
                        there = await response.json()
                    async with s.client.request(method, s.url + path[:-3] + "zzz", headers=who) as response:
                        if "/events" not in path:
                            assert await response.json() == there  # not even that it exists
                async with s.client.post(
                    f"{s.url}/api/chat", json={**QUESTION, "conversation": got["conversation"]}, headers=who
                ) as response:
                    assert response.status == 404
            async with s.client.get(f"{s.url}/api/conversations/{got['conversation']}", headers=mine) as response:
                assert response.status == 200

    run(scenario())


def test_the_first_of_several_secrets_counts_and_what_is_no_secret_is_passed_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, cookies=False) as s:
            first = {"Cookie": "motamot_visitor=" + "a" * 22}
            async with s.client.post(f"{s.url}/api/chat", json=QUESTION, headers=first) as response:
                conversation = (await response.json())["conversation"]
            for cookie, status in (
                (f"x=1; motamot_visitor={'a' * 22}; motamot_visitor={'b' * 22}", 200),
                (f"motamot_visitor={'b' * 22}; motamot_visitor={'a' * 22}", 404),
                (f"motamot_visitor=nope; motamot_visitor={'a' * 22}", 200),
                (f'motamot_visitor="{"a" * 22}"', 404),
                (f"MOTAMOT_VISITOR={'a' * 22}", 404),
                (";;;===; =motamot_visitor", 404),
            ):
                sent = request(
                    "GET", f"/api/conversations/{conversation}", headers={"Cookie": cookie, "Connection": "close"}
                )
                assert status_of(await s.raw(sent)) == status, cookie

    run(scenario())


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
def test_v1_wants_a_key_and_nothing_else_will_do(tmp_path: Path, path: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            method = "GET" if path.endswith("models") else "POST"
            body = (
                {"model": "default", "messages": [{"role": "user", "content": "hello"}]} if method == "POST" else None
            )
            for header in (
                "",
                "Bearer",
                "Bearer wrong-key-wrong-key",
                f"Basic {V1_KEY}",
                f"Bearer {OPERATOR_KEY}",
                f"Bearer {V1_KEY}x",
            ):
                got = await s.raw(request(method, path, body, headers={"Authorization": header, "Connection": "close"}))
                assert status_of(got) == 401 and b"www-authenticate: bearer" in got.lower()
            assert not s.model.requests
            right = {"Authorization": f"bearer {V1_KEY}", "Connection": "close"}
            assert status_of(await s.raw(request(method, path, body, headers=right))) == 200

    run(scenario())


@pytest.mark.parametrize("given", [None, "Bearer " + V1_KEY, "Bearer ", "Bearer é"])
def test_metrics_want_the_operators_key_also_from_this_machine(tmp_path: Path, given: str | None) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            headers = {"Connection": "close"} | ({"Authorization": given} if given else {})
            assert status_of(await s.raw(request("GET", "/metrics", headers=headers))) == 401

    run(scenario())


def test_without_keys_v1_and_metrics_are_shut(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO, options={"v1_keys": (), "operator_key": ""}) as s:
            for path in ("/v1/models", "/metrics"):
                for header in ("Bearer", "Bearer ", "Bearer x"):
                    got = await s.raw(request("GET", path, headers={"Authorization": header, "Connection": "close"}))
                    assert status_of(got) == 401

    run(scenario())


# Proxies


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unix:socket", "unix:socket"),
        ("192.0.2.7:41234", "192.0.2.7"),
        ("[2001:db8:1:2:3:4:5:6]:41234", "2001:db8:1:2::"),
        ("[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::"),
        ("[::ffff:192.0.2.7]:41234", "192.0.2.7"),
        ("[unix]:1", "[unix]:1"),
        ("x" * 9_000, "x" * 100),
    ],
)
def test_the_budget_of_an_address_is_that_of_its_owner(address: str, counted: str) -> None:
    assert client_address(bare([], client=address)) == counted


@pytest.mark.parametrize(
    ("forwarded", "counted"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),  # the first is what the client claims
        ("203.0.113.9, 127.0.0.1", "203.0.113.9"),
        ("", "127.0.0.1"),
    ],
)
def test_a_listed_proxy_says_who_asks_and_its_client_cannot(tmp_path: Path, forwarded: str, counted: str) -> None:
    async def scenario() -> None:
        for proxies, expected in ((("127.0.0.1",), counted), (("10.0.0.0/8",), "127.0.0.1"), ((), "127.0.0.1")):
            async with serving(
                tmp_path, HELLO, proxies=proxies, options={"requests_per_hour": 1, "address_factor": 1}
            ) as s:
                headers = {"X-Forwarded-For": forwarded} if forwarded else {}
                got = await s.raw(request("POST", "/api/chat", QUESTION, headers={**headers, "Connection": "close"}))
                assert status_of(got) == 200
                assert f"address:{expected}" in s.site.budgets._by_name

    run(scenario())


def test_no_browser_takes_an_answer_for_another_type_than_it_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, HELLO) as s:
            key = {"Authorization": f"Bearer {V1_KEY}"}
            whole = {"model": "default", "messages": [{"role": "user", "content": "hello"}]}
            for asked_for in (
                request("GET", "/"),
                request("GET", "/widget.js"),
                request("GET", "/api/widget"),
                request("GET", "/healthz"),
                request("GET", "/openapi.json"),
                request("GET", "/nowhere"),
                request("DELETE", "/"),
                request("GET", "/v1/models", headers=key),
                request("POST", "/v1/chat/completions", whole, headers=key),
                request("POST", "/api/chat", QUESTION),
                request("POST", "/api/chat/stream", QUESTION),
                request("POST", "/api/chatbot/chat", QUESTION),
                request("POST", "/api/chatbot/chat/stream", QUESTION),
                request("GET", "/flux?message=hello", headers={"Accept": "text/event-stream"}),
                b"no request at all\r\n\r\n",
            ):
                last = asked_for.replace(b"Host: localhost", b"Host: localhost\r\nConnection: close")
                head = (await s.raw(last)).partition(b"\r\n\r\n")[0].lower()
                assert b"x-content-type-options: nosniff" in head, (asked_for, head)

    run(scenario())
