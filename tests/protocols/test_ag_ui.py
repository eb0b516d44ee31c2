"""`ag-ui`: the events as AG-UI's own clients take them, other servers' as ours reads them, and what may be asked."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols.ag_ui import PROTOCOL
from motamot.protocols.ag_ui_request import RunAsked
from motamot.protocols.base import OfferedTool, PastCall, PastMessage
from motamot.sse import Decoder
from tests.protocols.ag_ui_client import VERSIONS, client
from tests.protocols.strategies import answers, joined, read, text_of, written
from tests.pypi import pypi_package

STARTED = Started(exchange="Xq3", conversation="c1", assistant="helper", model="m")
COMPLETE = Ended(outcome=Outcome.COMPLETE)
USAGE = Usage(prompt_tokens=9, completion_tokens=3, cached_tokens=2, source=Source.REPORTED)
ASKED = RunAsked(message="?", thread="t1", key="r1")
DECLARING = replace(ASKED, declares=True)
LIMITS = Limits()
RUN = {"threadId": "t1", "runId": "r1"}


def told(*events: AnswerEvent, asked: RunAsked = ASKED) -> list[dict[str, Any]]:
    """What a standard reader gets, begun and ended."""
    return decoded(written(PROTOCOL, [STARTED, *events], asked))


def decoded(wire: bytes) -> list[dict[str, Any]]:
    events = Decoder().feed(wire)
    assert {(event.event, event.id) for event in events} <= {("message", "")}
    return [json.loads(event.data) for event in events]


def own(kind: str, **value: Any) -> dict[str, Any]:
    return {"type": "CUSTOM", "name": f"motamot.{kind}", "value": {"type": kind, **value}}


def stream(*events: dict[str, Any]) -> list[AnswerEvent]:
    """What our reader makes of a server's events."""
    wire = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return joined(read(PROTOCOL.reader(), [wire]))


BEGIN = {"type": "RUN_STARTED", **RUN}
FINISH = {"type": "RUN_FINISHED", **RUN}
BEGUN = Started(exchange="r1", conversation="t1")


def order_fault(events: Sequence[dict[str, Any]]) -> str | None:
    """What AG-UI's rules of order find wrong. Source: AG-UI 1.0 and 0.0.47, their verifiers."""
    opened: dict[str, set[str]] = {
        "TEXT_MESSAGE": set(),
        "REASONING_MESSAGE": set(),
        "REASONING": set(),
        "TOOL_CALL": set(),
    }
    if events and events[0]["type"] not in ("RUN_STARTED", "RUN_ERROR"):
        return "it begins otherwise"
    for place, event in enumerate(events):
        kind, _, step = event["type"].rpartition("_")
        if event["type"] in ("RUN_FINISHED", "RUN_ERROR"):
            if place != len(events) - 1:
                return "something comes behind the end"
            if any(opened.values()):
                return f"open at the end: {opened}"
        elif kind in opened and step in ("START", "CONTENT", "ARGS", "END"):
            name: str = event["toolCallId" if kind == "TOOL_CALL" else "messageId"]
            if (step == "START") == (name in opened[kind]):
                return f"{event} out of order"
            if step == "START":
                opened[kind].add(name)
            elif step == "END":
                opened[kind].remove(name)
    return None if events and events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR") else "no end"


