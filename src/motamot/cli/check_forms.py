"""A check as text for people, as JSON for programs, as JUnit XML for build servers. Pure.

What a server or a page sent stands in all of them without control characters and on one line.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from motamot.cli.check_report import Checked, Report, State
from motamot.cli.console import counted, harmless
from motamot.findings import Evidence, Examination, Finding, Level, Promise
from motamot.findings.recognise import PROTOCOLS
from motamot.protocols._json import encodable, encode_line
from motamot.tape import Tape

__all__ = ["JSON_VERSION", "json_text", "junit", "people"]

JSON_VERSION = 1
"""Of the document that `--json` writes: it changes when a program that reads it would break."""

_STYLES = {"lost": "31", "kept": "32", "head": "1", "must": "31", "should": "33", "note": "36", "quiet": "2"}
_NAME = 10  # cells of a promise's name
_WORDS = 4_000  # characters of one thing that is told; longer is nothing but a stranger's
_HEADING = 300
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")  # clauses are written for docs/findings.md
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


# For people


def people(report: Report, *, width: int, colours: bool) -> str:
    """Each recording: what it is, its promises, its findings with evidence, rule and remedy; then the sum."""
    paint = _Paint(colours)
    blocks = ["\n".join(_recording(one, width, paint)) for one in report.recordings]
    return "\n\n".join([*blocks, _sum(report, paint)]) + "\n"


class _Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._on else text


def _recording(one: Checked, width: int, paint: _Paint) -> Iterator[str]:
    name = harmless(" ".join(one.name.split()))
    yield paint(name if len(name) <= _HEADING else name[: _HEADING - 1] + "…", "head")
    if one.problem is not None:
        word = "no stream" if one.skipped else "not checked"
        yield from _filled(one.problem.removeprefix("no event stream: "), f"  {word}: ", width)
        yield from _findings(one.findings, width, paint)
        return
    for name, words in _facts(one):
        yield from _filled(words, f"  {name:<{_NAME}} ", width)
    if one.unjudged is not None and one.state is State.UNCHECKED:
        yield from _filled(one.unjudged, "  not checked: ", width)
    yield ""
    for promise in Promise:
        told = one.judged(promise)
        state = told.partition(":")[0]
        style = state if state in _STYLES else "quiet"
        yield from _filled(told, f"  {promise:<{_NAME}} ", width, first=(state, paint, style))
    yield from _findings(one.findings, width, paint)


def _facts(one: Checked) -> Iterator[tuple[str, str]]:
    if one.examined is not None and one.tape is not None:
        examined, tape = one.examined, one.tape
        sure = examined.recognised
        yield "protocol", f"{examined.protocol}, {PROTOCOLS[examined.protocol]} ({sure.sure}: {sure.why})"
        yield "answer", _figures(examined, tape)
        if one.failed is not None:
            yield "ended", f"failed ({one.failed})" if one.failed else "failed"
        elif examined.ended is not None:
            yield "ended", examined.ended
        if times := _times(examined, tape):
            yield "times", times
        if examined.usage is not None:
            usage = examined.usage
            yield "tokens", f"{usage.prompt_tokens} + {usage.completion_tokens}, as the provider reports them"
    if one.whole is not None:
        place = f" (at {one.whole.path})" if one.whole.path else ""
        equal = "yes" if one.whole.equal else "no"
        yield "whole", f"{counted(one.whole.characters, 'character')}{place}; the stream's text is equal to it: {equal}"
    if one.compared is not None:
        if one.compared.where:
            yield "page", f"{counted(one.compared.shown, 'character')} shown in {one.compared.where}"
        for reason in one.compared.reasons:
            yield "page", f"not judged: {reason}"
    for note in one.examined.notes if one.examined is not None else ():
        yield "note", note


def _figures(examined: Examination, tape: Tape) -> str:
    head = f"HTTP {tape.status}, " if tape.status is not None else ""
    reads = f" in {counted(len(tape.pieces), 'read')}" if tape.timed else ""
    return (
        f"{head}{counted(examined.bytes, 'byte')}{reads}, {counted(examined.events, 'event')}, "
        f"{counted(examined.deltas, 'delta')}, {counted(len(examined.text), 'character')} of text"
    )


def _times(examined: Examination, tape: Tape) -> str:
    times = examined.times
    named = (("head", times.head), ("first text", times.first_text), ("last text", times.last_text), ("end", times.end))
    told = [f"{name} {at:.2f} s" for name, at in named if at is not None]
    ends = {"closed": "closed by the server", "reset": "the connection broke", "left": "whoever read it left"}
    if tape.end in ends:
        told.append(ends[tape.end])
    return ", ".join(told)


def _findings(findings: Sequence[Finding], width: int, paint: _Paint) -> Iterator[str]:
    for finding in findings:
        fault = finding.fault
        yield ""
        head = f"{fault.id}  {fault.level}, {fault.promise}: {fault.title}"
        yield from _filled(head, "", width, first=(fault.id, paint, str(fault.level)))
        times = f" ({finding.times} times)" if finding.times > 1 else ""
        yield from _filled(finding.message.rstrip(".") + times, f"  {'seen':<{_NAME}} ", width)
        for evidence in finding.evidence:
            yield from _filled(_evidence(evidence), f"  {'':<{_NAME}} ", width)
        if finding.times > len(finding.evidence) > 1:
            yield from _filled("…", f"  {'':<{_NAME}} ", width)
        yield from _filled(fault.harm, f"  {'harm':<{_NAME}} ", width)
        yield from _filled(fault.remedy, f"  {'remedy':<{_NAME}} ", width)
        yield from _filled(_LINK.sub(r"\1 <\2>", fault.clause), f"  {'rule':<{_NAME}} ", width)


def _evidence(evidence: Evidence) -> str:
    where = []
    if evidence.offset is not None:
        where.append(f"byte {evidence.offset:,}")
    if evidence.at is not None:
        where.append(f"{evidence.at:.2f} s")
    return ", ".join(where) + (": " if where and evidence.quote else "") + _quoted(evidence.quote)


def _quoted(quote: str) -> str:
    """One line, in which a line end is seen as such."""
    return harmless(quote.replace("\r", "␍").replace("\n", "␊").replace("\t", "␉"))


def _filled(words: str, lead: str, width: int, *, first: tuple[str, _Paint, str] | None = None) -> list[str]:
    """`words`, made harmless, after `lead`, on lines of at most `width` cells; an address is never cut.

    first: what they begin with, and its colour: put on last, so that no colour of a stranger's gets through.
    """
    words, blank = harmless(words[:_WORDS]), " " * len(lead)
    wrapped = textwrap.wrap(words, max(40, width - len(lead)), break_long_words=False, break_on_hyphens=False) or [""]
    if first is not None and wrapped[0].startswith(first[0]):
        begin, paint, style = first
        wrapped[0] = paint(begin, style) + wrapped[0][len(begin) :]
    return [(lead if not number else blank) + line for number, line in enumerate(wrapped)]


def _sum(report: Report, paint: _Paint) -> str:
    states = [one.state for one in report.recordings]
    counts = [(report.count(level), level) for level in Level]
    words = ", ".join(f"{number} {level}" for number, level in counts if number)
    if State.LOST in states:
        lost = (
            paint("lost", "lost") if len(states) == 1 else f"{states.count(State.LOST)} of {len(states)} lost something"
        )
        text = f"{lost}: {counted(sum(number for number, _ in counts), 'finding')} ({words})"
    elif State.KEPT in states and State.UNCHECKED not in states:
        part = " in what came: it is not all of the answer" if len(states) == 1 and report.recordings[0].part else ""
        text = paint("nothing lost", "kept") + part + (f" ({words})" if words else "")
        if len(states) > 1:
            text += f" in {counted(states.count(State.KEPT), 'stream')}"
    else:
        text = "nothing could be checked" if State.KEPT not in states else "nothing found in what could be checked"
    for state, noun in ((State.UNCHECKED, "could not be checked"), (State.SKIPPED, "without a stream")):
        if len(states) > 1 and state in states:
            text += f"; {states.count(state)} {noun}"
    return text


# For programs


def json_text(report: Report) -> str:
    """One document, as docs/check.md describes it."""
    told = {
        "motamot": "check",
        "version": JSON_VERSION,
        "exit": int(report.exit),
        "counts": {str(level): report.count(level) for level in Level},
        "recordings": [_json_recording(one) for one in report.recordings],
    }
    return encode_line(told).decode() + "\n"


def _json_recording(one: Checked) -> dict[str, Any]:
    told: dict[str, Any] = {"name": encodable(one.name), "state": str(one.state), "problem": _problem(one)}
    if one.tape is not None:
        asked = one.tape.request
        told |= {
            "source": one.tape.source,
            "request": None if asked is None else {"method": asked.method, "url": encodable(asked.url)},
            "status": one.tape.status,
            "end": one.tape.end,
            "reads": len(one.tape.pieces) if one.tape.timed else None,
        }
    if one.examined is not None:
        examined = one.examined
        usage = examined.usage
        told |= {
            "protocol": examined.protocol,
            "recognised": {"sure": examined.recognised.sure, "why": examined.recognised.why},
            "bytes": examined.bytes,
            "events": examined.events,
            "comments": examined.comments,
            "deltas": examined.deltas,
            "text_characters": len(examined.text),
            "ended": examined.ended,
            "failed": None if one.failed is None else encodable(one.failed),
            "times": {
                name: getattr(examined.times, name)
                for name in ("head", "first_byte", "first_delta", "first_text", "last_text", "end", "silence")
            },
            "usage": None
            if usage is None
            else {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
            "notes": list(examined.notes),
        }
    told["promises"] = {str(promise): _judged(one, promise) for promise in Promise}
    told["findings"] = [_json_finding(finding) for finding in one.findings]
    if one.whole is not None:
        told["whole"] = {"characters": one.whole.characters, "path": one.whole.path, "equal": one.whole.equal}
    if one.compared is not None:
        compared = one.compared
        told["page"] = {"where": compared.where, "characters": compared.shown, "not_judged": list(compared.reasons)}
    return told


def _problem(one: Checked) -> str | None:
    problem = one.problem or (one.unjudged if one.state is State.UNCHECKED else None)
    return None if problem is None else encodable(problem)


def _judged(one: Checked, promise: Promise) -> dict[str, str | None]:
    state, _, why = one.judged(promise).partition(": ")
    return {"state": state.replace(" ", "_"), "why": why or None}


def _json_finding(finding: Finding) -> dict[str, Any]:
    fault = finding.fault
    return {
        "id": fault.id,
        "promise": str(fault.promise),
        "level": str(fault.level),
        "title": fault.title,
        "message": encodable(finding.message),
        "times": finding.times,
        "evidence": [{"offset": one.offset, "at": one.at, "quote": encodable(one.quote)} for one in finding.evidence],
        "harm": fault.harm,
        "remedy": fault.remedy,
        "clause": fault.clause,
    }


def junit(report: Report) -> bytes:
    """A suite for each recording, a case for each promise: failed where it is lost, skipped where it was not judged."""
    suites = Element("testsuites", name="motamot check")
    for one in report.recordings:
        suite = SubElement(suites, "testsuite", name=_xml(one.name))
        count = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        for promise in Promise:
            case = SubElement(suite, "testcase", classname=_xml(one.name), name=str(promise))
            count["tests"] += 1
            lost = [finding for finding in one.findings if finding.fault.promise is promise and _counts(finding)]
            if lost:
                count["failures"] += 1
                message = "; ".join(f"{finding.id}: {finding.message}" for finding in lost)
                failure = SubElement(case, "failure", type=lost[0].id, message=_xml(message))
                failure.text = _xml("\n".join(_findings(lost, 100, _Paint(False))).strip())
            elif problem := _not_checked(one, promise):
                count["errors"] += 1
                SubElement(case, "error", type="not-checked", message=_xml(problem))
            elif (told := one.judged(promise)) != "kept":
                count["skipped"] += 1
                SubElement(case, "skipped", message=_xml(told))
        for name, number in count.items():
            suite.set(name, str(number))
    data: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _not_checked(one: Checked, promise: Promise) -> str | None:
    """Why a case is an error: of a stream that says nothing only the first promise is, the others are judged."""
    if one.skipped:
        return None
    return one.problem or (one.unjudged if promise is Promise.EXACT and one.state is State.UNCHECKED else None)


def _counts(finding: Finding) -> bool:
    return finding.fault.level is not Level.NOTE


def _xml(text: str) -> str:
    """`text` of such characters as XML 1.0 may hold."""
    return _NOT_XML.sub("\ufffd", harmless(encodable(text)))
