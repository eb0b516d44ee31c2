"""Words that several commands use."""

from __future__ import annotations

from collections.abc import Mapping

from motamot.answer import Source, Usage

__all__ = ["cost_words", "mark_words", "source_words", "token_words"]

_MARKS = {
    "recorded": "a recorded sample answers, no model",
    "demo_model": "demo model: small, runs on this machine, and is often wrong",
    "test_model": "test model: shows that everything works; what it says is worth nothing",
}


def mark_words(mark: str) -> str:
    """What a mark beside an answer means, as a line."""
    return f"[{mark}] {_MARKS.get(mark, 'so marked by the assistant')}"


def token_words(usage: Usage) -> str:
    """`41 + 120 tokens (reported)`; where surely nothing was generated, nobody reported its zeros: `nothing spent`."""
    if _nothing_spent(usage):
        return "nothing spent"
    return f"{usage.prompt_tokens} + {usage.completion_tokens} tokens ({usage.source})"


def source_words(usage: Usage | None) -> str:
    """Who counted: `-` where there was nothing to count."""
    return "-" if usage is None or _nothing_spent(usage) else str(usage.source)


def _nothing_spent(usage: Usage) -> bool:
    return usage.source is Source.REPORTED and not usage.prompt_tokens and not usage.completion_tokens


def cost_words(costs: Mapping[str, float]) -> str:
    """`0.0021 USD`, to the millionth; several currencies are not added up."""
    return " + ".join(f"{_amount(cost)} {currency}" for currency, cost in sorted(costs.items()))


def _amount(cost: float) -> str:
    whole, _, part = f"{cost:.6f}".partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"
