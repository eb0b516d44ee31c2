"""`motamot show`: a recording's wire, beside what a reader makes of it."""

from __future__ import annotations

import json as json_module
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from motamot.cli.console import is_terminal, say, write_result
from motamot.errors import InvalidRequest

if TYPE_CHECKING:
    from motamot.cli.show_as import ShownAs
    from motamot.tape import Tape

__all__ = ["show"]

_LINES_AT_ONCE = 500


def show(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="A HAR, what curl -i wrote, a body, or a tape; -: stdin.", show_default=False
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--as", metavar="READER", help="Read it as this one; --readers names them.")
    ] = None,
    readers: Annotated[bool, typer.Option("--readers", help="List the names that --as takes, and end.")] = False,
    width: Annotated[
        int | None, typer.Option(min=0, help="Cut lines to so many characters; 0 cuts nothing.", show_default=False)
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(metavar="N|PART", help="Of several answers: the Nth, or those with PART in the address."),
    ] = None,
    headers: Annotated[bool, typer.Option("--headers", help="Show the response's headers, too.")] = False,
    times: Annotated[bool, typer.Option(help="Show when each read came, where that is known.")] = True,
    json: Annotated[bool, typer.Option("--json", help="As JSON Lines, for programs.")] = False,
) -> None:
    """Show the wire of a recording, line by line, and beside it what the HTML standard reads there.

    With --as, what another reader makes of it: one of the world's chat pages, or of a protocol. Control characters are
    shown as pictures, secrets in headers and addresses as [removed]. A routing event is cut after its agent, unless
    --width is given; on a terminal all lines are cut to its width. What the recording cannot tell goes to stderr.
    """
    from motamot.tape import load
    from motamot.tape.bounds import FILE_BYTES

    if readers:
        from motamot.cli.show_as import reader_rows

        write_result("".join(f"{line}\n" for line in reader_rows()))
        return
    if file is None:
        raise InvalidRequest("there is no recording: motamot show FILE, or - for standard input")
    read_by = None
    if reader is not None:
        from motamot.cli.show_as import ShownAs

        read_by = ShownAs(reader)
    wanted = int(select) if select is not None and select.isascii() and select.isdigit() else select
    tapes = load(sys.stdin.buffer.read(FILE_BYTES + 1) if file == "-" else Path(file), select=wanted)
    for number, tape in enumerate(tapes, 1):
        for note in tape.notes:
            say(f"motamot: note: {note}")
        if json:
            lines = _json(tape, read_by)
        else:
            lines = _text(tape, file, read_by, width=width, headers=headers, times=times)
            if len(tapes) > 1:
                lines = _numbered(lines, number, len(tapes))
        while part := "".join(f"{line}\n" for line in islice(lines, _LINES_AT_ONCE)):
            write_result(part)


def _numbered(lines: Iterator[str], number: int, count: int) -> Iterator[str]:
    if number > 1:
        yield ""
    yield f"{next(lines)}  ({number} of {count})"
    yield from lines


def _text(
    tape: Tape, file: str, read_by: ShownAs | None, *, width: int | None, headers: bool, times: bool
) -> Iterator[str]:
    from motamot.cli import wire_forms as forms
    from motamot.tape.wire import read_as_standard

    room = _room(width)
    yield f"== {forms.title(tape, file)}"
    yield from forms.head_lines(tape, headers=headers)
    yield from forms.wire_text(tape, width=room, times=times, whole=width is not None)
    yield ""
    if read_by is not None:
        yield from read_by.text(tape, room)
        return
    heading = forms.reading_title(tape)
    yield f"== {heading}"
    if heading.startswith("The same body"):
        yield from forms.json_rows(tape, times=times)
        return
    read = read_as_standard(tape)
    yield from forms.event_rows(tape, read, times=times)
    if (instead := forms.what_instead(tape, read.events)) is not None:
        yield instead
    yield from forms.left_over(tape, read)


def _room(width: int | None) -> int | None:
    if width is not None:
        return width or None
    if not is_terminal(sys.stdout):
        return None
    return max(20, shutil.get_terminal_size().columns)


def _json(tape: Tape, read_by: ShownAs | None) -> Iterator[str]:
    """A line for the response, one for each event and ignored line, and one for the end."""
    from motamot.tape.wire import read_as_standard

    def line(told: dict[str, Any]) -> str:
        return json_module.dumps(told)  # ASCII: a terminal obeys nothing of it

    def ms(at: float | None) -> float | None:
        return None if at is None else round(at * 1000, 3)

    request = tape.request
    yield line(
        {
            "kind": "response",
            "status": tape.status,
            "headers": [list(pair) for pair in tape.headers],
            "method": None if request is None else request.method,
            "url": None if request is None else request.url,
            "reads": len(tape.pieces),
            "bytes": sum(len(piece.data) for piece in tape.pieces),
            "head_at_ms": ms(tape.head_at),
            "end": tape.end,
            "ended_at_ms": ms(tape.ended_at),
            "notes": list(tape.notes),
        }
    )
    if read_by is not None:
        yield from map(line, read_by.steps(tape))
        return
    read = read_as_standard(tape)
    for number, seen in enumerate(read.events, 1):
        event, data, last_id = seen.event
        told = {"kind": "event", "number": number, "is": seen.kind, "event": event, "id": last_id, "lines": seen.lines}
        yield line({**told, "at_ms": ms(seen.at), "data": data})
    for ignored in read.ignored:
        text = ignored.line.decode("utf-8", "backslashreplace")
        yield line({"kind": "ignored", "why": str(ignored.kind), "offset": ignored.offset, "line": text})
    residue = read.residue
    if residue or read.problem:
        yield line(
            {
                "kind": "discarded",
                "data": residue.data if residue.block else None,
                "line": residue.line.decode("utf-8", "backslashreplace") if residue.line else None,
                "problem": read.problem or None,
            }
        )
