"""What a reader named by `motamot show --as` makes of a tape: one of the world's, or of a protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from motamot.answer import Ended, Outcome, Text
from motamot.cli.console import harmless
from motamot.cli.wire_forms import cut
from motamot.errors import InvalidRequest
from motamot.peers import READERS
from motamot.protocols import PROTOCOLS
from motamot.tape.tape import Tape

__all__ = ["ShownAs", "reader_rows"]


class ShownAs:
    """One of the readers that `--as` names.

    Raises: InvalidRequest for a name that is none.
    """

    def __init__(self, name: str) -> None:
        self._peer = READERS.get(name)
        self._protocol = PROTOCOLS.get(name) if self._peer is None else None
        if self._peer is None and self._protocol is None:
            names = ", ".join(dict.fromkeys([*READERS, *PROTOCOLS]))
            raise InvalidRequest(f"there is no reader {harmless(name)[:50]!r}: there are {names}")

    def text(self, tape: Tape, width: int | None) -> Iterator[str]:
        """What it hands on, step by step (cut to `width`), and the text that its user has in the end (never cut)."""
        steps = list(self.steps(tape))
        *handed, end = steps
        yield f"== The same stream, read by {end['reader']}"
        number_width = len(str(len(handed)))
        kind_width = max((len(step["is"]) for step in handed), default=0)
        for number, step in enumerate(handed, 1):
            when = "" if step["at_ms"] is None else f"{step['at_ms']:9.1f} ms  "
            told = harmless(json.dumps(step["text"], ensure_ascii=False))
            yield cut(f"step {number:<{number_width}}  {step['is']:<{kind_width}}  {when}{told}".rstrip(), width)
        yield f"text of {len(end['text'])} characters, as its user has it:"
        yield from (f"  | {harmless(line)}".rstrip() for line in end["text"].split("\n"))
        if end["threw"] is not None:
            yield f"(throws) {harmless(end['threw'])}"
        if end["habits"]:
            yield "what it does otherwise than the standard:"
            yield from (f"  {habit}" for habit in end["habits"])

    def steps(self, tape: Tape) -> Iterator[dict[str, Any]]:
        """The same as objects: one for each step, and one for the end."""
        return self._peer_steps(tape) if self._peer is not None else self._answers(tape)

    def _peer_steps(self, tape: Tape) -> Iterator[dict[str, Any]]:
        assert self._peer is not None
        got = self._peer.read(tape.reads())
        for step in got.steps:
            at = tape.pieces[step.at].at if 0 <= step.at < len(tape.pieces) else tape.ended_at
            yield _step(step.kind, step.text, at)
        yield {
            "kind": "end",
            "reader": self._peer.title,
            "text": got.text,
            "threw": got.threw,
            "complete": got.complete,
            "habits": list(self._peer.habits),
        }

    def _answers(self, tape: Tape) -> Iterator[dict[str, Any]]:
        assert self._protocol is not None
        reader = self._protocol.reader()
        text: list[str] = []
        outcome: Ended | None = None
        for at, data in [*tape.pieces, (tape.ended_at, None)]:
            for event in reader.close() if data is None else reader.feed(data):
                if isinstance(event, Text):
                    text.append(event.text)
                if isinstance(event, Ended):
                    outcome = event
                told = msgspec.to_builtins(event)
                kind = told.pop("type", type(event).__name__.lower())
                yield _step(kind, event.text if isinstance(event, Text) else json.dumps(told), at)
        yield {
            "kind": "end",
            "reader": f"motamot's reader of {self._protocol.name}",
            "text": "".join(text),
            "threw": None,
            "complete": outcome is not None and outcome.outcome is Outcome.COMPLETE,
            "habits": [],
        }


def _step(kind: str, text: str, at: float | None) -> dict[str, Any]:
    return {"kind": "step", "is": kind, "at_ms": None if at is None else round(at * 1000, 3), "text": text}


def reader_rows() -> Iterator[str]:
    """Every name, and whose reader it is."""
    names = {name: f"{peer.title} ({peer.origin})" for name, peer in READERS.items()}
    names |= {name: f"motamot's reader of {name}" for name in PROTOCOLS if name not in names}
    width = max(map(len, names))
    yield from (f"{name:<{width}}  {told}" for name, told in names.items())
