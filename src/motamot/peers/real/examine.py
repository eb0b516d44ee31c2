"""Libraries against the standard's rules and the hazards of answers, at many cuts; and the page that tells it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from motamot.peers.libraries.seen import Seen, SeenEvent
from motamot.peers.real.library import Library
from motamot.peers.real.rules import HAZARDS, RULES, Hazard
from motamot.sse import Decoder, Event, encode

__all__ = ["Report", "Verdict", "cuts", "examine", "few_cuts", "page"]

_HEAD = """\
# Real client libraries as readers

<!-- Made by `python -m motamot.peers.real`: run it again, do not edit. -->

What client libraries make of an event stream, seen over a real HTTP connection on one machine. Each read is an HTTP
chunk of its own, and each library is asked by the call that its users make. What is right is what WHATWG HTML,
“Server-sent events”, says; `motamot.sse` reads the same bytes, and is tested against the standard clause by clause.
A client that gives lines only (`iter_lines` and the like) has its lines read by the standard's rules here, so what it
gets wrong is its lines' fault. What a reader in Node gets wrong may be Node's: v24.19 drops a second byte-order mark
when a read has cut the first, v20.20 does not.""".splitlines()
_SUMMARY = """\
## Summary

*Rules*: those kept at every cut, of those that can show with this reader: it cannot lose an id that it never tells.
Each rule's stream is read whole, byte by byte, by three bytes, and cut in two at every place. *As text* and *as JSON*:
the awkward texts further down, each as the data of an event, and as JSON in it; whole and byte by byte. A reader that
parses the JSON of the data itself is tried with JSON only; the chat calls of OpenAI and Anthropic with theirs.

*`[DONE]`*: what an event with these six characters is to it, when events follow.

| reader | from | call | rules | as text | as JSON | `[DONE]` |
| --- | --- | --- | ---: | ---: | ---: | --- |""".splitlines()
_BY_TEXT = """\
## By text

As text, CR and CRLF are sent as the end of a line, and half a character as `?`: the data of an event cannot hold them.
What counts is whether a reader gives what the stream holds.

