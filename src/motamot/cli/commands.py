"""The commands, their list, and what all of them do with a failure."""

from __future__ import annotations

import functools
import importlib
import os
import signal
from collections.abc import Callable
from typing import Annotated, Any

import typer

from motamot import __version__
from motamot.cli.console import Exit, ReaderLeft, harmless, say, told
from motamot.errors import MotamotError

__all__ = ["application"]

_COMMANDS = {
    "serve": ("motamot.cli.serve", "serve", "Serve a page with a chat."),
    "init": ("motamot.cli.init", "init", "Write a settings file, explained."),
    "ask": ("motamot.cli.ask", "ask", "Ask, and read the answer as it comes."),
    "learn": ("motamot.cli.learn", "learn", "Read your pages, to answer from them."),
    "ledger": ("motamot.cli.ledger", "ledger", "List what was asked, and what it cost."),
    "exam": ("motamot.cli.exam", "exam", "Hold both ends of a chatbot, and tell what it does to an answer."),
    "meter": ("motamot.cli.meter", "meter", "Stand before a model and count its completions."),
    "record": ("motamot.cli.record", "record", "Keep a stream as it comes over the wire, with its times."),
    "show": ("motamot.cli.show", "show", "Show a recording's wire beside what a reader makes of it."),
    "replay": ("motamot.cli.replay", "replay", "Serve a recording again, with its timing or faster."),
    "matrix": ("motamot.cli.matrix", "matrix", "Put each writer of streams before each reader."),
    "check": ("motamot.cli.check", "check", "Find what an answer loses on its way."),
    "scripted-model": ("motamot.cli.scripted_model", "scripted_model", "Play a model from a script, for tests."),
}
"""Command: its module, its function, and a few words for the list of commands."""


def application(arguments: list[str]) -> typer.Typer:
    """The commands; only the one that `arguments` name is loaded, the others are there for the help."""
    app = typer.Typer(
        name="motamot",
        help="Put a model's answer before a reader word for word, and find what any chatbot loses on the way.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (module, function, summary) in _COMMANDS.items():
        if name == named:
            app.command(name)(_guarded(getattr(importlib.import_module(module), function)))
        else:
            app.command(name, help=summary)(_not_loaded)
    return app


def _not_loaded() -> None:
    """Stands for a command in the list of commands."""


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"motamot {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """`command`, whose every failure is a sentence and an exit status; a traceback only where MOTAMOT_DEBUG asks."""

    @functools.wraps(command)
    def run(*given: Any, **named: Any) -> None:
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on there is something to end
            command(*given, **named)
        except (typer.Exit, typer.BadParameter):
            raise
        except MotamotError as error:
            for line in told(error):
                say(line)
            raise typer.Exit(Exit.NOT_STARTED) from None
        except ReaderLeft:
            raise typer.Exit(Exit.READER_LEFT) from None
        except (KeyboardInterrupt, typer.Abort):
            say("motamot: stopped")
            raise typer.Exit(Exit.STOPPED) from None
        except Exception as error:
            if os.environ.get("MOTAMOT_DEBUG"):
                raise
            say(f"motamot: a fault of its own, {type(error).__name__}: {harmless(str(error))[:500]}")
            say("         MOTAMOT_DEBUG=1 shows where; please report it")
            raise typer.Exit(Exit.INTERNAL) from None

    return run