class TestWriter:
    def test_an_answer(self) -> None:
        assert told(Text("Bon"), Text("jour\u2028"), Ended(outcome=Outcome.COMPLETE, usage=USAGE)) == [
            {"type": "RUN_STARTED", **RUN},
            own("started", exchange="Xq3", conversation="c1", assistant="helper", model="m"),
            {"type": "TEXT_MESSAGE_START", "messageId": "Xq3-2", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "Xq3-2", "delta": "Bon"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "Xq3-2", "delta": "jour\u2028"},
            {"type": "TEXT_MESSAGE_END", "messageId": "Xq3-2"},
            own(
                "ended",
                outcome="complete",
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 3,
                    "cached_tokens": 2,
                    "reasoning_tokens": 0,
                    "source": "reported",
                },
            ),
            {
                "type": "RUN_FINISHED",
                **RUN,
                "usage": [
                    {"model": "m", "inputTokens": 9, "outputTokens": 3, "totalTokens": 12, "cachedInputTokens": 2}
                ],
            },
        ]

    def test_the_ids_are_the_client_s_own_and_else_the_exchange_s(self) -> None:
        assert told(COMPLETE)[0] == {"type": "RUN_STARTED", **RUN}
        ours = {"threadId": "c1", "runId": "Xq3"}
        assert decoded(written(PROTOCOL, [STARTED, COMPLETE], None))[::2][0] == {"type": "RUN_STARTED", **ours}
        assert decoded(written(PROTOCOL, [STARTED, COMPLETE], None))[-1] == {"type": "RUN_FINISHED", **ours}

    def test_a_client_that_declares_its_version_is_told_ours(self) -> None:
        assert told(COMPLETE, asked=DECLARING)[0] == {"type": "RUN_STARTED", **RUN, "protocolVersion": "1.0"}

    def test_tokens_that_nobody_counted_are_not_told_as_if(self) -> None:
        for source in (Source.ESTIMATED, Source.UNKNOWN):
            end = told(Ended(outcome=Outcome.COMPLETE, usage=Usage(prompt_tokens=9, source=source)))[-2:]
            assert end[1] == {"type": "RUN_FINISHED", **RUN}
            assert end[0]["value"]["usage"]["source"] == source

    @pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.ABANDONED])
    def test_a_stop_is_cancelled_for_those_who_know_the_word(self, outcome: Outcome) -> None:
        """0.0.59 rejects a run with that outcome, and its text is lost; our own event says it to everybody."""
        end = Ended(outcome=outcome, by=By.VISITOR if outcome is Outcome.STOPPED else None)
        assert told(end, asked=DECLARING)[-1] == {"type": "RUN_FINISHED", **RUN, "outcome": {"type": "cancelled"}}
        said, last = told(end)[-2:]
        assert last == {"type": "RUN_FINISHED", **RUN}
        assert said["value"]["outcome"] == outcome

    @pytest.mark.parametrize("outcome", [Outcome.COMPLETE, Outcome.TRUNCATED, Outcome.FILTERED])
    def test_what_was_not_stopped_is_finished(self, outcome: Outcome) -> None:
        said, last = told(Text("a"), Ended(outcome=outcome, marks=("recorded",)), asked=DECLARING)[-2:]
        assert last == {"type": "RUN_FINISHED", **RUN}
        assert said == own("ended", outcome=outcome, marks=["recorded"])

    def test_a_failure_closes_its_message_first(self) -> None:
        end = Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Too slow.", marks=("recorded",))
        assert told(Text("a"), end)[-3:] == [
            {"type": "TEXT_MESSAGE_END", "messageId": "Xq3-2"},
            own("ended", outcome="failed", code="timeout", message="Too slow.", marks=["recorded"]),
            {"type": "RUN_ERROR", "message": "Too slow.", "code": "timeout"},
        ]
        assert told(Ended(outcome=Outcome.INTERRUPTED))[-1]["code"] == "interrupted"

    def test_a_tool_that_runs_here(self) -> None:
        """Its call belongs to its turn's text, and the next turn's text is a message of its own."""
        events = told(
            Text("I look."),
            TurnEnded(turn=1, finish="tool_calls"),
            ToolCalled(id="a", name="clock", arguments={"zone": "é\u2028"}),
            ToolCalled(id="b", name="clock"),
            ToolReturned(id="b", name="clock", status="timeout"),
            ToolReturned(id="a", name="clock", status="ok", result="12:00"),
            Text("\n\n"),
            Text("Noon."),
            COMPLETE,
        )
        assert events[3:-2] == [
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "Xq3-2", "delta": "I look."},
            {"type": "TEXT_MESSAGE_END", "messageId": "Xq3-2"},
            {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "clock", "parentMessageId": "Xq3-2"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": '{"zone":"é\\u2028"}'},
            {"type": "TOOL_CALL_END", "toolCallId": "a"},
            {"type": "TOOL_CALL_START", "toolCallId": "b", "toolCallName": "clock", "parentMessageId": "Xq3-2"},
            {"type": "TOOL_CALL_END", "toolCallId": "b"},
            own("tool_returned", id="b", name="clock", status="timeout")
            | {"value": {"type": "tool_returned", "id": "b", "name": "clock", "status": "timeout", "hidden": True}},
            {
                "type": "TOOL_CALL_RESULT",
                "messageId": "Xq3-6",
                "toolCallId": "b",
                "content": '{"status":"timeout"}',
                "role": "tool",
            },
            own("tool_returned", id="a", name="clock", status="ok", hidden=False),
            {"type": "TOOL_CALL_RESULT", "messageId": "Xq3-7", "toolCallId": "a", "content": "12:00", "role": "tool"},
            {"type": "TEXT_MESSAGE_START", "messageId": "Xq3-8", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "Xq3-8", "delta": "\n\n"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "Xq3-8", "delta": "Noon."},
            {"type": "TEXT_MESSAGE_END", "messageId": "Xq3-8"},
        ]

    def test_calls_without_a_text_share_a_message(self) -> None:
        events = told(ToolCalled(id="a", name="f"), ToolCalled(id="b", name="f"), COMPLETE)
        parents = [event["parentMessageId"] for event in events if event["type"] == "TOOL_CALL_START"]
        assert parents == ["Xq3-2", "Xq3-2"]

    def test_the_client_s_own_tools_are_left_pending(self) -> None:
        asked = replace(DECLARING, tools=(OfferedTool(name="f"),))
        calls = (ToolCalled(id="a", name="f", arguments={}), ToolCalled(id="b", name="f", arguments={"x": 1}))
        events = told(*calls, COMPLETE, asked=asked)
        assert "TOOL_CALL_RESULT" not in [event["type"] for event in events]
        assert events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["a", "b"]}
        assert "outcome" not in told(*calls, COMPLETE, asked=replace(asked, declares=False))[-1]

    def test_a_call_s_id_is_new_to_the_client(self) -> None:
        """Some models number their calls from 0 in each request; a client takes the second for the first again."""
        asked = replace(ASKED, calls=frozenset({"call_0", "call_0~2"}))
        events = told(
            ToolCalled(id="call_0", name="f"),
            ToolReturned(id="call_0", name="f", status="ok"),
            ToolCalled(id="call_0", name="f"),
            ToolReturned(id="call_0", name="f", status="ok"),
            COMPLETE,
            asked=asked,
        )
        ids = [event["toolCallId"] for event in events if event["type"] in ("TOOL_CALL_START", "TOOL_CALL_RESULT")]
        assert ids == ["call_0~3", "call_0~3", "call_0~4", "call_0~4"]

    def test_reasoning_is_no_text(self) -> None:
        name = {"messageId": "Xq3-2"}
        assert told(Reasoning("So "), Reasoning("it is."), Text("Yes."), COMPLETE)[2:8] == [
            {"type": "REASONING_START", **name},
            {"type": "REASONING_MESSAGE_START", **name, "role": "reasoning"},
            {"type": "REASONING_MESSAGE_CONTENT", **name, "delta": "So "},
            {"type": "REASONING_MESSAGE_CONTENT", **name, "delta": "it is."},
            {"type": "REASONING_MESSAGE_END", **name},
            {"type": "REASONING_END", **name},
        ]

    def test_a_source_does_not_cut_a_text_in_two(self) -> None:
        events = told(Routed(agent="x"), Text("a"), Cited(title="T", url="u"), Text("b"), COMPLETE)
        assert [event["type"] for event in events[2:-2]] == [
            "CUSTOM",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "CUSTOM",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
        ]
        assert events[2] == own("routed", agent="x")
        assert events[5] == own("cited", title="T", url="u")

    def test_a_piece_of_many_megabytes_comes_in_several(self) -> None:
        """AG-UI's client gives up on an event of 10 Mi characters; of some of an answer's, JSON makes six each."""
        text = "\0\u2028é" * 1_398_101  # 4 Mi, as long as an answer may be
        wire = written(PROTOCOL, [STARTED, Text(text), COMPLETE], ASKED)
        blocks = wire.split(b"\n\n")
        assert max(map(len, blocks)) < 10 * 1024 * 1024
        assert text_of(read(PROTOCOL.reader(), [wire])) == text

    @settings(max_examples=200, deadline=None)
    @given(events=answers(), declares=st.booleans(), tools=st.booleans())
    def test_every_answer_keeps_the_rules_of_order(
        self, events: list[AnswerEvent], declares: bool, tools: bool
    ) -> None:
        offered = (OfferedTool(name="f"),) if tools else ()
        got = decoded(written(PROTOCOL, events, replace(ASKED, declares=declares, tools=offered)))
        assert order_fault(got) is None
        assert all(event["delta"] for event in got if "delta" in event)
        assert all(value is not None for event in got for value in event.values())


