"""`python -m motamot.peers.real`: try the client libraries of this machine, and print `docs/peers/readers.md`."""

from __future__ import annotations

import argparse
import datetime as dt
import sys

from motamot.peers.real import RealLibraries
from motamot.peers.real.examine import examine, page


def main() -> int:
    """Examine them, with a line of progress each on standard error. Returns: 0, or 2 where none is there."""
    parser = argparse.ArgumentParser(
        prog="python -m motamot.peers.real", description=(__doc__ or "").partition(": ")[2]
    )
    parser.add_argument(
        "--node-modules", action="append", default=[], help="a folder with npm packages; may be repeated"
    )
    parser.add_argument("--only", default="", help="libraries whose name holds this")
    chosen = parser.parse_args()
    with RealLibraries(chosen.node_modules) as real:
        for problem in real.missing:
            sys.stderr.write(f"{problem}\n")
        reports = []
        for library in real.libraries:
            if chosen.only in library.name:
                sys.stderr.write(f"{library.title} …\n")
                reports.append(examine(library))
        if not reports:
            return 2
        today = dt.datetime.now(dt.UTC).date().isoformat()
        sys.stdout.write(page(reports, real.missing, node=real.node, date=today))
    return 0


if __name__ == "__main__":
    sys.exit(main())
