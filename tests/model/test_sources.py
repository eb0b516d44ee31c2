"""What answers, and in which order it is looked for; over real sockets, with real processes where there are any."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from motamot.assistant import Assistant
from motamot.errors import ModelUnavailable, SettingsError
from motamot.limits import Limits
from motamot.model import known, local, servers, sources
from motamot.model.download import cache_folder
from motamot.model.http import HttpModel
from motamot.model.known import PackagedModel
from motamot.model.local import LocalModel
from motamot.model.recorded import RecordedModel
from motamot.model.servers import find_servers, list_models
from motamot.model.sources import OPENAI_MODEL, Choice, Wanted, resolve
from motamot.model.turn import Message, TurnRequest
from motamot.settings import AssistantSettings, Settings, StoreSettings, assistant_from
from tests.model.stand_in_hub import StandInHub, hub_model
from tests.model.tiny_gguf import write_tiny_gguf
from tests.need import need


@dataclass
class ListServer:
    """A server of JSON over a real socket. Used as a context manager.

    pages: path to (status, body); anything else is 404.   named: its Server header.
    pace:  seconds between the bytes of an answer.          silent: takes the question, and says nothing.
    """

    pages: dict[str, tuple[int, Any]] = field(default_factory=dict)
    named: str = "nginx"
    pace: float = 0.0
    silent: bool = False
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)

    def __enter__(self) -> ListServer:
        served = self
        self.closing = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.seen.append((self.command, self.path, self.headers.get("Authorization")))
                try:
                    served.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if self.silent:
            self.closing.wait(20)
            return
        status, said = self.pages.get(handler.path, (404, {"error": "not found"}))
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        head = (
            f"HTTP/1.1 {status} X\r\nServer: {self.named}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        handler.close_connection = True
        if not self.pace:
            handler.wfile.write(head.encode() + body)
        for byte in head.encode() + body if self.pace else b"":
            handler.wfile.write(bytes([byte]))
            if self.closing.wait(self.pace):
                return


def ollama(*names: str, **details: Any) -> ListServer:
    models = [{"name": name, "model": name, "digest": "365c0bd3c000", "details": {"family": "llama"}} for name in names]
    for model in models:
        model["details"] = {"family": details.get(str(model["name"]).split(":")[0], "llama")}
    return ListServer({"/api/tags": (200, {"models": models})})


def llama_cpp(*names: str) -> ListServer:
    data = [{"id": name, "object": "model", "owned_by": "llamacpp"} for name in names]
    return ListServer({"/v1/models": (200, {"object": "list", "data": data})}, named="llama.cpp")


def closed_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Told(list[str]):
    """What was said, and what was asked; answers each question with `answer`."""

    def __init__(self, answer: bool = True) -> None:
        self.questions: list[str] = []
        self.answer = answer

    def ask(self, question: str) -> bool:
        self.questions.append(question)
        return self.answer


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment that names nothing, on a machine where no model server runs."""
    monkeypatch.setattr(servers, "_LLAMA_CPP_PORT", closed_port())
    caches = {"MOTAMOT_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hub")}
    return {**caches, "OLLAMA_HOST": f"127.0.0.1:{closed_port()}"}


def choose(wanted: Wanted, environ: dict[str, str], **more: Any) -> Choice:
    return resolve(wanted, ask=None, say=lambda _: None, environ=environ, **more)


def http(choice: Choice) -> HttpModel:
    model = choice.make()
    assert isinstance(model, HttpModel)
    assert model.name == choice.name
    return model


def key_of(choice: Choice) -> str | None:
    return http(choice)._headers.get("Authorization")


# 1. The settings ----------------------------------------------------------------------------------------------------


