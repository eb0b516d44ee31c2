"""What `motamot serve` says about addresses, keys and money: at its start, and where it explains itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from motamot.answer import Source, Usage
from motamot.cli.words import cost_words
from motamot.errors import SettingsError
from motamot.store.prices import PriceBook, Prices

if TYPE_CHECKING:
    import socket

    from motamot.model.sources import Choice
    from motamot.server.keys import Keys
    from motamot.settings import ServerSettings, Settings

__all__ = ["address_of", "key_lines", "money_lines", "prices_of", "worst_hour"]

_ALL = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - what can be opened where all are listened on


def address_of(server: ServerSettings, listening: socket.socket) -> str:
    """Where a browser on this machine finds it."""
    host, port = listening.getsockname()[:2]
    host = _ALL.get(host) or (f"[{host}]" if ":" in host else host)
    scheme = "https" if server.tls_cert else "http"
    return f"{scheme}://{host}:{port}/"


def key_lines(keys: Keys) -> list[str]:
    """The keys that were made here: nobody else knows them."""
    from motamot.server.keys import OPERATOR_KEY, V1_KEYS

    lines = []
    if V1_KEYS in keys.made:
        lines.append(f"key of /v1 until it ends, as {V1_KEYS} is not set: {keys.v1[0]}")
    if OPERATOR_KEY in keys.made:
        lines.append(f"key of /dashboard and /metrics until it ends, as {OPERATOR_KEY} is not set: {keys.operator}")
    return lines


def prices_of(settings: Settings, name: str, choice: Choice) -> tuple[float, float, str] | None:
    """Money for a million tokens read and written, and the currency; None where no price is known."""
    its = settings.assistants[name]
    own = Prices(**its.prices.model_dump(exclude_unset=True)) if its.prices is not None else None
    book = PriceBook({name: own} if own is not None else {})
    read = book.cost(name, choice.name, Usage(prompt_tokens=1_000_000, source=Source.ESTIMATED))
    written = book.cost(name, choice.name, Usage(completion_tokens=1_000_000, source=Source.ESTIMATED))
    return None if read is None or written is None else (read[0], written[0], read[1])


def worst_hour(server: ServerSettings, prices: tuple[float, float, str]) -> str:
    """What one address can cost in an hour, if all its tokens are of the dearer kind."""
    tokens = server.tokens_per_hour * server.address_factor
    return cost_words({prices[2]: tokens * max(prices[:2]) / 1_000_000})


def money_lines(settings: Settings, name: str, choice: Choice) -> list[str]:
    """What strangers may spend of the owner's money; nothing for a model that costs none.

    Raises: SettingsError where money is to be bounded and what this assistant costs is not known.
    """
    if choice.make().origin != "http":
        return []
    server = settings.server
    prices = prices_of(settings, name, choice)
    if prices is None and server.money_per_day is not None:
        raise SettingsError(
            f"money_per_day is set, and what {choice.name} costs is not known: it is to be under "
            f"[assistants.{name}.prices], with 0 for what costs nothing"
        )
    if server.money_per_day is not None or (prices is not None and not any(prices[:2])):
        return []
    if prices is None:
        return [f"{name}: what {choice.name} costs is not known, and no money_per_day bounds it"]
    return [f"{name}: no money_per_day is set; one address may cost up to {worst_hour(server, prices)} an hour"]