def some_answers(count: int) -> list[list[AnswerEvent]]:
    """Answers of every kind, the same each time."""
    found: list[list[AnswerEvent]] = []

    @settings(max_examples=count, deadline=None, derandomize=True, database=None)
    @given(answers())
    def gather(events: list[AnswerEvent]) -> None:
        found.append(events)

    gather()
    return found


class TestTheirOwn:
    """AG-UI's own clients and models, on what we write."""

    @pytest.mark.parametrize("version", VERSIONS)
    def test_the_client_takes_every_answer_and_has_its_text(self, version: str) -> None:
        chance = random.Random(4)
        streams, texts, ends = [], [], []
        for events in some_answers(120):
            wire = written(PROTOCOL, events, replace(ASKED, declares=version == "1.0.0"))
            cuts = sorted(chance.sample(range(len(wire)), 5)) if chance.random() < 0.7 else []
            pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
            streams.append({"pieces": [base64.b64encode(piece).decode() for piece in pieces]})
            texts.append(text_of(events))
            ends.append(events[-1])
        found = asyncio.run(client(version, "replay", streams=streams))["found"]
        for got, text, end in zip(found, texts, ends, strict=True):
            assert got["rejected"] is None
            assert got["warnings"] == []
            said = [m["content"] for m in got["messages"] if m["role"] == "assistant" and m.get("content")]
            assert "".join(said) == text
            assert isinstance(end, Ended)
            code = "interrupted" if end.outcome is Outcome.INTERRUPTED else end.code
            assert [error["code"] for error in got["errors"]] == ([] if code is None else [code])

    @pytest.mark.parametrize("version", ["0.1.22", "1.0.0"])
    def test_the_models_for_python_take_every_event(self, version: str) -> None:
        asked = replace(ASKED, declares=version == "1.0.0", tools=(OfferedTool(name="f"),))
        lines = [
            json.dumps(event) for events in some_answers(150) for event in decoded(written(PROTOCOL, events, asked))
        ]
        program = (
            "import sys\n"
            "from ag_ui.core import Event\n"
            "from pydantic import TypeAdapter\n"
            "events = [TypeAdapter(Event).validate_json(line) for line in sys.stdin]\n"
            "unknown = {(event.type.value, name) for event in events for name in event.model_extra}\n"
            "print(len(events), sorted(unknown))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(pypi_package("ag-ui-protocol", version))},
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        assert done.stdout.strip() == f"{len(lines)} []"


class TestReader:
    """Other servers' streams."""

    def test_a_run(self) -> None:
        assert stream(
            BEGIN,
            {"type": "STEP_STARTED", "stepName": "voicing"},
            {"type": "TEXT_MESSAGE_START", "messageId": "m"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Bon"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "jour"},
            {"type": "TEXT_MESSAGE_END", "messageId": "m"},
            {**FINISH, "usage": [{"inputTokens": 3, "outputTokens": 2}, {"inputTokens": 4, "cachedInputTokens": 1}]},
        ) == [
            BEGUN,
            Text("Bonjour"),
            Ended(
                outcome=Outcome.COMPLETE,
                usage=Usage(prompt_tokens=7, completion_tokens=2, cached_tokens=1, source=Source.REPORTED),
            ),
        ]

    @pytest.mark.parametrize(
        ("outcome", "expected"),
        [
            ({"type": "success"}, Outcome.COMPLETE),
            ({"type": "success", "pendingToolCallIds": ["a"]}, Outcome.COMPLETE),
            ({"type": "interrupt", "interrupts": [{"id": "1", "reason": "approval"}]}, Outcome.COMPLETE),
            ({"type": "cancelled"}, Outcome.STOPPED),
            ({"type": "of a later version"}, Outcome.COMPLETE),
            ("cancelled", Outcome.COMPLETE),
        ],
    )
    def test_outcomes(self, outcome: object, expected: Outcome) -> None:
        assert stream(BEGIN, {**FINISH, "outcome": outcome}) == [BEGUN, Ended(outcome=expected)]

    def test_an_error_ends_it(self) -> None:
        end = Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Slow.")
        wire = {"type": "RUN_ERROR", "message": "Slow.", "code": "timeout"}
        assert stream(BEGIN, wire, {"type": "TEXT_MESSAGE_CONTENT", "delta": "late"}) == [BEGUN, end]
        busy = Ended(outcome=Outcome.FAILED, code=Code.UPSTREAM_ERROR, message="Busy.")
        assert stream({"type": "RUN_ERROR", "message": "Busy.", "code": "SERVICE_BUSY"}) == [busy]

    def test_a_run_that_breaks_off_is_cut(self) -> None:
        got = stream(BEGIN, {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a"})
        assert got[:-1] == [BEGUN, Text("a")]
        assert isinstance(got[-1], Ended) and got[-1].code is Code.UPSTREAM_CUT

    def test_chunks(self) -> None:
        assert stream(
            BEGIN,
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "a"},
            {"type": "TEXT_MESSAGE_CHUNK", "delta": "b"},
            {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "hm"},
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "x", "toolCallName": "f", "delta": '{"a":'},
            {"type": "RAW", "event": {}},
            {"type": "TOOL_CALL_CHUNK", "delta": "1}"},
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "y", "toolCallName": "g"},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "c"},
            FINISH,
        ) == [
            BEGUN,
            Text("ab"),
            Reasoning("hm"),
            ToolCalled(id="x", name="f", arguments={"a": 1}),
            ToolCalled(id="y", name="g"),
            Text("c"),
            COMPLETE,
        ]

    def test_tools_side_by_side_with_results_as_text_or_parts(self) -> None:
        parts = [{"type": "text", "text": "no"}, {"type": "image", "source": {}}, {"type": "text", "text": "on"}]
        assert stream(
            BEGIN,
            {"type": "TOOL_CALL_START", "toolCallId": "x", "toolCallName": "f", "parentMessageId": "m"},
            {"type": "TOOL_CALL_START", "toolCallId": "y", "toolCallName": "g"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "y", "delta": "[1]"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "x", "delta": '{"a":'},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "x", "delta": "1}"},
            {"type": "TOOL_CALL_END", "toolCallId": "y"},
            {"type": "TOOL_CALL_END", "toolCallId": "x"},
            {"type": "TOOL_CALL_RESULT", "messageId": "1", "toolCallId": "x", "content": "noon"},
            {"type": "TOOL_CALL_RESULT", "messageId": "2", "toolCallId": "y", "content": parts},
            FINISH,
        ) == [
            BEGUN,
            ToolCalled(id="y", name="g", arguments="[1]"),
            ToolCalled(id="x", name="f", arguments={"a": 1}),
            ToolReturned(id="x", name="f", status="ok", result="noon"),
            ToolReturned(id="y", name="g", status="ok", result="noon"),
            COMPLETE,
        ]

    def test_a_call_that_nobody_ended_ends_with_its_result_or_its_run(self) -> None:
        start = {"type": "TOOL_CALL_START", "toolCallName": "f"}
        result = {"type": "TOOL_CALL_RESULT", "messageId": "1", "toolCallId": "x", "content": "1"}
        assert stream(BEGIN, {**start, "toolCallId": "x"}, result, {**start, "toolCallId": "y"}, FINISH) == [
            BEGUN,
            ToolCalled(id="x", name="f"),
            ToolReturned(id="x", name="f", status="ok", result="1"),
            ToolCalled(id="y", name="f"),
            COMPLETE,
        ]

    def test_the_thinking_of_older_servers_is_reasoning(self) -> None:
        thinking = ({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"}, {"type": "THINKING_END"})
        assert stream(BEGIN, *thinking, FINISH) == [BEGUN, Reasoning("hm"), COMPLETE]

    def test_what_others_said_is_no_answer(self) -> None:
        echo = ({"type": "TEXT_MESSAGE_START", "messageId": "u", "role": "user"},)
        said = {"type": "TEXT_MESSAGE_CONTENT", "delta": "?"}
        other = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "s", "role": "system", "delta": "!"}
        answer = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a"}
        more = {"type": "TEXT_MESSAGE_CHUNK", "delta": "!"}
        assert stream(BEGIN, *echo, {**said, "messageId": "u"}, other, more, answer, FINISH) == [
            BEGUN,
            Text("a"),
            COMPLETE,
        ]

    def test_every_event_of_the_protocol_is_read_or_passed_over(self) -> None:
        """All 31 of 1.0, with their fields; those that are no part of an answer, and unknown ones, change nothing."""
        message = {"messageId": "m"}
        tool = {"toolCallId": "x"}
        agent = {"subagentRunId": "s"}
        others: list[dict[str, Any]] = [
            {"type": "STEP_STARTED", "stepName": "s"},
            {"type": "STEP_FINISHED", "stepName": "s"},
            {"type": "STATE_SNAPSHOT", "snapshot": {"text": "x"}},
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/x", "value": "y"}]},
            {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "assistant", "content": "x"}]},
            {"type": "ACTIVITY_SNAPSHOT", **message, "activityType": "a", "content": {}},
            {"type": "ACTIVITY_DELTA", **message, "activityType": "a", "patch": []},
            {"type": "TEXT_MESSAGE_START", **message, "role": "assistant"},
            {"type": "TEXT_MESSAGE_END", **message},
            {"type": "REASONING_START", **message},
            {"type": "REASONING_MESSAGE_START", **message, "role": "reasoning"},
            {"type": "REASONING_MESSAGE_END", **message},
            {"type": "REASONING_END", **message},
            {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "x"},
            {"type": "SUBAGENT_STARTED", **agent, "name": "n"},
            {"type": "SUBAGENT_FINISHED", **agent, "result": "x"},
            {"type": "SUBAGENT_ERROR", **agent, "message": "x"},
            {"type": "RAW", "event": {"choices": [{"delta": {"content": "x"}}]}},
            {"type": "CUSTOM", "name": "ga:diatonic", "value": ["x"]},
            {"type": "CUSTOM", "name": "motamot.of_a_later_version", "value": {}},
            {"type": "CUSTOM", "name": "motamot.cited", "value": {"type": "cited", "title": 7}},
            {"type": "SOMETHING_NEW", "delta": "x"},
        ]
        answer: list[dict[str, Any]] = [
            {"type": "TEXT_MESSAGE_CONTENT", **message, "delta": "a"},
            {"type": "TEXT_MESSAGE_CHUNK", **message, "delta": "b"},
            {"type": "REASONING_MESSAGE_CONTENT", **message, "delta": "c"},
            {"type": "REASONING_MESSAGE_CHUNK", **message, "delta": "d"},
            {"type": "TOOL_CALL_START", **tool, "toolCallName": "f"},
            {"type": "TOOL_CALL_ARGS", **tool, "delta": "{}"},
            {"type": "TOOL_CALL_END", **tool},
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "y", "toolCallName": "g", "delta": "{}"},
            {"type": "TOOL_CALL_RESULT", **message, **tool, "content": "r"},
        ]
        mixed = [event for one in answer for event in (*others, one)]
        plain = stream(BEGIN, *answer, FINISH)
        assert stream(BEGIN, *mixed, *others, FINISH) == plain
        assert len({event["type"] for event in [BEGIN, FINISH, *others, *answer]} | {"RUN_ERROR"}) == 31 + 1
        assert [type(event) for event in plain] == [
            *(Started, Text, Reasoning, Reasoning, ToolCalled, ToolCalled, ToolReturned, Ended)
        ]

    def test_a_second_run_of_a_stream_is_not_read(self) -> None:
        assert stream(BEGIN, FINISH, {**BEGIN, "runId": "r2"}, FINISH) == [BEGUN, COMPLETE]

    def test_calls_without_end_are_cut_off(self) -> None:
        reader = PROTOCOL.reader(max_event_bytes=10_000)
        call = b'data: {"type":"TOOL_CALL_START","toolCallId":"%d","toolCallName":"f"}\n\n'
        got = read(reader, [call % number for number in range(1_000)])
        assert isinstance(got[-1], Ended) and got[-1].code is Code.LIMIT


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """As HttpAgent 1.0 sends it."""
    sent = {"protocolVersion": "1.0", "tools": [], "context": [], "forwardedProps": {}, "state": {}}
    return {**RUN, **sent, "messages": list(messages), **fields}


