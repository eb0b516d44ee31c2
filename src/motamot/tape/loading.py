"""Reading recordings from files, whatever format they came in."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path

from motamot.errors import TapeError
from motamot.tape import bounds
from motamot.tape.formats import FORMATS
from motamot.tape.hiding import without_secrets
from motamot.tape.http1 import unpacked
from motamot.tape.tape import Piece, Tape

__all__ = ["load"]

_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def load(path_or_bytes: str | os.PathLike[str] | bytes, *, select: int | str | None = None) -> list[Tape]:
    """The tapes in a recording: one for most, one for each answer in a HAR. Never empty.

    The format is told by the content alone: a tape of motamot's, a HAR, what `curl -i` or `curl -v` writes (also with
    `--raw`, several heads, compression), or a body alone; each of them may be compressed with gzip. Secrets in headers
    and addresses are removed. What a recording cannot tell, and where it broke off, stands in `Tape.notes`.

    select: the number of a tape, from 1, or a part of its address; in a HAR that finds any request.
    Raises: TapeError, saying what the file is instead, or where it broke, and what to do.
    """
    name = ""
    if isinstance(path_or_bytes, bytes):
        data = path_or_bytes
    else:
        name = f"{os.fspath(path_or_bytes)}: "
        data = _contents(Path(path_or_bytes))
    try:
        return _selected(_tapes(data, select if isinstance(select, str) else None), select)
    except TapeError as error:
        raise TapeError(name + error.message, offset=error.offset, detail=error.detail) from None


def _contents(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(bounds.FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: NUL in the name
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TapeError(f"the file {path} cannot be read: {told}") from error
    return data


def _tapes(data: bytes, wanted: str | None) -> list[Tape]:
    if len(data) > bounds.FILE_BYTES:
        raise TapeError(f"it is larger than {bounds.FILE_BYTES:,} bytes, the most that is read of a recording")
    if not data:
        raise TapeError("the file is empty: nothing was recorded")
    notes: list[str] = []
    if data.startswith(b"\x1f\x8b"):
        data = _gunzipped(data, notes)
    if data[:2] in _UTF16:
        data = data[2:].decode(_UTF16[data[:2]], "replace").encode()
        notes.append("The file was UTF-16, as PowerShell's > writes it: line ends may be its own, and not the wire's.")
    tapes = next(form for form in FORMATS if form.recognises(data)).read(data, wanted)
    return [_checked(tape, notes) for tape in tapes]


def _gunzipped(data: bytes, notes: list[str]) -> bytes:
    body, problem = unpacked([data], "gzip")
    if not body:
        raise TapeError(f"it is compressed with gzip and cannot be unpacked: {problem or 'it holds nothing'}")
    if problem:
        notes.append(f"The file is compressed with gzip, and not whole: {problem}.")
    return b"".join(body)


def _checked(tape: Tape, notes: list[str]) -> Tape:
    """`tape` without secrets, and without times that cannot be."""
    more = list(notes)
    pieces = tape.pieces
    if len(pieces) > bounds.PIECES:
        rest = b"".join(piece.data for piece in pieces[bounds.PIECES - 1 :])
        pieces = (*pieces[: bounds.PIECES - 1], Piece(pieces[bounds.PIECES - 1].at, rest))
        more.append(f"The body came in more than {bounds.PIECES:,} pieces: the last ones were put together.")
    if not _can_be([piece.at for piece in pieces]):
        pieces = tuple(Piece(None, piece.data) for piece in pieces)
        more.append("The times of the reads run backwards, or cannot be: they are left out.")
    upstream = tape.upstream_at if _can_be(list(tape.upstream_at)) else ()
    return without_secrets(
        dataclasses.replace(
            tape,
            pieces=pieces,
            head_at=_time(tape.head_at),
            ended_at=_time(tape.ended_at),
            upstream_at=upstream,
            notes=(*tape.notes, *more),
        )
    )


def _can_be(times: list[float | None]) -> bool:
    """Whether these are times of one clock that goes forward; not known is allowed."""
    last = 0.0
    for at in times:
        if at is not None:
            if not last <= at <= bounds.SECONDS:  # false for NaN, too
                return False
            last = at
    return True


def _time(at: float | None) -> float | None:
    return at if at is not None and math.isfinite(at) and 0 <= at <= bounds.SECONDS else None


def _selected(tapes: list[Tape], select: int | str | None) -> list[Tape]:
    if select is None:
        return tapes
    if isinstance(select, int):
        if not 1 <= select <= len(tapes):
            raise TapeError(f"there is no answer number {select}: the recording holds {len(tapes)}")
        return [tapes[select - 1]]
    found = [tape for tape in tapes if tape.request is not None and select in tape.request.url]
    if not found:
        raise TapeError(f"no answer of this recording has {select[:100]!r} in its address")
    return found
