"""`motamot meter`: stands before a model and counts completions, exchange by exchange."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsons
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from motamot.cli.console import Output, ReaderLeft, harmless, say
from motamot.cli.words import cost_words, token_words
from motamot.errors import MotamotError

if TYPE_CHECKING:
    from motamot.exam.meter import Metered
    from motamot.exam.meter.completion import Completion

__all__ = ["meter"]

_LINES = 100_000  # that wait for a terminal which is paused; what comes beyond is not shown


def meter(
    upstream: Annotated[str, typer.Option(metavar="URL", help="The model's server: https://api.openai.com/v1")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for a free one.")] = 4000,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    header: Annotated[
        str | None, typer.Option(metavar="NAME", help="The request header that names the exchange, if there is one.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append a line of JSON for each completion to this file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of words.")] = False,
) -> None:
    """Pass everything on to the model's server, unchanged, and print a line for each completion.

    Point the chatbot at the meter (OPENAI_BASE_URL=http://127.0.0.1:4000/v1), ask it something that needs no tool, and
    count. Completions are put together by exchange: by the header you name, `metadata`, `traceparent`, or else by their
    messages. Named are answers paid for twice, retries, helpers (titles, suggestions), answers that the chatbot left,
    and usage that was never reported. No text is printed or kept. Ctrl-C ends it, with the sums.

    Exit status: 0 it was told to end, 2 it could not listen, or write the file.
    """
    from motamot.exam.meter.tunnel import Upstream

    there = Upstream.at(upstream)
    try:
        file = record.open("ab", buffering=0) if record is not None else None
    except OSError as error:
        raise MotamotError(f"the record {record} cannot be written: {error.strerror or error}") from None
    with file or contextlib.nullcontext():
        _run(_Tell(url=upstream, header=header, json=json, file=file), there, host, port)


def _run(tell: _Tell, there: Any, host: str, port: int) -> None:
    from motamot.exam.meter import Meter

    async def until_told() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        meter = Meter(there, begun=tell.begun, ended=tell.ended)
        try:
            bound = await meter.start(host, port)
        except OSError as error:
            told = os.strerror(error.errno) if error.errno else str(error)
            raise MotamotError(f"cannot listen on {host} port {port}: {told}; another one: --port") from None
        say(f"motamot meter passes on to {tell.url}; Ctrl-C ends it")
        say(f"OPENAI_BASE_URL=http://{host}:{bound}/v1   ANTHROPIC_BASE_URL=http://{host}:{bound}")
        writing = loop.create_task(tell.write(Output(ended.set)))
        writing.add_done_callback(lambda _: ended.set())
        await ended.wait()
        await meter.close()
        tell.others = meter.others
        tell.lines.put_nowait("")
        with contextlib.suppress(TimeoutError):  # nobody reads a terminal that is paused
            await asyncio.wait_for(writing, 2)

    try:
        import uvloop

        factory: Any = uvloop.new_event_loop
    except ImportError:  # not everywhere
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(until_told())
    for line in tell.sums():
        say(line)


@dataclass(slots=True)
class _Tell:
    """Prints what the meter sees."""

    url: str
    header: str | None
    json: bool
    file: IO[bytes] | None
    others: int = 0
    exchanges: Any = None
    lines: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(_LINES))
    unseen: int = 0
    _under_way: dict[int, Metered] = field(default_factory=dict)
    _count: dict[str, int] = field(default_factory=dict)
    _costs: dict[str, float] = field(default_factory=dict)

    def begun(self, completion: Completion) -> None:
        from motamot.exam.meter import Exchanges

        if self.exchanges is None:
            self.exchanges = Exchanges(self.header)
        self._under_way[completion.number] = self.exchanges.begun(completion)

    def ended(self, completion: Completion) -> None:
        metered = self._under_way.pop(completion.number, None)
        if metered is None:  # its request never was whole
            return
        cost = self._cost(completion)
        self._add(metered, cost)
        line = jsons.dumps(_json(metered, cost)) + "\n"  # ASCII: a name may hold what a terminal obeys
        told = line if self.json else "\n".join(_lines(metered, cost)) + "\n"
        try:
            self.lines.put_nowait(told)
            if self.file is not None:
                self.file.write(line.encode("utf-8", "replace"))
        except asyncio.QueueFull:
            self.unseen += 1
        except OSError as error:
            say(f"motamot meter: the record cannot be written any more: {error.strerror or error}")
            self.file = None

    async def write(self, output: Output) -> None:
        """Print what there is until an empty line comes. Raises: MotamotError where that cannot be done."""
        while line := await self.lines.get():
            try:
                await output.write(line)
            except ReaderLeft:
                return

    def _cost(self, completion: Completion) -> tuple[float, str] | None:
        from motamot.store.prices import price

        return price(completion.model, completion.usage, url=self.url)

    def _add(self, metered: Metered, cost: tuple[float, str] | None) -> None:
        names = ["completions", str(metered.kind)]
        if len(metered.exchange.completions) == 1:
            names.append("exchanges")
        if metered.completion.ended == "left":
            names.append("left")
        if any("never reported" in note for note in metered.notes()):
            names.append("unreported")
        for name in names:
            self._count[name] = self._count.get(name, 0) + 1
        if cost is not None:
            self._costs[cost[1]] = self._costs.get(cost[1], 0.0) + cost[0]

    def sums(self) -> list[str]:
        """The end's lines."""
        count = self._count
        told = [_counted(count.get("exchanges", 0), "exchange"), _counted(count.get("completions", 0), "completion")]
        if self._costs:
            told.append(cost_words(self._costs))
        if self.others:
            told.append(_counted(self.others, "other request"))
        lines = ["motamot meter: " + ", ".join(told)]
        words = {
            "again": "paid twice",
            "retry": "asked again after a failure",
            "helper": "for no answer (titles, suggestions)",
            "left": "left by the chatbot",
            "unreported": "without their usage",
        }
        seen = [f"{count[name]} {said}" for name, said in words.items() if name in count]
        if self.unseen:
            seen.append(f"{self.unseen} not shown, as nobody read")
        return lines + (["         of them " + ", ".join(seen)] if seen else [])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _lines(metered: Metered, cost: tuple[float, str] | None) -> list[str]:
    one = metered.completion
    parts = [
        f"{one.arrived:%H:%M:%S}",
        f"#{one.number}",
        metered.exchange.id,
        str(metered.kind),
        one.model or "-",
        "stream" if one.stream else "whole",
        str(one.status or "-"),
        one.finish or ("error" if one.error else one.ended),
        token_words(one.usage),
    ]
    if cost is not None:
        parts.append(cost_words({cost[1]: cost[0]}))
    if one.first_at is not None:
        parts.append(f"first {one.first_at - one.began_at:.2f} s")
    if one.ended_at is not None:
        parts.append(f"{one.ended_at - one.began_at:.2f} s")
    line = harmless("  ".join(part.replace("\n", " ") for part in parts))
    return [line, *(f"          ! {harmless(note)}" for note in metered.notes())]


def _json(metered: Metered, cost: tuple[float, str] | None) -> dict[str, Any]:
    one = metered.completion
    usage = one.usage
    return {
        "time": one.arrived.isoformat(timespec="milliseconds"),
        "number": one.number,
        "exchange": metered.exchange.id,
        "by": metered.exchange.by,
        "kind": str(metered.kind),
        "of": metered.of.number if metered.of is not None else None,
        "path": one.path,
        "model": one.model,
        "stream": one.stream,
        "status": one.status,
        "finish": one.finish or None,
        "ended": one.ended,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "source": str(usage.source),
        "cost": cost[0] if cost is not None else None,
        "currency": cost[1] if cost is not None else None,
        "first_ms": None if one.first_at is None else round((one.first_at - one.began_at) * 1000, 1),
        "took_ms": None if one.ended_at is None else round((one.ended_at - one.began_at) * 1000, 1),
        "notes": metered.notes(),
    }
