"""`motamot ask`, ended before the answer is: Ctrl-C, SIGTERM, a reader that leaves, a terminal that goes away."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from motamot.scripted import scripted_model
from tests.cli.support import COMMAND, Place, screen, upstream

HELD = [{"say": "What came."}, {"gate": "more"}, {"say": " What never comes."}]
SLACK = 0.25
"""Seconds for a signal to reach a process on a busy machine, and for the close to be seen."""
SLOWLY = """
import sys, time
def hook(name, given):
    if name == "import":
        if given[0] == "motamot.cli.commands":
            print("begun", flush=True)
        time.sleep(0.01)
import motamot.cli
sys.addaudithook(hook)
motamot.cli.main()
"""
"""Makes the half second of imports some seconds, so that a signal surely falls into it."""


def test_ctrl_c_stops_the_model_keeps_what_came_and_books_it_once(place: Place) -> None:
    with scripted_model([HELD]) as server, place.start("ask", "A?", *upstream(server.url)) as running:
        running.wait_out(b"What came.")
        stopped = running.signal(signal.SIGINT)
        left = server.wait_left(0).left_at
        done = running.wait()
        assert len(server.requests) == 1
    assert left is not None
    assert left - stopped <= 0.1 + SLACK
    assert (done.status, done.out) == (130, b"What came.")
    assert re.fullmatch(
        r"stopped; \d+ \+ \d+ tokens \(estimated\); first text after … s; conversation …", done.notes[-1]
    )
    (exchange,), (completion,) = place.booked()
    assert (exchange.outcome, exchange.by, exchange.shown) == ("stopped", "visitor", "What came.")
    assert completion.outcome == "stopped"


def test_ctrl_c_stops_a_model_that_has_said_nothing(place: Place) -> None:
    script = [{"gate": "first"}, {"say": "Never."}]
    with scripted_model([script]) as server, place.start("ask", "A?", *upstream(server.url)) as running:
        server.wait_gate("first", timeout=20)
        stopped = running.signal(signal.SIGINT)
        left = server.wait_left(0).left_at
        done = running.wait()
    assert left is not None
    assert left - stopped <= 0.1 + SLACK
    assert (done.status, done.out) == (130, b"")
    assert done.notes[-1].startswith("stopped; ")
    assert "first text" not in done.notes[-1]


def test_ctrl_c_before_anything_is_asked_asks_nothing(place: Place) -> None:
    """While the question is still being read."""
    with scripted_model([HELD]) as server:
        process = subprocess.Popen(
            [*COMMAND, "ask", *upstream(server.url)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environ,
        )
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert server.requests == []
    assert (process.returncode, out, err) == (130, b"", b"motamot: stopped\n")


@pytest.mark.parametrize("command", ["ask", "serve", "ledger", "init"])
def test_ctrl_c_while_it_is_being_loaded_is_a_line_and_no_traceback(place: Place, command: str) -> None:
    for seconds in (0.0, 0.3, 1.0):
        with subprocess.Popen(
            [sys.executable, "-c", SLOWLY, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environ,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (130, b"", b"motamot: stopped\n")


def test_ctrl_c_at_a_question_about_a_download_is_a_stop_and_ctrl_d_is_a_no(place: Place) -> None:
    for key, status, words in (
        ("\x03", 130, "motamot: stopped"),
        ("\x04", 2, "motamot: Without a model there is no answer."),
    ):
        with place.terminal("ask", "A?", "--local") as terminal:
            terminal.read_until("[y/N]: ")
            while key == "\x03" and terminal.process.poll() is None:
                # The terminal would send the signal, were it the process's own. Python's line editing looks at it with
                # the next key only, where it comes between the prompt and the wait for a key.
                terminal.process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    terminal.process.wait(3)
            while key == "\x04" and terminal.process.poll() is None:
                terminal.type(key)  # lost where it comes just when line editing is switched on
                time.sleep(0.2)
            assert terminal.wait() == status
        assert any(line.startswith(words) for line in screen(terminal.seen))
        assert "Aborted" not in terminal.seen


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_end_from_outside_is_booked_as_an_interruption(place: Place, number: signal.Signals, status: int) -> None:
    with scripted_model([HELD]) as server, place.start("ask", "A?", *upstream(server.url)) as running:
        running.wait_out(b"What came.")
        running.signal(number)
        server.wait_left(0)
        done = running.wait()
    assert (done.status, done.out) == (status, b"What came.")
    assert done.notes[-1].startswith("interrupted; ")
    (exchange,), (completion,) = place.booked()
    assert (exchange.outcome, exchange.shown, completion.outcome) == ("interrupted", "What came.", "interrupted")


def test_a_killed_command_is_booked_by_the_next_one(place: Place) -> None:
    with scripted_model([HELD]) as server, place.start("ask", "A?", *upstream(server.url)) as running:
        running.wait_out(b"What came.")
        time.sleep(1.2)  # a checkpoint a second
        running.process.kill()
        server.wait_left(0)
    ledger = place.run("ledger", "--json").out.decode()
    assert '"outcome":"interrupted"' in ledger
    assert '"source":"estimated"' in ledger
    assert place.run("ledger", "--open", "--json").out == b""


def test_a_reader_that_leaves_stops_the_model_though_it_is_silent(place: Place) -> None:
    with scripted_model([HELD]) as server:
        process = subprocess.Popen(
            [*COMMAND, "ask", "A?", *upstream(server.url)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environ,
        )
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(10) == b"What came."
        server.wait_gate("more")
        process.stdout.close()
        closed = time.monotonic()
        left = server.wait_left(0).left_at
        err = process.stderr.read().decode()
        process.stderr.close()
        status = process.wait(30)
    assert left is not None
    assert left - closed <= 1
    assert status == 141
    assert err.splitlines()[1:] == []  # what answers was said; that somebody left is not worth a word
    (exchange,), (completion,) = place.booked()
    assert (exchange.outcome, exchange.by, completion.outcome) == ("stopped", "disconnect", "stopped")


def test_head_gets_its_line_and_no_complaint(place: Place) -> None:
    script = [{"say": "line\n" * 20_000, "cut": 2_000}, {"gate": "never"}]
    with scripted_model([script]) as server:
        command = " ".join([*COMMAND, "ask", "A?", *upstream(server.url)]) + " | head -n 1; echo ${PIPESTATUS[0]}"
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, check=True, cwd=place.folder, env=place.environ, timeout=40
        )
        server.wait_left(0)
    assert done.stdout == b"line\n141\n"
    assert b"rror" not in done.stderr


def test_a_reader_that_takes_nothing_does_not_keep_ctrl_c_from_the_model(place: Place) -> None:
    script = [{"say": "line\n" * 100_000, "cut": 1_000}, {"gate": "never"}]
    with scripted_model([script]) as server:
        process = subprocess.Popen(
            [*COMMAND, "ask", "A?", *upstream(server.url)],
            stdout=subprocess.PIPE,  # never read: the pipe is full after 64 kB
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environ,
        )
        server.wait_gate("never", timeout=20)  # the slow reader does not slow the model
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        stopped = time.monotonic()
        left = server.wait_left(0).left_at
        assert left is not None
        assert left - stopped <= 0.1 + SLACK
        assert process.wait(10) == 130
        process.communicate()
    (exchange,), _ = place.booked()
    assert exchange.outcome == "stopped"
    assert exchange.shown is not None
    assert len(exchange.shown) < 500_000  # what nobody took was not shown


def test_ctrl_c_twice_ends_it_at_once(place: Place) -> None:
    script = [{"say": "line\n" * 100_000, "cut": 1_000}, {"gate": "never"}]
    with scripted_model([script]) as server:
        process = subprocess.Popen(
            [*COMMAND, "ask", "A?", *upstream(server.url)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environ,
        )
        server.wait_gate("never", timeout=20)
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(0.9) == 130
        process.communicate()
    (exchange,), completions = place.booked()
    assert exchange.outcome in ("stopped", "interrupted")
    assert [row.outcome for row in completions if row.outcome is not None] != []


def test_a_terminal_that_goes_away_stops_the_model(place: Place) -> None:
    with scripted_model([HELD]) as server, place.terminal("ask", "A?", *upstream(server.url)) as terminal:
        terminal.read_until("What came.")
        os.kill(terminal.process.pid, signal.SIGHUP)
        server.wait_left(0)
        assert terminal.wait() == 129
    (exchange,), _ = place.booked()
    assert exchange.outcome == "interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_behind_stdout_is_said_and_stops_the_model(place: Place) -> None:
    script = [{"say": "What came."}, {"gate": "more"}, {"say": " What never comes."}]
    with scripted_model([script]) as server, Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(
            [*COMMAND, "ask", "A?", *upstream(server.url)],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environ,
        )
        server.wait_left(0, timeout=30)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "motamot: standard output cannot be written: No space left on device" in err.decode().splitlines()
    (exchange,), _ = place.booked()
    assert exchange.outcome == "stopped"


def test_closed_standard_output_is_said_before_anything_is_asked(place: Place) -> None:
    with scripted_model([HELD]) as server:
        command = " ".join([*COMMAND, "ask", "A?", *upstream(server.url)]) + " >&-"
        done = subprocess.run(
            ["bash", "-c", command],
            stderr=subprocess.PIPE,
            check=False,
            cwd=place.folder,
            env=place.environ,
            timeout=40,
        )
        assert server.requests == []
    assert done.returncode == 2
    assert b"motamot: standard output cannot be written: it is closed" in done.stderr
