"""Every `upstream` case that needs no HTTP server of ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent
from motamot.exchange.exchange import Exchange, Follower
from tests.cases.upstream import Case, Played, Stream, Visitor, cases, check, play
from tests.exchange.support import World, world

# Keys that speak of the bytes of an HTTP response: judged over HTTP.
OVER_HTTP = {
    "response_headers",
    "comments_before_text_min",
    "events_from_comments",
    "every_event_parses",
    "wire",
    "findings",  # of the wire checker
    "no_findings",
    "logs_must_not_contain",  # judged below
}


class Following(Stream):
    def __init__(self, follower: Follower) -> None:
        self.follower = follower

    async def next(self) -> Sequence[AnswerEvent] | None:
        batch = await self.follower.next()
        self.follower.delivered(self.follower.number)
        return [event for _, event in batch] or None

    async def close(self) -> None:
        self.follower.close()


class InProcess(Visitor):
    """A program that uses the exchanges itself."""

    def __init__(self, w: World) -> None:
        self.world = w
        self.conversation: str | None = None
        self.exchange: Exchange | None = None
        self.number = 0

    async def ask(self, message: str, key: str | None, headers: dict[str, str]) -> Stream:
        exchange = await self.world.begin(message, key=key, conversation=None if key else self.conversation)
        self.exchange = exchange
        self.conversation = exchange.begun.conversation
        return Following(exchange.follow(resumable=key is not None))

    async def stop(self, shown: int) -> None:
        assert self.exchange is not None
        await self.exchange.stop(seen=shown)

    async def reconnect(self, key: str | None, last: str) -> Stream:
        assert key is not None and self.exchange is not None
        after = self.exchange.sent if last == "last" else 0
        return Following(await self.world.exchanges.follow(key, "v", after=after, resumable=True))


def tools_of(case: Case, played: dict[str, Played]) -> list[Callable[..., Any]]:
    """The tools a case declares: they accept any arguments."""
    made = []
    for name, about in (case["given"].get("tools") or {}).items():
        made.append(_tool(name, about, played))
    return made


def _tool(name: str, about: dict[str, Any], played: dict[str, Played]) -> Callable[..., Any]:
    async def tool(**arguments: Any) -> str:
        """A tool."""
        run = played["played"]
        run.tools_run.append(name)
        run.tool_started[name].set()
        await asyncio.sleep(about.get("takes_ms", 0) / 1000)
        return str(about["returns"])

    tool.__name__ = name
    return tool


@pytest.mark.parametrize("case", cases("upstream"), ids=lambda case: case["id"])
def test_case(case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expect = case["expect"]

    async def scenario() -> list[str]:
        holder: dict[str, Played] = {}
        async with world(tmp_path, case["given"]["requests"], tools=tools_of(case, holder)) as w:
            played = Played(w.server, w.store, w.exchanges, "v")
            played.tool_started = {name: asyncio.Event() for name in case["given"].get("tools") or {}}
            holder["played"] = played
            await play(played, InProcess(w), case["given"]["client"])
            return await check(played, expect, case)

    with caplog.at_level(logging.WARNING):
        left = asyncio.run(asyncio.wait_for(scenario(), 40))
    assert set(left) <= OVER_HTTP
    for text in expect.get("logs_must_not_contain", []):
        assert text not in caplog.text
