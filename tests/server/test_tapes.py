"""The wire of a stored exchange as a tape, and `motamot show` reading it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from motamot.answer import AnswerEvent, Ended, Outcome, Reasoning, Text, ToolReturned
from motamot.assistant import Assistant, Question
from motamot.protocols.native import PROTOCOL
from motamot.server.tapes import tape_of
from motamot.store.contract import checkpoint, exchange
from motamot.store.store import Store
from motamot.store.views import Detail
from motamot.tape.loading import load
from motamot.tape.saving import save
from motamot.tape.tape import Tape


def assistant(path: Path) -> Assistant:
    chat = Assistant(upstream=None, store=path)

    @chat.answer
    async def answer(question: Question) -> AsyncIterator[AnswerEvent]:
        yield Reasoning("not for the visitor")
        yield ToolReturned(id="1", name="find", status="ok", result="{found}")
        yield Text("Mot ")
        await asyncio.sleep(0.15)
        yield Text("à mot.\n")
        if question.message == "endless":
            await asyncio.sleep(60)

    return chat


async def asked(path: Path, message: str, *, stop: bool = False) -> Detail:
    async with assistant(path) as chat:
        async with chat.ask(message) as told:
            async for event in told:
                if stop and isinstance(event, Text):
                    await told.stop()
        store = chat.exchanges.store
        detail = await store.detail(told.id)
        assert detail is not None
        return detail


def events(tape: Tape) -> list[AnswerEvent]:
    reader = PROTOCOL.reader()
    return [event for piece in tape.reads() for event in reader.feed(piece)]


def test_it_is_what_the_native_protocol_writes_at_the_times_at_which_it_came(tmp_path: Path) -> None:
    detail = asyncio.run(asked(tmp_path / "store.db", "?"))
    tape = tape_of(detail)
    told = events(tape)
    assert told == [event for number, _, event in detail.events if number]
    assert not any(isinstance(event, Reasoning) for event in told)
    assert tape.timed
    times = [piece.at or 0.0 for piece in tape.pieces]
    assert times == sorted(times)
    assert 0.14 < times[3] - times[2] < 5
    assert b'"id: ' not in tape.body
    assert tape.body.startswith(f"id: {detail.row.id}.1\ndata: ".encode())


def test_behind_a_stop_there_is_only_the_end(tmp_path: Path) -> None:
    detail = asyncio.run(asked(tmp_path / "store.db", "endless", stop=True))
    told = events(tape_of(detail))
    assert "".join(event.text for event in told if isinstance(event, Text)) == "Mot "
    last = told[-1]
    assert isinstance(last, Ended)
    assert last.outcome is Outcome.STOPPED


def test_where_no_times_are_known_none_are_made_up(tmp_path: Path) -> None:
    async def run() -> Detail:
        store = Store.open(tmp_path / "store.db")
        await store.begin(exchange("e"))
        store.checkpoint([checkpoint("e", "Mot", sent=2, boundaries=((2, 3),))])
        detail = await store.detail("e")
        await store.close()
        assert detail is not None
        return detail

    tape = tape_of(asyncio.run(run()))
    assert [piece.at for piece in tape.pieces] == [None, None]
    assert any("no times" in note for note in tape.notes)
    assert any("had not ended" in note for note in tape.notes)


def test_of_a_removed_text_there_is_nothing_and_it_says_so(tmp_path: Path) -> None:
    async def run() -> Detail:
        path = tmp_path / "store.db"
        detail = await asked(path, "?")
        store = Store.open(path)
        await store.delete_visitor("local")
        gone = await store.detail(detail.row.id)
        await store.close()
        assert gone is not None
        return gone

    tape = tape_of(asyncio.run(run()))
    assert tape.pieces == ()
    assert any("removed" in note for note in tape.notes)


def test_motamot_show_reads_it(tmp_path: Path) -> None:
    detail = asyncio.run(asked(tmp_path / "store.db", "?"))
    file = tmp_path / "exchange.tape"
    save(tape_of(detail), file)
    [loaded] = load(file)
    assert events(loaded) == events(tape_of(detail))
    command = [sys.executable, "-m", "motamot", "show", "--as", "motamot", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    assert "à mot." in told
    assert "complete" in told
