"""`motamot check --page`: a real browser before a real page, through the command itself."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done, Place
from tests.exam.support import ANSWER, RIGHT, Wire, bot, page, writes
from tests.need import need
from tests.server.support import serving

DONE = writes("[DONE]")
SHOWS_ALL = "const take = (data) => { if (data !== '[DONE]') { text += data; show(text); } };"


@pytest.fixture(autouse=True)
def _browser() -> None:
    there = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    need(any(map(shutil.which, there)), "Chromium: apt-get install chromium")


def checked(place: Place, wire: Wire, html: str, *options: str) -> Done:
    async def run() -> Done:
        async with bot(wire, html) as served:
            return await asyncio.to_thread(place.run, "check", "--page", served.url + "/", *options, timeout=50)

    return asyncio.run(run())


def recordings(done: Done) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.out)["recordings"]
    return found


def close_window(command: int) -> None:
    """End the browser that a command has started, as its window's cross does."""
    for process in Path("/proc").iterdir():
        line = _line(process)
        is_browser = "\0--ozone-platform=headless\0" in line and "--type=" not in line
        if is_browser and command in _parents(int(process.name)):
            os.kill(int(process.name), signal.SIGTERM)
            return
    raise AssertionError("there is no browser")


def _line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _parents(process: int) -> set[int]:
    found: set[int] = set()
    while process > 1:
        try:
            process = int((Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
        found.add(process)
    return found


def test_our_own_page_loses_nothing(place: Place, tmp_path: Path) -> None:
    script = [{"say": re.findall(r"\S+\s*", ANSWER), "pace": "40ms"}, {"usage": {"prompt": 5, "completion": 9}}]

    async def run() -> Done:
        async with serving(tmp_path, [script, script]) as served:
            arguments = ("check", "--page", served.url + "/", "--send", "one", "--send", "two", "--json")
            return await asyncio.to_thread(place.run, *arguments, timeout=50)

    done = asyncio.run(run())
    assert done.status == 0, done.out
    assert done.err.splitlines() == ["motamot: asked: one", "motamot: asked: two"]
    one, two = recordings(done)
    for told in (one, two):
        assert (told["protocol"], told["findings"]) == ("motamot", [])
        # The page shows Markdown: every letter is there, what only marks it up is not.
        letters = "".join(re.sub(r"\*\*|^- ", "", ANSWER, flags=re.M).split())
        assert len(letters) <= told["page"]["characters"] < len(ANSWER)
        assert told["promises"]["live"]["state"] == "kept"
        assert "the answer's end" not in str(told["promises"]["exact"]["why"])  # whoever closes first, it came


def test_a_page_that_shows_errors_as_answers_is_found_out(place: Place) -> None:
    wire = Wire([writes('{"error":"Failed to process message. Please try again."}')])
    done = checked(place, wire, page(take=SHOWS_ALL), "--send", "which arpeggio fits Am F C G")
    out = " ".join(done.out.decode().split())
    assert done.status == 1
    assert "page-error-shown must, safe: an error object of the wire stands on the page as an answer" in out
    assert '{"error":"Failed to process message. Please try again."}' in out


def test_line_breaks_that_a_writer_does_not_escape_are_the_wires_fault_and_not_the_pages(place: Place) -> None:
    """The writer puts a whole piece behind one `data: `; the page joins data lines, and shows the rest as it came."""
    read = """
      let rest = "";
      const decoder = new TextDecoder();
      for (let read; !(read = await reader.read()).done;) {
        rest += decoder.decode(read.value, {stream: true});
        for (let at; (at = rest.indexOf("\\n\\n")) >= 0; rest = rest.slice(at + 2)) {
          const lines = rest.slice(0, at).split("\\n").filter((line) => line.startsWith("data: "));
          if (lines.length) take(lines.map((line) => line.slice(6)).join("\\n"));
        }
      }
    """
    pieces = [piece + "\n" for piece in ANSWER.split("\n\n")]
    routing = writes('{"type":"routing","agentId":"x","confidence":1,"routingMethod":"k"}')
    wire = Wire([routing, *(f"data: {piece}\n\n".encode() for piece in pieces), writes("[DONE]")])
    done = checked(place, wire, page(read=read), "--send", "hi", "--json")
    [told] = recordings(done)
    assert [finding["id"] for finding in told["findings"] if finding["level"] == "must"] == ["raw-line-break"]
    assert (done.status, told["page"]["where"]) == (1, "div.answer")


def test_what_was_lost_before_the_wire_is_not_laid_to_the_page(place: Place) -> None:
    """White space between sentences is gone before they are sent: the page shows what came."""
    glued = [writes(piece) for piece in re.split(r"(?<=[.!?])\s+", ANSWER)]
    done = checked(place, Wire([*glued, b"data: [DONE]\n\n"]), page(), "--send", "hi", "--json")
    [told] = recordings(done)
    assert [finding["id"] for finding in told["findings"] if finding["level"] != "note"] == ["glued-pieces"]
    assert done.status == 1


@pytest.mark.parametrize(
    ("html", "options", "words"),
    [
        ("<p>no chat</p>", ("--headless",), "asked nothing by itself"),
        ("<textarea></textarea>", ("--send", "hi", "--into", "#nowhere"), "--into '#nowhere' finds nothing"),
    ],
)
def test_what_cannot_be_visited_is_a_sentence(place: Place, html: str, options: tuple[str, ...], words: str) -> None:
    done = checked(place, Wire([]), html, *options)
    assert (done.status, done.out, words in done.err) == (2, b"", True), done.err


def test_a_name_of_answers_that_fits_nothing_is_said(place: Place) -> None:
    done = checked(place, Wire([writes("word for word"), DONE]), page(), "--send", "hi", "--answer", ".bot", "--json")
    [told] = recordings(done)
    assert (done.status, told["state"], told["text_characters"]) == (2, "not checked", 13)
    assert told["problem"].startswith("nothing on the page fits --answer")


def test_a_place_to_type_in_a_closed_shadow_root_cannot_be_reached_and_that_is_said(place: Place) -> None:
    html = """<!doctype html><chat-box></chat-box><script>
    document.querySelector("chat-box").attachShadow({mode: "closed"}).innerHTML = "<textarea></textarea>";
    </script>"""
    done = checked(place, Wire([]), html, "--send", "hi")
    assert (done.status, done.out) == (2, b"")
    assert "no place to type in: a part of it is in a closed shadow root, which cannot be reached" in done.err


def test_a_page_that_leaves_after_the_end_has_heard_a_whole_answer(place: Place) -> None:
    """As motamot's own page does; here the server stays for long, so that it is always the page that leaves."""
    leaves = "const take = (data) => { if (data === '[DONE]') reader.cancel(); else { text += data; show(text); } };"
    pieces = [writes(piece) for piece in re.findall(r"\S+\s*", ANSWER)]
    html = page(take=leaves.replace("reader.cancel()", "leave()"), read=f"const leave = () => reader.cancel();{RIGHT}")
    done = checked(place, Wire([*pieces, DONE, *[b": on\n\n"] * 200], every=0.05), html, "--send", "hi", "--json")
    [told] = recordings(done)
    assert (done.status, told["end"], told["ended"], told["findings"]) == (0, "left", "complete", [])
    assert "recording does not hold" not in str(told["promises"]["exact"]["why"])


def test_an_answer_that_a_page_waits_for_too_long_was_not_checked_to_its_end(place: Place) -> None:
    wire = Wire([writes(f"word{number} ") for number in range(300)], every=0.1)
    done = checked(place, wire, page(), "--send", "hi", "--timeout", "6", "--json")
    [told] = recordings(done)
    assert (done.status, told["state"], told["end"]) == (2, "not checked", "left")
    assert told["problem"].startswith("it had not ended after 6 s")


def test_ctrl_c_ends_the_visit_and_what_came_is_checked(place: Place) -> None:
    wire = Wire([writes(f"word{number} ") for number in range(300)], every=0.2)

    async def run() -> str:
        async with bot(wire, page()) as served:

            def chat() -> str:
                with place.terminal("check", "--page", served.url + "/", "--send", "hi") as terminal:
                    terminal.read_until("asked: hi")
                    time.sleep(2)
                    os.killpg(terminal.process.pid, signal.SIGINT)  # as a terminal does: the browser's driver, too
                    terminal.wait(20)
                    return terminal.seen

            return await asyncio.to_thread(chat)

    seen = " ".join(asyncio.run(run()).split())
    assert "whoever read it left" in seen
    assert "nothing lost in what came" in re.sub("\x1b\\[\\d+m", "", seen)
    assert "Traceback" not in seen
    assert "page-" not in seen


@pytest.fixture
def screen(tmp_path: Path) -> dict[str, str]:
    """An environment in which a window opens on no screen: Chromium draws it all the same."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    need(path and sys.platform.startswith("linux"), "Chromium: apt-get install chromium")
    shim = tmp_path / "bin" / "chromium"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {path} --ozone-platform=headless "$@"\n')
    shim.chmod(0o755)
    return {"PATH": f"{shim.parent}:{os.environ['PATH']}", "DISPLAY": ":99"}


def test_enter_ends_a_chat_by_hand(place: Place, screen: dict[str, str]) -> None:
    """The page asks twice, as a hand would: whose hand it is cannot be told from here."""
    routing = writes('{"type":"routing","agentId":"x","confidence":1,"routingMethod":"k"}')
    wire = Wire([routing, *(writes(piece) for piece in re.findall(r"\S+\s*", ANSWER)), writes("[DONE]")], every=0.03)
    html = page().replace("</script>", "ask('one'); setTimeout(() => ask('two'), 5000);</script>")

    async def run() -> tuple[int, str]:
        async with bot(wire, html) as served:

            def chat() -> tuple[int, str]:
                with place.terminal("check", "--page", served.url + "/", environ=screen) as terminal:
                    terminal.read_until("heard 2 answers", 40)
                    terminal.type("\n")
                    return terminal.wait(20), terminal.seen

            return await asyncio.to_thread(chat)

    status, seen = asyncio.run(run())
    assert "a browser opens: chat there; close it, or press Enter here" in seen
    assert seen.count("shown in div.answer") == 2
    assert (status, "nothing lost" in seen) == (0, True), seen


def test_a_window_that_is_closed_ends_a_chat_by_hand(place: Place, screen: dict[str, str]) -> None:
    wire = Wire([writes("word for word"), writes("[DONE]")])
    html = page().replace("</script>", "ask('one');</script>")

    async def run() -> tuple[int, str]:
        async with bot(wire, html) as served:

            def chat() -> tuple[int, str]:
                with place.terminal("check", "--page", served.url + "/", environ=screen) as terminal:
                    terminal.read_until("heard 1 answer", 40)
                    close_window(terminal.process.pid)
                    return terminal.wait(20), terminal.seen

            return await asyncio.to_thread(chat)

    status, seen = asyncio.run(run())
    assert "shown in div.answer" in seen
    assert (status, "nothing lost" in seen) == (0, True), seen


def test_without_playwright_it_is_said_what_to_install(place: Place) -> None:
    (place.folder / "without" / "playwright").mkdir(parents=True)
    (place.folder / "without" / "playwright" / "__init__.py").write_text("raise ImportError('not installed')\n")
    environ = {"PYTHONPATH": str(place.folder / "without")}
    done = place.run("check", "--page", "http://127.0.0.1:1/", "--send", "hi", environ=environ)
    assert done.status == 2
    assert "pip install 'motamot[page]'" in done.err


def test_without_a_screen_the_way_without_a_window_is_said(place: Place) -> None:
    done = place.run("check", "--page", "http://127.0.0.1:1/")
    assert done.status == 2
    assert "--send TEXT" in done.err
