"""`motamot exam`, as a process: starts a chatbot, examines it, ends it and its children, and tells."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.support import Place
from tests.need import need
from tests.server.support import free_port

CHATBOT = """
import sys
sys.path.insert(0, {root!r})
import os, uvicorn
from tests.exam.chatbots import BROKEN, Chatbot
name = {name!r}
chatbot = BROKEN[name][0]() if name else Chatbot()
chatbot.model = os.environ["OPENAI_BASE_URL"]
uvicorn.run(chatbot.app(), port={port}, log_level="critical")
"""
ROOT = Path(__file__).parents[2]


def chatbot(folder: Path, name: str = "") -> tuple[str, str]:
    """A chatbot's command, and its address."""
    port = free_port()
    (folder / "chatbot.py").write_text(CHATBOT.format(root=str(ROOT), name=name, port=port))
    return f"{sys.executable} chatbot.py", f"http://127.0.0.1:{port}/v1/chat/completions"


def test_an_honest_chatbot_is_started_examined_quickly_and_ended(tmp_path: Path) -> None:
    command, url = chatbot(tmp_path)
    done = Place(tmp_path).run("exam", url, "--run", command, "--quick", "--html", "r.html", "--junit", "r.xml")
    assert done.status == 0, done.err
    out = done.out.decode()
    assert re.search(r"asked as openai: 12 cases in \d+ s", out) and "failed" in out and out.endswith("passed\n")
    assert "writes about 13 conversations" in done.err and "OPENAI_BASE_URL=http://127.0.0.1:" in done.err
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "nothing was lost" in page and "<script" not in page and "http-equiv=Content-Security-Policy" in page
    suites = ET.parse(tmp_path / "r.xml").getroot()
    assert sum(int(suite.get("tests", "0")) for suite in suites) == 12
    again = Place(tmp_path).run("exam", url, "--run", command, "--case", "101")
    assert again.status == 0, "the first chatbot had ended, and left its port"


def test_what_a_broken_chatbot_loses_is_told_with_rule_remedy_and_the_command_that_repeats_it(tmp_path: Path) -> None:
    command, url = chatbot(tmp_path, "probes first, then streams")
    (tmp_path / "motamot-exam.toml").write_text(f"url = {json.dumps(url)}\nrun = {json.dumps(command)}\n")
    done = Place(tmp_path).run("exam", "--case", "301", "--html", "r.html")
    assert done.status == 1
    out = done.out.decode()
    assert "301 a plain answer is one completion  (once, must; failed)" in out
    assert "the model was asked the same 2 times (first whole and then as a stream)" in out
    for word in ("seen ", "rule ", "remedy ", "cost ", "again  motamot exam --case 301"):
        assert word in out
    assert "1 failed; about" in out
    told = json.loads(Place(tmp_path).run("exam", "--case", "301", "--json").out)
    assert (told["version"], told["status"], told["sums"]) == (1, 1, {"failed": 1})
    (case,) = told["cases"]
    assert (case["number"], case["verdict"], case["completions"]) == (301, "failed", 2) and case["wasted_tokens"] > 0


def test_bad_input_is_a_sentence_and_a_status(tmp_path: Path) -> None:
    command, url = chatbot(tmp_path)
    place = Place(tmp_path)
    for arguments, told in (
        ((), "say where the chatbot's visitors ask"),
        (("nowhere",), "'nowhere' is no address"),
        ((url, "--case", "9"), "there is no case 9"),
        ((url, "--only", "fast"), "'fast' is no promise"),
        ((url, "--preset", "x", "--run", command), "there is no preset 'x'"),
        ((url, "--request", "none.json", "--run", command), "the request none.json cannot be read"),
        ((url, "--stop", "here", "--run", command), "'here' is no route"),
        ((url, "--run", "no-such-command"), "cannot be started by 'no-such-command'"),
        ((url, "--run", f"{sys.executable} -c 'print(7); raise SystemExit(3)'"), "ended by itself with status 3"),
    ):
        done = place.run("exam", *arguments)
        assert done.status == 2 and done.out == b"", arguments
        assert told in done.err and "Traceback" not in done.err, done.err
    (tmp_path / "motamot-exam.toml").write_text("adress = 1\n")
    assert "there is no 'adress'" in place.run("exam").err
    (tmp_path / "motamot-exam.toml").write_text("url = [\n")
    assert "motamot-exam.toml cannot be read" in place.run("exam").err


def test_how_it_is_asked_is_found_out(tmp_path: Path) -> None:
    command, url = chatbot(tmp_path)
    port = url.split(":")[2].partition("/")[0]
    (tmp_path / "request.json").write_text('{"message": "{{message}}", "conversation": "{{conversation}}"}')
    kept = f"http://127.0.0.1:{port}/kept"
    arguments = ("--request", "request.json", "--read", "text", "--run", command, "--case", "621")
    done = Place(tmp_path).run("exam", kept, *arguments)
    assert done.status == 0, done.out + done.err.encode()


@pytest.mark.slow
def test_the_chatbots_own_page_can_be_examined_in_a_browser(tmp_path: Path) -> None:
    need(
        any(map(shutil.which, ("chromium", "google-chrome", "google-chrome-stable"))),
        "Chromium: apt-get install chromium",
    )
    command, url = chatbot(tmp_path)
    page = url.replace("/v1/chat/completions", "/page")
    arguments = ("--page", page, "--into", "textarea", "--answer", ".answer", "--run", command)
    done = Place(tmp_path).run("exam", *arguments, "--case", "103", "--case", "622", "--case", "401")
    assert done.status == 0, done.out + done.err.encode()
    assert b"asked as page: 2 cases" in done.out and done.out.endswith(b"2 passed\n")
    wrong = Place(tmp_path).run("exam", "--page", page, "--into", "#nowhere", "--run", command, "--case", "103")
    assert wrong.status == 2 and "#nowhere" in wrong.err and "Traceback" not in wrong.err
