"""An exchange: one answer, exact, live, once, stoppable, and booked whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import (
    AnswerEvent,
    By,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Source,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Usage,
)
from motamot.errors import Conflict, InvalidRequest, LimitExceeded, NotFound
from motamot.exchange.exchange import Exchange, Visible
from motamot.exchange.loop import ModelAnswer
from motamot.exchange.own import OwnAnswer, Question
from motamot.exchange.states import State
from motamot.exchange.tools import ToolContext
from motamot.model.recorded import RecordedModel
from motamot.model.turn import TurnRequest
from motamot.store.records import CompletionRow
from tests.exchange.support import World, read, run, text, world

HELD = [{"say": "Hello "}, {"gate": "more"}, {"say": "world."}, {"finish": "stop"}]


async def rows(w: World, exchange: str) -> list[CompletionRow]:
    await w.store.flush()
    return list(await w.store.completions(exchange=exchange))


def test_an_answer_is_numbered_events_with_one_end_that_is_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "Hello, world."}, {"usage": {"prompt": 9, "completion": 3}}]]) as w:
            exchange, events = await w.ask()
            assert isinstance(events[0], Started)
            assert (events[0].exchange, events[0].model) == (exchange.id, "scripted")
            assert text(events) == "Hello, world."
            assert isinstance(events[-2], TurnEnded) and events[-2].finish == "stop"
            end = events[-1]
            assert isinstance(end, Ended)
            assert (end.outcome, end.shown) == (Outcome.COMPLETE, len(events) - 1)
            assert end.usage == Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
            assert [type(event) for event in events].count(Ended) == 1
            [row] = await rows(w, exchange.id)
            assert (row.outcome, row.prompt_tokens, row.completion_tokens) == ("complete", 9, 3)
            stored = await w.store.exchange(exchange.id)
            assert stored is not None
            assert (stored.outcome, stored.shown, stored.generated) == ("complete", "Hello, world.", "Hello, world.")
            assert w.server.requests[0].body["stream"] is True
            assert w.server.requests[0].headers["x-client-request-id"] == row.id

    run(scenario())


def test_text_is_given_out_while_the_model_is_still_writing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            got: list[AnswerEvent] = []
            while text(got) != "Hello ":
                got += [event for _, event in await follower.next()]
            assert exchange.ended is None
            w.server.release("more")
            while batch := await follower.next():
                got += [event for _, event in batch]
            assert follower.over and text(got) == "Hello world."
            follower.close()

    run(scenario())


def test_a_stop_closes_the_upstream_within_a_tenth_of_a_second_and_is_booked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            numbers: list[int] = []
            while len(exchange.log.text()) < 6 or not numbers:
                numbers += [number for number, _ in await follower.next()]
            pending = asyncio.ensure_future(follower.next())  # asking for more says that these were sent
            await asyncio.sleep(0.01)
            began = time.monotonic()
            ended = await exchange.stop(seen=numbers[-1])
            assert time.monotonic() - began < 0.1
            request = await w.server.wait_left(0)
            assert request.left_at is not None and request.left_at - began < 0.1
            assert (ended.outcome, ended.by, ended.shown) == (Outcome.STOPPED, By.VISITOR, numbers[-1])
            assert [event for _, event in await pending] == [ended]
            assert await exchange.stop(seen=1) == ended, "stopping again changes nothing"
            follower.close()
            [row] = await rows(w, exchange.id)
            assert (row.outcome, row.source) == ("stopped", Source.ESTIMATED)
            assert row.completion_tokens and row.prompt_tokens
            stored = await w.store.exchange(exchange.id)
            assert stored is not None and (stored.shown, stored.outcome) == ("Hello ", "stopped")

    run(scenario())


def test_what_a_stopped_visitor_says_they_saw_marks_the_transcript_and_never_erases_the_record(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = [{"say": "one two three", "cut": "words"}, {"gate": "more"}, {"say": "four"}]
        async with world(tmp_path, [script]) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            while exchange.log.text() != "one two three":
                await follower.next()
            nothing_more = asyncio.ensure_future(follower.next())
            await asyncio.sleep(0)
            first = next(n for n, event in exchange.log.after(0) if isinstance(event, Text))
            await exchange.stop(seen=first)
            stored = await w.store.exchange(exchange.id)
            await w.store.flush()
            stored = await w.store.exchange(exchange.id)
            assert stored is not None
            assert stored.generated == "one two three" and stored.shown == exchange.log.text(first)
            assert stored.shown != stored.generated and stored.seen == first
            await nothing_more
            follower.close()

    run(scenario())


@pytest.mark.parametrize("claimed", [-3, 0, 10**9])
def test_a_claim_is_clamped_to_what_was_sent(tmp_path: Path, claimed: int) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            while exchange.log.text() != "Hello ":
                await follower.next()
            await exchange.stop(seen=claimed)
            assert exchange.seen is not None and 0 <= exchange.seen <= exchange.sent
            follower.close()

    run(scenario())


def test_when_the_last_follower_leaves_the_model_is_stopped_even_while_it_is_silent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "Hello "}, {"hold_open_ms": 20000}]]) as w:
            exchange = await w.begin()
            one, two = exchange.follow(), exchange.follow()
            while exchange.log.text() != "Hello ":
                await one.next()
            one.close()
            await asyncio.sleep(0.05)
            assert exchange.ended is None, "another tab still reads"
            began = time.monotonic()
            two.close()
            request = await w.server.wait_left(0)
            assert request.left_at is not None and request.left_at - began < 1
            ended = await exchange.wait()
            assert (ended.outcome, ended.by) == (Outcome.STOPPED, By.DISCONNECT)

    run(scenario())


def test_a_reader_that_can_come_back_finds_the_same_answer_going_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD, [{"say": "another"}]]) as w:
            exchange = await w.begin(key="k")
            follower = exchange.follow(resumable=True)
            last = 0
            while exchange.log.text() != "Hello ":
                last = (await follower.next())[-1][0]
            follower.close()
            assert exchange.state is State.UNWATCHED
            back = await w.begin(key="k")
            assert back is exchange
            w.server.release("more")
            events = await read(back, last)
            assert text(events) == "world."
            assert isinstance(events[-1], Ended) and events[-1].outcome is Outcome.COMPLETE
            assert len(w.server.requests) == 1

    run(scenario())


def test_a_reader_that_said_it_can_come_back_and_does_not_leaves_an_abandoned_exchange(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD], resume_seconds=0.1) as w:
            exchange = await w.begin(key="k")
            follower = exchange.follow(resumable=True)
            while exchange.log.text() != "Hello ":
                await follower.next()
            follower.delivered(follower.number)
            follower.close()
            assert (await exchange.wait()).outcome is Outcome.ABANDONED
            await w.server.wait_left(0)
            await w.store.flush()
            stored = await w.store.exchange(exchange.id)
            assert stored is not None and (stored.outcome, stored.shown) == ("abandoned", "Hello ")

    run(scenario())


def test_without_a_key_nobody_can_come_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            exchange = await w.begin()
            exchange.follow(resumable=True).close()
            assert (await exchange.wait()).outcome is Outcome.STOPPED

    run(scenario())


def test_the_same_key_asked_twice_within_a_moment_is_one_exchange(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "Hi"}], [{"say": "again"}]]) as w:
            both = await asyncio.gather(*(w.begin(key="k") for _ in range(5)))
            assert len({exchange.id for exchange in both}) == 1
            assert [text(await read(exchange)) for exchange in both] == ["Hi"] * 5
            assert (await w.begin(key="k")).id == both[0].id, "also when it is done"
            assert len(w.server.requests) == 1

    run(scenario())


def test_the_same_key_with_another_question_is_a_conflict(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            opening = asyncio.ensure_future(w.begin("One?", key="k"))
            await asyncio.sleep(0)
            with pytest.raises(Conflict):
                await w.begin("Two?", key="k")
            exchange = await opening
            with pytest.raises(Conflict):
                await w.begin("Two?", key="k")
            assert (await w.begin("Two?", key="k", visitor="another")).id != exchange.id
            assert len(w.server.requests) <= 2

    run(scenario())


def test_a_key_is_remembered_across_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "one two three", "cut": "words"}]]) as w:
            before, events = await w.ask(key="k")
        async with world(tmp_path, [[{"say": "again"}]]) as w:
            after = await w.begin(key="k")
            assert after.id == before.id and not w.server.requests
            again = await read(after)
            assert text(again) == "one two three"
            assert isinstance(again[-1], Ended) and again[-1].outcome is Outcome.COMPLETE
            second = [n for n, event in enumerate(events, 1) if isinstance(event, Text)][1]
            rest = await read(await w.exchanges.find(before.id, "v"), second)
            assert text(events[:second]) + text(rest) == "one two three"
            with pytest.raises(Conflict):
                await w.begin("Other?", key="k")

    run(scenario())


def test_what_stops_of_strangers_make_us_remember_is_bounded_in_size_and_in_share(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD, HELD], stops_remembered=20) as w:
            for name in ("k" * 201, "\U0001f68c" * 60, "a\nb", "\ud800"):
                with pytest.raises(NotFound):
                    await w.exchanges.stop(name, "flood")
            assert await w.exchanges.stop("mine", "v") is None
            for number in range(100):
                assert await w.exchanges.stop(f"k{number}", "flood") is None
            _, events = await w.ask(key="mine")
            assert isinstance(events[-1], Ended) and events[-1].outcome is Outcome.STOPPED, (
                "one flood, others keep theirs"
            )
            for number in range(100):
                await w.exchanges.stop("k", f"flood {number}")
            assert len(w.exchanges._stops) <= 20

    run(scenario())


def test_an_exchange_that_is_stopped_before_its_first_step_ends_like_any_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            exchange = await w.begin()
            assert (await exchange.stop()).outcome is Outcome.STOPPED
            assert isinstance((await read(exchange))[-1], Ended)
            assert not w.server.requests
            [row] = await rows(w, exchange.id)  # written with the question
            assert (row.outcome, row.finish) == ("stopped", "not_sent")
            assert (row.prompt_tokens, row.completion_tokens, row.source) == (0, 0, Source.REPORTED)
            stored = await w.store.exchange(exchange.id)
            assert stored is not None and stored.outcome == "stopped"

    run(scenario())


def test_a_first_question_is_in_the_books_with_its_completion_before_anything_is_done_for_it(tmp_path: Path) -> None:
    """One transaction for both; a later question's past is read first, and its completion comes by itself."""

    def written(exchange: Exchange) -> list[tuple[int, str]]:  # not through the store, which would write more first
        with contextlib.closing(sqlite3.connect(tmp_path / "motamot.sqlite3")) as connection:
            query = "SELECT turn, model FROM completions WHERE exchange = ? AND outcome IS NULL"
            return connection.execute(query, (exchange.id,)).fetchall()

    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "One"}], [{"say": "Two"}]]) as w:
            first = await w.begin()
            assert written(first) == [(1, "scripted")]
            assert text(await read(first)) == "One"
            second = await w.begin(conversation=first.begun.conversation)
            assert written(second) == []
            assert text(await read(second)) == "Two"
            for exchange in (first, second):
                assert [(row.turn, row.outcome) for row in await rows(w, exchange.id)] == [(1, "complete")]
            assert not await w.store.verify()

    run(scenario())


