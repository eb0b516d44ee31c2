"""Every `upstream` case that needs no HTTP server of ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from motamot.answer import AnswerEvent
from motamot.exchange.exchange import Exchange, Follower, Visible
from tests.cases.upstream import Case, Played, Stream, Visitor, cases, check, play
from tests.exchange.support import World, world

# Keys that speak of the bytes of an HTTP response: judged over HTTP.
OVER_HTTP = {
    "response_headers",
    "comments_min",
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


@pytest.mark.parametrize("case", cases("upstream"), ids=lambda case: case["id"])
def test_case(case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expect = case["expect"]

    async def scenario() -> list[str]:
        played = Played()
        seen = Visible(reasoning=True, tool_arguments=True, tool_results=True)
        async with world(tmp_path, case["given"]["requests"], tools=played.tools(case), visible=seen) as w:
            played.server, played.store, played.exchanges, played.visitor = w.server, w.store, w.exchanges, "v"
            await play(played, InProcess(w), case["given"]["client"])
            return await check(played, expect, case)

    with caplog.at_level(logging.WARNING):
        left = asyncio.run(asyncio.wait_for(scenario(), 40))
    assert set(left) <= OVER_HTTP
    for text in expect.get("logs_must_not_contain", []):
        assert text not in caplog.text
