"""The text of docs/findings.md, from the faults and the tapes that show them; `make docs` writes it."""

from __future__ import annotations

from pathlib import Path

from motamot.findings import PROTOCOLS, Fault, Level, Promise
from motamot.findings.faults import FAULTS
from motamot.tape.tape import Tape
from tests.findings.examples import EXAMPLES, Example

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
_WIRE_CHARS = 420  # of a tape in the page: the first events of a long one say enough
_SAME = '"id": "c1", "object": "chat.completion.chunk", "model": "m", '
_NULL = ', "finish_reason": null'
_MEANS = {
    Promise.EXACT: "the text the visitor receives is the text the model wrote",
    Promise.LIVE: "each piece leaves when it arrives",
    Promise.ONCE: "one completion per turn, one answer per question",
    Promise.STOPPABLE: "a stop ends the generation itself",
    Promise.ACCOUNTED: "every token spent is booked once",
    Promise.SAFE: "text never becomes markup, an error never becomes an answer",
}
_LEVELS = {
    Level.MUST: "loses something for somebody",
    Level.SHOULD: "works by luck, or for most",
    Level.NOTE: "to know; no promise is lost by it",
}

INTRODUCTION = """\
# Findings: what can be wrong on the wire

<!-- Made by `make docs` from src/motamot/findings and the tapes of its tests; a test keeps it true. -->

`motamot check` takes a recorded stream for what it is, reads it as a right reader does, and names what got lost. From
Python:

```python
from motamot.findings import examine
from motamot.tape import Piece, Tape

body = b"data: - Am: A C E\\n- C: C E G\\n\\ndata: [DONE]\\n\\n"
examined = examine(Tape(pieces=(Piece(None, body),)))
assert examined.protocol == "ga-text"
assert [finding.id for finding in examined.findings] == ["raw-line-break"]
assert examined.text == "- Am: A C E"
assert examined.judged["exact"] == "lost"
```

A promise is *lost* where a finding says so, *kept* only where the recording shows it, and else *not judged*, with the
reason: one recording shows neither how often the model was asked nor what a stop does, and a recording without times
does not show whether the answer was live.

Below each fault stand a recording that shows it and one that only looks like it; of OpenAI's chunks `id`, `object`,
`model` and a `finish_reason` of null are left out.

What is recognised, by its content first and its headers where that does not tell:
"""


CONTRIBUTE = """\
## A new finding

A file in `src/motamot/findings/faults` with the fault (`Fault`: id, promise, level, title, clause with a link, remedy,
harm) and what looks for it (`Finder`), and a line in the table `RULES` beside it. Two tapes in
`tests/findings/examples.py`: one that shows it, one that looks alike and must not be named; a test fails without them.
Name only what somebody has met. A protocol is a file in `src/motamot/findings/known` and a line in its table.
"""


def page() -> str:
    lines = [INTRODUCTION, "| protocol | is |", "| --- | --- |"]
    lines += [f"| `{name}` | {what} |" for name, what in PROTOCOLS.items()]
    lines += ["", "Levels: " + "; ".join(f"`{level}` {what}" for level, what in _LEVELS.items()) + ".", ""]
    for promise in Promise:
        faults = [fault for fault in FAULTS.values() if fault.promise is promise]
        if not faults:
            continue
        lines += [f"## {promise.capitalize()}: {_MEANS[promise]}", "", "| fault | level | what is wrong |"]
        lines += ["| --- | --- | --- |"]
        lines += [f"| [`{fault.id}`](#{fault.id}) | {fault.level} | {fault.title} |" for fault in faults]
        lines.append("")
        for fault in faults:
            lines += section(fault, EXAMPLES[fault.id])
    return "\n".join([*lines, CONTRIBUTE]).rstrip() + "\n"


def section(fault: Fault, example: Example) -> list[str]:
    lines = [f"### {fault.id}", "", f"{fault.title[0].upper()}{fault.title[1:]}. `{fault.level}`", ""]
    lines += [f"- Harm: {fault.harm}", f"- Rule: {fault.clause}.", f"- Remedy: {fault.remedy}", ""]
    lines += ["Shown by:", "", *_wire(example.shows, example.whole), ""]
    lines += [f"Not by: {example.why}", "", *_wire(example.alike, example.whole_alike), ""]
    return lines


def _wire(tape: Tape, whole: str | None) -> list[str]:
    """A tape as text: the head where it tells something, times where it has them, the body's beginning."""
    lines = []
    told = dict(tape.headers)
    if tape.status not in (None, 200):
        lines.append(f"HTTP {tape.status}")
    lines += [f"{name}: {value}" for name, value in told.items() if name.islower()]
    if tape.request is not None:
        lines.append(f"(asked: {tape.request.body.decode()})")
    if tape.timed:
        moments = ", ".join(f"{piece.at:.2f}" for piece in tape.pieces[:12])
        lines.append(f"(events at {moments} s)")
        if tape.upstream_at:
            lines.append(f"(produced at {', '.join(f'{at:.2f}' for at in tape.upstream_at)} s)")
    if whole is not None:
        lines.append(f"(whole answer: {whole!r})")
    body = _shown(tape.body)
    if lines and body:
        lines.append("")
    lines += body
    if tape.end == "left":
        lines.append("(the recorder left)")
    return ["```", *lines, "```"]


def _shown(raw: bytes) -> list[str]:
    text = raw.decode("utf-8", "backslashreplace")
    for what, as_what in ((_SAME, ""), (_NULL, ""), ("\ufeff", "\\ufeff"), ("\r", "\\r")):
        text = text.replace(what, as_what)
    if len(text) > _WIRE_CHARS:
        tail = text[-_WIRE_CHARS // 3 :]
        text = text[: _WIRE_CHARS * 2 // 3] + " […] " + tail
    ended = raw.endswith((b"\n\n", b"\r\n\r\n"))
    return text.rstrip("\n").split("\n") + ([] if ended else ["(end of the body)"])
