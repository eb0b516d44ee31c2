"""Plays the `upstream` cases of tests/data/cases.jsonl: a scripted model, a scripted client, and motamot between.

The client's side is behind `Visitor`, so that the same runner plays a case in process and over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from motamot.answer import AnswerEvent, Ended, Outcome, Text, TurnEnded
from motamot.answer import Code as Failure
from motamot.exchange.exchanges import Exchanges
from motamot.scripted.model import ScriptedModel
from motamot.store.records import ExchangeRow
from motamot.store.store import Store

CASES = Path(__file__).parent.parent / "data" / "cases.jsonl"
Case = dict[str, Any]


def cases(kind: str) -> list[Case]:
    """All cases whose `given.type` is `kind`."""
    with CASES.open(encoding="utf-8") as lines:
        return [case for case in map(json.loads, lines) if case["given"]["type"] == kind]


class Stream(ABC):
    """An answer being read."""

    @abstractmethod
    async def next(self) -> Sequence[AnswerEvent] | None:
        """What has come since; None when it is over."""

    @abstractmethod
    async def close(self) -> None:
        """Leave without a stop."""


class Visitor(ABC):
    """A user of the stack."""

    @abstractmethod
    async def ask(self, message: str, key: str | None, headers: dict[str, str]) -> Stream: ...
    @abstractmethod
    async def stop(self, shown: int) -> None:
        """Press stop, having shown the first `shown` events."""

    @abstractmethod
    async def reconnect(self, key: str | None, last: str) -> Stream: ...


@dataclass
class Turn:
    """One question of the client, and what it got."""

    stream: Stream
    asked_at: float
    events: list[AnswerEvent] = field(default_factory=list)
    times: list[tuple[float, int]] = field(default_factory=list)  # seconds since the ask, characters of text
    over: bool = False

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Text))

    @property
    def end(self) -> Ended | None:
        return next((event for event in self.events if isinstance(event, Ended)), None)

    async def read(self, until: str | None = None) -> None:
        """Read until the text contains `until`, or to the end."""
        while not self.over and (until is None or until not in self.text):
            events = await self.stream.next()
            if events is None:
                self.over = True
                return
            self.events += events
            self.times.append((time.monotonic() - self.asked_at, len(self.text)))


@dataclass
class Played:
    """What a case led to."""

    server: ScriptedModel
    store: Store
    exchanges: Exchanges
    visitor: str
    turns: list[Turn] = field(default_factory=list)
    tools_run: list[str] = field(default_factory=list)
    tool_started: dict[str, asyncio.Event] = field(default_factory=dict)
    reconnected: Turn | None = None
    new_text: str = ""


async def play(played: Played, visitor: Visitor, actions: Sequence[dict[str, Any]]) -> None:
    """The client's actions, in order."""
    turn: Turn | None = None
    for action in actions:
        match action:
            case {"ask": message}:
                asked_at = time.monotonic()
                stream = await visitor.ask(message, action.get("turn"), action.get("headers", {}))
                turn = Turn(stream, asked_at)
                played.turns.append(turn)
            case {"read_until": text}:
                assert turn is not None
                await asyncio.wait_for(turn.read(text), 20)
            case {"read_to_end": _}:
                assert turn is not None
                await asyncio.wait_for(turn.read(), 30)
            case {"wait_ms": milliseconds}:
                await asyncio.sleep(milliseconds / 1000)
            case {"wait_tool_start": name}:
                await asyncio.wait_for(played.tool_started[name].wait(), 5)
            case {"stop": _}:
                assert turn is not None
                await visitor.stop(len(turn.events))
                await asyncio.wait_for(turn.read(), 5)
            case {"disconnect": _}:
                assert turn is not None
                await turn.stream.close()
            case {"reconnect": {"turn": key, "last_event_id": last}}:
                before = turn
                turn = Turn(await visitor.reconnect(key, last), time.monotonic())
                if before is not None:
                    turn.events += before.events
                played.turns[-1] = played.reconnected = turn
                shown = len(turn.text)
                await asyncio.wait_for(turn.read(), 20)
                played.new_text = turn.text[shown:]
            case {"parallel": clients}:
                await asyncio.gather(*(play(played, visitor, client) for client in clients))
            case _:
                raise AssertionError(f"unknown action {action}")


