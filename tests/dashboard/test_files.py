"""What leaves the dashboard as a file, and what is removed: exports, a visitor's record, a visitor's text."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.answer import Ended, Text
from motamot.protocols import PROTOCOLS
from motamot.server.dashboard.export import defused
from motamot.tape import load
from tests.dashboard.books import BIDI, XSS, asked, chatbot
from tests.dashboard.support import signed_in
from tests.server.reading import Visitor, run

FORMULA = "=cmd|' /C calc'!A0"
QUESTIONS = (FORMULA, f"harmless;{FORMULA}", f'"{FORMULA}', "+1", "-1", "@SUM(A1)", "\t=1", "＝1", "a - b")
PATHS = [
    "export.csv",
    "export.jsonl",
    "visitor",
    "visitor.json",
    "figures",
    "conversations",
    "conversations/x",
    "exchanges/x",
    "exchanges/x/tape",
]


def test_an_export_holds_what_was_found_word_for_word_a_line_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            ids = await asked(s)
            page = await browser.get("/dashboard/conversations?outcome=complete")
            exported = await browser.get(page.link(r"export\.jsonl"))
            assert exported.headers["Content-Type"].startswith("application/jsonl")
            assert exported.headers["Content-Disposition"] == 'attachment; filename="motamot-exchanges.jsonl"'
            lines = [json.loads(line) for line in exported.body.splitlines() if line]
            assert [line["exchange"] for line in lines] == [ids[kind] for kind in ("xss", "tools", "complete")]
            assert lines[0]["question"] == f"Wer fragt? {XSS}\n{BIDI}"
            assert lines[1]["answer"].endswith(f"It left {XSS} {BIDI}")
            assert (lines[2]["prompt_tokens"], lines[2]["cost"], lines[2]["outcome"]) == (
                1000,
                {"USD": 0.006},
                "complete",
            )

    run(scenario())


def test_a_csv_export_is_read_by_any_reader_and_no_spreadsheet_runs_what_is_in_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            for question in QUESTIONS:
                stream = await Visitor(s.port).ask(question)
                await stream.to_end()
                await stream.close()
            exported = await browser.get("/dashboard/export.csv")
            assert exported.headers["Content-Type"] == "text/csv; charset=utf-8"
            assert exported.body.startswith("\ufeff")
            rows = list(csv.DictReader(io.StringIO(exported.body.removeprefix("\ufeff"), newline="")))
            assert len(rows) == 9 and all(None not in row for row in rows)
            for row in rows:
                for cell in row.values():
                    assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "＝")
            questions = [row["question"] for row in rows]
            assert "a - b" in questions and f"'{FORMULA}" in questions
            # and where the separator is thought to be another one
            for line in exported.body.splitlines():
                for cell in line.split(";"):
                    assert not cell.lstrip(' "').startswith(("=", "+", "@"))

    run(scenario())


@pytest.mark.parametrize(
    "text", ["\n" * 4_000_000, "; " * 2_000_000, '"\t' * 2_000_000], ids=["lines", "marks", "quoted"]
)
def test_a_text_of_blanks_takes_no_longer_than_another(text: str) -> None:
    """It is a model's: 4 MB of line ends would keep the server from everything else, for hours."""
    began = time.thread_time()
    assert len(defused(text)) <= len(text) + 1
    assert time.thread_time() - began < 10


def test_no_formula_begins_behind_quotation_marks_or_blanks_of_a_text() -> None:
    assert defused('a;""=1+1') == 'a;""\'=1+1'
    assert defused("a\n\n =1") == "a\n\n '=1"


@given(st.text(max_size=30))
def test_defusing_changes_nothing_but_what_would_begin_a_formula(text: str) -> None:
    safe = defused(text)
    assert safe.lstrip()[:1] not in {"=", "+", "-", "@"}
    if not any(character in text for character in "=+-@＝＋－＠\t\r"):
        assert safe == text
    assert len(safe) <= 2 * len(text) + 1


