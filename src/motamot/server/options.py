"""What a server may be told beside its assistants."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The operator's choices.

    hosts:        names this server answers to (`chat.example`, `[::1]`; small letters, without a port); empty: any,
                  for an app that is mounted in another, whose own business it is.
    any_address:  beside those names, any address as such (`192.0.2.7`): no page can have one for its own name, so
                  nothing can be rebound to it.
    v1_keys:      what callers of /v1 must hold; none: /v1 is shut.
    operator_key: what /dashboard and /metrics want, as it is or hashed (`motamot serve --hash-key`); "" shuts them.
    requests_per_hour, tokens_per_hour: of one visitor; an address may have `address_factor` times as much, as a
                  family or an office shares one.
    money_per_day: of one assistant, in its prices' currency, from midnight UTC; None: no bound.
    ga_whole_pieces: under /api/chatbot each piece is one event, as Guitar Alchemist's host writes it and its page reads
                  it. Without, lines and cuts are put where ga-client loses the least.
    """

    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    v1_keys: tuple[str, ...] = ()
    operator_key: str = ""
    requests_per_hour: int = 60
    tokens_per_hour: int = 200_000
    address_factor: int = 5
    money_per_day: float | None = None
    ga_whole_pieces: bool = False
