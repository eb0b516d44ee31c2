"""What each page tells of exchanges that really were, and that nothing in them becomes markup."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from motamot.answer import Source, Started, Usage
from motamot.errors import StoreError
from motamot.limits import Limits
from motamot.server.dashboard.visit import POLICY
from motamot.store.records import CompletionClosed, CompletionOpened, ExchangeBegun, ExchangeEnded
from tests.dashboard.books import XSS, asked, chatbot
from tests.dashboard.support import Browser, Seen, signed_in
from tests.server.reading import Visitor, run
from tests.server.support import Served

Scenario = Callable[[Served, Browser, dict[str, str]], Awaitable[None]]


def played(folder: Path, scenario: Scenario, *, limits: Limits = Limits(), **options: object) -> None:
    """A scenario with an operator before a chatbot that was asked once in every way."""

    async def play() -> None:
        async with chatbot(folder, limits=limits, options=options) as s, await signed_in(s) as browser:
            await scenario(s, browser, await asked(s))

    run(play())


def harmless(page: Seen) -> None:
    """Nothing that was said has become part of the page."""
    assert page.status == 200, page.text
    assert not {"script", "style", "iframe", "object", "b", "i", "template"} & set(page.tags)
    assert page.tags.count("textarea") == 0
    images = [value for name, value in page.attributes if name == "src"]
    assert images == []
    for name, value in page.attributes:
        assert name != "style" and not name.startswith("on")
        if name == "href":
            assert not re.match(r"(?i)\s*(javascript|data):", value)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", page.text)
    assert page.headers["Content-Security-Policy"] == POLICY


# Overview


def test_the_overview_tells_today_what_is_spent_and_what_fails(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get("/dashboard")
        harmless(page)
        assert "3 complete, 1 failed, 1 stopped, 1 truncated" in page.text
        assert "guide: the model's server refused or failed (1 ×" in page.text
        assert ids["failed"] in page.link("exchanges/")
        assert "0.006406 USD" in page.text.replace("\u00a0", " ")
        assert "no bound" in page.text

    played(tmp_path, scenario)


def test_what_has_no_price_is_told_to_be_unknown_and_not_to_cost_nothing(tmp_path: Path) -> None:
    async def run_it() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            assert "Money nothing First" in (await browser.get("/dashboard")).text
            stream = await Visitor(s.port).ask("hello", assistant="<i>other</i>")
            await stream.to_end()
            await stream.close()
            page = await browser.get("/dashboard")
            assert "Money unknown completions without a price: 1 First" in page.text
            assert "<i>other</i> unknown completions without a price: 1" in page.text

    run(run_it())


def test_the_overview_tells_what_is_left_of_a_budget_while_an_answer_runs(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        stream = await Visitor(s.port).ask("held")
        await stream.until("Before")
        page = await browser.get("/dashboard")
        guide = s.site.assistants["guide"]
        await asyncio.sleep(1.1)  # for so long the ledger is not read again
        money = await s.site.budgets.money(guide)
        page = await browser.get("/dashboard")
        assert money is not None and money.kept > 0 and 0 < money.left < 5 - money.booked
        for amount in ("5.00", f"{money.kept:.6f}".rstrip("0"), f"{money.left:.6f}".rstrip("0")):
            assert amount in page.text
        await browser.send(page, "/stop")
        await stream.to_end()
        await stream.close()

    played(tmp_path, scenario, money_per_day=5.0)


def test_while_the_books_cannot_be_written_the_overview_says_so_and_is_still_read(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        writer = s.site.exchanges.store._writer
        writer.error, writer._failing_since = StoreError("the disk is <b>full</b>"), 0.0
        page = await browser.get("/dashboard")
        harmless(page)
        assert "The books cannot be written: the disk is <b>full</b>" in page.text and "3 complete" in page.text
        writer.error = writer._failing_since = None
        assert "cannot be written" not in (await browser.get("/dashboard")).text

    played(tmp_path, scenario)


# Conversations


def test_conversations_are_listed_newest_first_with_their_ends_tokens_and_costs(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get("/dashboard/conversations")
        harmless(page)
        listed = re.findall(r"exchanges/([\w-]+)", page.body)
        kinds = ["stopped", "xss", "tools", "failed", "truncated", "complete"]
        assert listed == [ids[kind] for kind in kinds]
        for told in ("37 + 4 (estimated)", "1,000 + 500", "0.006 USD", "truncated", "by the visitor", "unknown"):
            assert told in page.text.replace("\u00a0", " "), told
        assert XSS[:40] in page.text  # read as it was written

    played(tmp_path, scenario)


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("outcome=stopped", ["stopped"]),
        ("outcome=complete&assistant=guide", ["tools", "complete"]),
        ("assistant=%3Ci%3Eother%3C%2Fi%3E", ["xss"]),
        ("text=cafe", ["xss", "complete"]),
        ("text=%22caf%C3%A9+ouvre%22&assistant=guide", ["complete"]),
        ("cost_from=0.0001&cost_to=0.001", ["stopped", "tools"]),
        ("cost_from=0%2C005", ["complete"]),
        ("to=2020-01-01", []),
        ("from=2020-01-01&outcome=truncated", ["truncated"]),
        ("text=nobody-said-this", []),
        ("outcome=running", []),
    ],
)
def test_conversations_are_found_by_what_was_said_and_how_they_ended(
    tmp_path: Path, query: str, kinds: list[str]
) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get(f"/dashboard/conversations?{query}")
        harmless(page)
        assert re.findall(r"exchanges/([\w-]+)", page.body) == [ids[kind] for kind in kinds]
        assert ("Nothing was found." in page.text) is (not kinds)
        form = page.form("conversations")
        again = await browser.send(page, "conversations")  # the form holds what was asked
        assert re.findall(r"exchanges/([\w-]+)", again.body) == [ids[kind] for kind in kinds], form

    played(tmp_path, scenario)


def test_what_cannot_be_understood_is_said_and_left_out(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        for query, told in (
            ("from=yesterday", "From day: “yesterday” is not understood"),
            ("to=9999-12-31", "To day"),
            ("cost_from=nan", "Cost from"),
            ("cost_to=-1", "Cost to"),
            ("outcome=%3Cb%3E", "Outcome: “<b>”"),
        ):
            page = await browser.get(f"/dashboard/conversations?{query}")
            harmless(page)
            assert told in page.text, page.text
            assert len(re.findall(r"exchanges/([\w-]+)", page.body)) == len(ids)
        page = await browser.get("/dashboard/conversations?text=%22%22%2A%28")
        assert page.status == 200 and 'role="alert"' in page.body
        assert (await browser.get("/dashboard/conversations?before=x")).status == 200
        assert (await browser.get("/dashboard/conversations?text=" + "a" * 3000)).status == 400
        assert (await browser.get("/dashboard/conversations?" + "a=1&" * 60)).status == 400

    played(tmp_path, scenario)


def test_a_long_list_is_turned_over_page_by_page_without_a_gap(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        for _ in range(7):
            visitor = Visitor(s.port)
            for _ in range(7):
                stream = await visitor.ask("hello")
                await stream.to_end()
                await stream.close()
        page = await browser.get("/dashboard/conversations?assistant=guide")
        first = re.findall(r"exchanges/([\w-]+)", page.body)
        assert len(first) == 50
        page = await browser.get(page.link("before="))
        rest = re.findall(r"exchanges/([\w-]+)", page.body)
        assert len(rest) == 4 and not set(first) & set(rest)
        assert not any("before=" in link for link in page.links)
        newest = await browser.get(page.link(r"conversations\?assistant=guide$"))
        assert re.findall(r"exchanges/([\w-]+)", newest.body) == first

    played(tmp_path, scenario)


def test_a_conversation_is_shown_whole_as_its_visitor_saw_it(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        visitor = Visitor(s.port)
        stream = await visitor.ask("hello")
        await stream.to_end()
        started = stream.events[0]
        assert isinstance(started, Started)
        conversation = started.conversation
        second = await (await visitor.ask("long", conversation=conversation)).to_end()
        for one in (stream, second):
            await one.close()
        page = await browser.get(f"/dashboard/conversations/{conversation}")
        harmless(page)
        texts = ("hello", "Bonjour, le café", "long", "A long answer that is cut", "truncated")
        said = [page.text.index(text) for text in texts]
        assert said == sorted(said)
        assert (await browser.get("/dashboard/conversations/none-such")).status == 404

    played(tmp_path, scenario)


# Exchange


def test_an_exchange_shows_what_was_seen_sent_and_generated_and_marks_what_differs(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get(f"/dashboard/exchanges/{ids['stopped']}")
        harmless(page)
        assert re.search(r'class="text" dir="auto">Before the</div>', page.body)  # what was seen
        assert "Before the<mark> gate.</mark>" in page.body and "sent, and not seen" in page.text
        assert "The same as was sent, to the character." in page.text
        assert "stopped by the visitor" in page.text and "37 + 4 (estimated)" in page.text
        whole = await browser.get(f"/dashboard/exchanges/{ids['complete']}")
        assert "The same, to the character." in whole.text and "<mark>" not in whole.body

    played(tmp_path, scenario)


def test_an_exchange_shows_its_turns_with_the_tools_arguments_and_results(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get(f"/dashboard/exchanges/{ids['tools']}")
        harmless(page)
        text = page.text.replace(" : ", ": ")
        for told in (
            "Tool called order_status",
            "Turn 1 Finish: tool_calls",
            "order_status: ok",
            "Turn 2 Finish: stop",
        ):
            assert told in text, told
        assert f"<b>shipped</b> {XSS}" in text
        assert text.count("order_status") == 2
        table = text[text.index("Completions") :]
        assert "tool_calls" in table and "stop" in table and "30 + 5 (reported)" in table

    played(tmp_path, scenario)


def test_an_exchange_shows_when_what_happened_and_does_not_invent_what_it_does_not_know(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get(f"/dashboard/exchanges/{ids['stopped']}")
        line = page.text.partition("Time line Event After")[2]
        parts = ("Question", "First text", "Stop asked", "Upstream closed", "End")
        times = re.search(" ".join(rf"{part} [\d.]+.m?s" for part in parts), line)
        assert times, line
        failed = await browser.get(f"/dashboard/exchanges/{ids['failed']}")
        assert "First text" not in failed.text.partition("Time line Event After")[2].partition("What happened")[0]
        assert "Told to the operator alone" in failed.text and "Told to the visitor" in failed.text

    played(tmp_path, scenario)


def test_a_text_that_is_too_long_for_a_page_is_cut_and_a_difference_far_into_it_is_still_seen(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        store = s.site.exchanges.store
        row = await store.exchange(ids["tools"])
        assert row is not None and row.generated is not None and len(row.generated) > 100
        page = await browser.get(f"/dashboard/exchanges/{ids['tools']}")
        assert re.search(r"… \+\d+", page.text)

    played(tmp_path, scenario, limits=Limits(page_text_characters=50))


def test_completions_that_should_not_be_there_are_named_and_honest_retries_told_from_them(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        store = s.site.exchanges.store
        now = time.time()
        begun = ExchangeBegun(
            id="twice", conversation="c", assistant="guide", visitor="v", question="Twice?", started_at=now, model="m"
        )
        await store.begin(begun)
        usage = Usage(prompt_tokens=3, completion_tokens=4, source=Source.REPORTED)
        for number, (code, used) in enumerate((("upstream_error", Usage()), (None, usage), (None, usage)), 1):
            opened = CompletionOpened(
                id=f"twice-{number}", exchange="twice", turn=1, attempt=number, model="m", opened_at=now
            )
            await store.open_completion(opened)
            closed = CompletionClosed(
                id=opened.id,
                closed_at=now + 0.1,
                outcome="failed" if code else "complete",
                finish="error" if code else "stop",
                usage=used,
                code=code,
                detail="429 <b>slow down</b>" if code else None,
                first_delta=None if code else 0.05,
                duration=0.1,
            )
            store.close_completion(closed)
        ended = ExchangeEnded(
            id="twice", ended_at=now + 0.2, outcome="complete", generated="Yes.", shown="Yes.", events=3, sent=3
        )
        store.end(ended)
        await store.flush()
        page = await browser.get("/dashboard/exchanges/twice")
        harmless(page)
        table = page.text.rpartition("Completions")[2]
        assert table.count("should not be there") == 1 and table.count("an honest retry") == 1
        assert table.index("an honest retry") < table.index("should not be there")
        assert "429 <b>slow down</b>" in table
        listed = await browser.get("/dashboard/conversations")
        assert listed.text.count(" odd ") == 1 and listed.text.index("Twice?") < listed.text.index(" odd ")

    played(tmp_path, scenario)


def test_an_exchange_that_is_none_is_404_in_words(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        for name in ("none-such", "%3Cscript%3E", "a" * 500):
            page = await browser.get(f"/dashboard/exchanges/{name}")
            assert page.status == 404 and "There is no such exchange." in page.text
            assert page.headers["Content-Security-Policy"] == POLICY

    played(tmp_path, scenario)


def test_an_answer_that_has_ended_cannot_be_stopped_and_is_left_as_it_is(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        stream = await Visitor(s.port).ask("held")
        await stream.until("Before")
        page = await browser.get(f"/dashboard/exchanges/{stream.exchange}")
        assert "running" in page.text
        s.model.release("more")
        await stream.to_end()
        told = await browser.send(page, "/stop")
        await stream.close()
        assert "It does not run any more." in told.text
        row = await s.site.exchanges.store.exchange(stream.exchange)
        assert row is not None and row.outcome == "complete"

    played(tmp_path, scenario)


# Figures


def test_figures_are_drawn_without_styles_and_told_in_a_table_beside(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        page = await browser.get("/dashboard/figures")
        harmless(page)
        assert page.tags.count("figure") >= 4
        for svg in re.findall(r"<svg.*?>", page.body):
            assert 'aria-hidden="true"' in svg or re.search(r'role="img" aria-label="Chart: .+"', svg)
        ends = "3 complete, 1 failed, 1 stopped, 1 truncated"
        for told in (ends, "2,071", "1,033", "0.006406 USD", "The whole time"):
            assert told in page.text.replace("\u00a0", " "), told
        one = await browser.get("/dashboard/figures?assistant=guide&model=scripted")
        assert "2 complete, 1 failed, 1 stopped, 1 truncated" in one.text and "The whole time" not in one.text
        for query in ("from=2020-01-01&to=2020-01-31", "assistant=nobody", "from=x&to=2000-01-01"):
            assert "Nothing was asked in this time." in (await browser.get(f"/dashboard/figures?{query}")).text
        assert "At most 366 days" in (await browser.get("/dashboard/figures?from=1970-01-01")).text

    played(tmp_path, scenario)


# Everywhere


def test_every_page_speaks_french_too(tmp_path: Path) -> None:
    async def scenario(s: Served, browser: Browser, ids: dict[str, str]) -> None:
        english = await browser.get("/dashboard")
        french = await browser.get(english.link("language"))
        assert french.body.count('lang="fr"') == 1 and french.url == english.url
        for path, told in (
            ("", "Budgets du jour"),
            ("/conversations", "Exporter ce qui est trouvé"),
            ("/figures", "Jetons par jour"),
            (f"/exchanges/{ids['stopped']}", "Comme le visiteur l’a vu"),
        ):
            page = await browser.get(f"/dashboard{path}")
            harmless(page)
            assert told in page.text
            assert page.headers["Content-Language"] == "fr"

    played(tmp_path, scenario)
