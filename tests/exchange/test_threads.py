"""Conversations that clients have names of their own for, and what they bring beside a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from motamot.errors import Conflict, NotFound
from tests.exchange.support import run, world


def test_a_thread_is_one_conversation_which_its_first_question_makes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [[{"say": "One."}], [{"say": "Two."}]]) as w:
            first, _ = await w.ask("A", thread="holidays")
            second, _ = await w.ask("B", thread="holidays")
            assert first.begun.conversation == second.begun.conversation != "holidays"
            told = w.server.requests[1].body["messages"]
            assert [message["content"] for message in told] == ["A", "One.", "B"]

    run(scenario())


def test_a_thread_s_name_is_one_visitor_s_own_and_one_assistant_s(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, {"default": "hi", "scripts": {"hi": "Hi."}}) as w:
            asked = [{}, {"visitor": "other"}, {"assistant": "train"}, {"thread": "holidays2"}]
            made = [(await w.ask("A", **{"thread": "holidays", **each}))[0] for each in asked]
            assert len({exchange.begun.conversation for exchange in made}) == len(asked)
            assert [request.body["messages"] for request in w.server.requests] == [
                [{"role": "user", "content": "A"}]
            ] * len(asked)

    run(scenario())


def test_a_deleted_thread_does_not_come_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, {"default": "hi", "scripts": {"hi": "Hi."}}) as w:
            exchange, _ = await w.ask("A", thread="holidays")
            await w.exchanges.delete_conversation(exchange.begun.conversation, "v")
            with pytest.raises(NotFound):
                await w.ask("B", thread="holidays")
            assert len(w.server.requests) == 1

    run(scenario())


@pytest.mark.parametrize("other", [{"thread": "work"}, {"brought": "another history"}])
def test_the_same_key_in_another_thread_or_with_another_history_is_a_conflict(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    async def scenario() -> None:
        asked = {"thread": "holidays", "key": "run-1", "brought": "a history"}
        async with world(tmp_path, [[{"say": "One."}]]) as w:
            first, _ = await w.ask("A", **asked)
            assert (await w.ask("A", **asked))[0].id == first.id
            with pytest.raises(Conflict):
                await w.ask("A", **{**asked, **other})
            assert len(w.server.requests) == 1

    run(scenario())
