"""What tokens cost: by the table, by the settings, or nobody knows."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from motamot.answer import Source, Usage
from motamot.store import prices
from motamot.store.contract import completion, exchange
from motamot.store.prices import PriceBook, Prices, price
from motamot.store.store import Store

USAGE = Usage(prompt_tokens=1_000_000, completion_tokens=100_000, cached_tokens=200_000, source=Source.REPORTED)
OWN = Prices(input=2.0, output=10.0, cached=0.5, currency="EUR")


def test_a_known_model_has_the_tables_price() -> None:
    fresh = price("gpt-4o-mini", Usage(prompt_tokens=1_000_000, source=Source.REPORTED))
    assert fresh is not None
    assert fresh[0] > 0
    assert fresh[1] == "USD"
    answered = price("gpt-4o-mini", Usage(prompt_tokens=1_000_000, completion_tokens=1, source=Source.ESTIMATED))
    assert answered is not None
    assert answered[0] > fresh[0], "the answer costs too, also an estimated one"
    cached = price("gpt-4o-mini", Usage(prompt_tokens=1_000_000, cached_tokens=1_000_000, source=Source.REPORTED))
    assert cached is not None
    assert 0 < cached[0] < fresh[0], "cached tokens are part of the prompt's, and cheaper"


@pytest.mark.parametrize("model", ["", "no such model", "x" * 10_000, "gpt-4o-mini\0", "../../etc/passwd", "\u202e"])
def test_an_unknown_model_has_no_price_rather_than_none_at_all(model: str) -> None:
    assert price(model, USAGE) is None


def test_an_unknown_usage_has_no_price() -> None:
    assert price("gpt-4o-mini", Usage()) is None
    assert OWN.cost(Usage()) is None


def test_a_usage_of_nothing_costs_nothing() -> None:
    assert price("gpt-4o-mini", Usage(source=Source.REPORTED)) == (0.0, "USD")


def test_a_local_server_has_no_price_whatever_its_model_is_called() -> None:
    assert price("gpt-4o-mini", USAGE, url="http://127.0.0.1:11434/v1") is None
    assert price("gpt-4o-mini", USAGE, url="https://api.openai.com/v1") == price("gpt-4o-mini", USAGE)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(prompt_tokens=-5, completion_tokens=-7, source=Source.REPORTED),
        Usage(prompt_tokens=10, cached_tokens=50, source=Source.REPORTED),
        Usage(prompt_tokens=10**30, completion_tokens=10**30, cached_tokens=-1, source=Source.REPORTED),
    ],
)
def test_no_report_makes_a_negative_price_or_an_error(usage: Usage) -> None:
    for cost in (price("gpt-4o-mini", usage), PriceBook({"bus": OWN}).cost("bus", "m", usage)):
        assert cost is not None
        assert cost[0] >= 0


def test_an_assistants_own_prices_come_before_the_tables() -> None:
    book = PriceBook({"bus": OWN})
    own = book.cost("bus", "gpt-4o-mini", USAGE)
    assert own is not None
    assert own[0] == pytest.approx(0.8 * 2 + 0.2 * 0.5 + 0.1 * 10)
    assert own[1] == "EUR"
    assert book.cost("bus", "no such model", USAGE) is not None
    assert book.cost("train", "gpt-4o-mini", USAGE) == price("gpt-4o-mini", USAGE)
    assert book.cost("train", "no such model", USAGE) is None


def test_cached_tokens_cost_as_others_unless_a_price_says_otherwise() -> None:
    assert Prices(input=2.0, output=0.0).cost(USAGE) == pytest.approx(2.0)


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_price_is_a_number_from_zero_up(wrong: float) -> None:
    for amounts in ((wrong, 1.0, None), (1.0, wrong, None), (1.0, 1.0, wrong)):
        with pytest.raises(ValueError, match="a number from 0 up"):
            Prices(input=amounts[0], output=amounts[1], cached=amounts[2])


def test_pricing_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_named: object) -> None:
        raise AssertionError("a price was asked for over the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert price("gpt-4o", USAGE) is not None


def test_what_is_closed_after_a_crash_is_priced_too(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db", prices=PriceBook({"bus": OWN}))
        for n, (assistant, estimate) in enumerate((("bus", 1_000_000), ("bus", 0), ("train", 1_000_000))):
            await store.begin(exchange(f"e{n}", assistant=assistant))
            await store.open_completion(completion(f"p{n}", f"e{n}", model="no such model", prompt_estimate=estimate))
        await store.close()
        store = Store.open(tmp_path / "store.db")
        figures = [(row.source, row.cost, row.currency) for row in await store.completions()]
        assert figures == [("estimated", 2.0, "EUR"), ("unknown", None, "USD"), ("estimated", None, "USD")]
        await store.close()

    asyncio.run(run())


def test_what_is_reckoned_here_is_what_the_table_would_reckon() -> None:
    """For every model of the table whose rates we keep: ours is faster, and never another sum."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price
    from genai_prices.data_snapshot import get_snapshot

    kept = 0
    for model in sorted({model.id for provider in get_snapshot().providers for model in provider.models}):
        if not prices._is_priced(model, None) or prices._rates(model, None) is None:
            continue
        kept += 1
        for prompt, generated, cached in ((1_000, 200, 0), (300_001, 4_567, 1_000), (5, 0, 5)):
            theirs = calc_price(
                Tokens(input_tokens=prompt, output_tokens=generated, cache_read_tokens=cached), model
            ).total_price
            spent = Usage(
                prompt_tokens=prompt, completion_tokens=generated, cached_tokens=cached, source=Source.REPORTED
            )
            ours = price(model, spent)
            assert ours is not None
            assert ours[0] == pytest.approx(float(theirs), rel=1e-9)
    assert kept > 100
