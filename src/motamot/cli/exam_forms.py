"""An examination as text for people, as JSON, as JUnit XML, and as one page of HTML without a script. Pure."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from motamot.cli.console import harmless
from motamot.exam.judging import Passed, Verdict
from motamot.exam.report import Report
from motamot.exam.visitor import Heard
from motamot.findings import Promise

__all__ = ["JSON_VERSION", "html_page", "json_text", "junit", "people"]

JSON_VERSION = 1
"""Of the document that `--json` writes: it changes when a program that reads it would break."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLES = {Passed.PASSED: "32", Passed.FAILED: "31", Passed.NOTED: "36", Passed.COULD_NOT_RUN: "33"}
_WIRE_BYTES = 4_000  # of one answer that are shown
_HEADS = (Passed.PASSED, Passed.FAILED, Passed.NOTED, Passed.NOT_JUDGED, Passed.COULD_NOT_RUN)


# For people


def people(report: Report, *, width: int, colours: bool) -> str:
    """The table by promise, then each case that did not pass, with its rule and its remedy."""

    def paint(text: str, kind: Passed) -> str:
        return f"\x1b[{_STYLES[kind]}m{text}\x1b[0m" if colours and kind in _STYLES else text

    lines = [f"{report.url}, asked as {report.preset}: {len(report.verdicts)} cases in {report.took:.0f} s", ""]
    lines.append("  " + " ".join([f"{'promise':<10}", *(f"{head:>13}" for head in _HEADS)]))
    for promise in Promise:
        counted = report.count(promise)
        if counted:
            cells = [paint(f"{counted[kind] or '-':>13}", kind) if counted[kind] else f"{'-':>13}" for kind in _HEADS]
            lines.append("  " + " ".join([f"{promise:<10}", *cells]))
    for verdict in report.of(Passed.FAILED, Passed.NOTED, Passed.COULD_NOT_RUN):
        lines += ["", *_verdict(report, verdict, width, paint)]
    unjudged = list(report.of(Passed.NOT_JUDGED))
    if unjudged:
        lines.append("")
        for reason in dict.fromkeys(one.reason for one in unjudged):
            numbers = ", ".join(str(one.case.number) for one in unjudged if one.reason == reason)
            lines += _filled(f"{reason} ({numbers})", "  not judged: ", width)
    return "\n".join([*lines, "", _sum(report)]) + "\n"


def _verdict(report: Report, one: Verdict, width: int, paint: Any) -> Iterator[str]:
    case = one.case
    yield paint(f"{case.number} {case.title}", one.passed) + f"  ({case.promise}, {case.level}; {one.passed})"
    for problem in one.problems:
        yield from _filled(problem, "    ", width)
    if one.reason:
        yield from _filled(one.reason, "    ", width)
    if one.passed is Passed.COULD_NOT_RUN:
        return
    for name, words in (("seen", case.harm), ("rule", case.clause), ("remedy", case.remedy)):
        yield from _filled(words, f"    {name:<7}", width)
    if told := _cost(one):
        yield from _filled(told, f"    {'cost':<7}", width)
    for note in one.notes:
        yield from _filled(note, f"    {'note':<7}", width)
    yield f"    {'again':<7}{report.again(one)}"


def _cost(one: Verdict) -> str:
    parts = []
    if one.wasted:
        parts.append(f"about {one.wasted} tokens more than one answer")
    if one.first_text is not None:
        parts.append(f"{one.first_text:.2f} s before the first character")
    return ", ".join(parts)


def _sum(report: Report) -> str:
    counted = report.count()
    told = ", ".join(f"{counted[kind]} {kind}" for kind in _HEADS if counted[kind])
    return told + (f"; about {report.wasted} tokens paid for nothing" if report.wasted else "")


def _filled(words: str, first: str, width: int) -> list[str]:
    text = harmless(" ".join(words.split()))
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=True
    ) or [first.rstrip()]


# For programs


