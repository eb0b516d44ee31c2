"""The examples of docs/peers run as they stand, and print what stands below them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import Place

PAGES = Path(__file__).parents[2] / "docs" / "peers"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ motamot (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


TEXT = "".join((PAGES / page).read_text("utf-8") for page in ("README.md", "exercises.md"))


def found(what: re.Pattern[str]) -> list[tuple[str, str]]:
    return what.findall(TEXT)


@pytest.mark.parametrize(("code", "output"), found(PROGRAM))
def test_each_program_prints_what_stands_below_it(code: str, output: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, done.stdout) == ("", output)


def test_no_program_stands_without_its_output() -> None:
    assert TEXT.count("```python") == len(found(PROGRAM)) == 5
    assert TEXT.count("```console") == len(found(CONSOLE)) == 2


@pytest.mark.parametrize(("command", "output"), found(CONSOLE))
def test_each_command_prints_what_stands_below_it(tmp_path: Path, command: str, output: str) -> None:
    """Where a page leaves lines out, it says `…` on a line of its own."""
    done = Place(tmp_path).run(*shlex.split(command))
    printed = done.out.decode()
    assert (done.status, done.err) == (0, "")
    for part in output.split("…\n"):
        assert part in printed
