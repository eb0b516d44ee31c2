"""The house's ladder: a room imports only from rooms below it, and public names are the ones listed."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import motamot

SOURCE = Path(motamot.__file__).parent
LADDER: list[set[str]] = [  # bottom up; rooms on one step do not import each other
    {"sse", "answer", "errors", "limits"},
    {"protocols"},
    {"tape"},
    {"store"},
    {"model", "scripted"},
    {"findings"},
    {"exchange"},
    {"knowledge"},
    {"assistant", "peers"},
    {"testing", "settings"},
    {"server", "exam"},
    {"cli"},
    {"__main__"},
]
ALLOWED_BESIDE = {("answer", "errors"), ("limits", "errors"), ("sse", "errors")}
STEP = {room: number for number, rooms in enumerate(LADDER) for room in rooms}
NEVER_THE_SERVER = {"scripted", "peers", "exam"}
NO_POSIX = {"sse", "protocols", "peers", "findings", "exam"}
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found.append((".".join(parts), path))
    return found


def imports(path: Path) -> set[str]:
    """Modules that `path` imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative imports hide the room"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def test_every_module_belongs_to_a_room() -> None:
    rooms = {name.split(".")[0] for name, _ in modules()} - {"__init__"}
    assert rooms <= set(STEP)


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: str(value))
def test_a_room_imports_only_from_rooms_below(name: str, path: Path) -> None:
    room = name.split(".")[0]
    if room == "__init__":
        return  # loads names on first use; the codec's independence is tested below
    for imported in imports(path):
        if not imported.startswith("motamot."):
            assert not (room in NO_POSIX and imported.split(".")[0] in POSIX_ONLY), imported
            continue
        other = imported.split(".")[1]
        if other == room or other == "__version__" or other not in STEP:
            continue
        assert not (room in NEVER_THE_SERVER and other == "server")
        assert STEP[other] < STEP[room] or (room, other) in ALLOWED_BESIDE, f"{name} imports {imported}"


def test_the_codec_pulls_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import motamot.sse; new = set(sys.modules) - before; "
        "print([m for m in new if m.split('.')[0] not in sys.stdlib_module_names | {'motamot'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def public_modules() -> list[str]:
    return [
        info.name
        for info in pkgutil.walk_packages([str(SOURCE)], "motamot.")
        if not any(part.startswith("_") for part in info.name.split("."))
    ]


@pytest.mark.parametrize("name", ["motamot", *public_modules()])
def test_all_lists_what_a_module_offers(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    if listed is None:
        return
    assert len(set(listed)) == len(listed)
    for public in listed:
        assert hasattr(module, public), f"{name}.{public} is listed and missing"
    for public, value in vars(module).items():
        defined_here = getattr(value, "__module__", None) == name
        if defined_here and isinstance(value, type) and not public.startswith("_"):
            assert public in listed, f"{name}.{public} is public and not listed"
