"""`motamot ask`: one question, its answer word for word as it comes, and what it cost."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.choosing import choose, from_source, option_of, settings_of, with_key, with_options
from motamot.cli.console import Exit, is_terminal, log_to, say, write_result
from motamot.errors import InvalidRequest, MotamotError

if TYPE_CHECKING:
    from collections.abc import Callable

    from motamot.cli.answer_forms import Form
    from motamot.model.sources import Choice
    from motamot.settings import AssistantSettings, Settings

__all__ = ["ask"]


def ask(
    question: Annotated[
        str | None,
        typer.Argument(
            help="The question; without one it is asked for, or read from standard input.", show_default=False
        ),
    ] = None,
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
    assistant: Annotated[str | None, typer.Option(metavar="NAME", help="An assistant of the settings file.")] = None,
    settings: Annotated[Path | None, typer.Option(metavar="FILE", help="The settings file; else motamot.toml.")] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", metavar="ID", help="Go on with this conversation; `last`: the latest."),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Tokens an answer may have.")] = None,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="For the whole answer.")] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="The wire that --raw shows; it implies --raw.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Show the wire, line by line: | data: …")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Show the events of the answer as JSON Lines.")] = False,
    database: Annotated[str | None, typer.Option(metavar="FILE", help="The database, a file or sqlite:///….")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A line of JSON for each completion goes here; -: stderr.")
    ] = None,
) -> None:
    """Ask, and read the answer word by word, as the model writes it. Ctrl-C stops the model.

    The text goes to stdout, exact to the byte in a pipe; all else to stderr: first what answers and why, last how it
    ended, its tokens and the conversation's id. Options go before the environment, that before the settings file.

    A key comes from --api-key-env, --api-key-file, the settings, MOTAMOT_API_KEY, or, for its own server,
    OPENAI_API_KEY; never from the command line, which everybody on this machine can read.

    Exit status: 0 the answer is complete, 1 it failed, 2 it could not be asked, 3 it was cut by the token limit or
    filtered, 130 stopped by Ctrl-C. With --json, {"error": …} on stdout says why it could not be asked.
    """
    log_to(log)
    if raw and as_json:
        raise InvalidRequest("--raw and --json are two ways to show the same answer: choose one")
    try:
        form = _form("motamot" if raw and protocol is None else protocol, as_json=as_json)
        ours, name, its = settings_of(settings, database, assistant)
        its = from_source(its, upstream=upstream, gguf=gguf, local=local, recorded=recorded)
        its = with_key(its, api_key_env, api_key_file)
        its = with_options(its, model=model, system=system, max_tokens=max_tokens, answer_timeout=timeout)
        ours.assistants[name] = its
        # What is wrong is told before a model is looked for; only who types is told first what will answer.
        typed = question in (None, "-") and is_terminal(sys.stdin)
        message = "" if typed else _message(question, its)
        conversation = _conversation(conversation, ours, name)
        option = option_of(upstream=upstream, gguf=gguf, local=local, recorded=recorded)
        choice = choose(its, yes=yes, option=option)
        if typed:
            message = _message(None, its)
        status = asyncio.run(_put(ours, name, choice, message, conversation, form))
    except MotamotError as error:
        if as_json:
            write_result(json.dumps({"error": {"code": error.code, "message": error.message}}) + "\n")
        raise
    raise typer.Exit(status)


async def _put(
    settings: Settings,
    name: str,
    choice: Choice,
    message: str,
    conversation: str | None,
    form: Callable[[bool, str], Form],
) -> Exit:
    from motamot.cli.asking import Question
    from motamot.model.local import LocalModel
    from motamot.settings import assistant_from

    model = choice.make()
    try:
        if isinstance(model, LocalModel):
            await model.open(say)
        assistant = assistant_from(settings, name, choice=choice, model=model)
        question = Question(assistant, message, conversation=conversation, form=form, marks=choice.labels)
        return await question.put()
    finally:
        await model.close()


def _form(protocol: str | None, *, as_json: bool) -> Callable[[bool, str], Form]:
    """How the answer is shown: made once it is known whether stdout is a terminal, and the exchange's id."""
    from time import time

    from motamot.cli.answer_forms import JsonForm, RawForm, TextForm

    if as_json:
        return lambda terminal, _: JsonForm(terminal=terminal)
    if protocol is None:
        return lambda terminal, _: TextForm(terminal=terminal)
    from motamot.protocols import PROTOCOLS

    if protocol not in PROTOCOLS:
        raise InvalidRequest(f"there is no protocol {protocol!r}: there are {', '.join(PROTOCOLS)}")
    wire = PROTOCOLS[protocol]
    return lambda terminal, exchange: RawForm(wire.writer(exchange=exchange, now=int(time())), terminal=terminal)


# What is asked


def _conversation(named: str | None, settings: Settings, assistant: str) -> str | None:
    """The id of the conversation that goes on. Raises: NotFound, StoreError."""
    if named is None:
        return None
    from motamot.cli.asking import VISITOR
    from motamot.cli.ledger_rows import conversation_of
    from motamot.settings import database

    return conversation_of(database(settings), assistant, VISITOR, named)


def _message(argument: str | None, its: AssistantSettings) -> str:
    """The question: the argument, or what is typed, or all of standard input without its last line end.

    Raises: InvalidRequest where there is none, or one that is too long or not UTF-8.
    """
    from motamot.settings import limits

    most = limits(its).message_bytes
    if argument is not None and argument != "-":
        message = argument
    elif is_terminal(sys.stdin):
        typer.echo("Question: ", nl=False, err=True)
        message = sys.stdin.readline()
    elif sys.stdin is None:
        message = ""
    else:
        raw = sys.stdin.buffer.read(most + 3)
        if len(raw) > most + 2:
            raise InvalidRequest(f"standard input holds more than {most} bytes, the most that a question may have")
        try:
            message = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"standard input is not UTF-8: byte {error.start} cannot be read") from None
    message = message.removesuffix("\n").removesuffix("\r")
    if not message.strip():
        raise InvalidRequest('there is no question: motamot ask "…", or give it on standard input')
    return message
