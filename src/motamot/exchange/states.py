"""The states of an exchange and its legal moves, in one table; the diagram in docs/architecture.md is made from it."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["MOVES", "Move", "State", "diagram"]


class State(StrEnum):
    """Where an exchange is."""

    OPENING = "opening"  # being written to the store; nothing was asked of the model yet
    ANSWERING = "answering"  # the answer is coming
    UNWATCHED = "unwatched"  # the answer is coming, its reader said it can come back and is away
    ENDING = "ending"  # stopped, abandoned, over a limit or shut down: the upstream is being closed
    ENDED = "ended"  # `Ended` is in the log


class Move(StrEnum):
    """What can happen to an exchange."""

    OPENED = "opened"
    LEFT = "left"
    RETURNED = "returned"
    END = "end"
    DONE = "done"


MOVES: dict[tuple[State, Move], State] = {
    (State.OPENING, Move.OPENED): State.ANSWERING,
    (State.OPENING, Move.END): State.ENDING,
    (State.ANSWERING, Move.LEFT): State.UNWATCHED,
    (State.ANSWERING, Move.END): State.ENDING,
    (State.ANSWERING, Move.DONE): State.ENDED,
    (State.UNWATCHED, Move.RETURNED): State.ANSWERING,
    (State.UNWATCHED, Move.END): State.ENDING,
    (State.UNWATCHED, Move.DONE): State.ENDED,
    (State.ENDING, Move.DONE): State.ENDED,
}


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.OPENING}"]
    lines += [f"    {state} --> {then}: {move}" for (state, move), then in MOVES.items()]
    return "\n".join([*lines, f"    {State.ENDED} --> [*]"])
