"""What a server may be told beside its assistants."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The operator's choices.

    hosts:        names this server answers to (`chat.example`, without a port); empty: any, for an app that is
                  mounted in another, whose own business it is.
    api_keys:     what callers of /v1 must hold. operator_key: what /metrics and the dashboard want; "" shuts them.
    requests_per_hour, tokens_per_hour: of one visitor; an address may have `address_factor` times as much.
    money_per_day: of one assistant, in its prices' currency; None: no bound.
    """

    hosts: frozenset[str] = frozenset()
    api_keys: tuple[str, ...] = ()
    operator_key: str = ""
    requests_per_hour: int = 60
    tokens_per_hour: int = 200_000
    address_factor: int = 5
    money_per_day: float | None = None
