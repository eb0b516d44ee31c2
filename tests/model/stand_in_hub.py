"""A stand-in for the Hugging Face hub: its URLs, redirect and headers, over a real socket, with faults to order."""

from __future__ import annotations

import hashlib
import re
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from motamot.model.known import HubModel

__all__ = ["StandInHub", "hub_model"]


def hub_model(content: bytes, **changes: Any) -> HubModel:
    """A known model whose file is `content`."""
    fields: dict[str, Any] = {
        "name": "tiny",
        "title": "Tiny-Instruct (Q4)",
        "file": "tiny-instruct-q4.gguf",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "maker": "Nobody",
        "licence": "Apache-2.0",
        "marks": ("demo_model",),
        "repository": "nobody/Tiny-Instruct-GGUF",
    }
    return HubModel(**{**fields, **changes})


@dataclass
class StandInHub:
    """Serves one file of one repository; used as a context manager.

    cut_at:    bytes after which a connection is cut, one entry per connection, then no more cuts.
    pace:      seconds between pieces of 4 kB.     ranges: whether Range is heard.
    linked:    the X-Linked-Etag it tells.         status: an error instead of an answer.
    location:  where it redirects to instead.      endless: a body without length and without end.
    silent:    accepts, and says nothing.          tls:    a server context.
    """

    content: bytes
    path: str = "/nobody/Tiny-Instruct-GGUF/resolve/main/tiny-instruct-q4.gguf"
    cut_at: list[int] = field(default_factory=list)
    pace: float = 0.0
    ranges: bool = True
    linked: str | None = None
    status: int | None = None
    cdn_status: list[int] = field(default_factory=list)
    location: str | None = None
    endless: bool = False
    silent: bool = False
    tls: ssl.SSLContext | None = None
    seen: list[tuple[str, str | None]] = field(default_factory=list)

    def __enter__(self) -> StandInHub:
        hub = self
        self.closing = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    hub.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.tls is not None:
            self.server.socket = self.tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self) -> str:
        scheme = "http" if self.tls is None else "https"
        host = "127.0.0.1" if self.tls is None else "localhost"
        return f"{scheme}://{host}:{self.server.server_address[1]}"

    @property
    def elsewhere(self) -> str:
        """The same server under another host's name: as the hub's bytes come from another host than its pages."""
        return self.url.replace("127.0.0.1", "localhost")

    @property
    def downloads(self) -> list[str | None]:
        """The Range headers of the requests for the bytes themselves."""
        return [wanted for path, wanted in self.seen if path.startswith("/cdn/")]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.seen.append((handler.path, handler.headers.get("Range")))
        if self.silent:
            self.closing.wait(20)
            handler.close_connection = True
        elif self.status is not None:
            handler.send_error(self.status)
        elif handler.path == self.path:
            self._redirect(handler)
        elif handler.path.startswith("/cdn/"):
            self._send(handler)
        else:
            handler.send_error(404)

    def _redirect(self, handler: BaseHTTPRequestHandler) -> None:
        digest = hashlib.sha256(self.content).hexdigest()
        handler.send_response(302)
        handler.send_header("Location", self.location or f"{self.elsewhere}/cdn/repos/{digest}?X-Amz-Signature=abc")
        handler.send_header("X-Repo-Commit", "f86cb2c1fa58255f8052cc32aeede1b7482d4361")
        handler.send_header("X-Linked-Size", str(len(self.content)))
        handler.send_header("X-Linked-Etag", f'"{self.linked or digest}"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def _send(self, handler: BaseHTTPRequestHandler) -> None:
        if self.cdn_status and (status := self.cdn_status.pop(0)) != 200:
            handler.send_error(status)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        start = int(wanted[1]) if wanted and self.ranges else 0
        if wanted and start >= len(self.content):
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        if not self.endless:
            handler.send_header("Content-Length", str(len(self.content) - start))
        handler.end_headers()
        handler.close_connection = True
        end = start + self.cut_at.pop(0) if self.cut_at else len(self.content)
        for at in range(start, end, 4096):
            handler.wfile.write(self.content[at : min(at + 4096, end)])
            if self.pace and self.closing.wait(self.pace):
                return
        deadline = time.monotonic() + 20
        while self.endless and not self.closing.is_set() and time.monotonic() < deadline:
            handler.wfile.write(b"\0" * 65536)