def test_a_stop_that_comes_before_its_begin_is_remembered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD, HELD], stop_memory_seconds=0.2) as w:
            assert await w.exchanges.stop("k", "v") is None
            _, events = await w.ask(key="k")
            assert isinstance(events[-1], Ended) and events[-1].outcome is Outcome.STOPPED
            assert await w.exchanges.stop("late", "v") is None
            await asyncio.sleep(0.3)
            late = await w.begin(key="late")
            await asyncio.sleep(0.05)
            assert late.ended is None
            await late.stop()

    run(scenario())


def test_checkpoints_of_many_are_spread_over_the_time_that_each_must_keep(tmp_path: Path) -> None:
    def kept() -> int:
        with contextlib.closing(sqlite3.connect(tmp_path / "motamot.sqlite3")) as connection:
            query = "SELECT count(*) FROM exchanges WHERE generated = 'Hello '"
            return int(connection.execute(query).fetchone()[0])

    async def scenario() -> None:
        async with world(tmp_path, [HELD] * 40, exchanges_per_visitor=40, checkpoint_seconds=1) as w:
            exchanges = [await w.begin() for _ in range(40)]
            while not all(text([one for one in exchange.log.events if one]) for exchange in exchanges):
                await asyncio.sleep(0.005)
            began = time.monotonic()
            seen = {kept()}
            while max(seen) < 40:
                await asyncio.sleep(0.02)
                seen.add(kept())
            assert time.monotonic() - began < 1.5, "within checkpoint_seconds, and half a second for a busy machine"
            assert len(seen) > 2, "never all at once"

    run(scenario())


