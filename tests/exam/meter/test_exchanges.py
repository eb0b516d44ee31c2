"""Which completions are one exchange's, and which of them should not be there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from motamot.exam.meter import exchanges as rules
from motamot.exam.meter.completion import Completion
from motamot.exam.meter.exchanges import Exchanges, Kind, Metered

SALUT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "salut"}]
LONG = [{"role": "user", "content": "what is the colour of the sky today?"}]
ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Bench:
    """A meter's book with a clock of its own."""

    def __init__(self, header: str | None = None) -> None:
        self.now = 1_000.0
        self.book = Exchanges(header, clock=lambda: self.now)

    def ask(
        self,
        messages: Any,
        *,
        took: float | None = 1.0,
        fails: bool = False,
        headers: Mapping[str, str] | None = None,
        **body: Any,
    ) -> Metered:
        completion = Completion.of("POST", "/v1/chat/completions", headers or {})
        assert completion is not None
        completion.asked(json.dumps({"model": "m", "messages": messages, **body}).encode())
        metered = self.book.begun(completion)
        if took is not None:
            completion.answered(503 if fails else 200, {"content-type": "text/event-stream"})
            if not fails:
                completion.came(ANSWER)
            completion.over("complete")
            self.now += took
            completion.ended_at = self.now
        return metered


def test_a_probing_loop_is_paid_twice() -> None:
    bench = Bench()
    first, second = bench.ask(SALUT), bench.ask(SALUT, stream=True)
    assert (first.kind, second.kind) == (Kind.ANSWER, Kind.AGAIN)
    assert second.exchange is first.exchange and second.of is first.completion
    assert "a probe" in second.notes()[0] and "paid twice" in second.notes()[0]


def test_two_at_once_are_paid_twice_too() -> None:
    bench = Bench()
    bench.ask(SALUT, took=None)
    assert bench.ask(SALUT, took=None).kind is Kind.AGAIN


def test_the_same_question_of_another_visitor_is_an_exchange_of_its_own() -> None:
    bench = Bench()
    first = bench.ask(SALUT)
    bench.now += rules.AGAIN_SECONDS + 0.1
    second = bench.ask(SALUT)
    assert second.kind is Kind.ANSWER and second.exchange is not first.exchange


def test_what_is_asked_again_after_a_failure_is_a_retry_and_says_who_retried() -> None:
    bench = Bench()
    bench.ask(SALUT, fails=True)
    second = bench.ask(SALUT, headers={"x-stainless-retry-count": "1"})
    assert second.kind is Kind.RETRY and "by the client library itself" in second.notes()[0]
    bench.now += rules.AGAIN_SECONDS + 0.1
    assert bench.ask(SALUT).kind is Kind.ANSWER


def test_a_turn_after_tools_belongs_to_its_exchange() -> None:
    bench = Bench()
    first = bench.ask(SALUT)
    bench.now += 40  # a slow tool
    tools = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "t", "content": "21"},
    ]
    second = bench.ask([*SALUT, *tools])
    assert second.kind is Kind.TURN and second.exchange is first.exchange and not second.notes()[:0]


def test_the_next_question_is_the_next_exchange_unless_nobody_can_have_typed_it() -> None:
    bench = Bench()
    first = bench.ask(SALUT)
    more = [*SALUT, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "and you?"}]
    bench.now += 5
    second = bench.ask(more)
    assert second.kind is Kind.ANSWER and second.exchange is not first.exchange
    suggestions = [*more, {"role": "assistant", "content": "Fine"}, {"role": "user", "content": "Suggest three"}]
    bench.now += 0.1
    third = bench.ask(suggestions)
    assert third.kind is Kind.HELPER and third.exchange is second.exchange


def test_what_quotes_a_question_is_a_helper_of_it() -> None:
    bench = Bench()
    first = bench.ask(LONG)
    title = bench.ask([{"role": "user", "content": "A title for this chat: " + LONG[0]["content"]}])
    assert title.kind is Kind.HELPER and title.exchange is first.exchange
    bench.now += rules.HELPER_SECONDS + 1
    assert bench.ask([{"role": "user", "content": "Again: " + LONG[0]["content"]}]).kind is Kind.ANSWER


def test_a_short_word_is_no_quotation() -> None:
    bench = Bench()
    bench.ask([{"role": "user", "content": "the"}])
    assert bench.ask([{"role": "user", "content": "what is the time?"}]).kind is Kind.ANSWER


@pytest.mark.parametrize(
    ("by", "headers", "body"),
    [
        ("header", {"x-exchange": "e1"}, {}),
        ("metadata", {}, {"metadata": {"exchange_id": "e1"}}),
        ("traceparent", {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}, {}),
    ],
)
def test_what_the_request_says_of_itself_decides(by: str, headers: dict[str, str], body: dict[str, Any]) -> None:
    bench = Bench("X-Exchange")
    first = bench.ask(SALUT, headers=headers, **body)
    bench.now += 500  # whatever the time
    again = bench.ask(SALUT, headers=headers, **body)
    other = bench.ask(LONG, headers=headers, **body)
    assert first.exchange.by == by
    assert (again.kind, other.kind) == (Kind.AGAIN, Kind.HELPER)
    assert again.exchange is other.exchange is first.exchange


def test_no_text_of_a_conversation_is_kept_longer_than_helpers_need_it() -> None:
    bench = Bench()
    metered = bench.ask([{"role": "user", "content": "x" * 100_000}])
    assert metered.completion.texts == "" and metered.completion.messages is not None
    assert len(metered.completion.messages.question) <= 2_000


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"messages": 5}', b'{"messages": [5, {"role": 7}]}', b"\xff" * 50]
)
def test_a_request_that_cannot_be_read_is_passed_on_and_counted(body: bytes) -> None:
    completion = Completion.of("POST", "/v1/chat/completions", {})
    assert completion is not None
    completion.asked(body)
    assert Exchanges().begun(completion).kind is Kind.ANSWER


def test_many_exchanges_are_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "EXCHANGES", 3)
    bench = Bench()
    for number in range(10):
        bench.ask([{"role": "user", "content": f"number {number}"}])
    assert len(bench.book._by_id) == 3 and len(bench.book._by_users) == 3


def test_usage_that_was_never_reported_is_named_with_the_reason() -> None:
    notes = Bench().ask(LONG, stream=True).notes()
    assert notes == ["its usage was never reported: stream_options.include_usage was not asked for"]
    assert Bench().ask(LONG, stream=True, stream_options={"include_usage": True}).notes() == [
        "its usage was never reported"
    ]
