"""Another site, on which the chat is: its pages come from an address of their own, with headers of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.async_api import Browser, BrowserContext

from tests.page.support import Reader, opened

__all__ = ["Pages", "at", "site"]

_KINDS = {"js": "text/javascript", "mjs": "text/javascript", "css": "text/css"}


class Pages:
    """A site's pages by their path; what is put in is served from then on."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://localhost:{port}"  # to a browser another site than 127.0.0.1
        self.headers: dict[str, str] = {}
        self.pages: dict[str, str] = {}

    def __setitem__(self, path: str, page: str) -> None:
        self.pages[path] = page


@contextmanager
def site(headers: Mapping[str, str] | None = None) -> Iterator[Pages]:
    """A site without pages. headers: sent with each of them."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = pages.pages.get(self.path)
            body = (found or "Not found").encode()
            self.send_response(404 if found is None else 200)
            kind = _KINDS.get(self.path.rpartition(".")[2], "text/html")
            for name, value in {"Content-Type": f"{kind}; charset=utf-8", **pages.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("localhost", 0), Handler) as server:
        pages = Pages(server.server_port)
        pages.headers = dict(headers or {})
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield pages
        finally:
            server.shutdown()
            thread.join()


def at(browser: Browser | BrowserContext, url: str, **context: Any) -> AbstractAsyncContextManager[Reader]:
    """Somebody at a page of such a site, which asks the chat at another."""
    return opened(browser, url, elsewhere=True, **context)
