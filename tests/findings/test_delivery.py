"""Whether an answer was live: by its times, and by the model's where they are known."""

from __future__ import annotations

import json

import pytest

from motamot.findings import Promise, examine
from motamot.tape.tape import Piece, Request, Tape
from tests.findings.examples import LONG, PRODUCED, WORDS
from tests.findings.tapes import END, chunk, delta, text, timed

LIVE_FAULTS = {"burst-delivery", "late-first-text", "batched-delivery"}
LATER = tuple(at + 3.0 for at in PRODUCED)  # the model thought for 3 s first
FAST = tuple(number * 0.01 for number in range(12))


def words(*times: float, upstream: tuple[float, ...] = (), head: float | None = None, **more: float) -> Tape:
    """A word at each time; head: when a chunk without text came."""
    told = [(head, delta(role="assistant", content=""))] if head is not None else []
    told += [(at, text(word)) for at, word in zip(times, WORDS, strict=False)]
    return timed(*told, (times[-1] + 0.01, END), upstream_at=upstream, **more)


def at_once(at: float, step: float = 0.0003) -> tuple[float, ...]:
    return tuple(at + number * step for number in range(12))


def lumps(*times: float) -> tuple[float, ...]:
    """Twelve words, as many at each of these times."""
    each = 12 // len(times)
    return tuple(at for at in times for _ in range(each))


HELD: dict[str, tuple[Tape, set[str]]] = {
    "all at the end": (words(*at_once(4.0), upstream=PRODUCED), {"burst-delivery", "late-first-text"}),
    "all at the end, the head at once": (
        words(*at_once(4.0), upstream=PRODUCED, head=0.1),
        {"burst-delivery", "late-first-text"},
    ),
    "all just before the end": (words(*at_once(3.2), upstream=PRODUCED), {"burst-delivery"}),
    "all in one read": (
        timed((4.0, text(*WORDS) + END), upstream_at=PRODUCED),
        {"burst-delivery", "late-first-text"},
    ),
    "all in one delta": (
        timed((4.0, text("".join(WORDS)) + END), upstream_at=PRODUCED),
        {"burst-delivery", "late-first-text"},
    ),
    "sliced after the end": (words(*at_once(3.4, 0.03), upstream=PRODUCED), {"late-first-text"}),
    "sliced slowly after the end": (words(*at_once(3.4, 0.5), upstream=PRODUCED), {"late-first-text"}),
    "three lumps": (words(*lumps(1.2, 2.4, 3.4), upstream=PRODUCED), {"batched-delivery"}),
    "two lumps": (words(*lumps(1.8, 3.4), upstream=PRODUCED), {"batched-delivery"}),
    "the first word at once, all others at the end": (
        words(0.05, *at_once(3.5)[1:], upstream=PRODUCED),
        {"batched-delivery"},
    ),
    "all at once, the model's times unknown": (words(*at_once(4.0)), {"burst-delivery"}),
    "a whole answer in one delta, times unknown": (timed((6.0, text(LONG)), (6.0, END)), {"burst-delivery"}),
    "five sentences at once, times unknown": (
        timed((53.2, text(*(LONG for _ in range(5)))), (53.2, END), head_at=0.1),
        {"burst-delivery"},
    ),
    "two lumps, times unknown": (words(*lumps(0.5, 3.5)), {"batched-delivery"}),
    "two lumps that a network spread, times unknown": (
        words(*(0.5 + n * 0.008 for n in range(6)), *(4.0 + n * 0.008 for n in range(6))),
        {"batched-delivery"},
    ),
    "lumps, times unknown": (words(*lumps(1.0, 2.0, 3.0)), {"batched-delivery"}),
}


@pytest.mark.parametrize("name", HELD)
def test_what_was_held_back_is_told(name: str) -> None:
    tape, expected = HELD[name]
    examined = examine(tape)
    assert {finding.id for finding in examined.findings} & LIVE_FAULTS == expected
    assert examined.judged[Promise.LIVE] == "lost"
    for finding in examined.findings:
        if finding.id in LIVE_FAULTS:
            assert finding.evidence[0].at is not None


