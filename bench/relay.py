"""The whole path over HTTP, beside nginx and the stacks people use, in one run.

Run: `sh scripts/bench-peers.sh` once, then `python -m bench.relay [PART …] [--rounds N] [--small]`. It takes Linux, a C
compiler and nginx.

The relays run on one CPU, one at a time under load; the load (bench/http/load.c: the upstream and the clients in one
program) on another. CPU is the relay's own, of all its threads and processes, from the kernel's clocks of processes.
Each figure is the median over the rounds, each ratio the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.http.probes import slow_reader, start_up, stops
from bench.http.targets import PEERS, TARGETS, Running, free_port, load_program, pinned, serving

RELAY_CPU, LOAD_CPU = 0, 1
BARS = {
    "delta": {
        "nginx": (4.0, "at most"),
        "meter": (1.0, "at least"),
        "fastapi": (6.5, "less"),
        "litellm": (12.0, "less"),
    },
    "request": {"fastapi": (4.0, "less")},
}


@dataclass(slots=True)
class Bench:
    """What all parts share. small: a trial of the benchmark itself, whose figures mean nothing."""

    folder: Path
    program: Path
    rounds: int
    small: bool

    def load(self, relay: Running, upstream: int, mode: str, *numbers: int) -> dict[str, float]:
        """One run of the load. numbers: streams, count, warm, rate."""
        target = relay.target
        arguments = [mode, str(upstream), str(relay.port), target.path, target.headers, target.body]
        pids = ",".join(map(str, relay.pids))
        command = pinned([str(self.program), *arguments, *map(str, numbers), pids], LOAD_CPU)
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"{target.name}: {' '.join(map(str, (mode, *numbers)))}: {ran.stdout}{ran.stderr}")
        told: dict[str, float] = json.loads(ran.stdout)
        return told

    def relays(self, stack: ExitStack, names: Sequence[str]) -> dict[str, tuple[Running, int]]:
        """These relays, each with the port of its upstream."""
        found = {}
        for name in names:
            upstream = free_port()
            folder = self.folder / f"{name}-{upstream}"
            found[name] = (stack.enter_context(serving(TARGETS[name], folder, upstream, RELAY_CPU)), upstream)
        return found

    def peers(self) -> list[str]:
        """nginx, motamot, and those of the Python peers that are installed."""
        there = {"fastapi": PEERS / "uvicorn", "litellm": PEERS / "litellm"}
        missing = [name for name, program in there.items() if not program.exists()]
        if missing:
            print(f"not measured, as scripts/bench-peers.sh was not run: {', '.join(missing)}")
        return [name for name in TARGETS if name not in missing]


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def table(spent: dict[str, list[float]], unit: str, bars: dict[str, tuple[float, str]]) -> None:
    """Microseconds of each relay, and motamot's ratio to it within each round."""
    print(f"| relay | CPU µs a {unit} | motamot's, as a ratio | in rounds | bar |\n| --- | ---: | --- | --- | --- |")
    for name, values in spent.items():
        told, rounds, bar = "", "", ""
        if name != "motamot":
            less = median(values) > median(spent["motamot"])
            ratios = [
                (theirs / ours if less else ours / theirs)
                for ours, theirs in zip(spent["motamot"], values, strict=True)
            ]
            told = f"{median(ratios):.1f} × {'less' if less else 'as much'}"
            rounds = f"{min(ratios):.1f} to {max(ratios):.1f}"
            if name in bars:
                most, way = bars[name]
                bar = f"{most:g} × {way}"
        print(f"| {name} | {median(values):.1f} | {told} | {rounds} | {bar} |")


