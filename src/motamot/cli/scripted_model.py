"""`motamot scripted-model`: a model server that plays scripts, for anybody who tests a chatbot."""

from __future__ import annotations

import asyncio
import importlib.resources
import os
import signal
import socket
import sys
from pathlib import Path
from typing import IO, Annotated

import typer

from motamot.errors import ScriptError
from motamot.scripted import ScriptedModel, Scripts, load_scripts
from motamot.scripted.records import JsonLines

__all__ = ["scripted_model"]


def scripted_model(
    scripts: Annotated[
        Path | None, typer.Argument(metavar="SCRIPTS", help="A YAML or JSON file with scripts.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append the record (JSON Lines) to this file. Without it: standard output.",
            show_default=False,
        ),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Refuse requests without this key.", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the scripts and end.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a commented example of scripts and end.")] = False,
) -> None:
    """Play a model from a script: exact pieces at exact times, faults included, and a record of who asked and left.

    Speaks OpenAI's chat completions (streamed and whole), models and embeddings, under /v1. Ctrl-C ends it.
    """
    if example:
        sys.stdout.write((importlib.resources.files("motamot.scripted") / "example.yaml").read_text("utf-8"))
        return
    if scripts is None:
        raise _stop("expected a file with scripts; `motamot scripted-model --example` prints one to begin with")
    try:
        loaded = load_scripts(scripts)
    except ScriptError as error:
        raise _stop(error.message) from None
    if check:
        typer.echo(f"{scripts}: {_counted(loaded)}, no faults")
        return
    problem = asyncio.run(_serve(loaded, host, port, record, api_key))
    if problem is not None:
        raise _stop(problem)


def _stop(sentence: str) -> typer.Exit:
    """The end with a sentence for the user: exit status 2, as for everything that could not run."""
    typer.echo(f"motamot scripted-model: {sentence}", err=True)
    return typer.Exit(2)


def _counted(scripts: Scripts) -> str:
    if scripts.requests is not None:
        count = len(scripts.requests)
        return f"answers for {count} request{'' if count == 1 else 's'}"
    count = len(scripts.scripts)
    return f"{count} script{'' if count == 1 else 's'}"


async def _serve(scripts: Scripts, host: str, port: int, record: Path | None, api_key: str | None) -> str | None:
    """Serve until a signal ends it, or the record cannot be written. Returns a sentence if something went wrong."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        file = _opened(record)
    except OSError as error:
        return f"cannot write the record to {record}: {error.strerror or error}"
    lines = JsonLines(file, ended.set)
    server = ScriptedModel(scripts, host=host, port=port, api_key=api_key, record=lines, keep_requests=False)
    try:
        await server.start()
    except OSError as error:
        file.close()
        return f"cannot listen on {host} port {port}: {_reason(error)}"
    typer.echo(f"The scripted model answers at {server.url} ({_counted(scripts)}; Ctrl-C ends it)", err=True)
    typer.echo(f"OPENAI_BASE_URL={server.url}", err=True)
    await ended.wait()
    await server.close()
    lines.flush()
    file.close()
    if lines.error is None:
        return None
    where = record or "standard output"
    return f"ended, because the record cannot be written to {where}: {lines.error.strerror or lines.error}"


def _opened(record: Path | None) -> IO[bytes]:
    """The record's file, or standard output, without a buffer."""
    if record is None:
        return os.fdopen(sys.stdout.fileno(), "wb", buffering=0, closefd=False)
    return record.open("ab", buffering=0)


def _reason(error: OSError) -> str:
    """The system's words: asyncio repeats the address in its own. A resolver's numbers are none of the system's."""
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)
