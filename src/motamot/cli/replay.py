"""`motamot replay`: a recording served again, with its timing or faster."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.console import harmless, say
from motamot.errors import InvalidRequest

if TYPE_CHECKING:
    from motamot.tape import Tape

__all__ = ["replay"]

_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^\s/?#]+")


def replay(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A tape, a HAR, what curl -i wrote, or a body; -: stdin.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    speed: Annotated[float, typer.Option(min=0.001, max=1e6, help="So many times as fast as it was recorded.")] = 1.0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="As fast as it goes.")] = False,
    cors: Annotated[
        str | None, typer.Option(metavar="ORIGIN", help="Pages of this origin may read it; *: those of any.")
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(metavar="N|PART", help="Of several answers: the Nth, or the one with PART in its address."),
    ] = None,
) -> None:
    """Serve a recording again, to every request whatever its method and path: status, headers, pieces, times and end.

    One that broke off breaks off again. A recording without times (a HAR, curl's) comes at once. Ctrl-C ends it.
    """
    from motamot.tape import load
    from motamot.tape.bounds import FILE_BYTES

    if cors is not None and not _ORIGIN.fullmatch(cors):
        raise InvalidRequest("--cors wants an origin as browsers send it (https://chat.example.com), or *")
    wanted = int(select) if select is not None and select.isascii() and select.isdigit() else select
    tapes = load(sys.stdin.buffer.read(FILE_BYTES + 1) if file == "-" else Path(file), select=wanted)
    if len(tapes) > 1:
        raise InvalidRequest(
            f"{file} holds {len(tapes)} answers, and one is served: choose it with --select\n{_list(tapes)}"
        )
    for note in tapes[0].notes:
        say(f"motamot: note: {note}")
    asyncio.run(_serve(tapes[0], host, port, None if no_wait else speed, cors))


def _list(tapes: list[Tape]) -> str:
    named = [
        f"{number}  {tape.request.method} {tape.request.url[:150]}" if tape.request is not None else f"{number}"
        for number, tape in enumerate(tapes[:20], 1)
    ]
    return "\n".join([*named, "…"] if len(tapes) > 20 else named)


async def _serve(tape: Tape, host: str, port: int, speed: float | None, cors: str | None) -> None:
    from motamot.tape import Replay

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)

    def asked(method: str, path: str) -> None:
        say(f"{method} {harmless(path)[:200]}")

    async with Replay(tape, host, port, speed=speed, cors=cors, asked=asked) as server:
        timed = f"{tape.ended_at or tape.pieces[-1].at:.1f} s" if tape.timed else "no times"
        say(f"motamot: replaying at {server.url} ({len(tape.body):,} bytes, {timed}; Ctrl-C ends it)")
        await ended.wait()
    say(f"motamot: {'1 request' if server.requests == 1 else f'{server.requests} requests'} answered")
