"""Serving a site with uvicorn."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import resource
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from motamot.errors import SettingsError
from motamot.server.bounds import bounded
from motamot.server.site import Site

__all__ = ["Certificate", "Server", "listen", "serve"]

_SYSTEM_PATIENCE = 5
_PEM_BYTES = 1_000_000  # looked at for what a certificate lacks: a long chain has 20 kB
_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 30
_OBJECTS_BEFORE_COLLECTION = 10_000  # cyclic waste of a few MB at most
_SPARE_FILES = 256  # beside connections: database, libraries, the models' connections have their own count


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files for TLS: the certificate with its chain, and its key (None: in the same file)."""

    chain: Path
    key: Path | None = None

    def check(self) -> None:
        """Raises: SettingsError where they cannot be read, or are no pair."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.chain, self.key, password=_no_password)
        except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
            why = getattr(error, "reason", None) or self._missing() or getattr(error, "strerror", None) or error
            of = f"{self.chain}" + (f" with the key {self.key}" if self.key else "")
            raise SettingsError(f"the certificate {of} cannot be used: {why}") from None

    def _missing(self) -> str | None:
        """What is not in the files, for which OpenSSL has no word but "PEM lib"."""
        with contextlib.suppress(OSError):  # which is told as it is
            if not _holds(self.chain, b"CERTIFICATE-----"):
                return "it holds no certificate (PEM: -----BEGIN CERTIFICATE-----)"
            if not _holds(self.key or self.chain, b"PRIVATE KEY-----"):
                return (
                    "its key is not in it: name the key's file with tls_key" if self.key is None else "that is no key"
                )
        return None


def _holds(file: Path, label: bytes) -> bool:
    with file.open("rb") as opened:
        return label in opened.read(_PEM_BYTES)


def _no_password() -> str:
    raise ValueError("its key is encrypted, and nobody can be asked for the password")


def listen(host: str, port: int, *, stall_seconds: float = 60) -> socket.socket:
    """A listening socket, so that a port that is taken is known before anything else is started. Raises: OSError.

    stall_seconds: how long the system waits for a client that takes nothing, or is gone without a word (Linux).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":  # what listens hands it on to each connection
            # Several times as long: the system also counts a window of a few kB that a slow reader empties as none.
            milliseconds = int(stall_seconds * 1000 * _SYSTEM_PATIENCE)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        found.bind((host, port))
        found.listen(_BACKLOG)
        found.setblocking(False)
    except BaseException:
        found.close()
        raise
    return found


class Server(uvicorn.Server):
    """uvicorn with our bounds, for one site.

    proxies: addresses or networks whose `X-Forwarded-For` and `-Proto` are believed. ready: called once it listens.
    """

    def __init__(
        self,
        site: Site,
        *,
        proxies: Sequence[str] = (),
        certificate: Certificate | None = None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        limits = site.limits
        super().__init__(
            uvicorn.Config(
                site,
                http=bounded(limits),
                ws="none",
                loop="auto",
                lifespan="on",
                log_config=None,
                log_level=logging.ERROR,  # what strangers send is no news
                access_log=False,  # an address may hold a question
                server_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
                timeout_graceful_shutdown=int(limits.shutdown_seconds),
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                ssl_certfile=certificate.chain if certificate else None,
                ssl_keyfile=certificate.key if certificate else None,
            )
        )
        self._site = site
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._site.start()  # here, where what fails is raised, and not only told to a log
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._ready()

    def end(self) -> None:
        """End what runs, and the server: as SIGTERM does."""
        self._site.begin_end()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """The site hears the signal, too, and ends what runs; uvicorn waits for open streams by itself.

        Not uvicorn's own: that raises the signal once more at the end, and a server told to end has not failed.
        """
        if self.should_exit:  # the second: now. What is open is booked by the next start, as after kill -9.
            os._exit(128 + sig)
        self.should_exit = True


def serve(
    site: Site,
    listening: socket.socket,
    *,
    proxies: Sequence[str] = (),
    certificate: Certificate | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGINT or SIGTERM; then running exchanges end as `interrupted`, are booked, and the server stops.

    A second signal ends the process at once. `site.unfinished` says what could not be booked at the end.
    Raises: what `Site.start` raises.
    """

    def started() -> None:
        # What was loaded stays: each full collection would look through it again (a twelfth of a request's CPU).
        gc.collect()
        gc.freeze()
        # Python looks for cycles whenever 700 objects more are held, which is at every sixth question, and now and then
        # goes through all the answers that are kept, for 80 ms. Seldomer: measured a sixth less CPU a request.
        gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
        ready()

    _raise_open_files(site.limits.connections)
    Server(site, proxies=proxies, certificate=certificate, ready=started).run(sockets=[listening])


def _raise_open_files(connections: int) -> None:
    """Many systems allow 1,024 open files until asked for more, and each connection is one, and its model's another."""
    wanted = 2 * connections + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):  # macOS has another bound beside the one it tells
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
