"""Answers to try the protocols with: any text, any cut into deltas, any cut of bytes; and what each protocol keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
from hypothesis import strategies as st

from motamot.answer import (
    AnswerEvent,
    By,
    Cited,
    Code,
    Ended,
    Outcome,
    Reasoning,
    Routed,
    Source,
    Started,
    SurrogateJoiner,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Usage,
)
from motamot.protocols import Asked, Protocol, Reader
from motamot.protocols.base import OfferedTool, failure_words, has_failed

HAZARDS = (
    *("[DONE]", "[DONE", "]", " [DONE] ", "[DO", "NE]", "data: x", "data:", "id: 1.9", "event: fin", ":", "retry: 1"),
    *("\r", "\n", "\r\n", "\n\n", "\r\r", "\n\r", "\0", "\ufeff", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"),
    *("{", "{{", "}", '{"error":"x"}', '{"error":', '{"type":"routing"}', '{"morceau":"x"}', '{"type":"ended"}', "{x}"),
    *(" ", "  ", "\t", "\xa0", "a", "fin", "é’—", "😀", "\ud83d", "\ude00", "\\", '"', "<script>", "</p>", "\x7f"),
)
WORDS = st.text(max_size=12) | st.sampled_from(HAZARDS)
NAMES = st.text("abcXYZ019_-", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, max_size=12).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
USAGES = st.builds(
    Usage,
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**6),
    cached_tokens=st.integers(0, 10**6),
    reasoning_tokens=st.integers(0, 10**6),
    source=st.sampled_from(Source),
)
OTHERS = st.one_of(
    st.builds(Reasoning, text=st.text(min_size=1, max_size=8)),
    st.builds(ToolCalled, id=NAMES, name=NAMES, arguments=st.dictionaries(st.text(max_size=5), JSON, max_size=3)),
    st.builds(ToolReturned, id=NAMES, name=NAMES, status=st.just("ok"), result=st.none() | st.text(max_size=8)),
    st.builds(Cited, title=st.text(max_size=8), url=st.none() | st.text(max_size=8), mark=st.none() | st.just("[12]")),
    st.builds(TurnEnded, turn=st.integers(1, 8), finish=st.sampled_from(["stop", "tool_calls"]), usage=USAGES),
    st.builds(Routed, agent=st.sampled_from(["direct", "skill.x", ""]), confidence=st.sampled_from([0.0, 0.85, 1.0])),
)
TOOLS = Asked(message="?", tools=(OfferedTool(name="f"),), include_usage=True)


@st.composite
def ends(draw: st.DrawFn) -> Ended:
    outcome = draw(st.sampled_from(Outcome))
    failed = outcome in (Outcome.FAILED, Outcome.INTERRUPTED)
    return Ended(
        outcome=outcome,
        code=draw(st.sampled_from(Code)) if outcome is Outcome.FAILED else None,
        message=draw(st.none() | st.text(min_size=1, max_size=20)) if failed else None,
        by=draw(st.sampled_from(By)) if outcome is Outcome.STOPPED else None,
        shown=draw(st.integers(0, 99)),
        usage=draw(st.none() | USAGES),
        marks=draw(st.sampled_from([(), ("recorded",), ("recorded", "test_model")])),
    )


@st.composite
def texts(draw: st.DrawFn) -> list[AnswerEvent]:
    """One text, cut into deltas at any UTF-16 unit, as JSON may cut it, and made encodable again."""
    units = draw(TEXTS).encode("utf-16-le", "surrogatepass")
    cuts = sorted(draw(st.sets(st.integers(0, len(units) // 2), max_size=8)) | {0, len(units) // 2})
    joiner = SurrogateJoiner()
    deltas = [joiner.feed(units[2 * a : 2 * b].decode("utf-16-le", "surrogatepass")) for a, b in pairwise(cuts)]
    return [Text(delta) for delta in [*deltas, joiner.close()] if delta]


@st.composite
def answers(draw: st.DrawFn) -> list[AnswerEvent]:
    """A whole exchange's events, from `Started` to `Ended`."""
    events: list[AnswerEvent] = [
        Started(exchange=draw(NAMES), conversation=draw(NAMES), assistant=draw(NAMES), model=draw(st.text(max_size=8)))
    ]
    if draw(st.booleans()):
        events.append(Routed(agent="skill.é", confidence=0.85, method="semantic", trace=draw(JSON)))
    for _ in range(draw(st.integers(0, 3))):
        events += draw(texts())
        events += draw(st.lists(OTHERS, max_size=2))
    return [*events, draw(ends())]