def test_the_settings_upstream_comes_before_everything_else(environ: dict[str, str]) -> None:
    environ |= {"OPENAI_BASE_URL": "http://elsewhere.example", "AI_URL": "http://other.example"}
    wanted = Wanted(upstream="http://models.example/v1", model="a", api_key="k", recorded=("x",), fallback="recorded")
    choice = choose(wanted, environ)
    assert http(choice).url == "http://models.example/v1/chat/completions"
    assert key_of(choice) == "Bearer k"
    assert choice.why == "a at http://models.example/v1, as the settings say"
    assert choice.labels == ()


def test_further_settings_reach_the_client(environ: dict[str, str]) -> None:
    wanted = Wanted(upstream="http://m.example", model="a", http={"token_field": "max_completion_tokens"})
    assert http(choose(wanted, environ))._token_field == "max_completion_tokens"


def test_settings_that_cannot_work_are_told_when_the_choice_is_made(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="token_field"):
        choose(Wanted(upstream="http://m.example", model="a", http={"token_field": "tokens"}), environ)
    with pytest.raises(SettingsError, match="address"):
        choose(Wanted(upstream="m.example", model="a"), environ)


def test_an_upstream_without_a_model_is_asked_for_its_first(environ: dict[str, str]) -> None:
    with llama_cpp("one", "two") as server:
        choice = choose(Wanted(upstream=server.url, api_key="k"), environ)
        assert choice.name == "one"
        assert "the first model that it lists" in choice.why
        assert server.seen == [("GET", "/v1/models", "Bearer k")]


def test_an_upstream_with_a_model_is_asked_for_nothing(environ: dict[str, str]) -> None:
    with llama_cpp("one", "two") as server:
        assert choose(Wanted(upstream=server.url, model="three"), environ).name == "three"
        assert choose(Wanted(upstream=server.url), environ | {"OPENAI_MODEL": "four"}).name == "four"
        assert server.seen == []


def test_an_upstream_that_lists_nothing_wants_a_name(environ: dict[str, str]) -> None:
    with llama_cpp() as server, pytest.raises(SettingsError, match="say which one"):
        choose(Wanted(upstream=server.url), environ)


def test_a_key_of_the_environment_goes_to_its_own_server_only(environ: dict[str, str]) -> None:
    environ["OPENAI_API_KEY"] = "secret"
    assert key_of(choose(Wanted(upstream="http://m.example", model="a"), environ)) is None
    assert key_of(choose(Wanted(upstream="https://api.openai.com", model="a"), environ)) == "Bearer secret"
    assert key_of(choose(Wanted(upstream="http://api.openai.com/v1", model="a"), environ)) is None
    environ["OPENAI_BASE_URL"] = "http://m.example/v1"
    assert key_of(choose(Wanted(upstream="http://m.example", model="a"), environ)) == "Bearer secret"
    environ["OPENAI_BASE_URL"] = "not an address"
    assert key_of(choose(Wanted(upstream="http://m.example", model="a"), environ)) is None


def test_a_choice_never_shows_the_key(environ: dict[str, str]) -> None:
    wanted = Wanted(upstream="http://m.example/v1?api-key=hidden", model="a", api_key="secret")
    choice = choose(wanted, environ)
    assert "hidden" not in choice.why
    assert "secret" not in choice.why + repr(wanted) + repr(http(choice))


def test_a_choice_says_who_named_the_source(environ: dict[str, str], gguf: Path) -> None:
    address = "http://m.example"
    assert choose(Wanted(upstream=address, model="a", said_by="--upstream"), environ).why.endswith("as --upstream says")
    assert choose(Wanted(gguf=gguf, said_by="--gguf"), environ).why.endswith("as --gguf says")
    samples = choose(Wanted(recorded=("Hello.",), said_by="--recorded"), environ)
    assert samples.why == "recorded samples, because --recorded asks for them"


def test_recorded_samples_answer_when_asked_for(environ: dict[str, str]) -> None:
    choice = choose(Wanted(recorded=("Hello.",)), environ | {"OPENAI_API_KEY": "k"})
    model = choice.make()
    assert isinstance(model, RecordedModel)
    assert model.samples == ("Hello.",)
    assert choice.labels == ("recorded",)
    assert choice.why == "recorded samples, because the settings ask for them"