def test_a_strangers_id_is_not_found(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD]) as w:
            exchange = await w.begin(key="k")
            for name in (exchange.id, "k", "nothing"):
                with pytest.raises(NotFound):
                    await w.exchanges.find(name, "stranger")
            assert await w.exchanges.stop(exchange.id, "stranger") is None
            assert exchange.ended is None
            with pytest.raises(NotFound):
                await w.begin(conversation=exchange.begun.conversation, visitor="stranger")
            with pytest.raises(NotFound):
                await w.begin(conversation="made up")

    run(scenario())


def weather(city: str) -> str:
    """The weather in a city."""
    return f"12 °C in {city}"


def tool_turn(*before: object) -> list[object]:
    return [*before, {"call": {"name": "weather", "arguments": {"city": "Lyon"}}}, {"finish": "tool_calls"}]


def test_a_turn_may_comment_call_a_tool_and_go_on_with_a_blank_line_between(tmp_path: Path) -> None:
    async def scenario() -> None:
        scripts = [tool_turn({"say": "Let me check."}), [{"say": "It is 12 °C."}]]
        async with world(tmp_path, scripts, tools=[weather], system="Be short.") as w:
            exchange, events = await w.ask()
            assert text(events) == "Let me check.\n\nIt is 12 °C."
            called, returned = [event for event in events if isinstance(event, ToolCalled | ToolReturned)]
            assert called == ToolCalled(id=called.id, name="weather") and called.id
            assert returned == ToolReturned(id=called.id, name="weather", status="ok")
            messages = w.server.requests[1].body["messages"]
            assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
            assert messages[2]["content"] == "Let me check."
            assert messages[3]["content"] == "12 °C in Lyon"
            assert messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]
            booked = await rows(w, exchange.id)
            assert [(row.turn, row.attempt, row.outcome) for row in booked] == [(1, 1, "complete"), (2, 1, "complete")]

    run(scenario())


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("a", "b", "a\n\nb"),
        ("a\n", "b", "a\n\nb"),
        ("a\n\n", "b", "a\n\nb"),
        ("a\n\n\n", "b", "a\n\n\nb"),
        ("a", "\nb", "a\n\nb"),
        ("a\n", "\nb", "a\n\nb"),
        ("a", "\n\n\nb", "a\n\n\nb"),
        ("a\r\n\r\n", "b", "a\r\n\r\nb"),
        (" ", " b", " \n\n b"),
        ("", "b", "b"),
        ("a", "", "a"),
    ],
)
def test_line_feeds_are_added_until_two_stand_between_turns_and_none_is_removed(
    tmp_path: Path, first: str, second: str, joined: str
) -> None:
    async def scenario() -> None:
        last = [{"say": second, "cut": "characters"}] if second else [{"finish": "stop"}]
        scripts = [tool_turn(*([{"say": first}] if first else [])), tool_turn(), last]
        async with world(tmp_path, scripts, tools=[weather]) as w:
            _, events = await w.ask()
            assert text(events) == joined

    run(scenario())


