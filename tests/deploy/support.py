"""Real proxies with the files of deploy/ in front of a real `motamot serve`, and clients from several addresses."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import trustme
from aiohttp.abc import AbstractResolver, ResolveResult

from motamot.scripted import ScriptedModel
from motamot.sse import Decoder
from tests.need import need
from tests.server.support import OPERATOR_KEY, V1_KEY, Process, free_port, serve_process, upstream

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NAME = "chat.example"  # as the files say
_PATH = os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin"  # where Debian keeps servers
_STARTED_SECONDS = 15.0

__all__ = [
    "DEPLOY",
    "FRONTS",
    "NAME",
    "ROOT",
    "Front",
    "House",
    "Reading",
    "caddy",
    "caddy_prefix",
    "house",
    "nginx",
    "nginx_at",
    "nginx_plain",
    "nginx_prefix",
    "program",
]


def program(name: str) -> str:
    """Where a program is."""
    found = shutil.which(name, path=_PATH)
    need(found, f"{name}: apt-get install {name}, or make system")
    assert found is not None
    return found


class Authority:
    """Who signs the certificate of chat.example."""

    def __init__(self, folder: Path) -> None:
        ca = trustme.CA()
        issued = ca.issue_cert(NAME)
        self.chain, self.key, self.root = folder / "chain.pem", folder / "key.pem", folder / "root.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(self.chain)
        issued.private_key_pem.write_to_path(self.key)
        ca.cert_pem.write_to_path(self.root)

    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.root)


@dataclass
class Front:
    """A proxy that runs. logs: what it wrote, wherever."""

    url: str
    port: int
    root: Path | None = None  # the authority to trust, for https
    logs: Callable[[], str] = field(default=lambda: "")


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int, environment: Mapping[str, str]) -> Iterator[Path]:
    told = folder / "stderr.txt"
    with told.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, cwd=folder, env={**environment}
        )
        try:
            until = time.monotonic() + _STARTED_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    running = process.poll() is None and time.monotonic() < until
                    assert running, told.read_text("utf-8", "replace")
                    time.sleep(0.02)
            yield told
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# nginx


def _nginx_main(folder: Path, http: str) -> Path:
    """Debian's nginx.conf as far as it matters here, with all that is written under `folder`."""
    for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (folder / name).mkdir()
    lines = [f"{name}_temp_path {folder}/{where};" for name, where in _TEMPORARY.items()]
    main = folder / "main.conf"
    user = "user root root;\n" if os.geteuid() == 0 else ""  # pytest's folders are for nobody else
    main.write_text(
        f"{user}daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log {folder}/global.log;\n"
        f"events {{ worker_connections 512; }}\nhttp {{\ngzip on;\naccess_log {folder}/access.log;\n"
        + "\n".join(lines)
        + f"\n{http}\n}}\n"
    )
    return main


_TEMPORARY = {"client_body": "body", "proxy": "proxy", "fastcgi": "fastcgi", "uwsgi": "uwsgi", "scgi": "scgi"}


