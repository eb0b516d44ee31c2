"""Where the database is when nobody says."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["default_database"]


def default_database(environ: Mapping[str, str] = os.environ) -> str:
    """MOTAMOT_DATABASE (a path or a URL), else `motamot.sqlite3` where this system keeps a user's data."""
    if named := environ.get("MOTAMOT_DATABASE"):
        return named
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return str(folder / "motamot" / "motamot.sqlite3")
