"""Every `upstream` case over real HTTP: the model's server, ours, and a client, each with a socket of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

from motamot.answer import AnswerEvent, Started, Text
from motamot.exchange.exchange import Visible
from motamot.limits import Limits
from motamot.protocols.base import parse_event_id
from motamot.scripted.model import ScriptedModel
from motamot.sse import Decoder, Ignored
from tests.cases import upstream
from tests.cases.upstream import Case, Played, cases, check, play
from tests.scripted.wire import Client
from tests.server import reading
from tests.server.reading import request, run
from tests.server.support import V1_KEY, Served, serve_process, serving
from tests.server.support import upstream as options_of

OF_THE_CHECKER = {"findings", "no_findings"}  # about the model's bytes: the wire checker judges them
ERRORS = {"failed", "interrupted"}
CASES = cases("upstream")


class Reading(upstream.Stream):
    """A native response, as a page reads it: an event had before is skipped, and text after a stop is not shown."""

    def __init__(self, stream: reading.Stream, had: set[str]) -> None:
        self.stream = stream
        self.status = stream.status
        self.had = had
        self.waiting: list[AnswerEvent] = []
        self.stopped = False
        self.left = False

    @property
    def exchange(self) -> str:
        return self.stream.exchange

    @property
    def last(self) -> int:
        """Number of the last event that was shown."""
        return max((place[1] for place in map(parse_event_id, self.had) if place is not None), default=0)

    async def begin(self) -> None:
        """Read until it is known whose answer it is."""
        while not self.stream.over and not self.stream.last_id:
            await self._piece()

    async def next(self) -> Sequence[AnswerEvent] | None:
        while not self.waiting:
            if self.left or self.stream.over or self.status != 200:
                return None
            await self._piece()
        events, self.waiting = self.waiting, []
        return events

    async def _piece(self) -> None:
        blocks, events = len(self.stream.blocks), len(self.stream.events)
        await self.stream.piece()
        new = self.stream.blocks[blocks:]
        assert len(new) == len(self.stream.events) - events, "each block of ours is one answer event"
        for block, event in zip(new, self.stream.events[events:], strict=True):
            if block.id in self.had:
                self.again += 1
            elif not (self.stopped and isinstance(event, Text)):
                self.had.add(block.id)
                self.waiting.append(event)

    async def close(self) -> None:
        self.left = True
        await self.stream.close()


class OverHttp(upstream.Visitor):
    """A page's way to use the server."""

    def __init__(self, port: int) -> None:
        self.visitor = reading.Visitor(port, secrets.token_urlsafe(16))
        self.conversation: str | None = None
        self.asked: dict[str, dict[str, Any]] = {}  # by key: asked again, a question is the same to the letter
        self.streams: list[Reading] = []

    async def ask(self, message: str, key: str | None, headers: dict[str, str]) -> Reading:
        body: dict[str, Any] = {"message": message}
        if self.conversation is not None:
            body["conversation"] = self.conversation
        if key is not None:
            body = self.asked.setdefault(key, {**body, "key": key, "resumable": True})
        answer = Reading(await self.visitor.ask(**body, headers=headers), set())
        self.streams.append(answer)
        await answer.begin()
        for event in answer.waiting:
            if isinstance(event, Started):
                self.conversation = event.conversation
        return answer

    async def stop(self, shown: int) -> None:
        answer = self.streams[-1]
        answer.stopped = True
        told = await self.visitor.stop(answer.exchange, answer.last)
        assert told.status == 200

    async def reconnect(self, key: str | None, last: str) -> Reading:
        assert key is not None
        before = self.streams[-1]
        place = before.stream.last_id if last == "last" else last
        path = f"/api/exchanges/{key}/events?resumable=true"
        stream = await self.visitor.open("GET", path, headers={"Last-Event-ID": place})
        if stream.status != 200:
            stream.over = True
        answer = Reading(stream, set(before.had))
        self.streams.append(answer)
        return answer


def limits_of(case: Case) -> Limits:
    heartbeat = case["given"].get("server", {}).get("heartbeat_ms")
    return Limits() if heartbeat is None else replace(Limits(), heartbeat_seconds=heartbeat / 1000)


