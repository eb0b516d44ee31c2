"""What a case shows: pure functions from what the visitor heard and the model saw to a verdict."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from motamot.exam import tools
from motamot.exam.case import LATE_SECONDS, Case
from motamot.exam.resuming import NOTHING_THERE
from motamot.exam.visitor import Heard
from motamot.findings import Level
from motamot.findings.difference import difference
from motamot.scripted import Received

__all__ = ["Passed", "Seen", "Verdict", "judge"]

_QUOTE = 120


class Passed(StrEnum):
    """What became of a case. Only `passed` counts as passed."""

    PASSED = "passed"
    FAILED = "failed"
    NOTED = "noted"  # what is only a note did not hold
    NOT_JUDGED = "not judged"
    COULD_NOT_RUN = "could not run"


@dataclass(slots=True)
class Seen:
    """What one run of a case showed.

    heard:    by the ending of the word, the answers to its question (several where it was asked several times at once).
    requests: what reached the model for this case, in order; helpers: what else reached it meanwhile.
    late:     gates that were opened because visitors had not got the text before them in time, and how many had not.
    stopped_at: `time.monotonic()` of the visitor's stop.
    tool:     of the chatbot's, which the model called where the case says so.
    """

    heard: dict[str, list[Heard]] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    helpers: list[Received] = field(default_factory=list)
    late: dict[str, int] = field(default_factory=dict)
    stopped_at: float | None = None
    tool: tools.Tool | None = None

    @property
    def first(self) -> Heard | None:
        """The answer to the first question."""
        return self.heard[""][0] if self.heard.get("") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one case.

    problems: what did not hold, one sentence each, with what was seen. reason: why it was not judged, or not run.
    notes:    what an owner should know, whatever became of the case.
    tokens:   that the visitor's answer cost more than one completion would have. first_text: seconds, or None.
    """

    case: Case
    passed: Passed
    problems: tuple[str, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()
    wasted: int = 0
    first_text: float | None = None
    seen: Seen | None = None


def judge(case: Case, seen: Seen, claims: frozenset[str]) -> Verdict:
    """The verdict on one run.

    claims: what this kind of chatbot can tell its visitor (`Preset.claims`).
    """
    heard = seen.first
    first_text = heard.first_text if heard is not None else None
    if missing := case.needs - claims:
        told = _MISSING[min(missing)]
        return Verdict(case=case, passed=Passed.NOT_JUDGED, reason=told, seen=seen, first_text=first_text)
    if not seen.requests and _stopped_in_time(case, seen):
        return Verdict(case=case, passed=Passed.PASSED, notes=(_NOT_ASKED,), seen=seen)
    if not seen.requests:
        return Verdict(case=case, passed=Passed.COULD_NOT_RUN, reason=_unreached(seen), seen=seen)
    if reason := _unjudged(case, seen):
        return Verdict(case=case, passed=Passed.NOT_JUDGED, reason=reason, seen=seen, first_text=first_text)
    problems = tuple(_problems(case, seen, claims))
    passed = Passed.PASSED
    if problems:
        passed = Passed.NOTED if case.level is Level.NOTE else Passed.FAILED
    again = _same(seen.requests)
    return Verdict(
        case=case,
        passed=passed,
        problems=problems,
        notes=tuple(_notes(seen)),
        wasted=sum(_tokens(one) for one in again),
        first_text=first_text,
        seen=seen,
    )


_MISSING = {
    "ends": "this kind of stream cannot say whether an answer is complete",
    "errors": "this kind of stream cannot say that an answer failed",
    "history": "each question of this kind stands alone",
    "keys": "a question of this kind has no name, and cannot be told from the same one asked again",
    "memory": "what was said before comes from the client, and not from this chatbot",
    "reconnect": "clients of this kind do not come back to an answer",
    "resume": "clients of this kind do not come back to an answer",
    "seen": "a stop of this kind does not say what was seen",
    "stop": "this kind of chatbot has no stop",
    "tool": "this chatbot offers the model no tool",
    "tool-run": "this chatbot leaves it to its visitor's page to go on after a tool call",
    "upstream-chat": "this chatbot asks the model by another interface, in which this cannot be said",
    "usage": "this kind of stream does not say what was used",
}


_NOT_ASKED = "the visitor stopped before the chatbot had asked the model, and it was not asked any more"


def _stopped_in_time(case: Case, seen: Seen) -> bool:
    """Whether a stop, meant to come before the first word, came before the model was asked at all: nothing is lost."""
    heard = seen.first
    waited = any(act.what in ("until", "turn", "said") for act in case.visit)
    if case.expect.cancelled is None or seen.stopped_at is None or waited or heard is None:
        return False
    return heard.left and not (heard.refused or heard.broke or seen.helpers)


def _unreached(seen: Seen) -> str:
    if seen.helpers:
        return "the question that reached the model did not hold the case's word: it was changed on its way"
    heard = seen.first
    if heard is not None and heard.refused:
        return f"the chatbot refused the question ({_quote(heard.refused)}) and did not ask the model"
    if heard is not None and heard.broke:
        return f"the connection to the chatbot broke ({_quote(heard.broke)}), and the model was not asked"
    return "the model was not asked: does the chatbot use the address of the scripted model?"


def _unjudged(case: Case, seen: Seen) -> str:
    """Why a run that reached the model shows nothing of what the case is about; "" where it does."""
    heard = seen.heard.get("", ())
    limited = [one for one in heard if one.status in (429, 503)]
    if case.visitors > 1 and limited:
        told = _quote(limited[0].refused)
        return f"the chatbot refused {len(limited)} of {case.visitors} ({told}): raise its limits for the exam"
    if "resume" in case.needs and heard and heard[0].status in NOTHING_THERE and not heard[0].request.body:
        return f"this chatbot has no way back to an answer ({heard[0].status} at {heard[0].request.url})"
    # A stream may take many bytes for little text (Gradio: the answer so far, in each event); one without end is wrong.
    if heard and heard[0].too_much and (case.expect.text or "").startswith(heard[0].text):
        return f"{heard[0].broke} for the first {len(heard[0].text)} characters, and the exam reads no further"
    if case.expect.calls == 0 and seen.tool is not None and not seen.tool.arguments():
        return f"the chatbot's tool {seen.tool.name} needs no argument: that it was run without them cannot be told"
    return ""


def _problems(case: Case, seen: Seen, claims: frozenset[str]) -> Iterator[str]:
    expect, heard = case.expect, seen.first
    assert heard is not None
    if heard.timed_out:
        yield "the answer did not end within 30 s"
    if expect.text is not None:
        yield from _exact(expect.text, heard, cr="cr" in claims)
    if expect.own:
        yield from _own(case, seen)
    yield from _holds(expect.holds, heard)
    if expect.starts is not None and not _begins(heard.text, expect.starts, seen):
        yield f"the visitor has {_quote(heard.text)!r}, which is not what the model had said by then"
    for text in expect.never:
        if text in heard.text:
            yield f"the visitor's text holds {_quote(text)!r}"
    body = b"".join(piece.data for piece in heard.pieces).decode("utf-8", "replace")
    for text in expect.secret:
        if text in body:
            yield f"the model's server had said {_quote(text)!r} to the owner, and the visitor is told"
    if expect.error and "errors" in claims and not heard.failed:
        yield f"the model failed, and the visitor is told of no error; the text is {_quote(heard.text)!r}"
    if expect.told and not heard.text and not heard.failed:
        yield f"the visitor has neither text nor an error: {_ending(heard)}"
    if expect.whole is True and not heard.whole and "ends" in claims:
        yield f"the answer was complete, and the visitor is told that it is not: {_ending(heard)}"
    if expect.whole is False and heard.whole and "ends" in claims:
        yield "the answer was cut, and the visitor takes it for complete"
    if expect.live:
        yield from _live(case, seen)
    if expect.completions is not None:
        yield from _once(expect.completions, seen)
    if expect.cancelled is not None:
        yield from _cancelled(expect.cancelled, seen)
    if expect.following:
        yield from _following(case, seen)
    if expect.usage is not None and "usage" in claims:
        yield from _usage(expect.usage, heard)
    if expect.calls is not None and seen.tool is not None:
        later = [one for one in seen.requests if one.turn]
        yield from tools.problems(seen.tool, expect.calls, later[-1].body if later else None)
    if expect.asked is not None and len(seen.requests) > expect.asked:
        yield f"the model was asked {len(seen.requests)} times, where {expect.asked} would do"


def _exact(wanted: str, heard: Heard, *, cr: bool = True) -> Iterator[str]:
    """cr: of the text; where the stream has no way to carry it, every line end is as good as LF."""
    if heard.text == wanted or (not cr and _lines(heard.text) == _lines(wanted)):
        return
    if heard.refused:
        yield f"the chatbot refused the question: {_quote(heard.refused)}"
        return
    told = difference(wanted, heard.text)
    yield f"the visitor's text is not the model's ({told.told}): {_quote(heard.text)!r} instead of {_quote(wanted)!r}"


def _own(case: Case, seen: Seen) -> Iterator[str]:
    """What each of several visitors has, and whose it is."""
    said = {ending: case.said(ending) for ending in case.played()}
    wrong = [(ending, one) for ending, one in zip(said, seen.heard[""], strict=True) if one.text != said[ending]]
    if not wrong:
        return
    ending, heard = wrong[0]
    # Which white space is lost is another question, which other cases put.
    if all(one.text.split() == said[ending].split() for ending, one in wrong):
        yield f"{len(wrong)} of {case.visitors} visitors have the answer to their own question with other white space"
    else:
        yield f"{len(wrong)} of {case.visitors} visitors have not the answer to their own question"
    yield from _exact(said[ending], heard)


def _holds(wanted: Sequence[str], heard: Heard) -> Iterator[str]:
    at = 0
    for text in wanted:
        found = heard.text.find(text, at)
        if found < 0:
            yield f"the visitor's text does not hold {_quote(text)!r} in its place: {_quote(heard.text)!r}"
            return
        at = found + len(text)


def _live(case: Case, seen: Seen) -> Iterator[str]:
    for gate, missing in seen.late.items():
        before = case.gates[gate]
        if case.visitors > 1:
            yield (
                f"{missing} of {case.visitors} visitors had no text while the answers of the others went on: "
                "who comes late waits for the others' ends"
            )
        else:
            yield (
                f"the model had said {_quote(before)!r}, and {LATE_SECONDS:g} s later the visitor had not got it: "
                "the answer is held back"
            )


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _begins(text: str, wanted: str, seen: Seen) -> bool:
    said = "".join(_said(one) for one in seen.requests[:1])
    return text.startswith(wanted) and (said.startswith(text) or text == wanted)


def _said(request: Received) -> str:
    """The text that the model had sent, as far as chat completions tell it."""
    found: list[str] = []
    for piece in request.pieces:
        for line in (piece.data or b"").split(b"\n"):
            if line.startswith(b"data: {"):
                try:
                    told = json.loads(line[6:])
                except ValueError:
                    continue
                found += (str((one.get("delta") or {}).get("content") or "") for one in told.get("choices") or ())
    return "".join(found)


def _ending(heard: Heard) -> str:
    if heard.refused:
        return _quote(heard.refused)
    if heard.broke:
        return f"the connection broke ({_quote(heard.broke)})"
    return f"it ended as {heard.end.outcome}" if heard.end is not None else "it has no end"


def _same(requests: Sequence[Received]) -> list[Received]:
    """The requests that ask the model what an earlier one had asked: the same body but for `stream`."""
    known: set[str] = set()
    again = []
    for one in requests:
        key = _key(one.body)
        if key in known:
            again.append(one)
        known.add(key)
    return again


def _key(body: Any) -> str:
    if not isinstance(body, dict):
        return repr(body)
    asked = {name: body.get(name) for name in ("messages", "input", "system", "instructions")}
    return json.dumps(asked, sort_keys=True)


def _once(allowed: int, seen: Seen) -> Iterator[str]:
    again = _same(seen.requests)
    extra = len(again) - (allowed - 1)
    if extra > 0:
        how = ""
        if [one.stream for one in seen.requests[:2]] == [False, True]:
            how = "first whole and then as a stream"
        elif any(one.status == 200 and one.sent_bytes for one in seen.requests[:-1]):
            how = "again, though it had answered"
        yield (
            f"the model was asked the same {len(again) + 1} times" + (f" ({how})" if how else "") + ": "
            f"{sum(_tokens(one) for one in again)} tokens are paid for nothing"
        )


def _tokens(request: Received) -> int:
    """What a completion of the script counts, prompt and answer, where it answered."""
    if request.status != 200 or not isinstance(request.body, dict):
        return 0
    return len(json.dumps(request.body).split()) + request.sent_pieces


def _cancelled(within: float, seen: Seen) -> Iterator[str]:
    if seen.stopped_at is None:
        return
    for one in seen.requests:
        left = one.left_at is not None and one.ended == "left"  # who leaves after the end has heard it out
        if left and one.left_at is not None and one.left_at - seen.stopped_at <= within:
            continue
        if one.ended == "clean" and one.done_at is not None and one.done_at < seen.stopped_at:
            continue  # an earlier turn, which had ended
        if left and one.left_at is not None:
            when = f"only after {one.left_at - seen.stopped_at:.1f} s"
        else:
            when = "it ran on to its end" if one.ended is not None else "it was still at it"
        yield f"the visitor had left, and the model did not see it within {within:g} s: {when}"


def _following(case: Case, seen: Seen) -> Iterator[str]:
    wanted: Mapping[str, Any] = case.expect.following
    later = [one for one in seen.requests if one.script and one.script != case.word]
    if not later:
        yield "the next question did not reach the model"
        return
    body = later[0].body if isinstance(later[0].body, dict) else {}
    messages = _conversation(body)
    told = json.dumps(messages, ensure_ascii=False)
    for text in wanted.get("has", ()):
        if json.dumps(text, ensure_ascii=False)[1:-1] not in told:
            yield f"the next question does not tell the model {_quote(text)!r}, which the visitor had been shown"
    for text in wanted.get("has_not", ()):
        if json.dumps(text, ensure_ascii=False)[1:-1] in told:
            yield f"the next question tells the model {_quote(text)!r}, which nobody said"
    if wanted.get("alternates"):
        roles = [one.get("role") for one in messages if isinstance(one, dict)]
        talk = [role for role in roles if role in ("user", "assistant")]
        if any(one == other for one, other in itertools.pairwise(talk)):
            yield f"the next question has two messages of the same role in a row ({', '.join(map(str, roles))})"


def _conversation(body: Mapping[str, Any]) -> list[Any]:
    """What a request tells the model was said: its messages, or (OpenAI's Responses) its input."""
    told = body.get("messages") or body.get("input") or []
    return told if isinstance(told, list) else [{"role": "user", "content": told}]


def _usage(wanted: tuple[int, int], heard: Heard) -> Iterator[str]:
    usage = heard.usage
    told = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else None
    if told != wanted:
        seen = "nothing" if told is None else f"{told[0]} + {told[1]} tokens"
        yield f"the model reported {wanted[0]} + {wanted[1]} tokens, and the client is told {seen}"


def _notes(seen: Seen) -> Iterator[str]:
    if seen.helpers:
        yield f"{len(seen.helpers)} more request(s) reached the model: titles, suggestions or the like"


def _quote(text: str) -> str:
    return text if len(text) <= _QUOTE else text[: _QUOTE - 1] + "…"