| text | as text, not given by | as JSON, not given by |
| --- | --- | --- |""".splitlines()
_APIS = ("openai", "anthropic")  # their readers take what is of that API and nothing else: no rule can show
_SHOWN_CHARS = 90  # of what a reader gives, in a line of the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a library made of one stream.

    name:  of the rule or the hazard.
    wrong: cuts at which it gave something else than the standard; tried: cuts in all.
    gave:  what it gave at the first of them, as text; "" where none was wrong.
    """

    name: str
    tried: int
    wrong: int = 0
    gave: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One library. Rules and hazards that cannot show with it are not in it.

    mark: what an event `[DONE]` is to it: `an event`, `the end`, `skipped`, or `throws`.
    """

    library: Library
    mark: str
    rules: tuple[Verdict, ...]
    plain: tuple[Verdict, ...]
    json: tuple[Verdict, ...]


def cuts(stream: bytes) -> Iterator[tuple[bytes, ...]]:
    """A stream as reads: whole, byte by byte, by three bytes, and in two at every place."""
    yield from few_cuts(stream)
    yield tuple(stream[at : at + 3] for at in range(0, len(stream), 3))
    for at in range(1, len(stream)):
        yield stream[:at], stream[at:]


def few_cuts(stream: bytes) -> Iterator[tuple[bytes, ...]]:
    """A stream as reads: whole, and byte by byte."""
    yield (stream,)
    yield tuple(stream[at : at + 1] for at in range(len(stream)))


def examine(library: Library, *, every_cut: bool = True) -> Report:
    """Try a library with every rule and hazard. every_cut: rules as `cuts` has it, else as `few_cuts`."""
    cut = cuts if every_cut else few_cuts
    rules = []
    for rule in RULES if library.stream not in _APIS else ():
        stream = rule.json if library.values else rule.stream
        if stream is not None and _shows(library, rule.name):
            rules.append(_try(library, rule.name, cut(stream), _standard(stream)))
    plain, in_json = [], []
    for hazard in HAZARDS:
        if not library.values:
            plain.append(_try(library, hazard.name, few_cuts(hazard.plain), _standard(hazard.plain)))
        right = _standard(hazard.json("json"))
        name = "content_block_delta" if library.stream == "anthropic" else "message"
        right = [event._replace(event=name) for event in right]
        in_json.append(_try(library, hazard.name, few_cuts(hazard.json(library.stream)), right, as_json=True))
    return Report(library=library, mark=_mark(library), rules=tuple(rules), plain=tuple(plain), json=tuple(in_json))


def _mark(library: Library) -> str:
    text = Hazard("", "a").json(library.stream)
    seen = library.read([text + encode("[DONE]") + text])
    if seen.threw is not None:
        return "throws"
    if any(event.data == "[DONE]" for event in seen.events):
        return "an event"
    return "the end" if len(seen.events) == 2 else "skipped"


def _shows(library: Library, rule: str) -> bool:
    """Whether a rule is about something that the library tells."""
    if "event type" in rule:
        return "event" in library.tells
    if rule in ("an id stays for the events after it", "an empty id resets it"):
        return "id" in library.tells
    if rule == "an id with NUL is ignored":
        return bool(library.tells & {"id", "own id"})
    return True


def _try(
    library: Library, name: str, streams: Iterable[tuple[bytes, ...]], right: Sequence[Event], *, as_json: bool = False
) -> Verdict:
    tried, wrong, gave = 0, 0, ""
    for reads in streams:
        tried += 1
        seen = library.read(reads)
        if not _same(library, seen, right, as_json=as_json or library.values):
            wrong += 1
            gave = gave or _shown(library, seen, len(reads))
    return Verdict(name=name, tried=tried, wrong=wrong, gave=gave)


def _standard(stream: bytes) -> list[Event]:
    decoder = Decoder()
    return decoder.feed(stream)


def _same(library: Library, seen: Seen, right: Sequence[Event], *, as_json: bool) -> bool:
    """Whether a library gave what the standard gives, as far as it tells."""
    if seen.threw is not None or len(seen.events) != len(right):
        return False
    return all(_same_event(library, ours, event, as_json) for ours, event in zip(seen.events, right, strict=True))


def _same_event(library: Library, ours: SeenEvent, right: Event, as_json: bool) -> bool:
    if as_json:
        try:
            if _value(ours.data) != _value(right.data):
                return False
        except ValueError:
            return False
    elif ours.data != right.data:
        return False
    if "event" in library.tells and ours.event != right.event:
        return False
    if "id" in library.tells and (ours.id or "") != right.id:
        return False
    return not ("own id" in library.tells and ours.id) or ours.id == right.id


def _value(data: str) -> Any:
    return json.loads(data)


def _shown(library: Library, seen: Seen, reads: int) -> str:
    """What a library gave, in a few words."""
    events = [
        (event.data if library.values else json.dumps(event.data))
        + (f" (event {event.event})" if event.event != "message" else "")
        + (f" (id {json.dumps(event.id)})" if event.id else "")
        for event in seen.events
    ]
    gave = ", ".join(events) or ("" if seen.threw else "nothing")
    if seen.threw:
        gave = f"{gave}, then throws {seen.threw}" if gave else f"throws {seen.threw}"
    gave = " ".join(gave.split())
    if len(gave) > _SHOWN_CHARS:
        gave = gave[: _SHOWN_CHARS - 1] + "…"
    return f"{gave} in {'one read' if reads == 1 else f'{reads} reads'}"


def page(reports: Sequence[Report], missing: Sequence[str], *, node: str, date: str) -> str:
    """docs/peers/readers.md. date: of the run, as ISO 8601; node: its version, "" where there was none."""
    with_node = f" and Node {node}" if node else ""
    lines = [
        *_HEAD,
        "",
        f"Made on {date} with Python {platform.python_version()}{with_node}. Other versions may read otherwise; run it",
        "again with yours, in a folder of its own:",
        "",
        "```text",
        "pip install motamot " + " ".join(_packages(reports, "PyPI")),
        "npm install " + " ".join(_packages(reports, "npm")),
        "MOTAMOT_NODE_MODULES=. python -m motamot.peers.real > readers.md",
        "```",
        "",
        *[f"Not there when this was made: {problem}.\n" for problem in missing],
        *_summary(reports),
        *_by_rule(reports),
        *_by_hazard(reports),
        *_by_library(reports),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _packages(reports: Sequence[Report], home: str) -> list[str]:
    sign = "==" if home == "PyPI" else "@"
    return sorted({f"{r.library.package}{sign}{r.library.version}" for r in reports if r.library.home == home})


def _summary(reports: Sequence[Report]) -> list[str]:
    lines = [*_SUMMARY]
    for report in sorted(reports, key=lambda r: -_share(r.rules)):
        library = report.library
        cells = [*(_kept(verdicts) for verdicts in (report.rules, report.plain, report.json)), report.mark]
        lines.append(
            f"| [{library.title}](#{_anchor(library)}) | {library.home} | `{library.how}` | {' | '.join(cells)} |"
        )
    return [*lines, ""]


def _share(verdicts: Sequence[Verdict]) -> float:
    return sum(not verdict.wrong for verdict in verdicts) / max(1, len(verdicts))


def _kept(verdicts: Sequence[Verdict]) -> str:
    return f"{sum(not verdict.wrong for verdict in verdicts)} of {len(verdicts)}" if verdicts else ""


def _anchor(library: Library) -> str:
    """As hosts make it of a heading: letters, digits and hyphens."""
    text = library.title.lower().replace(" ", "-")
    return "".join(character for character in text if character.isalnum() or character in "-_")


def _by_rule(reports: Sequence[Report]) -> list[str]:
    lines = [
        "## By rule",
        "",
        "| rule | source: WHATWG HTML, section | broken by |",
        "| --- | --- | --- |",
    ]
    for rule in RULES:
        broken = [r.library.title for r in reports for v in r.rules if v.name == rule.name and v.wrong]
        lines.append(f"| {rule.name} | {rule.clause} | {', '.join(broken) or '–'} |")
    return [*lines, ""]


def _by_hazard(reports: Sequence[Report]) -> list[str]:
    lines = [*_BY_TEXT]
    for hazard in HAZARDS:
        plain = [r.library.title for r in reports for v in r.plain if v.name == hazard.name and v.wrong]
        in_json = [r.library.title for r in reports for v in r.json if v.name == hazard.name and v.wrong]
        lines.append(f"| {hazard.name} | {', '.join(plain) or '–'} | {', '.join(in_json) or '–'} |")
    return [*lines, ""]


def _by_library(reports: Sequence[Report]) -> list[str]:
    lines = ["## By reader", ""]
    for report in reports:
        library = report.library
        lines += [f"### {library.title}", "", f"{library.home}, `{library.how}`. {_tells(library)}", ""]
        told = [
            *(("rule", verdict) for verdict in report.rules),
            *(("as text", verdict) for verdict in report.plain),
            *(("as JSON", verdict) for verdict in report.json),
        ]
        wrong = [(what, verdict) for what, verdict in told if verdict.wrong]
        for what, verdict in wrong:
            often = "" if verdict.wrong == verdict.tried else f" ({verdict.wrong} of {verdict.tried} cuts)"
            lines.append(f"- {what}: {verdict.name}{often}: gave `` {verdict.gave} ``")
        if not wrong:
            lines.append("Right everywhere.")
        lines.append("")
    return lines


def _tells(library: Library) -> str:
    if library.stream in _APIS:
        return "Tells the text of the answer."
    tells = ["the value of the JSON" if library.values else "the data"]
    if "event" in library.tells:
        tells.append("the event type")
    if "id" in library.tells:
        tells.append("the last event id")
    if "own id" in library.tells:
        tells.append("the id of the same block")
    return f"Tells {', '.join(tells)}."
