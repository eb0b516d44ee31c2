"""`ui-message`: what only this protocol does, and what its clients would fail at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from motamot.answer import (
    AnswerEvent,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from motamot.errors import InvalidRequest
from motamot.limits import Limits
from motamot.protocols import PROTOCOLS
from motamot.protocols.ui_message_request import MESSAGES, SAME, Named, UIAsked, UIStop, parse_request, parse_stop
from motamot.sse import Decoder
from tests.protocols.strategies import answers, read, written

PROTOCOL = PROTOCOLS["ui-message"]
LIMITS = Limits()
STARTED = Started(exchange="Xq3", conversation="c1")
COMPLETE = Ended(outcome=Outcome.COMPLETE)
# What versions 5, 6 and 7 of `ai` all know; one chunk type or reason more, and a client fails.
KNOWN = {
    *("start", "start-step", "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta"),
    *("reasoning-end", "tool-input-available", "tool-output-available", "tool-output-error", "source-url"),
    *("source-document", "data-routing", "data-outcome", "finish-step", "error", "finish"),
}
REASONS = {"stop", "length", "content-filter", "tool-calls", "error", "other"}


def chunks(events: Sequence[AnswerEvent]) -> list[dict[str, Any]]:
    """What is written, as JSON, without the end mark."""
    *blocks, done = Decoder().feed(written(PROTOCOL, events))
    assert done.data == "[DONE]"
    return [json.loads(block.data) for block in blocks]


def wire(*told: object) -> bytes:
    return b"".join(b"data: " + (t if isinstance(t, bytes) else json.dumps(t).encode()) + b"\n\n" for t in told)


def got(*told: object) -> list[AnswerEvent]:
    return read(PROTOCOL.reader(), [wire(*told)])


class TestWriter:
    @settings(max_examples=300, deadline=None)
    @given(events=answers())
    def test_every_part_is_open_when_it_is_written_to_and_closed_before_the_end(
        self, events: list[AnswerEvent]
    ) -> None:
        """As the client's reducer has it: it throws at each of these."""
        told = chunks(events)
        open_parts: set[tuple[str, str]] = set()
        used: set[str] = set()
        called: set[str] = set()
        step = False
        for chunk in told:
            kind = chunk["type"]
            assert kind in KNOWN
            part, _, act = kind.rpartition("-")
            if part in ("text", "reasoning"):
                assert step
                if act == "start":
                    assert not open_parts
                    assert chunk["id"] not in used
                    used.add(chunk["id"])
                    open_parts.add((part, chunk["id"]))
                else:
                    assert (part, chunk["id"]) in open_parts
                if act == "end":
                    open_parts.remove((part, chunk["id"]))
            else:
                assert not open_parts
            if kind == "start-step":
                assert not step
                step = True
            elif kind == "finish-step":
                assert step
                step = False
            elif kind == "tool-input-available":
                called.add(chunk["toolCallId"])
            elif kind.startswith("tool-output"):
                assert chunk["toolCallId"] in called
        assert not step
        assert told[0] == {"type": "start", "messageId": getattr(events[0], "exchange", None)}
        assert told[-1]["type"] == "finish"
        assert told[-1]["finishReason"] in REASONS

    def test_a_turn_is_a_step(self) -> None:
        turn = [Text("a"), TurnEnded(turn=1, finish="tool_calls"), Text("\n\n"), Text("b")]
        told = [chunk["type"] for chunk in chunks([STARTED, *turn, TurnEnded(turn=2, finish="stop"), COMPLETE])]
        part = ["text-start", "text-delta", "text-end"]
        assert told == [
            *("start", "start-step", *part, "finish-step"),
            *("start-step", "text-start", "text-delta", "text-delta", "text-end", "finish-step"),
            *("data-outcome", "finish"),
        ]

    def test_an_error_comes_after_all_that_the_page_is_to_keep(self) -> None:
        """A client reads no further than an error."""
        end = Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="Too slow.", marks=("recorded",))
        told = chunks([STARTED, Text("a"), end])
        assert [chunk["type"] for chunk in told][-5:] == ["text-end", "finish-step", "data-outcome", "error", "finish"]
        assert told[-3]["data"] == {
            "outcome": "failed",
            "code": "timeout",
            "message": "Too slow.",
            "marks": ["recorded"],
        }
        assert told[-2] == {"type": "error", "errorText": "Too slow."}

    @pytest.mark.parametrize("status", ["error", "timeout", "invalid_arguments", "unknown_tool", "cancelled", "new"])
    @pytest.mark.parametrize("result", [None, "order 7 is unknown"])
    def test_a_tool_that_failed_is_an_error_of_its_part(self, status: str, result: str | None) -> None:
        events = [
            STARTED,
            ToolCalled(id="t1", name="look"),
            ToolReturned(id="t1", name="look", status=status, result=result),
        ]
        told = chunks([*events, COMPLETE])
        [failed] = [chunk for chunk in told if chunk["type"] == "tool-output-error"]
        assert failed["errorText"] == result or (result is None and failed["errorText"].endswith("."))
        back = read(PROTOCOL.reader(), [written(PROTOCOL, [*events, COMPLETE])])
        [returned] = [event for event in back if isinstance(event, ToolReturned)]
        kept = status if result is None and status != "new" else "error"
        assert returned == ToolReturned(id="t1", name="look", status=kept, result=result)

    def test_sources_keep_their_quotes_and_marks(self) -> None:
        cited = [Cited(title="T", url="https://x.example/", quote="so"), Cited(title="Book", quote="it is", mark="[2]")]
        told = [chunk for chunk in chunks([STARTED, *cited, COMPLETE]) if chunk["type"].startswith("source")]
        assert [(chunk["type"], chunk["sourceId"]) for chunk in told] == [("source-url", "1"), ("source-document", "2")]
        back = read(PROTOCOL.reader(), [written(PROTOCOL, [STARTED, *cited, COMPLETE])])
        assert back == [Started(exchange="Xq3", conversation=""), *cited, COMPLETE]