def test_tools_run_side_by_side_and_their_results_go_back_in_the_order_of_the_calls(tmp_path: Path) -> None:
    async def slow(ctx: ToolContext, n: int) -> str:
        """Waits."""
        await asyncio.sleep(0.3 / n)
        return f"{ctx.visitor} {n}"

    async def scenario() -> None:
        calls = [{"name": "slow", "arguments": {"n": n}} for n in (1, 2, 3)]
        async with world(tmp_path, [[{"call": calls}, {"finish": "tool_calls"}], [{"say": "ok"}]], tools=[slow]) as w:
            began = time.monotonic()
            _, events = await w.ask()
            assert time.monotonic() - began < 0.5
            messages = w.server.requests[1].body["messages"][-3:]
            assert [message["content"] for message in messages] == ["v 1", "v 2", "v 3"]
            returned = [event.id for event in events if isinstance(event, ToolReturned)]
            assert returned == [message["tool_call_id"] for message in reversed(messages)]

    run(scenario())


def test_a_model_that_calls_tools_for_ever_is_ended_by_its_budget(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [tool_turn() for _ in range(9)], tools=[weather], max_turns=3) as w:
            exchange, events = await w.ask()
            end = events[-1]
            assert isinstance(end, Ended) and (end.outcome, end.code) == (Outcome.FAILED, Code.TOOL_BUDGET)
            assert len(w.server.requests) == 3 == len(await rows(w, exchange.id))

    run(scenario())


