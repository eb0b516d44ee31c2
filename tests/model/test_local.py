"""The embedded model: llama.cpp's server in a child process, reached by nobody else, gone when this process is gone.

The real server runs a model of 100 kB that is made here (`tiny_gguf`); a real model is in `test_real_model`. Where a
test needs a library that misbehaves, the child imports a stand-in for `xllamacpp` instead.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent, Source, Text
from motamot.errors import ModelUnavailable, SettingsError
from motamot.limits import Limits
from motamot.model import local
from motamot.model.local import LocalModel, limits_for
from motamot.model.turn import Message, Turn, TurnRequest
from tests.model.tiny_gguf import write_tiny_gguf
from tests.need import need

LONG = 100_000  # tokens of context: the tiny model needs ten seconds and more to fill it


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        local.check_runtime()
    except ModelUnavailable as missing:
        need(False, f"the part that runs a GGUF file ({missing.message})")
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", context=LONG)


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets the child import a stand-in for `xllamacpp` with the given code in `Server(params)`."""

    def put(code: str, beside: str = "") -> None:
        body = textwrap.indent(textwrap.dedent(code), "    ")
        (tmp_path / "xllamacpp.py").write_text(
            "import os, sys, time, types\n"
            "__version__ = '1.2.3'\n"
            "def CommonParams(): return types.SimpleNamespace(model=types.SimpleNamespace())\n"
            f"def Server(params):\n{body}\n{textwrap.dedent(beside)}"
        )
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return put


def ignore(_: Sequence[AnswerEvent]) -> None:
    pass


def question(text: str = "hello", *, tokens: int = 20, **more: Any) -> TurnRequest:
    return TurnRequest(messages=[Message(role="user", content=text)], max_tokens=tokens, **more)


async def answered(model: LocalModel, **more: Any) -> Turn:
    return await model.attempt(question(**more)).run(ignore)


def with_model(use: Callable[[LocalModel], Coroutine[Any, Any, None]], gguf: Path, **settings: Any) -> None:
    """Run `use` with a model that is closed afterwards."""

    async def main() -> None:
        model = LocalModel(gguf, **settings)
        try:
            await use(model)
        finally:
            await model.close()

    asyncio.run(main())


def child_of(model: LocalModel) -> int:
    assert model.pid is not None
    return model.pid


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    need(shutil.which("ps"), "ps (on Debian in the package procps)")
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def wait_until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# Answering ----------------------------------------------------------------------------------------------------------