_OUTCOMES = {
    Outcome.TRUNCATED: "length",
    Outcome.FILTERED: "content_filter",
    Outcome.STOPPED: "stopped",
    Outcome.ABANDONED: "stopped",
    Outcome.INTERRUPTED: "incomplete",
}


def finish(outcome: str | None, code: str | None, last: str | None = None) -> str:
    """An outcome in the words of the cases. last: finish reason of the last turn."""
    if outcome is None:
        return "running"
    if outcome == Outcome.COMPLETE:
        return "unknown" if last == "unknown" else "stop"
    if outcome == Outcome.FAILED:
        return "incomplete" if code == Failure.UPSTREAM_CUT else "error"
    return _OUTCOMES[Outcome(outcome)]


async def check(played: Played, expect: dict[str, Any], case: Case) -> list[str]:
    """Check every key of `expect`; gives the keys that this runner does not judge."""
    await played.store.flush()
    judge = _Judge(played, case, await _rows(played))
    left = []
    for key, value in expect.items():
        method = getattr(judge, key, None)
        if method is None:
            left.append(key)
            continue
        done = method(value)
        if done is not None:
            await done
    return left


async def _rows(played: Played) -> list[ExchangeRow]:
    conversations: dict[str, None] = {}
    for turn in played.turns:
        started = turn.events[0] if turn.events else None
        if started is not None and (conversation := getattr(started, "conversation", None)):
            conversations[conversation] = None
    found: list[ExchangeRow] = []
    for conversation in conversations:
        found += await played.store.history(conversation, played.visitor)
    return found