def deltas(bench: Bench) -> None:
    """50 streams, one delta in flight on each, so that each is read by itself."""
    counts = {"nginx": 400, "motamot": 400, "meter": 400, "fastapi": 80, "litellm": 20}
    spent: dict[str, list[float]] = {}
    with ExitStack() as stack:
        relays = bench.relays(stack, bench.peers())
        for _ in range(bench.rounds):
            for name, (relay, upstream) in relays.items():
                count = max(counts[name] // (10 if bench.small else 1), 5)
                told = bench.load(relay, upstream, "pass", 50, count, max(count // 8, 2), 0)
                spent.setdefault(name, []).append(told["cpu_ns"] / 1000 / count / 50)
    table(spent, "delta", BARS["delta"])


def requests(bench: Bench) -> None:
    """Answers of one delta, 50 at a time: kept connections where the relay keeps them, then one for each."""
    counts = {"nginx": 4000, "motamot": 1500, "meter": 1500, "fastapi": 600, "litellm": 250}
    for fresh, words in ((0, "connections kept where the relay keeps them"), (1, "a connection each")):
        spent: dict[str, list[float]] = {}
        with ExitStack() as stack:
            relays = bench.relays(stack, bench.peers())
            for _ in range(bench.rounds):
                for name, (relay, upstream) in relays.items():
                    count = counts[name] // (10 if bench.small else 1)
                    told = bench.load(relay, upstream, "ask", 50, count, max(count // 5, 50), fresh)
                    spent.setdefault(name, []).append(told["cpu_ns"] / 1000 / count)
        print(f"\n{words}:\n")
        table(spent, "request", BARS["request"])


def first_text(bench: Bench) -> None:
    """From the question to the first text, one stream at a time, a connection each: through motamot less directly."""
    times: dict[str, list[float]] = {"directly": [], "nginx": [], "motamot": []}
    with ExitStack() as stack:
        relays = bench.relays(stack, ["nginx", "motamot"])
        port = free_port()
        direct = Running(TARGETS["nginx"], port)
        for _ in range(bench.rounds):
            each = 10 if bench.small else max(200 // bench.rounds, 1)
            for name, (relay, upstream) in {"directly": (direct, port), **relays}.items():
                told = bench.load(relay, upstream, "ask", 1, each, 5, 1)
                times[name].append(told["p50_ns"] / 1e6)
    own = median(times["directly"])
    print(f"the model's own: {own:.2f} ms")
    for name in ("nginx", "motamot"):
        print(f"{name} adds {median(times[name]) - own:.2f} ms" + (" (bar: 2)" if name == "motamot" else ""))


def paced(bench: Bench) -> None:
    """1,000 streams at 5 and at 20 deltas a second: every one is to come, once and in order."""
    streams = 100 if bench.small else 1000
    print("| relay | deltas/s | lag p50 ms | p99 ms | most ms | CPU µs a delta | kB a stream |\n|" + " --- |" * 7)
    for rate in (5, 20):
        for name in ("nginx", "motamot"):
            with ExitStack() as stack:
                relay, upstream = bench.relays(stack, [name])[name]
                count = rate * (3 if bench.small else 15)
                told = bench.load(relay, upstream, "pace", streams, count, 0, rate)
                lags = " | ".join(f"{told[key] / 1e6:.1f}" for key in ("p50_ns", "p99_ns", "most_ns"))
                each = told["cpu_ns"] / 1000 / count / streams
                held = (told["kb_after"] - told["kb_before"]) / streams
                print(f"| {name} | {streams * rate} | {lags} | {each:.1f} | {held:.1f} |")


def idle(bench: Bench) -> None:
    """5,000 streams with one delta each, then silent; all are to get another, and their end."""
    streams = 500 if bench.small else 5000
    for name in ("nginx", "motamot"):
        with ExitStack() as stack:
            relay, upstream = bench.relays(stack, [name])[name]
            bench.load(relay, upstream, "ask", 20, 200, 0, 1)  # what the first requests load is no stream's
            told = bench.load(relay, upstream, "idle", streams, 2 if bench.small else 20, 0, 0)
            held = (told["kb_after"] - told["kb_before"]) / streams
            print(f"{name}: {streams} streams up, {held:.1f} kB each" + (" (bar: 40)" if name == "motamot" else ""))


def stop(bench: Bench) -> None:
    """From sending a stop to the model's server seeing its connection closed."""
    times = asyncio.run(stops(bench.folder / "stop", 10 if bench.small else 100))
    print(f"stop to upstream closed: {median(times) * 1000:.1f} ms, at most {max(times) * 1000:.1f} (bar: 100)")


def slow(bench: Bench) -> None:
    """A client that reads 10 kB/s of an answer of 1 MB."""
    told = asyncio.run(slow_reader(bench.folder / "slow", 100_000 if bench.small else 1_000_000, 10_000))
    print(
        f"the model was done after {told.model_seconds:.2f} s ({told.directly_seconds:.2f} with a fast reader), "
        f"the client after {told.client_seconds:.0f} s; text {'exact' if told.exact else 'NOT EXACT'}; "
        f"memory grew by {told.kb_grown} kB at most"
    )


def start(bench: Bench) -> None:
    """From the command to its port taking connections; settings and database are there."""
    times = start_up(bench.folder / "start", bench.rounds + 2)[1:]
    print(f"`motamot serve` listens after {median(times):.2f} s, at most {max(times):.2f} (bar: 1)")


PARTS: dict[str, Callable[[Bench], None]] = {
    "deltas": deltas,
    "requests": requests,
    "first": first_text,
    "stop": stop,
    "paced": paced,
    "idle": idle,
    "slow": slow,
    "start": start,
}


def _wide() -> Iterator[str]:
    yield time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    yield f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    yield f"Python {sys.version.split()[0]}"


def main() -> None:
    """Measure the parts named, or all."""
    import resource

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without any: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="try the benchmark; its figures mean nothing")
    given = parser.parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), load_program(Path(folder)), given.rounds, given.small)
        for name in given.parts or PARTS:
            print(f"\n### {name}\n\n{', '.join(_wide())}\n", flush=True)
            PARTS[name](bench)


if __name__ == "__main__":
    main()
