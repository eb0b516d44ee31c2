"""Model servers that are there already: which models one has, and which ones run on this machine.

Only harmless GETs are made, of lists. What answers is taken for a stranger until it has shown what it is.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import motamot
from motamot.errors import ModelUnavailable, SettingsError
from motamot.model.request import check_headers, endpoint

__all__ = ["LIST_SECONDS", "PROBE_SECONDS", "Server", "find_servers", "list_models"]

PROBE_SECONDS = 0.5  # looking around on this machine, in all
LIST_SECONDS = 10.0  # asking one server, that somebody named, for its models
_LIST_BYTES = 4_000_000  # the longest list seen (a gateway to 400 models) has 1.5 MB
_WRONG_KEY = "the key was not accepted. Give the right key: --api-key-file, --api-key-env, or OPENAI_API_KEY."
_NAME_ONE = "Say which model is wanted (--model, OPENAI_MODEL), or correct the address."
_NOT_THERE = "See that the server runs, and that this is its address; or say which model is wanted (--model)."
_NAMES = 1_000
_NAME_CHARS = 200
_OLLAMA_PORT = 11434
_LLAMA_CPP_PORT = 8080


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A model server that was found. kind: `Ollama` or `llama.cpp`.

    url:     what it speaks chat completions at.    models: that can chat, as it lists them.
    problem: why it is of no use, as a sentence; None: it is of use.
    """

    kind: str
    url: str
    models: tuple[str, ...] = ()
    problem: str | None = None

    def named(self, model: str) -> str | None:
        """The listed name that `model` means: Ollama takes `llama3.2` for `llama3.2:latest`."""
        return next((name for name in self.models if name in (model, f"{model}:latest")), None)


def find_servers(environ: Mapping[str, str] = os.environ) -> list[Server]:
    """The Ollama and llama.cpp servers on this machine, in this order, within `PROBE_SECONDS`. Blocks so long.

    environ: `OLLAMA_HOST` says where Ollama listens, as Ollama's own client reads it.
    """
    host, port = _ollama_place(environ.get("OLLAMA_HOST", ""))
    probes = [
        _Probe("Ollama", host, port, "/api/tags"),
        _Probe("llama.cpp", "127.0.0.1", _LLAMA_CPP_PORT, "/v1/models"),
    ]
    deadline = time.monotonic() + PROBE_SECONDS
    for probe in probes:
        probe.start(deadline)
    found = [probe.finish(deadline) for probe in probes]
    return [server for server in found if server is not None]


def list_models(
    url: str,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
    ca_file: str | Path | None = None,
) -> list[str]:
    """The names of the models that the server at `url` lists. Blocks, at most about `LIST_SECONDS`.

    url:     as `motamot.model.request.endpoint` takes it; the list is beside its chat completions, at `/models`.
    proxy:   None: the environment's, but never for this machine.
    Returns: at most 1,000 names, as the server orders them; none that are no names.
    Raises:  SettingsError for an address or header that cannot be used; ModelUnavailable (`unreachable`) where the
             server cannot be asked, or says no, or answers something else than a list of models.
    Source:  OpenAI API reference, "List models".
    """
    parts = urlsplit(endpoint(url))
    address = urlunsplit(parts._replace(path=parts.path.removesuffix("/chat/completions") + "/models"))
    sent = {"Accept": "application/json", "User-Agent": f"motamot/{motamot.__version__}", **(headers or {})}
    if api_key:
        sent["Authorization"] = f"Bearer {api_key}"
    check_headers({name: value for name, value in sent.items() if name not in ("Accept", "User-Agent")})
    opener = urllib.request.build_opener(*_handlers(parts.hostname or "", proxy, ca_file), _NoRedirects)
    request = urllib.request.Request(address, headers=sent)  # noqa: S310 - http or https: `endpoint` has checked
    answer = _in_time(lambda: _asked(opener, request), LIST_SECONDS)
    if isinstance(answer, list):
        return answer
    raise ModelUnavailable(
        f"{parts.scheme}://{parts.netloc} could not be asked for its models: {answer}",
        reason="unreachable",
        detail=address,
    )


