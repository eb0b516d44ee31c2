"""All measurements, one after the other: `python -m bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ORDER = ["decoders", "path", "store", "stop", "relay", "browsing", "dashboard", "markdown", "widget"]


def main() -> None:
    """Run each in a process of its own: what one has loaded must not cost the next."""
    for name in ORDER:
        print(f"\n## {name}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"bench.{name}"], cwd=Path(__file__).parent.parent, check=True)


if __name__ == "__main__":
    main()
