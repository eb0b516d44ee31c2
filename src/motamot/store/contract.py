"""What any store must do, as tests: subclass `StoreContract` in a test module and say how a store is opened.

    class TestMine(StoreContract):
        def open(self, folder: Path) -> Store:
            return Store.open(folder / "store.db")

pytest collects the subclass; `tmp_path` is pytest's fixture. Each test opens its own store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from motamot.answer import By, Code, Source, Usage
from motamot.errors import Conflict, MotamotError, NotFound, StoreError
from motamot.store.records import (
    Checkpoint,
    CompletionClosed,
    CompletionOpened,
    ExchangeBegun,
    ExchangeEnded,
    ExchangeRow,
)
from motamot.store.store import Store

__all__ = ["StoreContract", "checkpoint", "closed", "completion", "ended", "exchange", "expect", "refused"]

REPORTED = Usage(prompt_tokens=42, completion_tokens=17, cached_tokens=5, reasoning_tokens=3, source=Source.REPORTED)
HOSTILE = "nul \0, quote ', \"; DROP TABLE exchanges; -- %s :id ? \\ \N{PILE OF POO} \u202e\u2028\r\n\x1a\x7f"


def exchange(id_: str, **changes: Any) -> ExchangeBegun:
    """A question, with any field changed."""
    return replace(
        ExchangeBegun(
            id=id_,
            conversation=f"conversation of {id_}",
            assistant="bus",
            visitor="visitor",
            question=f"question of {id_}",
            started_at=time.time(),
            model="small",
        ),
        **changes,
    )


def completion(id_: str, of: str, **changes: Any) -> CompletionOpened:
    """A completion about to leave, with any field changed."""
    return replace(
        CompletionOpened(id=id_, exchange=of, turn=1, attempt=1, model="small", opened_at=time.time()), **changes
    )


def closed(id_: str, **changes: Any) -> CompletionClosed:
    """A completion that went well, with any field changed."""
    return replace(
        CompletionClosed(id=id_, closed_at=time.time(), outcome="complete", finish="stop", usage=REPORTED), **changes
    )


def checkpoint(of: str, text: str, **changes: Any) -> Checkpoint:
    """A running exchange's state, with any field changed."""
    return replace(Checkpoint(exchange=of, text=text, sent=1), **changes)


def ended(id_: str, text: str = "answer", **changes: Any) -> ExchangeEnded:
    """An end that went well, with any field changed."""
    return replace(
        ExchangeEnded(id=id_, ended_at=time.time(), outcome="complete", generated=text, shown=text, events=4, sent=4),
        **changes,
    )


def expect(met: bool, sentence: str) -> None:
    """Raise AssertionError with this sentence of the contract where it is not met."""
    if not met:
        raise AssertionError(f"a store must: {sentence}")


async def refused(kind: type[MotamotError], asked: Coroutine[Any, Any, object]) -> MotamotError:
    """The error of this kind that `asked` must raise."""
    try:
        answer = await asked
    except kind as error:
        expect(bool(error.message), "say in a sentence why it refuses")
        return error
    raise AssertionError(f"a store must raise {kind.__name__}; it answered {answer!r}")


