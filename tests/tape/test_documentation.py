"""docs/tapes.md names what there is, and its examples run as they stand."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from pathlib import Path

from motamot.tape import Piece, Replay, Tape, bounds, load
from motamot.tape.formats import FORMATS, own
from tests.cli.support import COMMAND, Place
from tests.cli.test_show import ROUTING, VOICINGS, event

PAGE = (Path(__file__).parents[2] / "docs" / "tapes.md").read_text("utf-8")
[CONSOLE] = re.findall(r"```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
STEPS = [step.partition("\n") for step in CONSOLE.split("$ motamot ")[1:]]


def test_every_limit_and_key_is_documented_with_its_value() -> None:
    names = [name for name in vars(bounds) if name.isupper()]
    assert names and not [name for name in names if f"`{name}`" not in PAGE]
    for number in (bounds.ENTRIES, bounds.JSON_VALUES, bounds.PIECES, bounds.SECONDS, bounds.RECORD_SECONDS):
        assert f"{number:,.0f}" in PAGE
    for structure in (own._Header, own._Line, own._Request):
        assert not [name for name in structure.__struct_fields__ if f"`{name}`" not in PAGE and f'"{name}"' not in PAGE]
    assert all(f"`{form.name}`" in PAGE for form in FORMATS if form.name != "own")


def test_the_documented_tape_loads() -> None:
    [text] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    [tape] = load(text.encode())
    assert (tape.body, tape.end, tape.head_at, tape.notes) == (b"data: Hello\n\n\xc3", "closed", 0.0031, ())


def test_the_documented_program_runs(tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=30, cwd=tmp_path)


def alike(text: str) -> str:
    """What differs from run to run, made equal."""
    return re.sub(r"127\.0\.0\.1:\d+|\d+\.\d+ m?s", "…", text)


def test_the_documented_commands_say_what_is_documented(tmp_path: Path) -> None:
    place = Place(tmp_path)
    [(recorded, _, summary), (shown, _, wire), (replayed, _, serving)] = STEPS
    pieces = tuple(Piece(at / 10, event(data)) for at, data in enumerate((ROUTING, VOICINGS, "[DONE]"), 1))
    headers = (("Content-Type", "text/event-stream"),)

    async def record() -> tuple[str, bytes]:
        async with Replay(Tape(pieces=pieces, status=200, headers=headers, end="closed")) as server:
            command = recorded.replace("http://127.0.0.1:8000/", server.url).replace('"', "'")
            process = await asyncio.create_subprocess_shell(
                f"{sys.executable} -m motamot {command}",
                cwd=place.folder,
                env=place.environ,
                stderr=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
            return err.decode(), out

    said, out = asyncio.run(record())
    assert (alike(said), out) == (alike(summary), b"")
    assert place.run(*shown.split()).out.decode() == wire
    with place.start(*replayed.replace("--port 8001", "--port 0").split()) as running:
        while b"\n" not in running._err:
            assert running.process.poll() is None
            time.sleep(0.02)
        assert alike(running._err.decode()) == alike(serving)


def test_every_option_that_is_named_exists() -> None:
    curls_and_wgets = {"--raw", "--compressed", "--save-headers"}
    helps = "".join(
        subprocess.run([*COMMAND, command, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
        for command in ("record", "show", "replay")
    )
    named = set(re.findall(r"`(--[a-z-]+)", PAGE)) - curls_and_wgets
    assert len(named) > 6 and not [option for option in named if option not in helps]
