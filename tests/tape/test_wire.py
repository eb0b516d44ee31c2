"""The lines of a wire, and what the HTML standard reads there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.sse import Ignored
from motamot.tape import Piece, Tape
from motamot.tape.wire import looks_like_event_stream, read_as_standard, wire_lines

STREAMS = Path(__file__).parents[1] / "data" / "real-streams"


def taped(*reads: bytes, **fields: object) -> Tape:
    pieces = tuple(Piece(number / 10, data) for number, data in enumerate(reads))
    return Tape(pieces=pieces, **fields)  # type: ignore[arg-type]


@given(st.lists(st.binary(max_size=6) | st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x\n\n"]), max_size=12))
def test_the_lines_put_together_are_the_body(reads: list[bytes]) -> None:
    lines = list(wire_lines(taped(*reads)))
    assert b"".join(line.data + line.end.encode() for line in lines) == b"".join(reads)
    at = 0
    for line in lines:
        assert line.offset == at
        at += len(line.data) + len(line.end)
        assert line.data.strip(b"\r\n") == line.data


def test_each_line_has_the_time_of_the_read_that_completed_it() -> None:
    lines = list(wire_lines(taped(b"data: a\n", b"", b"da", b"ta: b\nda", b"ta: c\n\n: x\n")))
    assert [(line.data, line.at, line.new_read) for line in lines] == [
        (b"data: a", 0.0, True),
        (b"data: b", 0.3, True),
        (b"data: c", 0.4, True),
        (b"", 0.4, False),
        (b": x", 0.4, False),
    ]


def test_what_the_standard_dispatches_ignores_and_discards_is_all_told() -> None:
    read = read_as_standard(
        taped(
            b": ping\nevent: fin\ndata: a\n\nfoo\nbar: 1\nretry: x\n", b"\ndata\n\nid: 7\n\n", b"data: b\ndata: c\ndat"
        )
    )
    assert [(seen.event.event, seen.event.data, seen.kind, seen.lines, seen.at) for seen in read.events] == [
        ("fin", "a", "fin", 1, 0.0),
        ("message", "", "text", 1, 0.1),
    ]
    assert [(ignored.kind, ignored.line, ignored.offset) for ignored in read.ignored] == [
        (Ignored.COMMENT, b": ping", 0),
        (Ignored.NO_COLON, b"foo", 27),
        (Ignored.UNKNOWN_FIELD, b"bar: 1", 31),
        (Ignored.BAD_RETRY, b"retry: x", 38),
        (Ignored.NO_DATA, b"", 60),
    ]
    assert (read.residue.block, read.residue.data, read.residue.line) == (True, "b\nc", b"dat")


def kinds(*datas: str, event: str = "") -> list[str]:
    named = f"event: {event}\n" if event else ""
    body = "".join(named + "".join(f"data: {line}\n" for line in data.split("\n")) + "\n" for data in datas)
    return [seen.kind for seen in read_as_standard(taped(body.encode())).events]


ROUTING = '{"type":"routing","agentId":"voicing"}'


@pytest.mark.parametrize(
    ("datas", "expected"),
    [
        ((ROUTING, "Found\n\n- x", "[DONE]"), ["routing", "text", "[DONE]"]),
        ((ROUTING, '{"type":"routing"}', '{"a":1}', '{"error":"x"}'), ["routing", "text", "text", "error"]),
        ((ROUTING, '{"error":"x","and":"more"}', "{x} chord"), ["routing", "text", "text"]),
        (('{"error":"x"}',), ["error"]),
        (("text", ROUTING), ["text", "routing"]),
        (('{"type":"TEXT_MESSAGE_CONTENT","delta":"x"}',), ["TEXT_MESSAGE_CONTENT"]),
        (('{"morceau":"x"}', '{"a":1}', "{", "[1]", "7"), ["text", "json", "text", "text", "text"]),
        (('{"choices":[{"delta":{"role":"assistant","content":""}}]}',), ["role"]),
        (('{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}',), ["text, end: stop"]),
        (('{"choices":[{"delta":{"reasoning_content":"x"}}]}',), ["reasoning"]),
        (('{"choices":[{"delta":{"tool_calls":[{}]}}],"usage":{"a":1}}',), ["tool call, usage"]),
        (
            ('{"choices":[],"usage":{"a":1}}', '{"choices":[7]}', '{"choices":[{"delta":5}]}'),
            ["usage", "chunk", "chunk"],
        ),
        (('{"error":null,"type":5}',), ["json"]),
        (("[" * 100_000,), ["text"]),
        (('{"a":' * 100_000,), ["text"]),
    ],
)
def test_an_event_is_named_for_what_it_is(datas: tuple[str, ...], expected: list[str]) -> None:
    assert kinds(*datas) == expected


def test_an_event_with_a_name_of_its_own_bears_it() -> None:
    assert kinds('{"a":1}', "x", event="marques") == ["marques", "marques"]
    assert kinds('{"type":"content_block_delta"}', event="content_block_delta") == ["content_block_delta"]
    assert kinds('{"type":"error","error":{"message":"x"}}', event="erreur") == ["error"]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"data: x\n\n", None, True),
        (b"\xef\xbb\xbfdata:x\n\n", None, True),
        (b"\n\n: ping\n", None, True),
        (b"event: x\ndata\n\n", None, True),
        (b"data\n\n", None, True),
        (b"database: x", None, False),
        (b'{"a":1}\n', None, False),
        (b"Just: text", None, False),
        (b"", None, False),
        (b"{}", "text/event-stream", True),
        (b"data: x\n\n", "application/json", False),
    ],
)
def test_an_event_stream_is_told_by_its_type_or_else_its_first_line(
    body: bytes, kind: str | None, expected: bool
) -> None:
    headers = () if kind is None else (("Content-Type", kind),)
    assert looks_like_event_stream(Tape(pieces=(Piece(None, body),), headers=headers)) is expected


@pytest.mark.parametrize("name", sorted(path.stem for path in STREAMS.glob("*.sse")))
def test_a_real_stream_is_read_as_it_was_recorded(name: str) -> None:
    recorded = json.loads((STREAMS / f"{name}.json").read_text("utf-8"))
    body = (STREAMS / f"{name}.sse").read_bytes()
    reads = [body[chunk["offset"] : chunk["offset"] + chunk["bytes"]] for chunk in recorded["http_chunks"]]
    tape = Tape(pieces=tuple(Piece(None, data) for data in reads))
    read = read_as_standard(tape)
    assert tape.body == body
    assert len(read.events) == body.count(b"data: ") and not read.problem
    assert {seen.kind for seen in read.events} <= {
        *(
            "role",
            "text",
            "role, text",
            "tool call",
            "usage",
            "[DONE]",
            "end: stop",
            "end: length",
            "end: tool_calls",
            "error",
        ),
    }
