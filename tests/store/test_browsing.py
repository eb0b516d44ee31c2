"""What an operator is shown: lists that are filtered and paged, one exchange whole, exports, a visitor's record."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import Cited, Ended, Outcome, Reasoning, Started, Text, ToolCalled, ToolReturned, TurnEnded, Usage
from motamot.errors import InvalidRequest
from motamot.store import browsing
from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.records import ExchangeSent, Noted
from motamot.store.store import Store
from motamot.store.views import RUNNING, Filter
from tests.store.support import with_store


async def booked(
    store: Store, id_: str, *, cost: float | None = None, end: dict[str, Any] | None = None, **asked: Any
) -> None:
    await store.begin_with_completion(exchange(id_, **asked), completion(f"{id_}.1", id_))
    store.close_completion(closed(f"{id_}.1", cost=cost))
    store.end(ended(id_, **(end or {})))


async def names(store: Store, **wanted: Any) -> list[str]:
    return [row.exchange for row in (await store.browse(Filter(**wanted))).rows]


def test_a_list_is_filtered_by_all_that_is_asked_at_once(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await booked(store, "a", assistant="bus", model="small", started_at=100.0, cost=0.1)
        await booked(store, "b", assistant="bus", model="large", started_at=200.0, cost=0.5, end={"outcome": "failed"})
        await booked(store, "c", assistant="aide", model="small", started_at=300.0, visitor="else")
        await store.begin(
            exchange("d", assistant="aide", started_at=400.0, conversation="conversation of c", visitor="else")
        )
        await store.flush()
        assert await names(store) == ["d", "c", "b", "a"]
        assert await names(store, assistant="bus") == ["b", "a"]
        assert await names(store, model="small", assistant="bus") == ["a"]
        assert await names(store, outcome="failed") == ["b"]
        assert await names(store, outcome=RUNNING) == ["d"]
        assert await names(store, visitor="else") == ["d", "c"]
        assert await names(store, conversation="conversation of c") == ["d", "c"]
        assert await names(store, since=200.0) == ["d", "c", "b"]
        assert await names(store, until=200.0) == ["a"]
        assert await names(store, since=100.0, until=300.0, outcome="complete") == ["a"]
        assert await names(store, cost_from=0.1) == ["b", "a"]
        assert await names(store, cost_from=0.2, cost_to=0.5) == ["b"]
        assert await names(store, cost_to=0.2) == ["a"]  # what nobody knows the cost of is not among them
        assert await names(store, cost_from=0.1, text="question") == ["b", "a"]
        assert await names(store, assistant="nobody") == []
        assert await names(store, visitor="' OR 1=1 --") == []

    with_store(tmp_path, scenario)


def test_pages_follow_each_other_without_gap_or_repetition_also_while_more_is_asked(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        for number in range(25):
            await booked(store, f"e{number}")
        await store.flush()
        seen: list[str] = []
        before: int | None = None
        for size in (10, 10, 10):
            page = await store.browse(Filter(), before=before, limit=size)
            seen += [row.exchange for row in page.rows]
            before = page.before
            await booked(store, f"later than {size} {before}")
        assert seen == [f"e{number}" for number in reversed(range(25))]
        assert before is None
        whole = await store.browse(Filter(since=0.0), limit=28)
        assert (len(whole.rows), whole.before) == (28, None)

    with_store(tmp_path, scenario)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_has_a_bound(tmp_path: Path, limit: int) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(InvalidRequest):
            await store.browse(Filter(), limit=limit)

    with_store(tmp_path, scenario)


def test_a_line_has_the_beginnings_of_its_texts_and_the_sums_of_its_completions(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.begin_with_completion(exchange("e", question="q" * 300), completion("p1", "e"))
        store.close_completion(closed("p1", cost=0.25))
        await store.open_completion(completion("p2", "e", turn=2))
        store.close_completion(closed("p2", cost=0.5, currency="EUR"))
        await store.open_completion(completion("p3", "e", turn=3))
        store.close_completion(closed("p3", usage=Usage(prompt_tokens=5)))
        store.end(ended("e", "a" * 300, shown="a" * 250, marks=("recorded",), first_text=0.5))
        [row] = (await store.browse(Filter())).rows
        assert (row.question, row.answer) == ("q" * 200, "a" * 200)
        assert (row.prompt_tokens, row.completion_tokens, row.source) == (89, 34, "unknown")
        assert (row.cost, row.completions, row.odd) == ({"USD": 0.25, "EUR": 0.5}, 3, False)
        assert (row.marks, row.first_text, row.outcome) == (("recorded",), 0.5, "complete")
        assert await names(store, cost_from=0.75, cost_to=0.75) == ["e"]

    with_store(tmp_path, scenario)


def test_of_a_removed_text_a_line_keeps_the_figures(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await booked(store, "e", cost=0.5)
        await store.delete_conversation("conversation of e", "visitor")
        [row] = (await store.browse(Filter())).rows
        assert (row.question, row.answer, row.cost, row.outcome) == (None, None, {"USD": 0.5}, "complete")
        detail = await store.detail("e")
        assert detail is not None
        assert (detail.events, detail.sent, len(detail.completions)) == ((), "", 1)

    with_store(tmp_path, scenario)


def test_an_exchange_is_told_whole_with_every_event_in_its_place_and_time(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.begin_with_completion(exchange("e"), completion("p", "e"))
        store.close_completion(closed("p"))
        noted = (
            Noted(1, False, 0.05, Reasoning("what is asked?")),
            Noted(1, True, 0.1, ToolCalled(id="1", name="find", arguments={"q": [1, None]})),
            Noted(2, True, 0.2, ToolReturned(id="1", name="find", status="ok", result="found")),
            Noted(4, False, 0.35, Reasoning("hm")),
            Noted(5, True, 0.5, Cited(title="Page")),
            Noted(6, True, 0.6, TurnEnded(turn=1, finish="stop")),
        )
        times = array("I", (10, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000))
        store.end(
            ended(
                "e",
                "Mot à mot",
                events=8,
                sent=4,
                boundaries=((4, 3), (5, 9)),
                noted=noted,
                omitted=2,
                times=times,
                first_text=0.3,
            )
        )
        detail = await store.detail("e")
        assert detail is not None
        assert detail.events == (
            (1, 0.001, Started(exchange="e", conversation="conversation of e", assistant="bus", model="small")),
            (0, 0.05, Reasoning("what is asked?")),
            (2, 0.1, ToolCalled(id="1", name="find", arguments={"q": [1, None]})),
            (3, 0.2, ToolReturned(id="1", name="find", status="ok", result="found")),
            (4, 0.3, Text("Mot")),
            (0, 0.35, Reasoning("hm")),
            (5, 0.4, Text(" à mot")),
            (6, 0.5, Cited(title="Page")),
            (7, 0.6, TurnEnded(turn=1, finish="stop")),
            (8, 0.7, Ended(outcome=Outcome.COMPLETE, shown=7, usage=closed("p").usage)),
        )
        assert (detail.sent, detail.omitted, detail.first_text) == ("Mot", 2, 0.3)
        store.sent(ExchangeSent(id="e", sent=7))  # the last words went out after the end was booked
        store.sent(ExchangeSent(id="e", sent=5))
        detail = await store.detail("e")
        assert detail is not None
        assert detail.sent == "Mot à mot"
        assert await store.detail("nothing") is None

    with_store(tmp_path, scenario)


def test_a_running_exchange_and_one_of_a_killed_process_have_their_text_and_no_times(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await store.begin(exchange("e"))
        store.checkpoint([checkpoint("e", "Mot à", sent=2, boundaries=((2, 3), (3, 5)))])
        detail = await store.detail("e")
        assert detail is not None
        assert [(number, at, type(event)) for number, at, event in detail.events] == [
            (1, None, Started),
            (2, None, Text),
            (3, None, Text),
        ]
        assert (detail.sent, detail.row.outcome, detail.stop_asked) == ("Mot", None, None)

    with_store(tmp_path, scenario)


def test_a_stop_is_told_with_its_moments(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await booked(store, "e", end={"outcome": "stopped", "stop_asked": 1.5, "stop_closed": 1.51})
        detail = await store.detail("e")
        assert detail is not None
        assert (detail.stop_asked, detail.stop_closed) == (1.5, 1.51)

    with_store(tmp_path, scenario)


@pytest.mark.parametrize(
    "event",
    [
        ToolReturned(id="1", name="t", status="ok", result="half \ud83d"),
        ToolCalled(id="1", name="t", arguments={"object": object()}),
        ToolCalled(id="1", name="t", arguments={("a", "key"): 1}),
    ],
)
def test_what_json_has_no_words_for_keeps_no_end_out_of_the_books(tmp_path: Path, event: Any) -> None:
    async def scenario(store: Store) -> None:
        turn = Noted(2, True, 0.2, TurnEnded(turn=1, finish="stop"))
        await booked(store, "e", end={"noted": (Noted(1, True, 0.1, event), turn), "times": array("I", range(4))})
        detail = await store.detail("e")
        assert detail is not None
        assert detail.row.outcome == "complete"
        assert TurnEnded(turn=1, finish="stop") in [told for _, _, told in detail.events]

    with_store(tmp_path, scenario)


def test_long_details_and_many_times_come_back_as_they_were(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        result = "".join(f"ligne {number} à lire\n" for number in range(20_000))
        times = array("I", [n * 7 for n in range(99_000)] + [4_000_000_000] * 1_000)
        noted = (Noted(1, True, 0.5, ToolReturned(id="1", name="t", status="ok", result=result)),)
        await booked(store, "e", end={"events": 100_000, "noted": noted, "times": times})
        detail = await store.detail("e")
        assert detail is not None
        told = {number: (at, event) for number, at, event in detail.events}
        assert told[2][1] == noted[0].event
        assert told[2][0] == 0.0007
        assert told[100_000][0] == 400_000.0

    with_store(tmp_path, scenario)


def test_an_export_has_all_that_fits_with_whole_texts_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "EXPORT_BYTES", 40_000)
    monkeypatch.setattr(browsing, "MOST_LISTED", 20)

    async def scenario(store: Store) -> None:
        for number in range(50):
            await booked(
                store,
                f"e{number}",
                question="q" * 1_000,
                end={"generated": f"{number} " * 500, "shown": f"{number} " * 500},
            )
        await booked(store, "other", assistant="aide")
        lines = [line async for line in store.export(Filter(assistant="bus"))]
        assert [line.exchange for line in lines] == [f"e{number}" for number in reversed(range(50))]
        assert {len(line.question or "") for line in lines} == {1_000}
        assert lines[0].answer == "49 " * 500
        page = browsing.export_page
        sizes = [len((await store._read(page, Filter(), before)).rows) for before in (None, 40)]
        assert max(sizes) < 10  # as many as fit, not 20

    with_store(tmp_path, scenario)


def test_a_visitors_record_is_all_that_is_kept_of_them_and_json(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        for number in range(12):
            tool = Noted(1, True, 0.1, ToolReturned(id="1", name="t", status="ok", result=f"result {number}"))
            await booked(store, f"mine {number}", visitor="me", end={"noted": (tool,), "times": array("I", range(4))})
        await booked(store, "theirs", visitor="else")
        record = [part async for part in store.export_visitor("me")]
        assert [part["row"]["id"] for part in record] == [f"mine {number}" for number in reversed(range(12))]
        text = json.dumps(record)
        assert "result 7" in text
        assert "question of mine 3" in text
        assert "theirs" not in text

    with_store(tmp_path, scenario)


def test_a_visitors_conversations_are_listed_newest_first(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await booked(store, "a", visitor="me", conversation="one", started_at=100.0)
        await booked(store, "b", visitor="me", conversation="two", started_at=200.0)
        await booked(store, "c", visitor="me", conversation="one", started_at=300.0)
        await booked(store, "d", visitor="else", started_at=400.0)
        await store.delete_conversation("two", "me")
        told = [
            (one.id, one.created_at, one.last_asked_at, one.exchanges, one.deleted)
            for one in await store.visitor_conversations("me")
        ]
        assert told == [("two", 200.0, 200.0, 1, True), ("one", 100.0, 300.0, 2, False)]

    with_store(tmp_path, scenario)


def test_assistants_and_models_are_known(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        await booked(store, "a", assistant="bus", model="small")
        await booked(store, "b", assistant="aide", model="")
        facets = await store.facets()
        assert (facets.assistants, facets.models, facets.search) == (("aide", "bus"), ("small",), True)
        assert facets.unsearchable <= 2

    with_store(tmp_path, scenario)
