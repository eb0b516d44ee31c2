"""How many tokens a text has, when nobody reported it: learnt from the model's own earlier reports.

Tokens are counted against bytes of UTF-8, which vary less from script to script than characters do. Until a model
has reported often enough, four bytes make a token.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from motamot.answer import Source, Usage

__all__ = ["Estimates", "Estimator"]

BYTES_PER_TOKEN = 4.0
SHORTEST = 64  # bytes: below, a report says more about the template around the text than about the text
FEWEST = 3  # reports before they are believed: one odd answer is no ratio
REMEMBERED = 64  # reports a model is judged by
MODELS = 256  # remembered at once; a model's name may come from a stranger


@dataclass(frozen=True, slots=True)
class Estimator:
    """Tokens of a text for one model. bytes_per_token: the median of its reports, or the rule of thumb."""

    bytes_per_token: float = BYTES_PER_TOKEN
    calibrated: bool = False

    def __call__(self, text: str) -> int:
        """Tokens in `text`, 0 only for an empty one."""
        return self.tokens(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")))

    def tokens(self, size: int) -> int:
        """Tokens in `size` bytes of UTF-8, 0 only for none."""
        return max(1, round(size / self.bytes_per_token)) if size > 0 else 0

    def usage(self, prompt: str, completion: str) -> Usage:
        """The estimated usage of a completion."""
        return Usage(prompt_tokens=self(prompt), completion_tokens=self(completion), source=Source.ESTIMATED)


@dataclass(slots=True)
class Estimates:
    """The reports of all models, as far as they are remembered."""

    _ratios: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _made: dict[str, Estimator] = field(default_factory=dict)

    def learn(self, model: str, pairs: Iterable[tuple[int, int]]) -> None:
        """Take in (tokens reported, bytes of the text they stand for) of this model."""
        fresh = [size / tokens for tokens, size in pairs if tokens > 0 and size >= SHORTEST]
        if not fresh:
            return
        if model not in self._ratios and len(self._ratios) >= MODELS:
            forgotten, _ = self._ratios.popitem(last=False)
            self._made.pop(forgotten, None)
        self._ratios.setdefault(model, deque(maxlen=REMEMBERED)).extend(fresh)
        self._ratios.move_to_end(model)
        self._made.pop(model, None)

    def of(self, model: str) -> Estimator:
        """The estimator for this model, as of now."""
        if (made := self._made.get(model)) is not None:
            return made
        ratios = self._ratios.get(model, ())
        if len(ratios) < FEWEST:
            return Estimator()
        made = Estimator(min(max(median(ratios), 0.5), 32.0), calibrated=True)
        self._made[model] = made
        return made
