"""What a reader is tried with: the standard's rules, one stream each, and what answers hold that gets lost.

What is right is not written here: `motamot.sse` reads the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from motamot.sse import encode

__all__ = ["HAZARDS", "RULES", "Hazard", "Rule"]

PARSING = "Parsing an event stream"
INTERPRETING = "Interpreting an event stream"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of WHATWG HTML, "Server-sent events", and a stream that shows whether a reader keeps it.

    name:   as a row of a table.
    clause: the section, and what it says, in our words.
    stream: bytes that show it to a reader of text.
    json:   bytes that show it to a reader that parses the JSON of the data itself; None where it cannot show there.
    """

    name: str
    clause: str
    stream: bytes
    json: bytes | None = None


@dataclass(frozen=True, slots=True)
class Hazard:
    """A text that an answer may be, or begin or end with."""

    name: str
    text: str

    @property
    def plain(self) -> bytes:
        """As the data of an event, its lines in a `data` field each; then an event that shows what was not lost."""
        return encode(self.text.encode("utf-8", "replace").decode()) + encode("after")

    def json(self, stream: str) -> bytes:
        """In JSON, not escaped but where JSON must be; then an event that shows what was not lost.

        stream: whose JSON: of `openai` and `anthropic` as their APIs send it, else `{"text": …}`.
        """
        return _json(stream, self.text) + _json(stream, "after")


def _json(stream: str, text: str) -> bytes:
    """One event that holds a piece of an answer."""
    value: dict[str, object] = {"text": text}
    name = b""
    if stream == "openai":
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        value = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "-", "choices": [choice]}
    elif stream == "anthropic":
        name = b"event: content_block_delta\n"
        value = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    half = any("\ud800" <= character <= "\udfff" for character in text)  # exists in JSON as an escape only
    return name + b"data: " + json.dumps(value, ensure_ascii=half, separators=(",", ":")).encode() + b"\n\n"


_A = b'data: "a"\n\n'
_Z = b'data: "z"\n\n'

