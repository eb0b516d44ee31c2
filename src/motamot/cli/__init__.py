"""The command line: one file per command, each loaded only when it is the one that runs.

Loading takes half a second, and Ctrl-C works in it, too: nothing is imported here that Python has not loaded already.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

_STOPPED = 130  # motamot.cli.console.Exit.STOPPED, which is not loaded yet


def main() -> None:
    """The program `motamot`."""
    # An exception would not do: raised in the middle of an import, others catch it or print it. Whoever ignores the
    # signal (`nohup`, a job in the background) goes on ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from motamot.cli.commands import application

    application(sys.argv[1:])(prog_name="motamot")


def _end(*_: object) -> None:
    """Nothing was begun yet that would have to be ended."""
    os.write(2, b"motamot: stopped\n")
    os._exit(_STOPPED)
