"""What tokens cost: from the table of `genai-prices`, which others maintain, or as an assistant's settings say.

Nothing is fetched at run time. An unknown model has no price: None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from motamot.answer import Source, Usage

__all__ = ["PriceBook", "Prices", "price"]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Money per million tokens. cached: of prompt tokens the provider had cached; None: as other input."""

    input: float
    output: float
    cached: float | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        for amount in (self.input, self.output, self.cached or 0.0):
            if not 0 <= amount < float("inf"):
                raise ValueError(f"a price per million tokens is a number from 0 up, not {amount!r}")

    def cost(self, usage: Usage) -> float | None:
        """What this usage costs; None where it is unknown."""
        if usage.source is Source.UNKNOWN:
            return None
        cached = max(0, min(usage.cached_tokens, usage.prompt_tokens))
        fresh = max(0, usage.prompt_tokens) - cached
        rate = self.input if self.cached is None else self.cached
        return (fresh * self.input + cached * rate + max(0, usage.completion_tokens) * self.output) / _MILLION


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Prices of assistants whose settings give them; for all others the table."""

    by_assistant: Mapping[str, Prices] = field(default_factory=dict)

    def cost(self, assistant: str, model: str, usage: Usage) -> tuple[float, str] | None:
        """Cost and currency; None where no price is known."""
        own = self.by_assistant.get(assistant)
        if own is None:
            return price(model, usage)
        cost = own.cost(usage)
        return None if cost is None else (cost, own.currency)


def price(model: str, usage: Usage, *, url: str | None = None) -> tuple[float, str] | None:
    """Cost in US dollars by the table of `genai-prices`; None for what it does not have, or an unknown usage.

    url: of the model's server, if known: then only that provider's prices count (a local server that serves a
         model of the same name costs nothing, and has no price). Else the model's name decides.
    The first call takes 0.15 s: the table is loaded then.
    """
    if usage.source is Source.UNKNOWN or not _is_priced(model, url):
        return None
    if (rates := _rates(model, url)) is not None:
        cost = rates.cost(usage)
        return None if cost is None else (cost, rates.currency)
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    prompt = max(0, usage.prompt_tokens)
    tokens = Tokens(
        input_tokens=prompt,
        output_tokens=max(0, usage.completion_tokens),
        cache_read_tokens=max(0, min(usage.cached_tokens, prompt)),
    )
    try:
        return float(calc_price(tokens, model, provider_api_url=url).total_price), "USD"
    except (LookupError, ValueError):  # the table has the model, and no price for this kind of token
        return None


@lru_cache(maxsize=1024)
def _is_priced(model: str, url: str | None) -> bool:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    try:
        calc_price(Tokens(input_tokens=1, output_tokens=1), model, provider_api_url=url)
    except (LookupError, ValueError):
        return False
    return True


@lru_cache(maxsize=1024)
def _rates(model: str, url: str | None) -> Prices | None:
    """A priced model's rates, where they are the same at any hour and for any number of tokens; else None.

    For most models they are. The table's own reckoning takes 60 µs, a tenth of what a whole request costs.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    prices = calc_price(Tokens(input_tokens=1, output_tokens=1), model, provider_api_url=url).model.prices
    if isinstance(prices, list) or prices.requests_kcount is not None:
        return None
    read, written, cached = prices.input_mtok, prices.output_mtok, prices.cache_read_mtok
    if not isinstance(read, Decimal) or not isinstance(written, Decimal) or not isinstance(cached, Decimal | None):
        return None
    return Prices(input=float(read), output=float(written), cached=None if cached is None else float(cached))