def test_recorded_samples_stand_in_when_no_model_can_be_had_and_say_why(environ: dict[str, str]) -> None:
    told = Told()
    wanted = Wanted(recorded=("Hello.",), fallback="recorded")
    choice = resolve(wanted, ask=None, say=told.append, environ=environ, embedded=False)
    model = choice.make()
    assert isinstance(model, RecordedModel)
    assert "There is no model to ask." in model.reason
    assert choice.why.startswith("recorded samples, because there is no model to ask")
    assert "There is no model to ask." in told[0]


# 2. The environment -------------------------------------------------------------------------------------------------


def test_a_key_alone_means_openai_and_a_documented_model(environ: dict[str, str]) -> None:
    choice = choose(Wanted(), environ | {"OPENAI_API_KEY": "k", "AI_URL": "http://other.example"})
    assert http(choice).url == "https://api.openai.com/v1/chat/completions"
    assert key_of(choice) == "Bearer k"
    assert choice.name == OPENAI_MODEL
    assert "OPENAI_MODEL" in choice.why
    assert f"`{OPENAI_MODEL}`" in (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def test_the_environment_names_server_key_and_model(environ: dict[str, str]) -> None:
    environ |= {"OPENAI_BASE_URL": "http://m.example/api", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "a"}
    choice = choose(Wanted(), environ)
    assert http(choice).url == "http://m.example/api/chat/completions"
    assert (key_of(choice), choice.name) == ("Bearer k", "a")
    assert "because OPENAI_BASE_URL is set" in choice.why
    assert choose(Wanted(model="b", api_key="other"), environ).name == "b"
    assert key_of(choose(Wanted(model="b", api_key="other"), environ)) == "Bearer other"


def test_ai_url_is_an_address_without_a_key(environ: dict[str, str]) -> None:
    with llama_cpp("lab") as server:
        choice = choose(Wanted(), environ | {"AI_URL": f"http://127.0.0.1:{server.port}"})
        assert http(choice).url == f"{server.url}/chat/completions"
        assert (key_of(choice), choice.name) == (None, "lab")
        assert "because AI_URL is set" in choice.why


def test_empty_variables_are_none(environ: dict[str, str]) -> None:
    environ |= {"OPENAI_BASE_URL": "", "OPENAI_API_KEY": "", "OPENAI_MODEL": "", "AI_URL": ""}
    with pytest.raises(ModelUnavailable) as caught:
        choose(Wanted(), environ, embedded=False)
    assert caught.value.reason == "none"


# 3. Servers on this machine -----------------------------------------------------------------------------------------


def test_ollama_answers_with_its_first_model_that_chats(environ: dict[str, str]) -> None:
    with ollama("nomic-embed-text:latest", "minilm:latest", "llama3.2:latest", "qwen:7b", minilm="bert") as server:
        environ["OLLAMA_HOST"] = f"127.0.0.1:{server.port}"
        choice = choose(Wanted(), environ)
        assert choice.name == "llama3.2:latest"
        assert http(choice).url == f"{server.url}/chat/completions"
        expected = f"llama3.2:latest from Ollama, which runs at {server.url}; the first of 2, another: --model"
        assert choice.why == expected
        assert choose(Wanted(model="qwen:7b"), environ).name == "qwen:7b"
        assert choose(Wanted(model="llama3.2"), environ).name == "llama3.2:latest"
        assert {(method, path) for method, path, _ in server.seen} == {("GET", "/api/tags")}


def test_an_ollama_without_models_says_how_to_get_one(environ: dict[str, str]) -> None:
    told = Told()
    with ollama() as server, pytest.raises(ModelUnavailable):
        environ["OLLAMA_HOST"] = f"http://127.0.0.1:{server.port}/"
        resolve(Wanted(), ask=None, say=told.append, environ=environ, embedded=False)
    assert "ollama pull" in told[0]


def test_a_llama_cpp_server_is_found_after_ollama(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with llama_cpp("model.gguf") as server:
        monkeypatch.setattr(servers, "_LLAMA_CPP_PORT", server.port)
        choice = choose(Wanted(), environ)
        assert choice.name == "model.gguf"
        assert "from llama.cpp" in choice.why
        with ollama("llama3.2:latest") as first:
            environ["OLLAMA_HOST"] = f"127.0.0.1:{first.port}"
            assert choose(Wanted(), environ).name == "llama3.2:latest"
            assert choose(Wanted(model="model.gguf"), environ).name == "model.gguf"


def test_a_llama_cpp_server_that_wants_a_key_is_told(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    locked = ListServer({"/v1/models": (401, {"error": {"message": "Invalid API Key"}})}, named="llama.cpp")
    with locked as server:
        monkeypatch.setattr(servers, "_LLAMA_CPP_PORT", server.port)
        with pytest.raises(ModelUnavailable):
            resolve(Wanted(), ask=None, say=told.append, environ=environ, embedded=False)
    assert "wants a key" in told[0]


SOMEBODY_ELSE: dict[str, ListServer] = {
    "a web page": ListServer({"/api/tags": (200, b"<html>hello</html>"), "/v1/models": (200, b"<html>hello</html>")}),
    "a blog with tags": ListServer({"/api/tags": (200, {"tags": ["python"]}), "/v1/models": (200, ["a"])}),
    "a shop with models": ListServer({"/v1/models": (200, {"data": [{"id": "sofa", "owned_by": "shop"}]})}),
    "models without digests": ListServer({"/api/tags": (200, {"models": [{"name": "sofa"}]})}),
    "names that are none": ListServer({"/api/tags": (200, {"models": [{"name": 7, "digest": "x"}, None]})}),
    "not found": ListServer(),
    "an error": ListServer({"/api/tags": (500, {"models": []}), "/v1/models": (500, {"data": []})}, named="llama.cpp"),
    "deep JSON": ListServer({"/api/tags": (200, b"[" * 200_000), "/v1/models": (200, b'{"data":' * 100_000)}),
    "five megabytes": ListServer({"/api/tags": (200, b" " * 5_000_000), "/v1/models": (200, b" " * 5_000_000)}),
    "not UTF-8": ListServer({"/api/tags": (200, b'{"models":["\xff"]}'), "/v1/models": (200, b"\xff\xfe")}),
    "silence": ListServer(silent=True),
    "a trickle": ListServer({"/api/tags": (200, {"models": []}), "/v1/models": (200, {"data": []})}, pace=0.1),
}


@pytest.mark.parametrize("who", SOMEBODY_ELSE)
def test_another_server_on_these_ports_is_left_alone(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    with replace(SOMEBODY_ELSE[who], seen=[]) as server:
        monkeypatch.setattr(servers, "_LLAMA_CPP_PORT", server.port)
        before = threading.active_count()
        began = time.monotonic()
        assert find_servers(environ | {"OLLAMA_HOST": f"127.0.0.1:{server.port}"}) == []
        assert time.monotonic() - began < servers.PROBE_SECONDS + 0.3
        assert {method for method, _, _ in server.seen} == {"GET"}
        server.closing.set()
        wait_until(lambda: threading.active_count() <= before)


def wait_until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("", ("127.0.0.1", 11434)),
        ("0.0.0.0", ("127.0.0.1", 11434)),
        ("0.0.0.0:8000", ("127.0.0.1", 8000)),
        (":8000", ("127.0.0.1", 8000)),
        ("box", ("box", 11434)),
        ("http://box:80/", ("box", 80)),
        ("[::1]:8000", ("::1", 8000)),
        ("[::]", ("127.0.0.1", 11434)),
        ("'box:1'", ("box", 1)),
        ("box:seventy", ("127.0.0.1", 11434)),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(value: str, place: tuple[str, int]) -> None:
    assert servers._ollama_place(value) == place


def test_an_unknown_model_is_told_with_what_is_there(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with ollama("llama3.2:latest", "qwen:7b") as one, llama_cpp(*(f"m{n}" for n in range(20))) as two:
        monkeypatch.setattr(servers, "_LLAMA_CPP_PORT", two.port)
        environ["OLLAMA_HOST"] = f"127.0.0.1:{one.port}"
        with pytest.raises(SettingsError) as caught:
            choose(Wanted(model="gemma"), environ)
    said = caught.value.message
    assert said.startswith(
        "no model 'gemma' is on this machine: Ollama has llama3.2:latest, qwen:7b; llama.cpp has m0, "
    )
    assert "m11 and 8 more" in said
    assert "m12" not in said
    assert "qwen2.5-coder-1.5b-instruct" in said
    with pytest.raises(SettingsError, match="no model server runs here"):
        choose(Wanted(model="gemma"), environ | {"OLLAMA_HOST": "127.0.0.1:1"}, embedded=False)


SERVER = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port, params.n_ctx, params.ui = ["127.0.0.1"], 0, 512, False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        local.check_runtime()
    except ModelUnavailable as missing:
        need(False, f"the part that runs a GGUF file ({missing.message})")
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def real_server(gguf: Path) -> Iterator[str]:
    """A llama.cpp server as somebody else runs it: without a key."""
    command = [sys.executable, "-c", SERVER, str(gguf)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    with process.stdout, process.stdin:
        yield process.stdout.readline().strip()
        process.kill()
    process.wait()


def test_a_real_llama_cpp_server_is_found_and_answers(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, real_server: str
) -> None:
    monkeypatch.setattr(servers, "_LLAMA_CPP_PORT", int(real_server.rsplit(":", 1)[1]))
    choice = choose(Wanted(), environ)
    assert choice.name == "tiny.gguf"

    async def main() -> None:
        model = choice.make()
        request = TurnRequest(messages=[Message(role="user", content="hello")], max_tokens=5)
        turn = await model.attempt(request).run(lambda _: None)
        await model.close()
        assert turn.text
        assert turn.error is None

    asyncio.run(main())


def test_in_python_the_environment_or_a_server_answers_and_nothing_is_downloaded(
    environ: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", "motamot.model")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "AI_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    chat = Assistant()
    with ollama("llama3.2:latest") as server, monkeypatch.context() as here:
        here.setenv("OLLAMA_HOST", f"127.0.0.1:{server.port}")
        model = chat._model()
        assert model is not None and model.name == "llama3.2:latest"
    assert "from Ollama" in caplog.text
    with monkeypatch.context() as here:
        here.setenv("OPENAI_API_KEY", "k")
        model = chat._model()
        assert model is not None and model.name == OPENAI_MODEL
    with pytest.raises(ModelUnavailable, match="Set OPENAI_API_KEY"):
        chat._model()


# The list of a server's models --------------------------------------------------------------------------------------


def test_a_list_of_models_is_read_beside_the_chat_completions() -> None:
    with ListServer({"/openai/v1/models?v=1": (200, {"data": [{"id": "a"}, {"id": "b"}]})}) as server:
        base = f"http://127.0.0.1:{server.port}/openai/v1"
        assert list_models(f"{base}?v=1", api_key="k") == ["a", "b"]
        assert list_models(f"{base}/chat/completions?v=1", headers={"X-Key": "1"}) == ["a", "b"]
        assert server.seen[0] == ("GET", "/openai/v1/models?v=1", "Bearer k")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {}), "the key was not accepted. Give the right key: --api-key-file, --api-key-env, or OPENAI_API_KEY"),
        ((403, {}), "the key was not accepted. Give the right key"),
        ((404, {}), "it answered HTTP 404. Say which model is wanted"),
        ((302, {}), "it answered HTTP 302"),
        ((200, b"<html>"), "no list of models"),
        ((200, {"data": "x"}), "no list of models"),
        ((200, b" " * 5_000_000), "more than 4 MB"),
    ],
)
def test_a_server_without_a_list_is_a_sentence(answer: tuple[int, Any], said: str) -> None:
    with ListServer({"/v1/models": answer}) as server, pytest.raises(ModelUnavailable, match=said) as caught:
        list_models(server.url, api_key="secret-key")
    assert caught.value.reason == "unreachable"
    assert "secret" not in caught.value.message + (caught.value.detail or "")


def test_nobody_at_the_address_is_a_sentence() -> None:
    with pytest.raises(
        ModelUnavailable, match=r"http://127\.0\.0\.1:\d+ could not be asked .*refused\. See that the server runs"
    ):
        list_models(f"http://127.0.0.1:{closed_port()}")


@pytest.mark.parametrize("server", [ListServer(silent=True), ListServer(pace=0.05)], ids=["silent", "a trickle"])
def test_a_list_is_not_waited_for_without_end(server: ListServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LIST_SECONDS", 0.4)
    began = time.monotonic()
    with server, pytest.raises(ModelUnavailable, match=r"timed out|within 0\.4 s"):
        list_models(server.url)
    assert time.monotonic() - began < 1.5


def test_a_list_of_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with ListServer() as proxy, llama_cpp("a") as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert list_models(server.url) == ["a"]
        assert proxy.seen == []


def test_a_proxy_that_was_given_is_used() -> None:
    with ListServer({"http://m.example/v1/models": (200, {"data": [{"id": "a"}]})}) as proxy:
        assert list_models("http://m.example", proxy=f"http://127.0.0.1:{proxy.port}") == ["a"]


def test_certificate_authorities_that_cannot_be_read_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        list_models("https://m.example", ca_file=tmp_path / "none.pem")


# 4. The embedded model ----------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, PackagedModel]:
    """The default model and the packaged one are the tiny one here, from a stand-in hub and a folder of wheels."""
    content = gguf.read_bytes()
    default = hub_model(content, name="tiny-default")
    other = content + b"\0" * 32
    packaged = PackagedModel(
        name="tiny-packaged",
        title="Tiny-Packaged (Q4)",
        file="tiny-packaged.gguf",
        size=len(other),
        sha256=hashlib.sha256(other).hexdigest(),
        maker="Nobody",
        licence="Apache-2.0",
        marks=("test_model",),
        package="tiny-model-for-tests",
        version="0.1.2",
        module="tiny_model_for_tests",
        wheel_size=len(other),
        system="Say little.",
        max_tokens=30,
    )
    for name, value in (("DEFAULT", default), ("PACKAGED", packaged)):
        monkeypatch.setattr(sources, name, value)
    monkeypatch.setattr(sources, "KNOWN", {default.name: default, packaged.name: packaged})
    folder = tmp_path / "shelf"
    folder.mkdir()
    info = "tiny_model_for_tests-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "tiny_model_for_tests-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_model_for_tests/tiny-packaged.gguf", other)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model-for-tests\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return content, packaged


def test_the_embedded_model_is_offered_with_size_origin_and_licence(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel]
) -> None:
    told = Told()
    with StandInHub(shelf[0]) as server:
        choice = resolve(Wanted(), ask=told.ask, say=told.append, environ=environ, hub=server.url)
        (question,) = told.questions
        assert re.fullmatch(
            r"Tiny-Instruct \(Q4\), 0 MB to download from its maker's repository "
            r"huggingface\.co/nobody/Tiny-Instruct-GGUF; made by Nobody, licence Apache-2\.0\. Fetch it\?",
            question,
        )
        assert (choice.name, choice.labels) == ("tiny-default", ("demo_model",))
        expected = "Tiny-Instruct (Q4), on this machine, because no upstream, key or model server was found"
        assert choice.why == expected
        model = choice.make()
        assert isinstance(model, LocalModel)
        assert (model.name, model.marks) == ("tiny-default", ("demo_model",))
        assert choice.limits.history_tokens == local.LOCAL_CONTEXT // 2
        again = resolve(Wanted(), ask=None, say=told.append, environ=environ, hub=server.url)
        assert again.name == "tiny-default"
        assert len(told.questions) == 1
        assert len(server.downloads) == 1


def test_a_no_is_respected(environ: dict[str, str], shelf: tuple[bytes, PackagedModel]) -> None:
    told = Told(answer=False)
    with StandInHub(shelf[0]) as server:
        with pytest.raises(ModelUnavailable, match="Set OPENAI_API_KEY") as caught:
            resolve(Wanted(local=True), ask=told.ask, say=told.append, environ=environ, hub=server.url)
        assert server.seen == []
    assert "smaller" not in caught.value.message  # there is none here
    assert caught.value.reason == "refused"
    assert len(told.questions) == 1


@pytest.mark.parametrize("answer", [False, None])
def test_a_no_to_a_large_download_names_the_smaller_ones(environ: dict[str, str], answer: bool | None) -> None:
    local.check_runtime()
    ask = None if answer is None else Told(answer).ask
    with pytest.raises(ModelUnavailable) as caught:
        resolve(Wanted(local=True), ask=ask, say=print, environ=environ)
    expected = (
        "A smaller model: --local --model smollm2-135m-instruct (93 MB to download, to try things out and for nothing "
        "else) or --local --model qwen2.5-coder-0.5b-instruct (491 MB)."
    )
    assert expected in caught.value.message


def test_a_missing_model_file_is_told_before_a_missing_part(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModelUnavailable, match="cannot be read: No such file"):
        choose(Wanted(gguf=tmp_path / "none.gguf"), environ)


def test_where_nobody_can_be_asked_it_says_what_it_would_do(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel]
) -> None:
    with StandInHub(shelf[0]) as server:
        with pytest.raises(ModelUnavailable, match=r"0 MB to download from .* --yes allows it") as caught:
            choose(Wanted(), environ, hub=server.url)
        assert server.seen == []
    assert caught.value.reason == "refused"


def test_with_consent_given_beforehand_it_tells_and_goes_on(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel]
) -> None:
    told = Told()
    with StandInHub(shelf[0]) as server:
        choice = resolve(Wanted(), ask=None, say=told.append, environ=environ, proceed=True, hub=server.url)
    assert choice.name == "tiny-default"
    assert "licence Apache-2.0." in told[0]


@pytest.mark.parametrize("fault", ["unreachable", "damaged"])
def test_where_the_makers_repository_fails_it_says_so_and_offers_the_packaged_test_model(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel], fault: str
) -> None:
    told = Told()
    server = StandInHub(shelf[0], status=503) if fault == "unreachable" else StandInHub(shelf[0], linked="0" * 64)
    with server:
        choice = resolve(Wanted(), ask=told.ask, say=told.append, environ=environ, hub=server.url)
    assert [("Tiny-Instruct" in question, "Tiny-Packaged" in question) for question in told.questions] == [
        (True, False),
        (False, True),
    ]
    assert ("cannot be fetched" if fault == "unreachable" else "another file") in told[0]
    assert "for nothing else" in told[1]
    assert (choice.name, choice.labels) == ("tiny-packaged", ("test_model",))
    assert choice.make().marks == ("test_model",)


