"""The systemd unit as systemd reads it, and the Dockerfile's steps in a fresh environment (the image is not built)."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from motamot.scripted import scripted_model
from tests.deploy.support import DEPLOY, ROOT
from tests.need import need
from tests.server.support import OPERATOR_KEY, V1_KEY, Process, environment, free_port

UNIT = DEPLOY / "motamot.service"


# systemd


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that is there."""
    text = UNIT.read_text()
    assert "/opt/motamot/bin/motamot" in text
    changed = tmp_path / "motamot.service"
    changed.write_text(text.replace("/opt/motamot/bin/motamot", shutil.which("true") or "/bin/true"))
    return changed


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = shutil.which("systemd-analyze")
    need(command, "systemd-analyze: apt-get install systemd")
    assert command is not None
    return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=50, check=False)


def test_systemd_understands_every_line_of_the_unit(unit: Path) -> None:
    done = analyze("verify", str(unit))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_is_closed_as_far_as_systemd_can_tell(unit: Path) -> None:
    done = analyze("security", "--offline=yes", "--threshold=15", "--no-pager", str(unit))  # 1.5 of 10
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_starts_a_command_line_that_motamot_takes(tmp_path: Path) -> None:
    """With its settings' path put here, and `--check` behind: everything is read, nothing is served."""
    [line] = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), flags=re.MULTILINE)
    settings = tmp_path / "motamot.toml"
    settings.write_text('[assistants.default]\nupstream = "http://127.0.0.1:9/v1"\nmodel = "m"\n')
    program, *arguments = shlex.split(line.replace("/etc/motamot/motamot.toml", str(settings)))
    assert program.endswith("/bin/motamot")
    command = [sys.executable, "-m", "motamot", *arguments, "--check"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert str(settings) in done.stdout


# Docker

Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    """The Dockerfile's instructions, lines that go on put together."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word]


def ignored(path: str) -> bool:
    """Whether the builder leaves a file of the repository out: the last line that fits decides."""
    out = False
    parents = ["/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 2)]
    for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split("\n"):
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            name = pattern.removeprefix("!").removeprefix("**/")
            anywhere = "**/" in pattern
            if any(fnmatch.fnmatchcase(p.rpartition("/")[2] if anywhere else p, name) for p in parents):
                out = not pattern.startswith("!")
    return out


def left_out(folder: str, names: list[str]) -> list[str]:
    """Those of a folder's files that the builder leaves out."""
    return [name for name in names if ignored((Path(folder) / name).relative_to(ROOT).as_posix())]


class Image:
    """Runs instructions with `/opt`, `/build` and `/data` under a folder of its own for each stage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stages: dict[str, Path] = {}
        self.root = folder
        self.workdir = "/"
        self.environment: dict[str, str] = {}
        self.kept: dict[str, str] = {}  # ENTRYPOINT, CMD, USER, …: the last word of each

    def here(self, text: str) -> str:
        """`text` with the image's paths as they are on this machine."""
        return re.sub(r"(?<![\w./-])/(opt|build|data)\b", rf"{self.root}/\1", text)

    def run(self, word: str, rest: str) -> None:
        match word:
            case "FROM":
                name = rest.split(" AS ")[1] if " AS " in rest else "last"
                assert re.fullmatch(r"python:3\.\d+-slim-\w+", rest.split()[0])
                self.root = self.stages[name] = self.folder / name
                self.root.mkdir()
                self.workdir, self.environment = "/", {}
            case "ARG":
                name, _, value = rest.partition("=")
                self.environment[name] = value
            case "ENV":
                pairs = (part.partition("=") for part in shlex.split(rest))
                self.environment |= {name: self.here(value) for name, _, value in pairs}
            case "WORKDIR":
                self.workdir = rest
                Path(self.here(rest)).mkdir(parents=True, exist_ok=True)
            case "COPY":
                self.copy(rest.split())
            case "RUN":
                self.shell(rest)
            case "ENTRYPOINT" | "CMD" | "USER" | "VOLUME" | "EXPOSE" | "STOPSIGNAL" | "HEALTHCHECK":
                self.kept[word] = rest
            case _:
                raise AssertionError(f"this test does not know {word}")

    def copy(self, parts: list[str]) -> None:
        if parts[0].startswith("--from="):
            source = self.stages[parts[0].removeprefix("--from=")]
            [path, target] = parts[1:]
            # A virtual environment knows its own place: the stages have the same one, which here is two.
            Path(self.here(target)).parent.mkdir(parents=True, exist_ok=True)
            Path(self.here(target)).symlink_to(source / path.lstrip("/"))
            return
        *sources, target = parts
        folder = Path(self.here(self.workdir)) / target
        for name in sources:
            assert not ignored(name), f"{name} is not sent to the builder"
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder, dirs_exist_ok=True, ignore=left_out)
            else:
                shutil.copy(ROOT / name, folder)

    def shell(self, line: str) -> None:
        line = self.here(line)
        if os.geteuid() != 0:
            line = re.sub(r" && chown \S+ \S+", "", line)
        path = f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_")) or "proxy" in name
        }
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.here(self.workdir),
            env={**kept, "PATH": path, "HOME": str(self.folder), "LANG": "C.UTF-8", **self.environment},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_dockerfiles_steps_lead_to_a_server_that_answers(tmp_path: Path) -> None:
    image = Image(tmp_path / "image")
    image.folder.mkdir()
    for word, rest in instructions():
        image.run(word, rest)
    installed = tmp_path / "image/build/opt/motamot"
    assert not list(installed.rglob("__editable__*")), "the image would need the sources"
    entry, arguments = json.loads(image.kept["ENTRYPOINT"]), json.loads(image.kept["CMD"])
    port = free_port()
    assert arguments[-2:] == ["--port", image.kept["EXPOSE"]]
    arguments[-1] = str(port)
    variables = {name: value for name, value in image.environment.items() if name != "EXTRAS"}
    variables["PATH"] = variables["PATH"].replace("$PATH", "/usr/bin:/bin")
    health = image.kept["HEALTHCHECK"].partition(" CMD ")[2]
    check = [part.replace(":8000", f":{port}") for part in json.loads(health)]
    with scripted_model([[{"say": "From the image."}]]) as model:
        keys = {"MOTAMOT_V1_KEYS": V1_KEY, "MOTAMOT_OPERATOR_KEY": OPERATOR_KEY}
        settings = {**keys, "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "scripted", "OPENAI_API_KEY": "none-needed"}
        started = {"LANG": "C.UTF-8", **variables, **settings}
        found = shutil.which(entry[0], path=variables["PATH"])
        assert found is not None
        process = Process(
            subprocess.Popen(
                [found, *arguments], env=started, cwd=image.here(image.workdir), stderr=subprocess.PIPE, text=True
            ),
            port,
        )
        try:
            process.wait_said("motamot serves")
            subprocess.run(check, env={"PATH": variables["PATH"]}, check=True, timeout=20)
            answer = subprocess.run(
                [sys.executable, "-c", _ASK, f"{process.url}/api/chat"],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert json.loads(answer.stdout)["text"] == "From the image.", answer.stderr
            process.signal()
            assert process.wait() == 0
        finally:
            process.close()
    assert Path(variables["MOTAMOT_DATABASE"]).exists()
    assert image.kept["VOLUME"] == "/data"
    assert image.kept["USER"] == "10001:10001"


_ASK = """
import sys, urllib.request
asked = urllib.request.Request(sys.argv[1], b'{"message": "hello"}', {"Content-Type": "application/json"})
print(urllib.request.urlopen(asked, timeout=20).read().decode())
"""


def test_the_image_has_a_python_that_the_project_supports() -> None:
    versions = {tuple(map(int, found)) for found in re.findall(r"FROM python:(\d+)\.(\d+)", _dockerfile())}
    [version] = versions
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version[0]}.{version[1]}" in project["classifiers"]


def _dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text()


@pytest.mark.parametrize(
    "path", ["motamot.toml", ".git/config", ".venv/bin/python", "keys.env", "src/motamot/__pycache__/x.pyc"]
)
def test_the_builder_is_sent_nothing_that_is_not_built_from(path: str) -> None:
    assert ignored(path)
    assert not ignored("src/motamot/server/site.py")
