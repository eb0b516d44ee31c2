"""Our own tapes: JSON Lines, one line per read, to be read with eyes and grep, and whole up to wherever it was cut.

    {"motamot":"tape","version":1,"status":200,"headers":[["content-type","text/event-stream"]],"head_at_ms":3.1}
    {"at_ms":12.3,"text":"data: Hello\\n\\n"}
    {"at_ms":14.9,"base64":"ww=="}
    {"end":"closed","at_ms":15.2}

`text` where the read is UTF-8 by itself, else `base64`. Times are milliseconds since the request, to the microsecond;
without them no `at_ms`. Additions are new keys, which older readers skip.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from motamot.errors import TapeError
from motamot.tape import bounds
from motamot.tape.formats.base import Format
from motamot.tape.tape import END_KINDS, Piece, Request, Tape

__all__ = ["FORMAT", "VERSION", "lines"]

VERSION = 1
_BLOCK = 1 << 20  # bytes of lines that are decoded at once
_EXACT_MS = 1e12
_START = b'{"motamot":"tape"'


class _Request(msgspec.Struct, omit_defaults=True):
    method: str = "GET"
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    body_base64: bytes = b""


class _Header(msgspec.Struct, omit_defaults=True):
    motamot: str
    version: int
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    request: _Request | None = None
    head_at_ms: float | None = None
    upstream_at_ms: tuple[float, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()


class _Line(msgspec.Struct, omit_defaults=True, gc=False):
    end: str | None = None
    at_ms: float | None = None
    text: str | None = None
    base64: bytes | None = None  # msgspec writes and reads bytes as base64 (RFC 4648, 4)


_encode = msgspec.json.Encoder().encode
_header = msgspec.json.Decoder(_Header).decode
_line = msgspec.json.Decoder(_Line).decode
_lines = msgspec.json.Decoder(_Line).decode_lines


def lines(tape: Tape) -> Iterator[bytes]:
    """The lines of a tape's file, each with its LF. Secrets are the caller's to remove."""
    request = None
    if tape.request is not None:
        asked = tape.request
        text = _text(asked.body)
        request = _Request(
            method=_written(asked.method),
            url=_written(asked.url),
            headers=_pairs(asked.headers),
            body=text or "",
            body_base64=asked.body if text is None else b"",
        )
    header = _Header(
        motamot="tape",
        version=VERSION,
        status=tape.status,
        headers=_pairs(tape.headers),
        request=request,
        head_at_ms=_ms(tape.head_at),
        upstream_at_ms=tuple(round(at * 1000, 3) for at in tape.upstream_at),
        source=tape.source,
        notes=tuple(map(_written, tape.notes)),
    )
    yield _encode(header) + b"\n"
    for at, data in tape.pieces:
        text = _text(data)
        line = _Line(at_ms=_ms(at), text=text, base64=data if text is None else None)
        yield _encode(line) + b"\n"
    yield _encode(_Line(end=tape.end, at_ms=_ms(tape.ended_at))) + b"\n"


def _read(data: bytes, _: str | None) -> list[Tape]:
    """The one tape in a file of ours. Never raises for a cut one: what was read is kept, and the place is noted."""
    first_end = data.find(b"\n")
    first = data if first_end < 0 else data[:first_end]
    try:
        header = _header(first)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TapeError(f"the first line of this tape cannot be read: {_told(error)}", offset=0) from None
    if header.version != VERSION:
        raise TapeError(
            f"this tape is of version {header.version}, and only version {VERSION} is known here: "
            "a newer motamot wrote it"
        )
    body = _Body()
    notes = list(header.notes)
    if problem := body.read(data, min(len(first) + 1, len(data))):
        notes.append(problem)
    return [
        Tape(
            pieces=tuple(body.pieces),
            status=header.status,
            headers=header.headers,
            request=_request(header.request),
            end=body.end,
            head_at=_seconds(header.head_at_ms),
            ended_at=_seconds(body.end_ms),
            upstream_at=tuple(_seconds(at) or 0.0 for at in header.upstream_at_ms),
            source="own",
            notes=tuple(notes),
        )
    ]


class _Body:
    """The lines after the first one."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.end = "unknown"
        self.end_ms: float | None = None

    def read(self, data: bytes, start: int) -> str:
        """Read up to the end line. Returns why there is none, a sentence, or ""."""
        number, at = 2, start
        while at < len(data):
            stop = data.find(b"\n", at + _BLOCK) + 1 or len(data)
            block = data[at:stop]
            try:
                lines = _lines(block)
            except (msgspec.MsgspecError, RecursionError):
                return self._up_to_the_fault(block, number, at, last=stop == len(data))
            for line in lines:
                if self._take(line):
                    return ""
            number += len(lines)
            at = stop
            if len(self.pieces) >= bounds.PIECES:
                return f"The tape has more than {bounds.PIECES:,} reads: those after byte {at:,} were not read."
        return f"The tape was cut: its last line, which tells how the response ended, is missing after byte {at:,}."

    def _up_to_the_fault(self, block: bytes, number: int, at: int, *, last: bool) -> str:
        """Line by line up to the one that cannot be read."""
        end = at + len(block)
        for count, line in enumerate(block.split(b"\n"), number):
            try:
                if self._take(_line(line)):
                    return ""
            except (msgspec.MsgspecError, RecursionError) as error:
                if last and at + len(line) >= end:
                    return f"The tape was cut: it breaks off inside line {count}, at byte {end:,}."
                return (
                    f"The tape is damaged: line {count}, at byte {at:,}, cannot be read ({_told(error)}); "
                    "nothing after it was read."
                )
            at += len(line) + 1
        raise AssertionError("one of the lines of this block cannot be read")

    def _take(self, line: _Line) -> bool:
        if line.end is not None:
            self.end = line.end if line.end in END_KINDS else "unknown"
            self.end_ms = line.at_ms
            return True
        if line.text is not None:
            self.pieces.append(Piece(_seconds(line.at_ms), line.text.encode()))
        elif line.base64 is not None:
            self.pieces.append(Piece(_seconds(line.at_ms), line.base64))
        return False


def _request(asked: _Request | None) -> Request | None:
    if asked is None:
        return None
    body = asked.body_base64 or asked.body.encode()
    return Request(method=asked.method, url=asked.url, headers=asked.headers, body=body)


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _ms(seconds: float | None) -> float | None:
    return round(seconds * 1000, 3) if seconds is not None and math.isfinite(seconds) else None


def _seconds(ms: float | None) -> float | None:
    if ms is None or not -_EXACT_MS < ms < _EXACT_MS:
        return ms
    return round(ms * 1e3) / 1e6  # to the microsecond, as written: 613.387 / 1000 is 0.6133869999999999


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _written(text: str) -> str:
    """`text` as UTF-8 can carry it."""
    return text.encode("utf-8", "replace").decode()


def _pairs(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((_written(name), _written(value)) for name, value in headers)


def _recognises(data: bytes) -> bool:
    return data[:200].lstrip().replace(b" ", b"").startswith(_START)


FORMAT = Format(name="own", title="a tape of motamot's", recognises=_recognises, read=_read)
