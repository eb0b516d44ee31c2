"""The log of one answer: an in-memory list, appended to synchronously and followed by any number of readers.

Nothing here waits for a reader: a slow one takes more events at once. A bare future wakes a follower; it was the
cheapest of what asyncio offers (+1.4 µs a delta, against 2.4 for an `Event` and 3.2 for a `Queue`).
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Sequence
from time import monotonic

from motamot.answer import AnswerEvent, Reasoning, Text

__all__ = ["BATCH", "Batch", "Log"]

Batch = list[tuple[int, AnswerEvent]]
"""Events with their numbers, in order."""

BATCH = 1_000
"""Events given out at once: a reader that is far behind holds so many besides the log itself, and no more."""

_EVENT_BYTES = 108  # measured: a `Text` of a few letters, its string, its place in the list and its time
_EXCHANGE_BYTES = 1_700  # measured, of one that has ended


class Log:
    """The events of one answer. Event number n is at index n - 1.

    None stands where an event was not kept, in a log rebuilt from the store, or is not shown, behind a stop: followers
    skip it, so that the others keep their numbers.

    times: when each was appended, on the monotonic clock (0.06 µs of the 16 that a delta takes, measured); empty in a
           log rebuilt from the store, and once the end is booked. aside: bytes held besides, for the operator.
    """

    __slots__ = ("_waiters", "aside", "characters", "closed", "events", "times")

    def __init__(self, events: Iterable[AnswerEvent | None] = (), *, closed: bool = False) -> None:
        self.events: list[AnswerEvent | None] = list(events)
        self.closed = closed
        self.times = array("d")
        self.aside = 0
        self.characters = 0  # of text, reasoning included where it is shown: what the log costs to hold
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def held(self) -> int:
        """Bytes that it takes, about: its text, an object for each event, and the exchange that goes with it."""
        return self.characters + self.aside + _EVENT_BYTES * len(self.events) + _EXCHANGE_BYTES

    def append(self, event: AnswerEvent, characters: int = 0) -> None:
        """Append, and wake whoever follows. characters: what holding the event costs."""
        self.events.append(event)
        self.times.append(monotonic())
        self.characters += characters
        if self._waiters:
            self.wake()

    def forget(self, shown: int, upto: int | None = None) -> None:
        """Give out nothing more of what lies behind event `shown`, up to and with event `upto`, or the last one.

        Who comes back still learns what answer it is.
        """
        shown = max(shown, 1)  # the first is `Started`
        hidden = self.events[shown:upto]
        self.events[shown : shown + len(hidden)] = [None] * len(hidden)
        self.characters -= sum([len(event.text) for event in hidden if isinstance(event, Text | Reasoning)])

    def close(self) -> None:
        """No event comes any more."""
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Let every follower look again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def after(self, number: int) -> Batch:
        """The events behind event `number`, as far as they have come, up to `BATCH` of them."""
        events = self.events
        if len(events) == number + 1:  # a follower that keeps up
            event = events[number]
            return [] if event is None else [(number + 1, event)]
        while number < len(events):
            run = events[number : number + BATCH]
            if batch := [(n, event) for n, event in enumerate(run, number + 1) if event is not None]:
                return batch
            number += BATCH  # none of these was kept
        return []

    def changed(self) -> asyncio.Future[None]:
        """Done when something was appended, the log was closed, or a reader was woken for its own reasons.

        One that is cancelled meanwhile is dropped at the next change.
        """
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    def text(self, upto: int | None = None) -> str:
        """The answer text up to and with event `upto`; all of it without."""
        return "".join([event.text for event in self.events[:upto] if type(event) is Text])

    def boundaries(self, since: int = 0, characters: int = 0) -> tuple[tuple[int, int], ...]:
        """`(event number, characters of text up to and with it)` of the text events behind event `since`.

        characters: of text up to and with event `since`.
        """
        found = []
        for number, event in enumerate(self.events[since:], since + 1):
            if type(event) is Text:
                characters += len(event.text)
                found.append((number, characters))
        return tuple(found)

    @classmethod
    def rebuilt(
        cls,
        text: str,
        boundaries: Sequence[tuple[int, int]],
        first: AnswerEvent,
        ended: AnswerEvent,
        events: int,
    ) -> Log:
        """An ended answer as the store kept it: `text` cut at its boundaries, each piece under its old number."""
        last = boundaries[-1][0] if boundaries else 1
        rebuilt: list[AnswerEvent | None] = [None] * max(events, last + 1, 2)
        rebuilt[0] = first
        at = 0
        for number, end in boundaries:
            piece = text[at:end]
            at = end
            if piece and 1 < number < len(rebuilt):
                rebuilt[number - 1] = Text(piece)
        if text[at:]:  # what a checkpoint did not bound any more
            rebuilt[-1] = Text(text[at:])
            rebuilt.append(None)
        rebuilt[-1] = ended
        log = cls(rebuilt, closed=True)
        log.characters = len(text)
        return log
