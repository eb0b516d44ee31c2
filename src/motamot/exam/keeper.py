"""Runs a command and lets nothing that it started outlive it: `python -I -S keeper.py SECONDS COMMAND …`.

A process of its own between the exam and the chatbot. It ends the command with all its descendants when it is told to
(SIGTERM), when the exam is gone (its standard input closes), and when the command itself has ended; then it ends as the
command did. Descendants first get SIGTERM, and after SECONDS SIGKILL.

On Linux it is their subreaper (`prctl(2)`): whoever's parent ends becomes its child, also in a session of its own, and
is found. macOS has no such thing: a child in a session of its own is found as long as its parents live, and a daemon,
whose parent has ended, is not. No import but the standard library's: it starts in some 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

__all__: list[str] = []

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
_KILL_SECONDS = 5.0  # of a process that hangs in the kernel nobody can say when it ends
_PROC = Path("/proc")
_LINUX = (_PROC / "self/stat").exists()
_STEP_SECONDS = 0.02
_CANNOT = 127  # as shells say it of a command that cannot be run


def _parents() -> dict[int, int]:
    """Of each process, its parent."""
    found = {}
    if _LINUX:
        for entry in _PROC.iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError, IndexError, ValueError):  # it may end meanwhile
                    state, parent = (entry / "stat").read_text("latin-1").rpartition(")")[2].split()[:2]
                    if state not in "ZX":
                        found[int(entry.name)] = int(parent)
        return found
    told = subprocess.run(["/bin/ps", "-axo", "pid=,ppid=,state="], capture_output=True, text=True, check=False).stdout
    for line in told.splitlines():
        process, parent, state = line.split()[:3]
        if not state.startswith("Z"):
            found[int(process)] = int(parent)
    return found


def _descendants(known: set[int]) -> set[int]:
    """All that come from this process; where no orphan becomes its child, also from those that are known to."""
    parents = _parents()
    found = {process for process in known if process in parents} if not _LINUX else set()
    sources = {os.getpid(), *found}
    while new := {process for process, parent in parents.items() if parent in sources and process not in found}:
        found |= new
        sources = new
    return found


def _reap(main: int) -> int | None:
    """Take note of those that have ended. Returns: how the command did, if it was among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            process, how = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            if process == main:
                status = how
    return status


def _end_all(seconds: float) -> None:
    """End all descendants; those that have ended stay to be reaped."""
    known: set[int] = set()
    until = time.monotonic() + seconds
    told: set[int] = set()
    while known := _descendants(known):
        late = time.monotonic() - until
        if late > _KILL_SECONDS:
            break
        for process in known if late > 0 else known - told:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL if late > 0 else signal.SIGTERM)
        told |= known
        time.sleep(_STEP_SECONDS)


def _ended_as(status: int | None) -> None:
    """End as the command did."""
    if status is None:
        os._exit(1)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def main(seconds: float, command: list[str]) -> None:
    """Run it to its end, or to ours."""
    if _LINUX:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    told: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - the owner's own
    except OSError as error:
        os.write(1, f"{error.strerror or error}\n".encode())
        os._exit(_CANNOT)
    status: int | None = None
    while status is None and not told:
        readable, _, _ = select.select([0, woken], [], [])
        if 0 in readable and not os.read(0, 1024):
            break
        if woken in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 1024)
        status = _reap(process.pid)
    _end_all(seconds)
    _ended_as(status if status is not None else _reap(process.pid))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
