"""The folder where model files are kept, and how one gets there whole: locked, measured, checked, renamed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from motamot.errors import ModelUnavailable
from motamot.model.known import KnownModel, is_file_of

__all__ = [
    "DOWNLOAD_SECONDS",
    "Say",
    "Tell",
    "cache_folder",
    "check_room",
    "install",
    "lock",
    "meter",
    "size_of",
    "writing",
]

DOWNLOAD_SECONDS = 6 * 3600.0  # one download in all, and so the wait for another process's one
_LOCK_PAUSE_SECONDS = 0.2
_SPARE_BYTES = 50_000_000  # left free on the disk beside the model

Say = Callable[[str], None]
"""Takes one sentence for the user at a time."""
Tell = Callable[[int], None]
"""Takes the number of bytes that have come so far."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where models are kept: `$MOTAMOT_CACHE/models`, else `$XDG_CACHE_HOME/motamot/models`, else under ~/.cache."""
    if own := environ.get("MOTAMOT_CACHE"):
        return Path(own).expanduser() / "models"
    # A relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path("~/.cache").expanduser()) / "motamot" / "models"


@contextmanager
def lock(target: Path, say: Say) -> Iterator[None]:
    """One process at a time fetches a file; the kernel lets go of the lock when its owner dies."""
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    with writing(target.parent):
        handle = target.with_name(f"{target.name}.lock").open("w")
    with handle:
        waiting = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    say(f"Another process is fetching {target.name}; waiting for it.")
                waiting = True
                if time.monotonic() > deadline:
                    raise ModelUnavailable(
                        f"Another process has been fetching {target.name} for hours: end it, then try again.",
                        reason="unreachable",
                    ) from None
                time.sleep(_LOCK_PAUSE_SECONDS)
        yield


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turns what the disk says into a sentence: an OSError inside becomes ModelUnavailable (`disk`)."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            text = f"The disk is full: {folder} holds no more. Make room"
        else:
            text = f"{folder} cannot be written ({problem.strerror or problem}). Make it writable"
        raise ModelUnavailable(
            f"{text}, or set MOTAMOT_CACHE to a folder elsewhere.", reason="disk", detail=str(problem)
        ) from problem


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold. needed: bytes. Raises ModelUnavailable (`disk`)."""
    with writing(folder):
        free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        raise ModelUnavailable(
            f"The model needs {needed / 1e6:,.0f} MB in {folder}, where {free / 1e6:,.0f} MB are free. "
            f"Make room, or set MOTAMOT_CACHE to a folder elsewhere.",
            reason="disk",
        )


def install(model: KnownModel, partial: Path, target: Path) -> None:
    """Check the finished download and give it its name, in one step that cannot be seen half done.

    Raises: ModelUnavailable (`damaged`); the partial file is then gone.
    """
    if not is_file_of(model, partial):
        with writing(partial.parent):
            partial.unlink()
        raise ModelUnavailable(
            f"What came for {model.title} is not the file that is known (its SHA-256 differs): it was removed. "
            f"Try again; if it stays so, give another model's GGUF file.",
            reason="damaged",
        )
    with writing(target.parent):
        partial.replace(target)


def size_of(path: Path) -> int:
    """Bytes of the file, 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def meter(model: KnownModel, say: Say) -> Iterator[Tell]:
    """Shows how many bytes are there: a bar where stderr is a terminal, a line each tenth elsewhere."""
    total = model.download
    if not sys.stderr.isatty():
        tenths = 0

        def tell(done: int) -> None:
            nonlocal tenths
            if done * 10 // total > tenths:
                tenths = done * 10 // total
                say(f"{model.title}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB.")

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(model.name, total=total)
        yield lambda done: bar.update(task, completed=done)
