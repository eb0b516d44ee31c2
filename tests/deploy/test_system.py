"""scripts/system.sh, before `make test`: it gets what is missing where it may, and names it where it may not.

Package manager, sudo and user are played here; that real ones do it is what every run on a fresh machine shows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.deploy.support import ROOT
from tests.need import need

PROGRAMS = ("curl", "ps", "chromium", "nginx", "caddy", "systemd-analyze")
_OWN = ("/usr/local/sbin:/usr/sbin:/sbin", "/usr/sbin/policy-rc.d")
_APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$PLAYED"
[ -e "$POLICY" ] && echo "servers are kept from starting" >>"$PLAYED"
case "$1" in install) ;; *) exit 0 ;; esac
for word; do
    case "$word" in
        procps) word=ps ;;
        systemd) word=systemd-analyze ;;
        install | -* | *::*) continue ;;
    esac
    ln -s true "$PROGRAMS/$word"
done
"""
_APT_CACHE = """#!/bin/sh
[ "$2" != "$UNKNOWN" ]
"""
_SUDO = """#!/bin/sh
[ "$1" = -n ] || exit 9
echo sudo >>"$PLAYED"
[ -z "$ASKS" ] || exit 1
shift
exec "$@"
"""


class Machine:
    """A PATH with the tools of every system, and what a test adds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.played = folder / "played"
        self.policy = folder / "policy-rc.d"
        for tool in ("sh", "env", "tee", "chmod", "rm", "ln", "true"):
            (self.programs / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
        self.script = folder / "system.sh"
        text = (ROOT / "scripts" / "system.sh").read_text()
        for own, here in zip(_OWN, (str(folder / "sbin"), str(self.policy)), strict=True):
            assert own in text
            text = text.replace(own, here)
        self.script.write_text(text)
        self.user(1000)

    def add(self, name: str, text: str = "#!/bin/sh\n") -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def user(self, number: int) -> None:
        self.add("id", f"#!/bin/sh\necho {number}\n")

    def debian(self) -> None:
        self.add("apt-get", _APT_GET)
        self.add("apt-cache", _APT_CACHE)

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.programs),
            "PLAYED": str(self.played),
            "PROGRAMS": str(self.programs),
            "POLICY": str(self.policy),
            **variables,
        }
        return subprocess.run(
            [str(self.programs / "sh"), str(self.script)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def history(self) -> str:
        return self.played.read_text() if self.played.exists() else ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("ci", ["", "true"])
def test_where_all_is_there_it_says_and_does_nothing_and_is_quick(machine: Machine, ci: str) -> None:
    machine.debian()
    for program in PROGRAMS:
        machine.add(program)
    began = time.monotonic()
    done = machine.run(CI=ci)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.history() == ""
    assert time.monotonic() - began < 2


def test_root_on_debian_gets_what_is_missing_and_nothing_else(machine: Machine) -> None:
    machine.debian()
    machine.user(0)
    machine.add("curl")
    machine.add("ps")
    done = machine.run(CI="true")
    assert done.returncode == 0, done.stderr
    [installed] = [line for line in machine.history().splitlines() if line.startswith("apt-get install")]
    assert installed.split()[-4:] == ["chromium", "nginx", "caddy", "systemd"]
    assert "curl" not in installed
    assert machine.run(CI="true").stderr == ""


def test_a_server_that_is_installed_for_tests_is_not_started(machine: Machine) -> None:
    machine.debian()
    machine.user(0)
    machine.add("systemctl", '#!/bin/sh\necho "systemctl $*" >>"$PLAYED"\n')
    machine.run()
    history = machine.history()
    assert "servers are kept from starting" in history
    assert not machine.policy.exists(), "what kept them is gone again"
    for server in ("nginx", "caddy"):
        assert f"disable {server}" in history


def test_a_policy_that_is_there_is_left_as_it_is(machine: Machine) -> None:
    machine.debian()
    machine.user(0)
    machine.policy.write_text("the machine's own")
    machine.run()
    assert machine.policy.read_text() == "the machine's own"


def test_a_sudo_that_asks_for_nothing_is_used(machine: Machine) -> None:
    machine.debian()
    machine.add("sudo", _SUDO)
    done = machine.run(CI="true")
    assert done.returncode == 0, done.stderr
    assert machine.history().startswith("sudo\n")


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_sudo_that_would_ask_is_not_waited_for(machine: Machine, ci: str) -> None:
    machine.debian()
    machine.add("sudo", _SUDO)
    done = machine.run(CI=ci, ASKS="yes")
    assert "As root: apt-get install curl procps chromium nginx caddy systemd" in done.stderr
    assert "apt-get" not in machine.history()
    assert done.returncode == (1 if ci else 0)
    assert ("skipped" in done.stderr) == (not ci)


def test_another_system_is_told_what_is_missing(machine: Machine) -> None:
    machine.add("curl")
    done = machine.run()
    assert done.returncode == 0
    assert "Missing: procps chromium nginx caddy systemd" in done.stderr
    assert machine.run(CI="true").returncode == 1


def test_a_package_that_this_debian_has_not_keeps_no_other_out(machine: Machine) -> None:
    machine.debian()
    machine.user(0)
    done = machine.run(UNKNOWN="caddy")
    assert done.returncode == 0
    assert "Missing: caddy" in done.stderr
    assert (machine.programs / "nginx").exists()


def test_make_test_calls_it_first() -> None:
    need(shutil.which("make"), "make")
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "test"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "sh scripts/system.sh"
