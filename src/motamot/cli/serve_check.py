"""`motamot serve --check`: what would be served, from where, to whom, and what strangers could spend."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from motamot.cli.console import harmless
from motamot.cli.serve_words import money_lines, prices_of, worst_hour
from motamot.cli.words import cost_words, mark_words
from motamot.errors import ModelUnavailable, SettingsError, StoreError

if TYPE_CHECKING:
    from motamot.model.sources import Choice
    from motamot.settings import AssistantSettings, ServerSettings, Settings

__all__ = ["explanation"]

_WIDTH = 12


class _Lines:
    """A word on the left, what there is to say of it on the right."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.warnings: list[str] = []

    def add(self, name: str, *told: str) -> None:
        for number, line in enumerate(told):
            self._lines.append(f"{name if number == 0 else '':<{_WIDTH}}{line}".rstrip())

    def text(self) -> str:
        if self.warnings:
            self._lines.append("")
            self.add("Warnings", *self.warnings)
        return harmless("\n".join(self._lines)) + "\n"


def explanation(settings: Settings, file: Path | None, sources: Mapping[str, str | None]) -> str:
    """The settings, explained; nothing is started, fetched or made for it.

    sources: for an assistant, the option that names its source of answers.

    Raises: MotamotError for settings with which nothing could be served, as `motamot serve` would.
    """
    from motamot.settings import settings_file

    lines = _Lines()
    found = settings_file(file)
    lines.add("Settings", str(found) if found else "no file: everything has its default, or comes from the environment")
    _listening(lines, settings)
    lines.add("Database", _database(settings))
    costly = False
    for name, its in settings.assistants.items():
        lines.add("", "")
        costly |= _assistant(lines, settings, name, its, sources.get(name))
    lines.add("", "")
    _strangers(lines, settings)
    if costly and settings.server.money_per_day is None:
        lines.warnings.append("nothing bounds the money of a day: addresses are cheap; set money_per_day")
    return lines.text()


def _listening(lines: _Lines, settings: Settings) -> None:
    from motamot.cli.serve import certificate_of, listen
    from motamot.server.configured import is_loopback, options_of
    from motamot.server.keys import keys_of

    server = settings.server
    certificate_of(server)
    address = _address(server)
    loopback = is_loopback(address)
    try:
        listen(server, 60).close()
    except SettingsError as error:
        lines.warnings.append(f"{error.message} (is it running already?)")
    scheme = "https" if server.tls_cert else "http"
    shown = f"[{address}]" if ":" in address else address
    lines.add("Address", f"{scheme}://{shown}:{server.port}/, " + ("this machine alone" if loopback else "any machine"))
    keys = keys_of(server, loopback=loopback)
    options = options_of(server, keys, address)
    names = ", ".join(sorted(options.hosts)) or "any name: a page of another site may reach it by a name of its own"
    lines.add("Hosts", names + (", and any address" if options.any_address and options.hosts else ""))
    lines.add("Proxies", ", ".join(server.proxies) or "none: what X-Forwarded-For says is not believed")
    made = f", made at each start: {' and '.join(keys.made)} are not set" if keys.made else ""
    lines.add("Keys", f"{len(keys.v1)} for /v1, one for /dashboard and /metrics{made}")
    if not loopback and not server.tls_cert and not server.proxies:
        lines.warnings.append("other machines reach it without TLS: set tls_cert, or put a proxy in front and list it")
    if not loopback and not server.hosts:
        lines.warnings.append("no `hosts` are set: browsers reach it by its address alone, not by a name")


def _address(server: ServerSettings) -> str:
    """The address that would be listened on. Raises: SettingsError for a name that has none."""
    import socket

    host = server.host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return str(socket.getaddrinfo(host, server.port, family, socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingsError(f"{server.host} is no address of this machine: {error.strerror or error}") from None


def _database(settings: Settings) -> str:
    from motamot.settings import database

    told = database(settings)
    path = Path(told.removeprefix("sqlite:///"))
    if told == ":memory:":
        return "in memory: conversations and the ledger are gone when it ends"
    if not path.exists():
        return f"{path} (is made at the start)"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"the database {path} cannot be read: {error}") from None
    if not os.access(path, os.W_OK):
        raise StoreError(f"the database {path} cannot be written")
    return str(path)


def _assistant(lines: _Lines, settings: Settings, name: str, its: AssistantSettings, option: str | None) -> bool:
    """Returns: whether its answers may cost money."""
    from motamot.settings import limits

    lines.add("Assistant", name)
    bounds = limits(its)
    choice = _choice(lines, its, option)
    costly = False
    if choice is not None:
        lines.add("  answers", choice.why, *(mark_words(mark) for mark in choice.labels))
        bounds = choice.limits
        costly = _prices(lines, settings, name, choice)
    if its.knowledge is not None:
        from motamot.knowledge.file import count

        articles, passages = count(Path(its.knowledge))  # raises where it is not there, as the start would
        lines.add("  knows", f"{its.knowledge}: {articles:,} articles in {passages:,} passages")
    lines.add("  tokens", f"{bounds.max_tokens:,} an answer, {bounds.history_tokens:,} of earlier ones, at most")
    lines.add("  pages", ", ".join(("its own", *its.origins)))
    if its.fallback:
        lines.add("  else", "its recorded samples, so marked, where the model cannot be asked")
    return costly


def _choice(lines: _Lines, its: AssistantSettings, option: str | None) -> Choice | None:
    from motamot.model.sources import resolve
    from motamot.settings import wanted

    offers: list[str] = []

    def no(question: str) -> bool:
        offers.append(question.removesuffix(" Fetch it?"))
        return False  # nothing is fetched for an explanation

    try:
        return resolve(replace(wanted(its), said_by=option), ask=no, say=lines.warnings.append)
    except ModelUnavailable as problem:
        if problem.reason != "refused":
            raise
        told = problem.message.split("\n")[1:]  # the first line is about the no
        asks = "motamot serve asks before it fetches this; without a terminal, or with --yes, it fetches it at once."
        lines.add("  answers", *offers, asks, *told)
        return None


def _prices(lines: _Lines, settings: Settings, name: str, choice: Choice) -> bool:
    money_lines(settings, name, choice)  # raises where money is to be bounded and cannot be counted
    prices = prices_of(settings, name, choice)
    if choice.make().origin != "http" or (prices is not None and not any(prices[:2])):
        lines.add("  costs", "nothing")
        return False
    if prices is None:
        lines.add("  costs", "what is not known: see `prices` in docs/settings.md")
        return True
    read, written, currency = prices
    lines.add(
        "  costs",
        f"{cost_words({currency: read})} a million tokens read, {cost_words({currency: written})} written; "
        f"one address up to {worst_hour(settings.server, prices)} an hour",
    )
    return True


def _strangers(lines: _Lines, settings: Settings) -> None:
    from motamot.server.configured import limits_of

    server, bounds = settings.server, limits_of(settings)
    factor = server.address_factor
    lines.add(
        "Strangers",
        f"{server.requests_per_hour:,} questions and {server.tokens_per_hour:,} tokens an hour a visitor, "
        f"{factor} times that an address",
        f"{bounds.exchanges_per_visitor} answers at a time a visitor, {factor} times that an address, "
        f"{bounds.exchanges_running:,} in all",
        "money: no bound (money_per_day)"
        if server.money_per_day is None
        else f"money: {server.money_per_day:g} a day for each assistant",
    )