def test_a_stop_during_a_tool_ends_the_tool_and_leaves_no_half_call_in_history(tmp_path: Path) -> None:
    started = asyncio.Event()
    cancelled = []

    async def hangs(city: str) -> str:
        """Hangs."""
        started.set()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.append(city)
            raise
        return ""

    async def scenario() -> None:
        call = [{"say": "Wait."}, {"call": {"name": "hangs", "arguments": {"city": "x"}}}, {"finish": "tool_calls"}]
        async with world(tmp_path, [call, [{"say": "Fine."}]], tools=[hangs]) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            await asyncio.wait_for(started.wait(), 5)
            began = time.monotonic()
            await exchange.stop()
            assert time.monotonic() - began < 0.2 and cancelled == ["x"]
            follower.close()
            _, events = await w.ask("Never mind.", conversation=exchange.begun.conversation)
            assert text(events) == "Fine."
            roles = [message["role"] for message in w.server.requests[1].body["messages"]]
            assert "tool" not in roles

    run(scenario())


def test_an_answer_that_is_cut_off_is_failed_and_keeps_what_came(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "One. Two. "}, {"close": "reset"}], [{"say": "Hi."}]]) as w:
            exchange, events = await w.ask()
            end = events[-1]
            assert isinstance(end, Ended)
            assert (end.outcome, end.code, text(events)) == (Outcome.FAILED, Code.UPSTREAM_CUT, "One. Two. ")
            assert end.message and len(w.server.requests) == 1, "no second generation after text"
            [row] = await rows(w, exchange.id)
            assert (row.outcome, row.code, row.source) == ("failed", "upstream_cut", Source.ESTIMATED)
            await w.ask("Second?", conversation=exchange.begun.conversation)
            assert w.server.requests[1].body["messages"][1:] == [
                {"role": "assistant", "content": "One. Two. "},
                {"role": "user", "content": "Second?"},
            ]

    run(scenario())


def test_each_attempt_is_a_row_and_only_a_model_that_surely_did_not_start_is_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        busy = [{"status": 503, "headers": {"Retry-After": "0"}}, {"send": "{}"}]
        async with world(tmp_path, [busy, [{"say": "Hi"}]]) as w:
            exchange, events = await w.ask()
            assert text(events) == "Hi"
            booked = await rows(w, exchange.id)
            assert [(row.turn, row.attempt, row.outcome) for row in booked] == [(1, 1, "failed"), (1, 2, "complete")]
        async with world(tmp_path, [[{"status": 500}, {"send": "boom"}], [{"say": "Hi"}]]) as w:
            exchange, events = await w.ask()
            assert len(w.server.requests) == 1
            assert isinstance(events[-1], Ended) and events[-1].code is Code.UPSTREAM_ERROR

    run(scenario())


def test_a_model_that_raises_leaves_no_row_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RecordedModel):
        def attempt(self, request: TurnRequest) -> Any:
            raise RuntimeError("broken")

    async def scenario() -> None:
        async with world(tmp_path, []) as w:
            w.answer = ModelAnswer(model=Broken(["x"], reason="r"), price=lambda *_: None)
            exchange, events = await w.ask()
            assert isinstance(events[-1], Ended) and events[-1].outcome is Outcome.FAILED
            assert [(row.outcome, row.finish) for row in await rows(w, exchange.id)] == [("failed", "not_sent")]

    run(scenario())


def test_the_providers_own_words_are_kept_for_the_operator_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        failing = [{"status": 402}, {"send": json.dumps({"error": {"message": "insufficient_quota of acme"}})}]
        async with world(tmp_path, [failing]) as w:
            exchange, events = await w.ask()
            end = events[-1]
            assert isinstance(end, Ended) and end.message and "acme" not in end.message
            await w.store.flush()
            stored = await w.store.exchange(exchange.id)
            assert stored is not None and stored.detail is not None and "acme" in stored.detail

    run(scenario())


def test_recorded_samples_stand_in_marked_where_the_model_cannot_be_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        fallback = RecordedModel(["Bonjour !"], reason="no model answered")
        async with world(tmp_path, [[{"status": 500}, {"send": "boom"}]], fallback=fallback) as w:
            exchange, events = await w.ask()
            end = events[-1]
            assert text(events) == "Bonjour !"
            assert isinstance(end, Ended) and (end.outcome, end.marks) == (Outcome.COMPLETE, ("recorded",))
            assert end.message
            booked = await rows(w, exchange.id)
            assert [row.model for row in booked] == ["scripted", fallback.name]
            assert (booked[1].prompt_tokens, booked[1].completion_tokens) == (0, 0), "a sample spends nothing"

    run(scenario())


