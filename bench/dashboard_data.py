"""A book to measure the dashboard with: exchanges over 90 days, with texts, completions, details and boundaries.

    python -m bench.dashboard_data FILE [EXCHANGES]

The rows are put in by SQL, as 100,000 exchanges through the store would take minutes; then what the store does in the
background is done to its end: the index of texts, and the days that are over. `make` does the same from Python.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

from motamot.answer import Cited, ToolCalled, ToolReturned, TurnEnded
from motamot.store import searching
from motamot.store.database import Database
from motamot.store.days import count_next
from motamot.store.details import packed
from motamot.store.reading import pack
from motamot.store.records import ExchangeEnded, Noted
from motamot.store.store import Store

DAYS = 90
ASSISTANTS = (("help", 6), ("bus", 3), ("aide", 1))
MODELS = (("gpt-4o-mini", 5), ("gpt-4o", 1), ("mistral-small-latest", 2), ("claude-haiku-4-5", 1))
OUTCOMES = (
    ("complete", 900),
    ("stopped", 40),
    ("truncated", 20),
    ("failed", 15),
    ("abandoned", 15),
    ("interrupted", 8),
    ("filtered", 2),
)
_ENGLISH = str.split(
    "the a of to and in is you for it on with your can be this that how do I my we are when bus stop next ticket price "
    "order refund delivery address change account password open hours today tomorrow Monday please where which line "
    "leaves minutes station map paper card payment invoice return policy days week contact phone call email shop size "
    "colour blue red black shoes winter coat repair guarantee broken missing package arrived late early morning"
)
_FRENCH = str.split(
    "le la les un une de des du et en est vous pour sur avec votre pouvez être ce cette que comment je mon nous sont "
    "quand bus arrêt prochain billet prix commande remboursement livraison adresse modifier compte ouvert heures "
    "aujourd’hui demain lundi où quelle ligne part minutes gare réserver réservation voyage très simple école élève "
    "carte paiement facture retour délai jours semaine contacter téléphone boutique taille couleur bleu rouge noir "
    "chaussures hiver manteau réparer garantie cassé manquant colis arrivé retard matin soir français"
)


def make(path: Path, exchanges: int = 100_000, *, seed: int = 1, now: float | None = None) -> None:
    """Make the book in a new file. now: its last moment; None: this one."""
    Store.open(path).close_sync()
    generator = random.Random(seed)
    with closing(sqlite3.connect(path)) as connection:
        _fill(connection, exchanges, generator, time.time() if now is None else now)
        connection.commit()
    engine = Database(path).writing()
    with engine.connect() as writing:
        more = True
        while more:
            with writing.begin():
                more = count_next(writing, time.time())
                more = searching.step(writing)[0] or more
    engine.dispose()


@contextmanager
def book() -> Iterator[tuple[Path, int]]:
    """The book of a measurement's command line, `[EXCHANGES] [FILE]`; without a file, one that is made for the run."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    if len(sys.argv) > 2:
        yield Path(sys.argv[2]), number
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.db"
        make(path, number)
        yield path, number