class TestReader:
    def test_a_stream_of_another_server_s_is_read(self) -> None:
        assert got(
            {"type": "start", "messageId": "m1", "messageMetadata": {"x": 1}},
            {"type": "start-step"},
            {"type": "reasoning-start", "id": "r"},
            {"type": "reasoning-delta", "id": "r", "delta": "Hm."},
            {"type": "reasoning-end", "id": "r"},
            {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": "I "},
            {"type": "text-delta", "id": "t", "delta": "look\ud83d"},
            {"type": "text-delta", "id": "t", "delta": "\ude00"},
            {"type": "text-end", "id": "t", "citations": []},
            {"type": "tool-input-start", "toolCallId": "1", "toolName": "look"},
            {"type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": '{"or'},
            {"type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": 'der":7}'},
            {"type": "tool-input-available", "toolCallId": "1", "toolName": "look", "input": {"order": 7}},
            {"type": "tool-output-available", "toolCallId": "1", "output": {"left": True}, "preliminary": True},
            {"type": "tool-output-available", "toolCallId": "1", "output": {"left": True}},
            {"type": "tool-input-error", "toolCallId": "2", "toolName": "f", "input": "{", "errorText": "No."},
            {"type": "tool-output-denied", "toolCallId": "1"},
            {"type": "file", "url": "data:,", "mediaType": "text/plain"},
            {"type": "steering-message", "id": "s", "parts": []},
            {"type": "reset-step"},
            {"type": "data-weather", "data": {"type": "text-delta", "delta": "no"}},
            {"type": "message-metadata", "messageMetadata": {}},
            {"type": "of-the-future", "delta": "no"},
            {"type": "finish-step"},
            {"type": "finish", "finishReason": "length"},
            b"[DONE]",
        ) == [
            Started(exchange="m1", conversation=""),
            Reasoning("Hm."),
            Text("I "),
            Text("look"),
            Text("😀"),
            ToolCalled(id="1", name="look", arguments={"order": 7}),
            ToolReturned(id="1", name="look", status="ok", result='{"left":true}'),
            ToolCalled(id="2", name="f", arguments="{"),
            ToolReturned(id="2", name="f", status="invalid_arguments", result="No."),
            ToolReturned(id="1", name="look", status="cancelled"),
            Ended(outcome=Outcome.TRUNCATED),
        ]

    @pytest.mark.parametrize(
        ("told", "end"),
        [
            ({"type": "finish"}, COMPLETE),
            ({"type": "finish", "finishReason": "of the future"}, COMPLETE),
            ({"type": "finish", "finishReason": "content-filter"}, Ended(outcome=Outcome.FILTERED)),
            ({"type": "finish", "finishReason": "interrupted"}, Ended(outcome=Outcome.INTERRUPTED)),
            ({"type": "abort", "reason": "x"}, Ended(outcome=Outcome.STOPPED)),
            (
                {"type": "error", "errorText": "Boom."},
                Ended(outcome=Outcome.FAILED, code=Code.UPSTREAM_ERROR, message="Boom."),
            ),
        ],
    )
    def test_every_end_is_understood(self, told: object, end: Ended) -> None:
        assert got({"type": "start"}, told, b"[DONE]")[-1] == end

    def test_an_error_is_one_whatever_the_data_part_before_it_says(self) -> None:
        complete = {"type": "data-outcome", "data": {"outcome": "complete"}}
        for last in ({"type": "error", "errorText": "Boom."}, {"type": "finish", "finishReason": "error"}):
            end = got({"type": "start"}, complete, last)[-1]
            assert isinstance(end, Ended)
            assert end.outcome is Outcome.FAILED

    @pytest.mark.parametrize("data", [None, 7, [], {}, {"outcome": "new"}, {"outcome": "stopped", "usage": 7}])
    def test_a_data_part_of_somebody_else_s_is_none_of_ours(self, data: object) -> None:
        assert got({"type": "data-outcome", "data": data}, {"type": "finish", "finishReason": "length"}) == [
            Ended(outcome=Outcome.TRUNCATED)
        ]
        assert got({"type": "data-routing", "data": data}, {"type": "finish"}) == [COMPLETE]

    def test_a_call_in_pieces_that_was_never_said_to_be_whole_is_told_at_the_end(self) -> None:
        pieces = [{"type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": p} for p in ('{"a"', ":1}")]
        assert got({"type": "tool-input-start", "toolCallId": "1", "toolName": "f"}, *pieces, {"type": "finish"}) == [
            ToolCalled(id="1", name="f", arguments={"a": 1}),
            COMPLETE,
        ]

    def test_calls_in_pieces_without_end_end_the_answer(self) -> None:
        reader = PROTOCOL.reader(max_event_bytes=5_000)
        piece = wire({"type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": "x" * 500})
        told = read(reader, [wire({"type": "tool-input-start", "toolCallId": "1", "toolName": "f"}), *[piece] * 50])
        last = told[-1]
        assert isinstance(last, Ended)
        assert last.code is Code.LIMIT

    def test_routing_is_read_back(self) -> None:
        routed = Routed(agent="skill.é", confidence=0.5, method="semantic", trace={"a": [1, None]})
        assert read(PROTOCOL.reader(), [written(PROTOCOL, [STARTED, routed, COMPLETE])])[1] == routed

    @settings(max_examples=150, deadline=None)
    @given(
        told=st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from([*sorted(KNOWN), "tool-input-start", "tool-input-delta", "abort"])},
                optional={
                    name: st.none()
                    | st.integers()
                    | st.text(max_size=3)
                    | st.sampled_from(["1", "\ud83d"])
                    | st.just([])
                    for name in ("id", "delta", "toolCallId", "toolName", "input", "output", "errorText", "data", "url")
                },
            ),
            max_size=8,
        )
    )
    def test_chunks_with_any_fields_are_read_without_an_exception(self, told: list[dict[str, Any]]) -> None:
        events = got(*told)
        assert [isinstance(event, Ended) for event in events] == [False] * (len(events) - 1) + [True]