@contextmanager
def nginx_at(folder: Path, port: int, http: str, *, scheme: str = "http", root: Path | None = None) -> Iterator[Front]:
    """nginx with this in its `http` block, which listens on `port`."""
    command = program("nginx")
    folder.mkdir()
    main = _nginx_main(folder, http)
    line = [command, "-p", str(folder), "-c", str(main), "-e", str(folder / "start.log")]
    checked = subprocess.run([*line, "-t"], capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr or "http2" in checked.stderr, checked.stderr
    with _running(line, folder, port, {"PATH": _PATH}):
        host = NAME if scheme == "https" else "127.0.0.1"

        def logs() -> str:
            return "\n".join(
                path.read_text("utf-8", "replace")
                for path in sorted(folder.iterdir())
                if path.suffix in (".log", ".txt")
            )

        yield Front(f"{scheme}://{host}:{port}", port, root, logs)


def _with(text: str, **changes: str) -> str:
    """`text` with each of `changes` in it, which must be there: else a test would run something else."""
    for old, new in changes.items():
        assert old in text, f"{old!r} is not in the file any more"
        text = text.replace(old, new)
    return text


def snippet() -> str:
    return f"include {DEPLOY}/nginx-motamot.conf;"


@contextmanager
def nginx(folder: Path, backend: int) -> Iterator[Front]:
    """deploy/nginx.conf as it stands, but for addresses and folders of this machine."""
    folder.mkdir()
    authority = Authority(folder)
    port, plain = free_port(), free_port()
    logs = folder / "nginx"
    text = (DEPLOY / "nginx.conf").read_text()
    text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.MULTILINE)  # not every machine has IPv6
    text = _with(
        text,
        **{
            "listen 80;": f"listen {plain};",
            "listen 443 ": f"listen {port} ",
            f"/etc/letsencrypt/live/{NAME}/fullchain.pem": str(authority.chain),
            f"/etc/letsencrypt/live/{NAME}/privkey.pem": str(authority.key),
            "/var/log/nginx/": f"{logs}/",
            "127.0.0.1:8000": f"127.0.0.1:{backend}",
            "include snippets/motamot.conf;": snippet(),
        },
    )
    with nginx_at(logs, port, text, scheme="https", root=authority.root) as front:
        yield front


@contextmanager
def nginx_prefix(folder: Path, backend: int) -> Iterator[Front]:
    """deploy/nginx-prefix.conf in a site that is there already."""
    text = _with(
        (DEPLOY / "nginx-prefix.conf").read_text(),
        **{"127.0.0.1:8000": f"127.0.0.1:{backend}", "include snippets/motamot.conf;": snippet()},
    )
    port = free_port()
    site = f'server {{ listen 127.0.0.1:{port};\nlocation / {{ return 200 "the shop"; }}\n{text}\n}}'
    with nginx_at(folder, port, site) as front:
        yield front


@contextmanager
def nginx_plain(folder: Path, backend: int, *, settings: str = "") -> Iterator[Front]:
    """An nginx that nobody told of streams: as somebody's in front of one's own, or a hoster's."""
    port = free_port()
    site = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{backend}; {settings} }} }}"
    with nginx_at(folder, port, site) as front:
        yield front


# Caddy


@contextmanager
def _caddy(folder: Path, port: int, text: str, scheme: str, root: Path | None) -> Iterator[Front]:
    command = program("caddy")
    file = folder / "Caddyfile"
    # The administration's port and the store of certificates are the machine's: a test has its own.
    file.write_text(
        re.sub(r"^\{\n", "{\n\tadmin off\n\tauto_https disable_redirects\n", text, count=1, flags=re.MULTILINE)
    )
    environment = {"PATH": _PATH, "HOME": str(folder)}
    line = [command, "run", "--config", str(file), "--adapter", "caddyfile"]
    with _running(line, folder, port, environment) as told:
        host = NAME if scheme == "https" else "127.0.0.1"
        yield Front(f"{scheme}://{host}:{port}", port, root, lambda: told.read_text("utf-8", "replace"))


@contextmanager
def caddy(folder: Path, backend: int, *, read_header: str = "10s") -> Iterator[Front]:
    """deploy/Caddyfile as it stands, but for its port, and a certificate that no authority has to give."""
    folder.mkdir()
    authority = Authority(folder)
    port = free_port()
    text = _with(
        (DEPLOY / "Caddyfile").read_text(),
        **{
            f"\n{NAME} {{": f"\n{NAME}:{port} {{\n\ttls {authority.chain} {authority.key}",
            "127.0.0.1:8000": f"127.0.0.1:{backend}",
            "read_header 10s": f"read_header {read_header}",
        },
    )
    with _caddy(folder, port, text, "https", authority.root) as front:
        yield front


@contextmanager
def caddy_prefix(folder: Path, backend: int) -> Iterator[Front]:
    """deploy/Caddyfile-prefix in a site that is there already."""
    folder.mkdir()
    port = free_port()
    text = _with((DEPLOY / "Caddyfile-prefix").read_text(), **{"127.0.0.1:8000": f"127.0.0.1:{backend}"})
    site = f'{{\n}}\nhttp://127.0.0.1:{port} {{\n{text}\nhandle {{\nrespond "the shop"\n}}\n}}\n'
    with _caddy(folder, port, site, "http", None) as front:
        yield front