RULES: tuple[Rule, ...] = (
    Rule(
        "an event ends at a blank line", f"{INTERPRETING}: an empty line dispatches", b"data: a\n\ndata: b\n\n", _A + _Z
    ),
    Rule(
        "data lines of one event are joined by LF",
        f"{INTERPRETING}: data is appended with an LF; the last LF goes at dispatch",
        b"data: a\ndata: b\ndata: c\n\n",
        b'data: ["a",\ndata: "b",\ndata: "c"]\n\n',
    ),
    Rule("an empty first data line counts", f"{INTERPRETING}: the same", b"data:\ndata: b\n\n"),
    Rule("an empty last data line counts", f"{INTERPRETING}: only one LF goes at dispatch", b"data: a\ndata:\n\n"),
    Rule(
        "an event with empty data is an event",
        f"{INTERPRETING}: an event without a data line is none; one with an empty line is",
        b"data:\n\ndata: z\n\n",
    ),
    Rule("`data` without a colon is an empty data line", f"{INTERPRETING}: a line without a colon", b"data\ndata\n\n"),
    Rule(
        "no space is needed behind the colon",
        f"{INTERPRETING}: if the value starts with a space, it is removed",
        b"data:a\n\n",
        b'data:"a"\n\n',
    ),
    Rule("only one space is removed", f"{INTERPRETING}: the same", b"data:   a\n\n"),
    Rule("a tab is not removed", f"{INTERPRETING}: the same", b"data:\ta\n\n"),
    Rule("spaces at the end stay", f"{INTERPRETING}: nothing else is removed", b"data: a  \n\n"),
    Rule(
        "a colon in the value stays",
        f"{INTERPRETING}: at the first colon",
        b"data: a: b:c\n\n",
        b'data: {"a":"b:c"}\n\n',
    ),
    Rule(
        "CRLF ends a line", PARSING, b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", b'data: "a"\r\n\r\ndata: "z"\r\n\r\n'
    ),
    Rule(
        "CR ends a line",
        PARSING,
        b"data: a\rdata: b\r\rdata: c\r\rdata: d\n\n",
        b'data: "a"\r\rdata: "z"\r\rdata: 1\n\n',
    ),
    Rule(
        "line ends may differ within a stream",
        PARSING,
        b"data: a\r\n\ndata: b\n\r\ndata: c\n\rdata: d\r\n\rdata: e\n\n",
        b'data: "a"\r\n\ndata: "b"\n\r\ndata: "c"\n\n',
    ),
    Rule(
        "a comment is nothing",
        f"{INTERPRETING}: a line that starts with a colon is ignored",
        b": hello\ndata: a\n: data: b\n\n",
        b': hello\ndata: "a"\n: data: "b"\n\n',
    ),
    Rule("a block of comments is no event", f"{INTERPRETING}: the same", b": ping\n\ndata: a\n\n", b": ping\n\n" + _A),
    Rule(
        "nor is it one after an id",
        f"{INTERPRETING}: an event without a data line is none",
        b"id: 1\ndata: a\n\n: ping\n\ndata: z\n\n",
        b"id: 1\n" + _A + b": ping\n\n" + _Z,
    ),
    Rule(
        "a block of `retry` is no event",
        f"{INTERPRETING}: the same",
        b"retry: 10\n\ndata: a\n\n",
        b"retry: 10\n\n" + _A,
    ),
    Rule(
        "a block of `event` is no event, and forgotten",
        f"{INTERPRETING}: the same; the event type buffer is emptied",
        b"event: x\n\ndata: a\n\n",
        b"event: x\n\n" + _A,
    ),
    Rule(
        "a block of `id` is no event",
        f"{INTERPRETING}: the same; the last event id is set",
        b"id: 1\n\ndata: a\n\n",
        b"id: 1\n\n" + _A,
    ),
    Rule(
        "an id stays for the events after it",
        f"{INTERPRETING}: the last event id is not emptied at dispatch",
        b"id: 1\ndata: a\n\ndata: b\n\n",
    ),
    Rule("an empty id resets it", f"{INTERPRETING}: the same", b"id: 1\ndata: a\n\nid\ndata: b\n\n"),
    Rule(
        "an id with NUL is ignored",
        f"{INTERPRETING}: if the value does not contain NULL",
        b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n",
    ),
    Rule(
        "an event type is for one event",
        f"{INTERPRETING}: the event type buffer is emptied at dispatch",
        b"event: x\ndata: a\n\ndata: b\n\n",
        b"event: x\n" + _A + _Z,
    ),
    Rule(
        "the last event type counts",
        f"{INTERPRETING}: the buffer is set to the value",
        b"event: x\nevent: y\ndata: a\n\n",
    ),
    Rule(
        "an empty event type is `message`",
        f"{INTERPRETING}: if the buffer is not empty",
        b"event:\ndata: a\n\n",
    ),
    Rule("an unknown field is nothing", f"{INTERPRETING}: otherwise", b"text: b\ndata: a\n\n", b'text: "b"\n' + _A),
    Rule(
        "names are compared to the letter",
        f"{INTERPRETING}: field names, with no case folding",
        b"DATA: b\ndata : c\n data: d\ndata: a\n\n",
        b'DATA: "b"\ndata : "c"\n data: "d"\n' + _A,
    ),
    Rule(
        "blank lines alone are nothing",
        f"{INTERPRETING}: an event without a data line is none",
        b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n",
        b"\n\n\n" + _A + b"\n\n\n" + _Z + b"\n",
    ),
    Rule(
        "a byte-order mark at the start is dropped",
        f"{PARSING}: UTF-8 decode",
        b"\xef\xbb\xbfdata: a\n\ndata: b\n\n",
        b"\xef\xbb\xbf" + _A + _Z,
    ),
    Rule(
        "only one is dropped",
        f"{PARSING}: UTF-8 decode",
        b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n",
        b"\xef\xbb\xbf\xef\xbb\xbf" + _A + _Z,
    ),
    Rule(
        "and only at the start",
        f"{PARSING}: UTF-8 decode",
        b"data: \xef\xbb\xbfa\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n",
        b'data: "\xef\xbb\xbfa"\n\n\xef\xbb\xbfdata: "b"\n\ndata: "c"\n\n',
    ),
    Rule(
        "an event that no blank line ends is none",
        f"{INTERPRETING}: once the end is reached, pending data is discarded",
        b"data: a\n\ndata: b\n",
        _A + b'data: "z"\n',
    ),
    Rule(
        "nor is one that no line end ends",
        f"{INTERPRETING}: the same",
        b"data: a\n\ndata: b",
        _A + b'data: "z"',
    ),
    Rule(
        "U+2028 and U+2029 end no line",
        PARSING,
        "data: a\u2028b\u2029data: c\n\n".encode(),
        'data: "a\u2028b\u2029data: c"\n\n'.encode(),
    ),
    Rule("U+0085 ends no line", PARSING, "data: a\x85b\n\n".encode(), 'data: "a\x85b"\n\n'.encode()),
    Rule("VT and FF end no line", PARSING, b"data: a\vb\fc\n\n"),
    Rule("U+001C to U+001E end no line", PARSING, b"data: a\x1cb\x1dc\x1ed\n\n"),
    Rule("NUL in data stays", INTERPRETING, b"data: a\0b\n\n"),
    Rule(
        "a character may be cut between reads",
        f"{PARSING}: UTF-8 decode",
        "data: é→🙂\n\n".encode(),
        'data: "é→🙂"\n\n'.encode(),
    ),
    Rule(
        "what is not UTF-8 becomes U+FFFD",
        f"{PARSING}: UTF-8 decode",
        b"data: a\xffb\xe2\x82c\n\n",
        b'data: "a\xffb\xe2\x82c"\n\n',
    ),
)
"""The rules, in the order of the standard's sections where that can be read as a list."""

