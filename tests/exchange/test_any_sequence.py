"""Any sequence of stop, leave, resume, kill and shutdown: booked once, one `Ended`, last.

Each sequence runs in a process of its own, so that a kill is a real one. What happened is written to a report as it
happens; the books are looked at afterwards, from here.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from motamot.answer import AnswerEvent, Ended, Outcome, Text
from motamot.errors import MotamotError, UpstreamError
from motamot.exchange.exchange import Exchange, Follower
from motamot.exchange.exchanges import Asking, Exchanges
from motamot.exchange.loop import ModelAnswer
from motamot.exchange.tools import tool_from
from motamot.limits import Limits
from motamot.model.turn import Attempt, Emit, ToolCall, Turn, TurnRequest
from motamot.store.store import Store

KEYS = ["a", "b"]


class Report:
    """A line a fact, written before the process can die."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(self, **fact: Any) -> None:
        os.write(self._file, json.dumps(fact).encode() + b"\n")


class DrivenModel:
    """A model that says what the sequence tells it to, in this process."""

    name = "driven"
    origin = "http"
    marks: tuple[str, ...] = ()

    def __init__(self, report: Report) -> None:
        self.report = report
        self.running: list[DrivenAttempt] = []

    def attempt(self, request: TurnRequest) -> Attempt:
        return DrivenAttempt(self, request)

    async def close(self) -> None:
        pass


class DrivenAttempt:
    def __init__(self, model: DrivenModel, request: TurnRequest) -> None:
        self.model = model
        self.request = request
        self.texts: list[str] = []
        self.first_delta_at: float | None = None
        self._emit: Emit | None = None
        self._end: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()

    async def run(self, emit: Emit) -> Turn:
        self._emit = emit
        self.model.report.tell(sent=self.request.headers["X-Client-Request-Id"])
        self.model.running.append(self)
        try:
            return await self._end
        finally:
            self.model.running.remove(self)

    def say(self, text: str) -> None:
        assert self._emit is not None
        self.texts.append(text)
        self._emit([Text(text)])

    def end(self, finish: str) -> None:
        if self._end.done():
            return
        calls: tuple[ToolCall, ...] = ()
        error = None
        if finish == "tool_calls":
            calls = (ToolCall(id="1", name="look", raw="{}", arguments={}),)
        if finish == "error":
            error = UpstreamError("The model failed.", status=500)
        text = "".join(self.texts)
        self._end.set_result(Turn(finish=finish, text=text, tool_calls=calls, error=error, started=True))

    def snapshot(self) -> Turn:
        return Turn(finish="incomplete", text="".join(self.texts), started=True)


def look() -> str:
    """Looks."""
    return "found"


class Reader:
    """A follower, checked as it reads."""

    def __init__(self, follower: Follower, report: Report) -> None:
        self.follower = follower
        self.report = report
        self.events: list[tuple[int, AnswerEvent]] = []
        self.task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while batch := await self.follower.next():
            self.events += batch
        numbers = [number for number, _ in self.events]
        ended = self.follower.exchange.ended
        if ended is not None and ended.outcome in (Outcome.STOPPED, Outcome.ABANDONED):
            # What had come and was not shown is given to nobody any more: whoever reads now is told of the end next.
            numbers = [number for number, event in self.events if not isinstance(event, Ended)]
        if numbers != list(range(numbers[0] if numbers else 1, (numbers[0] if numbers else 1) + len(numbers))):
            self.report.tell(fault=f"numbers {numbers}")
        ends = [isinstance(event, Ended) for _, event in self.events]
        if any(ends[:-1]):
            self.report.tell(fault="something after Ended, or two of them")
        if self.follower.exchange.ended is not None and not self.follower._closed and not (ends and ends[-1]):
            self.report.tell(fault="an answer that was read to its end has no Ended")


