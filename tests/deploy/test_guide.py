"""docs/deploy.md: its settings are taken, and its commands do what it says."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.deploy.support import ROOT
from tests.deploy.test_proxies import run
from tests.server.support import environment, free_port, serving

GUIDE = (ROOT / "docs" / "deploy.md").read_text("utf-8")


def block(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)


def test_its_settings_are_explained_without_a_warning(tmp_path: Path) -> None:
    [settings] = block("toml")
    (tmp_path / "motamot.toml").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-m", "motamot", "serve", "--check", "--port", str(free_port())],
        cwd=tmp_path,
        env=environment(tmp_path, OPENAI_API_KEY="a-key-of-the-tests"),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "chat.example" in done.stdout
    assert "Warnings" not in done.stdout, done.stdout


def test_its_settings_bound_every_assistant_and_name_no_key() -> None:
    [settings] = block("toml")
    for wanted in ("hosts", "proxies", "money_per_day", "max_tokens", "api_key_env"):
        assert re.search(rf"^{wanted} = ", settings, flags=re.MULTILINE), wanted
    assert not re.search(r"^api_key = ", settings, flags=re.MULTILINE)


def test_its_backup_is_whole_while_the_server_runs(tmp_path: Path) -> None:
    [command] = [code for code in block("console") if ".backup(" in code]
    words = shlex.split(command.removeprefix("# ").replace("\\\n", " "))
    copy = tmp_path / "copy.sqlite3"

    async def scenario() -> None:
        async with serving(tmp_path, [[{"say": "Kept."}]] * 2) as s:
            await s.ask()
            words[-2:] = [str(tmp_path / "books.sqlite3"), str(copy)]
            words[0] = sys.executable
            for _ in range(50):  # the end of an answer is booked a moment after it was told
                subprocess.run(words, check=True, timeout=30)
                with closing(sqlite3.connect(copy)) as found:
                    assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                    rows = found.execute("SELECT generated, outcome FROM exchanges").fetchall()
                    if rows == [("Kept.", "complete")]:
                        break
            else:
                raise AssertionError(rows)
            await s.ask()

    run(scenario())


def test_every_file_of_the_folder_is_told_of() -> None:
    for path in (ROOT / "deploy").iterdir():
        assert path.name in GUIDE or path.name == "Dockerfile.dockerignore", path.name


def test_every_setting_and_route_that_it_names_is_there() -> None:
    from motamot.limits import Limits
    from motamot.settings import AssistantSettings, ServerSettings

    names = {*ServerSettings.model_fields, *AssistantSettings.model_fields, *Limits.__dataclass_fields__}
    table = GUIDE[GUIDE.index("## Before strangers come") :]
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", table))
    assert named - {"limit_conn"} <= names
