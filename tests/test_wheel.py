"""The built wheel, in an environment of its own: what a user gets, without compiler, Node or test tools."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from motamot.scripted.model import scripted_model

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=300)
    [built] = folder.glob("motamot-*.whl")
    return built


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_wheel_holds_everything_that_runs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    package = ROOT / "src"
    ours = {
        str(path.relative_to(package))
        for path in (package / "motamot").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= names
    assert {name.split("/")[0] for name in names - ours} == {next(n for n in names if "dist-info" in n).split("/")[0]}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert wheel.name.endswith("-py3-none-any.whl"), "nothing was compiled"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fresh_environment_answers_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "env"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheel)], check=True, timeout=500)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHON", "MOTAMOT_"))}
    environment = {**kept, "MOTAMOT_DATABASE": str(tmp_path / "books.sqlite3"), "OPENAI_MODEL": "scripted"}
    text = "Bonjour \u2028 \U0001f68c\n\n- a\r\n- b"
    with scripted_model([[{"say": text}]]) as server:
        environment["OPENAI_BASE_URL"] = server.url
        command = [str(folder / "bin" / "motamot"), "ask", "hello"]
        done = subprocess.run(command, env=environment, capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().startswith(text)
    done = subprocess.run(
        [str(folder / "bin" / "motamot"), "ledger", "--json"],
        env=environment,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b'"complete"' in done.stdout
