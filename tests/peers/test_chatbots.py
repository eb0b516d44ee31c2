"""docs/peers/chatbots.md says what the examinations found, and `python -m bench.chatbots` does them as it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.chatbots.__main__ import SERVERS, exam, free_port, told
from bench.chatbots.page import PAGE, findings, page, results
from bench.chatbots.stacks import STACKS, Stack

from motamot.exam.case import cases

NAMES = [stack.name for stack in STACKS]


def stack_of(name: str) -> Stack:
    return next(stack for stack in STACKS if stack.name == name)


def test_the_page_is_made_of_what_was_found() -> None:
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("name", NAMES)
def test_each_case_that_was_not_kept_is_in_a_finding_and_no_finding_is_made_up(name: str) -> None:
    found = results()["stacks"][name]["cases"]
    words = findings()
    everywhere = {number for finding in words["everywhere"] for number in finding["cases"]}
    told = [number for finding in words["stacks"][name]["findings"] for number in finding["cases"]]
    assert len(told) == len(set(told))
    assert {case["verdict"] for case in found.values()} <= {"failed", "noted"}
    assert {int(number) for number in found} - everywhere == set(told) - everywhere
    assert all(case["level"] == "note" for number, case in found.items() if int(number) in everywhere)


def test_every_chatbot_is_one_that_anybody_can_make() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 8 and set(results()["stacks"]) == set(NAMES)
    for stack in STACKS:
        assert all(re.fullmatch(r"[\w.\-]+(\[[\w,\-]+\])?==[\d.]+", one) for one in stack.pip), stack.pip
        assert all(re.fullmatch(r"(@[\w\-]+/)?[\w\-]+@[\d.]+", one) for one in stack.npm), stack.npm
        assert bool(stack.command) is not bool(stack.server)
    named = {stack.server for stack in STACKS} | set(
        re.findall(r"\{servers\}/(\S+)", " ".join(s.command for s in STACKS))
    )
    named |= {word for stack in STACKS for word in stack.asked if word.endswith(".json")}
    assert named - {""} == {file.name for file in SERVERS.iterdir() if file.suffix in (".py", ".mjs", ".yaml", ".json")}
    assert {number for one in results()["stacks"].values() for number in map(int, one["cases"])} <= {
        case.number for case in cases()
    }


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("tutorial", (101, 103, 105, 130, 201, 301)),
        ("plain-text", (101, 103, 201, 403)),
        ("pydantic-ai-ui", (101, 103, 161, 180, 201, 301, 607)),
        ("motamot", (101, 103, 161, 180, 201, 301, 403, 607)),
    ],
)
def test_a_chatbot_still_does_what_the_page_says(name: str, numbers: tuple[int, ...], tmp_path: Path) -> None:
    """Those whose packages the tests have anyhow, in the tests' own environment."""
    command, environ = exam(stack_of(name), Path(sys.prefix), free_port())
    command += [word for number in numbers for word in ("--case", str(number))]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, timeout=100, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()[-2000:]
    found = told(json.loads(done.stdout))["cases"]
    expected = results()["stacks"][name]["cases"]
    assert set(found) == {str(number) for number in numbers} & set(expected)
    assert {case["verdict"] for case in found.values()} <= {"failed"}
