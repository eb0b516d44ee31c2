"""`motamot ask` on a terminal: a waiting sign, and nothing of a model's that a terminal obeys."""

from __future__ import annotations

import os
import pty
import re
import subprocess

import pytest

from motamot.scripted import scripted_model
from tests.cli.support import COMMAND, Place, screen, upstream


def test_a_waiting_sign_counts_the_seconds_and_is_gone_with_the_first_text(place: Place) -> None:
    script = [{"gate": "first"}, {"say": "Good"}, {"say": " morning."}]
    with scripted_model([script]) as server, place.terminal("ask", "A?", *upstream(server.url)) as terminal:
        assert screen(terminal.read_until("… 1 s"))[-1] == "… 1 s"
        server.wait_gate("first")
        server.release("first")
        assert screen(terminal.read_until("morning."))[-1] == "Good morning."
        assert terminal.wait() == 0
    shown = screen(terminal.seen)
    assert shown[1] == "Good morning."
    assert shown[2].startswith("complete; ")  # on a line of its own
    assert shown[3:] == [""]


def test_in_a_pipe_there_is_no_waiting_sign(place: Place) -> None:
    with scripted_model([[{"wait": "1.2s"}, {"say": "Good morning."}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url))
    assert "…" not in done.err
    assert "\r" not in done.err
    assert "\x1b" not in done.err


def test_control_characters_of_a_model_are_seen_and_not_obeyed(place: Place) -> None:
    text = "red \x1b[31m, title \x1b]0;x\x07, back \x08, 8-bit \x9b2J, delete \x7f, tab\t, over\rwrite, end\r\nnext"
    with (
        scripted_model([[{"say": text, "cut": "characters"}]]) as server,
        place.terminal("ask", "A?", *upstream(server.url)) as terminal,
    ):
        assert terminal.wait() == 0
    answer = re.split(r"as .+ says?\r\n", terminal.seen)[1].split("complete; ")[0]
    answer = re.sub(r"\r\x1b\[2m…[^\r]*\r *\r", "", answer)  # the waiting sign, and how it goes
    assert answer.startswith("red ␛[31m, title ␛]0;x␇, back ␈, 8-bit \\x9b2J, delete ␡, tab\t, over␍write, end\r\nnext")
    assert not re.search(r"[\x07\x08\x7f\x9b]", answer)


def test_what_turns_the_direction_of_text_is_seen_and_not_obeyed(place: Place) -> None:
    turning = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
    kept = "\u200e\u200f\u061c שלום"
    with scripted_model([[{"say": f"run {turning}gpj.exe {kept}"}]] * 2) as server:
        with place.terminal("ask", "A?", *upstream(server.url)) as terminal:
            assert terminal.wait() == 0
        piped = place.run("ask", "A?", *upstream(server.url))
    shown = "".join(f"\\u{ord(one):04x}" for one in turning)
    assert f"run {shown}gpj.exe {kept}" in terminal.seen
    assert not set(turning) & set(terminal.seen)
    assert turning in piped.out.decode(), "in a pipe it is exact"


def test_the_wire_on_a_terminal_is_harmless_too(place: Place) -> None:
    with (
        scripted_model([[{"say": "a\x9b2J\x7f"}]]) as server,
        place.terminal("ask", "A?", *upstream(server.url), "--raw") as terminal,
    ):
        assert terminal.wait() == 0
    assert '"text":"a\\x9b2J␡"' in terminal.seen


def test_an_answer_that_ends_its_line_gets_no_other(place: Place) -> None:
    with (
        scripted_model([[{"say": "Good morning.\n"}]]) as server,
        place.terminal("ask", "A?", *upstream(server.url)) as terminal,
    ):
        assert terminal.wait() == 0
    shown = screen(terminal.seen)
    assert shown[1] == "Good morning."
    assert shown[2].startswith("complete; ")


@pytest.mark.parametrize(("said", "line_end"), [("Hi there.", "\n"), ("Hi there.\n", "")])
def test_the_outcome_has_a_line_of_its_own_where_both_are_seen_together(place: Place, said: str, line_end: str) -> None:
    with scripted_model([[{"say": said}]]) as server:
        both = place.folder / "both"
        with both.open("wb") as file:
            subprocess.run(
                [*COMMAND, "ask", "A?", *upstream(server.url)],
                stdout=file,
                stderr=subprocess.STDOUT,
                check=True,
                cwd=place.folder,
                env=place.environ,
            )
    assert re.search(rf" says?\n{said}{line_end}complete; ", both.read_text())


def test_stdout_in_a_pipe_stays_exact_and_the_screen_behind_it_gets_a_line_end(place: Place) -> None:
    main, side = pty.openpty()
    with scripted_model([[{"say": "Hi there."}]]) as server:
        done = subprocess.run(
            [*COMMAND, "ask", "A?", *upstream(server.url)],
            stdout=subprocess.PIPE,
            stderr=side,
            check=True,
            cwd=place.folder,
            env=place.environ | {"TERM": "dumb"},
        )
    os.close(side)
    seen = os.read(main, 65_536)
    os.close(main)
    assert done.stdout == b"Hi there."
    assert b"\r\ncomplete; " in re.split(rb" says?\r\n", seen)[1]


def test_in_pipes_of_their_own_nothing_is_added_to_either(place: Place) -> None:
    with scripted_model([[{"say": "Hi there."}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url))
    assert done.out == b"Hi there."
    assert "" not in done.notes


def test_notes_in_the_middle_of_an_answer_have_lines_of_their_own(place: Place) -> None:
    call = [{"say": "Let me see."}, {"call": {"name": "get_weather", "arguments": {}}}]
    with (
        scripted_model([call, [{"say": "I cannot know."}]]) as server,
        place.terminal("ask", "A?", *upstream(server.url)) as terminal,
    ):
        assert terminal.wait() == 0
    assert screen(terminal.seen)[1:-2] == [
        "Let me see.",
        "· calls get_weather",
        "· get_weather: unknown tool",
        "",
        "",
        "I cannot know.",
    ]


def test_dim_notes_are_plain_where_no_colour_is_wanted(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]] * 3) as server:
        for environ in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with place.terminal("ask", "A?", *upstream(server.url), environ=environ) as terminal:
                assert terminal.wait() == 0
            assert "\x1b" not in terminal.seen
        with place.terminal("ask", "A?", *upstream(server.url)) as terminal:
            assert terminal.wait() == 0
        assert "\x1b[2mcomplete; " in terminal.seen


def test_the_question_is_asked_for_on_a_terminal(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]]) as server, place.terminal("ask", *upstream(server.url)) as terminal:
        terminal.read_until("Question: ")
        terminal.type("Where is the bus?\n")
        assert terminal.wait() == 0
        assert server.requests[0].body["messages"][0]["content"] == "Where is the bus?"


def test_a_download_is_asked_for_and_no_is_no(place: Place) -> None:
    with place.terminal("ask", "A?", "--local") as terminal:
        asked = terminal.read_until("[y/N]: ")
        assert "MB to download from" in asked
        assert "licence Apache-2.0" in asked
        terminal.type("n\n")
        assert terminal.wait() == 2
    assert "motamot: Without a model there is no answer." in terminal.seen
