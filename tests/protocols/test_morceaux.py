"""`morceaux`: what a lesson's page expects, byte for byte, and what it was missing."""

from __future__ import annotations

import pytest

from motamot.answer import By, Code, Ended, Outcome, Reasoning, Routed, Started, Text, ToolCalled, TurnEnded
from motamot.protocols.morceaux import PROTOCOL
from tests.protocols.strategies import read, written

STARTED = Started(exchange="Xq3", conversation="c1")


def test_the_stream_is_the_lessons_with_ids() -> None:
    events = [STARTED, Text("Bonjour"), Text(" et bienvenue"), Ended(outcome=Outcome.COMPLETE)]
    assert written(PROTOCOL, events) == (
        b'id: Xq3.1\ndata: {"morceau":""}\n\n'
        b'id: Xq3.2\ndata: {"morceau":"Bonjour"}\n\n'
        b'id: Xq3.3\ndata: {"morceau":" et bienvenue"}\n\n'
        b"id: Xq3.4\nevent: fin\ndata: fin\n\n"
    )


def test_markup_and_quotes_stay_text_in_json() -> None:
    wire = written(PROTOCOL, [STARTED, Text('<script>"\\\n</script>é\u2028')])
    assert wire.endswith('data: {"morceau":"<script>\\"\\\\\\n</script>é\\u2028"}\n\n'.encode())


@pytest.mark.parametrize(
    ("end", "block"),
    [
        (Ended(outcome=Outcome.TRUNCATED), b"event: fin\ndata: coupe\n\n"),
        (Ended(outcome=Outcome.FILTERED), b"event: fin\ndata: filtre\n\n"),
        (Ended(outcome=Outcome.STOPPED, by=By.VISITOR), b"event: arret\ndata: arret\n\n"),
        (Ended(outcome=Outcome.ABANDONED), b"event: arret\ndata: arret\n\n"),
        (
            Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Trop long.\n"),
            b'event: erreur\ndata: {"code":"timeout","message":"Trop long.\\n"}\n\n',
        ),
    ],
)
def test_each_end_has_its_own_event(end: Ended, block: bytes) -> None:
    assert written(PROTOCOL, [STARTED, end]).endswith(b"id: Xq3.2\n" + block)


def test_a_marked_answer_says_so_just_before_its_end_to_whoever_listens() -> None:
    wire = written(PROTOCOL, [STARTED, Text("a"), Ended(outcome=Outcome.COMPLETE, marks=("recorded",))])
    assert wire.endswith(b'event: marques\ndata: ["recorded"]\n\nid: Xq3.3\nevent: fin\ndata: fin\n\n')
    [*_, end] = read(PROTOCOL.reader(), [wire])
    assert end == Ended(outcome=Outcome.COMPLETE, marks=("recorded",))


@pytest.mark.parametrize(
    ("data", "marks"), [(b"recorded", ()), (b'"x"', ()), (b'{"a":1}', ()), (b'[1,"b",null]', ("b",))]
)
def test_marks_in_other_words_are_no_marks(data: bytes, marks: tuple[str, ...]) -> None:
    got = read(PROTOCOL.reader(), [b"event: marques\ndata: " + data + b"\n\nevent: fin\ndata: fin\n\n"])
    assert got == [Ended(outcome=Outcome.COMPLETE, marks=marks)]


def test_an_interrupted_answer_is_an_error_with_a_code_of_its_own() -> None:
    wire = written(PROTOCOL, [STARTED, Ended(outcome=Outcome.INTERRUPTED)])
    assert b'event: erreur\ndata: {"code":"interrupted","message":"' in wire


def test_what_a_page_of_pieces_cannot_show_takes_no_bytes_and_no_id() -> None:
    events = [
        STARTED,
        Routed(agent="s"),
        Reasoning("hm"),
        ToolCalled(id="1", name="t"),
        TurnEnded(turn=1, finish="stop"),
        Text("a"),
    ]
    wire = written(PROTOCOL, events)
    assert wire == b'id: Xq3.1\ndata: {"morceau":""}\n\nid: Xq3.6\ndata: {"morceau":"a"}\n\n'


def test_a_lessons_own_server_without_ids_is_read() -> None:
    wire = b'data: {"morceau": "Bonjour"}\n\ndata: {"morceau": " \\ud83d"}\n\ndata: {"morceau": "\\ude00"}\n\n'
    assert read(PROTOCOL.reader(), [wire + b"event: fin\ndata: fin\n\n"]) == [
        Text("Bonjour"),
        Text(" "),
        Text("😀"),
        Ended(outcome=Outcome.COMPLETE),
    ]
    [*_, end] = read(PROTOCOL.reader(), [wire])  # stopped there, or broken: its reader cannot tell
    assert isinstance(end, Ended)
    assert end.code is Code.UPSTREAM_CUT


@pytest.mark.parametrize("data", [b"Oups", b'"Oups"', b'{"message":"Oups"}', b'{"message":"Oups","code":7}'])
def test_an_error_in_other_words_is_still_an_error(data: bytes) -> None:
    got = read(PROTOCOL.reader(), [b"event: erreur\ndata: " + data + b"\n\n"])
    assert got == [Ended(outcome=Outcome.FAILED, code=Code.UPSTREAM_ERROR, message="Oups")]