def _fill(connection: sqlite3.Connection, exchanges: int, generator: random.Random, now: float) -> None:
    began = now - DAYS * 86_400
    started = sorted(began + generator.random() * (now - began) for _ in range(exchanges))
    many = max(exchanges // 3, 1)
    homes = [(f"conversation-{n}", f"visitor-{n // 2}", _one(generator, ASSISTANTS)) for n in range(many)]
    connection.executemany(
        "INSERT INTO conversations (id, assistant, visitor, created_at) VALUES (?, ?, ?, ?)",
        [(home, assistant, visitor, began) for home, visitor, assistant in homes],
    )
    for number, at in enumerate(started, 1):
        home = homes[min(int(number / exchanges * many) + generator.randrange(20), many - 1)]
        for table, rows in _exchange(generator, number, at, home).items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                names = ", ".join(f'"{name}"' for name in row)
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def _exchange(
    generator: random.Random, number: int, at: float, home: tuple[str, str, str]
) -> dict[str, list[dict[str, Any]]]:
    conversation, visitor, assistant = home
    model, outcome = _one(generator, MODELS), _one(generator, OUTCOMES)
    words = _FRENCH if assistant == "aide" or generator.random() < 0.4 else _ENGLISH
    question = " ".join(generator.choices(words, k=generator.randint(3, 25))).capitalize() + " ?"
    pieces = [f"{word} " for word in generator.choices(words, k=generator.randint(20, 200))]
    if outcome == "failed":
        pieces = pieces[: generator.randrange(10)]
    text = "".join(pieces)
    first = generator.lognormvariate(-0.7, 0.5)
    steps = [generator.expovariate(40) for _ in pieces]
    times = [0.001, *accumulate(steps, initial=first)][: len(pieces) + 1]
    duration = times[-1] + 0.02
    exchange = f"exchange-{number}"
    tools = generator.random() < 0.15
    turns = 2 if tools else 1
    retried = generator.random() < 0.01
    stopped = outcome == "stopped"
    attempts = [
        (turn, attempt) for turn in range(1, turns + 1) for attempt in range(1, 3 if retried and turn == 1 else 2)
    ]
    cost = [round(generator.uniform(0.0001, 0.01), 6) for _ in attempts]
    completions = [
        {
            "id": f"{exchange}-{turn}-{attempt}",
            "exchange": exchange,
            "assistant": assistant,
            "owner": "bench",
            "turn": turn,
            "attempt": attempt,
            "model": model,
            "opened_at": at + (turn - 1) * first / 2,
            "closed_at": at + duration,
            "outcome": "failed" if outcome == "failed" or (retried and attempt == 1) else "complete",
            "finish": "error" if retried and attempt == 1 else "stop",
            "detail": "429 rate limit" if retried and attempt == 1 else None,
            "prompt_tokens": generator.randint(200, 3000),
            "completion_tokens": 0 if retried and attempt == 1 else len(pieces),
            "cached_tokens": 0,
            "reasoning_tokens": 0,
            "source": "estimated" if stopped else "reported",
            "completion_bytes": len(text.encode()),
            "cost": spent,
            "currency": "EUR" if assistant == "aide" else "USD",
            "first_delta": None if retried and attempt == 1 else first,
            "duration": duration,
        }
        for (turn, attempt), spent in zip(attempts, cost, strict=True)
    ]
    events = len(pieces) + 3 + 3 * tools
    row = {
        "number": number,
        "id": exchange,
        "conversation": conversation,
        "assistant": assistant,
        "visitor": visitor,
        "key": f"key-{number}",
        "body_hash": f"{number:064x}",
        "question": question,
        "model": model,
        "owner": "bench",
        "started_at": at,
        "ended_at": at + duration,
        "outcome": outcome,
        "code": "upstream_error" if outcome == "failed" else None,
        "by": "visitor" if stopped else None,
        "events": events,
        "sent": events - 1,
        "generated": text,
        "first_text": first if pieces else None,
        "stop_asked": duration - 0.02 if stopped else None,
        "stop_closed": duration - 0.02 + generator.expovariate(200) if stopped else None,
        "cost": sum(cost),
    }
    offset = 1 + 3 * tools
    ends = list(accumulate(map(len, pieces)))
    pairs = [(offset + n, end) for n, end in enumerate(ends, 1)]
    kept = ExchangeEnded(
        id=exchange,
        ended_at=at + duration,
        outcome=outcome,
        generated=text,
        shown=text,
        events=events,
        sent=events - 1,
        noted=tuple(_noted(generator, turns, events, duration, words)),
        times=array("I", sorted(int(t * 10_000) for t in [*([0.001] * 3 * tools), *times, duration, duration])),
    )
    packed_times, packed_events = packed(kept)
    return {
        "exchanges": [row],
        "completions": completions,
        "boundaries": [{"exchange": exchange, "first_event": pairs[0][0], "pairs": pack(pairs)}] if pairs else [],
        "details": [{"number": number, "times": packed_times, "events": packed_events}],
        "unsearchable": [{"number": number}],
    }


def _noted(generator: random.Random, turns: int, events: int, duration: float, words: list[str]) -> Iterator[Noted]:
    if turns == 2:
        found = " ".join(generator.choices(words, k=60))
        yield Noted(1, True, 0.001, TurnEnded(turn=1, finish="tool_calls"))
        yield Noted(2, True, 0.001, ToolCalled(id="call", name="search_help", arguments={"query": words[5]}))
        yield Noted(3, True, 0.001, ToolReturned(id="call", name="search_help", status="ok", result=found))
        yield Noted(events - 3, True, duration, Cited(title="Opening hours", url="https://shop.example/hours"))
    yield Noted(events - 2, True, duration, TurnEnded(turn=turns, finish="stop"))


def _one(generator: random.Random, choices: tuple[tuple[str, int], ...]) -> str:
    return generator.choices([name for name, _ in choices], [weight for _, weight in choices])[0]


def main() -> int:
    """Make the book that the command line names."""
    path, number = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    if path.exists():
        print(f"{path} is there already: name another file")
        return 2
    began = time.perf_counter()
    make(path, number)
    print(f"{number} exchanges in {path}: {path.stat().st_size / 1e6:.0f} MB, {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
