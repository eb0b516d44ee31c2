"""`motamot ledger`: what was asked, what it cost, and how it ended."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from motamot.cli.console import say, write_result
from motamot.errors import InvalidRequest, NotFound, StoreError

if TYPE_CHECKING:
    from motamot.cli.ledger_rows import Entry

__all__ = ["ledger"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def ledger(
    exchange: Annotated[
        str | None, typer.Option("--exchange", metavar="ID", help="Show this exchange, completion by completion.")
    ] = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only what is under way now.")] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what began since then: 2026-11-29, 2026-11-29T18:00, 90m, 2h, 7d."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many exchanges, the newest.")] = 20,
    assistant: Annotated[str | None, typer.Option(metavar="NAME", help="Only this assistant's.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Show questions and answers, too.")] = False,
    csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="As CSV, for a spreadsheet: text that it would take for a formula gets an apostrophe."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON Lines, for programs.")] = False,
    database: Annotated[str | None, typer.Option(metavar="FILE", help="The database, a file or sqlite:///….")] = None,
    settings: Annotated[Path | None, typer.Option(metavar="FILE", help="The settings file; else motamot.toml.")] = None,
) -> None:
    """List what was asked, newest first: completions, tokens and where their count comes from, cost, outcome.

    Nothing of a conversation is shown without --text. Times are this machine's; in CSV and JSON they are UTC.
    """
    if csv and json:
        raise InvalidRequest("--csv and --json are two forms of the same: choose one")
    begun_since = _moment(since) if since is not None else None
    entries = _entries(
        _database(database, settings),
        exchange=exchange,
        open_only=open_only,
        since=begun_since,
        limit=limit,
        assistant=assistant,
        text=text,
    )
    from motamot.cli import ledger_forms as forms

    if exchange is not None and not entries:
        raise NotFound(f"there is no exchange {exchange!r} in this ledger")
    if exchange is not None:
        form = forms.completions_csv if csv else forms.completions_json if json else forms.exchange_text
        write_result(form(entries[0]))
    else:
        listing = forms.entries_csv if csv else forms.entries_json if json else forms.entries_text
        write_result(listing(entries))
        if not entries and not csv and not json:
            say("motamot: nothing in this ledger fits")


def _database(named: str | None, settings: Path | None) -> str:
    from motamot.settings import database, load

    return named or database(load(settings))


def _entries(
    where: str,
    *,
    exchange: str | None,
    open_only: bool,
    since: float | None,
    limit: int,
    assistant: str | None,
    text: bool,
) -> list[Entry]:
    from motamot.cli.ledger_rows import is_current, read
    from motamot.store.database import Database
    from motamot.store.store import Store

    database = Database(where)
    if not database.path.is_file():
        raise StoreError(f"there is no ledger at {database.path} yet: nothing was asked, or --database names another")
    try:
        # Brings an older file up to date, and closes what a killed process left open.
        Store.open(where).close_sync()
    except StoreError as error:
        if not is_current(database):
            raise
        say(f"motamot: note: {error.message}; what a killed process left open is shown as open")
    return read(
        database, exchange=exchange, open_only=open_only, since=since, limit=limit, assistant=assistant, text=text
    )


def _moment(text: str) -> float:
    """Seconds since the epoch of `7d` (ago) or of an ISO date, local where it names no zone.

    Raises: InvalidRequest.
    """
    now = datetime.now(UTC)
    try:
        if found := re.fullmatch(r"(\d{1,6})([smhdw])", text.strip()):
            return (now - timedelta(**{_UNITS[found[2]]: int(found[1])})).timestamp()
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(f"--since {text!r} is no time: say 2026-11-29, 2026-11-29T18:00, 90m, 2h or 7d") from None
