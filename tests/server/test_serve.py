"""`motamot serve` and `motamot init` as processes: what they say, how they end, and what bad input gets."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from motamot.cli.init import text as init_text
from motamot.scripted import ThreadedScriptedModel, scripted_model
from motamot.settings import load
from motamot.store.store import Store
from tests.server.reading import run
from tests.server.support import environment, free_port, serve_process, upstream

SCRIPTS = {
    "default": "hello",
    "scripts": {
        "hello": [{"say": "Hello."}, {"finish": "stop"}, {"usage": {"prompt": 3, "completion": 2}}],
        "slow": [{"say": "Wait"}, {"wait": "60s"}, {"say": "."}],
        "endless": [{"say": "word " * 50, "pace": "100ms"}] * 20,
    },
}
HEAD = b"POST /api/chat/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
ELSEWHERE = {"MOTAMOT_V1_KEYS": "key-of-callers-0001", "MOTAMOT_OPERATOR_KEY": "key-of-the-operator"}


@pytest.fixture
def model() -> Iterator[ThreadedScriptedModel]:
    with scripted_model(SCRIPTS) as found:
        yield found


def get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def command(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of motamot, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "motamot", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, **variables),
        timeout=40,
        check=False,
    )


def refused(folder: Path, *arguments: str, **variables: str) -> str:
    """What it says when it cannot serve: sentences, and no traceback; exit status 2."""
    done = command(folder, "serve", *arguments, **variables)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr and "fault of its own" not in done.stderr
    assert done.stdout == ""
    return done.stderr


# Starting


def test_it_says_what_answers_and_why_its_keys_what_is_unlimited_and_its_address(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        said = served.said.splitlines()
        assert said[0] == f"scripted at {model.url}, as --upstream says"
        assert said[1] == "default: what scripted costs is not known, and no money_per_day bounds it"
        keys = [re.fullmatch(r"key of (.+) until it ends, as (\S+) is not set: (\S{16,})", line) for line in said[2:4]]
        assert [key and key[2] for key in keys] == ["MOTAMOT_V1_KEYS", "MOTAMOT_OPERATOR_KEY"]
        assert said[4] == f"motamot serves {served.url}/"
        v1, operator = (key[3] for key in keys if key)
        assert get(f"{served.url}/v1/models", Authorization=f"Bearer {v1}")[0] == 200
        assert get(f"{served.url}/metrics", Authorization=f"Bearer {operator}")[0] == 200
        assert get(f"{served.url}/v1/models", Authorization=f"Bearer {operator}")[0] == 401
        assert get(f"{served.url}/")[0] == 200


def test_what_answers_is_found_without_a_word_and_nothing_is_asked_without_a_terminal(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    key = "sk-test-key-of-the-tests"
    with serve_process(tmp_path, OPENAI_BASE_URL=model.url, OPENAI_MODEL="scripted", OPENAI_API_KEY=key) as served:
        assert "because OPENAI_BASE_URL is set" in served.said
        assert "sk-test" not in served.said


def test_several_assistants_of_a_settings_file_answer_by_their_names(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    (tmp_path / "motamot.toml").write_text(
        f"""
        [server]
        requests_per_hour = 3
        hosts = ["chat.example"]
        [store]
        database = "mine.sqlite3"
        [assistants.guide]
        upstream = "{model.url}"
        model = "one"
        system = "Guide."
        [assistants.helper]
        upstream = "{model.url}"
        model = "two"
        """
    )
    with serve_process(tmp_path, MOTAMOT_DATABASE="") as served:
        assert f"guide: one at {model.url}" in served.said and f"helper: two at {model.url}" in served.said
        for asked, expected in (({}, "one"), ({"assistant": "helper"}, "two"), ({"assistant": "guide"}, "one")):
            assert post(f"{served.url}/api/chat", {"message": "hello", **asked})[0] == 200
            assert model.requests[-1].body["model"] == expected
        assert post(f"{served.url}/api/chat", {"message": "hello", "assistant": "nobody"})[0] == 404
        status, told = post(f"{served.url}/api/chat", {"message": "hello"}, Host="chat.example")
        assert status == 200  # each request without a cookie is another visitor's
        assert post(f"{served.url}/api/chat", {"message": "hello"}, Host="evil.example")[0] == 421
        for number in range(3):
            status, told = post(f"{served.url}/api/chat", {"message": "hello"}, Authorization="Bearer " + "s" * 22)
            assert status == 200, number
        status, told = post(f"{served.url}/api/chat", {"message": "hello"}, Authorization="Bearer " + "s" * 22)
        assert status == 429 and told["error"]["limit"] == "requests_per_hour"
    assert (tmp_path / "mine.sqlite3").exists()


def post(url: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
    headers["Content-Type"] = "application/json"
    asked = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_options_go_before_the_settings(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    (tmp_path / "motamot.toml").write_text('[server]\nhost = "192.0.2.1"\nport = 1\n[assistants.a]\nlocal = true\n')
    options = ("--host", "127.0.0.1", "--system", "Be brief.", "--database", "other.sqlite3")
    with serve_process(tmp_path, *upstream(model.url), *options) as served:
        assert post(f"{served.url}/api/chat", {"message": "hello"})[0] == 200
        assert model.requests[-1].body["messages"][0]["content"] == "Be brief."
    assert (tmp_path / "other.sqlite3").exists()


def test_recorded_samples_and_demo_models_are_labelled(tmp_path: Path) -> None:
    (tmp_path / "motamot.toml").write_text('[assistants.a]\nrecorded = ["A sample."]\n')
    with serve_process(tmp_path) as served:
        assert "[recorded] a recorded sample answers, no model" in served.said
        assert "money_per_day" not in served.said
        assert post(f"{served.url}/api/chat", {"message": "hello"})[1]["marks"] == ["recorded"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc, to measure CPU and not the wait")
def test_it_listens_within_a_second_of_its_own_time(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    (tmp_path / "motamot.toml").write_text(f'[assistants.a]\nupstream = "{model.url}"\nmodel = "m"\n')
    Store.open(tmp_path / "books.sqlite3").close_sync()
    took = []
    for _ in range(3):
        with serve_process(tmp_path) as served:
            fields = Path(f"/proc/{served.process.pid}/stat").read_text().rpartition(")")[2].split()
            took.append((int(fields[11]) + int(fields[12])) / 100)
    assert min(took) <= 1.0, took


# Where others reach it


def test_elsewhere_it_refuses_to_start_without_keys_and_makes_some_to_choose(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    said = refused(tmp_path, *upstream(model.url), "--host", "0.0.0.0", "--port", str(free_port()))
    fresh = dict(re.findall(r"^ +(MOTAMOT_\w+)=(\S{16,})$", said, re.MULTILINE))
    assert set(fresh) == {"MOTAMOT_V1_KEYS", "MOTAMOT_OPERATOR_KEY"}
    with serve_process(tmp_path, *upstream(model.url), "--host", "0.0.0.0", **fresh) as served:
        assert "until it ends" not in served.said and not any(key in served.said for key in fresh.values())
        assert get(f"{served.url}/metrics", Authorization=f"Bearer {fresh['MOTAMOT_OPERATOR_KEY']}")[0] == 200
        for host, status in (("192.0.2.1", 200), ("localhost", 200), ("evil.example", 421)):
            assert get(f"{served.url}/healthz", Host=host)[0] == status


@pytest.mark.parametrize("missing", sorted(ELSEWHERE))
def test_elsewhere_one_key_is_not_enough(tmp_path: Path, missing: str, model: ThreadedScriptedModel) -> None:
    there = {name: key for name, key in ELSEWHERE.items() if name != missing}
    said = refused(tmp_path, *upstream(model.url), "--host", "0.0.0.0", "--port", str(free_port()), **there)
    assert missing in said and not set(there) & set(re.findall(r"MOTAMOT_\w+", said))


def test_keys_come_from_files_and_from_variables_of_other_names(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    (tmp_path / "keys").write_text("first-key-of-callers\nsecond-key-of-callers\n")
    (tmp_path / "motamot.toml").write_text('[server]\nv1_keys_file = "keys"\noperator_key_env = "MINE"\n')
    with serve_process(tmp_path, *upstream(model.url), MINE="key-of-the-operator") as served:
        for key, status in (
            ("first-key-of-callers", 200),
            ("second-key-of-callers", 200),
            ("third-key-of-callers", 401),
        ):
            assert get(f"{served.url}/v1/models", Authorization=f"Bearer {key}")[0] == status
        assert get(f"{served.url}/metrics", Authorization="Bearer key-of-the-operator")[0] == 200


def test_it_serves_https_with_a_certificate(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "chat.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "chat.key")
    options = ("--tls-cert", "chat.pem", "--tls-key", "chat.key")
    with serve_process(tmp_path, *upstream(model.url), *options, wait=False) as served:
        served.wait_said(f"motamot serves https://127.0.0.1:{served.port}/")
        trusted = ssl.create_default_context()
        authority.configure_trust(trusted)
        asked = urllib.request.Request(
            f"https://localhost:{served.port}/api/chat",
            data=b'{"message": "hello"}',
            headers={"Content-Type": "application/json", "Origin": f"https://localhost:{served.port}"},
        )
        with urllib.request.urlopen(asked, context=trusted) as response:
            assert "; Secure" in response.headers["Set-Cookie"]
            assert json.load(response)["text"] == "Hello."


def test_an_end_that_could_not_be_booked_is_a_sentence_and_a_status(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        assert get(f"{served.url}/healthz")[0] == 200
        for file in tmp_path.glob("books.sqlite3*"):
            file.unlink()
        served.signal()
        assert served.wait() == 1
        assert f"{tmp_path / 'books.sqlite3'} was moved, removed or replaced" in served.said
        assert "closed by the next start" in served.said and "Traceback" not in served.said
        assert "motamot: ended" not in served.said


# Bad input


def test_a_port_in_use_is_a_sentence_and_not_a_traceback(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(tmp_path, *upstream(model.url), "--port", str(port))
    assert (
        said == f"motamot: 127.0.0.1 port {port} cannot be listened on: Address already in use; another one: --port\n"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "::2"])
def test_an_address_that_is_not_this_machines_is_a_sentence(tmp_path: Path, host: str) -> None:
    said = refused(tmp_path, *upstream("http://127.0.0.1:1/v1"), "--host", host, **ELSEWHERE)
    assert re.fullmatch(
        rf"motamot: {re.escape(host)} port 8000 cannot be listened on: [^\n]+; another address: --host\n", said
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("[server]\nport = 70000\n", "motamot.toml, line 2: server.port must be 65535 or less"),
        ('[server]\nport = "80"\n', "motamot.toml, line 2: server.port must be a whole number, not text"),
        ("[server]\nprot = 80\n", "motamot.toml, line 2: server.prot is not a setting; did you mean port?"),
        ('[server]\ntls_key = "k"\n', "motamot.toml, line 2: server.tls_key: it needs its certificate: tls_cert"),
        ('[server]\nproxies = ["0.0.0.0/0"]\n', "line 2: server.proxies[0]: that is everybody"),
        ('[server]\nproxies = ["proxy.example"]\n', "server.proxies[0]: a proxy is an address or a network"),
        ('[server]\nhosts = ["https://chat.example"]\n', "server.hosts[0]: a host is a name in small letters"),
        ('[server]\nhosts = ["chat.example:80"]\n', "server.hosts[0]: a host is a name in small letters"),
        ("[server]\nmoney_per_day = 0\n", "server.money_per_day must be more than 0"),
        ("[server]\nrequests_per_hour = -1\n", "server.requests_per_hour must be more than 0"),
        ('[server]\nv1_keys_env = "A"\nv1_keys_file = "b"\n', "v1_keys_env names another source of it"),
        ('[server]\nv1_keys_env = "NOT_SET_ANYWHERE"\n', "a key is to be in the environment variable NOT_SET_ANYWHERE"),
        ('[server]\nv1_keys_file = "none"\n', "the key cannot be read from none: No such file or directory"),
        ('[server]\noperator_key_file = "empty"\n', "the file empty is to hold a key, and is empty"),
        ('[server]\noperator_key_file = "short"\n', "a key in the file short must have 16 to 200 printable ASCII"),
        ('[server]\noperator_key_file = "two"\n', "there is one operator's key, and several are given"),
        ("[server]\nmoney_per_day = 1\n", "what scripted costs is not known"),
        ("[server.limits]\nconnections = 0\n", "server.limits.connections must be more than 0"),
        ('[server]\ntls_cert = "none.pem"\n', "the certificate none.pem cannot be used: No such file or directory"),
        ('[server]\ntls_cert = "empty"\n', "the certificate empty cannot be used: "),
        ('[assistants."a\\nb"]\n', "printable characters"),
        (
            "[server.limits]\nbody_bytes = 5_000_000\n",
            "the limit body_bytes (5000000) is more than bodies_address_bytes (4194304), which it has to fit in",
        ),
        ("[assistants.default.limits]\nmessage_bytes = 1_000_001\n", "message_bytes (1000001) is more than body_bytes"),
    ],
)
def test_settings_that_cannot_work_are_told_with_their_place(
    tmp_path: Path, settings: str, said: str, model: ThreadedScriptedModel
) -> None:
    (tmp_path / "motamot.toml").write_text(settings)
    (tmp_path / "empty").write_text("")
    (tmp_path / "short").write_text("short")
    (tmp_path / "two").write_text("one-key-of-operator\ntwo-key-of-operator\n")
    for more in ((), ("--check",)):
        told = refused(tmp_path, *upstream(model.url), "--port", str(free_port()), *more)
        assert said in told, (more, told)


def test_a_key_that_needs_a_password_is_a_sentence(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    certificate = trustme.CA().issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "chat.pem")
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
    (tmp_path / "chat.key").write_bytes(sealed)
    said = refused(tmp_path, *upstream(model.url), "--tls-cert", "chat.pem", "--tls-key", "chat.key")
    assert said.startswith("motamot: the certificate chat.pem with the key chat.key cannot be used: ")


def test_a_certificate_without_its_key_says_what_is_missing(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    certificate = trustme.CA().issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "chat.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "chat.key")
    for given, said in (
        (("chat.pem",), "chat.pem cannot be used: its key is not in it: name the key's file with tls_key"),
        (("chat.key",), "chat.key cannot be used: it holds no certificate (PEM: "),
        (("chat.pem", "--tls-key", "chat.pem"), "chat.pem cannot be used: that is no key"),
        (("chat.pem", "--tls-key", "none.key"), "none.key cannot be used: No such file or directory"),
    ):
        assert said in refused(tmp_path, *upstream(model.url), "--tls-cert", *given)


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b""])
def test_a_database_that_is_none_is_a_sentence(tmp_path: Path, content: bytes, model: ThreadedScriptedModel) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "books.sqlite3").write_bytes(content)
    database = str(tmp_path / "books.sqlite3") if content else str(folder)
    for more in ((), ("--check",)):
        said = refused(tmp_path, *upstream(model.url), "--port", str(free_port()), "--database", database, *more)
        assert database in said, said


def test_a_database_of_a_newer_motamot_is_a_sentence(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    Store.open(tmp_path / "books.sqlite3").close_sync()
    with closing(sqlite3.connect(tmp_path / "books.sqlite3")) as books:
        books.execute("UPDATE motamot_version SET version_num = '9999'")
        books.commit()
    said = refused(tmp_path, *upstream(model.url), "--port", str(free_port()))
    assert "newer" in said


# Ending


async def _stream(client: aiohttp.ClientSession, url: str, key: str, started: asyncio.Semaphore) -> str:
    body = {"message": "endless", "key": key, "resumable": True}
    headers = {"Authorization": "Bearer " + f"visitor-{key}".ljust(22, "x")}
    async with client.post(f"{url}/api/chat/stream", json=body, headers=headers) as response:
        first = await response.content.readuntil(b'"text"')
        started.release()
        return (first + await response.content.read()).decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_under_load_it_ends_what_runs_books_it_and_is_gone(
    tmp_path: Path, number: signal.Signals, model: ThreadedScriptedModel
) -> None:
    streams = 50
    with serve_process(
        tmp_path,
        *upstream(model.url),
        MOTAMOT_SERVER__REQUESTS_PER_HOUR="1000",
        MOTAMOT_SERVER__ADDRESS_FACTOR="20",
    ) as served:

        async def scenario() -> tuple[list[str], float, int]:
            started = asyncio.Semaphore(0)
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as client:
                tasks = [
                    asyncio.create_task(_stream(client, served.url, f"k{number}", started)) for number in range(streams)
                ]
                for _ in tasks:
                    await started.acquire()
                began = served.signal(number)
                bodies = await asyncio.gather(*tasks)
                status = await asyncio.to_thread(served.wait, 10)
            return list(bodies), time.monotonic() - began, status

        bodies, took, status = run(scenario())
        assert took <= 8, took
        assert status == 0
        assert served.said.splitlines()[-1] == "motamot: ended"
        assert "Traceback" not in served.said
    assert all('"type":"ended","outcome":"interrupted"' in body for body in bodies)
    with closing(sqlite3.connect(tmp_path / "books.sqlite3")) as books:
        for table in ("exchanges", "completions"):
            rows = books.execute(f"SELECT outcome, count(*) FROM {table} GROUP BY outcome").fetchall()
            assert rows == [("interrupted", streams)]
        assert books.execute("SELECT count(*) FROM completions WHERE completion_tokens IS NULL").fetchone() == (0,)
    # After the restart, whoever comes back gets what there was, and its end, and no second answer is made.
    with serve_process(tmp_path, *upstream(model.url)) as served:
        asked = len(model.requests)
        headers = {"Authorization": "Bearer " + "visitor-k7".ljust(22, "x")}
        _, told = get(f"{served.url}/api/exchanges/k7/events", **headers)
        assert '"text":"word' in told and '"outcome":"interrupted"' in told
        assert len(model.requests) == asked


def test_a_client_that_reads_nothing_does_not_keep_it_from_ending(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        stuck = []
        for _ in range(3):
            one = socket.create_connection(("127.0.0.1", served.port))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = b'{"message": "slow"}'
            one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            stuck.append(one)
        half = socket.create_connection(("127.0.0.1", served.port))
        half.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
        model.wait_request(2)
        began = served.signal()
        assert served.wait(10) == 0
        assert time.monotonic() - began <= 8
        for one in (*stuck, half):
            one.close()


def test_a_question_that_is_not_whole_does_not_keep_it_from_ending(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as half:
            half.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
            time.sleep(0.3)  # it is being read
            said = served.said
            began = served.signal()
            assert served.wait(10) == 0
            assert time.monotonic() - began <= 3
            assert half.recv(100).startswith(b"HTTP/1.1 503 ")
        assert "rror" not in served.said.removeprefix(said)


def test_a_second_signal_ends_it_at_once_and_the_next_start_books_what_was_open(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        body = b'{"message": "slow"}'
        one = socket.create_connection(("127.0.0.1", served.port))
        one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        model.wait_request(0)
        served.signal(signal.SIGTERM)
        began = served.signal(signal.SIGINT)  # two of one kind could be heard as one
        assert served.wait(5) in (128 + signal.SIGTERM, 128 + signal.SIGINT)
        assert time.monotonic() - began < 1
        one.close()
    with serve_process(tmp_path, *upstream(model.url)):
        pass
    with closing(sqlite3.connect(tmp_path / "books.sqlite3")) as books:
        assert books.execute("SELECT outcome FROM exchanges").fetchall() == [("interrupted",)]


def test_killed_it_leaves_books_that_the_next_start_closes(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        body = b'{"message": "slow"}'
        one = socket.create_connection(("127.0.0.1", served.port))
        one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        model.wait_request(0)
        served.signal(signal.SIGKILL)
        served.wait()
        one.close()
    with serve_process(tmp_path, *upstream(model.url)), closing(sqlite3.connect(tmp_path / "books.sqlite3")) as books:
        assert books.execute("SELECT DISTINCT outcome FROM completions").fetchall() == [("interrupted",)]


# Explaining


def test_check_explains_what_would_be_served_and_starts_nothing(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    (tmp_path / "motamot.toml").write_text(
        f"""
        [server]
        port = {free_port()}
        hosts = ["chat.example"]
        money_per_day = 2.5
        [assistants.guide]
        upstream = "{model.url}"
        model = "gpt-4.1-mini"
        origins = ["https://shop.example"]
        [assistants.guide.prices]
        input = 1
        output = 10
        """
    )
    done = command(tmp_path, "serve", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "Settings    motamot.toml",
        "this machine alone",
        "127.0.0.1, [::1], chat.example, localhost",
        "books.sqlite3 (is made at the start)",
        "MOTAMOT_V1_KEYS and MOTAMOT_OPERATOR_KEY are not set",
        f"gpt-4.1-mini at {model.url}, as the settings say",
        "1.00 USD a million tokens read, 10.00 USD written; one address up to 10.00 USD an hour",
        "its own, https://shop.example",
        "60 questions and 200,000 tokens an hour a visitor, 5 times that an address",
        "4 answers at a time a visitor, 5 times that an address, 1,000 in all",
        "money: 2.5 a day for each assistant",
    ):
        assert words in done.stdout, done.stdout
    assert "Warnings" not in done.stdout
    assert not (tmp_path / "books.sqlite3").exists() and not model.requests


def test_check_tells_what_would_be_fetched_and_when_serve_asks_for_it(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra motamot[local]")
    servers = {"OLLAMA_HOST": f"127.0.0.1:{free_port()}"}
    done = command(tmp_path, "serve", "--check", "--local", **servers)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    answers = next(number for number, line in enumerate(lines) if line.startswith("  answers"))
    assert "to download from" in lines[answers] and "licence" in lines[answers]
    assert lines[answers + 1].strip() == (
        "motamot serve asks before it fetches this; without a terminal, or with --yes, it fetches it at once."
    )
    assert "A smaller model: --local --model" in done.stdout
    assert "Without a model" not in done.stdout and "Nobody can be asked" not in done.stdout


def test_check_warns_of_what_is_dangerous(tmp_path: Path, model: ThreadedScriptedModel) -> None:
    done = command(
        tmp_path,
        "serve",
        "--check",
        "--host",
        "0.0.0.0",
        "--upstream",
        model.url,
        "--model",
        "gpt-4.1-mini",
        **ELSEWHERE,
    )
    assert done.returncode == 0
    warnings = done.stdout.partition("Warnings")[2]
    for words in ("without TLS", "no `hosts` are set", "nothing bounds the money of a day"):
        assert words in warnings
    assert not any(key in done.stdout for key in ELSEWHERE.values())


def test_check_beside_the_running_server_warns_of_its_port_and_is_content(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    with serve_process(tmp_path, *upstream(model.url)) as served:
        done = command(tmp_path, "serve", "--check", *upstream(model.url), "--port", str(served.port))
        assert done.returncode == 0 and "is it running already?" in done.stdout


# Beginning


def test_init_writes_a_file_that_is_valid_as_it_is_and_changes_nothing(
    tmp_path: Path, model: ThreadedScriptedModel
) -> None:
    done = command(tmp_path, "init")
    assert (done.returncode, done.stderr) == (0, "written: motamot.toml; next: motamot serve --check\n")
    settings = load(tmp_path / "motamot.toml", environ={})
    assert settings.assistants["default"].model_dump(exclude_unset=True) == {"visible": {}, "limits": {}}
    assert not settings.server.model_fields_set and not settings.store.model_fields_set
    with serve_process(tmp_path, *upstream(model.url)) as served:
        assert post(f"{served.url}/api/chat", {"message": "hello"})[0] == 200


def test_init_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "motamot.toml").write_text("mine")
    done = command(tmp_path, "init")
    assert done.returncode == 2 and "is there already" in done.stderr
    assert (tmp_path / "motamot.toml").read_text() == "mine"
    done = command(tmp_path, "init", "no/such/folder/motamot.toml")
    assert done.returncode == 2 and "cannot be written" in done.stderr
    assert command(tmp_path, "init", "-").stdout == init_text()


def test_every_line_of_the_file_that_init_writes_is_right_once_its_sign_is_taken_away(tmp_path: Path) -> None:
    lines = init_text().splitlines()
    settings = [number for number, line in enumerate(lines) if re.match(r"#\S", line)]
    assert len(settings) > 60
    for number in settings:
        if lines[number].startswith(("#fallback", "#knowledge_", "#tls_key")):
            continue  # they mean something only with the one before
        changed = [*lines]
        changed[number] = changed[number][1:]
        file = tmp_path / f"{number}.toml"
        file.write_text("\n".join(changed))
        load(file, environ={})


def test_init_explains_every_setting_there_is() -> None:
    from motamot.limits import Limits
    from motamot.settings import AssistantSettings, ServerSettings, StoreSettings

    text = init_text()
    known = {*ServerSettings.model_fields, *StoreSettings.model_fields, *AssistantSettings.model_fields}
    for name in (known - {"api_key", "limits", "visible"}) | set(Limits.__dataclass_fields__):
        assert re.search(rf"^# .+\n#{name} = .+$", text, re.MULTILINE), name