def _asked(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> list[str] | str:
    """The names in the answer, or why there are none and what can be done, from the middle of a sentence on."""
    deadline = time.monotonic() + LIST_SECONDS
    try:
        with opener.open(request, timeout=LIST_SECONDS) as response:
            names = _names(_decoded(_read(response, deadline)), "data", "id")
    except urllib.error.HTTPError as answer:
        with answer:
            return _WRONG_KEY if answer.code in (401, 403) else f"it answered HTTP {answer.code}. {_NAME_ONE}"
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        why = getattr(reason, "verify_message", None) or str(reason) or type(reason).__name__
        return f"{why}. {_NOT_THERE}"
    return f"what it answered is no list of models. {_NAME_ONE}" if names is None else names


def _in_time(ask: Callable[[], list[str] | str], seconds: float) -> list[str] | str:
    """What `ask` gives, waited for no longer than so: a server may send its head a byte at a time, for ever."""
    given: list[list[str] | str] = []
    thread = threading.Thread(target=lambda: given.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return given[0] if given else f"it did not answer within {seconds:g} s. {_NOT_THERE}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is taken nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _handlers(host: str, proxy: str | None, ca_file: str | Path | None) -> list[urllib.request.BaseHandler]:
    proxies = {"http": proxy, "https": proxy} if proxy else {} if _is_loopback(host) else None
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler(proxies)]
    if ca_file is not None:
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as problem:
            raise SettingsError(f"the certificate authorities in {ca_file} cannot be read: {problem}") from problem
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return handlers


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _Probe:
    """One GET to one port of this machine, in a thread of its own that ends with the time."""

    def __init__(self, kind: str, host: str, port: int, path: str) -> None:
        self._kind = kind
        self._connection = http.client.HTTPConnection(host, port)
        self._path = path
        self._url = f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._deadline = 0.0

    def start(self, deadline: float) -> None:
        self._deadline = deadline
        self._connection.timeout = PROBE_SECONDS
        self._thread.start()

    def finish(self, deadline: float) -> Server | None:
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            # A server that trickles would hold the thread; a name that does not resolve holds it without a socket.
            if (open_socket := self._connection.sock) is not None:
                _shut(open_socket)
            return None
        return self._server

    def _run(self) -> None:
        try:
            self._connection.request("GET", self._path, headers={"Accept": "application/json"})
            response = self._connection.getresponse()
            server = response.headers.get("Server", "")
            self._server = self._judge(response.status, server, _decoded(_read(response, self._deadline)))
        except (OSError, http.client.HTTPException, UnicodeError):
            pass  # nobody, or nobody we know
        finally:
            self._connection.close()

    def _judge(self, status: int, server: str, said: Any) -> Server | None:
        if self._kind == "Ollama":
            return self._judge_ollama(status, said)
        if status == 401 and server == "llama.cpp":
            problem = f"A llama.cpp server runs at {self._url}, but wants a key: name it with --upstream and its key."
            return Server(kind=self._kind, url=self._url, problem=problem)
        names = _names(said, "data", "id")
        owner = said["data"][0].get("owned_by") if names and isinstance(said["data"][0], dict) else None
        if status != 200 or not names or (server != "llama.cpp" and owner != "llamacpp"):
            return None
        return Server(kind=self._kind, url=self._url, models=tuple(map(_without_folder, names)))

    def _judge_ollama(self, status: int, said: Any) -> Server | None:
        # Ollama API, "List local models": each has a name, a digest and details.
        names = _names(said, "models", "name", also="digest")
        if status != 200 or names is None:
            return None
        chatting = tuple(name for name in names if not _only_embeds(name, said["models"]))
        problem = None
        if not chatting:
            problem = "Ollama runs on this machine but holds no model that chats: `ollama pull llama3.2` brings one."
        return Server(kind=self._kind, url=self._url, models=chatting, problem=problem)


def _without_folder(name: str) -> str:
    """A llama.cpp server may list the path of its file. It takes any name, and visitors need not see folders."""
    path = PurePath(name)
    return path.name if path.is_absolute() and path.suffix == ".gguf" else name


def _only_embeds(name: str, listed: list[dict[str, Any]]) -> bool:
    """Whether an Ollama model makes embeddings and no text: such a one answers no chat."""
    details = next((item.get("details") for item in listed if item.get("name") == name), None)
    family = details.get("family") if isinstance(details, dict) else None
    return "embed" in name or (isinstance(family, str) and "bert" in family)


def _names(said: Any, key: str, name: str, also: str | None = None) -> list[str] | None:
    """The names in a list of models; None where it is no such list."""
    items = said.get(key) if isinstance(said, dict) else None
    if not isinstance(items, list):
        return None
    if also is not None and not all(isinstance(item, dict) and isinstance(item.get(also), str) for item in items):
        return None
    names = (item.get(name) for item in items[:_NAMES] if isinstance(item, dict))
    return [told for told in names if isinstance(told, str) and 0 < len(told) <= _NAME_CHARS and told.isprintable()]


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, which has to come in time and to be of a sensible size. Raises OSError where it does not."""
    body = b""
    while chunk := response.read1(65_536):
        body += chunk
        if len(body) > _LIST_BYTES:
            raise OSError(f"it answered more than {_LIST_BYTES / 1e6:g} MB")
        if time.monotonic() > deadline:
            raise TimeoutError("it did not answer in time")
    return body


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _shut(open_socket: socket.socket) -> None:
    with suppress(OSError):  # the other side was faster
        open_socket.shutdown(socket.SHUT_RDWR)


def _ollama_place(value: str) -> tuple[str, int]:
    """Host and port from OLLAMA_HOST: `host`, `host:port` or `:port`, with or without a scheme.

    It also says what Ollama's server listens on: 0.0.0.0 is then reached on this machine.
    """
    value = value.strip().strip("\"'")
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host in (None, "", "0.0.0.0", "::", "localhost"):  # noqa: S104 - compared, not bound to
        host = "127.0.0.1"
    return host or "127.0.0.1", port or _OLLAMA_PORT
