"""Redaction: what reaches the disk has been through the operator's function, or is not there at all."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import Cited, Reasoning, Source, Text, ToolCalled, ToolReturned, TurnEnded, Usage
from motamot.store.contract import checkpoint, closed, completion, ended, exchange
from motamot.store.records import Noted
from motamot.store.redaction import REMEMBERED, Redactions
from motamot.store.store import Store
from motamot.store.views import Filter
from tests.store.support import in_file

SECRET = "4111-1111"


def redact(text: str) -> str:
    return re.sub(r"\d{4}-\d{4}", "[card]", text)


def fails(text: str) -> str:
    raise LookupError(text)


def events(*more: Noted) -> tuple[Noted, ...]:
    return (
        Noted(1, False, 0.1, Reasoning(f"thinking of {SECRET}")),
        Noted(1, True, 0.1, ToolCalled(id=SECRET, name="pay", arguments={SECRET: [{"card": f"no {SECRET}"}, 7, None]})),
        Noted(2, True, 0.1, ToolReturned(id=SECRET, name="pay", status="ok", result=f"paid with {SECRET}")),
        Noted(3, True, 0.1, Cited(title=f"About {SECRET}", quote=SECRET, url=f"http://x/{SECRET}")),
        *more,
    )


async def written(store: Store, how: Any, text: str, *, question: str = "?", **ending: Any) -> None:
    await store.begin_with_completion(exchange("e", question=question), completion("p", "e"), redact=how)
    store.close_completion(closed("p", detail=f"no {SECRET}"), redact=how)
    store.end(ended("e", text, **ending), redact=how)


def test_every_text_goes_through_the_function_before_it_reaches_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def run() -> None:
        store = Store.open(path)
        await store.begin(exchange("e", question=f"my card is {SECRET}"), redact=redact)
        await store.open_completion(completion("p", "e"))
        store.checkpoint([checkpoint("e", f"so it is {SECRET}, ", whole=True, boundaries=((2, 20),))], redact=redact)
        await store.flush()
        assert not in_file(tmp_path, SECRET)
        store.close_completion(closed("p", detail=f"refused {SECRET}"), redact=redact)
        whole: dict[str, Any] = {"whole": True, "boundaries": ((2, 20), (6, 25)), "events": 8, "sent": 7}
        store.end(ended("e", f"so it is {SECRET}, paid", detail=SECRET, noted=events(), **whole), redact=redact)
        detail = await store.detail("e")
        assert detail is not None
        row = detail.row
        assert (row.question, row.generated, row.detail) == ("my card is [card]", "so it is [card], paid", "[card]")
        assert row.shown == row.generated
        assert row.marks == ("redacted",)
        told = [event for _, _, event in detail.events]
        assert Reasoning("thinking of [card]") in told
        call = ToolCalled(id=SECRET, name="pay", arguments={"[card]": [{"card": "no [card]"}, 7, None]})
        assert call.arguments in [event.arguments for event in told if isinstance(event, ToolCalled)]
        assert Cited(title="About [card]", quote="[card]", url="http://x/[card]") in told
        assert detail.completions[0].detail == "refused [card]"
        assert [row.exchange for row in (await store.browse(Filter(text="card paid"))).rows] == ["e"]
        assert (await store.browse(Filter(text="4111"))).rows == ()
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


def test_boundaries_that_no_longer_fit_are_dropped_and_the_rest_comes_with_the_last_event(tmp_path: Path) -> None:
    """A client that had the first words gets the others; one that had all of it gets none of them again."""

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        text = f"one {SECRET} two three"
        pairs = ((2, 4), (3, 8), (4, 13), (5, 18), (6, len(text)))
        await written(store, redact, text, whole=True, boundaries=pairs, events=7, sent=6)
        detail = await store.detail("e")
        assert detail is not None
        assert detail.row.boundaries == ((2, 4), (6, 20))
        texts = [(number, event.text) for number, _, event in detail.events if isinstance(event, Text)]
        assert texts == [(2, "one "), (6, "[card] two three")]
        assert detail.sent == "one [card] two three"
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


def test_what_was_shown_of_a_stopped_answer_is_redacted_by_itself(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await written(store, redact, f"no {SECRET} more", shown=f"no {SECRET[:6]}", outcome="stopped", seen=2)
        row = await store.exchange("e")
        assert row is not None
        assert (row.generated, row.shown) == ("no [card] more", f"no {SECRET[:6]}")
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


def test_a_text_that_nothing_changes_is_kept_as_it_is_with_its_boundaries(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin(exchange("e"), redact=redact)
        store.checkpoint([checkpoint("e", "Mot ", whole=True, boundaries=((2, 4),))], redact=redact)
        await store.flush()
        store.end(ended("e", "Mot à mot", whole=True, boundaries=((2, 4), (3, 9)), events=4), redact=redact)
        row = await store.exchange("e")
        assert row is not None
        assert (row.marks, row.boundaries) == ((), ((2, 4), (3, 9)))
        assert await store.verify() == []
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "how", [fails, lambda _: None, lambda text: text.encode(), lambda text: text + 1, lambda _: sys.exit(1)]
)
def test_where_the_function_fails_nothing_of_the_text_is_written_and_the_operator_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: Any
) -> None:
    path = tmp_path / "store.db"

    async def run() -> None:
        store = Store.open(path)
        await written(store, how, f"answer {SECRET}", question=f"question {SECRET}", detail=SECRET, noted=events())
        row = await store.exchange("e")
        assert row is not None
        assert (row.question, row.generated, row.shown, row.marks) == ("", "", "", ("not_kept",))
        assert (row.outcome, (await store.completions())[0].prompt_tokens) == ("complete", 42)
        assert await store.verify() == []
        await store.close()

    with caplog.at_level(logging.ERROR, "motamot.store"):
        asyncio.run(run())
    assert not in_file(tmp_path, "question 4")
    assert not in_file(tmp_path, "answer 4")
    told = [record.getMessage() for record in caplog.records]
    assert any("exchange e is not kept" in line for line in told)
    assert SECRET not in "".join(told)
    assert "Traceback" not in caplog.text


def test_a_function_that_gives_half_a_character_or_changes_every_word_keeps_no_booking_out(tmp_path: Path) -> None:
    used = Usage(prompt_tokens=7, completion_tokens=3, source=Source.REPORTED)
    turn = Noted(4, True, 0.2, TurnEnded(turn=1, finish="stop", usage=used))

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        for name, how in (("half", lambda text: f"{text}\ud800"), ("capitals", str.upper), ("nothing", lambda _: "")):
            await store.begin(exchange(name, conversation=name, question="why"), redact=how)
            store.end(ended(name, "so", noted=events(turn)), redact=how)
            await store.flush()
            found = await store.detail(name)
            assert found is not None and found.row.marks == ("redacted",)
            assert turn.event in [event for _, _, event in found.events], "figures are no text"
            assert len([event for _, _, event in found.events if isinstance(event, ToolReturned)]) == 1
        assert (await store.exchange("half")).question == "why\ufffd"  # type: ignore[union-attr]
        await store.close()

    asyncio.run(run())


def test_what_cannot_be_written_of_an_event_is_left_out_and_told(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin(exchange("e", question="why"), redact=redact)
        call = Noted(3, True, 0.1, ToolCalled(id="2", name="pay", arguments=endless))
        store.end(ended("e", "so", noted=events(call)), redact=redact)
        await store.flush()
        found = await store.detail("e")
        assert found is not None and "not_kept" in found.row.marks and found.omitted == 1
        await store.close()

    asyncio.run(run())


def test_what_was_refused_is_not_remembered_for_ever() -> None:
    redactions = Redactions()
    for number in range(REMEMBERED + 5):
        redactions.of(exchange(f"e{number}", question=SECRET), redact)
    assert len(redactions._marks) == REMEMBERED


def test_a_booking_that_is_tried_again_is_redacted_once(tmp_path: Path) -> None:
    """A lock that another program holds meanwhile: the function is not called for each try."""
    calls: list[str] = []

    def counted(text: str) -> str:
        calls.append(text)
        return text

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        await store.begin(exchange("e"), redact=counted)
        locking = sqlite3.connect(store.path, isolation_level=None)
        locking.execute("BEGIN IMMEDIATE")
        store.end(ended("e", "answer"), redact=counted)
        await asyncio.sleep(1.3)
        locking.execute("ROLLBACK")
        locking.close()
        await store.flush()
        await store.close()

    asyncio.run(run())
    assert calls == ["question of e", "answer"]


def test_a_function_that_changes_everything_keeps_no_end_out_of_the_books(tmp_path: Path) -> None:
    """Our own words in an event, as where a figure comes from, are none of its business."""

    async def run() -> None:
        store = Store.open(tmp_path / "store.db")
        usage = Usage(prompt_tokens=1, completion_tokens=2, source=Source.REPORTED)
        turn = Noted(4, True, 0.2, TurnEnded(turn=1, finish="stop", usage=usage))
        strange = Noted(5, True, 0.2, ToolCalled(id="1", name="t", arguments={("a", "key"): object()}))
        await written(store, str.upper, "answer", noted=events(turn, strange))
        detail = await store.detail("e")
        assert detail is not None
        assert (detail.row.question, detail.row.shown, detail.row.outcome) == ("?", "ANSWER", "complete")
        assert turn.event in [event for _, _, event in detail.events]
        await store.begin(exchange("next"))  # the store's thread lives
        await store.close()

    asyncio.run(run())