def around(case: Case) -> Any:
    if case["given"].get("server", {}).get("compression") in (None, "off", False):
        return None

    def compressed(app: ASGIApp) -> ASGIApp:
        return GZipMiddleware(app, minimum_size=1)

    return compressed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> list[str]:
        played = Played()
        options = {
            "limits": limits_of(case),
            "around": around(case),
            "tools": played.tools(case),
            "visible": Visible(reasoning=True, tool_arguments=True, tool_results=True),
        }
        async with serving(tmp_path, case["given"]["requests"], **options) as s:
            visitor = OverHttp(s.port)
            played.server, played.exchanges, played.store = s.model, s.site.exchanges, s.site.exchanges.store
            played.visitor = hashlib.sha256(visitor.visitor.secret.encode()).hexdigest()  # as the store knows them
            await play(played, visitor, case["given"]["client"])
            left = await check(played, case["expect"], case)
            wire = Wire(visitor, s)
            left = [key for key in left if not wire.judges(key, case["expect"][key])]
            for answer in visitor.streams:
                await answer.close()
            return left

    with caplog.at_level(logging.WARNING):
        left = run(scenario())
    assert set(left) <= OF_THE_CHECKER
    for text in case["expect"].get("logs_must_not_contain", []):
        assert text not in caplog.text


@pytest.mark.parametrize(
    "case", [case for case in CASES if "logs_must_not_contain" in case["expect"]], ids=lambda case: case["id"]
)
def test_nothing_of_it_is_on_the_server_s_stderr(case: Case, tmp_path: Path) -> None:
    """The same in a process of its own, to its end."""

    async def scenario() -> str:
        async with ScriptedModel(case["given"]["requests"]) as model:
            with serve_process(tmp_path, *options_of(model.url)) as process:
                visitor = OverHttp(process.port)
                await play(Played(), visitor, case["given"]["client"])
                for answer in visitor.streams:
                    await answer.close()
                process.signal()
                assert await asyncio.to_thread(process.wait) == 0
                return process.said

    said = run(scenario())
    for text in case["expect"]["logs_must_not_contain"]:
        assert text not in said


class Wire:
    """Judges the bytes of our responses."""

    def __init__(self, visitor: OverHttp, served: Served) -> None:
        self.streams = [answer.stream for answer in visitor.streams]
        self.served = served

    @property
    def stream(self) -> reading.Stream:
        """The last one with an answer in it."""
        return [stream for stream in self.streams if stream.status == 200][-1]

    def judges(self, key: str, value: Any) -> bool:
        """Check one key of `expect`; whether it is one of these."""
        method = getattr(self, "_" + key, None)
        if method is not None:
            method(value)
        return method is not None

    def _logs_must_not_contain(self, value: list[str]) -> None:
        """Judged when the server has ended."""

    def _response_headers(self, value: dict[str, dict[str, Any]]) -> None:
        for name, about in value.items():
            had = self.stream.headers.get(name.lower())
            for key, expected in about.items():
                match key:
                    case "equals":
                        assert had == expected
                    case "contains":
                        assert had is not None and expected in had
                    case "absent":
                        assert (had is None) == expected
                    case _:
                        raise AssertionError(f"unknown key {key}")

    def _comments_min(self, value: int) -> None:
        assert len(comments(self.stream.body)) >= value

    def _comments_before_text_min(self, value: int) -> None:
        before, found, _ = self.stream.body.partition(b'{"type":"text"')
        assert found
        assert len(comments(before)) >= value

    def _events_from_comments(self, value: int) -> None:
        without = re.sub(rb"(?m)^:[^\n]*\n", b"", self.stream.body)
        assert len(self.stream.blocks) - len(Decoder(max_event_bytes=1 << 24).feed(without)) == value
        assert len([block for block in self.stream.blocks if not block.data]) == value

    def _every_event_parses(self, value: bool) -> None:
        assert value
        for stream in self.streams:
            for block in stream.blocks:
                assert json.loads(block.data)["type"]
            noticed = Noticed()
            decoder = Decoder(max_event_bytes=1 << 24, observer=noticed)
            decoder.feed(stream.body)
            if stream.over:
                residue = decoder.close()
                assert not (residue.data or residue.event or residue.line)
            assert noticed.kinds <= {Ignored.COMMENT}

    def _wire(self, value: dict[str, Any]) -> None:
        told = [json.loads(block.data) for block in self.stream.blocks]
        errors = [event for event in told if event["type"] == "ended" and event["outcome"] in ERRORS]
        texts = [block for block, event in zip(self.stream.blocks, told, strict=True) if event["type"] == "text"]
        for key, expected in value.items():
            match key:
                case "error_events":
                    assert len(errors) == expected
                case "error_distinct_from_text":
                    assert all("text" not in event and event["message"] for event in errors) == expected
                case "ends_with_terminal_event":
                    assert (told[-1]["type"] == "ended") == expected
                case "text_events_have_id":
                    assert (all(block.id for block in texts) and len({block.id for block in texts}) == len(texts)) == (
                        expected
                    )
                case "ids_unique":
                    ids = re.findall(rb"(?m)^id: (.*)$", self.stream.body)
                    assert (len(set(ids)) == len(ids)) == expected
                case "comments_have_id":
                    blocks = [block.split(b"\n") for block in self.stream.body.split(b"\n\n")]
                    alone = [lines for lines in blocks if all(line[:1] == b":" or line[:3] == b"id:" for line in lines)]
                    assert any(len({line[:1] for line in lines}) > 1 for lines in alone) == expected
                case "start_events_max":
                    for stream in self.streams:
                        started = [block for block in stream.blocks if json.loads(block.data)["type"] == "started"]
                        assert len(started) <= expected
                case _:
                    raise AssertionError(f"unknown key {key}")


