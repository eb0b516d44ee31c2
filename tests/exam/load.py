"""A machine that is busy with other things, as those of build servers are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["busy"]

_SPIN = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True:
    sum(range(10_000))
"""


@contextmanager
def busy(processes: int = os.cpu_count() or 1) -> Iterator[None]:
    """So many processes compute all the time (one for each core); they end with this one, however it ends."""
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN], stdin=subprocess.PIPE) for _ in range(processes)]
    try:
        yield
    finally:
        for one in spinning:
            assert one.stdin is not None
            one.stdin.close()
        for one in spinning:
            one.wait()
