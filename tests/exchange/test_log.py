"""The log: an in-memory list that any number of readers follow, each at its own pace."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from motamot.answer import AnswerEvent, Ended, Outcome, Started, Text, ToolCalled
from motamot.exchange.log import Log

STARTED = Started(exchange="x", conversation="c")
ENDED = Ended(outcome=Outcome.COMPLETE)


def test_events_are_given_out_with_their_numbers() -> None:
    log = Log([STARTED, None, Text("a")])
    assert log.after(0) == [(1, STARTED), (3, Text("a"))]
    assert log.after(3) == log.after(9) == []


def test_everybody_who_waits_is_woken_and_a_waiter_that_was_cancelled_is_forgotten() -> None:
    async def run() -> None:
        log = Log()
        waiting = [log.changed() for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        log.append(STARTED)
        assert await asyncio.gather(*waiting[1:]) == [None, None]
        closing = log.changed()
        await asyncio.sleep(0)
        log.close()
        await closing

    asyncio.run(run())


def test_boundaries_speak_of_event_numbers_and_characters() -> None:
    log = Log()
    for event in (STARTED, Text("ab"), ToolCalled(id="1", name="t"), Text("é")):
        log.append(event)
    assert log.boundaries() == ((2, 2), (4, 3))
    assert log.boundaries(2, 2) == ((4, 3),)
    assert [log.text(n) for n in range(5)] == ["", "", "ab", "ab", "abé"]
    assert log.text() == "abé"


def test_what_lies_behind_a_stop_is_not_given_out_and_which_answer_it_is_always_is() -> None:
    for shown, left in ((0, [STARTED]), (1, [STARTED]), (2, [STARTED, Text("ab")])):
        log = Log()
        for event in (STARTED, Text("ab"), Text("cd")):
            log.append(event)
        log.forget(shown)
        log.append(ENDED)
        assert log.after(0) == [*enumerate(left, 1), (4, ENDED)]


events = st.lists(st.one_of(st.text(min_size=1).map(Text), st.just(ToolCalled(id="1", name="t"))))


@given(events, st.integers(0, 20))
def test_a_log_rebuilt_from_the_store_gives_the_same_text_behind_every_number(
    kept: list[AnswerEvent], after: int
) -> None:
    log = Log()
    for event in (STARTED, *kept, ENDED):
        log.append(event)
    rebuilt = Log.rebuilt(log.text(), log.boundaries(), STARTED, ENDED, len(log.events))
    batch = rebuilt.after(after)
    expected = log.text()[len(log.text(after)) :]
    assert "".join(event.text for _, event in batch if isinstance(event, Text)) == expected
    if after < len(log.events):
        assert batch[-1] == (len(log.events), ENDED)
