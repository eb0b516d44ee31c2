"""`motamot scripted-model`, as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

PROGRAM = """
import typer
from motamot.cli.scripted_model import scripted_model
app = typer.Typer()
app.command()(scripted_model)
app()
"""
COMMAND = [sys.executable, "-c", PROGRAM]
QUESTION = b'{"messages": [{"role": "user", "content": "hello"}]}'


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=30, check=False, env=environment
    )


def written(tmp_path: Path, text: str = "scripts:\n  hello: Good morning.\n") -> Path:
    path = tmp_path / "scripts.yaml"
    path.write_text(text, "utf-8")
    return path


@contextmanager
def running(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The process, its first line on stderr, and its base URL."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        first = process.stderr.readline()
        hint = process.stderr.readline()
        assert hint.startswith("OPENAI_BASE_URL="), first + hint + process.stderr.read()
        yield process, first, hint.strip().partition("=")[2]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def fetched(url: str, key: str = "none") -> str:
    request = Request(f"{url}/chat/completions", data=QUESTION, headers={"Authorization": f"Bearer {key}"})
    with urlopen(request, timeout=5) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_answers_records_and_ends_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with running(written(tmp_path)) as (process, first, url):
        assert first == f"The scripted model answers at {url} (1 script; Ctrl-C ends it)\n"
        assert re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/v1", url)
        assert fetched(url, "sk-secret") == "Good morning."
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert process.returncode == 0
        assert err == ""
        events = [json.loads(line) for line in out.splitlines()]
        assert [event["event"] for event in events] == ["request", "head", "piece", "end"]
        assert "sk-secret" not in out


def test_a_client_under_way_does_not_hold_up_the_end(tmp_path: Path) -> None:
    scripts = written(tmp_path, "- send: x\n- hold_open_ms: 60000\n")
    record = tmp_path / "record.jsonl"
    with running(scripts, "--record", record) as (process, _, url):
        port = int(url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(QUESTION)}\r\n\r\n"
            client.sendall(head.encode() + QUESTION)
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=5)
    assert (process.returncode, out, err) == (0, "", "")
    events = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert (events[-1]["event"], events[-1]["how"]) == ("end", "server-closed")


def test_a_key_is_asked_for_where_one_is_set(tmp_path: Path) -> None:
    with running(written(tmp_path), "--api-key", "sk-1") as (_, _, url):
        assert fetched(url, "sk-1") == "Good morning."
        with pytest.raises(OSError, match="401"):
            fetched(url, "sk-2")


def test_check_says_what_is_there_or_what_is_wrong(tmp_path: Path) -> None:
    good = written(tmp_path)
    done = run(good, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{good}: 1 script, no faults\n", "")
    listed = written(tmp_path, "- - say: a\n- - say: b\n")
    assert run(listed, "--check").stdout == f"{listed}: answers for 2 requests, no faults\n"
    bad = written(tmp_path, "scripts:\n  hello:\n  - sya: x\n")
    for arguments in (["--check"], []):
        done = run(bad, *arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(
            f'motamot scripted-model: {bad}, line 3, script "hello", step 1: expected one of say, think, call'
        )
        assert done.stderr.count("\n") == 1


def test_the_example_is_printed_and_without_faults(tmp_path: Path) -> None:
    done = run("--example")
    assert done.returncode == 0
    assert done.stdout.startswith("# Scripts for `motamot scripted-model`")
    done = run(written(tmp_path, done.stdout), "--check")
    assert (done.returncode, done.stdout.partition(": ")[2]) == (0, "16 scripts, no faults\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "expected a file with scripts; `motamot scripted-model --example` prints one to begin with"),
        (["none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["SCRIPTS", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1 port 0: "),
        (["SCRIPTS", "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid port 0: "),
        (
            ["SCRIPTS", "--record", "/no/such/place"],
            "cannot write the record to /no/such/place: No such file or directory",
        ),
        (["SCRIPTS", "--record", "/"], "cannot write the record to /: Is a directory"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_2(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    scripts = str(written(tmp_path))
    done = run(*(scripts if argument == "SCRIPTS" else argument for argument in arguments))
    assert done.returncode == 2
    assert done.stderr.startswith(f"motamot scripted-model: {sentence}")
    assert done.stderr.count("\n") == 1
    assert "Errno" not in done.stderr
    assert done.stdout == ""


def test_a_port_that_is_taken_is_a_sentence_and_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(written(tmp_path), "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == f"motamot scripted-model: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
    assert run(written(tmp_path), "--port", "70000").returncode == 2


def test_it_ends_with_a_sentence_when_its_record_can_no_longer_be_written(tmp_path: Path) -> None:
    with running(written(tmp_path)) as (process, _, url):
        assert process.stdout is not None
        process.stdout.close()  # as `| head` does
        assert fetched(url) == "Good morning."
        assert process.stderr is not None
        told = process.stderr.read()
        assert told == (
            "motamot scripted-model: ended, because the record cannot be written to standard output: Broken pipe\n"
        )
        assert process.wait(10) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_ends_it_with_a_sentence(tmp_path: Path) -> None:
    begun = time.monotonic()
    with running(written(tmp_path), "--record", "/dev/full") as (process, _, url):
        assert fetched(url) == "Good morning."
        assert process.wait(10) == 2
        assert process.stderr is not None
        told = process.stderr.read()
        assert told.endswith("the record cannot be written to /dev/full: No space left on device\n")
        assert told.count("\n") == 1
    assert time.monotonic() - begun < 10
