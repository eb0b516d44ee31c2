"""What no chatbot can do to whoever examines it: hold them up, fill their memory, send them elsewhere, outlive them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from motamot.exam.case import scripts
from motamot.exam.chatbot import Chatbot
from motamot.exam.examiner import Examiner, Silent
from motamot.exam.presets import EVENT_BYTES, PRESETS, template
from motamot.exam.visitor import ANSWER_BYTES, Heard, Visitor
from motamot.scripted import ScriptedModel
from motamot.tape import Request
from tests.server.support import free_port

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DELTA = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
Answers = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def hostile(answers: Answers) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that answers each request as it likes; its address, and the request lines it was sent."""
    lines: list[str] = []
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines.append(head.partition("\r\n")[0])
            await answers(lines[-1], writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1/chat/completions", lines
    finally:
        listening.close()
        await asyncio.gather(*tasks)


def endless(head: bytes, again: bytes, every: float | None = None) -> Answers:
    async def answers(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(again)
            await writer.drain()
            if every is not None:
                await asyncio.sleep(every)

    return answers


async def heard_of(url: str, preset: str = "openai") -> Heard:
    chosen = PRESETS[preset] if preset in PRESETS else template(preset, None, read=None)
    async with Visitor(url, chosen) as visitor:
        (heard,) = visitor.ask("hello")
        await visitor.end(heard)
    return heard


@pytest.mark.parametrize(
    ("preset", "answers"),
    [
        ("openai", endless(HEAD, DELTA * 1_000)),
        ("openai", endless(HEAD + b"data: ", b"x" * 65_536)),
        ("openai", endless(HEAD, b"\n" * 65_536)),
        ("openai", endless(HEAD + b"data: ", b"[" * 65_536)),
        ("json-lines", endless(HEAD, b"x" * 65_536)),
        ("events", endless(HEAD + b"data: ", b"x" * 65_536)),
        ("plain-text", endless(HEAD, b"x" * 65_536)),
        ("openai", endless(b"HTTP/1.1 500 Oops\r\nContent-Length: 1073741824\r\n\r\n", b"<h1>" * 16_384)),
    ],
    ids=["deltas", "line", "empty lines", "depth", "JSON line", "event", "text", "error page"],
)
def test_an_answer_without_an_end_is_given_up_and_little_of_it_kept(preset: str, answers: Answers) -> None:
    async def scenario() -> None:
        began = time.monotonic()
        async with hostile(answers) as (url, _):
            heard = await heard_of(url, preset)
        assert time.monotonic() - began < 20
        assert heard.failed and "bytes came" in heard.broke
        assert sum(len(piece.data) for piece in heard.pieces) < ANSWER_BYTES + (1 << 20)
        pieces = len(heard.pieces)
        heard.forget()
        assert sum(len(piece.data) for piece in heard.pieces) <= 2 * 65_536
        assert not heard.text and len(heard.pieces) <= pieces
        assert not heard.whole

    asyncio.run(scenario())


def test_a_line_that_never_ends_is_read_in_time_that_grows_with_it() -> None:
    hearing = template("json-lines", None, read=None).hear()
    began = time.process_time()
    for _ in range(2 * EVENT_BYTES // 4_096):
        hearing.feed(b"x" * 4_096)
    assert time.process_time() - began < 2
    assert [type(event).__name__ for event in hearing.close()] == ["Ended"]


@pytest.mark.parametrize(
    "head",
    [
        endless(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"y" * 1_000 + b"\r\n"),
        endless(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 999),
    ],
    ids=["lines", "one line"],
)
def test_a_head_without_an_end_is_given_up(head: Answers) -> None:
    async def scenario() -> None:
        async with hostile(head) as (url, _):
            heard = await heard_of(url)
        assert heard.status is None and heard.broke

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100), "began no response (interim ones, 1xx"),
        (endless(HEAD, b": still here\n\n", every=0.05), "sent no text"),
    ],
    ids=["interim heads", "comments"],
)
def test_a_chatbot_that_never_comes_to_the_point_is_given_up_in_a_sentence(
    answers: Answers, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("visitor", "examiner", "ends"):
        monkeypatch.setattr(f"motamot.exam.{module}.ANSWER_SECONDS", 1.5)

    async def scenario() -> None:
        async with ScriptedModel(scripts(())) as model, hostile(answers) as (url, _):
            began = time.monotonic()
            with pytest.raises(Silent) as told:
                await Examiner(url, PRESETS["openai"], model).warm_up()
            assert words in told.value.message and "did not ask the model at" in told.value.message
            assert time.monotonic() - began < 10

    asyncio.run(scenario())


def test_no_redirection_is_followed_not_even_of_a_stop() -> None:
    async def scenario() -> None:
        async def elsewhere(_: str, writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD)

        async with hostile(elsewhere) as (other, asked_there):

            async def answers(line: str, writer: asyncio.StreamWriter) -> None:
                if "/stop" in line or "/moved" in line:
                    writer.write(
                        b"HTTP/1.1 307 Moved\r\nLocation: " + other.encode() + b"\r\nContent-Length: 0\r\n\r\n"
                    )
                    return
                writer.write(HEAD + DELTA)
                await writer.drain()
                await asyncio.sleep(0.5)

            async with hostile(answers) as (url, asked_here):
                stop = Request(method="POST", url=url + "/stop", body=b"{}")
                async with Visitor(url, PRESETS["openai"], headers=(("X-Api-Key", "secret"),), stop=stop) as visitor:
                    (heard,) = visitor.ask("hello")
                    assert await visitor.until(heard, "x")
                    await visitor.stop(heard)
                moved = await heard_of(url + "/moved")
                assert moved.status == 307 and moved.failed
                assert any("/stop" in line for line in asked_here)
        assert not asked_there

    asyncio.run(scenario())


def test_a_stop_whose_answer_never_ends_is_not_read_to_its_end() -> None:
    async def scenario() -> None:
        sent = 0

        async def answers(line: str, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.write(HEAD + DELTA)
            await writer.drain()
            while "/stop" in line:
                writer.write(b"x" * 65_536)
                await writer.drain()
                sent += 65_536
            await asyncio.sleep(0.5)

        async with hostile(answers) as (url, _):
            stop = Request(method="POST", url=url + "/stop", body=b"{}")
            async with Visitor(url, PRESETS["openai"], stop=stop) as visitor:
                (heard,) = visitor.ask("hello")
                assert await visitor.until(heard, "x")
                began = time.monotonic()
                await visitor.stop(heard)
                assert time.monotonic() - began < 2
        assert sent < 64 << 20

    asyncio.run(scenario())


STUBBORN = """
import asyncio, json, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
children = [
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=apart)
    for apart in (False, True)
]
open("children", "w").write(json.dumps([child.pid for child in children]))
print("x" * 200_000, flush=True)  # a line longer than anybody reads
async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
"""


def test_a_chatbot_that_will_not_end_is_ended_whoever_holds_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its children ignore nothing, it ignores SIGTERM, and they hold its output; one has a session of its own."""
    monkeypatch.setattr("motamot.exam.chatbot._END_SECONDS", 0.5)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stubborn.py").write_text(STUBBORN)

    async def scenario() -> float:
        port = free_port()
        async with Chatbot(f"{sys.executable} stubborn.py {port}", f"http://127.0.0.1:{port}/", environ={}) as chatbot:
            assert chatbot.status is None
            began = time.monotonic()
        return time.monotonic() - began

    try:
        assert asyncio.run(scenario()) < 5
        assert not any(map(_runs, json.loads((tmp_path / "children").read_text())))
    finally:
        for child in json.loads((tmp_path / "children").read_text()):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


DAEMON = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    os._exit(0)  # its parent has ended: only a subreaper finds it
os.setsid()
if os.fork():
    os._exit(0)
os.environ.clear()
open("daemon", "w").write(str(os.getpid()))
time.sleep(60)
"""
SPAWNS = """
import asyncio, os, subprocess, sys
open("main", "w").write(str(os.getpid()))
subprocess.run([sys.executable, "daemon.py"])
subprocess.Popen(["setsid", "sleep", "61.5"], stdout=subprocess.DEVNULL)
async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", int(sys.argv[1]))
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing finds a daemon: docs/exam.md says so")
@pytest.mark.parametrize("ends", ["in order", "killed", "the chatbot itself"])
def test_no_daemon_of_a_chatbot_outlives_the_exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    """Killed: the exam's process is, by SIGKILL, and can do nothing more."""
    (tmp_path / "daemon.py").write_text(DAEMON)
    (tmp_path / "spawns.py").write_text(SPAWNS)
    port = free_port()
    exam = f"""
import asyncio, os, signal, sys
from motamot.exam import chatbot
chatbot._END_SECONDS = 0.5
async def main():
    url = "http://127.0.0.1:{port}/"
    async with chatbot.Chatbot(f"{{sys.executable}} spawns.py {port}", url, environ={{}}) as started:
        while not os.path.exists("daemon"):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        if {ends!r} == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if {ends!r} == "the chatbot itself":
            os.kill(int(open("main").read()), signal.SIGKILL)
            while started.status is None:
                await asyncio.sleep(0.02)
            print("status", started.status)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", exam], cwd=tmp_path, capture_output=True, text=True, timeout=40)
    assert done.returncode == (-signal.SIGKILL if ends == "killed" else 0), done.stderr
    daemon = int((tmp_path / "daemon").read_text())
    until = time.monotonic() + 10
    while (_runs(daemon) or _sleeps()) and time.monotonic() < until and ends == "killed":
        time.sleep(0.05)
    assert not _runs(daemon) and not _sleeps()
    assert ("status -9" in done.stdout) == (ends == "the chatbot itself")


def _sleeps() -> bool:
    """Whether the child that `setsid` started does still."""
    found = [entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    for command in found:
        with suppress(OSError):
            if command.read_bytes() == b"sleep\x0061.5\x00":
                return True
    return False


def _runs(process: int) -> bool:
    """Whether it does; one that has ended may not have been taken note of by its parent's parent."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_chatbot_that_leaves_a_child_behind_is_seen_to_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    leaves = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])"
    (tmp_path / "leaves.py").write_text(f"{leaves}\nprint('I fork')\nsys.exit(7)\n")

    async def scenario() -> str:
        url = f"http://127.0.0.1:{free_port()}/"
        with pytest.raises(Exception, match="did not start a chatbot") as told:
            async with Chatbot(f"{sys.executable} leaves.py", url, environ={}, seconds=30):
                pass
        return str(told.value)

    began = time.monotonic()
    told = asyncio.run(scenario())
    assert "ended by itself with status 7" in told and "I fork" in told
    assert time.monotonic() - began < 10