def test_a_gguf_file_answers_and_reports_its_tokens(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        texts: list[str] = []

        def emit(events: Sequence[AnswerEvent]) -> None:
            texts.extend(event.text for event in events if isinstance(event, Text))

        attempt = model.attempt(question(tokens=20))
        assert attempt.snapshot().finish == "incomplete"
        before = attempt.first_delta_at
        turn = await attempt.run(emit)
        assert turn.error is None
        assert turn.finish == "length"
        assert "".join(texts) == turn.text
        assert len(texts) > 1
        assert turn.model == "tiny"
        assert turn.usage is not None
        assert turn.usage.completion_tokens == 20
        assert turn.usage.source is Source.REPORTED
        assert before is None
        assert attempt.first_delta_at is not None
        assert attempt.snapshot().text == turn.text

    with_model(use, gguf)


def test_the_model_says_what_it_is(gguf: Path) -> None:
    model = LocalModel(gguf, name="some-model", marks=("test_model",))
    assert (model.name, model.origin, model.marks) == ("some-model", "local", ("test_model",))
    assert LocalModel(gguf).name == "tiny"
    assert not model.running


def test_attempts_at_once_start_one_child(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        turns = await asyncio.gather(*(answered(model) for _ in range(4)))
        assert [turn.error for turn in turns] == [None] * 4
        assert model.log.count("listening on") == 1

    with_model(use, gguf)


def test_one_who_stops_waiting_does_not_stop_the_start_for_the_others(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        first = asyncio.create_task(answered(model))
        second = asyncio.create_task(answered(model))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).error is None
        assert first.cancelled()

    with_model(use, gguf)


def test_a_stop_ends_the_generation_itself(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        came = asyncio.Event()
        running = asyncio.create_task(model.attempt(question(tokens=LONG)).run(lambda _: came.set()))
        await came.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        stopped = time.monotonic()
        # There is one slot: an answer means that the stopped generation has given it back.
        assert (await answered(model)).error is None
        assert time.monotonic() - stopped < 3
        lengths = [int(told) for told in re.findall(r"stop processing: n_tokens = (\d+)", model.log)]
        assert lengths[0] < LONG / 2

    with_model(use, gguf, context=LONG, slots=1)


def test_a_prompt_beyond_the_context_is_an_error_of_the_turn(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        turn = await answered(model, text="x" * 2000)
        assert turn.finish == "error"
        assert turn.error is not None
        assert turn.error.status == 400

    with_model(use, gguf, context=1024, slots=1)


def test_what_cannot_be_sent_is_refused_before_anything_starts(gguf: Path) -> None:
    model = LocalModel(gguf)
    with pytest.raises(SettingsError):
        model.attempt(question(extra={"messages": []}))
    with pytest.raises(SettingsError):
        model.attempt(question(headers={"X": "a\r\nb"}))
    assert not model.running


def test_limits_fit_a_small_context_on_a_small_machine() -> None:
    limits = limits_for(Limits(tool_seconds=5), 4096)
    assert (limits.max_tokens, limits.history_tokens, limits.tool_seconds) == (1024, 2048, 5)
    assert limits.first_delta_seconds == 180
    assert limits_for(Limits(max_tokens=100, history_tokens=50, first_delta_seconds=500), 4096) == Limits(
        max_tokens=100, history_tokens=50, first_delta_seconds=500
    )


# Nobody else gets in ------------------------------------------------------------------------------------------------


def ask_server(url: str, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, dict(response.headers), response.read().decode()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, dict(answer.headers), answer.read().decode()


def test_the_childs_server_answers_nobody_without_the_key(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        url = (await model.ready()).url.removesuffix("/v1/chat/completions")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        for path in ("/v1/models", "/props", "/slots", "/metrics", "/completion"):
            status, _, _ = await asyncio.to_thread(ask_server, url, path)
            assert status == 401
        status, _, page = await asyncio.to_thread(ask_server, url, "/")
        assert status == 404
        assert "<html" not in page

    with_model(use, gguf)


def test_no_web_page_may_read_what_the_childs_server_says(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        url = (await model.ready()).url.removesuffix("/v1/chat/completions")
        _, headers, _ = await asyncio.to_thread(ask_server, url, "/health", Origin="http://evil.example")
        assert headers.get("Access-Control-Allow-Origin") == "http://127.0.0.1:1"

    with_model(use, gguf)


def test_the_key_stands_in_no_list_of_processes(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        await model.open()
        shown = await asyncio.to_thread(
            lambda: subprocess.run(["ps", "eww", "-p", str(child_of(model))], capture_output=True, text=True).stdout
        )
        assert "motamot.model.local_child" in shown
        http = await model.ready()
        key = http._headers["Authorization"].removeprefix("Bearer ")
        assert len(key) > 30
        assert key not in shown

    with_model(use, gguf)


def test_the_log_holds_no_text_of_the_conversation(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        turn = await answered(model, text="my secret question")
        assert turn.text
        assert "secret" not in model.log
        assert turn.text not in model.log
        assert "listening on" in model.log

    with_model(use, gguf)


# The child's life ---------------------------------------------------------------------------------------------------


def test_closing_ends_the_child_and_with_it_what_it_generates(gguf: Path) -> None:
    async def main() -> None:
        model = LocalModel(gguf, context=LONG, slots=1)
        came = asyncio.Event()
        running = asyncio.create_task(model.attempt(question(tokens=LONG)).run(lambda _: came.set()))
        await came.wait()
        pid = child_of(model)
        await model.close()
        assert not model.running
        assert not alive(pid)
        turn = await running
        assert turn.error is not None
        await model.close()
        refused = await answered(model)
        assert refused.error is not None
        assert refused.error.detail == "tiny has been closed."

    asyncio.run(main())


def test_closing_while_it_starts_leaves_nothing(gguf: Path, pretend: Callable[[str], None]) -> None:
    pretend("time.sleep(60)")

    async def main() -> None:
        model = LocalModel(gguf)
        waiting = asyncio.create_task(answered(model))
        await asyncio.sleep(0.1)
        assert model.running
        pid = child_of(model)
        await model.close()
        assert not alive(pid)
        turn = await waiting
        assert turn.error is not None
        assert turn.error.detail == "tiny has been closed."

    asyncio.run(main())


def test_a_child_that_dies_in_the_middle_is_an_error_and_the_next_question_starts_another(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        came = asyncio.Event()
        running = asyncio.create_task(model.attempt(question(tokens=LONG)).run(lambda _: came.set()))
        await came.wait()
        first = child_of(model)
        os.kill(first, signal.SIGKILL)
        turn = await running
        assert turn.text
        assert turn.error is not None
        assert turn.error.message == "The model on this machine stopped working."
        assert turn.error.code == "upstream_cut"
        assert (await answered(model)).error is None
        assert child_of(model) != first

    with_model(use, gguf, context=LONG, slots=1)


def test_a_service_manager_that_ends_all_processes_leaves_the_answer_to_its_parent(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        await model.open()
        os.kill(child_of(model), signal.SIGTERM)
        await asyncio.sleep(0.3)
        assert (await answered(model)).error is None
        assert model.log.count("listening on") == 1

    with_model(use, gguf)


def test_an_interrupt_in_the_terminal_does_not_reach_the_child(gguf: Path) -> None:
    async def use(model: LocalModel) -> None:
        await model.open()
        assert os.getpgid(child_of(model)) != os.getpgid(0)
        assert os.getsid(child_of(model)) != os.getsid(0)

    with_model(use, gguf)


PARENT = """
import asyncio, os, sys, time
from pathlib import Path
from motamot.model.local import LocalModel

async def main():
    model = LocalModel(Path(sys.argv[1]))
    await model.open()
    if sys.argv[2] == "sister" and os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    print(model.pid, flush=True)
    if sys.argv[2] == "leave":
        return
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["kill", "sister", "leave"])
def test_no_child_outlives_its_parent(gguf: Path, how: str) -> None:
    """Killed; killed while a forked sister still holds the pipe to the child; ended without closing the model."""
    command = [sys.executable, "-c", PARENT, str(gguf), how]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        if how != "leave":
            assert alive(pid)
            parent.kill()
    parent.wait(timeout=20)
    wait_until(lambda: not alive(pid), seconds=5)


@pytest.fixture
def childs_input(gguf: Path) -> bytes:
    settings = {"gguf": str(gguf), "name": "tiny", "key": "k", "threads": 1, "context": 512, "slots": 1}
    return json.dumps({**settings, "batch": 256, "ping_seconds": 10}).encode() + b"\n"


def test_the_child_ends_when_its_input_ends(childs_input: bytes) -> None:
    """What every system has, also where the kernel does not tell a process of its parent's end."""
    command = [sys.executable, "-m", "motamot.model.local_child"]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdout:
        with child.stdin:
            child.stdin.write(childs_input)
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["address"].startswith("http://127.0.0.1:")
            time.sleep(1.2)  # it looks at its parent each second
            assert child.poll() is None
        assert child.wait(timeout=5) == 0


@pytest.mark.parametrize("said", [b"", b"{}", b"x" * 70_000])
def test_a_child_without_settings_ends(said: bytes) -> None:
    command = [sys.executable, "-m", "motamot.model.local_child"]
    done = subprocess.run(command, input=said, capture_output=True, timeout=20)
    assert done.returncode == 2
    assert done.stdout == b""


# What goes wrong ----------------------------------------------------------------------------------------------------


def test_without_the_local_part_it_says_how_to_install_it(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModelUnavailable, match=re.escape("pip install 'motamot[local]'")) as caught:
        LocalModel(gguf)
    assert caught.value.reason == "missing"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "missing"),
        (b"", "damaged"),
        (b"GGUF", "damaged"),
        (b"GGUF\1\0\0\0", "damaged"),
        (b"GGUF\0\0\0\3", "damaged"),
        (b"PK\3\4 a zip file", "damaged"),
        (b"<!doctype html>", "damaged"),
    ],
)
def test_a_file_that_is_no_gguf_is_refused_at_once(
    gguf: Path, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match=re.escape(str(path))) as caught:
        LocalModel(path)
    assert caught.value.reason == reason


def test_a_folder_is_no_model_file(gguf: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        LocalModel(tmp_path)


def test_a_file_name_that_is_not_utf8_is_a_sentence(gguf: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="rename it"):
        LocalModel(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.gguf")))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_file_that_is_cut_off_is_a_sentence_and_an_error_of_the_turn(
    gguf: Path, tmp_path: Path, share: float
) -> None:
    whole = gguf.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(len(whole) * share)])

    async def use(model: LocalModel) -> None:
        with pytest.raises(ModelUnavailable, match="cut could not be loaded: its file is damaged") as caught:
            await model.open()
        assert caught.value.reason == "damaged"
        assert "failed to load model" in (caught.value.detail or "")
        turn = await answered(model)
        assert turn.finish == "error"
        assert turn.error is not None
        assert turn.error.message == "The model on this machine could not be started."
        assert str(path) not in turn.error.message
        assert "failed to load model" in (turn.error.detail or "")
        assert not model.running

    with_model(use, path)


def test_a_library_that_cannot_be_loaded_is_a_sentence(gguf: Path, pretend: Callable[..., None]) -> None:
    pretend("pass", beside="raise ImportError('libstdc++ is too old')")

    async def use(model: LocalModel) -> None:
        with pytest.raises(ModelUnavailable, match=r"motamot\[local\]") as caught:
            await model.open()
        assert "libstdc++ is too old" in (caught.value.detail or "")

    with_model(use, gguf)


def test_a_library_of_another_version_is_a_sentence(gguf: Path, pretend: Callable[..., None]) -> None:
    pretend("pass", beside="class CommonParams:\n    __slots__ = ('model',)")

    async def use(model: LocalModel) -> None:
        with pytest.raises(ModelUnavailable, match="does not fit") as caught:
            await model.open()
        assert "xllamacpp 1.2.3" in (caught.value.detail or "")

    with_model(use, gguf)


@pytest.mark.parametrize(("code", "status"), [("os.abort()", -6), ("os._exit(3)", 3)])
def test_a_child_that_crashes_is_a_sentence(gguf: Path, pretend: Callable[[str], None], code: str, status: int) -> None:
    pretend(f"print('its last words', file=sys.stderr, flush=True)\n{code}")

    async def use(model: LocalModel) -> None:
        with pytest.raises(ModelUnavailable, match=f"ended with status {status}") as caught:
            await model.open()
        assert caught.value.reason == "start"
        assert "its last words" in (caught.value.detail or "")

    with_model(use, gguf)


def test_a_machine_that_makes_no_more_processes_is_a_sentence(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    async def use(model: LocalModel) -> None:
        turn = await answered(model)
        assert turn.error is not None
        assert "no process could be made" in (turn.error.detail or "")

    with_model(use, gguf)


def test_a_child_killed_for_its_memory_is_named(gguf: Path, pretend: Callable[[str], None]) -> None:
    pretend("os.kill(os.getpid(), 9)")

    async def use(model: LocalModel) -> None:
        with pytest.raises(ModelUnavailable, match="too little memory"):
            await model.open()

    with_model(use, gguf)


def test_a_child_that_is_never_ready_is_given_up(gguf: Path, pretend: Callable[[str], None]) -> None:
    pretend("time.sleep(60)")

    async def use(model: LocalModel) -> None:
        with pytest.raises(ModelUnavailable, match=r"not ready within 0\.5 s") as caught:
            await model.open()
        assert caught.value.reason == "start"
        assert not model.running
        assert not alive(child_of(model))

    with_model(use, gguf, limits=Limits(local_start_seconds=0.5))


def test_a_long_start_is_told(gguf: Path, pretend: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_STILL_SECONDS", 0.1)
    pretend("time.sleep(0.6)\nreturn types.SimpleNamespace(listening_address='http://127.0.0.1:1')")

    async def use(model: LocalModel) -> None:
        said: list[str] = []
        await model.open(said.append)
        assert len(said) >= 3
        assert said[0].startswith("Still loading tiny, ")

    with_model(use, gguf)


def test_a_child_that_talks_without_end_neither_fills_the_memory_nor_stands_still(
    gguf: Path, pretend: Callable[[str], None]
) -> None:
    pretend(
        """
        for n in range(20_000):
            os.write(2, b"x" * 1000 + b" line %d\\n" % n)
            if n % 100 == 0:
                os.write(1, b"to standard output\\n")
        return types.SimpleNamespace(listening_address="http://127.0.0.1:1")
        """
    )

    async def use(model: LocalModel) -> None:
        await model.open()
        wait_until(lambda: "line 19999" in model.log)
        assert len(model.log) <= 200 * 501

    with_model(use, gguf)
