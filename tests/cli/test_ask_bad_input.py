"""Whatever is wrong, `motamot ask` gets a sentence that says what, where and what to do; never a traceback."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from motamot.scripted import scripted_model
from tests.cli.support import Done, Place, upstream


def check(done: Done) -> Done:
    """A sentence in the command's voice, and no trace of Python."""
    assert "Traceback" not in done.err
    assert "  File " not in done.err
    assert any(line.startswith("motamot: ") for line in done.err.splitlines()), done.err
    return done


@contextmanager
def free_port() -> Iterator[int]:
    """A port that is taken and where nothing listens."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


# The model


def test_no_model_reachable(place: Place) -> None:
    with free_port() as port:
        done = check(place.run("ask", "A?", *upstream(f"http://127.0.0.1:{port}/v1")))
    assert done.status == 1
    assert done.notes[1] == "motamot: The model's server cannot be reached."
    assert done.notes[2].startswith("         (http://127.0.0.1:…/v1/chat/completions: Connect")  # the system's words
    assert (
        done.notes[3] == "         see that its server runs, and that this is its address (--upstream, OPENAI_BASE_URL)"
    )
    assert done.notes[-1].startswith("failed (upstream_error); nothing spent; asked again 2 times; ")


def test_no_such_host(place: Place) -> None:
    done = check(place.run("ask", "A?", *upstream("http://no-such-host.invalid/v1")))
    assert done.status == 1
    assert done.notes[1] == "motamot: The model's server was not found."


def test_a_wrong_key(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]], api_key="right") as server:
        done = check(place.run("ask", "A?", *upstream(server.url), environ={"MOTAMOT_API_KEY": "sk-wrong-key-1234567"}))
    assert done.status == 1
    assert done.notes[1] == "motamot: The model's server did not accept the key it was given."
    assert done.notes[3] == "         give the right key: --api-key-file, --api-key-env, or OPENAI_API_KEY"
    assert "sk-wrong" not in done.err
    (exchange,), completions = place.booked()
    assert exchange.outcome == "failed"
    assert len(completions) == 1


def test_an_unknown_model(place: Place) -> None:
    refusal = {"status": 404, "message": "The model `scripted` does not exist", "code": "model_not_found"}
    with scripted_model([[{"fail": refusal}]]) as server:
        done = check(place.run("ask", "A?", *upstream(server.url)))
    assert done.status == 1
    assert done.notes[1] == "motamot: The model “scripted” is not known to its server."
    assert done.notes[3] == "         name a model that it has (--model), or another address (--upstream)"


@pytest.mark.parametrize(
    "garbage",
    [
        [{"status": 200, "headers": {"Content-Type": "text/html"}}, {"send": "<html><body>Welcome!</body></html>"}],
        [{"status": 200, "headers": {"Content-Type": "text/event-stream"}}, {"send": "data: }{ \x1b[2J\n\n"}],
        [{"status": 200, "headers": {"Content-Type": "text/event-stream"}}, {"send_base64": "AP/+gIGCg4SFhoc="}],
        [{"status": 200, "headers": {"Content-Type": "application/json"}}, {"send": "null"}],
        [{"status": 200, "headers": {"Content-Type": "text/event-stream"}}],
        [{"status": 500, "headers": {"Content-Type": "text/plain"}}, {"send": "boom \x1b]0;x\x07"}],
    ],
    ids=["a web page", "no JSON", "bytes", "another JSON", "nothing", "an error in words"],
)
def test_a_model_that_answers_garbage(place: Place, garbage: list[dict[str, object]]) -> None:
    with scripted_model([garbage]) as server:
        done = check(place.run("ask", "A?", *upstream(server.url)))
    assert done.status == 1
    assert done.out == b""
    assert done.notes[-1].startswith("failed (upstream_")
    assert not set(done.err) & set(map(chr, [*range(10), *range(11, 32), 127]))
    (exchange,), completions = place.booked()
    assert (exchange.outcome, len(completions)) == ("failed", 1)


def test_a_model_file_that_is_none(place: Place) -> None:
    (place.folder / "model.gguf").write_bytes(b"not a model at all")
    for file, said in (("model.gguf", "is not a GGUF model file"), ("nowhere.gguf", "cannot be read: No such file")):
        done = check(place.run("ask", "A?", "--gguf", file))
        assert done.status == 2
        assert said in done.notes[-1]


def test_a_download_that_nobody_can_be_asked_about(place: Place) -> None:
    done = check(place.run("ask", "A?", "--local"))
    assert done.status == 2
    assert "--yes allows it" in done.err
    assert "licence Apache-2.0" in done.err


# Options and settings


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--upstream", "localhost:8080"], "motamot: --upstream: the model's address 'localhost:8080' does not begin"),
        (["--upstream", "http://x", "--local"], "motamot: --upstream and --local name more than one source of answers"),
        (["--upstream", "http://x", "--timeout", "0"], "motamot: --timeout: Input should be greater than 0"),
        (["--upstream", "http://x", "--timeout", "nan"], "motamot: --timeout: Input should be"),
        (["--upstream", "http://x", "--model", " "], "motamot: --model: must not be empty"),
        (
            ["--upstream", "http://x", "--api-key-env", "NOT_SET"],
            "motamot: the key is to be in the environment",
        ),
        (
            ["--upstream", "http://x", "--api-key-file", "none"],
            "motamot: the key cannot be read from none: No such",
        ),
        (["--upstream", "http://x", "--api-key-file", "/dev/null"], "motamot: the file /dev/null is to hold a key"),
        (["--api-key-file", "a", "--api-key-env", "A"], "motamot: --api-key-env and --api-key-file name two keys"),
        (["--recorded"], "motamot: there are no recorded samples: the settings need recorded"),
        (["--assistant", "guide"], "motamot: the settings have no assistant called 'guide'; the settings have none"),
        (["--settings", "none.toml"], "motamot: there is no settings file none.toml"),
    ],
)
def test_options_that_cannot_work(place: Place, options: list[str], said: str) -> None:
    done = check(place.run("ask", "A?", *options))
    assert (done.status, done.out) == (2, b"")
    assert done.notes[-1].startswith(said)


def test_bad_settings_are_told_with_file_line_and_key(place: Place) -> None:
    (place.folder / "motamot.toml").write_text("[assistants.guide]\n\nupstrem = 'http://x'\nsystem = 5\n")
    done = check(place.run("ask", "A?"))
    assert (done.status, done.notes) == (
        2,
        [
            "motamot: motamot.toml, line 3: assistants.guide.upstrem is not a setting; did you mean upstream?",
            "         motamot.toml, line 4: assistants.guide.system must be text, not a whole number",
        ],
    )


def test_a_key_written_into_the_settings_is_warned_of_on_one_line(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]], api_key="sk-secret") as server:
        (place.folder / "motamot.toml").write_text(
            f"[assistants.a]\nupstream = '{server.url}'\nmodel = 'm'\napi_key = 'sk-secret'\n"
        )
        done = place.run("ask", "A?")
    assert done.out == b"Yes."
    assert done.notes[0] == (
        "motamot: warning: motamot.toml, line 4: assistants.a.api_key holds a key itself; "
        "api_key_env, the name of a variable, keeps it out"
    )
    assert "sk-secret" not in done.err


# The database


def refused(place: Place, database: Path | str) -> Done:
    with scripted_model([[{"say": "Yes."}]]) as server:
        done = check(place.run("ask", "A?", *upstream(server.url), "--database", str(database)))
        assert server.requests == []  # nothing is asked that cannot be booked
    assert (done.status, done.out) == (2, b"")
    return done


def test_a_file_that_is_no_database(place: Place) -> None:
    (place.folder / "notes.txt").write_text("My notes. " * 500)
    assert refused(place, "notes.txt").notes[1].endswith("notes.txt is not an SQLite database; name another file")
    assert (place.folder / "notes.txt").read_text().startswith("My notes.")


def test_a_database_of_another_program(place: Place) -> None:
    with closing(sqlite3.connect(place.folder / "other.db")) as other:
        other.execute("CREATE TABLE recipes (name)")
    assert "holds another program's tables (recipes)" in refused(place, "other.db").notes[1]


def test_a_database_newer_than_the_program(place: Place) -> None:
    assert place.run("ask", "A?", "--upstream", "http://127.0.0.1:1", "--model", "m").status == 1
    with closing(sqlite3.connect(place.database)) as newer:
        newer.execute("UPDATE motamot_version SET version_num = '9999'")
        newer.commit()
    assert "was written by a newer motamot (revision 9999" in refused(place, place.database).notes[1]


def test_a_folder_where_the_database_was_to_be(place: Place) -> None:
    assert "is a folder: give the path of a file in it" in refused(place, place.folder).notes[1]
    (place.folder / "file").write_text("x")
    assert "cannot be made: " in refused(place, "file/books.db").notes[1]


def test_an_address_of_a_database_that_is_none(place: Place) -> None:
    assert "write sqlite:///path/to/file.db" in refused(place, "postgresql://x/y").notes[1]


def test_a_locked_database(place: Place) -> None:
    assert place.run("ask", "A?", "--upstream", "http://127.0.0.1:1", "--model", "m").status == 1
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(place.database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as locker:
        assert locker.stdout is not None
        locker.stdout.readline()
        done = refused(place, place.database)
        assert locker.stdin is not None
        locker.stdin.close()
    assert "is locked by another program; close that program, or wait for it" in done.err


def test_a_full_disk(place: Place, tiny_disk: Path) -> None:
    filler = tiny_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"x" * 4096)
    done = refused(place, tiny_disk / "books.db")
    assert "disk" in done.notes[1]


def test_a_read_only_database(place: Place, make_read_only: Callable[[Path], None]) -> None:
    folder = place.folder / "frozen"
    books = folder / "books.db"
    asked = ("ask", "A?", "--upstream", "http://127.0.0.1:1", "--model", "m", "--database", str(books))
    assert place.run(*asked).status == 1
    make_read_only(folder)
    # A folder that cannot be written has no place for what SQLite keeps beside the file.
    assert re.search("is read-only|cannot be opened; see that .* its folder writable", refused(place, books).notes[1])
    check(place.run("ledger", "--database", str(books)))


# Faults of our own


def test_a_fault_of_our_own_is_a_sentence_and_a_traceback_only_where_it_is_wanted(place: Place) -> None:
    """The environment makes a module of ours raise while the command runs."""
    (place.folder / "sitecustomize.py").write_text(
        "import motamot.settings.loading as loading\n"
        "def broken(*given, **named):\n    raise ZeroDivisionError('a \\x1b[31mfault')\n"
        "loading._read = broken\n"
    )
    (place.folder / "motamot.toml").write_text("")
    environ = {"PYTHONPATH": str(place.folder)}
    done = check(place.run("ask", "A?", environ=environ))
    assert (done.status, done.notes) == (
        70,
        [
            "motamot: a fault of its own, ZeroDivisionError: a ␛[31mfault",
            "         MOTAMOT_DEBUG=1 shows where; please report it",
        ],
    )
    assert "Traceback" in place.run("ask", "A?", environ=environ | {"MOTAMOT_DEBUG": "1"}).err


def test_errors_that_programs_read_are_json(place: Place) -> None:
    (place.folder / "motamot.toml").write_text("stor = 1\n")
    done = place.run("ask", "A?", "--json")
    said = "motamot.toml, line 1: stor is not a setting; did you mean store?"
    assert json.loads(done.out) == {"error": {"code": "settings", "message": said}}
