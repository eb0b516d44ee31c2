"""The wire of a stored exchange, as a tape that `motamot show` reads: made again from the books."""

from __future__ import annotations

from motamot.answer import AnswerEvent, Cited, Ended, Outcome
from motamot.protocols.native import PROTOCOL
from motamot.store.views import Detail
from motamot.tape.tape import Piece, Tape

__all__ = ["tape_of"]

_MADE = (
    "Made from the books, not recorded: each event as the native protocol writes it, at the time at which it was put "
    "into the answer's log, in seconds after the question. What the connection did to it is not known."
)
_WHOLE = (
    "Arguments and results of tools are those of the books; a visitor gets them only where the assistant's `visible` "
    "says so."
)
_NO_TIMES = "The books hold no times for it: the process was killed, or the exchange is older than they are."
_SOME_TIMES = "The books hold no times for some of its events."
_REMOVED = "Its text was removed."
_RUNS = "It had not ended when this was made."


def tape_of(detail: Detail) -> Tape:
    """The native wire of an exchange: what was written for the visitor who asked it, event by event.

    Reasoning that no visitor sees is not in it, nor is what came behind a stop. Times are None where none are known.
    """
    writer = PROTOCOL.writer(exchange=detail.row.id)
    told = [
        (at, writer.write(number, event)) for number, at, event in detail.events if _was_sent(detail, number, event)
    ]
    pieces = tuple(Piece(at, data) for at, data in told)
    untimed = sum(piece.at is None for piece in pieces)
    notes = [_MADE, _WHOLE]
    if untimed:
        notes.append(_NO_TIMES if untimed == len(pieces) else _SOME_TIMES)
    if detail.row.question is None:
        notes.append(_REMOVED)
    if detail.row.outcome is None:
        notes.append(_RUNS)
    return Tape(
        pieces=pieces,
        headers=(("Content-Type", "text/event-stream"),),
        source="own",
        notes=tuple(notes),
    )


def _was_sent(detail: Detail, number: int, event: AnswerEvent) -> bool:
    if number == 0:
        return False
    if detail.row.outcome not in (Outcome.STOPPED, Outcome.ABANDONED):
        return True
    return number <= detail.row.sent or isinstance(event, Cited | Ended)
