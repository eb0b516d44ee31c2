"""`motamot record`: one request, and its response kept with the time of each read."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.console import Exit, say, write_result
from motamot.errors import InvalidRequest, MotamotError, TapeError
from motamot.tape import bounds

if TYPE_CHECKING:
    from motamot.tape import Recorder, Request, Tape

__all__ = ["record"]


def record(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address to ask, once.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The tape goes here; without it, to standard output."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="LINE", help="`Name: value`, or @FILE with such lines. Repeatable."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", metavar="DATA", help="The request's body, or @FILE; @-: stdin.")
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(
            "--message",
            "-m",
            metavar="TEXT",
            help="Ask this, in the shape of the address's protocol; for any other, use -d.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The protocol for --message, where the address does not say it."),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The model for --message, where one is named.")] = "",
    method: Annotated[
        str | None, typer.Option("--request", "-X", metavar="METHOD", help="Else GET, or POST with a body.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.001, help="Leave after so long.")
    ] = bounds.RECORD_SECONDS,
    max_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Leave after so many bytes of the body.")
    ] = bounds.RECORD_BYTES,
) -> None:
    """Ask once, and keep what comes over the wire: every read with its time, and how the response ended.

    This asks for real: a model behind the address runs, and is paid. No redirect is followed. Ctrl-C ends it and
    keeps what came. The tape is a conversation: only you can read the file. Credentials in headers and addresses are
    never written to it. A header with a key can stand in a file, -H @FILE: everybody on this machine can read a
    command line.

    Exit status: 0 recorded, whatever the response was; 2 there was none; 130 stopped by Ctrl-C, with what came kept.
    """
    from motamot.tape import Recorder

    asked = _asked(url, [pair for line in header or [] for pair in _headers(line)], data, message, protocol, model)
    recorder = Recorder(
        asked.url,
        method=method or asked.method,
        headers=asked.headers,
        body=asked.body,
        seconds=timeout,
        most_bytes=max_bytes,
    )
    if output is not None and output != "-":
        _can_hold(Path(output))
    tape, stopped = asyncio.run(_run(recorder))
    _keep(tape, output)
    say(f"motamot: {_summary(tape)}")
    for note in tape.notes:
        say(f"motamot: note: {note}")
    if stopped:
        raise typer.Exit(Exit.STOPPED)


async def _run(recorder: Recorder) -> tuple[Tape, bool]:
    """The tape, and whether Ctrl-C ended it. Raises: TapeError, KeyboardInterrupt where nothing had come by then."""
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        recorder.leave()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await recorder.run(), stopped
    except TapeError:
        if stopped:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _keep(tape: Tape, output: str | None) -> None:
    from motamot.tape import dumps, save

    if output is None or output == "-":
        write_result(dumps(tape).decode())
    else:
        save(tape, output)


def _can_hold(path: Path) -> None:
    """Before anything is asked, and paid: an answer that cannot be kept is lost. Raises: InvalidRequest."""
    if path.is_dir():
        raise InvalidRequest(f"{path} is a folder: name a file for the tape")
    if path.exists() and not path.is_file():
        return  # a device, a pipe
    if not path.parent.is_dir():
        raise InvalidRequest(f"{path} cannot be written: {path.parent} is no folder")
    if not os.access(path.parent, os.W_OK):
        raise InvalidRequest(f"{path} cannot be written: nothing can be made in {path.parent.absolute()}")


def _summary(tape: Tape) -> str:
    size = sum(len(piece.data) for piece in tape.pieces)
    kind = f", {tape.header('content-type')}" if tape.header("content-type") else ""
    first = tape.pieces[0].at if tape.pieces else None
    begun = "" if first is None else f", the first after {first * 1000:.1f} ms"
    ends = {"closed": "closed by the server", "reset": "broken off", "left": "left"}
    ended = "" if tape.ended_at is None else f" after {tape.ended_at * 1000:.1f} ms"
    reads = "1 read" if len(tape.pieces) == 1 else f"{len(tape.pieces)} reads"
    return f"HTTP {tape.status}{kind}: {size:,} bytes in {reads}{begun}; {ends.get(tape.end, tape.end)}{ended}"


# What is asked


def _headers(given: str) -> list[tuple[str, str]]:
    """Raises: InvalidRequest, MotamotError."""
    lines = _file(given[1:]).decode("utf-8", "replace").splitlines() if given.startswith("@") else [given]
    return [_header(line) for line in lines if line.strip()]


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise InvalidRequest('a header is given as -H "Name: value"; this one has no name and colon', field="header")
    return name.strip(), value.strip()


def _asked(
    url: str, headers: list[tuple[str, str]], data: str | None, message: str | None, protocol: str | None, model: str
) -> Request:
    """Raises: InvalidRequest, MotamotError."""
    from motamot.tape import Request

    if message is not None:
        from motamot.exam.asking import question

        if data is not None:
            raise InvalidRequest("--message and -d both say what is asked: choose one")
        return question(url, message=message, headers=headers, protocol=protocol, model=model)
    body = b""
    if data is not None:
        body = _file(data[1:]) if data.startswith("@") else data.encode("utf-8", "surrogateescape")
    return Request(method="GET" if data is None else "POST", url=url, headers=tuple(headers), body=body)


def _file(name: str) -> bytes:
    try:
        if name == "-":
            content = sys.stdin.buffer.read(bounds.REQUEST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(bounds.REQUEST_BYTES + 1)
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise MotamotError(f"the file {name} cannot be read: {told}") from error
    if len(content) > bounds.REQUEST_BYTES:
        raise InvalidRequest(f"the file {name} is larger than {bounds.REQUEST_BYTES:,} bytes")
    return content
