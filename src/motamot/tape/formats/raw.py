"""A body alone, as `curl -N URL > FILE` and a browser's "Copy response" give it; or what a file is instead of one."""

from __future__ import annotations

from motamot.errors import TapeError
from motamot.tape.formats.base import Format
from motamot.tape.tape import Piece, Tape

__all__ = ["FORMAT"]

_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive: unpack it, and give the recording in it"),
    (b"\x89PNG", "a picture (PNG): a screenshot shows what a page made of an answer, not what came over the wire"),
    (
        b"\xff\xd8\xff",
        "a picture (JPEG): a screenshot shows what a page made of an answer, not what came over the wire",
    ),
    (b"%PDF-", "a PDF document"),
    (b"\x0a\x0d\x0d\x0a", "a packet capture: give the body of one response, as curl -i writes it"),
    (b"\xd4\xc3\xb2\xa1", "a packet capture: give the body of one response, as curl -i writes it"),
    (b"SQLite format 3", "a database: motamot ledger reads one of motamot's"),
    (b"\x7fELF", "a program"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first"),
    (b"\xfd7zXZ", "compressed with xz: unpack it first"),
    (b"BZh", "compressed with bzip2: unpack it first"),
)
_HOWTO = "curl -i -N URL > FILE records an answer, and so does motamot record URL -o FILE"
_LOOKED_AT = 4096


def _read(data: bytes, _: str | None) -> list[Tape]:
    """The body. Raises: TapeError where it can be none of a chatbot's."""
    for start, sentence in _FOREIGN:
        if data.startswith(start):
            raise TapeError(f"this is {sentence}", offset=0)
    command = data[:200].lstrip()
    if command.startswith((b"curl ", b"fetch(", b"$ curl ")):
        raise TapeError("this is a command, not what it answered: run it with -i, and give what it writes", offset=0)
    zero = data.find(b"\0", 0, _LOOKED_AT)
    if zero >= 0 and not _is_stream(data):
        raise TapeError(
            f"this is no text (byte {zero} is NUL), and no recording that is known here; {_HOWTO}", offset=zero
        )
    return [Tape(pieces=(Piece(None, data),), source="raw")]


def _is_stream(data: bytes) -> bool:
    """Whether it begins as an event stream does: NUL may stand in its data."""
    return data.removeprefix(b"\xef\xbb\xbf").startswith((b"data:", b"event:", b"id:", b"retry:", b":", b"\n", b"\r"))


FORMAT = Format(name="raw", title="a body alone", recognises=lambda _: True, read=_read)
