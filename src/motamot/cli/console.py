"""What commands share: saying things on stderr, writing results to stdout, and how a command ends.

Results go to stdout and are exact in a pipe; everything else goes to stderr. Nothing a model or a stranger wrote
reaches a terminal as a control character.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import re
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import IO, NoReturn

import typer

from motamot.errors import MotamotError

__all__ = [
    "Exit",
    "Output",
    "ReaderLeft",
    "counted",
    "harmless",
    "harmless_json",
    "log_to",
    "say",
    "styled",
    "write_result",
]


class Exit(IntEnum):
    """How a command ends, as its exit status says it."""

    DONE = 0
    FAILED = 1  # the answer failed
    NOT_STARTED = 2  # bad input, nothing was asked; also a command line that Typer refuses
    NOT_WHOLE = 3  # the answer was cut by the token limit, or filtered
    INTERNAL = 70  # a fault of motamot's own (EX_SOFTWARE)
    HUNG_UP = 128 + 1
    STOPPED = 128 + 2
    READER_LEFT = 128 + 13
    TERMINATED = 128 + 15


class ReaderLeft(Exception):
    """Whoever read stdout has closed it, as `head` does."""


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LINE_ENDS = re.compile(r"\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]")


def harmless(text: str) -> str:
    """`text` with its control characters as visible ones, so that a terminal obeys none of them.

    Tab and LF stay. C0 and DEL become Unicode's control pictures (ESC is ␛), C1 (which xterm takes as ESC [ and such)
    becomes `\\x9b`. So does what turns the direction of the text after it, by which a line reads as another one, become
    `\\u202e` (UAX #9, 2: embeddings, overrides, isolates). The marks U+200E, U+200F and U+061C stay: they turn no text
    that has a direction of its own, and right-to-left text needs them.
    """
    return text.translate(_PICTURES) if _CONTROLS.search(text) else text


def harmless_json(text: str) -> str:
    """The same of a JSON document, by its own escapes: it reads as it was."""
    return text.translate(_ESCAPES) if _CONTROLS.search(text) else text


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# Not by `_CONTROLS.sub`, whose pieces take a hundred bytes for each of a text that is made of control characters.
_PICTURES = {code: _picture(code) for code in range(0x2070) if _CONTROLS.match(chr(code))}
_ESCAPES = {code: f"\\u{code:04x}" for code in _PICTURES}


def counted(number: int, noun: str) -> str:
    """`1,200 pages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(line: str) -> None:
    """One line to stderr."""
    typer.echo(harmless(line), err=True)


def styled(text: str, code: str) -> str:
    """`text` in an SGR style on a terminal that shows them, unless `NO_COLOR` is set (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb" or not is_terminal(sys.stderr)
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def is_terminal(file: IO[str] | None) -> bool:
    """Whether this is a terminal; a closed file is none."""
    try:
        return file is not None and file.isatty()
    except ValueError:
        return False


def write_result(text: str) -> None:
    """Text to stdout, as UTF-8 whatever the locale, or as the terminal can show it.

    Raises: ReaderLeft, MotamotError (the disk is full).
    """
    file = sys.stdout
    encoding = file.encoding if is_terminal(file) else "utf-8"
    with _told():
        _write_all(_descriptor(file), text.encode(encoding, "replace"))


class Output:
    """stdout and stderr, written in order by a thread of its own.

    Whoever reads may be slow, or pause the terminal: the model is read on, and Ctrl-C is heard.

    reader_left: called on the loop once the reader of a pipe has gone, also while nothing is written.
    Raises:      MotamotError where stdout is closed from the start.
    """

    def __init__(self, reader_left: Callable[[], None]) -> None:
        self._waiting: queue.SimpleQueue[tuple[int, bytes, asyncio.Future[None] | None]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.to_terminal = is_terminal(sys.stdout)
        self.notes_to_terminal = is_terminal(sys.stderr)
        self._encoding = sys.stdout.encoding if self.to_terminal else "utf-8"
        self._notes_encoding = sys.stderr.encoding if sys.stderr is not None else "utf-8"
        with _told():
            self._results = _descriptor(sys.stdout)
        self._notes = _descriptor(sys.stderr) if sys.stderr is not None else None
        self._seen_together = self._notes is not None and _are_seen_together(self._results, self._notes)
        threading.Thread(target=self._run, name="output", daemon=True).start()
        if _is_pipe(self._results):
            watch = (self._results, reader_left)
            threading.Thread(target=self._watch_reader, args=watch, name="reader", daemon=True).start()

    async def write(self, text: str) -> None:
        """Text to stdout, exact in a pipe; back when it is written.

        Raises: ReaderLeft, MotamotError (the disk is full).
        """
        written: asyncio.Future[None] = self._loop.create_future()
        encoded = text.encode(self._encoding, "replace")
        self._waiting.put((self._results, encoded, written))
        with _told():
            await written

    def note(self, text: str) -> None:
        """Text to stderr, in its turn. Nobody waits for it, and nobody misses it if it can't be written."""
        if self._notes is not None:
            self._waiting.put((self._notes, text.encode(self._notes_encoding, "backslashreplace"), None))

    def end_line(self, *, answer: bool) -> None:
        """A line end where a line was left open on a terminal, or where both go to one place.

        In a pipe or a file stdout stays exact: there it is stderr that ends the line.
        """
        if answer and self.to_terminal:
            self._waiting.put((self._results, b"\n", None))
        elif self._seen_together or (not answer and self.notes_to_terminal):
            self.note("\n")

    async def drain(self) -> None:
        """Back when everything was written that can be."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((-1, b"", done))
        await done

    def _run(self) -> None:
        while True:
            descriptor, data, written = self._waiting.get()
            error: OSError | None = None
            try:
                if data:
                    _write_all(descriptor, data)
            except OSError as problem:
                error = problem
            if written is not None:
                self._call(_resolve, written, error)

    def _watch_reader(self, descriptor: int, reader_left: Callable[[], None]) -> None:
        poll = select.poll()
        poll.register(descriptor, 0)  # asks for nothing: an error and a hang-up are always told
        while not (events := poll.poll()) or not events[0][1] & (select.POLLERR | select.POLLHUP):
            pass
        self._call(reader_left)

    def _call(self, function: Callable[..., object], *given: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            self._loop.call_soon_threadsafe(function, *given)


def _are_seen_together(results: int, notes: int) -> bool:
    """Whether what goes to the two stands in one place: a file or pipe of both (`2>&1`), or a screen.

    What goes through a pipe (`| tee file`) most often ends on the screen on which the notes are.
    """
    return os.path.sameopenfile(results, notes) or (_is_pipe(results) and os.isatty(notes))


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _resolve(written: asyncio.Future[None], error: OSError | None) -> None:
    if not written.done():
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)


def _descriptor(file: IO[str] | None) -> int:
    if file is None:
        raise OSError("it is closed")
    file.flush()
    return file.fileno()


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # whoever started us made the pipe non-blocking
            select.select([], [descriptor], [])


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderLeft from None
    except OSError as error:
        raise MotamotError(f"standard output cannot be written: {error.strerror or error}") from error


def fail(error: MotamotError, *hints: str) -> NoReturn:
    """Say what is wrong in a sentence, with the way out, and end the command."""
    for line in told(error, *hints):
        say(line)
    raise typer.Exit(Exit.NOT_STARTED)


def told(error: MotamotError, *hints: str) -> list[str]:
    """An error as lines for stderr: `motamot: …`, then what the system or the provider said, then the hints."""
    first, *more = error.message.split("\n")
    lines = [f"motamot: {first}", *(f"         {line}" for line in more)]
    if error.detail:
        lines.append(f"         ({' '.join(_LINE_ENDS.sub(' ', error.detail).split())})")
    return [*lines, *(f"         {hint}" for hint in hints)]


def log_to(file: Path | None) -> None:
    """Set up logging, in the one place there is for it. No line of it holds a word of a conversation.

    file:   where each completion's line of JSON goes (level INFO of `motamot.completions`); `-` is stderr, None
            nowhere. Warnings go to stderr, as one line each.
    Raises: MotamotError where the file cannot be written.
    """
    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback
    notes = logging.StreamHandler(sys.stderr)
    notes.setFormatter(_OneLine())
    notes.setLevel(logging.WARNING)
    logging.getLogger().handlers[:] = [notes]
    if file is None:
        return
    completions = logging.getLogger("motamot.completions")
    completions.addHandler(_lines(file))
    completions.setLevel(logging.INFO)
    completions.propagate = False


def _lines(file: Path) -> logging.Handler:
    try:
        lines = logging.StreamHandler(sys.stderr) if str(file) == "-" else logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise MotamotError(f"the log {file} cannot be written: {error.strerror or error}") from error
    lines.setFormatter(logging.Formatter("%(message)s"))
    return lines


class _OneLine(logging.Formatter):
    """`motamot: warning: …` on one line, without a traceback unless `MOTAMOT_DEBUG` asks for it."""

    def format(self, record: logging.LogRecord) -> str:
        debug = bool(os.environ.get("MOTAMOT_DEBUG"))
        line = harmless(" ".join(record.getMessage().split()))
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line += f": {type(error).__name__}" + (f"\n{self.formatException(record.exc_info)}" if debug else "")
        return f"motamot: {record.levelname.lower()}: {line}"
