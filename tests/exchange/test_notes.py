"""What the books get of an exchange beside its text: for the operator, whatever the visitor saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent, By, Reasoning, Text, ToolCalled, ToolReturned, TurnEnded
from motamot.errors import NotFound
from motamot.exchange.own import OwnAnswer, Question
from motamot.exchange.tools import ToolContext
from motamot.store.prices import price
from motamot.store.views import Detail
from tests.exchange.support import World, read, run, text, world

CALLS = [
    [{"think": "Which order?"}, {"call": {"name": "status", "arguments": {"order": "A1"}}}],
    [{"say": ["It is ", "on its way."]}, {"usage": {"prompt": 9, "completion": 3}}],
]


async def status(ctx: ToolContext, order: str) -> str:
    """The status of an order."""
    await asyncio.sleep(0.02)
    return f"{order}: sent"


async def detail_of(w: World, exchange: str) -> Detail:
    await w.store.flush()
    detail = await w.store.detail(exchange)
    assert detail is not None
    assert await w.store.verify() == []
    return detail


def test_arguments_results_and_reasoning_are_kept_though_no_visitor_sees_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, CALLS, tools=[status]) as w:
            exchange, events = await w.ask()
            assert not any(isinstance(event, Reasoning) for event in events)
            detail = await detail_of(w, exchange.id)
            told = [event for _, _, event in detail.events]
            assert [event.text for event in told if isinstance(event, Reasoning)] == ["Which order?"]
            assert [event.arguments for event in told if isinstance(event, ToolCalled)] == [{"order": "A1"}]
            assert [event.result for event in told if isinstance(event, ToolReturned)] == ["A1: sent"]
            assert len([event for event in told if isinstance(event, TurnEnded)]) == 2
            numbered = [(number, type(event)) for number, _, event in detail.events if number]
            assert numbered == [(number, type(event)) for number, event in enumerate(events, 1)]

    run(scenario())


def test_every_event_has_the_time_at_which_it_came(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"wait": 100}, {"say": "One "}, {"wait": 200}, {"say": "two."}]]) as w:
            exchange, _ = await w.ask()
            detail = await detail_of(w, exchange.id)
            times = [at for _, at, _ in detail.events]
            assert all(at is not None for at in times)
            assert times == sorted(times, key=lambda at: at or 0.0)
            one, two = (at for _, at, event in detail.events if isinstance(event, Text))
            assert one is not None
            assert two is not None
            assert 0.1 <= one < 2
            assert 0.15 <= two - one < 2
            assert detail.first_text == pytest.approx(one, abs=0.001)
            assert (detail.stop_asked, detail.stop_closed) == (None, None)

    run(scenario())


def test_a_stop_has_its_moment_and_that_of_the_upstream_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "Hello "}, {"gate": "never"}]]) as w:
            exchange = await w.begin()
            follower = exchange.follow()
            while "Hello" not in exchange.log.text():
                await follower.next()
            await asyncio.sleep(0.1)
            await exchange.stop(by=By.OPERATOR)
            detail = await detail_of(w, exchange.id)
            assert detail.stop_asked is not None
            assert detail.stop_closed is not None
            assert detail.first_text is not None
            assert detail.first_text + 0.1 <= detail.stop_asked <= detail.stop_closed < detail.stop_asked + 1
            follower.close()

    run(scenario())


def test_of_an_answer_that_swallows_its_stop_nobody_says_when_the_upstream_was_closed(tmp_path: Path) -> None:
    async def stubborn(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Text("Hello")
        for _ in range(20):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue

    async def scenario() -> None:
        answer = OwnAnswer(generator=stubborn, price=price, model_answer=None)
        async with world(tmp_path, [], answer=answer, stop_seconds=0.1) as w:
            exchange = await w.begin()
            await asyncio.sleep(0.05)
            await exchange.stop()
            detail = await detail_of(w, exchange.id)
            assert detail.stop_asked is not None
            assert detail.stop_closed is None

    run(scenario())


def test_what_tools_give_is_kept_up_to_a_bound_and_the_rest_is_said_to_be_left_out(tmp_path: Path) -> None:
    async def many(question: Question) -> AsyncIterator[AnswerEvent]:
        for number in range(5):
            yield ToolReturned(id=str(number), name="t", status="ok", result="x" * 400)
        yield ToolCalled(id="c", name="t", arguments={"object": object()})
        for _ in range(10):
            yield Reasoning("y" * 200)
        yield Text("done")

    async def scenario() -> None:
        answer = OwnAnswer(generator=many, price=price, model_answer=None)
        async with world(tmp_path, [], answer=answer, details_bytes=1_000) as w:
            exchange, _ = await w.ask()
            detail = await detail_of(w, exchange.id)
            results = [event.result for _, _, event in detail.events if isinstance(event, ToolReturned)]
            assert results == ["x" * 400] * 2 + [None] * 3
            assert [event.text for _, _, event in detail.events if isinstance(event, Reasoning)] == ["y" * 200]
            assert detail.omitted == 3 + 1 + 9
            assert detail.row.shown == "done"
            assert exchange.log.aside == 0  # held no longer than it is needed
            assert len(exchange.log.times) == 0

    run(scenario())


def test_what_is_held_for_the_operator_counts_as_memory(tmp_path: Path) -> None:
    async def talkative(question: Question) -> AsyncIterator[AnswerEvent]:
        yield ToolReturned(id="1", name="t", status="ok", result="x" * 50_000)
        await asyncio.sleep(60)

    async def scenario() -> None:
        answer = OwnAnswer(generator=talkative, price=price, model_answer=None)
        async with world(tmp_path, [], answer=answer) as w:
            exchange = await w.begin()
            while len(exchange.log.events) < 2:
                await asyncio.sleep(0.01)
            assert exchange.log.held > 50_000
            await exchange.stop()

    run(scenario())


def test_what_went_out_after_the_end_was_booked_counts_as_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": ["Hello ", "world."]}]]) as w:
            exchange = await w.begin()
            await exchange.wait()  # the end is booked, and nothing was read yet
            assert (await detail_of(w, exchange.id)).sent == ""
            events = await read(exchange)
            assert text(events) == "Hello world."
            assert (await detail_of(w, exchange.id)).sent == "Hello world."

    run(scenario())


def test_redaction_is_between_the_exchange_and_the_disk_alone(tmp_path: Path) -> None:
    """The model is asked as the visitor asked, and the visitor reads what it wrote; the books have the rest."""

    def redact(told: str) -> str:
        return told.replace("secret", "[gone]")

    async def scenario() -> None:
        async with world(tmp_path, [[{"say": ["The sec", "ret ", "is out."]}], [{"say": "Again."}]]) as w:
            begin = w.exchanges.begin

            async def redacting(*given: Any, **more: Any) -> Any:
                return await begin(*given, redact=redact, **more)

            w.exchanges.begin = redacting  # type: ignore[method-assign]
            exchange, events = await w.ask("my secret?")
            assert text(events) == "The secret is out."
            assert "my secret?" in str(w.server.requests[0].body)
            detail = await detail_of(w, exchange.id)
            assert (detail.row.question, detail.row.shown) == ("my [gone]?", "The [gone] is out.")
            assert detail.row.marks == ("redacted",)
            await w.ask("and now?", conversation=exchange.begun.conversation)
            assert "The [gone] is out." in str(w.server.requests[1].body)
            assert "secret" not in str(w.server.requests[1].body)

    run(scenario())


def test_a_visitor_is_deleted_though_an_answer_is_running(tmp_path: Path) -> None:
    """It is stopped, nothing of it can be read again, and no text is left; others keep theirs."""

    async def scenario() -> None:
        scripts = [[{"say": "Done."}], [{"say": "Other."}], [{"say": "Hello "}, {"gate": "never"}]]
        async with world(tmp_path, scripts) as w:
            first, _ = await w.ask("first?", visitor="me", key="k1")
            other, _ = await w.ask("other?", visitor="else")
            running = await w.begin("second?", visitor="me", key="k2")
            follower = running.follow()
            while "Hello" not in running.log.text():
                await follower.next()
            assert await w.exchanges.delete_visitor("me") == 2
            assert running.ended is not None
            assert (running.ended.outcome, running.ended.by) == ("stopped", "operator")
            follower.close()
            for name in (first.id, running.id, "k1", "k2"):
                with pytest.raises(NotFound):
                    await w.exchanges.find(name, "me")
            for exchange in (first, running):
                row = await w.store.exchange(exchange.id)
                assert row is not None
                assert (row.question, row.generated, row.outcome is None) == (None, None, False)
            assert (await detail_of(w, other.id)).row.shown == "Other."
            assert await w.exchanges.delete_visitor("me") == 0

    run(scenario())
