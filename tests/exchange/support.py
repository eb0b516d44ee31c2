"""A real model server, a real client, a real database: what the exchange's tests stand on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from motamot.answer import AnswerEvent, Text
from motamot.exchange.exchange import Answer, Exchange, Visible
from motamot.exchange.exchanges import Asking, Exchanges
from motamot.exchange.loop import ModelAnswer
from motamot.exchange.tools import tool_from
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.scripted.model import ScriptedModel
from motamot.store.prices import PriceBook
from motamot.store.store import Store


@dataclass
class World:
    """Everything around an exchange."""

    server: ScriptedModel
    store: Store
    exchanges: Exchanges
    answer: Answer
    limits: Limits
    visible: Visible

    async def begin(self, message: str = "Hello", **asking: Any) -> Exchange:
        question = Asking(message=message, visitor=asking.pop("visitor", "v"), model="scripted", **asking)
        return await self.exchanges.begin(question, self.answer, limits=self.limits, visible=self.visible)

    async def ask(self, message: str = "Hello", **asking: Any) -> tuple[Exchange, list[AnswerEvent]]:
        """Begin, and read to the end."""
        exchange = await self.begin(message, **asking)
        return exchange, await read(exchange)


@asynccontextmanager
async def world(
    tmp_path: Path,
    scripts: object,
    *,
    tools: Sequence[Callable[..., Any]] = (),
    answer: Answer | None = None,
    fallback: Any = None,
    visible: Visible = Visible(),
    system: str | None = None,
    **limits: Any,
) -> AsyncIterator[World]:
    bounds = Limits(**limits)
    async with ScriptedModel(scripts) as server:
        model = HttpModel(server.url, "scripted", limits=bounds)
        store = await asyncio.to_thread(Store.open, tmp_path / "motamot.sqlite3", limits=bounds)
        exchanges = Exchanges(store, bounds)
        loop = ModelAnswer(
            model=model,
            price=partial(PriceBook().cost, "default"),
            tools=[tool_from(function) for function in tools],
            system=system,
            fallback=fallback,
        )
        try:
            yield World(server, store, exchanges, answer or loop, bounds, visible)
        finally:
            await exchanges.close()
            await model.close()
            await store.close()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 30))


async def read(exchange: Exchange, after: int = 0) -> list[AnswerEvent]:
    """All events behind `after`, to the end."""
    events: list[AnswerEvent] = []
    async with exchange.follow(after) as follower:
        while batch := await follower.next():
            events += [event for _, event in batch]
    return events


def text(events: Sequence[AnswerEvent]) -> str:
    """The answer text of these events."""
    return "".join(event.text for event in events if isinstance(event, Text))
