"""Bodies of completions, and every way of cutting them: what comes out may never depend on the cut."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from motamot.answer import AnswerEvent, Reasoning, Text
from motamot.errors import UpstreamError
from motamot.limits import Limits
from motamot.model.assembly import Assembly, Dialect, assembly_for
from motamot.model.turn import Turn

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
DONE = "data: [DONE]\n\n"


def sse(data: object) -> str:
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def chunk(delta: object, finish: object = None, **more: object) -> str:
    """One event with one choice."""
    return sse({**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


def said(*contents: object) -> str:
    """A delta of content each."""
    return "".join(chunk({"content": content}) for content in contents)


def tools(*entries: object) -> str:
    """One delta with these entries of `tool_calls`."""
    return chunk({"tool_calls": list(entries)})


def call(index: int | None, id_: str | None, name: str | None, arguments: object = None) -> dict[str, Any]:
    """One fragment of a tool call; None leaves the field out."""
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": id_,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in entry.items() if value is not None}


def answer(*events: str, finish: str = "stop") -> str:
    """A stream by the book around these events."""
    return chunk({"role": "assistant", "content": ""}) + "".join(events) + chunk({}, finish) + DONE


@dataclass(frozen=True)
class Assembled:
    events: list[AnswerEvent]
    turn: Turn
    done: bool

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Text))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Reasoning))

    @property
    def kinds(self) -> set[str]:
        return {deviation.kind for deviation in self.turn.deviations}

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        return [(made.id, made.name, made.arguments) for made in self.turn.tool_calls]

    @property
    def detail(self) -> str:
        assert self.turn.error is not None
        return self.turn.error.detail or ""


def assemble(
    body: str | bytes,
    kind: str = "openai-chat",
    *,
    cuts: Iterable[int] = (),
    dialect: Dialect | None = None,
    limits: Limits | None = None,
    error: UpstreamError | None = None,
) -> Assembled:
    body = body.encode() if isinstance(body, str) else body
    return feed(assembly_for(kind, dialect=dialect, limits=limits), body, cuts, error)


def feed(assembly: Assembly, body: bytes, cuts: Iterable[int], error: UpstreamError | None = None) -> Assembled:
    events: list[AnswerEvent] = []
    for start, end in pairwise([0, *cuts, len(body)]):
        events += assembly.feed(body[start:end])
    done = assembly.done
    events += assembly.close()
    assert assembly.close() == []
    assert assembly.feed(b"data: late\n\n") == []
    assembled = Assembled(events, assembly.turn(error=error), done)
    check(assembled)
    return assembled


def check(assembled: Assembled) -> None:
    """What holds of every turn."""
    turn = assembled.turn
    assert turn.text == assembled.text
    assert turn.reasoning == assembled.reasoning
    for event in assembled.events:
        assert isinstance(event, Text | Reasoning)
        assert event.text
        event.text.encode()
    assert (turn.error is not None) == (turn.finish in {"error", "incomplete"})
    ids = [made.id for made in turn.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    for made in turn.tool_calls:
        assert made.name
        assert isinstance(json.loads(made.raw), dict)
        json.dumps([made.arguments, made.name, made.id], ensure_ascii=False).encode()
        assert (made.problem is None) == (turn.finish == "tool_calls" and made in turn.runnable)


def cuttings(body: bytes, reads: Sequence[int] = ()) -> list[list[int]]:
    """The whole body at once; cut at every byte, as given, after each or each second event, each line, at random."""
    dice = random.Random(len(body))  # the same cuts each time
    ends = [at + 2 for at in range(len(body) - 1) if body[at : at + 2] == b"\n\n"]
    lines = [at + 1 for at in range(len(body)) if body[at] == 10]
    some = [sorted(dice.choices(range(len(body) + 1), k=many)) for many in (1, 3, 10) if body]
    return [[], list(range(1, len(body))), list(reads), ends, ends[::2], lines, *some]


def every_way(
    body: str | bytes,
    kind: str = "openai-chat",
    *,
    reads: Sequence[int] = (),
    dialect: Dialect | None = None,
    limits: Limits | None = None,
) -> Assembled:
    """The result, which is the same at every cut."""
    body = body.encode() if isinstance(body, str) else body
    first = assemble(body, kind, dialect=dialect, limits=limits)
    for cuts in cuttings(body, reads):
        again = assemble(body, kind, cuts=cuts, dialect=dialect, limits=limits)
        assert comparable(again, body) == comparable(first, body), f"cut at {cuts[:20]}"
    return first


def comparable(assembled: Assembled, body: bytes) -> object:
    """The result without what is made up anew each time, and with errors that compare."""
    turn = assembled.turn
    calls = tuple(
        made if json.dumps(made.id)[1:-1].encode() in body else replace(made, id=f"made-up-{place}")
        for place, made in enumerate(turn.tool_calls)
    )
    error = turn.error and (turn.error.code, turn.error.message, turn.error.detail)
    deviations = frozenset(turn.deviations)  # a field that is no field is heard before the events of its read
    return (
        assembled.events,
        replace(turn, tool_calls=calls, error=None, deviations=()),
        error,
        deviations,
        assembled.done,
    )