class Noticed:
    """What a reader by the standard leaves aside."""

    def __init__(self) -> None:
        self.kinds: set[Ignored] = set()

    def ignored(self, kind: Ignored, line: bytes, offset: int) -> None:
        self.kinds.add(kind)


def comments(wire: bytes) -> list[bytes]:
    return re.findall(rb"(?m)^:.*$", wire)


# The other protocols, for the cases that are only asked and read


PLAIN = [
    case
    for case in CASES
    if all(set(action) <= {"ask", "read_to_end", "wait_ms"} for action in case["given"]["client"])
    and sum("ask" in action for action in case["given"]["client"]) == 1
    and not case["given"].get("tools")
    and "text" in case["expect"]
]
WAYS: dict[str, tuple[str, str, dict[str, Any] | None, dict[str, str]]] = {
    "morceaux": ("GET", "/flux?message=Hello", None, {"Accept": "text/event-stream"}),
    "ga-text": ("POST", "/api/chatbot/chat/stream", {"message": "Hello"}, {}),
    "openai": (
        "POST",
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "Hello"}], "stream": True},
        {"Authorization": f"Bearer {V1_KEY}"},
    ),
}


@pytest.mark.parametrize("protocol", WAYS)
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
def test_its_text_and_its_failure_reach_every_kind_of_client(case: Case, protocol: str, tmp_path: Path) -> None:
    method, path, body, headers = WAYS[protocol]

    async def scenario() -> None:
        async with serving(tmp_path, case["given"]["requests"], limits=limits_of(case), around=around(case)) as s:
            stream = reading.Stream(await Client.to(s.port), protocol)
            await stream.client.send(request(method, path, body, headers=headers))
            if await asyncio.wait_for(stream.head(), 20) == 200:
                await stream.to_end()
                assert stream.text == case["expect"]["text"]
                failed = stream.ended is not None and str(stream.ended.outcome) in ERRORS
            else:
                assert protocol == "openai"  # the one that holds its head
                assert case["expect"]["text"] == ""
                failed = True
            if "finish" in case["expect"] or "finish_any_of" in case["expect"]:
                words = case["expect"].get("finish_any_of", [case["expect"].get("finish")])
                assert failed == bool({"error", "incomplete"} & set(words))
            assert len(s.model.requests) <= case["expect"].get("upstream_requests_max", 1)
            await stream.close()

    run(scenario())
