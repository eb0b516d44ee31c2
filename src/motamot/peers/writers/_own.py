"""An answer through a writer of our own protocols."""

from __future__ import annotations

from collections.abc import Sequence

from motamot.answer import AnswerEvent, Ended, Outcome, Started, SurrogateJoiner, Text
from motamot.protocols.base import Writer

__all__ = ["written"]


def written(writer: Writer, pieces: Sequence[str]) -> bytes:
    """The whole stream of an answer that was complete, a `Text` per piece; empty ones are none."""
    joiner = SurrogateJoiner()
    texts = [joiner.feed(piece) for piece in pieces] + [joiner.close()]
    events: list[AnswerEvent] = [
        Started(exchange="exchange", conversation="conversation"),
        *(Text(text) for text in texts if text),
    ]
    events.append(Ended(outcome=Outcome.COMPLETE, shown=len(events)))
    return b"".join(writer.write(number, event) for number, event in enumerate(events, 1))