class StoreContract:
    """The contract. `open` is all that a subclass must give."""

    def open(self, folder: Path) -> Store:
        """The store kept in this folder, made if there is none; called again for another opening of the same."""
        raise NotImplementedError

    # Beginning

    def test_a_question_is_in_the_books_when_begin_returns(self, tmp_path: Path) -> None:
        """Seen by another opening of the same store: it is not in memory only."""

        async def run() -> None:
            store, other = self.open(tmp_path), self.open(tmp_path)
            begun = exchange("e", key="k", body_hash="h", replaces="earlier")
            answer = await store.begin(begun)
            expect(answer.existing is None, "say that a new exchange is new")
            row = await other.exchange("e")
            expect(row is not None, "have the question in the books when begin returns")
            if row is not None:
                same = all(getattr(row, name) == getattr(begun, name) for name in ExchangeBegun.__slots__)
                expect(same, "keep every field of a question")
                expect(row.outcome is None and row.ended_at is None, "give a running exchange no outcome")
            made = await other.conversation(begun.conversation)
            expect(made is not None and made.visitor == "visitor", "make the conversation with its first exchange")
            await store.close()
            await other.close()

        asyncio.run(run())

    def test_the_same_key_and_body_join_the_exchange_that_is_there(self, tmp_path: Path) -> None:
        """Also after its end, and with everything known of it."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e", key="k", body_hash="h"))
            again = await store.begin(exchange("f", key="k", body_hash="h"))
            expect(again.existing is not None and again.existing.id == "e", "join the exchange under way")
            expect(await store.exchange("f") is None, "book nothing for a question that joined another")
            expect(await store.conversation("conversation of f") is None, "make no conversation for it")
            store.end(ended("e", boundaries=((2, 6),)))
            done = (await store.begin(exchange("g", key="k", body_hash="h"))).existing
            expect(done is not None and done.shown == "answer", "give the answer of an exchange that is done")
            expect(done is not None and done.boundaries == ((2, 6),), "and its boundaries")
            await store.close()

        asyncio.run(run())

    def test_the_same_key_with_another_body_is_a_conflict(self, tmp_path: Path) -> None:
        """And changes nothing."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e", key="k", body_hash="h"))
            await refused(Conflict, store.begin(exchange("f", key="k", body_hash="other")))
            await refused(Conflict, store.begin(exchange("f", key="k", body_hash=None)))
            expect(await store.exchange("f") is None, "book nothing for a conflict")
            await store.close()

        asyncio.run(run())

    def test_a_key_is_one_visitors_own(self, tmp_path: Path) -> None:
        """Two visitors may use the same key; no key at all is never the same."""

        async def run() -> None:
            store = self.open(tmp_path)
            for id_, visitor, key in (("a", "one", "k"), ("b", "two", "k"), ("c", "one", None), ("d", "one", None)):
                answer = await store.begin(exchange(id_, visitor=visitor, key=key, body_hash="h"))
                expect(answer.existing is None, "tell keys of different visitors, and missing keys, apart")
            row = await store.exchange_by_key("two", "k")
            expect(row is not None and row.id == "b", "find an exchange by its visitor's key")
            expect(await store.exchange_by_key("three", "k") is None, "find nothing under a stranger's key")
            await store.close()

        asyncio.run(run())

    def test_of_many_begins_with_one_key_exactly_one_is_new(self, tmp_path: Path) -> None:
        """At the same moment, through two openings."""

        async def run() -> None:
            stores = self.open(tmp_path), self.open(tmp_path)
            answers = await asyncio.gather(
                *[stores[n % 2].begin(exchange(f"e{n}", key="k", body_hash="h")) for n in range(40)]
            )
            new = [n for n, answer in enumerate(answers) if answer.existing is None]
            expect(len(new) == 1, f"make one exchange of many with the same key, not {len(new)}")
            joined = {answer.existing.id for answer in answers if answer.existing is not None}
            expect(joined == {f"e{new[0]}"}, "let all others join that one")
            for store in stores:
                await store.close()

        asyncio.run(run())

    def test_a_conversation_is_one_visitors_with_one_assistant(self, tmp_path: Path) -> None:
        """Strangers are told the same as if there were none."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e", conversation="c"))
            await refused(NotFound, store.begin(exchange("f", conversation="c", visitor="stranger")))
            await refused(NotFound, store.begin(exchange("g", conversation="c", assistant="train")))
            expect(await store.history("c", "stranger") == [], "show a stranger no history")
            expect([row.id for row in await store.history("c", "visitor")] == ["e"], "keep strangers out of it")
            await store.close()

        asyncio.run(run())

    def test_history_is_in_the_order_of_asking_and_bounded(self, tmp_path: Path) -> None:
        """The latest ones, oldest first, with what was handed over just before."""

        async def run() -> None:
            store = self.open(tmp_path)
            for n in range(5):
                await store.begin(exchange(f"e{n}", conversation="c", started_at=1000.0 - n))
                store.end(ended(f"e{n}", f"answer {n}"))
            rows = await store.history("c", "visitor", limit=3)
            expect([row.shown for row in rows] == ["answer 2", "answer 3", "answer 4"], "keep the order of asking")
            await store.close()

        asyncio.run(run())

    # Completions

    def test_a_completion_is_in_the_books_before_it_leaves(self, tmp_path: Path) -> None:
        """And open until it is closed."""

        async def run() -> None:
            store, other = self.open(tmp_path), self.open(tmp_path)
            await store.begin(exchange("e"))
            await store.open_completion(completion("p", "e", turn=2, attempt=3, prompt_estimate=99))
            rows = await other.completions(open_only=True)
            expect([(row.id, row.turn, row.attempt) for row in rows] == [("p", 2, 3)], "book it before it leaves")
            expect(rows[0].outcome is None and rows[0].prompt_tokens is None, "give an open one no figures")
            await store.close()
            await other.close()

        asyncio.run(run())

    def test_question_and_first_completion_may_be_booked_together(self, tmp_path: Path) -> None:
        """All or nothing: one that joins another exchange opens no completion."""

        async def run() -> None:
            store = self.open(tmp_path)
            first = exchange("e", key="k", body_hash="h")
            answer = await store.begin_with_completion(first, completion("p", "e"))
            expect(answer.existing is None, "take both")
            again = await store.begin_with_completion(replace(first, id="f"), completion("q", "f"))
            expect(again.existing is not None, "join")
            await refused(
                Conflict, store.begin_with_completion(replace(first, id="g", body_hash="x"), completion("r", "g"))
            )
            expect([row.id for row in await store.completions()] == ["p"], "open no completion without its exchange")
            await store.close()

        asyncio.run(run())

    def test_a_completion_is_closed_exactly_once(self, tmp_path: Path) -> None:
        """The first close stands, with every figure."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e"))
            await store.open_completion(completion("p", "e"))
            store.close_completion(
                closed(
                    "p", outcome="truncated", finish="length", cost=0.5, currency="EUR", first_delta=0.25, duration=2.0
                )
            )
            store.close_completion(closed("p", usage=Usage(prompt_tokens=1, source=Source.ESTIMATED)))
            await store.flush()
            store.close_completion(closed("p", outcome="failed", code="timeout", detail="late"))
            (row,) = await store.completions(exchange="e")
            figures = row.prompt_tokens, row.completion_tokens, row.cached_tokens, row.reasoning_tokens
            expect(figures == (42, 17, 5, 3) and row.source is Source.REPORTED, "keep the first close's figures")
            expect((row.outcome, row.finish, row.code, row.detail) == ("truncated", "length", None, None), "and end")
            expect((row.cost, row.currency, row.first_delta, row.duration) == (0.5, "EUR", 0.25, 2.0), "and the rest")
            await store.close()

        asyncio.run(run())

    def test_nothing_leaves_for_an_exchange_that_is_not_open_here(self, tmp_path: Path) -> None:
        """Unknown, ended, or another opening's."""

        async def run() -> None:
            store, other = self.open(tmp_path), self.open(tmp_path)
            await store.begin(exchange("e"))
            await refused(StoreError, store.open_completion(completion("p", "nowhere")))
            await refused(StoreError, other.open_completion(completion("p", "e")))
            store.end(ended("e"))
            await store.flush()
            await refused(StoreError, store.open_completion(completion("p", "e")))
            expect(await store.completions() == [], "book nothing it refused")
            await store.close()
            await other.close()

        asyncio.run(run())

    def test_usage_says_where_it_comes_from(self, tmp_path: Path) -> None:
        """What nobody knows is no figure, never 0."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e"))
            for source in Source:
                await store.open_completion(completion(source, "e"))
                store.close_completion(closed(source, usage=Usage(source=source)))
            figures = {row.id: (row.source, row.prompt_tokens) for row in await store.completions()}
            expect(
                figures
                == {
                    "reported": (Source.REPORTED, 0),
                    "estimated": (Source.ESTIMATED, 0),
                    "unknown": (Source.UNKNOWN, None),
                },
                "tell reported, estimated and unknown apart",
            )
            spent = await store.spent("bus", 0)
            expect((spent.completions, spent.open, spent.unknown) == (3, 0, 1), "count what is unknown")
            await store.close()

        asyncio.run(run())

    def test_spending_is_summed_per_assistant_and_time(self, tmp_path: Path) -> None:
        """With the guesses of what is still open, and what has no known price."""

        async def run() -> None:
            store = self.open(tmp_path)
            for n, assistant in enumerate(("bus", "bus", "bus", "train")):
                await store.begin(exchange(f"e{n}", assistant=assistant))
                await store.open_completion(completion(f"p{n}", f"e{n}", opened_at=100.0 + n, prompt_estimate=7))
            store.close_completion(closed("p0", cost=0.5))
            store.close_completion(closed("p1", cost=None))
            store.close_completion(closed("p3", cost=2.0, currency="EUR"))
            bus, everything, later = [
                await store.spent(*given) for given in (("bus", 100.0), (None, 100.0), ("bus", 101.0))
            ]
            expect((bus.completions, bus.open, bus.unpriced) == (3, 1, 1), "count by assistant")
            expect((bus.prompt_tokens, bus.completion_tokens, bus.cost) == (42 * 2 + 7, 34, {"USD": 0.5}), "sum")
            expect(everything.cost == {"USD": 0.5, "EUR": 2.0}, "never add up currencies")
            expect((later.completions, later.cost) == (2, {}), "leave out what was opened earlier")
            await store.close()

        asyncio.run(run())

    # Running and ending

    def test_a_checkpoint_replaces_the_text_and_adds_boundaries(self, tmp_path: Path) -> None:
        """Both at once, seen from elsewhere."""

        async def run() -> None:
            store, other = self.open(tmp_path), self.open(tmp_path)
            await store.begin(exchange("e"))
            store.checkpoint([checkpoint("e", "Mot", sent=2, boundaries=((2, 1), (3, 3)))])
            await store.flush()
            store.checkpoint([checkpoint("e", "Mot à mot", sent=4, boundaries=((4, 9),))])
            await store.flush()
            row = await other.exchange("e")
            expect(row is not None and row.shown == row.generated == "Mot à mot", "keep the latest text")
            expect(row is not None and row.boundaries == ((2, 1), (3, 3), (4, 9)), "keep all boundaries")
            expect(row is not None and (row.sent, row.outcome) == (4, None), "keep what was sent, and no end")
            await store.close()
            await other.close()

        asyncio.run(run())

    def test_an_exchange_ends_exactly_once(self, tmp_path: Path) -> None:
        """The first end stands with every field; a checkpoint that comes late changes nothing."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e"))
            first = ended(
                "e",
                outcome="stopped",
                generated="Mot à mot",
                shown="Mot",
                events=9,
                sent=8,
                seen=3,
                code=Code.TIMEOUT,
                by=By.VISITOR,
                message="m",
                detail="d",
                marks=("recorded", "test_model"),
                boundaries=((2, 3), (3, 9)),
            )
            store.end(first)
            store.end(ended("e", "another"))
            await store.flush()
            store.end(ended("e", "a third"))
            store.checkpoint([checkpoint("e", "late", sent=99, boundaries=((50, 4),))])
            row = await store.exchange("e")
            same = row is not None and all(
                getattr(row, name) == getattr(first, name)
                for name in ExchangeEnded.__slots__
                if name in ExchangeRow.__slots__
            )
            expect(same, "keep the first end, all of it, and nothing after it")
            await store.close()

        asyncio.run(run())

    def test_close_ends_what_is_still_open_as_interrupted(self, tmp_path: Path) -> None:
        """With what the last checkpoint knew."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e"))
            await store.open_completion(completion("p", "e", prompt_estimate=40))
            await store.open_completion(completion("q", "e", attempt=2))
            store.checkpoint(
                [checkpoint("e", "Mot", sent=2, boundaries=((2, 3),), completion="p", completion_tokens=7)]
            )
            await store.close()
            store = self.open(tmp_path)
            row = await store.exchange("e")
            expect(row is not None and (row.outcome, row.shown) == ("interrupted", "Mot"), "end it as interrupted")
            expect(row is not None and row.ended_at is not None and row.events == 3, "with an end that is an event")
            known, unknown = await store.completions()
            expect((known.outcome, known.source) == ("interrupted", Source.ESTIMATED), "book an estimate as one")
            expect((known.prompt_tokens, known.completion_tokens) == (40, 7), "book what the checkpoint knew")
            expect((unknown.outcome, unknown.source) == ("interrupted", Source.UNKNOWN), "book what nobody knows")
            expect(await store.verify() == [], "keep books without contradictions")
            await store.close()

        asyncio.run(run())

    def test_a_living_owners_rows_are_left_alone(self, tmp_path: Path) -> None:
        """Another opening sweeps, opens and closes; what is open elsewhere stays open."""

        async def run() -> None:
            store, other = self.open(tmp_path), self.open(tmp_path)
            await store.begin_with_completion(exchange("e"), completion("p", "e"))
            expect(await other.sweep() == 0, "leave a living owner's rows alone")
            await other.close()
            (row,) = await store.completions()
            expect(row.outcome is None, "leave them open when another owner closes")
            await store.close()

        asyncio.run(run())

    # Deleting

    def test_deleting_a_conversation_removes_its_text_and_keeps_its_tokens(self, tmp_path: Path) -> None:
        """Once, by its visitor alone; nothing can be asked in it any more."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e", conversation="c", key="k", body_hash="h"))
            await store.open_completion(completion("p", "e"))
            store.close_completion(closed("p", detail="quoting the question", cost=0.5))
            store.end(ended("e", detail="quoting it too", boundaries=((2, 6),)))
            expect(not await store.delete_conversation("c", "stranger"), "let no stranger delete")
            expect(await store.delete_conversation("c", "visitor"), "delete what was handed over just before")
            expect(not await store.delete_conversation("c", "visitor"), "delete once")
            row = await store.exchange("e")
            texts = row and (row.question, row.generated, row.shown, row.detail, row.body_hash, row.boundaries)
            expect(texts == (None, None, None, None, None, ()), "remove all text")
            expect(row is not None and row.outcome == "complete", "keep how it ended")
            (booked,) = await store.completions()
            expect((booked.prompt_tokens, booked.cost, booked.detail) == (42, 0.5, None), "keep tokens and cost")
            conversation = await store.conversation("c")
            expect(conversation is not None and conversation.deleted_at is not None, "say when it was deleted")
            await refused(NotFound, store.begin(exchange("f", conversation="c")))
            await refused(NotFound, store.begin(exchange("g", key="k", body_hash="h")))
            expect(await store.verify() == [], "keep books without contradictions")
            await store.close()

        asyncio.run(run())

    def test_a_running_exchange_of_a_deleted_conversation_writes_no_text_back(self, tmp_path: Path) -> None:
        """Its tokens are booked all the same."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e", conversation="c"))
            await store.open_completion(completion("p", "e"))
            store.checkpoint([checkpoint("e", "secret", boundaries=((2, 6),))])
            await store.delete_conversation("c", "visitor")
            store.checkpoint([checkpoint("e", "secret!", boundaries=((3, 7),), completion="p", completion_tokens=3)])
            await store.open_completion(completion("q", "e", turn=2))
            store.close_completion(closed("p", detail="a secret"))
            store.close_completion(closed("q"))
            store.end(ended("e", "secret!!", detail="secret", boundaries=((4, 8),)))
            row = await store.exchange("e")
            texts = row and (row.question, row.generated, row.shown, row.detail, row.boundaries)
            expect(texts == (None, None, None, None, ()), "write no text into a deleted conversation")
            expect(row is not None and row.outcome == "complete", "book its end")
            rows = await store.completions()
            expect([(row.prompt_tokens, row.detail) for row in rows] == [(42, None)] * 2, "book its tokens")
            await store.close()

        asyncio.run(run())

    def test_old_conversations_can_be_forgotten(self, tmp_path: Path) -> None:
        """Those in which nothing was asked since, and nothing runs."""

        async def run() -> None:
            store = self.open(tmp_path)
            for id_, started_at, done in (("old", 100.0, True), ("new", 300.0, True), ("running", 100.0, False)):
                await store.begin(exchange(id_, started_at=started_at))
                if done:
                    store.end(ended(id_))
            expect(await store.forget_before(200.0) == 1, "forget what is old")
            texts = [(await store.exchange(id_)) for id_ in ("old", "new", "running")]
            expect([row.question is None for row in texts if row] == [True, False, False], "and nothing else")
            expect(await store.forget_before(200.0) == 0, "forget once")
            await store.close()

        asyncio.run(run())

    # Hostile texts

    def test_every_text_comes_back_as_it_was(self, tmp_path: Path) -> None:
        """NUL, SQL, controls, in every field that a stranger, a model or a provider fills."""

        async def run() -> None:
            store = self.open(tmp_path)
            begun = exchange(
                f"id {HOSTILE}",
                **dict.fromkeys(("conversation", "assistant", "visitor", "question", "key", "model"), HOSTILE),
                body_hash="h",
            )
            await store.begin(begun)
            await store.open_completion(completion(f"p {HOSTILE}", begun.id, model=HOSTILE))
            store.close_completion(closed(f"p {HOSTILE}", finish=HOSTILE, detail=HOSTILE, model_reported=HOSTILE))
            store.checkpoint([checkpoint(begun.id, HOSTILE)])
            store.end(ended(begun.id, HOSTILE * 3, shown=HOSTILE, message=HOSTILE, detail=HOSTILE))
            row = await store.exchange_by_key(HOSTILE, HOSTILE)
            same = row is not None and all(
                getattr(row, name) == getattr(begun, name) for name in ExchangeBegun.__slots__
            )
            expect(same, "give every text back as it was")
            texts = row and (row.generated, row.shown, row.message, row.detail)
            expect(texts == (HOSTILE * 3, HOSTILE, HOSTILE, HOSTILE), "also what the model wrote")
            (booked,) = await store.completions(exchange=begun.id)
            expect((booked.model, booked.finish, booked.detail) == (HOSTILE,) * 3, "also what the provider said")
            expect(await store.verify() == [], "keep books without contradictions")
            expect(await store.delete_conversation(HOSTILE, HOSTILE), "find it again to delete it")
            await store.close()

        asyncio.run(run())

    def test_a_long_answer_is_kept_whole(self, tmp_path: Path) -> None:
        """4 MiB of text and 100,000 boundaries: as much as one answer may hold."""

        async def run() -> None:
            store = self.open(tmp_path)
            text = "\N{BUS} mot à " * 400_000
            pairs = tuple((n + 2, (n + 1) * 32) for n in range(100_000))
            await store.begin(exchange("e"))
            store.checkpoint([checkpoint("e", text[: 50_000 * 32], boundaries=pairs[:50_000])])
            await store.flush()
            store.end(ended("e", text, events=100_002, sent=100_002, boundaries=pairs[50_000:]))
            row = await store.exchange("e")
            expect(row is not None and row.shown == text, "keep a long answer whole")
            expect(row is not None and row.boundaries == pairs, "keep all its boundaries")
            await store.close()

        asyncio.run(run())

    def test_no_figure_of_a_provider_keeps_a_booking_out(self, tmp_path: Path) -> None:
        """Numbers beyond any database, below zero, or none at all; half a character in a text."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.begin(exchange("e"))
            usages = [
                Usage(prompt_tokens=10**40, completion_tokens=-5, source=Source.REPORTED),
                Usage(prompt_tokens=2**63 - 1, completion_tokens=2**63 - 1, source=Source.REPORTED),
            ]
            for n, usage in enumerate(usages):
                await store.open_completion(completion(f"p{n}", "e", prompt_estimate=10**40))
                store.checkpoint([checkpoint("e", "x", completion=f"p{n}", completion_tokens=10**40)])
                store.close_completion(
                    closed(
                        f"p{n}",
                        usage=usage,
                        cost=float("nan"),
                        duration=float("inf"),
                        first_delta=float("-inf"),
                        detail="half \ud83d",
                        model_reported="\udc00",
                    )
                )
            store.end(ended("e", "half \ud83d", events=10**40, sent=10**40, seen=-1))
            rows = await store.completions()
            expect([row.outcome for row in rows] == ["complete"] * 2, "book whatever a provider reports")
            expect(all(row.completion_tokens is not None and row.completion_tokens >= 0 for row in rows), "sanely")
            expect((await store.spent("bus", 0)).completions == 2, "and be able to sum it")
            await store.close()

        asyncio.run(run())

    # The end

    def test_a_closed_store_refuses_and_close_is_idempotent(self, tmp_path: Path) -> None:
        """In words, not by hanging."""

        async def run() -> None:
            store = self.open(tmp_path)
            await store.close()
            await store.close()
            await refused(StoreError, store.begin(exchange("e")))
            await refused(StoreError, store.exchange("e"))

        asyncio.run(run())