async def act(database: str, actions: Sequence[tuple[Any, ...]], path: str) -> None:
    report = Report(path)
    store = Store.open(database)
    exchanges = Exchanges(store, Limits(resume_seconds=0.02, checkpoint_seconds=0.03, exchanges_per_visitor=99))
    model = DrivenModel(report)
    answer = ModelAnswer(model=model, price=lambda *_: None, tools=[tool_from(look)])
    begun: list[Exchange] = []
    readers: list[Reader] = []
    for action in actions:
        match action:
            case ("ask", key):
                try:
                    exchange = await exchanges.begin(Asking(message="?", visitor="v", key=key, model="driven"), answer)
                except MotamotError:
                    continue
                begun.append(exchange)
                report.tell(exchange=exchange.id)
            case ("follow", n, resumable) if begun:
                follower = begun[n % len(begun)].follow(resumable=resumable)
                readers.append(Reader(follower, report))
            case ("leave", n) if readers:
                readers[n % len(readers)].follower.close()
            case ("say", n, text) if model.running:
                model.running[n % len(model.running)].say(text)
            case ("end", n, finish) if model.running:
                model.running[n % len(model.running)].end(finish)
            case ("stop", n, seen) if begun:
                await begun[n % len(begun)].stop(seen=seen)
            case ("stop early", key):
                await exchanges.stop(key, "v")
            case ("wait", milliseconds):
                await asyncio.sleep(milliseconds / 1000)
            case ("shutdown",):
                await exchanges.close()
            case ("kill",):
                os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0)
    await exchanges.close()
    await asyncio.gather(*(reader.task for reader in readers))
    for exchange in begun:
        ended = [event for event in exchange.log.events if isinstance(event, Ended)]
        if len(ended) != 1 or exchange.log.events[-1] is not ended[0]:
            report.tell(fault="not exactly one Ended, last")
    await store.close()
    report.tell(done=True)


def child(database: str, actions: Sequence[tuple[Any, ...]], path: str) -> None:
    asyncio.run(act(database, actions, path))


number = st.integers(0, 5)
action = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from([None, *KEYS])),
    st.tuples(st.just("ask"), st.just(None)),
    st.tuples(st.just("follow"), number, st.booleans()),
    st.tuples(st.just("leave"), number),
    st.tuples(st.just("say"), number, st.text(min_size=1, max_size=5)),
    st.tuples(st.just("say"), number, st.just("word ")),
    st.tuples(st.just("end"), number, st.sampled_from(["stop", "length", "tool_calls", "error", "incomplete"])),
    st.tuples(st.just("stop"), number, st.one_of(st.none(), st.integers(-2, 30))),
    st.tuples(st.just("stop early"), st.sampled_from(KEYS)),
    st.tuples(st.just("wait"), st.integers(0, 40)),
)
last = st.sampled_from([("kill",), ("kill",), ("shutdown",), ("wait", 30)])
sequences = st.tuples(st.lists(action, min_size=3, max_size=25), last).map(lambda pair: [*pair[0], pair[1]])

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.exchange.test_any_sequence"])


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(sequences)
def test_booked_once_one_ended_last(actions: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database, report = str(Path(folder) / "books.sqlite3"), Path(folder) / "report"
        process = CONTEXT.Process(target=child, args=(database, actions, str(report)))
        process.start()
        process.join(20)
        assert process.exitcode in (0, -signal.SIGKILL)
        facts = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        assert not [fact["fault"] for fact in facts if "fault" in fact]
        assert process.exitcode != 0 or facts[-1:] == [{"done": True}]
        asyncio.run(check(database, facts))


async def check(database: str, facts: list[dict[str, Any]]) -> None:
    """After the end of the process, however it came."""
    store = Store.open(database)
    try:
        rows = await store.completions(limit=10_000)
        booked = Counter(row.id for row in rows)
        for fact in facts:
            if "sent" in fact:
                assert booked[fact["sent"]] == 1
            if "exchange" in fact:
                exchange = await store.exchange(fact["exchange"])
                assert exchange is not None and exchange.outcome is not None
        assert all(row.outcome is not None and row.source is not None for row in rows)
        assert not await store.completions(open_only=True)
        assert not await store.verify()
    finally:
        await store.close()
