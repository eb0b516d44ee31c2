"""`motamot check`: what gets lost between a model and whoever reads it, without setting anything up."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.console import harmless_json, is_terminal, write_result
from motamot.errors import InvalidRequest, MotamotError

if TYPE_CHECKING:
    from motamot.cli.check_report import Checked, Report
    from motamot.cli.check_sources import Asking

__all__ = ["check"]

_WIDTH = (60, 120)  # cells of a line, at least and at most
_WIDTH_IN_A_PIPE = 100


def check(
    what: Annotated[
        str | None,
        typer.Argument(
            help="A file (HAR, tape, curl -i, raw stream), - for standard input, or a URL, which is asked once.",
            show_default=False,
        ),
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="What the URL is asked, in its protocol.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", metavar="BODY", help="The body to POST, or @FILE, or @- for stdin.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="LINE", help="`Name: value`, or @FILE with such lines; repeatable."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="The protocol, where it is not told by the address or content.")
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The model, for protocols that want one named.")] = "",
    whole: Annotated[
        str | None,
        typer.Option(metavar="URL|FILE", help="The same answer as JSON: asked for once, too, and compared."),
    ] = None,
    whole_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where its text stands there: choices.0.message.content.")
    ] = None,
    select: Annotated[
        str | None, typer.Option(metavar="N|URL", help="Only this answer of a HAR: its number, or a part of its URL.")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, max=3600, help="For one answer.")] = 120,
    page: Annotated[
        str | None, typer.Option(metavar="URL", help="A page with a chat: the wire against what the page shows.")
    ] = None,
    send: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Type and send this there, without a window; repeatable.")
    ] = None,
    into: Annotated[
        str | None, typer.Option(metavar="SELECTOR", help="Where to type, if there is more than one place.")
    ] = None,
    button: Annotated[str | None, typer.Option(metavar="SELECTOR", help="What sends, if Enter does not.")] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="SELECTOR", help="Where answers stand; else what grows is found.")
    ] = None,
    opens: Annotated[
        str | None, typer.Option("--open", metavar="SELECTOR", help="What opens the chat, if it must be opened.")
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="No window: for a page that asks by itself when it is opened.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Report this finding; repeatable.")] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Do not report this finding; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="As JUnit XML too, for build servers.")] = None,
) -> None:
    """Find what an answer loses on its way, in a recording, at a URL, or on a page. No set-up.

    A URL is asked once, as its own page asks it: that costs what an answer costs there, and may write a conversation.
    --whole asks once more, for the same answer as JSON, and compares the texts: for servers that answer the same twice.

    --page opens a browser of its own: chat in its window, then close it or press Enter here; or --send "…".

    Each finding shows what was seen and where, whom it harms, the rule it breaks, and what to change; what one
    recording cannot show is said to be not judged.

    Exit status: 0 nothing is lost, 1 something is (findings of level must or should), 2 it could not be checked.
    """
    from motamot.cli.check_report import Checked, filtered

    named = {"only": only or (), "ignore": ignore or ()}
    filtered((), **named)  # a name that no finding has is told before anything is asked
    if (what is None) == (page is None):
        raise InvalidRequest("say what to check: a file, - for standard input, a URL, or --page URL; one of them")
    try:
        if page is None:
            assert what is not None
            _unfit("is for --page", send=send, into=into, button=button, answer=answer, open=opens, headless=headless)
            asking = _asking(message, data, header, protocol, model, whole, whole_path, select, timeout)
            recordings = _recorded(what, asking)
        else:
            from motamot.cli.check_sources import visited
            from motamot.exam.page import Plan

            _unfit("is not for --page", message=message, data=data, header=header, whole=whole, select=select)
            if not send and (into is not None or button is not None or opens is not None):
                raise InvalidRequest("--into, --button and --open say how to send: give --send TEXT too")
            plan = Plan(
                sends=tuple(send or ()),
                into=into,
                button=button,
                answer=answer,
                opens=opens,
                window=not send and not headless,
                seconds=timeout,
            )
            recordings = visited(page, plan, protocol=protocol)
    except MotamotError as error:
        failed = Checked(name=page or what or "", problem=error.message)
        _write(filtered([failed], **named), as_json=as_json, junit=junit)
        raise
    report = filtered(recordings, **named)
    _write(report, as_json=as_json, junit=junit)
    if not as_json:
        _show(report)
    raise typer.Exit(report.exit)


def _recorded(what: str, asking: Asking) -> list[Checked]:
    from motamot.cli.check_sources import recorded

    return recorded(what, asking)


def _asking(
    message: str | None,
    data: str | None,
    header: list[str] | None,
    protocol: str | None,
    model: str,
    whole: str | None,
    whole_path: str | None,
    select: str | None,
    seconds: float,
) -> Asking:
    from motamot.cli.check_sources import Asking, headers_of

    if whole_path is not None and whole is None:
        raise InvalidRequest("--whole-path says where --whole has its text: give --whole too")
    return Asking(
        message=message,
        data=data,
        headers=headers_of(header or ()),
        protocol=protocol,
        model=model,
        whole=whole,
        whole_path=whole_path,
        select=select,
        seconds=seconds,
    )


def _unfit(why: str, **options: object) -> None:
    for name, value in options.items():
        if value:
            raise InvalidRequest(f"--{name} {why}", field=name)


def _show(report: Report) -> None:
    from motamot.cli.check_forms import people

    terminal = is_terminal(sys.stdout)
    columns = shutil.get_terminal_size().columns if terminal else _WIDTH_IN_A_PIPE
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    write_result(people(report, width=max(_WIDTH[0], min(_WIDTH[1], columns)), colours=terminal and not plain))


def _write(report: Report, *, as_json: bool, junit: Path | None) -> None:
    """The forms for programs, as far as they are asked for. Raises: MotamotError, ReaderLeft."""
    from motamot.cli import check_forms as forms

    if junit is not None:
        try:
            junit.write_bytes(forms.junit(report))
        except OSError as error:
            raise MotamotError(f"--junit {junit} cannot be written: {error.strerror or error}") from error
    if as_json:
        write_result(harmless_json(forms.json_text(report)))