class _Judge:
    """One method per key of `expect`."""

    def __init__(self, played: Played, case: Case, rows: list[ExchangeRow]) -> None:
        self.played = played
        self.case = case
        self.rows = rows
        self.turn = played.turns[-1]
        self.requests = played.server.requests

    def text(self, value: str) -> None:
        assert self.turn.text == value

    text_last = text

    def text_length(self, value: int) -> None:
        assert len(self.turn.text) == value

    def text_min_chars(self, value: int) -> None:
        assert len(self.turn.text) >= value

    def text_is_start_of(self, value: str) -> None:
        assert value.startswith(self.turn.text)

    def text_by(self, value: list[dict[str, int]]) -> None:
        for point in value:
            had = [count for at, count in self.turn.times if at * 1000 <= point["ms"]]
            assert had and had[-1] >= point["min_chars"], (point, self.turn.times)

    def never_show(self, value: list[str]) -> None:
        shown = "".join(turn.text + "\0" for turn in self.played.turns)
        assert not [text for text in value if text in shown]

    def finish(self, value: str) -> None:
        assert self._finish() == value

    def finish_any_of(self, value: list[str]) -> None:
        assert self._finish() in value

    def _finish(self) -> str:
        end = self.turn.end
        assert end is not None, "the answer has no end"
        last = [event.finish for event in self.turn.events if isinstance(event, TurnEnded)]
        return finish(end.outcome, end.code, last[-1] if last else None)

    def shown_as_complete(self, value: bool) -> None:
        assert self.turn.end is not None
        assert (self.turn.end.outcome is Outcome.COMPLETE) == value

    def usage(self, value: dict[str, int]) -> None:
        assert self.turn.end is not None and self.turn.end.usage is not None
        usage = self.turn.end.usage
        assert {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens} == value

    def error(self, value: dict[str, Any] | None) -> None:
        end = self.turn.end
        assert end is not None
        if value is None:
            assert end.code is None
            return
        assert end.outcome is Outcome.FAILED and end.message
        kept = " ".join(f"{row.code} {row.message} {row.detail}" for row in self.rows)
        assert not value.get("contains") or value["contains"] in kept
        assert not value.get("contains_any") or any(text in kept for text in value["contains_any"])

    def upstream_requests(self, value: int) -> None:
        assert len(self.requests) == value

    def upstream_requests_max(self, value: int) -> None:
        assert len(self.requests) <= value

    def upstream_request(self, value: dict[str, dict[str, bool]]) -> None:
        for number, properties in value.items():
            body = self.requests[int(number)].body
            seen = {"stream": body.get("stream", False), "has_tools": bool(body.get("tools"))}
            assert {key: seen[key] for key in properties} == properties

    def next_request(self, value: dict[str, Any]) -> None:
        messages = self.requests[-1].body["messages"]
        told = json.dumps(messages, ensure_ascii=False)
        calls = [call for message in messages for call in message.get("tool_calls") or []]
        answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        roles = [message["role"] for message in messages if message["role"] in ("user", "assistant")]
        for key, expected in value.items():
            match key:
                case "must_contain":
                    assert all(text in told for text in expected)
                case "must_not_contain":
                    assert not [text for text in expected if text in told]
                case "roles_alternate":
                    plain = [role for role, after in zip(roles, [*roles[1:], ""], strict=True) if role != after]
                    assert (plain == roles) == expected or calls
                case "every_tool_call_answered":
                    assert (sorted(call["id"] for call in calls) == sorted(answered)) == expected
                case "tool_ids_nonempty_unique":
                    ids = [call["id"] for call in calls]
                    assert (all(ids) and len(set(ids)) == len(ids)) == expected
                case "all_tool_arguments_are_json":
                    for call in calls:
                        json.loads(call["function"]["arguments"])
                case _:
                    raise AssertionError(f"unknown key {key}")

    def tools_run(self, value: list[str]) -> None:
        assert self.played.tools_run == value

    async def cancelled(self, value: bool) -> None:
        for request in self.requests:
            if request.cancel_seconds is not None:
                assert request.cancelled == value

    async def open_turns_after_ms(self, value: dict[str, int]) -> None:
        assert len(self.played.exchanges.running) <= value["count"]
        assert not await self.played.store.completions(open_only=True)

    async def billed(self, value: dict[str, Any]) -> None:
        booked = [row for one in self.rows for row in await self.played.store.completions(exchange=one.id)]
        prompt = sum(row.prompt_tokens or 0 for row in booked)
        completion = sum(row.completion_tokens or 0 for row in booked)
        for key, expected in value.items():
            match key:
                case "times":
                    assert len(booked) == expected
                case "times_max":
                    assert len(booked) <= expected
                case "prompt_tokens":
                    assert prompt == expected
                case "completion_tokens":
                    assert completion == expected
                case "completion_tokens_min":
                    assert completion >= expected
                case "completion_tokens_max":
                    assert completion <= expected
                case "source_any_of":
                    assert {str(row.source) for row in booked} <= set(expected)
                case _:
                    raise AssertionError(f"unknown key {key}")

    def saved(self, value: list[dict[str, Any]]) -> None:
        assert len(self.rows) == len(value)
        for row, expected in zip(self.rows, value, strict=True):
            status = finish(row.outcome, row.code)
            for key, one in expected.items():
                match key:
                    case "role":
                        assert one == "assistant" and row.shown is not None
                    case "text":
                        assert row.shown == one
                    case "text_starts":
                        assert (row.shown or "").startswith(one)
                    case "text_equals_seen":
                        assert (row.shown == self.turn.text) == one
                    case "status":
                        assert status == one
                    case "status_any_of":
                        assert status in one
                    case _:
                        raise AssertionError(f"unknown key {key}")

    def saved_count(self, value: int) -> None:
        assert len({row.id for row in self.rows}) == value

    def saved_assistant_text(self, value: str) -> None:
        assert [row.shown for row in self.rows] == [value]

    def reconnect_reply(self, value: dict[str, Any]) -> None:
        assert self.played.reconnected is not None
        if "new_text" in value:
            assert self.played.new_text == value["new_text"]
        if "text_on_screen" in value:
            assert self.played.reconnected.text == value["text_on_screen"]

    def replayed_events(self, value: int) -> None:
        assert value == 0
        reconnected = self.played.reconnected
        assert reconnected is not None
        assert [type(event) for event in reconnected.events].count(Ended) <= 1
