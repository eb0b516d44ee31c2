"""docs/dashboard.md: what it shows runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.server.support import OPERATOR_KEY

PAGE = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text("utf-8")


def test_the_app_that_mounts_the_chat_has_a_dashboard() -> None:
    [code] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    made: dict[str, object] = {}
    exec(code, made)
    assert made["site"].operator.is_set  # type: ignore[attr-defined]


def test_its_command_takes_a_key_through_a_pipe() -> None:
    [command] = re.findall(r"^```console\n\$ motamot (.*?)\n```$", PAGE, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "motamot", *command.split()], input=f"{OPERATOR_KEY}\n", capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("scrypt:")
