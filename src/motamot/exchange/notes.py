"""What an operator is shown of an answer beside its text: arguments, results, reasoning, whatever the visitor saw."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import msgspec

from motamot.answer import AnswerEvent, Reasoning, Routed, ToolCalled, ToolReturned
from motamot.store.details import TICKS
from motamot.store.records import Noted

__all__ = ["Notes", "ticks"]

_LATEST = (1 << 32) - 1  # ticks: five days


class Notes:
    """The notes of one exchange. began: when it was asked, on the monotonic clock. most: bytes that they may hold."""

    def __init__(self, began: float, most: int) -> None:
        self.held = 0
        self.omitted = 0  # events whose arguments, result or text are left out, as they would be too much
        self._began = began
        self._most = most
        self._noted: list[Noted] = []
        self._thoughts: list[str] = []  # of reasoning that the visitor is not shown: it comes in very small pieces
        self._thoughts_began = (0, 0.0)

    def add(self, event: AnswerEvent, *, after: int, numbered: bool, at: float) -> None:
        """Note an event that is no text. after, numbered: as in `Noted`; at: on the monotonic clock."""
        at -= self._began
        size = _size(event)
        fits = size is not None and self.held + size <= self._most
        if fits:
            self.held += size or 0
        else:
            self.omitted += 1
        if isinstance(event, Reasoning) and not numbered:
            if not self._thoughts:
                self._thoughts_began = (after, at)
            if fits:
                self._thoughts.append(event.text)
            return
        self._end_thought()
        self._noted.append(Noted(after, numbered, at, event if fits else _bare(event)))

    def taken(self) -> tuple[Noted, ...]:
        """All notes, in order; none are left."""
        self._end_thought()
        noted, self._noted = tuple(self._noted), []
        self.held = 0
        return noted

    def _end_thought(self) -> None:
        if self._thoughts:
            after, at = self._thoughts_began
            self._noted.append(Noted(after, False, at, Reasoning("".join(self._thoughts))))
            self._thoughts = []


def ticks(times: Sequence[float], began: float) -> array[int]:
    """Moments on the monotonic clock as `ExchangeEnded.times` has them."""
    try:
        return array("I", [int((time - began) * TICKS) for time in times])
    except OverflowError:
        return array("I", [min(max(int((time - began) * TICKS), 0), _LATEST) for time in times])


def _size(event: AnswerEvent) -> int | None:
    """Bytes or characters that it holds; None where it holds what JSON has no words for."""
    match event:
        case Reasoning():
            return len(event.text)
        case ToolReturned():
            return len(event.result or "")
        case _:
            try:
                return len(msgspec.json.encode(event))
            except Exception:  # noqa: BLE001 - objects of an answer of somebody's own, with methods of their own
                return None


def _bare(event: AnswerEvent) -> AnswerEvent:
    match event:
        case ToolCalled():
            return ToolCalled(id=event.id, name=event.name)
        case ToolReturned():
            return ToolReturned(id=event.id, name=event.name, status=event.status)
        case Routed():
            return Routed(agent=event.agent, confidence=event.confidence, method=event.method)
        case Reasoning():
            return Reasoning("")
        case _:
            return event