LIVE: dict[str, Tape] = {
    "as produced": words(*(at + 0.05 for at in PRODUCED), upstream=PRODUCED),
    "late, as produced": words(*(at + 0.05 for at in LATER), upstream=LATER),
    "over a slow network": words(*(at + 0.8 for at in PRODUCED), upstream=PRODUCED),
    "uneven": words(0.1, 0.31, 0.9, 0.9, 1.21, 1.9, 1.9, 2.15, 2.41, 2.75, 3.0, 3.4, upstream=PRODUCED),
    "two by two": words(*lumps(0.35, 0.95, 1.55, 2.15, 2.75, 3.35), upstream=PRODUCED),
    "a stall of a second in the middle": words(
        *(max(at, 1.9) if 0.8 < at < 1.9 else at for at in PRODUCED), upstream=PRODUCED
    ),
    "a fast model": words(*(at + 0.02 for at in FAST), upstream=FAST),
    "a fast model, all in one read": timed((0.3, text(*WORDS) + END), upstream_at=FAST),
    "a fast model that began late": words(*(at + 4.02 for at in FAST), upstream=tuple(at + 4 for at in FAST)),
    "a model that writes in lumps": words(*lumps(1.05, 2.05, 3.05), upstream=lumps(1.0, 2.0, 3.0)),
    "a pause in a fast answer, times unknown": words(
        *(0.5 + n * 0.02 for n in range(6)), *(4.0 + n * 0.02 for n in range(6))
    ),
    "a stall of a second, times unknown": words(*lumps(0.5, 1.6)),
    "a tool between two lumps, times unknown": timed(
        *((0.5, text(word)) for word in WORDS),
        (0.5, delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
        *((4.0, text(word)) for word in WORDS),
        (4.0, END),
    ),
    "a greeting at once, times unknown": words(0.1, *at_once(3.0)[1:]),
    "a short answer, times unknown": words(3.0, 3.0),
    "as produced, times unknown": words(*(at + 1 for at in PRODUCED)),
    "a fast model, times unknown": words(*(at + 2.0 for at in at_once(0, 0.008))),
    "quick and at once, times unknown": words(*at_once(0.4)),
    "after live reasoning": timed(
        *((at, delta(reasoning_content="hm ")) for at in PRODUCED), (3.5, text(*WORDS)), (3.5, END)
    ),
    "after live tool calls": timed(
        (0.5, delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
        (3.5, text(*WORDS)),
        (3.5, END),
    ),
    "a document, as it was asked": timed(
        (6.0, json.dumps({"text": LONG})),
        headers=(("content-type", "application/json"),),
        request=Request(method="POST", body=b'{"stream": false}'),
    ),
    "no text at all": timed((4.0, chunk(choices=[]) + END), upstream_at=PRODUCED),
}


@pytest.mark.parametrize("name", LIVE)
def test_what_was_live_is_not_blamed(name: str) -> None:
    examined = examine(LIVE[name])
    assert not {finding.id for finding in examined.findings} & LIVE_FAULTS
    assert examined.judged[Promise.LIVE] != "lost"


@pytest.mark.parametrize("name", HELD)
def test_without_times_nothing_is_said(name: str) -> None:
    """Nor from a HAR, whose times are none of the reads'."""
    tape, _ = HELD[name]
    for one in (
        Tape(pieces=tuple(Piece(None, piece.data) for piece in tape.pieces), headers=tape.headers),
        Tape(pieces=(*tape.pieces[:-1], Piece(None, tape.pieces[-1].data)), headers=tape.headers),
        Tape(pieces=tape.pieces, headers=tape.headers, source="har"),
    ):
        examined = examine(one)
        assert not {finding.id for finding in examined.findings} & LIVE_FAULTS
        assert examined.judged[Promise.LIVE].startswith("not judged")


def test_a_silence_is_told_where_it_stood() -> None:
    body = text("Let me think.")
    examined = examine(timed((0.2, body), (61.0, text(" Yes.") + END)))
    (finding,) = [one for one in examined.findings if one.id == "no-keepalive"]
    assert finding.evidence[0].at == 0.2 and finding.evidence[0].offset == len(body)
    assert "for 61 s" in finding.message


@pytest.mark.parametrize(
    ("tape", "silent"),
    [
        (timed((45.0, text("Hi") + END), head_at=0.1), True),
        (timed((45.0, text("Hi") + END), head_at=44.9), False),
        (timed((0.1, text("Hi") + END), ended_at=50.0), True),
        (timed(*((at * 15.0, ":\n") for at in range(1, 9)), (121.0, text("Hi") + END)), False),
        (timed((29.0, text("Hi") + END)), False),
    ],
)
def test_a_silence_may_stand_before_and_after_the_answer(tape: Tape, silent: bool) -> None:
    assert ("no-keepalive" in {finding.id for finding in examine(tape).findings}) == silent
