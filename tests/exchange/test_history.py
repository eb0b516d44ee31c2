"""Later history is built from user texts and shown assistant texts only."""

from __future__ import annotations

from motamot.exchange.history import conversation, merged
from motamot.model.turn import Message, ToolCall
from motamot.store.records import ExchangeRow


def row(name: str, question: str | None, shown: str | None, *, replaces: str | None = None) -> ExchangeRow:
    return ExchangeRow(
        id=name,
        conversation="c",
        assistant="a",
        visitor="v",
        key=None,
        body_hash=None,
        question=question,
        model="m",
        started_at=0.0,
        ended_at=1.0,
        outcome="failed",
        code="upstream_error",
        by=None,
        message="The model failed.",
        detail="insufficient_quota",
        generated="generated, never shown",
        shown=shown,
        events=3,
        sent=3,
        seen=None,
        replaces=replaces,
        marks=(),
    )


def told(rows: list[ExchangeRow], question: str = "Q", tokens: int = 1000) -> list[tuple[str, str]]:
    messages = conversation(rows, question, system="S", tokens=tokens, count=len)
    return [(message.role, message.content) for message in messages]


def test_errors_and_what_was_not_shown_never_reach_the_model() -> None:
    messages = told([row("1", "one", "shown")])
    assert messages == [("system", "S"), ("user", "one"), ("assistant", "shown"), ("user", "Q")]


def test_user_messages_that_follow_each_other_are_merged_with_a_blank_line() -> None:
    messages = told([row("1", "one", ""), row("2", "two", None), row("3", "three", "3")])
    assert messages[1:] == [("user", "one\n\ntwo\n\nthree"), ("assistant", "3"), ("user", "Q")]


def test_an_exchange_that_was_asked_again_is_left_out() -> None:
    messages = told([row("1", "one", "bad"), row("2", "one", "good", replaces="1")])
    assert messages[1:] == [("user", "one"), ("assistant", "good"), ("user", "Q")]


def test_a_deleted_exchange_is_left_out() -> None:
    assert told([row("1", None, None)])[1:] == [("user", "Q")]


def test_exchanges_are_left_out_whole_the_oldest_first() -> None:
    rows = [row("1", "aaaa", "bbbb"), row("2", "cccc", "dddd"), row("3", "e", "f")]
    assert told(rows, tokens=10)[1:] == [
        ("user", "cccc"),
        ("assistant", "dddd"),
        ("user", "e"),
        ("assistant", "f"),
        ("user", "Q"),
    ]
    assert told(rows, tokens=9)[1:] == [("user", "e"), ("assistant", "f"), ("user", "Q")]


def test_tool_messages_and_calls_are_never_merged() -> None:
    call = ToolCall(id="1", name="t", raw="{}", arguments={})
    messages = [
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", content="a", tool_call_id="1"),
        Message(role="tool", content="b", tool_call_id="2"),
    ]
    assert merged(messages) == messages
