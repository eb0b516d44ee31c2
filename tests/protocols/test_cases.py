"""The cases from practice that concern a writer: `emit` and `split`, through every protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent, Ended, Outcome, Started, Text
from motamot.protocols import PROTOCOLS, Protocol
from motamot.sse import Decoder, Event

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data/cases.jsonl").read_text("utf-8").splitlines()]
EACH = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


def of_type(name: str) -> pytest.MarkDecorator:
    found = [case for case in CASES if case["given"]["type"] == name]
    assert found
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


def emitted(protocol: Protocol, case: dict[str, Any]) -> list[Event]:
    """What a reader of the standard gets of the case's texts; an id of the case becomes the exchange's."""
    given = case["given"]["events"]
    exchange = next((event["id"] for event in given if "id" in event), "Xq3")
    events: list[AnswerEvent] = [Started(exchange=exchange, conversation="c1")]
    events += [Text(event["data"]) for event in given]
    events.append(Ended(outcome=Outcome.COMPLETE))
    writer = protocol.writer()
    return Decoder().feed(b"".join(writer.write(number, event) for number, event in enumerate(events, 1)))


def shown(protocol: Protocol, events: list[Event]) -> Iterator[str]:
    """The texts that the events carry for a visitor, out of their JSON where it is JSON."""
    for event in events:
        if protocol.name == "ga-text":
            if not event.data.startswith('{"type":"routing"') and event.data != "[DONE]":
                yield event.data
        elif event.event == "message" and event.data != "[DONE]":
            told = json.loads(event.data)
            yield from (
                text
                for text in (
                    told.get("text"),
                    told.get("morceau"),
                    told.get("delta"),
                    *(choice["delta"].get("content") for choice in told.get("choices", ())),
                )
                if text
            )


@EACH
@of_type("emit")
def test_what_is_emitted_is_what_a_standard_reader_gets(protocol: Protocol, case: dict[str, Any]) -> None:
    expect = case["expect"]
    try:
        events = emitted(protocol, case)
    except ValueError:
        assert "rejects_or" in expect
        return
    got = list(shown(protocol, events))
    wanted = expect.get("rejects_or", expect)
    assert "".join(got) == "".join(
        event["data"].replace("\r\n", "\n").replace("\r", "\n") for event in wanted["events"]
    )
    if protocol.name != "ga-text":  # which may send a text in two
        assert len(got) == wanted["event_count"]
    assert not {event.data for event in events} & set(expect.get("must_not_have_event_data", ()))


@of_type("split")
@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@EACH
def test_what_is_cut_into_pieces_is_the_text(protocol: Protocol, size: int, case: dict[str, Any]) -> None:
    text = case["given"]["text"]
    writer = protocol.writer(exchange="Xq3")
    deltas = [text[place : place + size] for place in range(0, len(text), size)]
    wire = b"".join(writer.write(number, Text(delta)) for number, delta in enumerate(deltas, 2))
    wire += writer.write(len(deltas) + 2, Ended(outcome=Outcome.COMPLETE))
    pieces = list(shown(protocol, Decoder().feed(wire)))
    assert "".join(pieces) == text
    assert pieces.count("") == case["expect"]["empty_pieces"]
