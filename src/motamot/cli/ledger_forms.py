"""The ledger as a table for people, as CSV for spreadsheets, as JSON Lines for programs. Pure.

The three say the same. Tables have no colours and the same width everywhere; what strangers or models wrote stands in
them on one line and without control characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.cells import cell_len, set_cell_size

from motamot.answer import Source, Usage
from motamot.cli.console import harmless, harmless_json
from motamot.cli.ledger_rows import Booked, Entry
from motamot.cli.words import cost_words, source_words, token_words
from motamot.protocols._json import encode_line

__all__ = [
    "completions_csv",
    "completions_json",
    "entries_csv",
    "entries_json",
    "entries_text",
    "exchange_text",
]

_NAME_CELLS = 40
_QUESTION_CELLS = 60
_NUMBERS = frozenset(
    ("ATTEMPT", "CACHED", "COMPLETIONS", "COST", "DURATION", "FIRST DELTA", "REASONING", "TOKENS", "TURN")
)


# For people


def entries_text(entries: Sequence[Entry]) -> str:
    """A line for each exchange, newest first; then what is unusual, and the sum."""
    if not entries:
        return ""
    columns: dict[str, Callable[[Entry], str]] = {
        "STARTED": lambda entry: _local(entry.started_at),
        "EXCHANGE": lambda entry: entry.id,
        "ASSISTANT": lambda entry: entry.assistant,
        "MODEL": lambda entry: entry.model or "-",
        "COMPLETIONS": lambda entry: str(len(entry.completions)),
        "TOKENS": lambda entry: _tokens(entry.usage),
        "SOURCE": lambda entry: source_words(entry.usage),
        "COST": lambda entry: _cost(entry.completions),
        "OUTCOME": lambda entry: _outcome(entry.outcome, entry.code, entry.marks),
    }
    if any(entry.question is not None for entry in entries):
        columns["QUESTION"] = lambda entry: _cut(entry.question or "", _QUESTION_CELLS)
    lines = _table([*columns], [[cell(entry) for cell in columns.values()] for entry in entries])
    unusual = [f"{entry.id}: {_surplus(entry)}" for entry in entries if entry.surplus]
    return "\n".join([*lines, *(["", *unusual] if unusual else []), "", _sum(entries)]) + "\n"


def exchange_text(entry: Entry) -> str:
    """One exchange, its completions line by line, and its text where that was asked for."""
    ended = f"{_local(entry.ended_at)} ({entry.ended_at - entry.started_at:.2f} s)" if entry.ended_at else "-"
    outcome = _outcome(entry.outcome, entry.code, entry.marks) + (f" by {entry.by}" if entry.by else "")
    facts = {
        "exchange": entry.id,
        "conversation": entry.conversation,
        "assistant": entry.assistant,
        "model": entry.model,
        "started": _local(entry.started_at),
        "ended": ended,
        "outcome": outcome,
        "message": entry.message,
        "detail": entry.detail,
        "tokens": token_words(entry.usage).replace(" tokens", "") if entry.usage else "-",
        "cost": _cost(entry.completions),
        "unusual": _surplus(entry) if entry.surplus else None,
    }
    lines = [f"{name:<12}  {_one_line(value)}" for name, value in facts.items() if value]
    rows = [
        [
            str(booked.turn),
            str(booked.attempt),
            booked.model,
            _seconds(booked.first_delta),
            _seconds(booked.duration),
            booked.finish or "-",
            _outcome(booked.outcome, booked.code),
            _tokens(booked.usage),
            str(booked.usage.cached_tokens) if booked.usage else "-",
            str(booked.usage.reasoning_tokens) if booked.usage else "-",
            source_words(booked.usage),
            _cost([booked]),
            booked.id,
        ]
        for booked in entry.completions
    ]
    heads = "TURN,ATTEMPT,MODEL,FIRST DELTA,DURATION,FINISH,OUTCOME,TOKENS,CACHED,REASONING,SOURCE,COST,COMPLETION"
    if rows:
        lines += ["", *_table(heads.split(","), rows)]
    for booked in entry.completions:
        if booked.detail and booked.detail != entry.detail:
            lines.append(f"turn {booked.turn}, attempt {booked.attempt}: {_one_line(booked.detail)}")
    for title, text in (("question", entry.question), ("answer", entry.shown)):
        if text is not None:
            shown = harmless(text.replace("\r\n", "\n"))
            lines += ["", f"{title}:", *(f"  {line}" for line in shown.split("\n"))]
    return "\n".join(lines) + "\n"


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    cells = [heads, *([_one_line(cell) for cell in row] for row in rows)]
    names = [place for place, head in enumerate(heads) if head in ("ASSISTANT", "MODEL")]
    for row in cells[1:]:
        for place in names:
            row[place] = _cut(row[place], _NAME_CELLS)
    widths = [max(cell_len(row[place]) for row in cells) for place in range(len(heads))]
    lines = []
    for row in cells:
        aligned = []
        for head, cell, width in zip(heads, row, widths, strict=True):
            blank = " " * (width - cell_len(cell))
            aligned.append(blank + cell if head in _NUMBERS else cell + blank)
        lines.append("  ".join(aligned).rstrip())
    return lines


def _one_line(text: str) -> str:
    return harmless(" ".join(text.split()))


def _cut(text: str, cells: int) -> str:
    text = _one_line(text)
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + "…"


def _local(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f} s"


def _tokens(usage: Usage | None) -> str:
    return "-" if usage is None else f"{usage.prompt_tokens} + {usage.completion_tokens}"


def _outcome(outcome: str | None, code: str | None, marks: Sequence[str] = ()) -> str:
    words = (outcome or "open") + (f" ({code})" if code else "")
    return words + (f" [{', '.join(marks)}]" if marks else "")


def _cost(completions: Iterable[Booked]) -> str:
    """What is known of it: `0.0021 USD`, with `≥` where a completion with tokens has no known price."""
    costs: dict[str, float] = {}
    unpriced = False
    for booked in completions:
        if booked.cost is not None:
            costs[booked.currency] = costs.get(booked.currency, 0.0) + booked.cost
        elif booked.usage is None or booked.usage.prompt_tokens or booked.usage.completion_tokens:
            unpriced = True
    if not costs:
        return "-"
    return ("≥ " if unpriced else "") + cost_words(costs)


def _surplus(entry: Entry) -> str:
    count, turns = len(entry.completions), entry.turns
    return f"{count} completions for {turns} turn{'' if turns == 1 else 's'}; " + "; ".join(entry.surplus)


def _sum(entries: Sequence[Entry]) -> str:
    completions = [booked for entry in entries for booked in entry.completions]
    parts = [_count(len(entries), "exchange"), _count(len(completions), "completion")]
    usages = [booked.usage for booked in completions if booked.usage is not None]
    if tokens := _total([usage for usage in usages if source_words(usage) != "-"]):  # nothing spent, nobody's count
        parts.append(tokens)
    if (cost := _cost(completions)) != "-":
        parts.append(cost)
    still_open = sum(entry.outcome is None for entry in entries)
    return ", ".join(parts) + (f"; {still_open} open" if still_open else "")


def _total(usages: Sequence[Usage]) -> str:
    """Tokens, and how much of them was counted by whom: one guess does not make guesses of all."""
    if not usages:
        return ""
    known = {source: [usage for usage in usages if usage.source is source] for source in Source}
    by_source = {source: sum(some[1:], some[0]) for source, some in known.items() if some}
    tokens = f"{_tokens(sum(usages[1:], usages[0]))} tokens"
    if len(by_source) == 1:
        return token_words(sum(usages[1:], usages[0]))
    words = (f"{_tokens(some)} {source} in {len(known[source])}" for source, some in by_source.items())
    return f"{tokens} ({', '.join(words)})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# For programs


def entries_json(entries: Sequence[Entry]) -> str:
    """One object a line."""
    return "".join(_json({name: of(entry) for name, of in _columns(entries).items()}) for entry in entries)


def completions_json(entry: Entry) -> str:
    """One object a line, a completion each."""
    rows = ({name: of(entry, booked) for name, of in _COMPLETION.items()} for booked in entry.completions)
    return "".join(map(_json, rows))


def entries_csv(entries: Sequence[Entry]) -> str:
    """A line of names, then one for each exchange."""
    columns = _columns(entries)
    return _csv([list(columns), *([of(entry) for of in columns.values()] for entry in entries)])


def completions_csv(entry: Entry) -> str:
    """A line of names, then one for each completion."""
    rows = ([of(entry, booked) for of in _COMPLETION.values()] for booked in entry.completions)
    return _csv([list(_COMPLETION), *rows])


_ENTRY: dict[str, Callable[[Entry], Any]] = {
    "exchange": lambda entry: entry.id,
    "conversation": lambda entry: entry.conversation,
    "assistant": lambda entry: entry.assistant,
    "model": lambda entry: entry.model,
    "started": lambda entry: _utc(entry.started_at),
    "ended": lambda entry: _utc(entry.ended_at),
    "outcome": lambda entry: entry.outcome,
    "code": lambda entry: entry.code,
    "by": lambda entry: entry.by,
    "marks": lambda entry: list(entry.marks),
    "turns": lambda entry: entry.turns,
    "completions": lambda entry: len(entry.completions),
    "surplus": lambda entry: entry.surplus,
    "prompt_tokens": lambda entry: _of(entry.usage, "prompt_tokens"),
    "completion_tokens": lambda entry: _of(entry.usage, "completion_tokens"),
    "cached_tokens": lambda entry: _of(entry.usage, "cached_tokens"),
    "reasoning_tokens": lambda entry: _of(entry.usage, "reasoning_tokens"),
    "source": lambda entry: _of(entry.usage, "source"),
    "cost": lambda entry: entry.cost,
}
_TEXTS: dict[str, Callable[[Entry], Any]] = {
    "question": lambda entry: entry.question,
    "shown": lambda entry: entry.shown,
}
_COMPLETION: dict[str, Callable[[Entry, Booked], Any]] = {
    "exchange": lambda entry, _: entry.id,
    "completion": lambda _, booked: booked.id,
    "turn": lambda _, booked: booked.turn,
    "attempt": lambda _, booked: booked.attempt,
    "model": lambda _, booked: booked.model,
    "opened": lambda _, booked: _utc(booked.opened_at),
    "outcome": lambda _, booked: booked.outcome,
    "finish": lambda _, booked: booked.finish,
    "code": lambda _, booked: booked.code,
    "detail": lambda _, booked: booked.detail,
    "prompt_tokens": lambda _, booked: _of(booked.usage, "prompt_tokens"),
    "completion_tokens": lambda _, booked: _of(booked.usage, "completion_tokens"),
    "cached_tokens": lambda _, booked: _of(booked.usage, "cached_tokens"),
    "reasoning_tokens": lambda _, booked: _of(booked.usage, "reasoning_tokens"),
    "source": lambda _, booked: _of(booked.usage, "source"),
    "cost": lambda _, booked: booked.cost,
    "currency": lambda _, booked: booked.currency if booked.cost is not None else None,
    "first_delta": lambda _, booked: booked.first_delta,
    "duration": lambda _, booked: booked.duration,
}


def _columns(entries: Sequence[Entry]) -> dict[str, Callable[[Entry], Any]]:
    return _ENTRY | _TEXTS if any(entry.question is not None for entry in entries) else _ENTRY


def _of(usage: Usage | None, name: str) -> Any:
    return getattr(usage, name, None)


def _utc(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(facts: dict[str, Any]) -> str:
    return harmless_json(encode_line(facts).decode()) + "\n"


def _csv(rows: Iterable[list[Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return file.getvalue()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return cost_words(value)
    text = "; ".join(value) if isinstance(value, list) else str(value)
    # Spreadsheets run what begins so as a formula; numbers of ours are never negative.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
