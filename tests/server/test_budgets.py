"""What strangers may spend: by the hour, by the day, and however many ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from motamot.answer import Outcome
from motamot.assistant import Assistant
from motamot.errors import LimitExceeded
from motamot.exchange.exchange import Exchange
from motamot.exchange.exchanges import Asking
from motamot.limits import Limits
from motamot.model.http import HttpModel
from motamot.scripted import ScriptedModel
from motamot.server.budgets import Budgets
from motamot.server.options import Options
from motamot.store.prices import Prices
from tests.server.reading import run
from tests.server.support import V1_KEY, Served, serving

# 1,000 tokens each: a cent, at the prices below.
CENT = {
    "default": "cent",
    "scripts": {
        "cent": [{"say": "Yes."}, {"finish": "stop"}, {"usage": {"prompt": 0, "completion": 1000}}],
        "slow": [{"wait": "400ms"}, {"say": "Yes."}, {"finish": "stop"}, {"usage": {"prompt": 0, "completion": 1000}}],
        "broken": [{"fail": "down"}],
    },
}
PRICES = Prices(input=0, output=10)
LIMITS = Limits(max_tokens=1000)


class Clock:
    """Time that passes when told to; 10 a.m. of some day."""

    def __init__(self) -> None:
        self.now = 1_000_000 * 86_400 + 36_000.0

    def __call__(self) -> float:
        return self.now


class World:
    """Budgets with an assistant that really answers."""

    def __init__(self, chat: Assistant, budgets: Budgets, clock: Clock, counted: list[Exchange]) -> None:
        self.chat = chat
        self.budgets = budgets
        self.clock = clock
        self.counted = counted

    async def begin(
        self, visitor: str = "v", address: str | None = "1.1.1.1", message: str = "cent", **asking: Any
    ) -> Exchange:
        with await self.budgets.admit(visitor, address, self.chat) as ticket:
            exchange = await self.chat.begin(Asking(message=message, visitor=visitor, **asking))
            ticket.spend(exchange)
        return exchange

    async def ask(self, *given: Any, **named: Any) -> None:
        """Ask, and wait for the end."""
        await (await self.begin(*given, **named)).wait()

    async def refused(self, limit: str, *given: Any, **named: Any) -> LimitExceeded:
        with pytest.raises(LimitExceeded) as caught:
            await self.ask(*given, **named)
        assert caught.value.limit == limit
        return caught.value


@asynccontextmanager
async def world(folder: Path, limits: Limits = LIMITS, **options: Any) -> AsyncIterator[World]:
    clock = Clock()
    counted: list[Exchange] = []
    async with ScriptedModel(CENT) as server:
        model = HttpModel(server.url, "scripted", limits=limits)
        chat = Assistant(upstream=model, limits=limits, prices=PRICES, store=folder / "books.sqlite3")
        try:
            async with chat:
                budgets = Budgets(Options(**options), counted.append, clock=clock, wall=clock)
                await budgets.remember(chat.exchanges.store)
                yield World(chat, budgets, clock, counted)
        finally:
            await model.close()


# By the hour


def test_a_visitor_has_so_many_questions_an_hour_and_is_told_when_to_come_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, requests_per_hour=3) as w:
            for _ in range(3):
                await w.ask()
                w.clock.now += 600
            error = await w.refused("requests_per_hour")
            assert error.retry_after == pytest.approx(3600 - 1800)
            assert "30 min" in error.message
            await w.ask("another")
            w.clock.now += 1799
            await w.refused("requests_per_hour")
            w.clock.now += 1
            await w.ask()
            await w.refused("requests_per_hour")  # one was free, not all three

    run(scenario())


def test_an_address_has_several_times_as_much_however_many_visitors_it_makes_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, requests_per_hour=2, address_factor=3) as w:
            for number in range(6):
                await w.ask(f"visitor {number}")
            assert (await w.refused("requests_per_hour", "visitor 6")).maximum == 6
            await w.ask("visitor 6", "2.2.2.2")

    run(scenario())


def test_tokens_count_when_they_were_spent_and_are_free_after_an_hour(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, tokens_per_hour=2500) as w:
            await w.ask()
            w.clock.now += 600
            await w.ask()
            await w.ask()
            error = await w.refused("tokens_per_hour")
            assert error.retry_after == 3000
            w.clock.now += 3000
            await w.ask()

    run(scenario())


def test_what_is_under_way_counts_as_what_it_may_still_spend(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, tokens_per_hour=2500) as w:
            running = [await w.begin(message="slow") for _ in range(3)]
            assert (await w.refused("tokens_per_hour")).retry_after == 60
            for exchange in running:
                await exchange.wait()
            assert (await w.refused("tokens_per_hour")).retry_after == 3600  # spent now

    run(scenario())


def test_a_question_that_was_not_let_in_or_cost_nothing_keeps_nothing_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, LIMITS, tokens_per_hour=1001, requests_per_hour=100) as w:
            for _ in range(5):
                with pytest.raises(Exception, match="empty"):
                    await w.begin(message=" ")
                exchange = await w.begin(message="broken")
                assert (await exchange.wait()).outcome is Outcome.FAILED
            await w.ask()

    run(scenario())


def test_an_exchange_that_is_joined_is_counted_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, tokens_per_hour=2500, requests_per_hour=100) as w:
            both = await asyncio.gather(w.begin(message="slow", key="k"), w.begin(message="slow", key="k"))
            assert both[0] is both[1]
            await both[0].wait()
            await w.begin(message="slow", key="k")  # again, when it has ended
            assert w.counted == [both[0]]
            await w.ask()
            await w.ask()
            await w.refused("tokens_per_hour")

    run(scenario())


def test_whoever_is_refused_is_not_remembered_and_pushes_nobody_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, requests_per_hour=1, address_factor=1) as w:
            await w.ask("someone", "9.9.9.9")
            await w.ask("attacker", "6.6.6.6")
            known = len(w.budgets._by_name)
            for number in range(200):
                await w.refused("requests_per_hour", f"made up {number}", "6.6.6.6")
            assert len(w.budgets._by_name) == known

    run(scenario())


# By the day


def test_money_is_spent_by_the_day_and_the_ledger_knows_it_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, money_per_day=0.025) as w:
            for _ in range(3):
                await w.ask()
        async with world(tmp_path, money_per_day=0.025) as w:
            w.clock.now = _today_at(10)
            error = await w.refused("money_per_day")
            assert error.retry_after == 14 * 3600
            assert "tomorrow" in error.message
            w.clock.now += 14 * 3600
            await w.ask()

    run(scenario())


def _today_at(hour: int) -> float:
    """On the day that the ledger's rows are of, whose times are the machine's own."""
    import time

    return time.time() // 86_400 * 86_400 + hour * 3600


def test_many_at_once_spend_no_more_than_there_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, money_per_day=0.045) as w:
            w.clock.now = _today_at(10)
            limits = w.chat.limits

            async def one(number: int) -> bool:
                try:
                    await w.ask(f"v{number}", f"10.0.0.{number}", message="slow")
                except LimitExceeded as error:
                    assert error.limit == "money_per_day"
                    return False
                return True

            # What one turn can cost is kept back for each: with prompts that cost nothing, its longest answer.
            assert limits.max_tokens == 1000
            let_in = await asyncio.gather(*(one(number) for number in range(40)))
            assert sum(let_in) == 5  # 0.04 was less than 0.045, 0.05 is not
            spent = await w.chat.exchanges.store.spent("default", _today_at(0))
            assert sum(spent.cost.values()) == pytest.approx(0.05)
            await w.refused("money_per_day")

    run(scenario())


def test_what_ends_is_not_forgotten_before_the_ledger_was_read_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, money_per_day=0.025) as w:
            w.clock.now = _today_at(10)
            for _ in range(3):
                await w.ask()  # within the second for which the ledger's word is believed
            await w.refused("money_per_day")
            w.clock.now += 2
            assert "tomorrow" in (await w.refused("money_per_day")).message
            assert not w.budgets._money["default"].kept

    run(scenario())


def test_what_another_process_spends_from_the_same_books_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, money_per_day=0.015) as mine, world(tmp_path, money_per_day=1.0) as other:
            mine.clock.now = _today_at(10)
            await mine.ask()
            await other.ask()
            await other.chat.exchanges.store.flush()  # bookings wait a moment for company
            mine.clock.now += 2
            await mine.refused("money_per_day")

    run(scenario())


def test_a_question_that_fails_gives_its_money_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path, money_per_day=0.005) as w:
            w.clock.now = _today_at(10)
            for _ in range(3):
                await w.ask(message="broken")
            await w.ask()
            await w.refused("money_per_day")

    run(scenario())


def test_one_assistants_money_is_not_anothers(tmp_path: Path) -> None:
    async def scenario() -> None:
        def two(url: str) -> list[Assistant]:
            return [
                Assistant(upstream=url, model="m", name=name, prices=PRICES, limits=LIMITS) for name in ("one", "two")
            ]

        async with serving(tmp_path, CENT, assistants=two, options={"money_per_day": 0.005}) as s:
            for name, status in (("one", 200), ("one", 429), ("two", 200), ("two", 429)):
                assert (await _status(s, "/api/chat", {"message": "cent", "assistant": name}))[0] == status

    run(scenario())


# Over HTTP


async def _status(s: Served, path: str, body: object, **headers: str) -> tuple[int, dict[str, Any], str | None]:
    async with s.client.post(s.url + path, json=body, headers=headers) as response:
        return response.status, await response.json(), response.headers.get("Retry-After")


def test_a_refusal_is_429_in_words_with_the_limit_and_the_time_to_come_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, CENT, options={"requests_per_hour": 2}) as s:
            for _ in range(2):
                assert (await _status(s, "/api/chat", {"message": "cent"}))[0] == 200
            for path in ("/api/chat", "/api/chat/stream"):
                status, told, wait = await _status(s, path, {"message": "cent"})
                assert status == 429 and told["error"]["limit"] == "requests_per_hour"
                assert told["error"]["code"] == "limit" and "come back" in told["error"]["message"]
                assert wait is not None and 3500 < int(wait) <= 3600
            assert len(s.model.requests) == 2

    run(scenario())


def test_a_visitor_has_so_many_answers_under_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, CENT, limits=Limits(exchanges_per_visitor=2)) as s:
            await s.ask("cent")  # known by a cookie from here on
            all_ = await asyncio.gather(*(_status(s, "/api/chat", {"message": "slow"}) for _ in range(5)))
            assert sorted(status for status, _, _ in all_) == [200, 200, 429, 429, 429]
            refused = next(told for status, told, _ in all_ if status == 429)
            assert refused["error"]["limit"] == "exchanges_per_visitor"

    run(scenario())


def test_a_server_that_is_full_says_so_with_503(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, CENT, limits=Limits(exchanges_running=2), cookies=False) as s:
            all_ = await asyncio.gather(*(_status(s, "/api/chat", {"message": "slow"}) for _ in range(5)))
            assert sorted(status for status, _, _ in all_) == [200, 200, 503, 503, 503]
            assert all(wait is not None for status, _, wait in all_ if status == 503)

    run(scenario())


def test_strangers_at_once_over_http_get_no_more_than_there_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        options = {"requests_per_hour": 1, "address_factor": 7}
        async with serving(tmp_path, CENT, options=options, cookies=False) as s:
            all_ = await asyncio.gather(*(_status(s, "/api/chat", {"message": "cent"}) for _ in range(40)))
            assert sum(status == 200 for status, _, _ in all_) == 7 == len(s.model.requests)

    run(scenario())


def test_a_caller_with_a_key_is_bound_by_money_and_not_by_the_hour(tmp_path: Path) -> None:
    async def scenario() -> None:
        options = {"requests_per_hour": 1, "address_factor": 1, "money_per_day": 0.025}
        async with serving(tmp_path, CENT, options=options, prices=PRICES, limits=LIMITS) as s:
            body = {"model": "default", "messages": [{"role": "user", "content": "cent"}]}
            key = {"Authorization": f"Bearer {V1_KEY}"}
            got = [await _status(s, "/v1/chat/completions", body, **key) for _ in range(4)]
            assert [status for status, _, _ in got] == [200, 200, 200, 429]
            assert got[-1][2] is not None

    run(scenario())


def test_what_a_client_brings_to_a_prompt_is_kept_back_too(tmp_path: Path) -> None:
    """A tool's result may have 256 kB: some 85,000 tokens, a hundred times a question and its answer."""

    async def scenario() -> None:
        result = {"id": "2", "role": "tool", "toolCallId": "c1", "content": "x" * 240_000}
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        said = [{"id": "0", "role": "user", "content": "slow"}, {"id": "1", "role": "assistant", "toolCalls": [call]}]
        tools = [{"name": "look", "description": "Looks."}]
        asked = {"threadId": "t", "tools": tools, "messages": [*said, result]}
        plain = {"role": "user", "content": "slow"}
        whole = {"model": "default", "messages": [{"role": "user", "content": "x" * 240_000}, plain]}
        key = {"Authorization": f"Bearer {V1_KEY}"}
        prices = Prices(input=1.0, output=1.0)
        limits = Limits(max_tokens=100, history_tokens=500, message_bytes=3_000)
        # A question of ours costs up to 0.0016 by these prices, with the result 0.08 more.
        for path, body, headers in (("/api/ag-ui", asked, {}), ("/v1/chat/completions", whole, key)):
            folder = tmp_path / path.rpartition("/")[2]
            folder.mkdir()
            options = {"money_per_day": 0.05}
            async with serving(folder, CENT, options=options, prices=prices, limits=limits, cookies=False) as s:
                asks = ({**body, "runId": f"r{n}"} if path == "/api/ag-ui" else body for n in range(4))
                all_ = await asyncio.gather(*(s.client.post(s.url + path, json=one, headers=headers) for one in asks))
                assert sorted(response.status for response in all_) == [200, 429, 429, 429]
                for response in all_:
                    response.close()

    run(scenario())


def test_one_address_has_a_share_of_what_is_under_way_whoever_it_says_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        held = [{"say": "a"}, {"gate": "more"}]
        limits = Limits(exchanges_per_visitor=2)
        async with serving(tmp_path, [held] * 20, limits=limits, cookies=False) as s:
            ask = {"message": "hello"}
            streams = [await s.client.post(f"{s.url}/api/chat/stream", json=ask) for _ in range(10)]
            assert {stream.status for stream in streams} == {200}, "two a visitor, five times that an address"
            async with s.client.post(f"{s.url}/api/chat/stream", json=ask) as refused:
                assert refused.status == 429
                assert (await refused.json())["error"]["limit"] == "exchanges_per_visitor"
            for stream in streams:
                stream.close()

    run(scenario())
