"""The embedded model: a GGUF file, answered from a llama.cpp server that runs as a child of this process."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import secrets
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from motamot.errors import ModelUnavailable, UpstreamError
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.model.request import check_extra, check_headers
from motamot.model.turn import Attempt, Emit, Turn, TurnRequest

__all__ = ["LOCAL_CONTEXT", "LOCAL_SLOTS", "LocalModel", "check_gguf", "check_runtime", "limits_for"]

LOCAL_CONTEXT = 4096  # tokens of one conversation: prompt and answer together
LOCAL_SLOTS = 2  # answers at a time; more wait for a slot, without a byte
_BATCH = 256  # tokens read at once: how often a stop is heard while a prompt is read
_PING_SECONDS = 10  # a comment while nothing else is said
_LOG_LINES = 200
_LOG_LINE_CHARS = 500
_REPORT_BYTES = 65_536
_STILL_SECONDS = 5.0
_DEATH_SECONDS = 0.5  # from the end of its sockets to the end of the process
_LAST_WORDS_SECONDS = 5.0  # from its report that it failed to its end
_GGUF_VERSIONS = (2, 3)
_INSTALL = "pip install 'motamot[local]'"


def check_runtime() -> None:
    """Raises ModelUnavailable (`missing`) where the part that runs a GGUF file is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelUnavailable(
            f"To answer from a model on this machine, motamot needs its local part: {_INSTALL}", reason="missing"
        )


def check_gguf(path: Path) -> None:
    """Look whether `path` is a GGUF file at all, before a process is started for it.

    Raises: ModelUnavailable: `missing` where there is no readable file, `damaged` where it is another kind.
    Source: the GGUF specification: magic `GGUF`, then the version as a little-endian 32-bit integer.
    """
    try:
        str(path).encode()  # the library takes paths as UTF-8
        with path.open("rb") as file:
            head = file.read(8)
    except UnicodeEncodeError as problem:
        raise ModelUnavailable(
            f"The model file's name {str(path)!r} is not UTF-8: rename it.", reason="missing"
        ) from problem
    except OSError as problem:
        raise ModelUnavailable(
            f"The model file {path} cannot be read: {problem.strerror or problem}.", reason="missing"
        ) from problem
    if head[:4] != b"GGUF" or int.from_bytes(head[4:], "little") not in _GGUF_VERSIONS:
        raise ModelUnavailable(
            f"{path} is not a GGUF model file (of version 2 or 3). Models in other forms have to be converted.",
            reason="damaged",
        )


