"""AG-UI's own client for JavaScript, at the versions that are told to work, in Node."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.node import node, npm_package

__all__ = ["DECLARING", "VERSIONS", "client"]

VERSIONS = ("0.0.47", "0.0.59", "1.0.0")
"""The oldest, the last before 1.0, and 1.0."""
DECLARING = ("1.0.0",)
"""Those that declare the protocol's version."""

_SECONDS = 40


async def client(version: str, act: str, **told: Any) -> dict[str, Any]:
    """What the client makes of it: see ag_ui_node.mjs."""
    place = await asyncio.to_thread(npm_package, "@ag-ui/client", version)
    script = place / "ag_ui_node.mjs"  # beside the package: that is where Node looks for it
    await asyncio.to_thread(_put, script)
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.json"
        await asyncio.to_thread(asked.write_text, json.dumps({"act": act, **told}), "utf-8")
        process = await asyncio.create_subprocess_exec(
            node(), script, asked, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            out, errors = await asyncio.wait_for(process.communicate(), _SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
    assert process.returncode == 0, errors.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def _put(script: Path) -> None:
    """All at once: another test may be reading it."""
    fresh = script.with_suffix(f".{os.getpid()}")
    shutil.copyfile(Path(__file__).parent / script.name, fresh)
    fresh.replace(script)
