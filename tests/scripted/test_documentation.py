"""docs/scripted-model.md names what there is, and its examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import pytest

from motamot.scripted import bounds, load_scripts
from motamot.scripted.reading import _CUTS, _READERS
from motamot.scripted.steps import CallDialect, FailHow, How, UsagePlace

PAGE = (Path(__file__).parents[2] / "docs" / "scripted-model.md").read_text("utf-8")


def test_every_step_and_cut_is_documented() -> None:
    assert not [name for name in _READERS if f"`{name}:" not in PAGE]
    assert not [name for name in _CUTS if f"`{name}`" not in PAGE]


@pytest.mark.parametrize("words", [How, CallDialect, UsagePlace, FailHow])
def test_every_word_of_a_step_is_documented(words: type[StrEnum]) -> None:
    assert not [word for word in words if f"`{word}`" not in PAGE and f": {word}`" not in PAGE]


def test_every_limit_is_documented() -> None:
    names = [name for name in vars(bounds) if name.isupper()]
    assert names
    assert not [name for name in names if f"`{name}`" not in PAGE]


def test_the_documented_scripts_load(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "scripts.yaml"
    path.write_text(text, "utf-8")
    assert set(load_scripts(path).scripts) == {"hello", "slow", "weather", "prices"}


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_documented_programs_run(code: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=30)
