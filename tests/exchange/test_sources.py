"""Sources are those that the model was given and that its answer cites: computed, never taken from its word."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import AnswerEvent, By, Cited, Ended, Outcome, Text, ToolReturned, TurnEnded
from motamot.exchange.exchange import Visible
from motamot.exchange.own import OwnAnswer, Question
from motamot.exchange.sources import Given, Sourced, cited
from motamot.exchange.tools import ToolContext, run_tool, tool_from
from motamot.limits import Limits
from motamot.model.turn import ToolCall
from tests.exchange.support import read, run, text, world

ONE = Cited(title="One", url="https://help.example/one", mark="[1]")
TWO = Cited(title="Two", url="https://help.example/two", mark="[2]")
TWELVE = Cited(title="Twelve", mark="[12]")
BARE = Cited(title="Bare", url="https://help.example/one/")
ALL = [Given(source) for source in (ONE, TWO, TWELVE)]


# What a text cites


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("It is so [12].", [TWELVE]),
        ("First [2], then [1], and [2] again.", [TWO, ONE]),
        ("Both [1][2].", [ONE, TWO]),
        ("Both [1, 2].", [ONE, TWO]),
        ("Both [2; 12].", [TWO, TWELVE]),
        ("Both [^1] and 【2】.", [ONE, TWO]),
        ("As a link: [12](https://elsewhere.example).", [TWELVE]),
        (r"Escaped \[12\].", [TWELVE]),
        ("The mark alone in code: `[12]`.", [TWELVE]),
        ("With a word: [Source 1], [see 2 and 12].", [ONE, TWO, TWELVE]),
        ("As some write it: 【12†source】.", [TWELVE]),
        ("A tick ` alone.\n\n[12] and another ` tick.", [TWELVE]),
        ("See https://help.example/two.", [TWO]),
        ("See [here](https://help.example/two#prices), and (https://help.example/one/).", [TWO, ONE]),
        ("« Réservez [2] »", [TWO]),
    ],
)
def test_a_source_is_cited_by_its_mark_or_its_address(answer: str, found: list[Cited]) -> None:
    assert cited(answer, ALL) == found


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "12, (12), {12} or 1 2.",
        "[13] and [112] and [1 2",
        "An index: `row[12]`.",
        "```python\nrow[12] = [1]\n```",
        "~~~\n[12]\n~~~",
        "An open fence:\n```\n[12]",
        "> ```\n> [12]\n> ```",
        "1. So:\n\n     ```\n     [12]\n     ```",
        "- ```\n  [12]\n  ```",
        "Code of two lines: `row\n[12]`.",
        "It leaves [in 12 days], for [2 persons, 1 child].",
        "````\n```\n[12]\n```\n````",
        "https://help.example/two-more https://help.example/twofold https://help.example/two/children",
        "https://help.example/two.html https://help.example/two?page=3",
    ],
)
def test_what_only_looks_like_a_mark_or_an_address_cites_nothing(answer: str) -> None:
    assert cited(answer, [Given(TWO), Given(TWELVE), Given(Cited(title="One", mark="[1]"))]) == []


def test_after_a_fence_marks_count_again() -> None:
    assert cited("```\n[1]\n```\nSo it is [12].", ALL) == [TWELVE]


def test_marks_that_are_words_are_cited_together_too() -> None:
    fares, lines = Cited(title="Fares", mark="[fares]"), Cited(title="Lines", mark="[lines]")
    assert {source.title for source in cited("So it is [lines, fares].", [Given(fares), Given(lines)])} == {
        "Fares",
        "Lines",
    }


def test_what_was_written_before_a_source_was_given_does_not_cite_it() -> None:
    assert cited("Surely [1]. Indeed [2].", [Given(ONE, 12), Given(TWO, 12)]) == [TWO]
    assert cited("https://help.example/one is it.", [Given(ONE, 5)]) == []


def test_a_mark_of_another_kind_counts_as_a_word_of_its_own() -> None:
    source = Cited(title="Law", mark="§4")
    assert cited("As §4 says.", [Given(source)]) == [source]
    assert cited("As §42 says.", [Given(source)]) == []


def test_a_source_given_twice_is_told_once() -> None:
    assert cited("So [1] and [1].", [Given(ONE), Given(ONE, 3)]) == [ONE]
    renamed = Cited(title="One, renamed meanwhile", url=ONE.url, mark=ONE.mark)
    assert cited("So [1] and [1].", [Given(ONE), Given(renamed, 3)]) == [renamed]


@pytest.mark.parametrize("part", ["[", "`", "[1", "`a", "[[1]", "``` ", "]", "【", "https://help.example/two"])
def test_a_hostile_answer_takes_no_long_time(part: str) -> None:
    began = time.process_time()
    cited(part * (1_000_000 // len(part)), ALL)
    assert time.process_time() - began < 5


# What an exchange tells


def page(ctx: ToolContext, name: str) -> Sourced:
    """A page of the help."""
    found = {"one": ONE, "two": TWO}[name]
    return Sourced({"mark": found.mark, "text": f"Page {name}."}, sources=[found])


def calls(*names: str) -> list[dict[str, Any]]:
    asked = [{"call": {"name": "page", "arguments": {"name": name}}} for name in names]
    return [*asked, {"finish": "tool_calls"}]


def sources(events: list[AnswerEvent]) -> list[Cited]:
    return [event for event in events if isinstance(event, Cited)]


def test_only_what_was_given_and_is_cited_is_told_right_before_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        answer = [{"say": "It is so [2], says "}, {"say": "https://help.example/three [3]."}]
        async with world(tmp_path, [calls("one", "two"), answer], tools=[page]) as w:
            exchange, events = await w.ask()
            assert sources(events) == [TWO], "given and not cited, and cited and not given, are no sources"
            assert isinstance(events[-3], TurnEnded) and events[-2] == TWO
            assert isinstance(end := events[-1], Ended) and end.shown == len(events) - 1
            assert text(events) == "It is so [2], says https://help.example/three [3].", "the text stays as it is"
            assert await read(exchange) == events, "whoever comes later is told the same"
            assert "Page two." in str(w.server.requests[1].body["messages"][-1]["content"])

    run(scenario())


def test_an_answer_without_support_has_no_sources(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, [calls("one"), [{"say": "I do not know."}]], tools=[page]) as w:
            assert sources((await w.ask())[1]) == []
        async with world(tmp_path, [[{"say": "Surely [1], https://help.example/one."}]], tools=[page]) as w:
            assert sources((await w.ask())[1]) == []

    run(scenario())


def test_the_words_before_the_tool_was_called_cite_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = [[{"say": "I know it from [1]."}, *calls("one", "two")], [{"say": "As [2] says."}]]
        async with world(tmp_path, script, tools=[page]) as w:
            assert sources((await w.ask())[1]) == [TWO]

    run(scenario())


def test_sources_of_an_earlier_exchange_support_no_later_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = [calls("one"), [{"say": "So [1]."}], [{"say": "As I said [1]."}]]
        async with world(tmp_path, script, tools=[page]) as w:
            first, events = await w.ask()
            assert sources(events) == [ONE]
            _, events = await w.ask("Again?", conversation=first.begun.conversation)
            assert text(events) == "As I said [1]." and sources(events) == []

    run(scenario())


def test_a_cut_answer_has_the_sources_of_what_came(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = [calls("one", "two"), [{"say": "So [1], and "}, {"finish": "length"}]]
        async with world(tmp_path, script, tools=[page]) as w:
            _, events = await w.ask()
            assert isinstance(end := events[-1], Ended) and end.outcome is Outcome.TRUNCATED
            assert sources(events) == [ONE]

    run(scenario())


def test_a_stopped_answer_has_the_sources_of_what_was_shown(tmp_path: Path) -> None:
    async def scenario() -> None:
        held = [{"say": "So [1]."}, {"say": " And [2]."}, {"gate": "more"}, {"say": " Last."}]
        async with world(tmp_path, [calls("one", "two"), held], tools=[page]) as w:
            exchange = await w.begin()
            numbers: dict[str, int] = {}  # of the event with which the text was so far
            so_far = ""
            async with exchange.follow() as follower:
                while not so_far.endswith("[2]."):
                    for number, event in await follower.next():
                        follower.delivered(number)
                        if isinstance(event, Text):
                            so_far += event.text
                            numbers[so_far] = number
                shown = numbers["So [1]."]
                ended = await exchange.stop(seen=shown, by=By.VISITOR)
            assert (ended.outcome, ended.shown) == (Outcome.STOPPED, shown)
            events = await read(exchange)
            assert text(events) == "So [1]."
            assert events[-2:] == [ONE, ended]
            await w.store.flush()
            row = await w.store.exchange(exchange.id)
            assert row is not None and (row.shown, row.generated) == ("So [1].", "So [1]. And [2].")

    run(scenario())


def test_an_answer_of_ones_own_has_the_sources_of_what_it_lets_through(tmp_path: Path) -> None:
    async def own(question: Question) -> AsyncIterator[AnswerEvent]:
        first_sentence = True
        async for event in question.model_answer():
            if isinstance(event, Text):
                if not first_sentence:
                    continue
                first_sentence = "." not in event.text
            yield event

    async def scenario() -> None:
        answer = [{"say": "So [1]."}, {"say": " And [2]."}]
        async with world(tmp_path, [calls("one", "two"), answer], tools=[page]) as w:
            loop: Any = w.answer
            w.answer = OwnAnswer(generator=own, price=loop.price, model_answer=loop)
            _, events = await w.ask()
            assert text(events) == "So [1]."
            assert sources(events) == [ONE] and isinstance(events[-1], Ended)

    run(scenario())


def test_what_an_answer_of_ones_own_has_told_is_not_told_again(tmp_path: Path) -> None:
    async def own(question: Question) -> AsyncIterator[AnswerEvent]:
        async for event in question.model_answer():
            yield event
        yield Cited(title="The first page", url=ONE.url)

    async def scenario() -> None:
        async with world(tmp_path, [calls("one"), [{"say": "So [1]."}]], tools=[page]) as w:
            loop: Any = w.answer
            w.answer = OwnAnswer(generator=own, price=loop.price, model_answer=loop)
            assert sources((await w.ask())[1]) == [Cited(title="The first page", url=ONE.url)]

    run(scenario())


def test_more_sources_than_the_limit_are_not_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = [calls("one", "two"), [{"say": "So [1] and [2]."}]]
        async with world(tmp_path, script, tools=[page], sources_per_exchange=1) as w:
            assert sources((await w.ask())[1]) == [ONE]

    run(scenario())


# What a tool gives


def called(function: Callable[..., Any], **limits: Any) -> Any:
    call = ToolCall(id="1", name=function.__name__, raw="{}", arguments={})
    context = ToolContext(visitor="v", exchange="x", conversation="c", assistant="a")
    return asyncio.run(run_tool([tool_from(function)], call, context, Limits(**limits)))


def test_a_result_that_is_left_out_gives_no_sources() -> None:
    def look() -> Sourced:
        return Sourced("x" * 100, sources=[ONE])

    assert called(look).sources == (ONE,)
    left_out = called(look, tool_result_bytes=50)
    assert (left_out.status, left_out.sources) == ("error", ())


def test_sources_that_are_none_are_the_tools_fault() -> None:
    def look() -> Sourced:
        return Sourced("x", sources=["https://help.example"])  # type: ignore[list-item]  # what the test is about

    told = called(look)
    assert (told.status, told.sources) == ("error", ()) and "Cited" in (told.detail or "")


def test_visitors_that_see_results_see_the_text_that_the_model_saw(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = [calls("one"), [{"say": "So [1]."}]]
        async with world(tmp_path, script, tools=[page], visible=Visible(tool_results=True)) as w:
            _, events = await w.ask()
            [returned] = [event for event in events if isinstance(event, ToolReturned)]
            assert returned.result == '{"mark":"[1]","text":"Page one."}'

    run(scenario())