HAZARDS: tuple[Hazard, ...] = (
    Hazard("CR", "a\rb"),
    Hazard("CRLF", "a\r\nb"),
    Hazard("LF at the end", "a\n"),
    Hazard("LF alone", "\n"),
    Hazard("a blank line", "a\n\nb"),
    Hazard("nothing", ""),
    Hazard("a space at the start", " a"),
    Hazard("indentation", "    a\n        b"),
    Hazard("spaces at the end", "a  \nb  "),
    Hazard("a space alone", " "),
    Hazard("a tab", "\ta\tb"),
    Hazard("`[DONE]`", "[DONE]"),
    Hazard("`[DONE]` at the start", "[DONE] is a mark"),
    Hazard("`[DONE]` inside", "the mark [DONE] ends it"),
    Hazard("JSON", '{"text":"b"}'),
    Hazard("JSON with `error`", '{"error":"b"}'),
    Hazard("a lone brace", "{x}"),
    Hazard("`data:` at the start", "data: a"),
    Hazard("`data:` on a line of its own", "a\ndata: b"),
    Hazard("a colon at the start", ": a"),
    Hazard("`id:` and `event:` lines", "id: 5\nevent: x\nretry: 1"),
    Hazard("U+2028 and U+2029", "a\u2028b\u2029c"),
    Hazard("U+0085", "a\x85b"),
    Hazard("VT and FF", "a\vb\fc"),
    Hazard("U+001C to U+001E", "a\x1cb\x1dc\x1ed"),
    Hazard("NUL", "a\0b"),
    Hazard("U+FEFF at the start", "\ufeffa"),
    Hazard("joined emoji", "👩‍👩‍👧‍👦 🇨🇭"),
    Hazard("combining marks", "e\u0301 n\u0303"),
    Hazard("right to left", "\u202bשלום\u202c"),
    Hazard("half a character", "a\ud83db"),
    Hazard("U+FFFE and U+FFFF", "a\ufffe\uffffb"),
)
"""Texts that readers, writers or what stands between them were seen to lose, or that look like the wire itself."""
