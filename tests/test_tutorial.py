"""docs/tutorial, in both languages: every step does what it says, for whoever has followed the steps before it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from motamot.testing import scripted_model
from tests.examples.support import asking, environment, example

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"
STEPS = 9
HEADING = re.compile(r"^## (\d)\. ", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)(, (?:further|suite))?\n")


@dataclass
class Step:
    """files: name, whether it goes on with what is there, and the code. commands: each with the output shown."""

    files: list[tuple[str, bool, str]] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)


def steps(language: str) -> list[Step]:
    _, *parts = HEADING.split((TUTORIAL / f"{language}.md").read_text("utf-8"))
    assert parts[::2] == [str(number) for number in range(1, STEPS + 1)]
    found = []
    for text in parts[1::2]:
        step = Step()
        for kind, code in BLOCK.findall(text):
            if kind == "console":
                command, _, output = code.partition("\n")
                step.commands.append((command.removeprefix("$ "), output))
            else:
                assert kind == "python"
                named = FILE.match(code)
                assert named, f"which file is this? {code[:40]}"
                step.files.append((named[1], named[2] is not None, code))
        found.append(step)
    return found


def follow(language: str, upto: int, folder: Path) -> Step:
    """Write what a reader has in their folder after step `upto`."""
    for step in steps(language)[:upto]:
        for name, further, code in step.files:
            before = (folder / name).read_text("utf-8") if further else ""
            (folder / name).write_text(before + code, "utf-8")
    return step


def run(arguments: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(folder, PYTHONIOENCODING="utf-8", **variables),
        capture_output=True,
        timeout=50,
    )
    assert (done.stderr.decode(), done.returncode) == ("", 0)
    return done.stdout.decode()


@pytest.mark.parametrize("number", range(1, STEPS + 1))
@pytest.mark.parametrize("language", ["en", "fr"])
def test_each_step_does_what_it_says(language: str, number: int, tmp_path: Path) -> None:
    step = follow(language, number, tmp_path)
    assert step.files or step.commands
    for name, _, _ in step.files:
        if not step.commands:
            run([name], tmp_path, {})
    for command, output in step.commands:
        program, *arguments = shlex.split(command)
        if program == "uvicorn":
            continue  # in a browser, below
        assert program == "python"
        if number == 1:  # "with a model it may print"
            with scripted_model([[{"say": output.partition("\n")[0]}]]) as model:
                assert run(arguments, tmp_path, asking(model.url)) == output
                assert model.requests[0].body["max_tokens"] == 60
        else:
            assert run(arguments, tmp_path, {}).rstrip("\n") == output.rstrip("\n")


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_page_is_served_as_step_8_says(language: str, tmp_path: Path) -> None:
    """And what comes over the network is what `call` has shown without one."""
    [(command, _)] = follow(language, 8, tmp_path).commands
    program, name, *options = shlex.split(command)
    assert program == "uvicorn"
    with example(name, tmp_path, options=options, folder_of_app=tmp_path) as app:
        with urlopen(app.url, timeout=10) as page:
            assert b"EventSource" in page.read()
        request = Request(f"{app.url}/flux", headers={"Accept": "text/event-stream"})
        with urlopen(request, timeout=10) as stream:
            assert stream.read().endswith(b"event: fin\ndata: fin\n\n")


def test_both_languages_have_the_same_steps() -> None:
    english, french = steps("en"), steps("fr")
    for one, other in zip(english, french, strict=True):
        assert len(one.files) == len(other.files)
        assert len(one.commands) == len(other.commands)
        for (_, _, ours), (_, _, theirs) in zip(one.files, other.files, strict=True):
            assert len(ours.splitlines()) in range(len(theirs.splitlines()) - 1, len(theirs.splitlines()) + 2)
