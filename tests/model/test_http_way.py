"""The way to a model's server: TLS, proxies, redirections, the environment. The key goes to its server and nowhere
else."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl

import pytest
import trustme

from motamot.errors import UpstreamError
from motamot.model.http import HttpModel
from tests.model.wire import ANSWER, Peer, Request, Script, Upstream, ask, ask_once, reply, run, sends

KEY = "sk-proj-0123456789abcdef"
OURS = trustme.CA()
STRANGERS = trustme.CA()


def tls(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names or ("127.0.0.1", "localhost")).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    OURS.cert_pem.write_to_path(path)
    return str(path)


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def the_error(answer_error: UpstreamError | None) -> UpstreamError:
    assert answer_error is not None
    assert KEY not in answer_error.message + (answer_error.detail or "")
    return answer_error


# TLS


def test_an_answer_comes_over_tls_from_a_certificate_of_an_own_authority(ca_file: str) -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER), sends(ANSWER), tls=tls(OURS)) as upstream:
            model = HttpModel(upstream.url, "m", ca_file=ca_file)
            for _ in range(2):
                assert (await ask(model)).text == "Hello"
                await asyncio.sleep(0.02)
            await model.close()
            assert len(upstream.peers) == 1, "the connection is kept"

    run(main())


@pytest.mark.parametrize(
    ("ca", "names", "says"),
    [
        (STRANGERS, (), "unable to get local issuer|self-signed|self signed"),
        (OURS, ("elsewhere.invalid",), "mismatch|doesn't match|not valid for"),
    ],
)
def test_a_certificate_that_cannot_be_trusted_gets_no_question(
    ca: trustme.CA, names: tuple[str, ...], says: str, ca_file: str
) -> None:
    async def main() -> None:
        async with Upstream(tls=tls(ca, *names)) as upstream:
            answer = await ask_once(upstream, ca_file=ca_file, api_key=KEY)
            assert not upstream.requests
        error = the_error(answer.turn.error)
        assert "certificate was not accepted" in error.message
        assert re.search(says, error.detail or ""), error.detail
        assert error.safe_to_retry, "nothing was asked, so nothing was spent"

    run(main())


def test_a_server_without_tls_asked_with_tls_is_a_sentence() -> None:
    async def main() -> None:
        async with Upstream() as upstream:
            task = asyncio.create_task(_talk_plainly(upstream))
            model = HttpModel(upstream.url.replace("http:", "https:"), "m")
            error = the_error((await ask(model)).turn.error)
            await model.close()
            task.cancel()
        assert "safe connection" in error.message
        assert "TLS" in (error.detail or "")

    run(main())


async def _talk_plainly(upstream: Upstream) -> None:
    """Answer a TLS hello as an HTTP server does that does not know it."""
    while not upstream.peers:
        await asyncio.sleep(0.01)
    await upstream.peers[0].take(lambda came: 1 if came else 0)
    await upstream.peers[0].send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def test_a_server_that_leaves_during_the_handshake_may_be_asked_again() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        model = HttpModel(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", "m")
        error = the_error((await ask(model)).turn.error)
        assert error.message.endswith(".")
        assert error.safe_to_retry
        await model.close()
        server.close()
        await server.wait_closed()

    run(main())


# Redirections


def to(location: str, status: int = 307) -> Script:
    return sends(reply(status, b"moved", Location=location))


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/v1/chat/completions/", "completions/", "{url}/chat/completions/"])
def test_a_redirection_within_the_origin_is_followed_with_the_same_question(status: int, location: str) -> None:
    async def main() -> None:
        upstream = Upstream()
        async with upstream:
            upstream.scripts = (to(location.format(url=upstream.url), status), sends(ANSWER))
            model = HttpModel(upstream.url, "m", api_key=KEY)
            assert (await ask(model)).text == "Hello"
            await model.close()
            first, second = upstream.requests
            assert second.line == "POST /v1/chat/completions/ HTTP/1.1"
            assert second.body == first.body
            assert second.headers["authorization"] == f"Bearer {KEY}"

    run(main())


def test_a_redirection_to_another_origin_is_never_followed_and_gets_no_key() -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER)) as other, Upstream(to(other.url)) as upstream:
            error = the_error((await ask_once(upstream, api_key=KEY)).turn.error)
            await asyncio.sleep(0.05)
            assert not other.peers
            assert "has moved" in error.message
            assert other.url in (error.detail or "")
            assert error.status == 307

    run(main())


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirection_that_would_turn_the_question_into_a_get_is_not_followed(status: int) -> None:
    async def main() -> None:
        async with Upstream(to("/v1/other", status)) as upstream:
            error = the_error((await ask_once(upstream)).turn.error)
        assert error.status == status
        assert "/v1/other" in (error.detail or "")

    run(main())


@pytest.mark.parametrize("location", ["", "http://[", "//:0", "ftp://127.0.0.1/", "javascript:alert(1)"])
def test_a_redirection_to_nonsense_is_a_sentence(location: str) -> None:
    async def main() -> None:
        async with Upstream(to(location), *[to(location)] * 5) as upstream:
            model = HttpModel(upstream.url, "m")
            assert "has moved" in the_error((await ask(model)).turn.error).message
            await model.close()

    run(main())


def test_redirections_in_a_circle_end() -> None:
    async def main() -> None:
        async with Upstream(*[to("/v1/chat/completions")] * 9) as upstream:
            model = HttpModel(upstream.url, "m")
            assert the_error((await ask(model)).turn.error).status == 307
            await model.close()
            assert len(upstream.requests) == 4

    run(main())


# Proxies


class Proxy(Upstream):
    """A small forward proxy: absolute addresses and CONNECT, with an optional password."""

    def __init__(self, *, login: str = "", refuse: bytes = b"") -> None:
        super().__init__()
        self.login = login
        self.refuse = refuse
        self.tunnels: list[str] = []

    async def _answer(self, peer: Peer) -> None:
        request = await peer.request()
        if request is None:
            return
        self.requests.append(request)
        if self.refuse or not self._allowed(request):
            await peer.send(self.refuse or reply(407, b"who are you?", Proxy_Authenticate="Basic"))
            return
        method, target, _ = request.line.split(" ")
        where = target if method == "CONNECT" else target.split("/")[2]
        self.tunnels.append(where)
        host, port = where.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        if method == "CONNECT":
            await peer.send(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items() if name[:5] != "proxy")
            path = target.split(where, 1)[1]
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + request.body)
        back = asyncio.create_task(self._back(reader, peer))
        try:
            while data := await peer.take(len):
                writer.write(data)
                await writer.drain()
        finally:
            back.cancel()
            writer.transport.abort()

    async def _back(self, reader: asyncio.StreamReader, peer: Peer) -> None:
        while data := await reader.read(65536):
            await peer.send(data)
        peer.writer.close()

    def _allowed(self, request: Request) -> bool:
        wanted = "Basic " + base64.b64encode(self.login.encode()).decode()
        return not self.login or request.headers.get("proxy-authorization") == wanted

    def address(self, login: str = "") -> str:
        return f"http://{login + '@' if login else ''}127.0.0.1:{self.port}"


def test_a_plain_question_goes_through_a_proxy() -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream, Proxy() as proxy:
            answer = await ask_once(upstream, proxy=proxy.address(), api_key=KEY)
            assert answer.text == "Hello"
            assert proxy.requests[0].line.startswith(f"POST {upstream.url}/chat/completions ")

    run(main())


def test_a_question_over_tls_goes_through_a_proxy_that_never_sees_the_key(ca_file: str) -> None:
    async def main() -> None:
        async with Upstream(sends(ANSWER), tls=tls(OURS)) as upstream, Proxy(login="ann:secret-word") as proxy:
            settings = {"proxy": proxy.address("ann:secret-word"), "ca_file": ca_file, "api_key": KEY}
            answer = await ask_once(upstream, **settings)
            assert answer.turn.error is None
            assert answer.text == "Hello"
            assert proxy.tunnels == [f"127.0.0.1:{upstream.port}"]
            assert "authorization" not in proxy.requests[0].headers
            assert "proxy-authorization" not in upstream.requests[0].headers

    run(main())


@pytest.mark.parametrize("over_tls", [False, True])
def test_a_wrong_password_for_the_proxy_is_a_sentence_without_it(over_tls: bool, ca_file: str) -> None:
    async def main() -> None:
        context = tls(OURS) if over_tls else None
        async with Upstream(tls=context) as upstream, Proxy(login="ann:right") as proxy:
            answer = await ask_once(upstream, proxy=proxy.address("ann:wrong-word"), ca_file=ca_file)
            error = the_error(answer.turn.error)
            assert "wrong-word" not in error.message + (error.detail or "")
            assert "407" in (error.detail or "")
            assert "proxy" in error.message.lower()
            assert error.status == 407
            assert not upstream.requests

    run(main())


def test_a_proxy_that_is_not_there_is_a_sentence_and_may_be_asked_again() -> None:
    async def main() -> None:
        async with Proxy() as proxy:
            address = proxy.address("ann:secret-word")
        model = HttpModel("http://model.invalid", "m", proxy=address)
        error = the_error((await ask(model)).turn.error)
        await model.close()
        assert "proxy" in error.message
        assert error.safe_to_retry
        assert "secret-word" not in (error.detail or "")

    run(main())


@pytest.mark.parametrize("refusal", [b"HTTP/1.1 502 Bad Gateway\r\n\r\n", b"nonsense\r\n\r\n", b""])
def test_a_proxy_that_cannot_go_on_is_a_sentence(refusal: bytes) -> None:
    async def main() -> None:
        async with Proxy(refuse=refusal or b"\r\n") as proxy:
            model = HttpModel("https://model.invalid", "m", proxy=proxy.address())
            error = the_error((await ask(model)).turn.error)
            await model.close()
            assert error.message.endswith(".")

    run(main())


def test_the_proxy_of_the_environment_is_used_except_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with Proxy(refuse=reply(418, b"teapot")) as proxy, Upstream(sends(ANSWER)) as upstream:
            monkeypatch.setenv("http_proxy", proxy.address())
            elsewhere = HttpModel("http://model.invalid", "m")
            assert the_error((await ask(elsewhere)).turn.error).status == 418
            await elsewhere.close()
            assert (await ask_once(upstream)).text == "Hello"
            deaf = HttpModel("http://model.invalid", "m", trust_env=False)
            assert "not found" in the_error((await ask(deaf)).turn.error).message
            await deaf.close()
            assert len(proxy.requests) == 1

    run(main())


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("http://model.test", {"http_proxy": "proxy.test:3128"}, "http://proxy.test:3128"),
        ("https://model.test", {"http_proxy": "http://proxy.test"}, None),
        ("https://model.test", {"HTTPS_PROXY": "http://proxy.test"}, "http://proxy.test"),
        ("https://model.test", {"https_proxy": "http://proxy.test", "no_proxy": ".test"}, None),
        ("https://model.test:8443", {"https_proxy": "http://proxy.test", "no_proxy": "model.test:8443"}, None),
        ("https://model.test", {"https_proxy": "http://proxy.test", "no_proxy": "*"}, None),
        ("http://localhost:8080", {"http_proxy": "http://proxy.test"}, None),
        ("http://127.3.2.1:8080", {"http_proxy": "http://proxy.test"}, None),
        ("http://[::1]:8080", {"http_proxy": "http://proxy.test"}, None),
    ],
)
def test_the_environment_names_proxies_as_everywhere(
    url: str, environment: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert HttpModel(url, "m")._proxy == proxy


def test_a_login_in_the_netrc_file_is_never_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """aiohttp's own trust_env would take it, and then refuse the key beside it."""
    netrc = f"{tmp_path}/netrc"
    with open(netrc, "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("machine 127.0.0.1 login ann password secret-word\n")
    monkeypatch.setenv("NETRC", netrc)

    async def main() -> None:
        async with Upstream(sends(ANSWER)) as upstream:
            assert (await ask_once(upstream)).text == "Hello"
            assert "authorization" not in upstream.requests[0].headers

    run(main())
