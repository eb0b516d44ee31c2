"""Recorded samples in a model's place: asked for by name, or the fallback when no model can be had.

Nothing is sent and nothing is spent. Every answer is marked `recorded`, and the model says why it is asked:
a visitor must never take a sample for a model's answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from time import monotonic

from motamot.answer import SurrogateJoiner, Text
from motamot.errors import SettingsError, UpstreamError
from motamot.limits import Limits
from motamot.model.turn import Emit, Turn, TurnRequest

__all__ = ["RecordedAttempt", "RecordedModel"]

_PACE_SECONDS = 0.03
"""Between two words: about the pace of a fast model, so that a page shows what it will look like."""

_LONGEST_SECONDS = 20.0
"""A long sample is shown faster, so that all of it is there by then."""

_WORD = re.compile(r"\S{1,24}\s*|\s+")
"""A word with the blanks after it; scripts without blanks are cut, too, or nothing of them would be live."""


class RecordedModel:
    """Answers from a list, indexed by the number of assistant turns so far; the last one repeats.

    samples: answers as a model would have written them; each is passed on word by word, joined it is the sample.
    reason:  why samples answer and not a model, one sentence, for whoever shows the mark.
    pace:    seconds between two words; 0 for programs.
    limits:  `answer_bytes` and `answer_events` bound a sample.
    Raises:  SettingsError for no samples, or one that is empty or too long.
    """

    name = "recorded"
    origin = "recorded"
    marks: tuple[str, ...] = ("recorded",)

    def __init__(
        self, samples: Sequence[str], reason: str, *, pace: float = _PACE_SECONDS, limits: Limits | None = None
    ) -> None:
        limits = limits or Limits()
        if isinstance(samples, str) or not samples:
            raise SettingsError("recorded samples are a list of answers, at least one")
        self.reason = reason
        self.pace = pace
        self.samples = tuple(_encodable(sample) for sample in samples)
        for number, sample in enumerate(self.samples, 1):
            if not sample.strip():
                raise SettingsError(f"recorded sample {number} is empty")
            if len(sample.encode()) > limits.answer_bytes or len(_WORD.findall(sample)) > limits.answer_events:
                raise SettingsError(
                    f"recorded sample {number} is longer than an answer may be "
                    f"({limits.answer_bytes} bytes, {limits.answer_events} words)"
                )

    def attempt(self, request: TurnRequest) -> RecordedAttempt:
        """The sample whose turn it is: the first for a request without an assistant message."""
        turns = sum(message.role == "assistant" for message in request.messages)
        return RecordedAttempt(self.samples[min(turns, len(self.samples) - 1)], self.pace)

    async def close(self) -> None:
        """Nothing is held."""


class RecordedAttempt:
    """One recorded answer: `motamot.model.turn.Attempt`. No tools are called and no tokens are counted."""

    def __init__(self, sample: str, pace: float) -> None:
        self._sample = sample
        self._pace = pace
        self._shown = 0
        self._first_delta_at: float | None = None

    @property
    def first_delta_at(self) -> float | None:
        """`time.monotonic()` of the first word, or None."""
        return self._first_delta_at

    def snapshot(self) -> Turn:
        """The turn as far as it has come."""
        if self._shown == len(self._sample):
            return Turn(finish="stop", text=self._sample, model=RecordedModel.name)
        error = UpstreamError(
            "The answer was cut off.", code="upstream_cut", detail="a recorded sample, not shown whole"
        )
        return Turn(finish="incomplete", text=self._sample[: self._shown], model=RecordedModel.name, error=error)

    async def run(self, emit: Emit) -> Turn:
        """Pass the sample on, word by word.

        Raises: RuntimeError when run a second time.
        """
        if self._first_delta_at is not None:
            raise RuntimeError("an attempt is one answer, and this one was given")
        self._first_delta_at = monotonic()
        words = _WORD.findall(self._sample)
        pace = min(self._pace, _LONGEST_SECONDS / len(words))
        for word in words:
            if self._shown:
                await asyncio.sleep(pace)
            self._shown += len(word)
            emit([Text(word)])
        return self.snapshot()


def _encodable(sample: str) -> str:
    joiner = SurrogateJoiner()
    return joiner.feed(sample) + joiner.close()