def test_an_export_that_cannot_be_made_is_told_before_the_file_begins(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            page = await browser.get("/dashboard/export.csv?text=%22%22")
            assert page.status == 400 and page.headers["Content-Type"].startswith("text/html")
            async with browser.client.get(f"{s.url}/dashboard/export.csv", cookies={"motamot_operator": "x"}) as got:
                assert "motamot-exchanges" not in str(got.headers)

    run(scenario())


def test_nobody_has_a_file_made_and_does_not_take_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            for name in ("export.csv", "export.jsonl", "visitor.json", "exchanges/x/tape"):
                async with browser.client.head(f"{s.url}/dashboard/{name}") as response:
                    assert response.status == 405

    run(scenario())


# Tapes


def test_the_wire_of_an_exchange_is_a_tape_that_motamot_show_reads(tmp_path: Path) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            ids = await asked(s)
            tapes = []
            for kind in ("tools", "stopped"):
                page = await browser.get(f"/dashboard/exchanges/{ids[kind]}")
                async with browser.client.get(page.link("/tape$")) as response:
                    assert response.status == 200
                    assert response.headers["Content-Disposition"] == f'attachment; filename="motamot-{ids[kind]}.tape"'
                    tapes.append(await response.read())
            assert (await browser.get("/dashboard/exchanges/none/tape")).status == 404
            return tapes[0], tapes[1]

    tools, stopped = run(scenario())
    for tape, wanted in ((tools, f"I look.\n\nIt left {XSS} {BIDI}"), (stopped, "Before the gate.")):
        file = tmp_path / "wire.tape"
        file.write_bytes(tape)
        done = subprocess.run([sys.executable, "-m", "motamot", "show", str(file)], capture_output=True, text=True)
        assert done.returncode == 0 and re.search("event 1 +started", done.stdout), done.stderr
        reader = PROTOCOLS["motamot"].reader()
        events = [event for piece in load(file)[0].pieces for event in reader.feed(piece.data)]
        assert "".join(event.text for event in events if isinstance(event, Text)) == wanted
        assert isinstance(events[-1], Ended)


# Visitors


def test_a_visitors_whole_record_is_exported_as_json(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            ids = await asked(s)
            page = await browser.get(f"/dashboard/exchanges/{ids['tools']}")
            visitor = await browser.get(page.link("visitor"))
            assert visitor.status == 200 and "guide" in visitor.text
            told = json.loads((await browser.get(visitor.link("visitor.json"))).body)
            [exchange] = told["exchanges"]
            assert exchange["row"]["id"] == ids["tools"] and exchange["row"]["visitor"] == told["visitor"]
            kinds = [event[2]["type"] for event in exchange["events"]]
            assert "tool_called" in kinds and "tool_returned" in kinds
            assert (await browser.get("/dashboard/visitor?name=nobody")).status == 404
            assert (await browser.get("/dashboard/visitor.json?name=nobody")).status == 404

    run(scenario())


def test_a_visitors_text_is_removed_for_good_once_that_was_confirmed(tmp_path: Path) -> None:
    secret = "what-nobody-is-to-read-again"

    async def scenario() -> None:
        async with chatbot(tmp_path) as s, await signed_in(s) as browser:
            visitor, other = Visitor(s.port), Visitor(s.port)
            first = await (await visitor.ask(f"hello {secret}")).to_end()
            second = await (await other.ask("hello")).to_end()
            running = await visitor.ask("held")
            await running.until("Before")
            page = await browser.get(f"/dashboard/exchanges/{first.exchange}")
            page = await browser.get(page.link("visitor"))
            unsure = await browser.send(page, "visitor/delete")
            assert unsure.status == 400 and "Tick the box" in unsure.text
            assert secret in (await browser.get(f"/dashboard/exchanges/{first.exchange}")).text
            forged = await browser.send(page, "visitor/delete", sure="yes", token="x")
            assert forged.status == 403
            done = await browser.send(unsure, "visitor/delete", sure="yes")
            assert done.status == 200 and "The text of 2 conversations was removed." in done.text
            await running.to_end()
            assert running.ended is not None and running.ended.outcome == "stopped"
            for stream in (first, second, running):
                await stream.close()
            page = await browser.get(f"/dashboard/exchanges/{first.exchange}")
            assert "its text was removed" in page.text and secret not in page.body
            assert "500" in page.text  # its tokens stay
            listed = await browser.get("/dashboard/conversations")
            assert secret not in listed.body and "Bonjour" in listed.text
            store = s.site.exchanges.store
            async with asyncio.timeout(20):
                while any(secret.encode() in file.read_bytes() for file in tmp_path.glob("books*")):
                    await asyncio.sleep(0.1)
            assert store.path.exists()
        with sqlite3.connect(tmp_path / "books.sqlite3") as books:
            assert books.execute("SELECT count(*) FROM exchanges WHERE question IS NOT NULL").fetchone() == (1,)

    run(scenario())


@pytest.mark.parametrize("path", PATHS)
def test_nobody_gets_anything_without_the_key(tmp_path: Path, path: str) -> None:
    from tests.dashboard.support import Browser

    async def scenario() -> None:
        async with chatbot(tmp_path) as s, Browser(s) as stranger:
            page = await stranger.get(f"/dashboard/{path}")
            assert "/dashboard/sign-in" in page.url and "The operator's key" in page.text

    run(scenario())
