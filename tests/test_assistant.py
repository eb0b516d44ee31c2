"""An assistant in Python: asked with no server at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from motamot import Assistant, Ended, Limits, Outcome, Question, Started, Text, ToolReturned, Usage
from motamot.answer import AnswerEvent, By, Source
from motamot.errors import InvalidRequest, ModelUnavailable, NotFound, SettingsError
from motamot.scripted.model import ScriptedModel
from motamot.store.prices import Prices
from motamot.store.store import Store

HELD = [{"say": "Hello "}, {"gate": "more"}, {"say": "world."}]


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "AI_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MOTAMOT_DATABASE", str(tmp_path / "books" / "motamot.sqlite3"))
    yield


def run(coroutine: Any) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 30))


async def order_status(order: str) -> str:
    """Where an order is."""
    return f"order {order}: on its way"


def test_asking_gives_the_events_of_one_answer_with_its_tools_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        calls = [{"call": {"name": "order_status", "arguments": {"order": "7"}}}, {"finish": "tool_calls"}]
        async with ScriptedModel([calls, [{"say": "On its way."}]]) as server:
            chat = Assistant(upstream=server.url, model="m", tools=[order_status], system="Be kind.")
            async with chat.ask("Where is order 7?") as exchange:
                events = [event async for event in exchange]
            assert isinstance(events[0], Started) and isinstance(events[-1], Ended)
            assert exchange.text == "On its way." and exchange.outcome is Outcome.COMPLETE
            assert any(isinstance(event, ToolReturned) and event.status == "ok" for event in events)
            assert "on its way" in str(server.requests[1].body["messages"])
            assert exchange.usage.prompt_tokens > 0
        store = Store.open(tmp_path / "books" / "motamot.sqlite3")
        assert [row.outcome for row in await store.completions(exchange=exchange.id)] == ["complete"] * 2
        await store.close()

    run(scenario())


def test_leaving_early_stops_the_model_and_the_transcript_holds_what_was_read() -> None:
    async def scenario() -> None:
        async with ScriptedModel([HELD]) as server:
            chat = Assistant(upstream=server.url, model="m")
            async with chat, chat.ask("Hello") as exchange:
                async for event in exchange:
                    if isinstance(event, Text):
                        break
                await exchange.close()
                assert exchange.ended is not None
                assert (exchange.ended.outcome, exchange.ended.by) == (Outcome.STOPPED, By.DISCONNECT)
                await server.wait_left(0)
                stored = await chat.exchanges.store.exchange(exchange.id)
                assert stored is not None and stored.shown == "Hello "

    run(scenario())


def test_an_exception_inside_stops_the_model() -> None:
    async def scenario() -> None:
        async with ScriptedModel([HELD]) as server:
            chat = Assistant(upstream=server.url, model="m")
            with pytest.raises(ZeroDivisionError):
                async with chat.ask("Hello") as exchange:
                    async for event in exchange:
                        if isinstance(event, Text):
                            raise ZeroDivisionError
            assert exchange.outcome is Outcome.STOPPED
            await server.wait_left(0)

    run(scenario())


def test_a_stop_says_what_was_read() -> None:
    async def scenario() -> None:
        async with ScriptedModel([HELD]) as server:
            chat = Assistant(upstream=server.url, model="m")
            async with chat.ask("Hello") as exchange:
                async for event in exchange:
                    if isinstance(event, Text):
                        ended = await exchange.stop()
                        assert (ended.outcome, ended.by, ended.shown) == (Outcome.STOPPED, By.VISITOR, 2)

    run(scenario())


def test_a_conversation_goes_on_and_is_its_visitors_alone() -> None:
    async def scenario() -> None:
        async with ScriptedModel([[{"say": "One."}], [{"say": "Two."}]]) as server:
            chat = Assistant(upstream=server.url, model="m")
            async with chat.ask("First?") as first:
                async for _ in first:
                    pass
            async with chat.ask("Second?", conversation=first.conversation) as second:
                async for _ in second:
                    pass
            contents = [message["content"] for message in server.requests[1].body["messages"]]
            assert contents == ["First?", "One.", "Second?"]
            with pytest.raises(NotFound):
                async with chat.ask("?", conversation=first.conversation, visitor="stranger"):
                    pass

    run(scenario())


def test_an_assistant_may_be_used_from_one_event_loop_after_another() -> None:
    chat = Assistant(model="m", upstream="http://127.0.0.1:9/v1")

    async def scenario() -> None:
        async with ScriptedModel([[{"say": "Hi."}]]) as server:
            chat._upstream = server.url
            async with chat.ask("Hello") as exchange:
                async for _ in exchange:
                    pass
            assert exchange.text == "Hi."

    run(scenario())
    run(scenario())


def test_many_may_ask_at_once_from_inside_one_open_assistant() -> None:
    async def scenario() -> None:
        async with ScriptedModel([[{"say": "Hi."}]] * 20) as server:
            chat = Assistant(upstream=server.url, model="m", limits=Limits(exchanges_per_visitor=50))

            async def one() -> str:
                async with chat.ask("Hello") as exchange:
                    async for _ in exchange:
                        pass
                return exchange.text

            assert await asyncio.gather(*(one() for _ in range(20))) == ["Hi."] * 20

    run(scenario())


def test_an_answer_of_your_own_needs_no_model() -> None:
    async def scenario() -> None:
        chat = Assistant()

        @chat.answer
        async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
            yield Text(f"You said: {question.message}")

        async with chat.ask("hey") as exchange:
            async for _ in exchange:
                pass
        assert exchange.text == "You said: hey"

    run(scenario())


def test_the_environment_names_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with ScriptedModel([[{"say": "Hi."}]], api_key="sk-test") as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            monkeypatch.setenv("OPENAI_MODEL", "m")
            async with Assistant().ask("Hello") as exchange:
                async for _ in exchange:
                    pass
            assert exchange.text == "Hi." and server.requests[0].body["model"] == "m"

    run(scenario())


def test_prices_of_your_own_are_booked() -> None:
    async def scenario() -> None:
        async with ScriptedModel([[{"say": "Hi."}, {"usage": {"prompt": 1000, "completion": 500}}]]) as server:
            chat = Assistant(upstream=server.url, model="m", prices=Prices(input=1.0, output=2.0, currency="EUR"))
            async with chat, chat.ask("Hello") as exchange:
                async for _ in exchange:
                    pass
                assert exchange.usage == Usage(prompt_tokens=1000, completion_tokens=500, source=Source.REPORTED)
                [row] = await chat.exchanges.store.completions(exchange=exchange.id)
                assert row.cost == pytest.approx(0.002) and row.currency == "EUR"

    run(scenario())


def test_what_cannot_work_is_said_before_anything_is_asked() -> None:
    async def ask(chat: Assistant, message: str = "Hello") -> None:
        async with chat.ask(message):
            pass

    with pytest.raises(SettingsError):
        run(ask(Assistant(upstream="not an address", model="m")))
    with pytest.raises(InvalidRequest):
        run(ask(Assistant(upstream="http://127.0.0.1:9/v1", model="m"), " "))
    with pytest.raises(ModelUnavailable):
        run(ask(Assistant()))


def test_what_the_model_does_wrong_is_the_outcome_not_an_exception() -> None:
    async def scenario() -> None:
        chat = Assistant(upstream="http://127.0.0.1:9/v1", model="m")
        async with chat.ask("Hello") as exchange:
            async for _ in exchange:
                pass
        assert exchange.outcome is Outcome.FAILED

    run(scenario())


def test_samples_stand_in_marked_where_there_is_no_model_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")  # nobody listens on the port for discarding

    async def scenario() -> None:
        async with Assistant(recorded=["A sample."]).ask("Hello") as asked:
            async for _ in asked:
                pass
        assert asked.text == "A sample."
        assert asked.ended is not None and asked.ended.marks == ("recorded",)

    run(scenario())