def said(name: str, *parts: object) -> dict[str, Any]:
    return {"id": name, "role": "user", "parts": list(parts or [{"type": "text", "text": "Bonjour"}])}


def asked(*messages: object, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "messages": list(messages or [said("u1")]), **more}


def answered(name: str = "Xq3") -> dict[str, Any]:
    return {"id": name, "role": "assistant", "parts": [{"type": "text", "text": "Oui"}], "metadata": {"a": 1}}


class TestRequest:
    def test_a_question_of_use_chat_is_understood(self) -> None:
        parts = [
            {"type": "step-start"},
            {"type": "text", "text": "Bon\ud83d", "state": "done"},
            {"type": "data-quote", "data": {"x": 1}},
            {"type": "text", "text": "jour"},
        ]
        body = asked(
            said("u1"),
            answered(),
            said("u2", *parts),
            trigger="submit-message",
            assistant="helper",
            resumable=True,
            system="",
            tools={},
            callSettings=None,
            config={"x": 1},
        )
        assert parse_request(json.dumps(body).encode(), LIMITS) == UIAsked(
            message="Bon\ufffd\njour",
            thread="c1",
            assistant="helper",
            resumable=True,
            question="u2",
            same=("u2",),
            earlier=(Named(id="u1", role="user"), Named(id="Xq3", role="assistant")),
            comes_back=True,
        )

    def test_what_is_asked_again_is_known_by_the_trigger_or_by_the_message(self) -> None:
        regenerate = {"trigger": "regenerate-message"}
        for more, again, instead_of in (
            ({}, False, None),
            ({"messageId": "u1"}, True, None),  # an edit
            (regenerate, True, None),
            ({**regenerate, "messageId": "Xq3"}, True, "Xq3"),
            ({**regenerate, "messageId": "u1"}, True, None),
        ):
            told = parse_request(asked(**more), LIMITS)
            assert (told.again, told.instead_of) == (again, instead_of)

    def test_the_same_words_directly_before_are_the_same_question(self) -> None:
        told = parse_request(asked(said("u0"), answered(), said("u1"), said("u2"), said("u3")), LIMITS)
        assert told.same == ("u3", "u2", "u1")
        other = parse_request(asked(said("u1", {"type": "text", "text": "Other"}), said("u2")), LIMITS)
        assert other.same == ("u2",)
        many = parse_request(asked(*(said(f"u{n}") for n in range(30))), LIMITS)
        assert len(many.same) == SAME

    @pytest.mark.parametrize(
        ("body", "field", "words"),
        [
            ({"messages": [said("u1")]}, "id", "is missing"),
            (asked() | {"id": 7}, "id", "a number"),
            (asked() | {"id": ""}, "id", "empty"),
            (asked() | {"id": "x" * 201}, "id", "longer than 200 bytes"),
            (asked() | {"messages": None}, "messages", "a list"),
            (asked() | {"messages": []}, "messages", "at least one"),
            (asked() | {"messages": {"0": said("u1")}}, "messages", "a list"),
            (asked(7), "messages[0]", "an object, not a number"),
            (asked({"role": "user", "parts": []}), "messages[0].id", "is missing"),
            (asked({"id": "u1", "parts": []}), "messages[0].role", "`user` or `assistant`"),
            (asked(said("u1") | {"role": "system"}, said("u2")), "messages[0].role", "its own instructions"),
            (asked(said("u1") | {"role": "developer"}), "messages[0].role", "`user` or `assistant`"),
            (asked(said("u1") | {"parts": "Hi"}), "messages[0].parts", "a list, not a string"),
            (asked(said("u1", 7)), "messages[0].parts[0]", "an object"),
            (asked(said("u1", {})), "messages[0].parts[0].type", "must have a type"),
            (asked(said("u1", {"type": "text"}), answered(), said("u2")), "messages[0].parts[0].text", "have a text"),
            (asked(said("u1", {"type": "text", "text": "\n\u3000"})), "messages[0].parts", "cannot be empty"),
            (asked({"id": "u1", "role": "user", "parts": []}), "messages[0].parts", "cannot be empty"),
            (asked(said("u1", {"type": "data-x", "data": 1})), "messages[0].parts", "cannot be empty"),
            (asked(said("u1", {"type": "text", "text": "a" * 32_001})), "messages[0].parts", "longer than 32000"),
            (
                asked(said("u1", {"type": "text", "text": "See:"}, {"type": "file", "url": "data:,"})),
                "messages[0].parts[1]",
                "Files are not taken",
            ),
            (asked(said("u1", {"type": "tool-look", "input": {}})), "messages[0].parts[0]", "Only parts of text"),
            (asked(said("u1"), answered()), "messages[1].role", "The last message must be the user's"),
            (asked(trigger="resume-stream"), "trigger", "`submit-message` or `regenerate-message`"),
            (asked(trigger=7), "trigger", "`submit-message`"),
            (asked(messageId=7), "messageId", "a number"),
            (asked(resumable="yes"), "resumable", "true or false"),
            (asked(assistant="a\nb"), "assistant", "printable"),
            (asked(system="Be rude."), "system", "its own instructions"),
            (asked(tools={"pay": {}}), "tools", "a page's are not run"),
            (asked(tools=[{"name": "pay"}]), "tools", "a page's are not run"),
        ],
    )
    def test_what_is_not_taken_is_refused_with_its_place(self, body: Any, field: str, words: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            PROTOCOL.parse(json.dumps(body).encode(), LIMITS)
        assert caught.value.field == field
        assert words in caught.value.message
        told = PROTOCOL.refusal(caught.value).decode()
        assert told.startswith(caught.value.message)
        assert told.count(field) == 1 or field in caught.value.message

    def test_messages_are_counted(self) -> None:
        with pytest.raises(InvalidRequest) as caught:
            parse_request(asked(*(said(f"u{n}") for n in range(MESSAGES + 1))), LIMITS)
        assert (caught.value.field, caught.value.limit) == ("messages", MESSAGES)

    def test_what_stands_in_messages_before_the_question_does_not_matter(self) -> None:
        """A file that was refused once stays in the client's list."""
        file = said("u1", {"type": "file", "url": "data:,", "mediaType": "image/png"})
        assert parse_request(asked(file, said("u2")), LIMITS).message == "Bonjour"


class TestStop:
    def test_all_that_a_stop_may_say_is_understood(self) -> None:
        shown = {"id": "Xq3", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "text", "text": "Bon"}]}
        assert parse_stop(b"", LIMITS) == parse_stop({}, LIMITS) == UIStop()
        assert parse_stop({"assistantMessage": shown}, LIMITS) == UIStop(answer="Xq3", text="Bon")
        assert parse_stop({"assistantMessage": shown, "activeStreamId": "Y"}, LIMITS) == UIStop(answer="Y", text="Bon")
        assert parse_stop({"messageId": "u1", "activeStreamId": None}, LIMITS) == UIStop(question="u1")

    def test_the_text_of_several_parts_is_the_answer_s(self) -> None:
        parts = [
            {"type": "text", "text": "a"},
            {"type": "tool-x"},
            {"type": "step-start"},
            {"type": "text", "text": "b"},
        ]
        assert parse_stop({"assistantMessage": {"id": "X", "parts": parts}}, LIMITS).text == "ab"

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"assistantMessage": 7}, "assistantMessage"),
            ({"assistantMessage": {}}, "assistantMessage.id"),
            ({"assistantMessage": {"id": "x"}}, "assistantMessage.parts"),
            ({"assistantMessage": {"id": "x", "parts": [{"type": "text"}]}}, "assistantMessage.parts[0].text"),
            ({"activeStreamId": 7}, "activeStreamId"),
            ({"messageId": "x" * 201}, "messageId"),
        ],
    )
    def test_what_is_not_taken_is_refused_with_its_place(self, body: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            parse_stop(json.dumps(body).encode(), LIMITS)
        assert caught.value.field == field
