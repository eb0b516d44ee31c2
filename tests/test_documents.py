"""What the documents say is so: their code runs, their links lead somewhere, their generated parts are fresh."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from motamot.scripted.model import scripted_model

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if path.is_file())
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    text = (ROOT / page).read_text("utf-8")
    return [code for kind, code in BLOCK.findall(text) if kind == language]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "MOTAMOT_", "AI_URL"))}
    yield {**kept, "MOTAMOT_DATABASE": str(tmp_path / "books.sqlite3"), "NO_COLOR": "1"}


def run(arguments: list[str], environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_of_ours_leads_there(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_example_of_the_readme_runs_as_it_stands(tmp_path: Path, environment: dict[str, str]) -> None:
    code, _ = blocks("README.md", "python")
    script = [
        [{"call": {"name": "order_status", "arguments": {"order": "7"}}}, {"finish": "tool_calls"}],
        [{"say": "It left the warehouse."}, {"usage": {"prompt": 30, "completion": 5}}],
    ]
    (tmp_path / "example.py").write_text(code)
    with scripted_model(script) as server:
        environment |= {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "scripted"}
        done = run(["example.py"], environment, tmp_path)
        assert (done.stderr, done.returncode) == ("", 0)
        assert done.stdout.startswith("It left the warehouse.\ncomplete, ")
        assert "Order 7 left the warehouse this morning." in json.dumps(server.requests[1].body["messages"])
        assert len(server.requests) == 2


def test_the_second_example_of_the_readme_mounts_a_chat(tmp_path: Path, environment: dict[str, str]) -> None:
    _, code = blocks("README.md", "python")
    with scripted_model([[{"say": "Hi."}]]) as server:
        program = code.replace("https://api.openai.com/v1", server.url) + (
            "\nimport asyncio, json\nfrom motamot.testing import call, running\n"
            "async def main():\n"
            "    async with running(app):\n"
            "        body = json.dumps({'message': 'hello'})\n"
            "        headers = {'content-type': 'application/json'}\n"
            "        answered = await call(app, 'POST /chat/api/chat', headers=headers, body=body.encode())\n"
            "        print(answered.status, answered.json()['text'])\n"
            "asyncio.run(main())\n"
        )
        (tmp_path / "mounted.py").write_text(program)
        done = run(["mounted.py"], environment, tmp_path)
    assert (done.stderr, done.stdout) == ("", "200 Hi.\n")


def test_the_pages_of_learn_lead_from_nothing_to_an_answer_with_its_source(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    booking, annuler = blocks("docs/learn.md", "markdown")
    (tmp_path / "help").mkdir()
    (tmp_path / "help" / "booking.md").write_text(booking)
    (tmp_path / "help" / "annuler.md").write_text(annuler)
    learn, ask, _, own = blocks("docs/learn.md", "console")

    def shown(console: str, *arguments: str) -> str:
        command, _, expected = console.partition("\n")
        assert command.startswith("$ motamot ")
        done = run(["-m", "motamot", *shlex.split(command)[2:], *arguments], environment, tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.rstrip("\n") == expected.rstrip("\n")
        return done.stderr

    assert shown(learn) == "help.db: 2 articles, 3 passages (2 new)\n"
    [settings] = blocks("docs/learn.md", "toml")
    (tmp_path / "motamot.toml").write_text(settings)
    script = [
        [{"call": {"name": "search_help", "arguments": {"query": "bicycle"}}}, {"finish": "tool_calls"}],
        [{"say": ask.splitlines()[1]}],
        [{"call": {"name": "timetable", "arguments": {"line": "4"}}}, {"finish": "tool_calls"}],
        [{"say": own.splitlines()[-1]}],
    ]
    with scripted_model(script) as server:
        environment |= {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "scripted"}
        assert "· [2] Booking a seat https://bus.example/help/booking\n" in shown(ask)
        assert "three euros" in json.dumps(server.requests[1].body["messages"][-1])
        [program] = blocks("docs/learn.md", "python")
        (tmp_path / "timetable.py").write_text(program)
        done = run(["timetable.py"], environment, tmp_path)
        assert (done.stderr, done.stdout) == ("", own.split("\n", 1)[1])


class TestTutorial:
    """docs/tutorial/begin.md, step by step."""

    @pytest.fixture
    def model(self, tmp_path: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
        scripts, *_ = blocks("docs/tutorial/begin.md", "yaml")
        (tmp_path / "scripts.yaml").write_text(scripts)
        command = [sys.executable, "-m", "motamot", "scripted-model", "scripts.yaml", "--record", "record.jsonl"]
        with subprocess.Popen(
            command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL
        ) as process:
            assert process.stderr is not None
            said = ""
            while (found := re.search(r"http://127\.0\.0\.1:\d+/v1", said)) is None:
                said += process.stderr.readline()
            yield {**environment, "OPENAI_BASE_URL": found[0], "OPENAI_MODEL": "scripted"}
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0

    def test_step_2_asks(self, tmp_path: Path, model: dict[str, str]) -> None:
        done = run(["-m", "motamot", "ask", "hello"], model, tmp_path)
        assert (done.stdout.rstrip("\n"), done.returncode) == ("Hello! How can I help?", 0)

    def test_steps_3_and_4_stop_and_look_at_the_ledger(self, tmp_path: Path, model: dict[str, str]) -> None:
        with subprocess.Popen(
            [sys.executable, "-m", "motamot", "ask", "tell me a story"],
            env=model,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.read(4) == "Once"
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=10)
            assert process.returncode == 130
        deadline = time.monotonic() + 5
        while "client_left" not in (tmp_path / "record.jsonl").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        done = run(["-m", "motamot", "ledger", "--json"], model, tmp_path)
        [line] = done.stdout.splitlines()
        assert json.loads(line)["outcome"] == "stopped"

    def test_step_5_uses_a_tool(self, tmp_path: Path, model: dict[str, str]) -> None:
        self.program("shop", 0, tmp_path, model)

    def test_step_6_answers_by_itself(self, tmp_path: Path, model: dict[str, str]) -> None:
        self.program("skill", 1, tmp_path, model)

    def program(self, name: str, number: int, folder: Path, environment: dict[str, str]) -> None:
        """Run a program of the tutorial, and compare its output with what the tutorial shows."""
        code = blocks("docs/tutorial/begin.md", "python")[number]
        console = [text for text in blocks("docs/tutorial/begin.md", "console") if f"python {name}.py" in text]
        expected = console[0].split("\n", 1)[1]
        (folder / f"{name}.py").write_text(code)
        done = run([f"{name}.py"], environment, folder)
        assert (done.stderr, done.returncode) == ("", 0)
        assert done.stdout == expected


def test_the_generated_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
