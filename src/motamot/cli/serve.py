"""`motamot serve`: a page with a chat, and every protocol, until it is told to stop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.choosing import choose, from_source, settings_of, with_key, with_options
from motamot.cli.console import is_terminal, log_to, say
from motamot.errors import SettingsError

if TYPE_CHECKING:
    from motamot.settings import Settings

__all__ = ["serve"]


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
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0: any that is free.")] = 8000,
    settings: Annotated[Path | None, typer.Option(metavar="FILE", help="The settings file; else motamot.toml.")] = None,
    database: Annotated[str | None, typer.Option(metavar="FILE", help="The database, a file or sqlite:///….")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A line of JSON for each completion goes here; -: stderr.")
    ] = None,
) -> None:
    """Serve a page with a chat. Ctrl-C stops it."""
    log_to(log)
    ours, name, its = settings_of(settings, database, None)
    its = from_source(its, upstream=upstream, gguf=gguf, local=local, recorded=recorded)
    its = with_key(its, api_key_env, api_key_file)
    ours.assistants[name] = with_options(its, model=model, system=system)
    _serve(ours, host, port, proceed=yes or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)))


def _serve(settings: Settings, host: str, port: int, *, proceed: bool) -> None:
    from motamot.server import run
    from motamot.server.site import Site
    from motamot.settings import assistant_from
    from motamot.settings import database as database_of

    try:
        listening = run.listen(host, port)
    except OSError as error:
        raise SettingsError(f"{host}:{port} cannot be listened on: {error.strerror or error}") from None
    assistants = []
    for name, its in settings.assistants.items():
        choice = choose(its, yes=proceed)
        assistants.append(assistant_from(settings, name, choice=choice))
    address = listening.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    site = Site(assistants, store=database_of(settings))
    run.serve(site, listening, ready=lambda: say(f"http://{shown}:{address[1]}/"))
