"""`motamot serve`: a page with a chat, and every protocol, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import getpass
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from motamot.cli.choosing import choose, from_source, option_of, settings_of, with_key, with_options
from motamot.cli.console import Exit, is_terminal, log_to, say, told, write_result
from motamot.errors import MotamotError, SettingsError

if TYPE_CHECKING:
    import socket

    from motamot.assistant import Assistant
    from motamot.server.run import Certificate
    from motamot.settings import ServerSettings, Settings

__all__ = ["serve"]

_TAKEN = (errno.EADDRINUSE, errno.EACCES)


def serve(
    upstream: Annotated[str | None, typer.Option(metavar="URL", help="Address of an OpenAI-compatible API.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model's name there.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the key for it.")
    ] = None,
    api_key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="File that holds the key for it.")] = None,
    gguf: Annotated[str | None, typer.Option(metavar="FILE", help="A model file on this machine answers.")] = None,
    local: Annotated[bool, typer.Option("--local", help="The embedded model answers, on this machine.")] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="The settings' recorded samples answer.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Yes to a download that this needs.")] = False,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="The system prompt.")] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on; else 127.0.0.1, this machine alone.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; else 8000. 0: a free one.")
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option(metavar="FILE", help="Certificate with its chain (PEM), to serve https.")
    ] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="Its key (PEM), where it is elsewhere.")] = None,
    settings: Annotated[Path | None, typer.Option(metavar="FILE", help="The settings file; else motamot.toml.")] = None,
    database: Annotated[str | None, typer.Option(metavar="FILE", help="The database, a file or sqlite:///….")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A line of JSON for each completion goes here; -: stderr.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Explain the settings, and do not serve.")] = False,
    hash_key: Annotated[
        bool, typer.Option("--hash-key", help="Read an operator's key, print its hash, and do not serve.")
    ] = False,
) -> None:
    """Serve a page with a chat, and the API behind it. Ctrl-C or SIGTERM ends it, and books what is under way.

    The options about the model are for the assistant called `default`, or the first one; `motamot init` writes a
    settings file for more. Without a terminal nothing is asked: what has to be downloaded is.

    Exit status: 0 it was told to end, 1 what ran could not be booked at the end, 2 it could not be served.
    """
    if hash_key:
        write_result(f"{_hash_of_key()}\n")
        return
    ours, name, its = settings_of(settings, database, None, first=True)
    its = from_source(its, upstream=upstream, gguf=gguf, local=local, recorded=recorded)
    its = with_key(its, api_key_env, api_key_file)
    # The first is the one that answers where none is named.
    ours.assistants = {name: with_options(its, model=model, system=system)} | {
        other: kept for other, kept in ours.assistants.items() if other != name
    }
    ours.server = _with(ours.server, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)
    options = {name: option_of(upstream=upstream, gguf=gguf, local=local, recorded=recorded)}
    log_to(log or (Path(ours.server.log) if ours.server.log else None))
    if check:
        from motamot.cli.serve_check import explanation

        write_result(explanation(ours, settings, options))
        return
    _serve(ours, options, proceed=yes or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)))


def _hash_of_key() -> str:
    """The hash of a key that is typed, unseen, or comes through a pipe. Raises: SettingsError."""
    from motamot.server.keys import checked
    from motamot.server.operator import hashed

    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        key = getpass.getpass("the operator's key: ", stream=sys.stderr)
        if getpass.getpass("once more: ", stream=sys.stderr) != key:
            raise SettingsError("the two are not the same")
    else:
        key = sys.stdin.readline()
    return hashed(checked(key.strip(), "what was typed"))


def _serve(settings: Settings, sources: dict[str, str | None], *, proceed: bool) -> None:
    """sources: for an assistant, the option that names its source."""
    from motamot.cli.serve_words import address_of, key_lines, money_lines
    from motamot.server import run
    from motamot.server.configured import is_loopback, limits_of, options_of
    from motamot.server.keys import keys_of
    from motamot.server.site import Site
    from motamot.settings import assistant_from
    from motamot.settings import database as database_of

    server = settings.server
    certificate = certificate_of(server)
    listening = listen(server, limits_of(settings).stall_seconds)
    try:
        bound = listening.getsockname()[0]
        keys = keys_of(server, loopback=is_loopback(bound))
        assistants = []
        for name, its in settings.assistants.items():
            of = name if len(settings.assistants) > 1 else ""
            choice = choose(its, yes=proceed, option=sources.get(name), of=of)
            assistants.append(assistant_from(settings, name, choice=choice))
            for line in money_lines(settings, name, choice):
                say(line)
        site = Site(
            assistants,
            store=database_of(settings),
            options=options_of(server, keys, bound),
            limits=limits_of(settings),
        )
        lines = [*key_lines(keys), f"motamot serves {address_of(server, listening)}"]
        run.serve(
            site,
            listening,
            proxies=server.proxies,
            certificate=certificate,
            ready=_Ready(assistants, lines).tell,
        )
    finally:
        listening.close()
    if site.unfinished is not None:
        for line in told(site.unfinished, "what is open in the ledger is closed by the next start"):
            say(line)
        raise typer.Exit(Exit.FAILED)
    say("motamot: ended")


@dataclass(slots=True)
class _Ready:
    """What is done once it listens."""

    assistants: list[Assistant]
    lines: list[str]
    warming: list[asyncio.Task[None]] | None = None

    def tell(self) -> None:
        for line in self.lines:
            say(line)
        loop = asyncio.get_running_loop()
        self.warming = [loop.create_task(_warm(assistant)) for assistant in self.assistants]


async def _warm(assistant: Assistant) -> None:
    """Have an embedded model loaded when the first question comes."""
    try:
        await assistant.warm(say)
    except MotamotError as error:
        for line in told(error):
            say(line)


def listen(server: ServerSettings, stall_seconds: float) -> socket.socket:
    """The listening socket. Raises: SettingsError with a sentence where it cannot be had."""
    from motamot.server import run

    host = server.host.removeprefix("[").removesuffix("]")
    try:
        return run.listen(host, server.port, stall_seconds=stall_seconds)
    except OSError as error:
        by_make = " (make serve PORT=8001)" if "MAKELEVEL" in os.environ else ""
        way_out = f"another one: --port{by_make}" if error.errno in _TAKEN else "another address: --host"
        raise SettingsError(
            f"{server.host} port {server.port} cannot be listened on: {error.strerror or error}; {way_out}"
        ) from None


def certificate_of(server: ServerSettings) -> Certificate | None:
    """The certificate, checked. Raises: SettingsError."""
    if server.tls_cert is None:
        return None
    from motamot.server.run import Certificate

    certificate = Certificate(Path(server.tls_cert), Path(server.tls_key) if server.tls_key else None)
    certificate.check()
    return certificate


def _with(server: ServerSettings, **options: Any) -> ServerSettings:
    """The settings with the options that were given over them. Raises: SettingsError naming the option."""
    given = {key: value for key, value in options.items() if value is not None}
    if not given:
        return server
    from pydantic import ValidationError

    kept = server.model_dump(exclude_unset=True)
    if "tls_cert" in given:
        kept.pop("tls_key", None)  # it is the other certificate's
    try:
        return type(server).model_validate(kept | given, strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        context = problem.get("ctx", {})
        key = str(context.get("key") or problem["loc"][-1])
        words = context.get("words") or context.get("error") or problem["msg"]
        raise SettingsError(f"--{key.replace('_', '-')}: {words}") from None
