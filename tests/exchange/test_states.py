"""States and legal moves stand in one table."""

from __future__ import annotations

from motamot.exchange.states import MOVES, Move, State, diagram


def test_an_ended_exchange_moves_no_more() -> None:
    assert not [move for state, move in MOVES if state is State.ENDED]


def test_every_state_but_the_first_is_reached_and_every_state_but_the_last_is_left() -> None:
    assert set(MOVES.values()) | {State.OPENING} == set(State)
    assert {state for state, _ in MOVES} | {State.ENDED} == set(State)
    assert {move for _, move in MOVES} == set(Move)


def test_an_end_is_possible_in_every_state_that_is_not_over() -> None:
    open_states = set(State) - {State.ENDED, State.ENDING}
    assert {state for state, move in MOVES if move is Move.END} == open_states


def test_the_diagram_shows_every_move() -> None:
    drawn = diagram().splitlines()
    assert len(drawn) == len(MOVES) + 3
