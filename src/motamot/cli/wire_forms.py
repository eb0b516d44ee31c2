"""A tape on a terminal or in a pipe: the wire line by line, and what a reader makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from motamot.cli.console import harmless
from motamot.tape.tape import Tape
from motamot.tape.wire import Kinds, Line, Read, looks_like_event_stream, wire_lines

__all__ = [
    "cut",
    "event_rows",
    "head_lines",
    "json_rows",
    "left_over",
    "reading_title",
    "shown",
    "title",
    "what_instead",
    "wire_text",
]

_NO_EVENT = "no event"
_LISTED = 20  # ignored lines that are listed before the rest is counted
_QUESTION = 80  # characters of a question in a title


def cut(text: str, width: int | None) -> str:
    """`text` in at most `width` characters, its end as `…`; None for all of it."""
    if width is None or len(text) <= width:
        return text
    return text[: max(0, width - 1)] + "…"


def shown(data: bytes) -> str:
    """Bytes of the wire as a line that no terminal obeys; what is not UTF-8 as `\\xff`."""
    return harmless(data.decode("utf-8", "backslashreplace"))


def title(tape: Tape, otherwise: str) -> str:
    """`POST /api/chatbot/chat/stream "Show me Cmaj7 voicings"`; without a request, `otherwise`."""
    if tape.request is None:
        return harmless(otherwise)
    try:
        address = urlsplit(tape.request.url)
    except ValueError:  # whoever made the recording wrote what is no address
        place = tape.request.url
    else:
        place = (address.path or "/") + (f"?{address.query}" if address.query else "")
    question = _question(tape.request.body)
    asked = "" if question is None else f' "{cut(" ".join(question.split()), _QUESTION)}"'
    return harmless(f"{tape.request.method} {cut(place, 200)}{asked}")


def _question(body: bytes) -> str | None:
    """What a request asks, where it says so in a place that chatbots agree on."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    messages = told.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    for value in (told.get("message"), last.get("content") if isinstance(last, dict) else None):
        if isinstance(value, str) and value:
            return value
    return None


def head_lines(tape: Tape, *, headers: bool) -> Iterator[str]:
    """`HTTP 200`, and the headers if wanted."""
    if tape.status is not None:
        yield f"HTTP {tape.status}"
    if headers:
        yield from (harmless(f"{name}: {value}") for name, value in tape.headers)
        yield ""


def wire_text(tape: Tape, *, width: int | None, times: bool, whole: bool) -> Iterator[str]:
    """`  | data: …` for each line of the body; before it, where times are known and wanted, when its read came.

    whole: also the rest of a routing event, whose trace is long; else it is cut after the agent.
    """
    timed = times and tape.timed
    first_event = True
    for line in wire_lines(tape):
        text = shown(line.data)
        if not line.data:
            first_event = False
        elif first_event and not whole:
            text = _without_trace(text)
        # The space of `data: ` is the field's own: on a line without a value nobody sees it.
        text = text[:-1] if text in ("data: ", "event: ", "id: ") else text
        margin = _margin(line) if timed else ""
        bar = f"{margin}  | "
        row = cut(bar + text, width)
        yield row if text else row.rstrip()
        if not line.end:
            yield f"{' ' * len(margin)}    (the body ends here, without a line end)"


def _margin(line: Line) -> str:
    return f"{line.at * 1000:9.1f} ms" if line.new_read and line.at is not None else " " * 12


def _without_trace(text: str) -> str:
    """A routing event up to its agent; what follows (confidence, method, trace) differs at every run."""
    start = 'data: {"type":"routing","agentId":"'
    end = text.find('",', len(start)) if text.startswith(start) else -1
    return text if end < 0 else text[: end + 2] + "…"


def event_rows(tape: Tape, read: Read, *, times: bool) -> Iterator[str]:
    """`event 1  routing  1 line(s)`, and when it was complete, where times are known and wanted."""
    timed = times and tape.timed
    kinds = [harmless(seen.kind).replace("\n", "␊") for seen in read.events]
    yield from _rows(
        "event",
        [
            (kind, f"{seen.lines} line(s)", seen.at if timed else None)
            for kind, seen in zip(kinds, read.events, strict=True)
        ],
    )


def json_rows(tape: Tape, *, times: bool) -> Iterator[str]:
    """The same for a body of JSON lines: `line 1  text`."""
    kinds = Kinds()
    timed = times and tape.timed
    found = [(kinds.of_json(line.data), line.at) for line in wire_lines(tape) if line.data]
    yield from _rows("line", [(harmless(kind), "", at if timed else None) for kind, at in found])


def _rows(word: str, rows: list[tuple[str, str, float | None]]) -> Iterator[str]:
    number_width = len(str(len(rows)))
    kind_width = min(40, max((len(kind) for kind, _, _ in rows), default=0))
    lines_width = max((len(lines) for _, lines, at in rows if at is not None), default=0)
    for number, (kind, lines, at) in enumerate(rows, 1):
        when = "" if at is None else f"  {at * 1000:9.1f} ms"
        yield f"{word} {number:<{number_width}}  {cut(kind, 40):<{kind_width}}  {lines:<{lines_width}}{when}".rstrip()


def left_over(tape: Tape, read: Read) -> Iterator[str]:
    """What the standard ignores and discards, and how the connection ended where that is no proper end."""
    if what_instead(tape, read.events) in (None, _NO_EVENT):  # else every line of it would be listed
        yield from _left_over(read)
    if tape.end in ("reset", "left"):
        who = "the connection broke" if tape.end == "reset" else "whoever recorded it left"
        when = "" if tape.ended_at is None else f" after {tape.ended_at * 1000:.1f} ms"
        yield f"ended  {who}{when}"


def _left_over(read: Read) -> Iterator[str]:
    for ignored in read.ignored[:_LISTED]:
        yield f"ignored  {ignored.kind:<13}  byte {ignored.offset}  {cut(shown(ignored.line), 60)}".rstrip()
    if read.ignored_count > _LISTED:
        yield f"ignored  {read.ignored_count - _LISTED:,} more lines"
    residue = read.residue
    if residue.block:
        told = f"discarded  an event of {residue.data.count(chr(10)) + 1} line(s) that no blank line ended"
        yield f"{told}: {json.dumps(cut(harmless(residue.data), 60), ensure_ascii=False)}"
    if residue.line:
        yield f"discarded  {len(residue.line)} bytes of a line that did not end: {cut(shown(residue.line), 60)}"
    if read.problem:
        yield f"not read on: {read.problem}"


def reading_title(tape: Tape) -> str:
    """What the second part is headed with."""
    if looks_like_event_stream(tape) or not _is_json_lines(tape):
        return "The same stream, read as the HTML standard says"
    return "The same body, line by line"


def _is_json_lines(tape: Tape) -> bool:
    declared = (tape.header("content-type") or "").lower()
    if declared:
        return any(word in declared for word in ("ndjson", "jsonl", "json-seq", "stream+json"))
    return b"".join(piece.data for piece in tape.pieces[:100])[:1] == b"{"


def what_instead(tape: Tape, events: Iterable[object]) -> str | None:
    """Why a body without events is no event stream, or None."""
    if any(True for _ in events):
        return None
    declared = tape.header("content-type")
    if declared is not None and "event-stream" not in declared.lower():
        return f"no event: the response is {harmless(declared)[:80]}, not an event stream"
    return _NO_EVENT
