"""What no chatbot can do to whoever examines it: hold them up, fill their memory, send them elsewhere, outlive them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from motamot.exam.chatbot import Chatbot
from motamot.exam.presets import EVENT_BYTES, PRESETS, template
from motamot.exam.visitor import ANSWER_BYTES, Heard, Visitor
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


def endless(head: bytes, again: bytes) -> Answers:
    async def answers(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(again)
            await writer.drain()

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
    """A child in a session of its own keeps the pipe open, and is nobody's to find: the exam does not wait for it."""
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
        inside, _ = json.loads((tmp_path / "children").read_text())
        for _ in range(100):
            if not _runs(inside):
                break
            time.sleep(0.02)
        assert not _runs(inside)
    finally:
        for child in json.loads((tmp_path / "children").read_text()):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


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
