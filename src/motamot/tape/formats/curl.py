"""What `curl -i` writes: heads, then the body; also with `--raw`, `-L` or a proxy, and `wget --save-headers`."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.errors import TapeError
from motamot.tape import bounds
from motamot.tape.formats.base import Format
from motamot.tape.http1 import Head, body_end, is_head, read_head, unchunked, unpacked
from motamot.tape.tape import Piece, Request, Tape

__all__ = ["FORMAT", "response"]


def _read(data: bytes, _: str | None) -> list[Tape]:
    """The responses in a capture: most often one."""
    tapes: list[Tape] = []
    start = 0
    while len(tapes) < bounds.HEADS:
        tape, start = response(data, start)
        tapes.append(tape)
        if not is_head(data, start):
            break
    return tapes


def response(data: bytes, start: int, request: Request | None = None) -> tuple[Tape, int]:
    """The response that begins at `start`, and the byte where the next one may.

    Raises: TapeError where its head does not end.
    """
    head, before = _heads(data, start)
    notes = _passed(before)
    pieces, stop, ended = _body(data, head)
    end, told = body_end(head, sum(map(len, pieces)), ended)
    body, problem = unpacked(pieces, head.header("content-encoding"))
    if problem:
        notes.append(f"The body is not whole: {problem}. Let curl decompress it: curl -i --compressed ….")
        end = "reset" if end == "reset" else "unknown"
    tape = Tape(
        pieces=tuple(Piece(None, piece) for piece in body),
        status=head.status,
        headers=head.headers,
        request=request,
        end=end,
        source="curl",
        notes=(*notes, *told),
    )
    return tape, stop


def _heads(data: bytes, start: int) -> tuple[Head, list[Head]]:
    """The last head before the body, and those before it: curl shows each, and the body of the last one only."""
    before: list[Head] = []
    head = read_head(data, start)
    while is_head(data, head.end):
        if len(before) >= bounds.HEADS:
            raise TapeError(f"there are more than {bounds.HEADS} heads before a body", offset=head.end)
        before.append(head)
        head = read_head(data, head.end)
    return head, before


def _passed(heads: Iterable[Head]) -> list[str]:
    notes = []
    for head in heads:
        if 300 <= head.status < 400:
            notes.append(f"The request was sent on with {head.status} before this response.")
        elif head.status in (401, 407):
            notes.append(f"A first request was answered with {head.status}, and repeated with credentials.")
    return notes


def _body(data: bytes, head: Head) -> tuple[list[bytes], int, bool | None]:
    """The body's pieces, the byte after it, and whether its last chunk came (None: it has no chunks here)."""
    if "chunked" in head.header("transfer-encoding").lower():
        found = unchunked(data, head.end)
        if found is not None:
            return found.pieces, found.end, found.ended
    stop = len(data)
    promised = head.header("content-length")
    if promised.isascii() and promised.isdigit() and len(promised) < 16 and is_head(data, head.end + int(promised)):
        stop = head.end + int(promised)  # several addresses on one command line
    body = data[head.end : stop]
    return ([body] if body else []), stop, None


FORMAT = Format(name="curl", title="what curl -i writes", recognises=is_head, read=_read)
