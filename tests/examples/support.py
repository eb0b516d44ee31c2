"""The examples as a user runs them: each in a process of its own, with a scripted model behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from motamot.cli.ledger_rows import Entry, read
from motamot.store.database import Database

EXAMPLES = Path(__file__).parents[2] / "examples"


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """An environment with nothing of this machine's settings, and the database in `folder`."""
    kept = ("PATH", "LANG", "VIRTUAL_ENV", "CI")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "HOME": str(folder),
        "MOTAMOT_DATABASE": str(folder / "books.sqlite3"),
        "OLLAMA_HOST": "127.0.0.1:9",  # nobody listens on the port for discarding
        "PYTHONWARNINGS": "error",
        **variables,
    }


def asking(url: str) -> dict[str, str]:
    """The variables that name a scripted model."""
    return {"OPENAI_BASE_URL": url, "OPENAI_MODEL": "scripted", "OPENAI_API_KEY": "key-of-the-tests"}


def booked(folder: Path) -> list[Entry]:
    """The ledger, newest first."""
    return read(Database(str(folder / "books.sqlite3")))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


class App:
    """An example behind uvicorn, which can be ended and started again on the same port."""

    def __init__(
        self,
        app: str,
        folder: Path,
        variables: dict[str, str],
        options: Sequence[str] = (),
        *,
        folder_of_app: Path = EXAMPLES,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        path, _, name = app.rpartition("/")
        self._command = [
            *(sys.executable, "-m", "uvicorn", name, "--app-dir", str(folder_of_app / path)),
            *("--port", str(self.port), *(options or ["--no-access-log"])),
        ]
        self._environment = environment(folder, **variables)
        self._log = folder / "uvicorn.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def said(self) -> str:
        """What it said so far."""
        return self._log.read_text("utf-8")

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 30
        while True:
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return
            assert self._process.poll() is None and time.monotonic() < deadline, self.said
            time.sleep(0.05)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            try:
                process.wait(15)
            finally:
                process.kill()
                process.wait()

    def close(self) -> None:
        """Kill it where it still runs."""
        self.end(signal.SIGKILL)


@contextmanager
def example(
    app: str,
    folder: Path,
    variables: dict[str, str] | None = None,
    options: Sequence[str] = (),
    *,
    folder_of_app: Path = EXAMPLES,
) -> Iterator[App]:
    """`example("lesson/app:app", …)`: the example, running. options: uvicorn's."""
    found = App(app, folder, variables or {}, options, folder_of_app=folder_of_app)
    try:
        found.start()
        yield found
        found.end()
    finally:
        found.close()


class Wire:
    """A TCP proxy in front of a server, whose connections can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._swallow = b""
        self.swallowed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Lose all connections: both ends see a reset."""
        for one in list(self._open):
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def swallow(self, start: bytes) -> None:
        """Lose the connection of the next request that begins so, once the first byte of its answer is there."""
        self.swallowed.clear()
        self._swallow = start

    def close(self) -> None:
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            client.close()
            return
        self._open |= {client, server}
        doomed = threading.Event()
        threading.Thread(target=self._pump, args=(server, client, doomed), daemon=True).start()
        self._pump(client, server, doomed, asks=True)

    def _pump(self, source: socket.socket, target: socket.socket, doomed: threading.Event, asks: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if asks and self._swallow and data.startswith(self._swallow):
                    self._swallow = b""
                    doomed.set()
                elif not asks and doomed.is_set():
                    self.swallowed.set()
                    break
                target.sendall(data)
        for one in (source, target):
            self._open.discard(one)
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