@st.composite
def chunks(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The bytes as a network may deliver them."""
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=12)) | {0, len(data)})
    return [data[a:b] for a, b in pairwise(cuts)]


def written(protocol: Protocol, events: Sequence[AnswerEvent], asked: Asked | None = TOOLS) -> bytes:
    writer = protocol.writer(asked, now=1_700_000_000)
    return b"".join(writer.write(number, event) for number, event in enumerate(events, 1))


def read(reader: Reader, pieces: Sequence[bytes]) -> list[AnswerEvent]:
    events: list[AnswerEvent] = []
    for piece in pieces:
        events += reader.feed(piece)
    return events + reader.close()


def joined(events: Sequence[AnswerEvent]) -> list[AnswerEvent]:
    """The same answer with neighbouring texts put together: readers may cut it otherwise."""
    merged: list[AnswerEvent] = []
    for event in events:
        if isinstance(event, Text) and merged and isinstance(merged[-1], Text):
            merged[-1] = Text(merged[-1].text + event.text)
        else:
            merged.append(event)
    return merged


def text_of(events: Sequence[AnswerEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


Change = Callable[[list[AnswerEvent]], list[AnswerEvent]]


def without(*kinds: type[AnswerEvent]) -> Change:
    return lambda events: [event for event in events if not isinstance(event, kinds)]


def change(kind: type[AnswerEvent], **values: object) -> Change:
    return lambda events: [
        msgspec.structs.replace(event, **values) if isinstance(event, kind) else event for event in events
    ]


def _line_feeds(events: list[AnswerEvent]) -> list[AnswerEvent]:
    marked = "\ue000".join(event.text for event in events if isinstance(event, Text))
    whole = marked.replace("\ue000", "").replace("\r\n", "\n").replace("\r", "\n")
    kept: list[AnswerEvent] = [event for event in events if not isinstance(event, Text)]
    place = next((place for place, event in enumerate(events) if isinstance(event, Text)), 0)
    before = len([event for event in events[:place] if not isinstance(event, Text)])
    return [*kept[:before], *([Text(whole)] if whole else []), *kept[before:]]


def _first_routing(events: list[AnswerEvent]) -> list[AnswerEvent]:
    told = False
    kept: list[AnswerEvent] = []
    for event in events:
        if isinstance(event, Routed) and (told or event == Routed(agent="direct", method="none")):
            told = True
            continue
        told = told or isinstance(event, Text | Routed)
        kept.append(event)
    return kept


def _no_code(events: list[AnswerEvent]) -> list[AnswerEvent]:
    end = events[-1]
    assert isinstance(end, Ended)
    if not has_failed(end):
        return events
    return [*events[:-1], Ended(outcome=Outcome.FAILED, code=Code.UPSTREAM_ERROR, message=failure_words(end)[1])]


def _end_details(events: list[AnswerEvent]) -> list[AnswerEvent]:
    end = events[-1]
    assert isinstance(end, Ended)
    outcome = Outcome.STOPPED if end.outcome is Outcome.ABANDONED else end.outcome
    message = failure_words(end)[1] if has_failed(end) else None
    return [*events[:-1], Ended(outcome=outcome, code=end.code, message=message, usage=end.usage, marks=end.marks)]


def _only_complete(events: list[AnswerEvent]) -> list[AnswerEvent]:
    end = events[-1]
    assert isinstance(end, Ended)
    return events if has_failed(end) else [*events[:-1], Ended(outcome=Outcome.COMPLETE)]


def _known_usage(events: list[AnswerEvent]) -> list[AnswerEvent]:
    end = events[-1]
    assert isinstance(end, Ended)
    if end.usage is None or (end.usage.source is not Source.UNKNOWN and not has_failed(end)):
        return events
    return [*events[:-1], msgspec.structs.replace(end, usage=None)]


def _failed_details(events: list[AnswerEvent]) -> list[AnswerEvent]:
    end = events[-1]
    assert isinstance(end, Ended)
    if not has_failed(end):
        return events
    silent = all(isinstance(event, Started) for event in events[:-1])
    kept = [] if silent else events[:-1]
    return [*kept, Ended(outcome=end.outcome, code=end.code, message=failure_words(end)[1])]


def _model_only(events: list[AnswerEvent]) -> list[AnswerEvent]:
    return [
        Started(exchange=event.exchange, conversation="", model=event.assistant or event.model)
        if isinstance(event, Started)
        else event
        for event in events
    ]


def _calls_last(events: list[AnswerEvent]) -> list[AnswerEvent]:
    calls = [event for event in events if isinstance(event, ToolCalled)]
    end = events[-1]
    assert isinstance(end, Ended)
    kept = [event for event in events[:-1] if not isinstance(event, ToolCalled)]
    if has_failed(end) and not calls:
        return events
    return [*kept, *([] if has_failed(end) else calls), end]


def _own_call_ids(events: list[AnswerEvent]) -> list[AnswerEvent]:
    taken: set[str] = set()
    names: dict[str, str] = {}
    kept: list[AnswerEvent] = []
    for event in events:
        if isinstance(event, ToolCalled):
            name, number = event.id, 1
            while name in taken:
                number += 1
                name = f"{event.id}~{number}"
            taken.add(name)
            names[event.id] = name
        if isinstance(event, ToolCalled | ToolReturned):
            event = msgspec.structs.replace(event, id=names.get(event.id, event.id))
        kept.append(event)
    return kept


def _announced(events: list[AnswerEvent]) -> list[AnswerEvent]:
    names: dict[str, str] = {}
    kept: list[AnswerEvent] = []
    for event in events:
        if isinstance(event, ToolReturned) and names.get(event.id) != event.name:
            kept.append(ToolCalled(id=event.id, name=event.name))
        if isinstance(event, ToolCalled | ToolReturned):
            names[event.id] = event.name
        kept.append(event)
    return kept


def _as_is(events: list[AnswerEvent]) -> list[AnswerEvent]:
    return events


LOST: dict[str, Change] = {
    "json": _as_is,  # values JSON has no word for: tested by themselves
    "cuts": joined,
    "brace": _as_is,  # this and the next three are what other clients lose, not ours
    "trim": _as_is,
    "lines": _as_is,
    "separators": _as_is,
    "cr": _line_feeds,
    "started": without(Started),
    "conversation": change(Started, conversation="", assistant="", model=""),
    "names": _model_only,
    "routing": without(Routed),
    "routing_late": _first_routing,
    "reasoning": without(Reasoning),
    "tools": without(ToolCalled, ToolReturned),
    "tools_own": _calls_last,
    "tool_results": without(ToolReturned),
    "sources": without(Cited),
    "turns": without(TurnEnded),
    "usage": change(Ended, usage=None),
    "usage_unasked": _known_usage,
    "end": _only_complete,
    "end_details": _end_details,
    "marks": change(Ended, marks=()),
    "code": _no_code,
    "shown": change(Ended, shown=0),
    "failed_details": _failed_details,
    "call_ids": _own_call_ids,
    "tools_unannounced": _announced,
    "tool_status": _as_is,  # of a tool that failed: tested by itself
}
"""What each named loss takes from an answer. A loss that is declared and not here fails the tests."""


def carried(protocol: Protocol, events: Sequence[AnswerEvent]) -> list[AnswerEvent]:
    """What `protocol` says it carries of an answer."""
    kept = list(events)
    for loss in protocol.cannot_carry:
        kept = LOST[loss.name](kept)
    return joined(kept)