def test_estimates_learn_from_what_a_model_reported_earlier(tmp_path: Path) -> None:
    async def scenario() -> None:
        told = [{"say": "word " * 200}, {"usage": {"prompt": 10, "completion": 1000}}]
        silent = [{"say": "word " * 200}, {"close": "reset"}]
        async with world(tmp_path, [*[told] * 5, silent]) as w:
            for _ in range(5):
                await w.ask()
            exchange, _ = await w.ask()
            [row] = await rows(w, exchange.id)
            assert row.source is Source.ESTIMATED and row.completion_tokens is not None
            assert 800 <= row.completion_tokens <= 1200, "a token of this model is a byte; by characters it were 250"

    run(scenario())


def test_half_a_report_is_completed_by_an_estimate_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        half = (
            'data: {"choices":[{"index":0,"delta":{"content":"Hello there."},"finish_reason":"stop"}]}\n\n'
            'data: {"choices":[],"usage":{"prompt_tokens":41}}\n\ndata: [DONE]\n\n'
        )
        async with world(tmp_path, [[{"send": half}]]) as w:
            exchange, _ = await w.ask()
            [row] = await rows(w, exchange.id)
            assert (row.prompt_tokens, row.source) == (41, Source.ESTIMATED)
            assert row.completion_tokens is not None and row.completion_tokens >= 2

    run(scenario())


def test_limits_end_an_answer_that_grows_or_lasts_too_long(tmp_path: Path) -> None:
    async def scenario() -> None:
        flood = [{"repeat": 200, "steps": [{"say": "é" * 50}]}, {"hold_open_ms": 5000}]
        async with world(tmp_path, [flood], answer_bytes=5000) as w:
            _, events = await w.ask()
            end = events[-1]
            assert isinstance(end, Ended) and (end.outcome, end.code) == (Outcome.FAILED, Code.LIMIT)
            assert len(text(events).encode()) < 20000
        async with world(tmp_path, [flood], answer_events=20) as w:
            _, events = await w.ask()
            assert isinstance(events[-1], Ended) and events[-1].code is Code.LIMIT
        async with world(tmp_path, [HELD], answer_timeout=0.2) as w:
            exchange, events = await w.ask()
            assert isinstance(events[-1], Ended) and events[-1].code is Code.TIMEOUT
            assert text(events) == "Hello "
            assert [row.code for row in await rows(w, exchange.id)] == ["timeout"]

    run(scenario())


def test_what_strangers_may_have_under_way_is_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD] * 9, exchanges_per_visitor=2, exchanges_running=3) as w:
            for _ in range(2):
                await w.begin()
            with pytest.raises(LimitExceeded) as refused:
                await w.begin()
            assert refused.value.limit == "exchanges_per_visitor"
            await w.begin(visitor="w")
            with pytest.raises(LimitExceeded) as refused:
                await w.begin(visitor="x")
            assert refused.value.limit == "exchanges_running"

    run(scenario())


def test_answers_of_many_tiny_events_fill_the_memory_they_take(tmp_path: Path) -> None:
    async def scenario() -> None:
        tiny = [{"say": "abcde" * 40, "cut": "characters"}, {"gate": "more"}]
        scripts = {"default": "tiny", "scripts": {"tiny": tiny}}
        async with world(tmp_path, scripts, live_bytes=15_000) as w:  # 200 letters, which take a hundred times as much
            exchange = await w.begin()
            async with asyncio.timeout(5):
                while len(exchange.log.events) < 200:
                    await asyncio.sleep(0.05)
            assert exchange.log.characters == 200
            async with asyncio.timeout(5):
                for number in range(100):
                    try:
                        await w.begin(visitor=f"visitor {number}")
                    except LimitExceeded as refused:
                        assert refused.limit == "live_bytes"
                        break
                    await asyncio.sleep(0.1)
                else:
                    pytest.fail("nothing was refused")
            w.server.release("more")

    run(scenario())


@pytest.mark.parametrize(("message", "key"), [("", None), (" \n", None), ("é" * 20, None), ("ok", ""), ("ok", "k" * 9)])
def test_a_bad_question_names_its_field_and_costs_nothing(tmp_path: Path, message: str, key: str | None) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD], message_bytes=30, key_bytes=8) as w:
            with pytest.raises(InvalidRequest) as refused:
                await w.begin(message, key=key)
            assert refused.value.field == ("message" if key is None else "key")
            assert not w.server.requests

    run(scenario())