def json_text(report: Report) -> str:
    """One document; docs/exam.md has its schema."""
    told = {
        "version": JSON_VERSION,
        "url": report.url,
        "preset": report.preset,
        "seconds": round(report.took, 3),
        "status": report.status,
        "sums": {str(kind): number for kind, number in report.count().items()},
        "cases": [_json(report, one) for one in report.verdicts],
    }
    return json.dumps(told, ensure_ascii=True, indent=2) + "\n"


def _json(report: Report, one: Verdict) -> dict[str, Any]:
    case = one.case
    return {
        "number": case.number,
        "title": case.title,
        "promise": str(case.promise),
        "level": str(case.level),
        "verdict": str(one.passed),
        "problems": list(one.problems),
        "reason": one.reason or None,
        "notes": list(one.notes),
        "clause": case.clause,
        "harm": case.harm,
        "remedy": case.remedy,
        "wasted_tokens": one.wasted,
        "first_text": one.first_text,
        "completions": len(one.seen.requests) if one.seen is not None else 0,
        "again": report.again(one),
    }


def junit(report: Report) -> bytes:
    """JUnit XML: a suite for each promise."""
    root = Element("testsuites", name="motamot exam")
    for promise in Promise:
        verdicts = [one for one in report.verdicts if one.case.promise is promise]
        if not verdicts:
            continue
        counted = report.count(promise)
        suite = SubElement(
            root,
            "testsuite",
            name=promise,
            tests=str(len(verdicts)),
            failures=str(counted[Passed.FAILED]),
            errors=str(counted[Passed.COULD_NOT_RUN]),
            skipped=str(counted[Passed.NOT_JUDGED]),
        )
        for one in verdicts:
            case = SubElement(suite, "testcase", name=f"{one.case.number} {one.case.title}", classname=promise)
            told = _xml("\n".join([*one.problems, one.reason, one.case.remedy]).strip())
            if one.passed is Passed.FAILED:
                SubElement(case, "failure", message=_xml(one.problems[0]), type=str(one.case.level)).text = told
            elif one.passed is Passed.COULD_NOT_RUN:
                SubElement(case, "error", message=_xml(one.reason)).text = told
            elif one.passed is Passed.NOT_JUDGED:
                SubElement(case, "skipped", message=_xml(one.reason))
    written: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


# As a page

