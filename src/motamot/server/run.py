"""Serving a site with uvicorn."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from motamot.server.site import Site

__all__ = ["listen", "serve"]

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that a port that is taken is known before anything else is started. Raises: OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
        found.setblocking(False)
    except BaseException:
        found.close()
        raise
    return found


class _Server(uvicorn.Server):
    """uvicorn waits for open streams before it runs the lifespan's end, so their end has to be begun by us."""

    def __init__(self, config: uvicorn.Config, site: Site, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._site = site
        self._ready = ready
        self._ending: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._ending is None and self._site.started:
            loop = asyncio.get_event_loop()
            self._ending = loop.create_task(self._site.exchanges.close())


def serve(
    site: Site, listening: Sequence[socket.socket], *, proxies: Sequence[str] = (), ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM; then running exchanges end as `interrupted`, are booked, and the server stops.

    proxies: addresses whose `X-Forwarded-For` and `-Proto` are believed. ready: called once it listens.
    """
    config = uvicorn.Config(
        site,
        http="httptools",
        loop="auto",
        lifespan="on",
        log_config=None,
        access_log=False,  # an address may hold a question
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=int(site.limits.shutdown_seconds) + 1,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64_000,
    )
    server = _Server(config, site, ready)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server.run(sockets=list(listening))
