"""What was found, as a file: CSV for a spreadsheet, JSON Lines for a program. The whole book is never in memory."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from motamot.server.dashboard.filters import wanted
from motamot.server.dashboard.visit import Visit, attachment
from motamot.server.dashboard.words import moment_of
from motamot.store.views import Listed

__all__ = ["as_csv", "as_json_lines", "defused", "download"]

_PIECE = 64_000  # characters sent at a time

_COLUMNS = (
    "asked_at",
    "exchange",
    "conversation",
    "assistant",
    "model",
    "visitor",
    "question",
    "answer",
    "outcome",
    "code",
    "by",
    "marks",
    "ended_at",
    "first_text_seconds",
    "prompt_tokens",
    "completion_tokens",
    "tokens_counted",
    "cost",
    "completions",
    "odd",
)

# What a spreadsheet takes for a formula at the beginning of a cell; and a cell may begin where another separator than
# ours is expected (OWASP, CSV injection). Also the wide forms that some of them read as the plain ones.
# A run of blanks and quotation marks is looked at once: a text may be a million line ends.
_BEGINNING = re.compile(r"((?:\A|[;\t\r\n])[\s\"]*+)([=+\-@＝＋－＠]?)")


def defused(text: str) -> str:
    """Text that no spreadsheet runs: an apostrophe stands before what would begin a formula, and before a tab or CR."""
    text = _BEGINNING.sub(lambda found: f"{found[1]}'{found[2]}" if found[2] else found[1], text)
    return f"'{text}" if text[:1] in ("\t", "\r") else text


def _values(row: Listed) -> dict[str, Any]:
    return dict(
        zip(
            _COLUMNS,
            (
                _iso(row.started_at),
                row.exchange,
                row.conversation,
                row.assistant,
                row.model,
                row.visitor,
                row.question,
                row.answer,
                row.outcome,
                row.code,
                row.by,
                list(row.marks),
                _iso(row.ended_at) if row.ended_at is not None else None,
                row.first_text,
                row.prompt_tokens,
                row.completion_tokens,
                row.source,
                row.cost,
                row.completions,
                row.odd,
            ),
            strict=True,
        )
    )


def _iso(at: float) -> str:
    return moment_of(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cell(value: Any) -> object:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else ""
        case int() | float():
            return value
        case dict():
            return " + ".join(f"{cost:.6f} {currency}" for currency, cost in sorted(value.items()))
        case list():
            return defused(", ".join(value))
        case _:
            return defused(str(value))


def _csv_line(row: Listed | None) -> str:
    """A line, every cell in quotes; None: the heads, behind the mark by which Excel knows UTF-8."""
    written = io.StringIO()
    cells = _COLUMNS if row is None else [_cell(value) for value in _values(row).values()]
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow(cells)
    return ("\ufeff" if row is None else "") + written.getvalue()


def _json_line(row: Listed | None) -> str:
    return "" if row is None else msgspec.json.encode(_values(row)).decode() + "\n"


async def as_csv(visit: Visit) -> Response:
    """GET /dashboard/export.csv: for a spreadsheet. What it would run is defused, by an apostrophe."""
    return await _export(visit, _csv_line, "csv", "text/csv; charset=utf-8")


async def as_json_lines(visit: Visit) -> Response:
    """GET /dashboard/export.jsonl: texts word for word, an exchange a line."""
    return await _export(visit, _json_line, "jsonl", "application/jsonl; charset=utf-8")


async def _export(visit: Visit, line: Callable[[Listed | None], str], kind: str, media_type: str) -> Response:
    rows = visit.site.exchanges.store.export(wanted(visit).filter)
    first = await anext(rows, None)  # what cannot be looked for is told before the file begins

    async def lines() -> AsyncIterator[str]:
        yield line(None)
        if first is not None:
            yield line(first)
        async for row in rows:
            yield line(row)

    return download(lines(), f"motamot-exchanges.{kind}", media_type)


def download(pieces: AsyncIterator[str], name: str, media_type: str) -> Response:
    """Text that is made while it is sent, as a file."""

    async def gathered() -> AsyncIterator[bytes]:
        held: list[str] = []
        size = 0
        async for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size >= _PIECE:
                yield "".join(held).encode("utf-8", "replace")
                held, size = [], 0
        yield "".join(held).encode("utf-8", "replace")

    return StreamingResponse(gathered(), headers=attachment(name), media_type=media_type)
