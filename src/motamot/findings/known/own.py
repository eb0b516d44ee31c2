"""motamot's own protocols: read by their own readers."""

from __future__ import annotations

from collections.abc import Iterable

from motamot.answer import AnswerEvent, Ended, Reasoning, Text, ToolCalled
from motamot.findings.reading import Hear, Reading, values_of
from motamot.protocols.base import Reader
from motamot.sse import Event

__all__ = ["OwnReading"]


class OwnReading(Reading):
    """One of motamot's own protocols, by its reader; the JSON of its events is looked at beside it."""

    wants_events = True

    def __init__(self, hear: Hear, reader: Reader, *, json: bool) -> None:
        super().__init__(hear)
        self._reader = reader
        self._json = json

    def take(self, raw: bytes) -> None:
        self._tell(self._reader.feed(raw))

    def event(self, event: Event) -> None:
        if self._json and event.event in ("message", "erreur", "marques"):
            values_of(event, self.hear)

    def _tell(self, answers: Iterable[AnswerEvent]) -> None:
        for answer in answers:
            if isinstance(answer, Text):
                self.hear.text(answer.text)
            elif isinstance(answer, Reasoning | ToolCalled):
                self.hear.delta()
            elif isinstance(answer, Ended):
                self.hear.ended(str(answer.outcome))

    def close(self) -> None:
        self._tell(answer for answer in self._reader.close() if not isinstance(answer, Ended))
