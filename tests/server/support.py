"""A real server on a free port, with a scripted model behind it: in the test's own loop, or as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.abc import AbstractCookieJar
from starlette.types import ASGIApp

from motamot.assistant import Assistant
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.scripted import ScriptedModel
from motamot.server.options import Options
from motamot.server.run import Server, listen
from motamot.server.site import Site
from motamot.sse import Decoder, Event

OPERATOR_KEY = "operator-key-of-the-tests"
V1_KEY = "v1-key-of-the-tests-0001"
KEYS = {"operator_key": OPERATOR_KEY, "v1_keys": (V1_KEY,)}


@dataclass
class Served:
    """A site that is served, its model, and a client for both."""

    url: str
    site: Site
    model: ScriptedModel
    client: aiohttp.ClientSession
    server: Server

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def ask(self, message: str = "hello", **body: Any) -> dict[str, Any]:
        """The whole answer by POST /api/chat."""
        async with self.client.post(f"{self.url}/api/chat", json={"message": message, **body}) as response:
            told: dict[str, Any] = await response.json()
            return told

    async def events(self, response: aiohttp.ClientResponse) -> list[Event]:
        """All events of a stream, to its end."""
        decoder = Decoder()
        return [event async for chunk in response.content.iter_any() for event in decoder.feed(chunk)]

    async def raw(self, sent: bytes, *, wait: float = 5, half_close: bool = False) -> bytes:
        """What the server answers to bytes on a connection of their own, until it closes or `wait` has passed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(sent)
            await writer.drain()
            if half_close:
                writer.write_eof()
            got = b""
            try:
                async with asyncio.timeout(wait):
                    while chunk := await reader.read(65_536):
                        got += chunk
            except (TimeoutError, ConnectionResetError):
                pass
            return got
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    folder: Path,
    scripts: object,
    *,
    assistants: Callable[[str], Sequence[Assistant]] | None = None,
    options: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
    proxies: Sequence[str] = (),
    cookies: bool = True,
    around: Callable[[ASGIApp], ASGIApp] | None = None,
    **assistant: Any,
) -> AsyncIterator[Served]:
    """A site on a free port of 127.0.0.1, with uvicorn as `motamot serve` runs it, and a scripted model behind.

    assistants: made from the model's URL, where it is not to be the one named `default`, which takes `**assistant`.
    options:    of `Options`, over hosts as for a loopback binding and the keys above.
    cookies:    whether the client keeps them, as a browser does.
    around:     middleware.
    """
    async with ScriptedModel(scripts) as model:
        own: list[HttpModel] = []
        if assistants is not None:
            chats = assistants(model.url)
        else:
            own.append(HttpModel(model.url, "scripted", limits=limits))
            chats = [Assistant(upstream=own[0], limits=limits, **assistant)]
        hosts = frozenset(("localhost", "127.0.0.1", "[::1]"))
        chosen = Options(**{"hosts": hosts, **KEYS, **(options or {})})
        site = Site(chats, store=folder / "books.sqlite3", options=chosen, limits=limits)
        try:
            async with running(site, proxies=proxies, around=around) as (server, url):
                # unsafe: 127.0.0.1 is no name
                jar: AbstractCookieJar = aiohttp.CookieJar(unsafe=True) if cookies else aiohttp.DummyCookieJar()
                async with aiohttp.ClientSession(cookie_jar=jar) as client:
                    yield Served(url, site, model, client, server)
        finally:
            for one in own:
                await one.close()


@asynccontextmanager
async def running(
    site: Site, *, proxies: Sequence[str] = (), around: Callable[[ASGIApp], ASGIApp] | None = None
) -> AsyncIterator[tuple[Server, str]]:
    """A site, served in this loop."""
    listening = listen("127.0.0.1", 0)
    ready = asyncio.Event()
    server = Server(site, proxies=proxies, ready=ready.set)
    if around is not None:
        server.config.app = around(site)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    task = asyncio.create_task(server.serve(sockets=[listening]))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting.cancel()
        listening.close()
        task.result()
    try:
        yield server, url
    finally:
        server.end()
        await task


def free_port() -> int:
    """A port nobody listens on, as of now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


class Process:
    """`motamot serve`, as a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.said = ""  # on stderr
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.said += line
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def wait_said(self, wanted: str, timeout: float = 20) -> str:
        """What came on stderr, once `wanted` is in it."""
        with self._changed:
            ended = self.process.poll
            found = self._changed.wait_for(lambda: wanted in self.said or ended() is not None, timeout)
            assert found and wanted in self.said, self.said
            return self.said

    def signal(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Send a signal. Returns: when, on the monotonic clock."""
        self.process.send_signal(number)
        return time.monotonic()

    def wait(self, timeout: float = 20) -> int:
        """Its exit status; all it said is in `said` then."""
        status = self.process.wait(timeout)
        self._thread.join(timeout)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._thread.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """An environment with nothing of this machine's settings."""
    return {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "100",
        "MOTAMOT_DATABASE": str(folder / "books.sqlite3"),
        **variables,
    }


@contextmanager
def serve_process(
    folder: Path, *arguments: str, port: int | None = None, wait: bool = True, **variables: str
) -> Iterator[Process]:
    """`python -m motamot serve` on a free port; killed at the end if it has not ended by then.

    wait: until it listens. variables: of its environment.
    """
    port = port or free_port()
    process = Process(
        subprocess.Popen(
            [sys.executable, "-m", "motamot", "serve", "--port", str(port), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment(folder, **variables),
        ),
        port,
    )
    try:
        if wait:
            process.wait_said(process.url)
        yield process
    finally:
        process.close()


def upstream(url: str) -> tuple[str, ...]:
    """Options that name a scripted model."""
    return ("--upstream", url, "--model", "scripted")