def test_halves_of_characters_in_a_question_become_replacement_characters(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "ok"}]]) as w:
            await w.ask("a\ud83d b\udc00")
            assert w.server.requests[0].body["messages"][-1]["content"] == "a\ufffd b\ufffd"

    run(scenario())


def test_a_visitor_sees_tool_names_and_status_and_more_only_where_it_is_set(tmp_path: Path) -> None:
    async def scenario() -> None:
        scripts = [tool_turn({"think": "Hmm."}), [{"say": "ok"}]]
        async with world(tmp_path, scripts, tools=[weather]) as w:
            _, events = await w.ask()
            assert not any(isinstance(event, Reasoning) for event in events)
            assert all(event.arguments is None for event in events if isinstance(event, ToolCalled))
        everything = Visible(tool_arguments=True, tool_results=True, reasoning=True)
        async with world(tmp_path, scripts, tools=[weather], visible=everything) as w:
            _, events = await w.ask()
            assert "".join(event.text for event in events if isinstance(event, Reasoning)) == "Hmm."
            assert [event.arguments for event in events if isinstance(event, ToolCalled)] == [{"city": "Lyon"}]
            assert [event.result for event in events if isinstance(event, ToolReturned)] == ["12 °C in Lyon"]

    run(scenario())


def test_shutdown_ends_running_exchanges_as_interrupted_and_books_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [HELD] * 3) as w:
            running = [await w.begin(visitor=str(n)) for n in range(3)]
            for exchange in running:
                follower = exchange.follow()
                while exchange.log.text() != "Hello ":
                    await follower.next()
            await w.exchanges.close()
            assert [exchange.ended.outcome for exchange in running if exchange.ended] == [Outcome.INTERRUPTED] * 3
            for exchange in running:
                assert [row.outcome for row in await rows(w, exchange.id)] == ["interrupted"]
            with pytest.raises(LimitExceeded):
                await w.begin()

    run(scenario())


def test_every_completion_is_one_line_of_json_in_the_log_without_a_word_of_the_conversation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "secret answer"}]]) as w:
            with caplog.at_level(logging.INFO, "motamot.completions"):
                exchange, _ = await w.ask("secret question")
            [record] = [record for record in caplog.records if record.name == "motamot.completions"]
            line = json.loads(record.getMessage())
            assert line["exchange"] == exchange.id and line["outcome"] == "complete"
            assert (line["turn"], line["attempt"], line["model"]) == (1, 1, "scripted")
            assert line["first_delta_ms"] <= line["duration_ms"]
            assert {"prompt_tokens", "completion_tokens", "source"} <= line.keys()
            assert "secret" not in record.getMessage()

    run(scenario())


def test_your_own_answer_keeps_stop_resume_booking_and_transcript(tmp_path: Path) -> None:
    async def skill(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Routed(agent="skill.echo", confidence=1.0, method="word", trace={"secret": 1})
        yield Text("You said \ud83d")
        yield Text("\ude00 " + question.message)
        yield Cited(title="Echo", url="https://example.org/")
        yield TurnEnded(turn=1, finish="stop", usage=Usage(prompt_tokens=4, source=Source.REPORTED))

    async def scenario() -> None:
        answer = OwnAnswer(generator=skill, price=lambda *_: None)
        async with world(tmp_path, [], answer=answer) as w:
            exchange, events = await w.ask("hey")
            assert text(events) == "You said \U0001f600 hey"
            assert [type(event) for event in events[1:]].count(Routed) == 1
            assert next(event.trace for event in events if isinstance(event, Routed)) is None
            [row] = await rows(w, exchange.id)
            assert (row.prompt_tokens, row.source) == (4, Source.REPORTED)

    run(scenario())


def test_your_own_answer_may_hand_over_to_the_model_which_is_booked_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "From the model."}, {"finish": "length"}]]) as w:
            loop = w.answer

            async def own(question: Question) -> AsyncIterator[AnswerEvent]:
                yield Text("First.")
                async for event in question.model_answer():
                    yield event

            w.answer = OwnAnswer(generator=own, price=lambda *_: None, model_answer=loop)  # type: ignore[arg-type]
            exchange, events = await w.ask()
            assert text(events) == "First.From the model."
            assert isinstance(events[-1], Ended) and events[-1].outcome is Outcome.TRUNCATED
            assert len(await rows(w, exchange.id)) == 1

    run(scenario())


