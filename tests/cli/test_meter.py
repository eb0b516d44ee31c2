"""`motamot meter`, as a process before a model, with the clients that ask through it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from motamot.scripted import ThreadedScriptedModel, scripted_model
from tests.cli.support import COMMAND, Place, Running

SCRIPTS = {
    "default": "hello",
    "scripts": {
        "hello": [{"say": "Salut !"}, {"usage": {"prompt": 9, "completion": 3}}],
        "mute": [{"say": "No counts."}, {"usage": {"place": "none"}}],
    },
}


@contextmanager
def meter(folder: Path, *options: str) -> Iterator[tuple[ThreadedScriptedModel, Running, Any]]:
    """A model, a meter before it, and a client that asks through the meter."""
    arguments = ("--port", "0", *options)
    with scripted_model(SCRIPTS) as model, Place(folder).start("meter", "--upstream", model.url, *arguments) as run:
        found = re.search(r"OPENAI_BASE_URL=(\S+)", run.wait_err(b"ANTHROPIC_BASE_URL=").decode())
        assert found is not None
        with openai.OpenAI(base_url=found[1], api_key="key-of-the-tests", max_retries=0, timeout=10) as client:
            yield model, run, client


def salut(client: Any, **more: Any) -> Any:
    return client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "salut"}], **more)


def test_a_probing_loop_is_counted_twice_and_named(tmp_path: Path) -> None:
    with meter(tmp_path, "--record", "record.jsonl") as (model, run, client):
        salut(client)
        streamed = salut(client, stream=True, stream_options={"include_usage": True})
        assert "".join(c.choices[0].delta.content or "" for c in streamed if c.choices) == "Salut !"
        run.wait_out(b"paid twice")
        run.signal(signal.SIGINT)
        done = run.wait()
        assert done.status == 0
        first, second, note = done.out.decode().splitlines()
        assert re.search(r"#1  (~\S+)  answer  gpt-4o-mini  whole  200  stop  9 \+ 3 tokens \(reported\)", first)
        assert "  again  gpt-4o-mini  stream  200  stop  " in second and first.split("  ")[2] == second.split("  ")[2]
        assert note.strip().startswith("! the same messages as #1, which had answered")
        assert "motamot meter: 1 exchange, 2 completions" in done.err and "1 paid twice" in done.err
        rows = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
        assert [(row["number"], row["kind"], row["of"]) for row in rows] == [(1, "answer", None), (2, "again", 1)]
        assert "salut" not in (tmp_path / "record.jsonl").read_text() + done.out.decode() + done.err
        assert len(model.requests) == 2


def test_an_honest_answer_is_one_line_and_json_where_it_is_wanted(tmp_path: Path) -> None:
    with meter(tmp_path, "--json") as (_, run, client):
        list(salut(client, stream=True, stream_options={"include_usage": True}))
        run.wait_out(b"\n")
        run.signal(signal.SIGTERM)
        done = run.wait()
        assert done.status == 0
        (row,) = map(json.loads, done.out.decode().splitlines())
        assert (row["kind"], row["source"], row["prompt_tokens"], row["notes"]) == ("answer", "reported", 9, [])
        assert row["first_ms"] <= row["took_ms"]


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["words", "json"])
def test_no_name_a_chatbot_gives_reaches_a_terminal_as_a_control_character(
    tmp_path: Path, form: tuple[str, ...]
) -> None:
    hostile = "\x1b[2J\x9b31m\u202e\u2028"
    with meter(tmp_path, *form, "--record", "record.jsonl") as (_, run, client):
        answer = client.chat.completions.create(
            model="m" + hostile, messages=[{"role": "user", "content": "x"}], metadata={"run_id": "a" + hostile}
        )
        assert answer.choices
        run.wait_out(b"\n")
        run.signal(signal.SIGTERM)
        done = run.wait()
        assert done.status == 0
        for told in (done.out.decode(), (tmp_path / "record.jsonl").read_text("utf-8")):
            assert not {"\x1b", "\x9b", "\u202e"} & set(told) and "31m" in told


def test_bad_input_is_a_sentence_and_a_status(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, told in (
            (("--upstream", "nowhere"), "'nowhere' is no address of a model's server"),
            (("--upstream", "http://x", "--port", port), f"cannot listen on 127.0.0.1 port {port}"),
            (("--upstream", "http://x", "--record", "no/such/folder"), "the record no/such/folder cannot be written"),
        ):
            done = place.run("meter", *arguments)
            assert (done.status, done.out) == (2, b"") and told in done.err and "Traceback" not in done.err


def test_a_terminal_that_is_paused_slows_nobody(tmp_path: Path) -> None:
    arguments = [*COMMAND, "meter", "--port", "0", "--upstream"]
    with scripted_model(SCRIPTS) as model:
        process = subprocess.Popen(
            [*arguments, model.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=Place(tmp_path).environ
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            process.stderr.readline()
            base = process.stderr.readline().decode().split()[0].partition("=")[2]
            with openai.OpenAI(base_url=base, api_key="x", max_retries=0, timeout=5) as client:
                for _ in range(700):  # 64 kB are what a pipe holds
                    salut(client)
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
            assert b"1 exchange, 700 completions" in process.stderr.read()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