FRONTS = {"nginx": nginx, "caddy": caddy}


# The house behind it


class _Here(AbstractResolver):
    """chat.example is this machine."""

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        return None


class Reading:
    """A response, read as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.raw = b""
        self.text = ""
        self.ended = False
        self.last_event_id = ""
        self._decoder = Decoder()

    async def _more(self) -> bool:
        chunk = await self.response.content.readany()
        self.raw += chunk
        for event in self._decoder.feed(chunk):
            told = json.loads(event.data)
            self.text += told["text"] if told["type"] == "text" else ""
            self.ended |= told["type"] == "ended"
            self.last_event_id = event.id
        return bool(chunk)

    async def until(self, wanted: str, seconds: float = 5.0) -> None:
        """Read until the answer's text is `wanted`."""
        try:
            async with asyncio.timeout(seconds):
                while self.text != wanted:
                    assert await self._more(), f"the stream ended with {self.text!r}"
        except TimeoutError:
            raise AssertionError(f"no more than {self.text!r} came within {seconds} s") from None

    async def until_raw(self, wanted: bytes, seconds: float = 5.0) -> None:
        """Read until these bytes are among those that came."""
        async with asyncio.timeout(seconds):
            while wanted not in self.raw:
                assert await self._more(), self.raw

    async def to_end(self, seconds: float = 10.0) -> str:
        """The whole text."""
        async with asyncio.timeout(seconds):
            while await self._more():
                pass
        assert self.ended, self.raw
        return self.text


@dataclass
class House:
    """What stands behind one or several proxies."""

    model: ScriptedModel
    served: Process
    front: Front
    _sessions: list[aiohttp.ClientSession] = field(default_factory=list)
    _responses: list[aiohttp.ClientResponse] = field(default_factory=list)

    def client(self, address: str | None = None, *, cookies: bool = True) -> aiohttp.ClientSession:
        """A client from an address of its own (of this machine's network 127/8)."""
        context = ssl.create_default_context(cafile=self.front.root) if self.front.root else True
        connector = aiohttp.TCPConnector(
            resolver=_Here(), ssl=context, local_addr=(address, 0) if address else None, force_close=True
        )
        jar = aiohttp.CookieJar(unsafe=True) if cookies else aiohttp.DummyCookieJar()
        session = aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=30))
        self._sessions.append(session)
        return session

    async def ask(
        self,
        client: aiohttp.ClientSession,
        message: str = "hello",
        *,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        **body: Any,
    ) -> Reading:
        """POST /api/chat/stream. Returns: once the head is there."""
        target = f"{url or self.front.url}/api/chat/stream"
        response = await client.post(target, json={"message": message, **body}, headers=headers)
        self._responses.append(response)
        if response.status != 200:
            raise AssertionError(f"{response.status}: {await response.text()}")
        return Reading(response)

    async def close(self) -> None:
        """Leave, with all clients."""
        for response in self._responses:
            response.close()
        for session in self._sessions:
            await session.close()


@asynccontextmanager
async def house(
    folder: Path,
    front: Callable[[Path, int], Any],
    scripts: object,
    *,
    server: str = "",
    proxies: str = '["127.0.0.1"]',
) -> AsyncIterator[House]:
    """A scripted model, a real `motamot serve`, and a proxy in front. server: further lines of `[server]`."""
    (folder / "motamot.toml").write_text(f'[server]\nhosts = ["{NAME}"]\nproxies = {proxies}\n{server}\n')
    async with ScriptedModel(scripts) as model:
        with ExitStack() as exits:
            served = exits.enter_context(
                serve_process(folder, *upstream(model.url), MOTAMOT_V1_KEYS=V1_KEY, MOTAMOT_OPERATOR_KEY=OPERATOR_KEY)
            )
            made = House(model, served, exits.enter_context(front(folder / "front", served.port)))
            try:
                yield made
            finally:
                await made.close()
