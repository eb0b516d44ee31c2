"""`motamot ask`: the real command against the scripted model, over a real socket."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from motamot import __version__
from motamot.scripted import scripted_model
from tests.cli.support import Place, upstream

NASTY = {
    "line ends": "one\r\ntwo\rthree\nfour\r\n\r\n\n",
    "blank lines and spaces": "\n\n  a \n \n\t b  \n\n",
    "emoji": "a 👩‍👩‍👧 family, 🇫🇷, é and e\u0301",
    "separators of other languages": "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg",
    "NUL and controls": "nul \x00 esc \x1b[31mred\x1b[0m bell \x07 del \x7f c1 \x9b2J",
    "what a wire is made of": 'data: [DONE]\n\ndata: {"choices": []}\n\nevent: fin\n: x\nid: 1\n\ufeff',
    "no text at its end": "word ",
    "long": "ligne à ligne\n" * 20_000,
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_in_a_pipe_the_text_is_exact_to_the_byte(place: Place, text: str) -> None:
    with scripted_model([[{"say": text, "cut": 7 if len(text) < 1000 else 500}]]) as server:
        done = place.run("ask", "Hello", *upstream(server.url), environ={"LANG": "C", "LC_ALL": "C"})
    assert done.out == text.encode()
    assert done.status == 0


def test_characters_cut_in_two_by_the_model_are_whole(place: Place) -> None:
    with scripted_model([[{"say": "a 👩 b 😀 c", "cut": "utf16"}]]) as server:
        assert place.run("ask", "Hello", *upstream(server.url)).out == "a 👩 b 😀 c".encode()


def test_the_first_text_is_there_before_the_model_writes_the_second(place: Place) -> None:
    script = [{"say": "First,"}, {"gate": "more"}, {"say": " second."}]
    with scripted_model([script]) as server, place.start("ask", "Hello", *upstream(server.url)) as running:
        assert running.wait_out(b"First,") == b"First,"
        server.wait_gate("more")
        server.release("more")
        done = running.wait()
    assert (done.status, done.out) == (0, b"First, second.")


def test_the_first_line_says_what_answers_and_the_last_how_it_ended(place: Place) -> None:
    script = [{"say": "Good morning."}, {"finish": "stop"}, {"usage": {"prompt": 41, "completion": 120}}]
    with scripted_model([script]) as server:
        done = place.run("ask", "Hello", *upstream(server.url))
        assert server.requests[0].body["messages"] == [{"role": "user", "content": "Hello"}]
    assert done.notes == [
        "scripted at http://127.0.0.1:…/v1, as --upstream says",
        "complete; 41 + 120 tokens (reported); first text after … s; conversation …",
    ]


def test_tokens_that_the_model_does_not_report_are_estimated_and_said_to_be(place: Place) -> None:
    with scripted_model([[{"say": "Good morning."}, {"finish": "stop"}, {"usage": None}]]) as server:
        done = place.run("ask", "Hello", *upstream(server.url))
    assert "tokens (estimated)" in done.notes[-1]


def test_a_known_price_is_told(place: Place) -> None:
    (place.folder / "motamot.toml").write_text(
        "[assistants.default.prices]\ninput = 10\noutput = 20\ncurrency = 'EUR'\n"
    )
    script = [{"say": "Good morning."}, {"finish": "stop"}, {"usage": {"prompt": 100, "completion": 50}}]
    with scripted_model([script]) as server:
        done = place.run("ask", "Hello", *upstream(server.url))
    assert "; 0.002 EUR; " in done.notes[-1]


def test_options_reach_the_model(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]], api_key="secret-key") as server:
        (place.folder / "key").write_text("secret-key\n")
        options = ("--system", "Be brief.", "--max-tokens", "12", "--api-key-file", "key")
        done = place.run("ask", "Hello", *upstream(server.url), *options)
        body = server.requests[0].body
    assert done.out == b"Yes."
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["max_tokens"] == 12
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        (("--api-key-env", "MY_KEY"), {"MY_KEY": "secret-key", "MOTAMOT_API_KEY": "wrong"}),
        ((), {"MOTAMOT_API_KEY": "secret-key", "OPENAI_API_KEY": "wrong"}),
    ],
)
def test_a_key_comes_from_the_environment(place: Place, options: tuple[str, ...], environ: dict[str, str]) -> None:
    with scripted_model([[{"say": "Yes."}]], api_key="secret-key") as server:
        done = place.run("ask", "Hello", *upstream(server.url), *options, environ=environ)
    assert done.out == b"Yes."


def test_the_key_of_another_server_is_not_sent(place: Place) -> None:
    """OPENAI_API_KEY belongs to OpenAI, or to OPENAI_BASE_URL; a file's key to the file's upstream."""
    (place.folder / "motamot.toml").write_text(
        "[assistants.default]\nupstream = 'http://127.0.0.1:1/v1'\napi_key_env = 'FILE_KEY'\nmodel = 'theirs'\n"
        "headers = { X-Secret = 'theirs' }\n"
    )
    with scripted_model([[{"say": "Yes."}]]) as server:
        environ = {"OPENAI_API_KEY": "openai-key", "FILE_KEY": "file-key"}
        done = place.run("ask", "Hello", "--upstream", server.url, environ=environ)
        request = server.requests[0]
    assert done.out == b"Yes."
    assert "authorization" not in request.headers
    assert "x-secret" not in request.headers
    assert request.body["model"] != "theirs"


def test_a_settings_file_makes_the_assistant(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]]) as server:
        (place.folder / "bus.toml").write_text(
            f"[assistants.bus]\nupstream = '{server.url}'\nmodel = 'm'\nsystem = 'You drive a bus.'\n"
            "extra = { temperature = 0.2 }\n"
        )
        done = place.run("ask", "Hello", "--settings", "bus.toml")
        body = server.requests[0].body
    assert done.out == b"Yes."
    assert (body["model"], body["temperature"]) == ("m", 0.2)
    assert body["messages"][0]["content"] == "You drive a bus."


# The question


@pytest.mark.parametrize("argument", [[], ["-"]])
def test_the_question_may_come_on_standard_input(place: Place, argument: list[str]) -> None:
    with scripted_model([[{"say": "Yes."}]]) as server:
        done = place.run("ask", *argument, *upstream(server.url), stdin="Où est\nle bus ? \r\n".encode())
        assert server.requests[0].body["messages"][0]["content"] == "Où est\nle bus ? "
    assert done.out == b"Yes."


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"", 'motamot: there is no question: motamot ask "…", or give it on standard input'),
        (b" \n \n", 'motamot: there is no question: motamot ask "…", or give it on standard input'),
        (b"caf\xe9", "motamot: standard input is not UTF-8: byte 3 cannot be read"),
        (b"x" * 32_001, "motamot: message has 32001 bytes; at most 32000 are taken"),
        (b"x" * 40_000, "motamot: standard input holds more than 32000 bytes, the most that a question may have"),
    ],
    ids=["nothing", "blank", "not UTF-8", "a byte too long", "far too long"],
)
def test_no_question_is_asked_that_is_none(place: Place, stdin: bytes, said: str) -> None:
    with scripted_model([[{"say": "Yes."}]]) as server:
        done = place.run("ask", *upstream(server.url), stdin=stdin)
        assert server.requests == []
    assert (done.status, done.out, done.notes[-1]) == (2, b"", said)


# The conversation


def test_a_conversation_goes_on(place: Place) -> None:
    with scripted_model([[{"say": "One."}], [{"say": "Two."}], [{"say": "Three."}]]) as server:
        first = place.run("ask", "A?", *upstream(server.url))
        second = place.run("ask", "B?", "--conversation", first.conversation, *upstream(server.url))
        third = place.run("ask", "C?", "-c", "last", *upstream(server.url))
        said = [message["content"] for message in server.requests[2].body["messages"]]
    assert first.conversation == second.conversation == third.conversation
    assert said == ["A?", "One.", "B?", "Two.", "C?"]


def test_without_being_told_to_go_on_each_question_begins_anew(place: Place) -> None:
    with scripted_model([[{"say": "One."}], [{"say": "Two."}]]) as server:
        first = place.run("ask", "A?", *upstream(server.url))
        second = place.run("ask", "B?", *upstream(server.url))
        assert len(server.requests[1].body["messages"]) == 1
    assert first.conversation != second.conversation


def test_a_conversation_that_is_not_there_cannot_go_on(place: Place) -> None:
    with scripted_model([[{"say": "One."}]] * 2) as server:
        first = place.run("ask", "A?", "-c", "last", *upstream(server.url))
        place.run("ask", "A?", *upstream(server.url))
        of_another = place.booked()[0][0].conversation
        second = place.run("ask", "A?", "-c", "nosuch", *upstream(server.url))
        (place.folder / "motamot.toml").write_text("[assistants.default]\n[assistants.guide]\n")
        third = place.run("ask", "A?", "-c", of_another, "--assistant", "guide", *upstream(server.url))
        assert len(server.requests) == 1
    assert (first.status, first.notes) == (2, ["motamot: there is no conversation with 'default' yet that could go on"])
    hint = "         `motamot ledger --json` names all of them, `-c last` is the latest"
    words = "motamot: there is no conversation 'nosuch' with 'default' that could go on"
    assert (second.status, second.notes) == (2, [words, hint])
    words = f"motamot: there is no conversation '{of_another}' with 'guide' that could go on"
    assert (third.status, third.notes) == (2, [words, hint])


@pytest.mark.parametrize(
    ("arguments", "given"), [(("ask", ""), b""), (("ask", " "), b""), (("ask",), b"\n"), (("ask", "-"), b"")]
)
def test_what_is_wrong_with_a_question_is_said_before_a_model_is_looked_for(
    place: Place, arguments: tuple[str, ...], given: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ollama:
        ollama.settimeout(0.2)
        done = place.run(*arguments, stdin=given, environ={"OLLAMA_HOST": f"127.0.0.1:{ollama.getsockname()[1]}"})
        with pytest.raises(TimeoutError):
            ollama.accept()
    words = 'motamot: there is no question: motamot ask "…", or give it on standard input'
    assert (done.status, done.notes) == (2, [words])


# How it ends


@pytest.mark.parametrize(
    ("finish", "status", "words"),
    [
        ("length", 3, "truncated: the answer reached the token limit (--max-tokens); "),
        ("content_filter", 3, "filtered: the provider held the rest of the answer back; "),
    ],
)
def test_an_answer_that_is_not_whole_says_so(place: Place, finish: str, status: int, words: str) -> None:
    with scripted_model([[{"say": "It began"}, {"finish": finish}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url))
    assert (done.status, done.out) == (status, b"It began")
    assert done.notes[-1].startswith(words)


def test_an_answer_that_breaks_off_has_failed_and_keeps_what_came(place: Place) -> None:
    with scripted_model([[{"say": "It began"}, {"close": "reset"}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url))
    assert (done.status, done.out) == (1, b"It began")
    assert done.notes[1] == "motamot: The connection to the model was cut in the middle of its answer."
    assert done.notes[-1].startswith("failed (upstream_cut); ")
    exchanges, completions = place.booked()
    assert [(row.outcome, row.shown) for row in exchanges] == [("failed", "It began")]
    assert len(completions) == 1


def test_a_timeout_is_kept(place: Place) -> None:
    with scripted_model([[{"say": "It began"}, {"wait": "20s"}]]) as server:
        done = place.run("ask", "A?", "--timeout", "1", *upstream(server.url))
        server.wait_left(0)
    assert (done.status, done.out) == (1, b"It began")
    assert done.notes[-1].startswith("failed (timeout); ")


def test_a_tool_that_the_model_makes_up_is_a_note_and_no_text(place: Place) -> None:
    call = [{"call": {"name": "get_\x1b[31mweather", "arguments": {}}}]
    with scripted_model([call, [{"say": "I cannot know."}]]) as server:
        done = place.run("ask", "Weather?", *upstream(server.url))
    assert done.out == b"I cannot know."
    assert "· calls get_␛[31mweather" in done.notes
    assert "· get_␛[31mweather: unknown tool" in done.notes


def test_reasoning_is_shown_on_stderr_where_the_settings_say_so(place: Place) -> None:
    (place.folder / "motamot.toml").write_text("[assistants.default.visible]\nreasoning = true\n")
    script = [{"think": "The visitor greets me."}, {"say": "Good morning."}]
    with scripted_model([script, script]) as server:
        done = place.run("ask", "A?", *upstream(server.url))
        (place.folder / "motamot.toml").unlink()
        hidden = place.run("ask", "A?", *upstream(server.url))
    assert (done.out, hidden.out) == (b"Good morning.", b"Good morning.")
    assert "The visitor greets me." in done.err
    assert "greets" not in hidden.err


def test_a_retry_is_told(place: Place) -> None:
    busy = [{"fail": {"status": 429, "message": "Rate limit reached", "retry_after": 1}}]
    with scripted_model([busy, [{"say": "Yes."}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url))
    assert done.out == b"Yes."
    assert "; asked again 1 time; " in done.notes[-1]


# Marks


def test_recorded_samples_are_marked_before_and_after(place: Place) -> None:
    (place.folder / "motamot.toml").write_text("[assistants.default]\nrecorded = ['One.', 'Two.']\n")
    first = place.run("ask", "A?")
    second = place.run("ask", "B?", "-c", "last")
    assert (first.out, second.out) == (b"One.", b"Two.")
    assert first.notes[:2] == [
        "recorded samples, because the settings ask for them",
        "[recorded] a recorded sample answers, no model",
    ]
    assert first.notes[2].startswith("complete [recorded]; ")


def test_samples_that_stand_in_are_marked_before_and_after(place: Place) -> None:
    (place.folder / "motamot.toml").write_text(
        "[assistants.default]\nupstream = 'http://127.0.0.1:1/v1'\nmodel = 'm'\n"
        "recorded = ['A sample.']\nfallback = 'recorded'\n"
    )
    done = place.run("ask", "A?")
    assert (done.status, done.out) == (0, b"A sample.")
    assert done.notes[1] == "[recorded] a recorded sample answers, no model"
    assert done.notes[-1].startswith("complete [recorded]; ")


def test_samples_can_be_asked_for(place: Place) -> None:
    (place.folder / "motamot.toml").write_text(
        "[assistants.default]\nupstream = 'http://127.0.0.1:1/v1'\nmodel = 'm'\n"
        "recorded = ['A sample.']\nfallback = 'recorded'\n"
    )
    done = place.run("ask", "A?", "--recorded")
    assert done.out == b"A sample."
    assert done.notes[0] == "recorded samples, because --recorded asks for them"


# The log


def test_each_completion_is_a_line_of_json_without_a_word_of_the_conversation(place: Place) -> None:
    with scripted_model([[{"say": "A secret answer."}]] * 2) as server:
        place.run("ask", "A secret question?", *upstream(server.url), "--log", "log.jsonl")
        done = place.run("ask", "A secret question?", *upstream(server.url), "--log", "-")
    (line,) = (place.folder / "log.jsonl").read_text().splitlines()
    logged = json.loads(line)
    assert (logged["turn"], logged["attempt"], logged["outcome"], logged["source"]) == (1, 1, "complete", "reported")
    assert logged["first_delta_ms"] >= 0
    assert sum(note.startswith('{"completion"') for note in done.notes) == 1
    assert "secret" not in line + done.err


def test_a_log_that_cannot_be_written_is_said_before_anything_is_asked(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url), "--log", "nowhere/log")
        assert server.requests == []
    assert (done.status, done.notes) == (
        2,
        ["motamot: the log nowhere/log cannot be written: No such file or directory"],
    )


# The command itself


def test_help_is_quick_and_names_the_commands(place: Place) -> None:
    place.run("--help")
    times = []
    for _ in range(5):
        began = time.process_time_ns(), time.perf_counter()
        done = place.run("--help")
        times.append(time.perf_counter() - began[1])
    assert done.status == 0
    listed = [line.split()[0] for line in done.out.decode().split("Commands:\n")[1].splitlines()]
    assert {"ask", "ledger", "scripted-model"} <= set(listed)
    assert min(times) < 0.3


def test_the_version_is_told(place: Place) -> None:
    assert place.run("--version").out.decode() == f"motamot {__version__}\n"


@pytest.mark.parametrize("command", ["ask", "ledger", "scripted-model"])
def test_every_command_explains_itself(place: Place, command: str) -> None:
    done = place.run(command, "--help")
    assert done.status == 0
    assert done.out.decode().startswith(f"Usage: motamot {command} [OPTIONS]")


def test_a_command_that_does_not_exist_is_refused(place: Place) -> None:
    done = place.run("answer")
    assert done.status == 2
    assert "No such command 'answer'" in done.err


def test_the_folder_of_the_database_is_made(place: Place, tmp_path: Path) -> None:
    with scripted_model([[{"say": "Yes."}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url), "--database", str(tmp_path / "new" / "books.db"))
    assert done.out == b"Yes."
    assert (tmp_path / "new" / "books.db").stat().st_mode & 0o777 == 0o600