def parsed(*messages: dict[str, Any], **fields: Any) -> RunAsked:
    return PROTOCOL.parse(json.dumps(body(*messages, **fields)).encode(), LIMITS)


def refused(told: dict[str, Any], limits: Limits = LIMITS) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        PROTOCOL.parse(json.dumps(told).encode(), limits)
    assert caught.value.message.isprintable() and len(caught.value.message) < 300
    return caught.value


USER = {"id": "1", "role": "user", "content": "Hi"}
TOOL: dict[str, Any] = {
    "name": "f",
    "description": "F.",
    "parameters": {"type": "object", "properties": {"x": {"type": "number"}}},
}


SHAPES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "user", "assistant", "tool", "f", "a", "\ud83d", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("role", "content", "toolCalls", "toolCallId", "id", "function", "name", "arguments", "error"),
                    *("type", "text", "description", "parameters", "value"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def calling(*calls: str, content: str = "", name: str = "f", **fields: Any) -> dict[str, Any]:
    made = [{"id": call, "type": "function", "function": {"name": name, "arguments": '{"x":1}'}} for call in calls]
    return {"id": "2", "role": "assistant", "content": content, "toolCalls": made, **fields}


def result(call: str, content: object = "1", **fields: Any) -> dict[str, Any]:
    return {"id": f"r-{call}", "role": "tool", "toolCallId": call, "content": content, **fields}


class TestRequest:
    def test_a_first_question(self) -> None:
        assert parsed(USER) == RunAsked(message="Hi", thread="t1", key="r1", history=(), declares=True)

    def test_the_least_that_can_be_asked(self) -> None:
        least = {**RUN, "messages": [{"role": "user", "content": "Hi"}]}
        assert PROTOCOL.parse(least, LIMITS) == RunAsked(message="Hi", thread="t1", key="r1", history=())

    @pytest.mark.parametrize(
        ("version", "declares"),
        [
            ("1.0", True),
            ("1.7", True),
            ("2.0", True),
            ("0.9", False),
            (None, False),
            ("1", False),
            ("x", False),
            (1, False),
        ],
    )
    def test_the_version_is_declared(self, version: object, declares: bool) -> None:
        assert parsed(USER, protocolVersion=version).declares is declares

    def test_the_history_is_the_client_s(self) -> None:
        asked = parsed(
            USER,
            {"id": "2", "role": "assistant", "content": "Hello."},
            {"id": "3", "role": "activity", "activityType": "a", "content": {"system": 1}},
            {"id": "4", "role": "reasoning", "content": "hm"},
            {
                "id": "5",
                "role": "user",
                "content": [{"type": "text", "text": "What"}, {"type": "text", "text": "now?"}],
            },
        )
        assert asked.message == "What\nnow?"
        assert asked.history == (
            PastMessage(role="user", content="Hi"),
            PastMessage(role="assistant", content="Hello."),
        )

    def test_the_texts_of_one_answer_are_one_again(self) -> None:
        texts = [{"role": "assistant", "content": text} for text in ("I look.", "\n\n", "Noon.", "\n\nThere.")]
        asked = parsed(USER, *texts[:2], calling(content="\nStill.", name="clock"), *texts[2:], {**USER, "id": "9"})
        assert [message.content for message in asked.history or ()] == ["Hi", "I look.\n\n\nStill.", "Noon.\n\nThere."]

    def test_context_is_the_visitor_s_words_before_the_question(self) -> None:
        context = [{"description": "The page", "value": "Chords"}, {"description": "", "value": ""}]
        asked = parsed(USER, context=context)
        assert (asked.message, asked.system) == ("Hi", "")
        assert asked.history == (PastMessage(role="user", content="The page\nChords"),)

    def test_the_client_s_tools_and_what_they_gave(self) -> None:
        asked = parsed(USER, calling("a", "b"), result("b", "2"), result("a", "1"), tools=[TOOL])
        assert asked.tools == (OfferedTool(name="f", description="F.", parameters=TOOL["parameters"]),)
        calls = tuple(PastCall(id=name, name="f", arguments='{"x":1}') for name in ("a", "b"))
        assert asked.followed == (
            PastMessage(role="assistant", calls=calls),
            PastMessage(role="tool", content="1", call_id="a"),
            PastMessage(role="tool", content="2", call_id="b"),
        )
        assert asked.calls == {"a", "b"}

    def test_a_tool_needs_no_parameters(self) -> None:
        [tool] = parsed(USER, tools=[{"name": "f", "description": ""}]).tools
        assert tool.parameters == {"type": "object", "properties": {}}

    def test_a_result_stands_behind_its_call_wherever_the_client_has_put_it(self) -> None:
        asked = parsed(result("a"), calling("a", content="I look."), {**USER, "id": "9"}, tools=[TOOL])
        assert [message.role for message in asked.history or ()] == ["assistant", "tool"]

    @pytest.mark.parametrize(
        "messages",
        [
            pytest.param((calling("a", content="Hm.", name="clock"), result("a", "noon")), id="a tool of ours"),
            pytest.param((calling("a", content="Hm."),), id="a call without a result"),
            pytest.param((calling(content="Hm."), result("z")), id="a result without a call"),
        ],
    )
    def test_of_calls_only_the_client_s_own_that_it_has_answered_are_told(self, messages: Any) -> None:
        asked = parsed(USER, *messages, {**USER, "content": "And?"}, tools=[TOOL])
        assert asked.history == (PastMessage(role="user", content="Hi"), PastMessage(role="assistant", content="Hm."))

    def test_a_call_given_twice_is_told_once(self) -> None:
        asked = parsed(USER, calling("a", "a"), result("a"), result("a", "2"), tools=[TOOL])
        assert [message.role for message in asked.followed] == ["assistant", "tool"]
        assert len(asked.followed[0].calls) == 1

    def test_a_tool_s_error_is_its_result_where_it_has_no_other(self) -> None:
        asked = parsed(USER, calling("a"), result("a", "", error="broken"), tools=[TOOL])
        assert asked.followed[-1].content == "broken"

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"threadId": None}, "threadId"),
            ({"threadId": ""}, "threadId"),
            ({"threadId": 7}, "threadId"),
            ({"threadId": "a\nb"}, "threadId"),
            ({"runId": "x" * 201}, "runId"),
            ({"messages": None}, "messages"),
            ({"messages": {}}, "messages"),
            ({"messages": []}, "messages"),
            ({"messages": ["Hi"]}, "messages[0]"),
            ({"messages": [{"content": "Hi"}]}, "messages[0].role"),
            ({"messages": [{**USER, "role": "system"}]}, "messages[0].role"),
            ({"messages": [{**USER, "role": "developer"}]}, "messages[0].role"),
            ({"messages": [{**USER, "role": "owner"}]}, "messages[0].role"),
            ({"messages": [{**USER, "role": ["user"]}]}, "messages[0].role"),
            ({"messages": [{**USER, "content": None}]}, "messages[0].content"),
            ({"messages": [{**USER, "content": " \n"}]}, "messages[0].content"),
            ({"messages": [USER, {**USER, "content": []}]}, "messages[1].content"),
            (
                {"messages": [{**USER, "content": [{"type": "binary", "mimeType": "image/png", "url": "u"}]}]},
                "messages[0].content[0]",
            ),
            (
                {"messages": [{**USER, "content": [{"type": "image", "source": {"type": "url", "value": "u"}}]}]},
                "messages[0].content[0]",
            ),
            ({"messages": [USER, {"role": "assistant", "content": "Hello."}]}, "messages[1]"),
            ({"messages": [calling("a"), result("a")], "tools": [TOOL]}, "messages"),
            ({"messages": [USER, {**result("a"), "toolCallId": None}]}, "messages[1].toolCallId"),
            ({"messages": [USER, result("a", None)]}, "messages[1].content"),
            ({"messages": [USER, result("a", error=7)]}, "messages[1].error"),
            ({"messages": [USER, {**calling(), "toolCalls": {}}]}, "messages[1].toolCalls"),
            ({"messages": [USER, {**calling(), "toolCalls": [{"id": "a"}]}]}, "messages[1].toolCalls[0].function"),
            (
                {
                    "messages": [
                        USER,
                        {**calling(), "toolCalls": [{"id": 7, "function": {"name": "f", "arguments": ""}}]},
                    ]
                },
                "messages[1].toolCalls[0].id",
            ),
            (
                {"messages": [USER, {**calling(), "toolCalls": [{"id": "a", "function": {"name": "f"}}]}]},
                "messages[1].toolCalls[0].function.arguments",
            ),
            ({"tools": {}}, "tools"),
            ({"tools": ["f"]}, "tools[0]"),
            ({"tools": [{"name": "a b", "description": ""}]}, "tools[0].name"),
            ({"tools": [{**TOOL, "description": 7}]}, "tools[0].description"),
            ({"tools": [{**TOOL, "parameters": "{}"}]}, "tools[0].parameters"),
            ({"tools": [TOOL, TOOL]}, "tools"),
            ({"context": "x"}, "context"),
            ({"context": [{"description": "x"}]}, "context[0].value"),
            ({"resume": [{"interruptId": "1", "status": "resolved"}]}, "resume"),
        ],
    )
    def test_what_cannot_be_taken_is_refused_with_its_place(self, fields: dict[str, Any], field: str) -> None:
        assert refused({**body(USER), **fields}).field == field

    @settings(max_examples=400, deadline=None)
    @given(data=st.data())
    def test_anything_else_is_refused_too_or_can_be_told(self, data: st.DataObject) -> None:
        fields = data.draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "messages": st.lists(
                        SHAPES | st.just(USER) | st.just(calling("a")) | st.just(result("a")), max_size=5
                    ),
                    **dict.fromkeys(("tools", "context", "resume"), st.lists(SHAPES, max_size=3) | SHAPES),
                    **dict.fromkeys(("threadId", "runId", "protocolVersion", "state", "forwardedProps"), SHAPES),
                },
            )
        )
        try:
            asked = PROTOCOL.parse(json.dumps({**body(USER, tools=[TOOL]), **fields}).encode(), LIMITS)
        except InvalidRequest as error:
            assert error.message.isprintable()
            return
        assert asked.message.strip()
        open_calls: set[str] = set()
        for message in (*(asked.history or ()), *asked.followed):  # as a model takes it: each call has its result
            assert message.role in ("user", "assistant", "tool")
            assert (message.role == "tool") == bool(open_calls)
            if message.call_id is not None:
                open_calls.remove(message.call_id)
            open_calls |= {call.id for call in message.calls}
            json.dumps((message.content, [call.arguments for call in message.calls])).encode()
        assert not open_calls

    @pytest.mark.parametrize(
        ("fields", "field", "limit"),
        [
            ({"messages": [{**USER, "content": "é" * 16_001}]}, "messages[0].content", 32_000),
            ({"messages": [USER, calling("a"), result("a", "x" * 256_000)], "tools": [TOOL]}, "messages", 256_000),
            ({"tools": [{**TOOL, "description": "x" * 32_001}]}, "tools", 32_000),
            ({"tools": [{**TOOL, "parameters": {"x": "y" * 32_001}}]}, "tools", 32_000),
            ({"context": [{"description": "x" * 20_000, "value": "y" * 20_000}]}, "context", 32_000),
        ],
    )
    def test_what_the_owner_pays_for_is_bounded(self, fields: dict[str, Any], field: str, limit: int) -> None:
        error = refused({**body(USER), **fields})
        assert (error.field, error.limit) == (field, limit)