def limits_for(limits: Limits, context: int) -> Limits:
    """`limits` as an embedded model can keep them: its context is small, and a small machine reads slowly.

    context: tokens of one conversation. A quarter is for the answer, half for earlier exchanges; the last quarter is
             left to the system prompt and the question.
    """
    return replace(
        limits,
        max_tokens=min(limits.max_tokens, context // 4),
        history_tokens=min(limits.history_tokens, context // 2),
        # 2,000 tokens are read at 30 a second on two cores (measured), after the wait for a slot.
        first_delta_seconds=max(limits.first_delta_seconds, 180),
    )


class LocalModel:
    """Answers from a GGUF file on this machine. A `Model`.

    gguf:     the file.             name:    as it is asked for and booked; the file's name without one.
    marks:    shown beside each answer.
    threads:  of computation; without it, as many as there are cores that compute.
    context:  tokens of one conversation, prompt and answer together.
    slots:    answers at a time.
    Raises:   ModelUnavailable (`missing`, `damaged`) for a file that is none, or a part that is not installed.

    The child starts at `open` or with the first attempt, and again should it have died; it listens on 127.0.0.1, on a
    port the system chose, for a random key. It ends with `close`, and with this process, however that ends. To be
    used from one event loop at a time, in a thread that lives as long as the model is wanted: Linux ends the child
    with the thread that started it.
    """

    origin = "local"

    def __init__(
        self,
        gguf: Path,
        *,
        name: str | None = None,
        marks: tuple[str, ...] = (),
        limits: Limits = Limits(),
        threads: int | None = None,
        context: int = LOCAL_CONTEXT,
        slots: int = LOCAL_SLOTS,
    ) -> None:
        check_gguf(gguf)
        check_runtime()
        self.name = name or "".join(letter for letter in gguf.stem if letter.isprintable())[:200].strip() or "local"
        self.marks = marks
        self.limits = limits_for(limits, context)
        self.context = context
        self._settings = {
            "gguf": str(gguf.absolute()),
            "name": self.name,
            "threads": threads,
            "context": context,
            "slots": slots,
            "batch": _BATCH,
            "ping_seconds": _PING_SECONDS,
        }
        self._child: _Child | None = None
        self._http: HttpModel | None = None
        self._starting: asyncio.Task[HttpModel] | None = None
        self._closed = False

    def attempt(self, request: TurnRequest) -> Attempt:
        """A completion that has not been asked for yet; no I/O happens here.

        Raises: SettingsError for `request.extra` or `request.headers` that cannot be sent.
        """
        check_extra(request.extra)
        check_headers(request.headers)
        return _LocalAttempt(self, request)

    async def open(self, say: Callable[[str], None] | None = None) -> None:
        """Start the child and wait until it can answer. say: is told that it loads, and every 5 s that it still does.

        Raises: ModelUnavailable (`start`, `missing`), with the child's last words as `detail`.
        """
        started = time.monotonic()
        ready = asyncio.ensure_future(self.ready())
        try:
            while not (await asyncio.wait([ready], timeout=_STILL_SECONDS))[0]:
                if say is not None:
                    say(f"Still loading {self.name}, {time.monotonic() - started:.0f} s …")
            await ready
        finally:
            ready.cancel()

    async def ready(self) -> HttpModel:
        """The model behind the child's HTTP server, started if it does not run. Raises as `open`.

        Cancelling one who waits does not stop the start for the others.
        """
        if self._closed:
            raise self._is_closed()
        if self._http is not None and self.running:
            return self._http
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_retrieved)
        try:
            return await asyncio.shield(self._starting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise self._is_closed() from None  # it was the start that was cancelled, by `close`

    def _is_closed(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self.name} has been closed.", reason="start")

    @property
    def running(self) -> bool:
        """Whether the child lives."""
        return self._child is not None and self._child.process.poll() is None

    async def has_died(self) -> bool:
        """Whether the child is gone; its sockets close a moment before its end can be seen."""
        return self._child is None or await self._child.ended(_DEATH_SECONDS)

    @property
    def pid(self) -> int | None:
        """The child's process id; None before the first start."""
        return self._child.process.pid if self._child is not None else None

    @property
    def log(self) -> str:
        """The child's last lines, at most 200. They hold no text of any conversation."""
        return self._child.log if self._child is not None else ""

    async def close(self) -> None:
        """Let go of the connections and end the child. What it was generating ends with it."""
        self._closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._let_go()

    async def _start(self) -> HttpModel:
        await self._let_go()  # of a child that died
        key = secrets.token_urlsafe(32)
        try:
            child = self._child = _Child({**self._settings, "key": key})
        except OSError as problem:
            raise ModelUnavailable(
                f"{self.name} could not be started: no process could be made.", reason="start", detail=str(problem)
            ) from problem
        try:
            address = await child.address(self.limits.local_start_seconds)
        except asyncio.CancelledError:
            await self._let_go()
            raise
        except ModelUnavailable:
            await child.end()
            raise
        self._http = HttpModel(
            f"{address}/v1",
            self.name,
            api_key=key,
            limits=self.limits,
            trust_env=False,
            keep_alive=False,  # llama.cpp's server closes a kept connection after a stream, now and then unseen
            origin=self.origin,
            marks=self.marks,
        )
        return self._http

    async def _let_go(self) -> None:
        http, self._http = self._http, None
        if self._child is not None:
            await self._child.end()  # first: an attempt under way sees its connection end, and so its own
        if http is not None:
            await http.close()


def _retrieved(task: asyncio.Task[HttpModel]) -> None:
    """A start that nobody waits for any more may fail without a word: whoever asks next starts again."""
    if not task.cancelled():
        task.exception()


class _LocalAttempt:
    """One completion of the embedded model: waits for the child, then asks it over HTTP."""

    def __init__(self, model: LocalModel, request: TurnRequest) -> None:
        self._model = model
        self._request = request
        self._inner: Attempt | None = None
        self._failed: Turn | None = None

    async def run(self, emit: Emit) -> Turn:
        try:
            http = await self._model.ready()
        except ModelUnavailable as problem:
            error = UpstreamError("The model on this machine could not be started.", detail=_detail(problem))
            self._failed = Turn(finish="error", error=error)
            return self._failed
        self._inner = http.attempt(self._request)
        turn = await self._inner.run(emit)
        if turn.error is None or turn.error.status is not None or not await self._model.has_died():
            return turn
        error = UpstreamError(
            "The model on this machine stopped working.", code=turn.error.code, detail=self._model.log or None
        )
        self._failed = replace(turn, error=error)
        return self._failed

    def snapshot(self) -> Turn:
        if self._failed is not None:
            return self._failed
        return self._inner.snapshot() if self._inner is not None else Turn(finish="incomplete")

    @property
    def first_delta_at(self) -> float | None:
        return self._inner.first_delta_at if self._inner is not None else None


def _detail(problem: ModelUnavailable) -> str:
    return f"{problem.message}\n{problem.detail}" if problem.detail else problem.message


class _Child:
    """The child process, with a thread that keeps its last lines and one that waits for its report."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._report: Future[dict[str, str] | None] = Future()
        self._name = settings["name"]
        self.process = subprocess.Popen(
            # -P: nothing is loaded from the working directory.
            [sys.executable, "-P", "-m", "motamot.model.local_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Of its own session: Ctrl-C in the terminal is this process's to handle, and stops one answer only.
            start_new_session=True,
        )
        stdin, stdout, stderr = self.process.stdin, self.process.stdout, self.process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._streams: list[IO[bytes]] = [stdin, stdout, stderr]
        self._threads = [
            threading.Thread(target=self._read_report, args=(stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        with suppress(BrokenPipeError):  # it died at once: its report, or the lack of one, tells
            stdin.write(json.dumps(settings).encode() + b"\n")
            stdin.flush()

    @property
    def log(self) -> str:
        return "\n".join(self._lines.copy())

    async def address(self, seconds: float) -> str:
        """Where the child listens, once it does. Raises ModelUnavailable, also after so many seconds."""
        report = asyncio.wrap_future(self._report)
        done, _ = await asyncio.wait([report], timeout=seconds)
        if not done:
            raise ModelUnavailable(
                f"{self._name} was not ready within {seconds:g} s: this machine may be too small or too busy for it.",
                reason="start",
                detail=self.log or None,
            )
        said = report.result()
        if said is not None and "address" in said:
            return said["address"]
        await self.ended(_LAST_WORDS_SECONDS)  # by itself: its log is written by a thread of its own
        await self.end()
        raise self._failure(said)

    async def ended(self, seconds: float) -> bool:
        """Whether the child is gone, or goes within so many seconds."""
        try:
            await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    async def end(self) -> None:
        """Kill the child (it has nothing to save) and wait until it is gone."""
        self.process.kill()  # does nothing to a process that has ended
        await asyncio.shield(asyncio.to_thread(self._reap))

    def _reap(self) -> None:
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in self._streams:
            with suppress(BrokenPipeError):  # what was left of the settings cannot be written any more
                stream.close()

    def _failure(self, said: dict[str, str] | None) -> ModelUnavailable:
        detail = "\n".join(filter(None, [(said or {}).get("detail"), self.log])) or None
        match (said or {}).get("failed"):
            case "missing":
                return ModelUnavailable(f"The local part cannot be loaded: {_INSTALL}", reason="missing", detail=detail)
            case "version":
                text = f"The installed xllamacpp does not fit this motamot: {_INSTALL}"
                return ModelUnavailable(text, reason="missing", detail=detail)
            case "load":
                text = (
                    f"{self._name} could not be loaded: its file is damaged, or of a kind that llama.cpp does not know."
                )
                return ModelUnavailable(text, reason="damaged", detail=detail)
        status = self.process.returncode
        text = f"{self._name} could not be started: its process ended with status {status}"
        text += " (killed: too little memory?)." if status == -9 else "."
        return ModelUnavailable(text, reason="start", detail=detail)

    def _read_report(self, stream: IO[bytes]) -> None:
        said: dict[str, str] | None = None
        with suppress(ValueError):  # no report, or half of one: it died
            said = json.loads(stream.readline(_REPORT_BYTES))
        self._report.set_result(said)

    def _read_log(self, stream: IO[bytes]) -> None:
        # Read to the end, whatever is written: a full pipe would stop the model.
        while line := stream.readline(_LOG_LINE_CHARS):
            self._lines.append(line.decode("utf-8", "replace").rstrip())
