"""The text of docs/protocols.md, from the protocols themselves; `make docs` writes it."""

from __future__ import annotations

from pathlib import Path

from motamot.answer import Code, Ended, Outcome, Routed, Source, Started, Text, TurnEnded, Usage
from motamot.protocols import PROTOCOLS, Asked, Protocol

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"
INTRODUCTION = """\
# The protocols

<!-- Made by `make docs` from src/motamot/protocols; a test keeps it true. -->

A protocol is one kind of client's habits: how it asks, reads, stops and resumes. What a model wrote reaches each of
them exactly, up to what is named under *cannot carry*. Read back by our own reader, an answer is the one that was
written, up to the same list: tests prove it with any text, any cut into pieces, and any cut of the bytes.

What holds for all of them:

- UTF-8, LF only, no byte-order mark; no block without data; the last event is ended by an empty line.
- JSON stands on one line, with U+2028, U+2029 and U+0085 as escapes, wherever the protocol allows JSON.
- A sign of life is a comment of one line end (`:`), which no reader takes for an event.
- An error is never text, and text never becomes an end, an error, markup or another event.
- A request that cannot be taken is refused before the stream, in words, with the field and the limit: keys given
  twice, numbers that are none, orphan surrogates in names, too deep or too long. An orphan surrogate in a text
  becomes U+FFFD.
- Headers: {headers}.
"""

ANSWER = (
    Started(exchange="Xq3", conversation="c1", assistant="helper", model="m"),
    Routed(agent="skill.greeting", confidence=0.85, method="semantic"),
    Text("Bonjour,\n"),
    Text("et bienvenue"),
    TurnEnded(turn=1, finish="stop"),
    Ended(outcome=Outcome.COMPLETE, usage=Usage(prompt_tokens=9, completion_tokens=5, source=Source.REPORTED)),
)
FAILED = Ended(outcome=Outcome.FAILED, code=Code.TIMEOUT, message="The answer took too long.")


def section(protocol: Protocol) -> str:
    ends = "<br>".join(
        f"{', '.join(outcome for outcome in Outcome if protocol.ends[outcome] == said)}: {said}"
        for said in dict.fromkeys(protocol.ends[outcome] for outcome in Outcome)
    )
    lost = "<br>".join(loss.sentence for loss in protocol.cannot_carry)
    rows = {
        "request": protocol.request,
        "stream": protocol.stream,
        "ends": ends,
        "stop": protocol.stop,
        "resume": protocol.resume,
        "cannot carry": lost,
    }
    table = "\n".join(f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in rows.items())
    writer = protocol.writer(Asked(message="?", assistant="helper", include_usage=True), now=1_800_000_000)
    wire = "".join(writer.write(number, event).decode() for number, event in enumerate(ANSWER, 1))
    failing = protocol.writer(exchange="Xq3")
    failure = failing.write(len(ANSWER), FAILED).decode()
    return (
        f"## `{protocol.name}`\n\n| | |\n|---|---|\n{table}\n\nAn answer:\n\n```\n{wire.strip()}\n```\n\n"
        f"The end of one that failed:\n\n```\n{failure.strip()}\n```\n"
    )


def page() -> str:
    headers = next(iter(PROTOCOLS.values())).headers
    content_type = next(iter(PROTOCOLS.values())).content_type
    named = ", ".join(f"`{name}: {value}`" for name, value in {"Content-Type": content_type, **headers}.items())
    return "\n".join([INTRODUCTION.replace("{headers}", named), *map(section, PROTOCOLS.values())])
