"""Starting the chatbot that is examined: its command, with the addresses of the scripted model in its environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from motamot.exam.examiner import ExamError

__all__ = ["Chatbot", "addresses", "is_there", "until_there"]

KEY = "motamot-exam"
_LINES = 30  # of its output that are kept, to say why it did not start
_LINE_CHARACTERS = 500
_END_SECONDS = 5.0  # that it is given to end in its order
_KEEPER_SECONDS = 10.0  # that its keeper is given on top of it
_KEEPER = str(Path(__file__).with_name("keeper.py"))


def addresses(model: str) -> dict[str, str]:
    """The environment by which client libraries and frameworks find the scripted model at `model` (`…/v1`).

    Which library reads which: docs/exam.md.
    """
    root = model.removesuffix("/v1")
    return {
        "OPENAI_BASE_URL": model,
        "OPENAI_API_BASE": model,  # LiteLLM, LangChain of old
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": root,
        "ANTHROPIC_API_KEY": KEY,
        "AI_URL": model,
    }


async def is_there(url: str) -> bool:
    """Whether something listens where `url` points."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
            )
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def until_there(url: str, seconds: float) -> bool:
    """Wait until something listens where `url` points. Returns: whether it does."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not await is_there(url):  # noqa: ASYNC110 - another process's port tells nobody
                await asyncio.sleep(0.1)
            return True
    return False


class Chatbot:
    """A chatbot's process with all its descendants (`exam/keeper.py`). Use it as a context.

    Raises: ExamError where it cannot be started, ends by itself, or does not listen in time.
    """

    def __init__(self, command: str, url: str, *, environ: Mapping[str, str], seconds: float = 60.0) -> None:
        self._command = command
        self._url = url
        self._environ = {**os.environ, **environ}
        self._seconds = seconds
        self._process: asyncio.subprocess.Process | None = None
        self._said: deque[str] = deque(maxlen=_LINES)
        self._reading: asyncio.Task[None] | None = None

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended by itself; None while it runs."""
        return self._process.returncode if self._process is not None else None

    async def again(self) -> None:
        """Start it once more; what is left of it is ended first. Raises: ExamError, as at first."""
        await self._end()
        self._said.clear()
        await self.__aenter__()

    async def __aenter__(self) -> Chatbot:
        if await is_there(self._url):
            raise ExamError(f"something listens at {self._url} already: end it, or leave out --run")
        try:
            command = shlex.split(self._command)
        except ValueError as error:
            raise ExamError(f"the chatbot cannot be started by {self._command!r}: {error}") from None
        if not command or shutil.which(command[0], path=self._environ.get("PATH")) is None:
            told = f"there is no command {command[0]!r}" if command else "it is empty"
            raise ExamError(f"the chatbot cannot be started by {self._command!r}: {told}")
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _KEEPER, f"{_END_SECONDS}", *command),
            env=self._environ,
            stdin=asyncio.subprocess.PIPE,  # closed when this process ends, however it does: then the keeper ends all
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the exam, which ends the chatbot in its order
        )
        self._reading = asyncio.create_task(self._read())
        try:
            await self._until_it_listens()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def _until_it_listens(self) -> None:
        assert self._process is not None
        listening = asyncio.create_task(until_there(self._url, self._seconds))
        ended = asyncio.create_task(_gone(self._process))
        await asyncio.wait({listening, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if listening.done() and listening.result():
            return
        listening.cancel()
        if self._process.returncode is not None:
            await asyncio.sleep(0.1)  # its last words
            told = f"it ended by itself with status {self._process.returncode}"
        else:
            told = f"after {self._seconds:g} s nothing listens at {self._url}"
        raise ExamError(f"{self._command!r} did not start a chatbot: {told}{self.last_words()}")

    def last_words(self) -> str:
        """The end of what it said, as further lines."""
        return "".join(f"\n{line}" for line in list(self._said)[-8:])

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._said.append(line.decode("utf-8", "replace").rstrip()[:_LINE_CHARACTERS])
        except ValueError:  # a line that never ends
            while await self._process.stdout.read(65_536):
                pass

    async def _end(self) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_gone(process), _END_SECONDS + _KEEPER_SECONDS)
        if process.returncode is None:
            process.kill()
        await _gone(process)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        transport = getattr(process, "_transport", None)  # asyncio closes the pipe when it is collected
        if transport is not None:
            transport.close()
        self._process = None


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Wait for its end; asyncio's own `wait` waits for that of each child, too, which its output was left to."""
    while process.returncode is None:  # noqa: ASYNC110 - nobody else tells
        await asyncio.sleep(0.02)