def test_a_model_named_by_the_user_is_not_replaced_by_another(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel]
) -> None:
    with StandInHub(shelf[0], status=503) as server, pytest.raises(ModelUnavailable, match="HTTP 503"):
        choose(Wanted(local=True, model="tiny-default"), environ, proceed=True, hub=server.url)


def test_an_embedded_model_can_be_named(environ: dict[str, str], shelf: tuple[bytes, PackagedModel]) -> None:
    choice = choose(Wanted(model="tiny-packaged"), environ, proceed=True)
    assert (choice.name, choice.labels) == ("tiny-packaged", ("test_model",))
    assert (cache_folder(environ) / "tiny-packaged.gguf").exists()
    with pytest.raises(SettingsError, match="there is no embedded model 'gemma', only tiny-default, tiny-packaged"):
        choose(Wanted(local=True, model="gemma"), environ)


def test_an_embedded_model_gets_what_suits_it_where_the_assistant_says_nothing(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel]
) -> None:
    def assistant(**said: Any) -> Assistant:
        settings = Settings(assistants={"a": AssistantSettings(local=True, model="tiny-packaged", **said)})
        return assistant_from(settings, proceed=True, environ=environ)

    plain = assistant()
    assert plain.system == "Say little."
    assert plain.extra == {"temperature": 0.1, "repeat_penalty": 1.1}
    assert plain.limits.max_tokens == 30

    own = assistant(system="Say much.", extra={"temperature": 1.0}, limits={"max_tokens": 200})
    assert own.system == "Say much."
    assert own.extra == {"temperature": 1.0, "repeat_penalty": 1.1}
    assert own.limits.max_tokens == 200
    assert assistant(system="").system == ""


