"""What an operator is shown of the books: plain records. Times are UTC, seconds since the epoch."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from motamot.answer import AnswerEvent, Cited, Source
from motamot.store.records import CompletionRow, ExchangeRow

__all__ = [
    "RUNNING",
    "Beside",
    "Day",
    "Detail",
    "Facets",
    "Filter",
    "Found",
    "Listed",
    "Spread",
    "VisitorConversation",
    "bucket_of",
]

RUNNING = "running"
"""As `Filter.outcome`: exchanges that have none yet."""

_STEP = 1.02  # from one bucket of a spread to the next: a percentile is within 1 % of the true one
_LEAST = 1e-4  # seconds; what is shorter counts as this


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which exchanges are looked for; what is None does not matter.

    text:      words that all occur in question and answer, beginnings of words too; "several words" in quotes stand
               together. Neither accents nor capitals count. An exchange is found by its text once it has ended.
    outcome:   how it ended; `RUNNING` for none yet.
    since, until: asked at or after, and before.
    cost_from, cost_to: what its completions cost together, at least and at most, in whatever currency they are priced.
    """

    text: str | None = None
    outcome: str | None = None
    assistant: str | None = None
    model: str | None = None
    visitor: str | None = None
    conversation: str | None = None
    since: float | None = None
    until: float | None = None
    cost_from: float | None = None
    cost_to: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An exchange as one line of a list.

    number:     the order of booking, and the cursor.
    question, answer: their first 200 characters (all of them in an export); None once the text was removed.
                `answer` is what was shown.
    first_text: seconds from the question to the first text; None where there was none, or it is not known.
    source:     the least certain one of its completions' token counts; None where none is closed.
    cost:       by currency. odd: one of its completions should not be there.
    """

    number: int
    exchange: str
    conversation: str
    assistant: str
    model: str
    visitor: str
    question: str | None
    answer: str | None
    outcome: str | None
    code: str | None
    by: str | None
    marks: tuple[str, ...]
    started_at: float
    ended_at: float | None
    first_text: float | None
    prompt_tokens: int
    completion_tokens: int
    source: Source | None
    cost: dict[str, float]
    completions: int
    odd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of a list, newest first. before: give it to the next `browse` for the page behind this; None: the last."""

    rows: tuple[Listed, ...]
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One exchange, with all that the books know of it.

    row:         `row.generated` is all that the model made, `row.shown` what the visitor's transcript shows.
    sent:        the text up to the last event that was sent.
    completions: in the order of booking.
    events:      (number, seconds after the question, event), in the order in which they came, text pieces and the
                 first and last event included; arguments and results of tools whole. The seconds are None where they
                 are not known: a killed process, or an exchange of before 0.2. The number is 0 for what the visitor
                 was not to see at all (hidden reasoning: it has no number on the wire).
    omitted:     of how many events arguments, result or text are missing, as they were over `details_bytes`.
    first_text, stop_asked, stop_closed: seconds after the question; stop_closed: the upstream was closed by then.
    odd:         why a completion should not be there, by its id. retries: why one was honestly asked again, by its id.
    """

    row: ExchangeRow
    sent: str
    completions: tuple[CompletionRow, ...]
    events: tuple[tuple[int, float | None, AnswerEvent], ...]
    omitted: int
    first_text: float | None
    stop_asked: float | None
    stop_closed: float | None
    odd: dict[str, str]
    retries: dict[str, str]


def bucket_of(seconds: float) -> int:
    """The bucket of a `Spread` that a duration falls into."""
    return math.floor(math.log(max(seconds, _LEAST) / _LEAST, _STEP))


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took, over many exchanges. Percentiles are within 1 %.

    buckets: how many lasted how long, by a logarithmic bucket: spreads can be put together.
    """

    buckets: Mapping[int, int] = field(repr=False)

    @property
    def count(self) -> int:
        """How many were measured."""
        return sum(self.buckets.values())

    def percentile(self, part: float) -> float:
        """Seconds within which `part` (0 to 1) of them were done."""
        wanted = max(1.0, part * self.count)
        for bucket in sorted(self.buckets):
            wanted -= self.buckets[bucket]
            if wanted <= 0:
                return float(_LEAST * _STEP ** (bucket + 0.5))
        raise ValueError("nothing was measured")

    @property
    def p50(self) -> float:
        """Half of them were done within these seconds."""
        return self.percentile(0.5)

    @property
    def p95(self) -> float:
        """All but one of twenty were done within these seconds."""
        return self.percentile(0.95)

    @staticmethod
    def together(spreads: Sequence[Spread | None]) -> Spread | None:
        """Several spreads as one; None where none measured anything."""
        buckets: dict[int, int] = {}
        for spread in spreads:
            for bucket, number in (spread.buckets if spread else {}).items():
                buckets[bucket] = buckets.get(bucket, 0) + number
        return Spread(buckets) if buckets else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What one assistant and model did on one day (UTC). Exchanges count on the day they were asked.

    A completion's tokens and cost count on the day it was opened, for the model that was asked.
    outcomes:   how many exchanges by outcome, `RUNNING` included.
    first_text: from the question to the first text. stop: from a stop asked to the upstream closed.
    estimated_tokens: how many of both kinds of tokens are estimates. unknown: completions of which nothing is known.
    cost:       by currency.
    """

    day: dt.date
    assistant: str
    model: str
    exchanges: int
    outcomes: dict[str, int]
    first_text: Spread | None
    stop: Spread | None
    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int
    unknown: int
    cost: dict[str, float]
    completions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What one can filter by.

    search:       whether this Python's SQLite can look for text.
    unsearchable: how many ended exchanges cannot be found by their text yet: none, but after an update of a large book
                  for a minute or so.
    """

    assistants: tuple[str, ...]
    models: tuple[str, ...]
    search: bool
    unsearchable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorConversation:
    """One of a visitor's conversations. deleted: its text is gone."""

    id: str
    assistant: str
    created_at: float
    last_asked_at: float
    exchanges: int
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a visitor sees beside the text of an answer. tools: (name, status) of each call, in order."""

    sources: tuple[Cited, ...]
    tools: tuple[tuple[str, str], ...]
