"""Places where writing goes wrong, as real as this machine allows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TINY = "3m"


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", f"size={TINY}", "tmpfs", str(folder)):
        pytest.skip("only root may mount a small disk; the limit on a file's size is tested everywhere")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def make_read_only(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """A function that makes a folder and all in it read-only, for root too where that is possible."""
    undo: list[list[str]] = []

    def freeze(folder: Path) -> None:
        if os.geteuid() != 0:
            for path in (*folder.iterdir(), folder):
                path.chmod(0o500 if path.is_dir() else 0o400)
                undo.append(["chmod", "u+w", str(path)])
        elif _mount("--bind", str(folder), str(folder)) and _mount("-o", "remount,ro,bind", str(folder)):
            undo.append(["umount", "-l", str(folder)])
        else:
            pytest.skip("root may write anywhere here")

    yield freeze
    for command in reversed(undo):
        subprocess.run(command, check=True)


@pytest.fixture
def python() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """A function that runs code in a process of its own, its output piped."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()