def test_a_completion_of_your_own_is_booked_before_it_is_spent_and_once_however_it_ends(tmp_path: Path) -> None:
    reported = Usage(prompt_tokens=9, completion_tokens=3, source=Source.REPORTED)
    open_rows: list[CompletionRow] = []

    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "From the model."}]]) as w:
            loop = w.answer

            async def own(question: Question) -> AsyncIterator[AnswerEvent]:
                async with question.completion("small", prompt="Which?") as completion:
                    open_rows.extend(await w.store.completions(exchange=question.exchange, open_only=True))
                    completion.add("skill")
                    yield completion.done(usage=reported)
                async with question.completion("small", prompt="twenty bytes of text") as completion:
                    completion.add("text")
                    yield Text("text")
                async for event in question.model_answer():
                    yield event
                async with question.completion("small") as completion:
                    yield completion.done("length", usage=reported)
                    with pytest.raises(RuntimeError):
                        completion.done()

            w.answer = OwnAnswer(generator=own, price=lambda *_: None, model_answer=loop)  # type: ignore[arg-type]
            exchange, events = await w.ask()
            [opened] = open_rows
            assert (opened.model, opened.outcome) == ("small", None)
            first, second, third, fourth = await rows(w, exchange.id)
            assert opened.id == first.id
            assert [row.turn for row in (first, second, third, fourth)] == [1, 2, 3, 4]
            assert (first.prompt_tokens, first.completion_tokens, first.source) == (9, 3, Source.REPORTED)
            assert (second.prompt_tokens, second.completion_tokens, second.source) == (5, 1, Source.ESTIMATED)
            assert (second.outcome, third.model, fourth.outcome) == ("complete", "scripted", "truncated")
            assert text(events) == "textFrom the model."

    run(scenario())


@pytest.mark.parametrize("how", ["stopped", "failed", "nonsense"])
def test_a_completion_of_your_own_that_does_not_end_is_booked_by_an_estimate(tmp_path: Path, how: str) -> None:
    reached = asyncio.Event()

    async def own(question: Question) -> AsyncIterator[AnswerEvent]:
        async with question.completion("small", prompt="a" * 40) as completion:
            completion.add("b" * 20)
            yield Text("b" * 20)
            reached.set()
            if how == "failed":
                raise OSError("the framework lost its model")
            if how == "nonsense":
                yield "no event"  # type: ignore[misc]
            await asyncio.sleep(20)

    async def scenario() -> None:
        async with world(tmp_path, [], answer=OwnAnswer(generator=own, price=lambda *_: None)) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            await reached.wait()
            if how == "stopped":
                await exchange.stop()
            await exchange.wait()
            follower.close()
            [row] = await rows(w, exchange.id)
            assert (row.prompt_tokens, row.completion_tokens, row.source) == (10, 5, Source.ESTIMATED)
            assert row.outcome == ("stopped" if how == "stopped" else "failed")

    run(scenario())


def test_your_own_answer_is_closed_when_it_is_stopped(tmp_path: Path) -> None:
    closed: list[str] = []

    async def own(question: Question) -> AsyncIterator[AnswerEvent]:
        try:
            yield Text("a")
            await asyncio.sleep(20)
        finally:
            closed.append(question.exchange)

    async def stubborn(question: Question) -> AsyncIterator[AnswerEvent]:
        while True:
            try:
                yield Text("a")
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                closed.append("swallowed")

    async def scenario(generator: Any) -> None:
        answer = OwnAnswer(generator=generator, price=lambda *_: None)
        async with world(tmp_path, [], answer=answer) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            while not exchange.log.text():
                await follower.next()
            assert (await exchange.stop()).outcome is Outcome.STOPPED
            follower.close()

    run(scenario(own))
    run(scenario(stubborn))
    assert len(closed) == 2


def test_your_own_answer_that_raises_or_yields_nonsense_fails_and_never_shows_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def raises(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Text("a")
        raise RuntimeError("password=hunter2")

    async def nonsense(question: Question) -> AsyncIterator[AnswerEvent]:
        yield "text"  # type: ignore[misc]

    async def forges(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Ended(outcome=Outcome.COMPLETE)

    async def scenario(generator: Any) -> None:
        answer = OwnAnswer(generator=generator, price=lambda *_: None)
        async with world(tmp_path, [], answer=answer) as w:
            _, events = await w.ask()
            end = events[-1]
            assert isinstance(end, Ended) and end.outcome is Outcome.FAILED
            assert end.message and "hunter2" not in end.message
            assert [type(event) for event in events].count(Ended) == 1

    for generator in (raises, nonsense, forges):
        run(scenario(generator))
    assert "raised" in caplog.text