_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1c1c1e;--line:#d8d8dc;--soft:#66666c;--card:#f6f6f8;
--passed:#1a7f37;--failed:#c02020;--noted:#1f6feb;--unjudged:#77777d;--unrun:#9a6700}
@media(prefers-color-scheme:dark){:root{--ground:#17171a;--ink:#ececf0;--line:#3a3a40;--soft:#a2a2a8;--card:#202024;
--passed:#4cc368;--failed:#ff7b72;--noted:#79b8ff;--unjudged:#a2a2a8;--unrun:#e3b341}}
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2rem 1rem 4rem}h1{font-size:1.5rem;margin:0 0 .25rem}
h2{font-size:1.15rem;margin:2.5rem 0 .75rem}p{margin:.35rem 0}.soft{color:var(--soft)}
table{border-collapse:collapse;width:100%;margin:1.5rem 0}th,td{padding:.4rem .6rem;text-align:right;
border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums}th:first-child,td:first-child{text-align:left}
article{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--kind);border-radius:8px;
padding:.8rem 1rem;margin:.8rem 0;break-inside:avoid}article h3{font-size:1rem;margin:0}
.passed{--kind:var(--passed)}.failed{--kind:var(--failed)}.noted{--kind:var(--noted)}
.not-judged{--kind:var(--unjudged)}.could-not-run{--kind:var(--unrun)}.word{color:var(--kind);font-weight:600}
dl{display:grid;grid-template-columns:6rem 1fr;gap:.15rem .8rem;margin:.6rem 0}dt{color:var(--soft)}dd{margin:0;
overflow-wrap:anywhere}pre{background:var(--ground);border:1px solid var(--line);border-radius:6px;padding:.6rem;
overflow:auto;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere;max-height:24rem}
summary{cursor:pointer;color:var(--soft)}code{font-size:.9em}ul{padding-left:1.2rem;columns:18rem}
@media print{pre{max-height:none}article{border-color:#999}}
"""


def html_page(report: Report) -> str:
    """A whole page: no script, nothing from another host, every text escaped."""
    counted = report.count()
    word = {0: "nothing was lost", 1: "something was lost", 2: "it could not be judged"}[report.status]
    failed = list(report.of(Passed.FAILED, Passed.COULD_NOT_RUN, Passed.NOTED))
    unjudged = list(report.of(Passed.NOT_JUDGED))
    passed = [one for one in report.verdicts if one.passed is Passed.PASSED]
    return "".join(
        [
            "<!doctype html><html lang=en><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width,initial-scale=1">',
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'none';style-src 'unsafe-inline'\">",
            f"<title>motamot exam: {_e(word)}</title><style>{_STYLE}</style><main>",
            f"<h1>motamot exam: {_e(word)}</h1>",
            f"<p class=soft>{_e(report.url)}, asked as {_e(report.preset)}: ",
            f"{sum(counted.values())} cases in {report.took:.0f} s</p>",
            _table(report),
            "<h2>What did not hold</h2>" if failed else "",
            *(_article(report, one) for one in failed),
            "<h2>What could not be judged</h2>" if unjudged else "",
            *(_article(report, one) for one in unjudged),
            "<h2>What held</h2><ul>" if passed else "",
            *(f"<li>{one.case.number} {_e(one.case.title)}</li>" for one in passed),
            "</ul>" if passed else "",
            "</main></html>\n",
        ]
    )


def _e(text: object) -> str:
    return html.escape(harmless(str(text)))


def _table(report: Report) -> str:
    heads = "".join(f"<th>{kind}</th>" for kind in _HEADS)
    rows = []
    for promise in Promise:
        if counted := report.count(promise):
            cells = "".join(
                f'<td class="{_class(kind)}">'
                + (f"<span class=word>{counted[kind]}</span>" if counted[kind] else "–")
                + "</td>"
                for kind in _HEADS
            )
            rows.append(f"<tr><td>{promise}</td>{cells}</tr>")
    return f"<table><tr><th>promise</th>{heads}</tr>{''.join(rows)}</table>"


def _class(kind: Passed) -> str:
    return str(kind).replace(" ", "-")


def _article(report: Report, one: Verdict) -> str:
    case = one.case
    told = "".join(f"<p>{_e(problem)}</p>" for problem in (*one.problems, *filter(None, [one.reason])))
    facts = [("promise", f"{case.promise}, {case.level}")]
    if one.passed in (Passed.FAILED, Passed.NOTED):
        facts += [("seen", case.harm), ("rule", case.clause), ("remedy", case.remedy)]
        facts += [("cost", cost)] if (cost := _cost(one)) else []
    facts += [("note", note) for note in one.notes]
    rows = "".join(f"<dt>{name}</dt><dd>{_e(words)}</dd>" for name, words in facts)
    return (
        f'<article class="{_class(one.passed)}" id="case-{case.number}"><h3>{case.number} {_e(case.title)} '
        f"<span class=word>{one.passed}</span></h3>{told}<dl>{rows}<dt>again</dt><dd><code>{_e(report.again(one))}"
        f"</code></dd></dl>{_wire(one)}</article>"
    )


def _wire(one: Verdict) -> str:
    if one.seen is None:
        return ""
    parts = [
        f"<p class=soft>{_e(one.case.question(ending))}</p><pre>{_e(_shown(heard))}</pre>"
        for ending, heards in one.seen.heard.items()
        for heard in heards
    ]
    return f"<details><summary>the wire</summary>{''.join(parts)}</details>" if parts else ""


def _shown(heard: Heard) -> str:
    """The response as it came: status, headers, and the pieces with their times."""
    lines = [f"HTTP {heard.status}", *(f"{name}: {value}" for name, value in heard.headers), ""]
    size = 0
    for at, data in heard.pieces:
        lines.append(f"[{at:.3f} s] " + data[: _WIRE_BYTES - size].decode("utf-8", "replace"))
        size += len(data)
        if size >= _WIRE_BYTES:
            lines.append("…")
            break
    return "\n".join(lines)
