"""`motamot ask --raw` and `--json`: the wire as our writers make it, line by line as it comes."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from motamot.answer import AnswerEvent, Ended, Outcome, Source, Started, Text, TurnEnded, Usage
from motamot.protocols import PROTOCOLS
from motamot.scripted import scripted_model
from tests.cli.support import Place, upstream

PIECES = ["A first line,\n", " then\u2028 “more”\r\n\n", "data: [DONE]", "\x1b[0m 😀 "]
SCRIPT = [{"say": PIECES}, {"finish": "stop"}, {"usage": {"prompt": 7, "completion": 9}}]


def expected(place: Place) -> list[AnswerEvent]:
    """The events of the only exchange in the books, had `SCRIPT` answered it."""
    (row,), _ = place.booked()
    usage = Usage(prompt_tokens=7, completion_tokens=9, source=Source.REPORTED)
    return [
        Started(exchange=row.id, conversation=row.conversation, assistant="default", model="scripted"),
        *map(Text, PIECES),
        TurnEnded(turn=1, finish="stop", usage=usage),
        Ended(outcome=Outcome.COMPLETE, shown=len(PIECES) + 2, usage=usage),
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_wire_of_each_protocol_is_shown_as_its_writer_makes_it(place: Place, protocol: str) -> None:
    with scripted_model([SCRIPT]) as server:
        done = place.run("ask", "A?", *upstream(server.url), "--raw", "--protocol", protocol)
    events = expected(place)
    created = re.search(rb'"created":(\d+)', done.out)
    wire = PROTOCOLS[protocol].writer(
        exchange=getattr(events[0], "exchange", ""), now=int(created[1]) if created else 0
    )
    written = b"".join(wire.write(number, event) for number, event in enumerate(events, 1))
    assert written.endswith(b"\n\n")
    assert done.out == b"".join(b"| " + line + b"\n" if line else b"|\n" for line in written.split(b"\n")[:-1])
    assert done.status == 0


def test_raw_alone_shows_the_native_wire_and_a_protocol_alone_is_raw(place: Place) -> None:
    with scripted_model([[{"say": "Yes."}]] * 2) as server:
        native = place.run("ask", "A?", *upstream(server.url), "--raw").out.decode()
        openai = place.run("ask", "A?", *upstream(server.url), "--protocol", "openai").out.decode()
    assert '| data: {"type":"text","text":"Yes."}\n' in native
    assert openai.endswith("| data: [DONE]\n|\n")


def test_the_wire_is_shown_as_it_comes(place: Place) -> None:
    script = [{"say": "First,"}, {"gate": "more"}, {"say": " second."}]
    with scripted_model([script]) as server, place.start("ask", "A?", *upstream(server.url), "--raw") as running:
        seen = running.wait_out(b'| data: {"type":"text","text":"First,"}\n|\n')
        assert b"second" not in seen
        server.wait_gate("more")
        server.release("more")
        assert b" second." in running.wait().out


def test_a_stopped_wire_ends_as_its_protocol_says(place: Place) -> None:
    import signal

    script = [{"say": "First,"}, {"gate": "more"}, {"say": " second."}]
    with scripted_model([script]) as server, place.start("ask", "A?", *upstream(server.url), "--json") as running:
        running.wait_out(b'"First,"}\n')
        running.signal(signal.SIGINT)
        done = running.wait()
    last = json.loads(done.out.splitlines()[-1])
    assert (last["type"], last["outcome"], last["by"]) == ("ended", "stopped", "visitor")
    assert last["shown"] == 2
    assert done.status == 130


def test_json_is_one_event_a_line(place: Place) -> None:
    with scripted_model([SCRIPT]) as server:
        done = place.run("ask", "A?", *upstream(server.url), "--json")
    lines = done.out.decode().splitlines()
    assert len(lines) == len(PIECES) + 3  # also for a reader that takes U+2028 for a line end
    union = Started | Text | TurnEnded | Ended
    assert [msgspec.json.decode(line, type=union) for line in lines] == expected(place)
    assert done.notes[-1].startswith("complete; 7 + 9 tokens (reported); ")


def test_json_says_on_stdout_what_failed(place: Place) -> None:
    with scripted_model([[{"say": "It began"}, {"close": "reset"}]]) as server:
        done = place.run("ask", "A?", *upstream(server.url), "--json")
    last = json.loads(done.out.splitlines()[-1])
    assert (last["outcome"], last["code"]) == ("failed", "upstream_cut")
    assert done.status == 1


def test_json_says_on_stdout_why_nothing_was_asked(place: Place) -> None:
    done = place.run("ask", "A?", "--upstream", "ftp://x", "--model", "m", "--json")
    error = json.loads(done.out)["error"]
    assert error["code"] == "settings"
    assert error["message"].startswith("--upstream: the model's address 'ftp://x' does not begin with http://")
    assert done.notes == [f"motamot: {error['message']}"]
    assert done.status == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--raw", "--json"], "motamot: --raw and --json are two ways to show the same answer: choose one"),
        (["--protocol", "smtp"], f"motamot: there is no protocol 'smtp': there are {', '.join(PROTOCOLS)}"),
    ],
)
def test_a_wire_that_does_not_exist_is_refused(place: Place, options: list[str], said: str) -> None:
    done = place.run("ask", "A?", "--upstream", "http://127.0.0.1:1", "--model", "m", *options)
    assert (done.status, done.notes) == (2, [said])
