"""Who owns a running row, and whether that owner still lives.

An owner is one opened store in one process. On the same host and boot its death is known at once: the kernel
says whether that process id exists and when it started (ids are used again). In another container of this boot the
process id means nothing here; there the kernel tells whether the owner still holds its lock, on a file of its own
beside the database (a container that was killed and is started again must not wait for a lease). For an owner
anywhere else there is only its lease: a number it counts up. It is watched on *our* monotonic clock, so that neither
clocks that differ between hosts, nor one that jumps, nor a laptop that slept ends a living owner.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import fcntl
import os
import platform
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = ["Lock", "Owner", "Watch", "myself", "tidy"]

_PROC = Path("/proc/self/stat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An opened store. place: the boot and process-id namespace in which `pid` means something; "" if unknown.

    host:    machine and its name, to know that an earlier boot of this very host is over; "" if unknown.
    started: when the process started, as its kernel tells it; "" if unknown.
    """

    id: str
    host: str
    place: str
    pid: int
    started: str
    renewals: int = 0


def myself() -> Owner:
    """A new owner in this process."""
    pid = os.getpid()
    return Owner(id=secrets.token_hex(8), host=_host(), place=_place(), pid=pid, started=_started(pid) or "")


class Lock:
    """An owner's lock file beside the database. The kernel lets go of the lock when the process dies."""

    def __init__(self, database: Path, owner: str) -> None:
        self._path = Path(f"{database}-owner-{owner}")
        self._held: int | None = None

    def hold(self) -> None:
        """Take it, before the owner stands in the books. Where that is impossible, its lease alone speaks for it."""
        try:
            self._held = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.remove()

    def release(self) -> None:
        """Let go of it in this process, without removing the file: what a forked child must do at once."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def remove(self) -> None:
        """Let go of it and remove the file: the owner has left, or is dead and swept."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.release()

    def held(self) -> bool | None:
        """Whether some process holds it; None where this cannot be told."""
        try:
            probe = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who ask at once do not see each other
            return False
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return None
        finally:
            os.close(probe)


def tidy(database: Path) -> None:
    """After a sweep: remove lock files that nobody holds, of owners killed before they stood in the books."""
    with contextlib.suppress(OSError):
        for path in database.parent.iterdir():
            stem, mark, owner = path.name.rpartition("-owner-")
            if mark and stem == database.name and Lock(database, owner).held() is False:
                path.unlink(missing_ok=True)


@dataclass(slots=True)
class Watch:
    """What one sweeper of this database has seen of the others' leases.

    lease: seconds without a renewal that mean death.
    """

    database: Path
    lease: float
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)

    def dead(self, others: list[Owner], now: float, *, here: set[str]) -> list[str]:
        """The ids of those that are dead, at `now` on a monotonic clock. here: owners living in this process."""
        known = {other.id for other in others}
        for gone in self._seen.keys() - known:
            del self._seen[gone]
        return [other.id for other in others if other.id not in here and not self._lives(other, now)]

    def _lives(self, other: Owner, now: float) -> bool:
        renewals, since = self._seen.get(other.id, (-1, now))
        watched = renewals >= 0
        if renewals != other.renewals:
            self._seen[other.id] = (other.renewals, now)
            since = now
        within_lease = now - since < self.lease
        if watched and within_lease and not _PROC.exists():
            # Asking `ps` costs a process: once at first sight and when the lease has lapsed is enough.
            return _exists(other) is not False
        verdict = _lives_here(other)
        if verdict is None and other.place != _place() and _same_boot(other):
            verdict = Lock(self.database, other.id).held()
        return within_lease if verdict is None else verdict


def _lives_here(other: Owner) -> bool | None:
    """Whether the owner's process runs on this host: None where its process id does not tell."""
    exists = _exists(other)
    if not exists or not other.started:
        return exists
    started = _started(other.pid)
    return None if started is None else started == other.started


def _exists(other: Owner) -> bool | None:
    """Whether there is a process of that id where the owner ran; None where this cannot be told from here."""
    place = _place()
    if not place or not other.place:
        return None
    if other.place != place:
        # Another boot of this very host is over. Another namespace of this boot may be a living container.
        same_host = bool(other.host) and other.host == _host()
        return False if same_host and not _same_boot(other) else None
    if other.pid == os.getpid():
        return False  # it is not one of ours: an earlier process with our id, or a store that was dropped
    try:
        os.kill(other.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it exists, and is another user's
    return True


@cache
def _place() -> str:
    boot = _boot()
    if not boot:
        return ""
    with contextlib.suppress(OSError):
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    return boot


def _same_boot(other: Owner) -> bool:
    boot = _place().partition("/")[0]
    return bool(boot) and other.place.partition("/")[0] == boot


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    if sys.platform == "darwin":
        return _sysctl("kern.bootsessionuuid")
    return ""


@cache
def _host() -> str:
    name = platform.node()
    with contextlib.suppress(OSError):
        return f"{name}/{Path('/etc/machine-id').read_text('ascii').strip()}"
    return name


def _started(pid: int) -> str | None:
    """When that process started; "" once it is dead but not yet waited for, None where it cannot be seen."""
    if _PROC.exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        except OSError:
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold spaces and parentheses
        return "" if fields[0] in "ZX" else fields[19]
    return _started_by_ps(pid)


def _started_by_ps(pid: int) -> str | None:
    """macOS and the BSDs have no /proc; `ps` tells the start to the second."""
    try:
        done = subprocess.run(  # noqa: S603 - the one argument from outside is a number
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 - /bin/ps or /usr/bin/ps, as the system has it
            capture_output=True,
            text=True,
            timeout=2,
            env={"PATH": os.environ.get("PATH", "/bin:/usr/bin"), "LC_ALL": "C", "TZ": "UTC"},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    state, _, started = done.stdout.strip().partition(" ")
    if not state:
        return None
    return "" if state.startswith(("Z", "X")) else " ".join(started.split())


def _sysctl(name: str) -> str:
    library = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    size = ctypes.c_size_t(256)
    buffer = ctypes.create_string_buffer(size.value)
    if library.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return ""
    return buffer.value.decode("ascii", "replace")
