"""`motamot ledger`: the books, read by a process of its own while this one has them open."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest

from motamot.answer import Source, Usage
from motamot.store.records import CompletionClosed, CompletionOpened, ExchangeBegun, ExchangeEnded
from motamot.store.store import Store
from tests.cli.support import Done, Place

NOON = 1_795_953_600.0  # 2026-11-29 12:00:00 UTC
FORMULA = '=HYPERLINK("http://x")'
HOSTILE = "a\x1b[2J\nb\u2028c"


async def book(store: Store) -> None:
    """Four exchanges: complete, retried, answered twice, and one that is under way."""
    await begin(store, "exchange-1", NOON, question="What is what?")
    await complete(
        store, "exchange-1", "c1", NOON, Usage(prompt_tokens=41, completion_tokens=120, source=REPORTED), 0.002
    )
    end(store, "exchange-1", NOON + 2.5, shown="This is that.\r\nAll of it.")

    await begin(store, "exchange-2", NOON + 60, question=FORMULA, model=HOSTILE, assistant="guide")
    nothing = Usage(source=REPORTED)
    await complete(store, "exchange-2", "c2", NOON + 60, nothing, None, model=HOSTILE, failed=HOSTILE)
    usage = Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=2, source=Source.ESTIMATED)
    await complete(store, "exchange-2", "c3", NOON + 61, usage, None, model=HOSTILE, attempt=2, outcome="stopped")
    end(store, "exchange-2", NOON + 62, shown="It be", outcome="stopped", by="visitor", marks=("test_model",))

    await begin(store, "exchange-3", NOON + 120)
    usage = Usage(prompt_tokens=10, completion_tokens=10, reasoning_tokens=4, source=REPORTED)
    await complete(store, "exchange-3", "c4", NOON + 120, usage, 0.5)
    await complete(store, "exchange-3", "c5", NOON + 121, usage, 0.25, attempt=2)
    end(store, "exchange-3", NOON + 122, shown="Twice.")

    await begin(store, "exchange-4", NOON + 180)
    await store.open_completion(
        CompletionOpened(
            id="c6", exchange="exchange-4", turn=1, attempt=1, model="large", opened_at=NOON + 180, prompt_estimate=9
        )
    )
    await store.flush()


REPORTED = Source.REPORTED


async def begin(
    store: Store, name: str, at: float, *, question: str = "Q?", model: str = "large", assistant: str = "default"
) -> None:
    conversation = name.replace("exchange", "conversation")
    await store.begin(
        ExchangeBegun(
            id=name,
            conversation=conversation,
            assistant=assistant,
            visitor="local",
            question=question,
            started_at=at,
            model=model,
        )
    )


async def complete(
    store: Store,
    exchange: str,
    name: str,
    at: float,
    usage: Usage,
    cost: float | None,
    *,
    attempt: int = 1,
    model: str = "large",
    outcome: str = "complete",
    failed: str | None = None,
) -> None:
    await store.open_completion(
        CompletionOpened(id=name, exchange=exchange, turn=1, attempt=attempt, model=model, opened_at=at)
    )
    store.close_completion(
        CompletionClosed(
            id=name,
            closed_at=at + 1,
            outcome="failed" if failed else outcome,
            code="upstream_error" if failed else None,
            finish="error" if failed else "stop",
            detail=failed,
            usage=usage,
            cost=cost,
            first_delta=0.125,
            duration=1.5,
        )
    )


def end(
    store: Store,
    name: str,
    at: float,
    *,
    shown: str,
    outcome: str = "complete",
    by: str | None = None,
    marks: tuple[str, ...] = (),
) -> None:
    store.end(
        ExchangeEnded(
            id=name,
            ended_at=at,
            outcome=outcome,
            by=by,
            generated=shown,
            shown=shown,
            events=4,
            sent=4,
            marks=marks,
        )
    )


@asynccontextmanager
async def books(place: Place) -> AsyncIterator[None]:
    store = Store.open(place.database)
    try:
        await book(store)
        yield
    finally:
        await store.close()


def look(place: Place, *commands: str) -> list[Done]:
    """Run the ledger, once for each line of options, while the books are open in this process."""

    async def run() -> list[Done]:
        async with books(place):
            return [await asyncio.to_thread(place.run, "ledger", *options.split()) for options in commands]

    done = asyncio.run(run())
    assert not any("Traceback" in each.err for each in done)
    return done


def test_the_list_is_the_newest_first_in_columns_for_people(place: Place) -> None:
    (done,) = look(place, "")
    assert done.status == 0
    assert done.out.decode() == LIST


LIST = """\
STARTED              EXCHANGE    ASSISTANT  MODEL      COMPLETIONS    TOKENS  SOURCE          COST  OUTCOME
2026-11-29 12:03:00  exchange-4  default    large                1         -  -                  -  open
2026-11-29 12:02:00  exchange-3  default    large                2   20 + 20  reported    0.75 USD  complete
2026-11-29 12:01:00  exchange-2  guide      a␛[2J b c            2     7 + 3  estimated          -  stopped [test_model]
2026-11-29 12:00:00  exchange-1  default    large                1  41 + 120  reported   0.002 USD  complete

exchange-3: 2 completions for 1 turn; turn 1: attempt 1 complete, asked again as attempt 2; turn 1: answered 2 times
exchange-2: 2 completions for 1 turn; turn 1: attempt 1 failed (upstream_error), asked again as attempt 2

4 exchanges, 6 completions, 68 + 143 tokens (61 + 140 reported in 3, 7 + 3 estimated in 1), ≥ 0.752 USD; 1 open
"""


def test_text_is_shown_only_when_it_is_asked_for(place: Place) -> None:
    for done in look(place, "", "--json", "--csv", "--exchange exchange-1"):
        assert b"exchange-1" in done.out
        assert b"What is what" not in done.out
        assert b"This is that" not in done.out


def test_one_exchange_is_shown_completion_by_completion(place: Place) -> None:
    (done,) = look(place, "--exchange exchange-2")
    assert [line.rstrip() for line in done.out.decode().splitlines()] == RETRIED.splitlines()


RETRIED = """\
exchange      exchange-2
conversation  conversation-2
assistant     guide
model         a␛[2J b c
started       2026-11-29 12:01:00
ended         2026-11-29 12:01:02 (2.00 s)
outcome       stopped [test_model] by visitor
tokens        7 + 3 (estimated)
cost          -
unusual       2 completions for 1 turn; turn 1: attempt 1 failed (upstream_error), asked again as attempt 2

TURN  ATTEMPT  MODEL      FIRST DELTA  DURATION  FINISH  OUTCOME                  TOKENS  CACHED  REASONING  \
SOURCE     COST  COMPLETION
   1        1  a␛[2J b c       0.12 s    1.50 s  error   failed (upstream_error)   0 + 0       0          0  \
-             -  c2
   1        2  a␛[2J b c       0.12 s    1.50 s  stop    stopped                   7 + 3       2          0  \
estimated     -  c3
turn 1, attempt 1: a␛[2J b c
"""


def test_one_exchange_with_its_text(place: Place) -> None:
    (done,) = look(place, "--exchange exchange-1 --text")
    question = ["", "question:", "  What is what?", "", "answer:", "  This is that.", "  All of it."]
    assert done.out.decode().splitlines()[-7:] == question


def test_only_what_is_open(place: Place) -> None:
    text, rows = look(place, "--open", "--open --json")
    lines = text.out.decode().splitlines()
    assert [line.split()[2] for line in lines[1:2]] == ["exchange-4"]
    assert lines[2:] == ["", "1 exchange, 1 completion; 1 open"]
    assert [json.loads(line)["exchange"] for line in rows.out.splitlines()] == ["exchange-4"]


def test_what_is_listed_can_be_chosen(place: Place) -> None:
    wanted = {
        "--limit 2": ["exchange-4", "exchange-3"],
        "--assistant guide": ["exchange-2"],
        "--since 2026-11-29T12:02": ["exchange-4", "exchange-3"],
        "--since 2026-11-29T13:01+01:00": ["exchange-4", "exchange-3", "exchange-2"],
        "--since 2026-11-30": [],
        "--since 1s": [] if time.time() > NOON + 181 else ["exchange-4", "exchange-3", "exchange-2", "exchange-1"],
        "--exchange exchange-3": ["exchange-3", "exchange-3"],
    }
    for options, done in zip(wanted, look(place, *(f"--json {options}" for options in wanted)), strict=True):
        assert [json.loads(line)["exchange"] for line in done.out.splitlines()] == wanted[options], options


def test_json_lines_hold_everything_for_programs(place: Place) -> None:
    listed, one = look(place, "--json --text", "--json --exchange exchange-2")
    assert json.loads(listed.out.decode().splitlines()[2]) == {
        "exchange": "exchange-2",
        "conversation": "conversation-2",
        "assistant": "guide",
        "model": HOSTILE,
        "started": "2026-11-29T12:01:00.000Z",
        "ended": "2026-11-29T12:01:02.000Z",
        "outcome": "stopped",
        "code": None,
        "by": "visitor",
        "marks": ["test_model"],
        "turns": 1,
        "completions": 2,
        "surplus": ["turn 1: attempt 1 failed (upstream_error), asked again as attempt 2"],
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "cached_tokens": 2,
        "reasoning_tokens": 0,
        "source": "estimated",
        "cost": {},
        "question": FORMULA,
        "shown": "It be",
    }
    assert json.loads(one.out.decode().splitlines()[0]) == {
        "exchange": "exchange-2",
        "completion": "c2",
        "turn": 1,
        "attempt": 1,
        "model": HOSTILE,
        "opened": "2026-11-29T12:01:00.000Z",
        "outcome": "failed",
        "finish": "error",
        "code": "upstream_error",
        "detail": HOSTILE,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "source": "reported",
        "cost": None,
        "currency": None,
        "first_delta": 0.125,
        "duration": 1.5,
    }


def test_csv_is_read_by_a_spreadsheet_and_runs_nothing_there(place: Place) -> None:
    listed, one = look(place, "--csv --text", "--csv --exchange exchange-3")
    rows = list(csv.DictReader(io.StringIO(listed.out.decode(), newline="")))
    assert [row["exchange"] for row in rows] == ["exchange-4", "exchange-3", "exchange-2", "exchange-1"]
    assert rows[2]["question"] == "'" + FORMULA
    assert rows[3]["shown"] == "This is that.\r\nAll of it."
    assert (rows[1]["completions"], rows[1]["turns"], rows[1]["cost"]) == ("2", "1", "0.75 USD")
    assert rows[0]["prompt_tokens"] == rows[0]["source"] == ""
    completions = list(csv.DictReader(io.StringIO(one.out.decode(), newline="")))
    assert [(row["completion"], row["cost"], row["currency"]) for row in completions] == [
        ("c4", "0.5", "USD"),
        ("c5", "0.25", "USD"),
    ]


def test_an_empty_ledger_has_nothing_to_show(place: Place) -> None:
    async def make(_store: Store) -> None:
        return

    place.with_store(make)
    assert (place.run("ledger").out, place.run("ledger", "--json").out) == (b"", b"")
    assert place.run("ledger").notes == ["motamot: nothing in this ledger fits"]
    assert place.run("ledger", "--csv").out.startswith(b"exchange,conversation,")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "there is no ledger at {database} yet: nothing was asked, or --database names another"),
        (
            ["--database", "none.db"],
            "there is no ledger at {folder}/none.db yet: nothing was asked, or --database names",
        ),
        (["--csv", "--json"], "--csv and --json are two forms of the same: choose one"),
        (["--since", "soon"], "--since 'soon' is no time: say 2026-11-29, 2026-11-29T18:00, 90m, 2h or 7d"),
        (["--since", "999999w"], "--since '999999w' is no time: say 2026-11-29, 2026-11-29T18:00, 90m, 2h or 7d"),
        (["--settings", "none.toml"], "there is no settings file none.toml"),
    ],
)
def test_what_cannot_be_listed_is_told(place: Place, options: list[str], said: str) -> None:
    done = place.run("ledger", *options)
    assert (done.status, done.out) == (2, b"")
    assert done.notes[0].startswith("motamot: " + said.format(database=place.database, folder=place.folder))
    assert not place.database.exists()


def test_an_exchange_that_is_not_there_is_told(place: Place) -> None:
    (done,) = look(place, "--exchange nosuch")
    assert (done.status, done.notes) == (2, ["motamot: there is no exchange 'nosuch' in this ledger"])


def test_the_settings_say_where_the_ledger_is(place: Place) -> None:
    async def move() -> Done:
        async with books(place):
            (place.folder / "motamot.toml").write_text("[store]\ndatabase = 'books.sqlite3'\n")
            environ = {"MOTAMOT_DATABASE": ""}
            return await asyncio.to_thread(place.run, "ledger", "--json", environ=environ)

    assert len(asyncio.run(move()).out.splitlines()) == 4


def test_it_is_read_while_another_program_holds_the_lock(place: Place) -> None:
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN IMMEDIATE'); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    look(place, "")
    with subprocess.Popen(
        [sys.executable, "-c", program, str(place.database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as locker:
        assert locker.stdin is not None and locker.stdout is not None
        locker.stdout.readline()
        done = place.run("ledger", "--json")
        locker.stdin.close()
    assert (done.status, len(done.out.splitlines())) == (0, 4)


def test_a_ledger_of_a_newer_program_is_refused(place: Place) -> None:
    look(place, "")
    with closing(sqlite3.connect(place.database)) as newer:
        newer.execute("UPDATE motamot_version SET version_num = '9999'")
        newer.commit()
    done = place.run("ledger")
    assert done.status == 2
    assert "was written by a newer motamot (revision 9999" in done.notes[0]


def test_a_reader_that_leaves_is_no_fault(place: Place) -> None:
    look(place, "")
    command = f"{sys.executable} -m motamot ledger --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        check=True,
        cwd=place.folder,
        env=place.environ,
        timeout=40,
    )
    assert done.stdout.split(b"{")[1].strip() in (b"0", b"141")
    assert done.stderr == b""


def test_columns_stay_aligned_where_letters_are_wide(place: Place) -> None:
    from motamot.cli.ledger_forms import entries_text
    from motamot.cli.ledger_rows import Entry

    def entry(name: str, model: str) -> Entry:
        return Entry(
            id="e",
            conversation="c",
            assistant=name,
            model=model,
            started_at=NOON,
            ended_at=NOON,
            outcome="complete",
            code=None,
            by=None,
            message=None,
            detail=None,
            marks=(),
            question=None,
            shown=None,
            completions=(),
        )

    from rich.cells import cell_len

    lines = entries_text([entry("案内", "m"), entry("guide", "x" * 60)]).splitlines()
    assert len({cell_len(line) for line in lines[1:3]}) == 1
    assert "x" * 39 + "…" in lines[2]
