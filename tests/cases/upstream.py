"""Plays the `upstream` cases of tests/data/cases.jsonl: a scripted model, a scripted client, and motamot between.

The client's side is behind `Visitor`, so that the same runner plays a case in process and over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from motamot.answer import AnswerEvent, Ended, Outcome, Reasoning, Text, ToolCalled, TurnEnded
from motamot.answer import Code as Failure
from motamot.exchange.exchanges import Exchanges
from motamot.scripted.model import ScriptedModel
from motamot.sse import Decoder
from motamot.store.records import ExchangeRow
from motamot.store.store import Store

CASES = Path(__file__).parent.parent / "data" / "cases.jsonl"
Case = dict[str, Any]


def cases(kind: str) -> list[Case]:
    """All cases whose `given.type` is `kind`."""
    with CASES.open(encoding="utf-8") as lines:
        return [case for case in map(json.loads, lines) if case["given"]["type"] == kind]


class Stream(ABC):
    """An answer being read.

    status: of its HTTP response, where there is one. again: events that were had before and came anew.
    """

    status: int | None = None
    again: int = 0

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
    ended_at: float | None = None

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
                self.ended_at = time.monotonic()
                return
            self.events += events
            self.times.append((time.monotonic() - self.asked_at, len(self.text)))


@dataclass
class Played:
    """What a case led to."""

    server: ScriptedModel = field(init=False)
    store: Store = field(init=False)
    exchanges: Exchanges = field(init=False)
    visitor: str = field(init=False)
    turns: list[Turn] = field(default_factory=list)
    tools_run: list[str] = field(default_factory=list)
    tool_arguments: list[dict[str, Any]] = field(default_factory=list)  # of each run
    tool_started: dict[str, asyncio.Event] = field(default_factory=dict)
    reconnected: Turn | None = None
    new_text: str = ""

    def tools(self, case: Case) -> list[Callable[..., Any]]:
        """The tools a case declares: they accept any arguments."""
        declared = case["given"].get("tools") or {}
        self.tool_started = {name: asyncio.Event() for name in declared}
        return [self._tool(name, about) for name, about in declared.items()]

    def _tool(self, name: str, about: dict[str, Any]) -> Callable[..., Any]:
        async def tool(**arguments: Any) -> str:
            """A tool."""
            self.tools_run.append(name)
            self.tool_arguments.append(arguments)
            self.tool_started[name].set()
            await asyncio.sleep(about.get("takes_ms", 0) / 1000)
            return str(about["returns"])

        tool.__name__ = name
        return tool


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
                if action.get("disconnect_after") == "headers":
                    await stream.close()
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

    def text_or_error(self, value: str) -> None:
        assert self.turn.text == value or self._finish() in ("error", "incomplete")

    def text_stripped(self, value: str) -> None:
        assert self.turn.text.strip() == value.strip()

    def encodable(self, value: bool) -> None:
        assert value
        self.turn.text.encode()

    def must_not_raise(self, value: bool) -> None:
        """Whatever gets out fails the test by itself."""

    def text_by(self, value: list[dict[str, int]]) -> None:
        clients = 2 if "second_client_text_by" in self.case["expect"] else 1
        self._text_by(self.played.turns[-clients], value)

    def second_client_text_by(self, value: list[dict[str, int]]) -> None:
        self._text_by(self.turn, value)

    def _text_by(self, turn: Turn, value: list[dict[str, int]]) -> None:
        for point in value:
            had = [count for at, count in turn.times if at * 1000 <= point["ms"]]
            assert had and had[-1] >= point["min_chars"], (point, turn.times)

    def forward_lag_ms_max(self, value: float) -> None:
        """From the model's write of a piece to the client's having its text."""
        decoder, sent = Decoder(max_event_bytes=1 << 24), 0
        for piece in self.requests[-1].pieces:
            for event in decoder.feed(piece.data or b""):
                sent += _characters(event.data)
            had = [self.turn.asked_at + at for at, count in self.turn.times if count >= sent]
            if sent:
                assert had and (had[0] - piece.at) * 1000 <= value, (piece, had[:1])

    def finished_within_ms(self, value: float) -> None:
        assert self.turn.ended_at is not None
        assert (self.turn.ended_at - self.turn.asked_at) * 1000 <= value

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

    def reasoning(self, value: str) -> None:
        assert self._reasoning() == value

    def reasoning_stripped(self, value: str) -> None:
        assert self._reasoning().strip() == value.strip()

    def _reasoning(self) -> str:
        return "".join(event.text for event in self.turn.events if isinstance(event, Reasoning))

    def role(self, value: str) -> None:
        assert value == "assistant" and self.rows[-1].shown is not None

    def tool_calls(self, value: list[dict[str, Any]]) -> None:
        calls = self._calls()
        assert len(calls) == len(value)
        assert all(map(_is_call, calls, value))

    def tool_calls_any_order(self, value: list[dict[str, Any]]) -> None:
        calls = self._calls()
        assert len(calls) == len(value)
        assert all(any(_is_call(call, expected) for call in calls) for expected in value)

    def tool_ids_unique(self, value: bool) -> None:
        ids = [call.id for call in self._calls()]
        assert (all(ids) and len(set(ids)) == len(ids)) == value

    def _calls(self) -> list[ToolCalled]:
        return [event for event in self.turn.events if isinstance(event, ToolCalled)]

    def tools_runnable(self, value: list[str]) -> None:
        """In a stack whatever may be run is run."""
        assert sorted(self.played.tools_run) == sorted(value)

    def tool_runs_max(self, value: int) -> None:
        assert len(self.played.tools_run) <= value

    def tool_arguments_any_of(self, value: list[dict[str, Any]]) -> None:
        assert all(arguments in value for arguments in self.played.tool_arguments)

    def shown_as_complete(self, value: bool) -> None:
        assert self.turn.end is not None
        assert (self.turn.end.outcome is Outcome.COMPLETE) == value

    def usage(self, value: dict[str, int]) -> None:
        assert self.turn.end is not None and self.turn.end.usage is not None
        usage = self.turn.end.usage
        assert {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens} == value

    def usage_source(self, value: str) -> None:
        self.usage_source_any_of([value])

    def usage_source_any_of(self, value: list[str]) -> None:
        assert self.turn.end is not None and self.turn.end.usage is not None
        assert self.turn.end.usage.source in value

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
        reply = self.played.reconnected
        assert reply is not None
        for key, expected in value.items():
            match key:
                case "status_any_of":
                    assert reply.stream.status is None or reply.stream.status in expected
                case "new_text":
                    assert self.played.new_text == expected
                case "text_on_screen":
                    assert reply.text == expected
                case "says_lost_or_full_once":
                    lost = (reply.stream.status or 200) >= 400 or reply.end is None or reply.end.code is not None
                    assert (lost or reply.text == self.rows[-1].generated) == expected
                case _:
                    raise AssertionError(f"unknown key {key}")

    def replayed_events(self, value: int) -> None:
        """A client knows an event it had by its id, and skips it; better still it does not come."""
        reply = self.played.reconnected
        assert reply is not None
        assert reply.stream.again == value
        assert [type(event) for event in reply.events].count(Ended) <= 1


def _characters(data: str) -> int:
    """Of answer text in a chat completion chunk."""
    try:
        choices = json.loads(data).get("choices") or [{}]
        return len((choices[0].get("delta") or {}).get("content") or "")
    except (ValueError, AttributeError):
        return 0


def _is_call(call: ToolCalled, expected: dict[str, Any]) -> bool:
    return (
        expected.get("id", "*") in ("*", call.id)
        and call.name == expected["name"]
        and call.arguments == expected.get("arguments", call.arguments)
    )
