"""One question put from a terminal: its answer shown as it comes, stopped by Ctrl-C, booked whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Sequence
from enum import Enum
from time import monotonic

from motamot.answer import AnswerEvent, By, Ended, Outcome, Source, Text, Usage
from motamot.assistant import Assistant
from motamot.cli.answer_forms import Form, Piece
from motamot.cli.console import Exit, Output, ReaderLeft, harmless, styled, told
from motamot.cli.words import cost_words, mark_words, token_words
from motamot.errors import MotamotError, StoreError
from motamot.exchange.exchange import Ending, Exchange, Follower
from motamot.store.prices import price
from motamot.store.records import CompletionRow

__all__ = ["VISITOR", "Question"]

VISITOR = "local"
"""Who asks on a command line; `Assistant.ask` has the same."""

_WRITE_SECONDS = 0.05
"""What is being written when a stop comes may still arrive, and then counts as shown; half of `stop_seconds`."""

_DRAIN_SECONDS = 1.0
"""A reader who takes nothing any more is not waited for longer than this at the end."""

_DIM = "2"


class Question:
    """Put one question, show its answer. Belongs to the event loop it is made on.

    form:  made for the writers of this run: it is told whether stdout is a terminal, and the exchange's id.
    marks: what the model is already known for, told before the answer.
    """

    def __init__(
        self,
        assistant: Assistant,
        message: str,
        *,
        conversation: str | None,
        form: Callable[[bool, str], Form],
        marks: Sequence[str] = (),
    ) -> None:
        self._assistant = assistant
        self._message = message
        self._conversation = conversation
        self._make_form = form
        self._told_marks = set(marks)
        self._output = Output(self._reader_left)
        self._sign = _WaitingSign(self._output)
        self._loop = asyncio.get_running_loop()
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._exit: Exit | None = None  # why we end before the answer does
        self._asking: asyncio.Task[object] | None = None
        self._exchange: Exchange | None = None
        self._ending: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()  # nothing is being shown at the moment
        self._idle.set()
        self._shown = 0  # number of the last event that was written
        self._open_line = _Line.NONE  # on the terminal
        self._lost: MotamotError | None = None  # what was to be shown could not be written

    async def put(self) -> Exit:
        """Ask, show, book. Returns how the command ends.

        Raises: MotamotError where nothing was asked.
        """
        self._asking = asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._signalled, number)
        try:
            async with self._assistant:
                status = await self._put()
        except asyncio.CancelledError:
            if self._exit is None:
                raise
            self._output.note("motamot: stopped before anything was asked\n")
            status = self._exit
        except MotamotError as error:
            if self._exchange is None:
                raise
            # The answer was shown. Its row was opened before it was asked for: the next motamot closes it.
            self._lines(*told(error, "what is not booked now is booked as an estimate when motamot runs again"))
            status = self._exit or Exit.FAILED
        finally:
            self._sign.erase()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._output.drain()
        return status

    async def _put(self) -> Exit:
        # The table of prices takes 0.15 s to load, at the end of the first completion: it would hold up its last words.
        self._loop.run_in_executor(None, price, "", Usage(source=Source.REPORTED))
        begun = monotonic()
        self._sign.show()
        async with self._assistant.ask(self._message, conversation=self._conversation, visitor=VISITOR) as asked:
            self._exchange = exchange = await self._assistant.exchanges.find(asked.id, VISITOR)
            form = self._make_form(self._output.to_terminal, exchange.id)
            first_text = None
            async with exchange.follow() as follower:
                while batch := await follower.next():
                    if first_text is None and any(isinstance(event, Text) for _, event in batch):
                        first_text = monotonic() - begun
                        self._tell_marks(exchange.marks)
                    self._idle.clear()
                    await self._show(form, follower, batch)
                    self._idle.set()
            await self._write_out(form.rest())
            if self._ending is not None:
                await self._ending
        ended = await exchange.wait()
        return await self._tell_end(ended, exchange, first_text)

    # Showing

    async def _show(self, form: Form, follower: Follower, batch: Sequence[tuple[int, AnswerEvent]]) -> None:
        texts: list[str] = []
        shown = self._shown
        for number, event in batch:
            if self._unwanted and not isinstance(event, Ended):
                continue
            shown = number
            for piece in form.show(number, event):
                if piece.note:
                    await self._write_out("".join(texts))
                    texts.clear()
                    self._note(piece)
                else:
                    texts.append(piece.text)
        if await self._write_out("".join(texts)):
            self._shown = shown
            follower.delivered(shown)

    @property
    def _unwanted(self) -> bool:
        """Nobody wants to see more: what comes now is not shown, so that the transcript is right."""
        return self._exit in (Exit.STOPPED, Exit.READER_LEFT) or self._lost is not None

    async def _write_out(self, text: str) -> bool:
        """Write to stdout; False where it could not be. A stop does not wait for a reader who does not read."""
        if not text:
            return True
        if self._lost is not None or self._exit is Exit.READER_LEFT:
            return False
        self._go_to(_Line.ANSWER)
        self._open_line = _Line.NONE if text.endswith("\n") else _Line.ANSWER
        write = asyncio.ensure_future(self._output.write(text))
        await asyncio.wait({write, self._stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not write.done():
            await asyncio.wait({write}, timeout=_DRAIN_SECONDS)
        if not write.done():
            write.cancel()
            return False
        try:
            write.result()
        except ReaderLeft:
            self._reader_left()
            return False
        except MotamotError as error:
            if self._exit is None:
                self._lost = error
                self._end(By.DISCONNECT)
            return False
        return True

    def _note(self, piece: Piece) -> None:
        if piece.line:
            self._lines(piece.text.removesuffix("\n"))
        else:
            self._go_to(_Line.NOTE)
            self._output.note(piece.text)
            self._open_line = _Line.NONE if piece.text.endswith("\n") else _Line.NOTE

    def _lines(self, *lines: str) -> None:
        """Lines of their own on stderr."""
        self._go_to(_Line.NONE)
        for line in lines:
            self._output.note(line + "\n")

    def _go_to(self, line: _Line) -> None:
        """End the line that the other one has begun on the same screen; in a pipe nothing is ever added."""
        self._sign.erase()
        if self._open_line not in (_Line.NONE, line):
            self._output.end_line(answer=self._open_line is _Line.ANSWER)
            self._open_line = _Line.NONE

    def _tell_marks(self, marks: Sequence[str]) -> None:
        for mark in marks:
            if mark not in self._told_marks:
                self._told_marks.add(mark)
                self._lines(harmless(mark_words(mark)))

    async def _tell_end(self, ended: Ended, exchange: Exchange, first_text: float | None) -> Exit:
        if self._exit is Exit.READER_LEFT:
            return self._exit  # quietly, as every command in a pipe
        rows: list[CompletionRow] = []
        detail = None
        with contextlib.suppress(StoreError):  # told where the books are closed
            rows = await exchange.store.completions(exchange=exchange.id)
            row = await exchange.store.exchange(exchange.id)
            detail = row.detail if row is not None else None
        if self._lost is not None:
            self._lines(*told(self._lost))
        if ended.outcome is Outcome.FAILED:
            failure = MotamotError(ended.message or "The answer failed.", detail=detail)
            self._lines(*told(failure, *_hints(detail or "", began=any(row.first_delta is not None for row in rows))))
        words = _last_line(ended, exchange.usage, rows, first_text, exchange.begun.conversation)
        self._lines(styled(harmless(words), _DIM))
        return self._exit or (Exit.FAILED if self._lost else _STATUS[ended.outcome])

    # Ending early

    def _signalled(self, number: signal.Signals) -> None:
        if self._exit is not None:  # once more: now, whatever is still open is booked by the next motamot
            os._exit(self._exit)
        self._exit = Exit(128 + number)
        self._end(By.VISITOR)

    def _reader_left(self) -> None:
        if self._exit is None:
            self._exit = Exit.READER_LEFT
            self._end(By.DISCONNECT)

    def _end(self, by: By) -> None:
        if not self._stopped.done():
            self._stopped.set_result(None)
        if self._exchange is None:
            if self._asking is not None:
                self._asking.cancel()
        elif self._ending is None:
            self._ending = self._loop.create_task(self._end_exchange(self._exchange, by))

    async def _end_exchange(self, exchange: Exchange, by: By) -> None:
        if self._exit in (Exit.TERMINATED, Exit.HUNG_UP):
            await exchange.end(Ending(outcome=Outcome.INTERRUPTED))
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._idle.wait()
        await exchange.stop(seen=self._shown, by=by)


class _Line(Enum):
    """Whose line the cursor is in."""

    NONE = "none"
    ANSWER = "answer"
    NOTE = "note"


class _WaitingSign:
    """Says on a terminal that nothing has come yet, and since when; gone without a trace when something does."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._drawn = 0

    def show(self) -> None:
        if self._output.notes_to_terminal:
            self._since = monotonic()
            self._draw()

    def _draw(self) -> None:
        seconds = round(monotonic() - self._since)
        sign = f"… {seconds} s" if seconds else "…"
        self._output.note("\r" + styled(sign, _DIM))
        self._drawn = len(sign)
        self._timer = asyncio.get_running_loop().call_later(1, self._draw)

    def erase(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._output.note("\r" + " " * self._drawn + "\r")


_STATUS = {
    Outcome.COMPLETE: Exit.DONE,
    Outcome.TRUNCATED: Exit.NOT_WHOLE,
    Outcome.FILTERED: Exit.NOT_WHOLE,
    Outcome.STOPPED: Exit.STOPPED,
    Outcome.ABANDONED: Exit.FAILED,
    Outcome.FAILED: Exit.FAILED,
    Outcome.INTERRUPTED: Exit.FAILED,
}
_WORDS = {
    Outcome.TRUNCATED: "truncated: the answer reached the token limit (--max-tokens)",
    Outcome.FILTERED: "filtered: the provider held the rest of the answer back",
}


def _last_line(
    ended: Ended, usage: Usage, rows: Sequence[CompletionRow], first_text: float | None, conversation: str
) -> str:
    outcome = _WORDS.get(ended.outcome, str(ended.outcome)) + (f" ({ended.code})" if ended.code else "")
    marks = f" [{', '.join(ended.marks)}]" if ended.marks else ""
    parts = [outcome + marks, token_words(usage)]
    costs: dict[str, float] = {}
    for row in rows:
        if row.cost is not None:
            costs[row.currency] = costs.get(row.currency, 0.0) + row.cost
    if costs:
        parts.append(cost_words(costs))
    again = sum(row.attempt > 1 for row in rows)
    if again:
        parts.append(f"asked again {again} time{'' if again == 1 else 's'}")
    if first_text is not None:
        parts.append(f"first text after {first_text:.2f} s")
    return "; ".join([*parts, f"conversation {conversation}"])


def _hints(detail: str, *, began: bool) -> list[str]:
    """The way out, by the status the model's server gave; none once the answer had begun."""
    if began:
        return []
    found = re.search(r"\bHTTP (\d{3})\b", detail)
    match found[1] if found else "":
        case "401" | "403":
            return ["give the right key: --api-key-file, --api-key-env, or OPENAI_API_KEY"]
        case "404":
            return ["name a model that it has (--model), or another address (--upstream)"]
        case "":
            return ["see that its server runs, and that this is its address (--upstream, OPENAI_BASE_URL)"]
        case _:
            return []
