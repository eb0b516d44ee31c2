"""Recorded samples in a model's place."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.answer import AnswerEvent, Text
from motamot.errors import SettingsError
from motamot.limits import Limits
from motamot.model.recorded import RecordedModel
from motamot.model.turn import Message, Model, Turn, TurnRequest


def request(*roles: str) -> TurnRequest:
    return TurnRequest(messages=[Message(role=role, content="x") for role in roles], max_tokens=9)


def answer(model: Model, *roles: str) -> tuple[Turn, list[AnswerEvent]]:
    events: list[AnswerEvent] = []
    return asyncio.run(model.attempt(request(*roles)).run(events.extend)), events


def test_the_sample_is_chosen_by_the_number_of_assistant_turns_and_the_last_repeats() -> None:
    model = RecordedModel(["one", "two"], "no model", pace=0)
    assert answer(model, "system", "user")[0].text == "one"
    assert answer(model, "user", "assistant", "user")[0].text == "two"
    assert answer(model, "user", "assistant", "user", "assistant", "user")[0].text == "two"


def test_a_recorded_answer_is_marked_and_counts_no_tokens() -> None:
    model = RecordedModel(["one"], "no model could be reached")
    assert (model.origin, model.marks, model.reason) == ("recorded", ("recorded",), "no model could be reached")
    turn, _ = answer(model, "user")
    assert (turn.finish, turn.usage, turn.error, turn.started) == ("stop", None, None, False)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec=None), min_size=1, max_size=200).filter(str.strip))
def test_the_pieces_joined_are_the_sample_and_none_is_empty(sample: str) -> None:
    turn, events = answer(RecordedModel([sample], "test", pace=0), "user")
    texts = [event.text for event in events if isinstance(event, Text)]
    assert all(texts)
    assert "".join(texts) == turn.text
    assert turn.text.encode() == sample.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def test_a_sample_comes_word_by_word_and_a_script_without_blanks_in_pieces_too() -> None:
    model = RecordedModel(["Voyagez en  bus\n\npartout", "公" * 60], "test", pace=0)
    assert [getattr(event, "text", "") for event in answer(model, "user")[1]] == [
        "Voyagez ",
        "en  ",
        "bus\n\n",
        "partout",
    ]
    assert [len(getattr(event, "text", "")) for event in answer(model, "assistant", "user")[1]] == [24, 24, 12]


def test_the_words_come_at_a_pace_and_a_cancelled_sample_shows_how_far_it_came() -> None:
    async def main() -> None:
        model = RecordedModel(["one two three four"], "test", pace=0.1)
        came: list[float] = []
        attempt = model.attempt(request("user"))
        before = attempt.snapshot()
        assert (before.text, before.finish) == ("", "incomplete")
        task = asyncio.create_task(attempt.run(lambda _: came.append(time.monotonic())))
        await asyncio.sleep(0.25)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert attempt.first_delta_at is not None
        assert came[1] - came[0] >= 0.09
        turn = attempt.snapshot()
        assert turn.text in ("one two ", "one two three ")
        assert turn.error is not None
        assert turn.error.code == "upstream_cut"

    asyncio.run(main())


def test_an_attempt_is_one_answer() -> None:
    async def main() -> None:
        attempt = RecordedModel(["one"], "test").attempt(request("user"))
        await attempt.run(lambda _: None)
        with pytest.raises(RuntimeError):
            await attempt.run(lambda _: None)

    asyncio.run(main())


@pytest.mark.parametrize("samples", [[], "one text", ["good", " \n"], ["x" * 101], ["a b c d e f"]])
def test_samples_that_are_no_answers_are_refused(samples: list[str]) -> None:
    with pytest.raises(SettingsError, match="sample"):
        RecordedModel(samples, "test", limits=Limits(answer_bytes=100, answer_events=5))
