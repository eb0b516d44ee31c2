"""Running the real command: a process of its own, in an environment of its own."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from motamot.store.records import CompletionRow, ExchangeRow
from motamot.store.store import Store

COMMAND = [sys.executable, "-m", "motamot"]
T = TypeVar("T")


class Place:
    """A folder in which commands run, with a database of its own and nothing of this machine's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "books.sqlite3"
        self.environ = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "MOTAMOT_DATABASE": str(self.database),
        }

    def run(
        self, *arguments: str, stdin: bytes | None = b"", environ: dict[str, str] | None = None, timeout: float = 40
    ) -> Done:
        """Run a command to its end, with pipes."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=self.environ | (environ or {}),
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode())

    @contextmanager
    def start(self, *arguments: str, environ: dict[str, str] | None = None) -> Iterator[Running]:
        """A command that runs, with pipes; killed at the end if it has not ended by then."""
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environ | (environ or {}),
        )
        running = Running(process)
        try:
            yield running
        finally:
            running.close()

    @contextmanager
    def terminal(self, *arguments: str, environ: dict[str, str] | None = None) -> Iterator[Terminal]:
        """A command that runs on a terminal."""
        main, side = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=self.folder,
            env=self.environ | {"TERM": "xterm-256color"} | (environ or {}),
            start_new_session=True,
        )
        os.close(side)
        terminal = Terminal(process, main)
        try:
            yield terminal
        finally:
            terminal.close()

    def booked(self) -> tuple[list[ExchangeRow], list[CompletionRow]]:
        """What the database holds, newest first, once it is opened by another process."""

        async def read(store: Store) -> tuple[list[ExchangeRow], list[CompletionRow]]:
            completions = (await store.completions())[::-1]
            ids = list(dict.fromkeys(row.exchange for row in completions))
            rows = [await store.exchange(exchange) for exchange in ids]
            return [row for row in rows if row is not None], completions

        return self.with_store(read)

    def with_store(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Open the database, do something with it, close it."""

        async def run() -> T:
            store = Store.open(self.database)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(run())


class Done:
    """A command that has ended."""

    def __init__(self, status: int, out: bytes, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def notes(self) -> list[str]:
        """The lines of stderr, with what differs from run to run made equal."""
        text = re.sub(r"first text after \d+\.\d+ s", "first text after … s", self.err)
        text = re.sub(r"conversation [\w-]{22}", "conversation …", text)
        return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:…", text).splitlines()

    @property
    def conversation(self) -> str:
        """The id in the last line."""
        found = re.search(r"conversation ([\w-]{22})$", self.err.strip())
        assert found is not None, self.err
        return found[1]


class Running:
    """A command that runs; its output is read by threads, so that no pipe is ever full."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._out = b""
        self._err = b""
        self._changed = threading.Condition()
        assert process.stdout is not None and process.stderr is not None
        self._streams = (process.stdout, process.stderr)
        self._threads = [
            threading.Thread(target=self._read, args=(stream, name), daemon=True)
            for stream, name in zip(self._streams, ("_out", "_err"), strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: object, name: str) -> None:
        descriptor = stream.fileno()  # type: ignore[attr-defined]  # one of the two pipes
        while chunk := os.read(descriptor, 65_536):
            with self._changed:
                setattr(self, name, getattr(self, name) + chunk)
                self._changed.notify_all()

    def wait_out(self, wanted: bytes, timeout: float = 30) -> bytes:
        """What came on stdout, once `wanted` is in it."""
        with self._changed:
            assert self._changed.wait_for(lambda: wanted in self._out, timeout), (self._out, self._err)
            return self._out

    def wait_err(self, wanted: bytes, timeout: float = 30) -> bytes:
        """What came on stderr, once `wanted` is in it."""
        with self._changed:
            assert self._changed.wait_for(lambda: wanted in self._err, timeout), (self._out, self._err)
            return self._err

    def signal(self, number: signal.Signals) -> float:
        """Send a signal. Returns: when, on the monotonic clock."""
        at = time.monotonic()
        self.process.send_signal(number)
        return at

    def wait(self, timeout: float = 30) -> Done:
        """The end."""
        status = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return Done(status, self._out, self._err.decode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in self._streams:
            stream.close()


class Terminal:
    """A command on a terminal, seen from the other side."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self.descriptor = descriptor
        self.seen = ""

    def read_until(self, wanted: str, timeout: float = 30) -> str:
        """All that the terminal was sent, once `wanted` is in it."""
        deadline = time.monotonic() + timeout
        while wanted not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and self._read(left), f"{wanted!r} did not come, but {self.seen!r}"
        return self.seen

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self.descriptor], [], [], timeout)
        if not ready:
            return False
        try:
            chunk = os.read(self.descriptor, 65_536)
        except OSError:  # Linux says so when the other side has closed
            return False
        self.seen += chunk.decode()
        return bool(chunk)

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def wait(self, timeout: float = 30) -> int:
        """The end: everything was read by then."""
        deadline = time.monotonic() + timeout
        while self._read(max(0.0, deadline - time.monotonic())):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.descriptor)


def screen(text: str) -> list[str]:
    """What a terminal shows of `text`: lines, with carriage returns overwriting, without styles."""
    lines = [""]
    column = 0
    for letter in re.sub(r"\x1b\[[0-9;]*m", "", text):
        if letter == "\n":
            lines.append("")
            column = 0  # the terminal's own driver sends CR LF
        elif letter == "\r":
            column = 0
        else:
            line = lines[-1].ljust(column)
            lines[-1] = line[:column] + letter + line[column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def upstream(url: str) -> Sequence[str]:
    """Options that name a scripted model."""
    return ("--upstream", url, "--model", "scripted")
