"""Packages from PyPI at versions that cannot stand side by side: each fetched once, into a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.need import need

__all__ = ["pypi_package"]

_INSTALL_SECONDS = 50


def pypi_package(name: str, version: str) -> Path:
    """A folder for `PYTHONPATH` that holds this package alone; what it needs is the environment's."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "motamot-tests" / "pypi"
    place = cache / f"{name}@{version}"
    if not place.exists():
        problem = _install(name, version, place)
        need(not problem, f"{name} {version} from PyPI: {problem}")
    return place


def _install(name: str, version: str, place: Path) -> str:
    """Install it, all or nothing. Returns: what went wrong, or ""."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        made = Path(folder) / "made"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(made),
            f"{name}=={version}",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode:
            return done.stderr.strip()[-300:] or "pip failed"
        with contextlib.suppress(OSError):  # another test run was first
            shutil.move(made, place)
    return ""