def test_what_suits_an_embedded_model_reaches_it(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel], tmp_path: Path
) -> None:
    """The longer prompt is counted, and the answer, which by itself has no end, ends at its bound."""

    async def used(**said: Any) -> tuple[int, int]:
        of = AssistantSettings(local=True, model="tiny-packaged", **said)
        settings = Settings(assistants={"a": of}, store=StoreSettings(database=":memory:"))
        chat = await asyncio.to_thread(assistant_from, settings, proceed=True, environ=environ)
        async with chat, chat.ask("hello") as answer:
            async for _ in answer:
                pass
            return answer.usage.prompt_tokens, answer.usage.completion_tokens

    with_system, generated = asyncio.run(used(extra={"ignore_eos": True}))
    without, _ = asyncio.run(used(system="", extra={"ignore_eos": True}))
    assert with_system > without > 0
    assert generated == 30


def test_a_model_file_of_the_users_own_gets_nothing_added(environ: dict[str, str], gguf: Path) -> None:
    choice = choose(Wanted(gguf=gguf), environ)
    assert (choice.system, choice.extra) == (None, {})


def test_a_disk_problem_is_not_answered_with_another_download(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("no folder")
    with pytest.raises(ModelUnavailable) as caught:
        choose(Wanted(), environ, proceed=True)
    assert caught.value.reason == "disk"


def test_without_the_local_part_nothing_is_downloaded(
    environ: dict[str, str], shelf: tuple[bytes, PackagedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with StandInHub(shelf[0]) as server:
        with pytest.raises(ModelUnavailable, match=re.escape("pip install 'motamot[local]'")) as caught:
            choose(Wanted(), environ, proceed=True, hub=server.url)
        assert server.seen == []
    assert "Set OPENAI_API_KEY" in caught.value.message


def test_any_gguf_file_answers_under_its_own_name(environ: dict[str, str], gguf: Path) -> None:
    choice = choose(Wanted(gguf=str(gguf), limits=Limits(max_tokens=7)), environ | {"OPENAI_API_KEY": "k"})
    assert (choice.name, choice.labels, choice.limits.max_tokens) == ("tiny", (), 7)
    assert choice.why == "tiny.gguf, on this machine, as the settings say"
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        choose(Wanted(gguf=gguf.with_name("none.gguf")), environ)


def test_the_known_models_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "local-model.md").read_text("utf-8")
    for model in known.KNOWN.values():
        assert model.name in page
        assert model.sha256 in page
        assert f"{model.size:,}" in page
