"""The wire against the page: what a right reader has of an answer, and what a visitor has of it. Pure.

A page may show an answer as plain text or as rendered Markdown. So letters and digits are compared, and where words
and lines end; what Markdown writes and does not show (the address of a link, the number of a list item, the language
of a code block, formulas and diagrams) is not asked for.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from motamot.errors import LimitExceeded
from motamot.exam.page import Heard, Look
from motamot.exam.page_faults import PAGE_FAULTS
from motamot.findings import Evidence, Finding
from motamot.sse import Decoder

__all__ = ["Compared", "compare"]

LINES = 5_000  # of an answer that are looked for
CHARACTERS = 1_000_000  # of an answer, and of an element, that are compared
EVENTS = 20_000  # of a stream that are looked at for what is no text
EVENT_BYTES = 1 << 20
ERRORS = 20  # of a stream that are looked for
HEAD = 40  # characters of an event's JSON by which it is known on a page
QUOTE = 200
_BEGIN = 100  # letters of an answer by which its element is known where no word of it is
_NUMBER = 9  # digits of a list item's number
LIKE = 0.25  # an element less like the answer than this is something else,
PART, PART_WORDS = 0.8, 3  # unless so much of its words, and so many, are the answer's: then the rest was lost
LIVE_SECONDS = 1.0  # an answer that came within less is at once for everybody

_FENCE = re.compile(r"\s*(?:>\s*)*(?:[-*+]\s+)?(`{3,}|~{3,})\s*([\w+.#-]*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_BLOCK = re.compile(r"\s*(?:[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s|>|\|)")
# Languages of code blocks that pages draw.
_DRAWN = frozenset(
    ("mermaid", "vextab", "abc", "plantuml", "dot", "graphviz", "math", "latex", "tex", "katex", "svg", "vega")
)
_GAP = "\0"  # here a page may show something, or nothing: what stands around it is looked for by itself
# Bounded repetitions: a text of nothing but openings is not searched to its end for each of them.
_SILENT = (
    (re.compile(r"<!--.{0,2000}?-->", re.DOTALL), _GAP),
    (re.compile(r"!\[[^\]\n]{0,500}\]\([^)\n]{0,2000}\)"), _GAP),
    (re.compile(r"\[([^\]\n]{0,500})\]\([^)\n]{0,2000}\)"), rf"\1{_GAP}"),
    (re.compile(r"\[\^[^\]\n]{0,100}\]:?"), _GAP),
    (re.compile(r"^[ \t]{0,8}\[[^\]\n]{1,500}\]:[ \t]*\S+.*$", re.MULTILINE), _GAP),
    (re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>"), _GAP),
    (re.compile(r"\$\$.{0,500}?\$\$|\\\(.{0,500}?\\\)|\\\[.{0,500}?\\\]", re.DOTALL), _GAP),
    (re.compile(r"\$(?=[^$\n]{0,300}[\\^_{])[^$\n]{1,300}\$"), _GAP),
    (re.compile(r"\$[^$\n]{1,100}=[^$\n]{1,100}\$"), _GAP),
)
_DATA = re.compile(r"^data: ?\S|data: \{", re.MULTILINE)
_PLACEHOLDERS = ("undefined", "[object Object]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the comparison gave.

    where:   the element that was read, "" where none was found.
    shown:   characters in it.
    findings: what the page does to the answer.
    reasons: what could not be judged, and why, a sentence each.
    """

    where: str = ""
    shown: int = 0
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


def compare(heard: Heard, text: str) -> Compared:
    """Compare an answer as it came with what the page shows of it.

    text: the answer as a right reader has it from the wire.
    """
    text = text[:CHARACTERS]
    payloads = _payloads(heard)
    # What carries no answer (news for the page) may be asked for as often as the page likes.
    findings = list(_once(heard)) if text or payloads else []
    if not heard.looks:
        return Compared(findings=tuple(findings), reasons=(f"what the page shows: {_unseen(heard)}",))
    findings += _wire_shown(heard.looks, text, payloads)
    if not text.strip():
        return Compared(findings=tuple(findings), reasons=("the wire held no text to look for on the page",))
    look = heard.looks[-1] if heard.named else _likest(heard, text)
    if look is None:
        why = "no element of the page is like the answer: name its place with --answer SELECTOR"
        return Compared(findings=tuple(findings), reasons=(why,))
    page = _Page(look.text[:CHARACTERS])
    findings += _text(page, text)
    findings += _strange(look, text)
    late, reason = _at_once(heard, look)
    return Compared(
        where=look.where, shown=len(look.text), findings=(*findings, *late), reasons=(reason,) if reason else ()
    )


def _unseen(heard: Heard) -> str:
    """Why nothing was seen of the page."""
    if heard.tape.ended_at is None:
        return "the answer had not ended when the visit did"
    return "no element fits --answer" if heard.named else "the page was gone when the answer had ended"


def _found(name: str, message: str, *evidence: Evidence, times: int = 1) -> Finding:
    return Finding(fault=PAGE_FAULTS[name], message=message, evidence=evidence[:5], times=times)


def _quote(text: str) -> str:
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"


# --- once


def _once(heard: Heard) -> Iterator[Finding]:
    if heard.asked > 1:
        asked = heard.tape.request
        what = f"{asked.method} {asked.url}" if asked is not None else ""
        message = f"the page sent the same request {heard.asked} times for one question"
        yield _found("page-asked-twice", message, Evidence(quote=_quote(what)), times=heard.asked - 1)


# --- what is for the reader alone


def _payloads(heard: Heard) -> list[str]:
    """The data of the stream's events that are JSON objects."""
    decoder = Decoder(max_event_bytes=EVENT_BYTES)
    found: list[str] = []
    for piece in heard.tape.pieces:
        try:
            events = decoder.feed(piece.data)
        except LimitExceeded:  # what came before it is enough
            break
        found += [event.data for event in events if event.data.startswith("{")]
        if len(found) > EVENTS:
            break
    return found


def _is_error(payload: str) -> bool:
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    if not isinstance(told, dict):
        return False
    failed = told.get("outcome") == "failed" or str(told.get("type", "")).lower() in ("error", "run_error")
    return failed or bool(told.get("error"))


def _wire_shown(looks: Sequence[Look], text: str, payloads: Sequence[str]) -> Iterator[Finding]:
    sent = _squeezed(text)
    smallest = sorted((look for look in looks if look.text), key=lambda look: len(look.text))
    shown = [(look, look.text[:CHARACTERS], _squeezed(look.text[:CHARACTERS])) for look in smallest]
    errors = [payload for payload in dict.fromkeys(payloads) if _is_error(payload)][:ERRORS]
    seen: set[str] = set()
    for error in errors:
        wanted = _squeezed(error)[:QUOTE]
        there = next((look for look, _, squeezed in shown if wanted in squeezed), None)
        if there is not None and wanted not in sent:
            seen.add(error)
            message = f"the error object of the wire stands in {there.where} as text"
            yield _found("page-error-shown", message, Evidence(quote=_quote(there.text.strip())))
    # The head of an event's JSON tells it from any text; its first words are of the protocol.
    heads = {_squeezed(payload)[:HEAD] for payload in (*payloads[:3], *payloads[-3:]) if payload not in seen}
    heads = {head for head in heads if len(head) > HEAD / 3 and head not in sent}
    for look, there_text, squeezed in shown:
        if "[DONE]" in there_text and "[DONE]" not in text:
            what = "[DONE]"
        elif "data:" not in text and _DATA.search(there_text):
            what = "data:"
        elif any(head in squeezed for head in heads):
            what = "the JSON of an event"
        else:
            continue
        place = max(0, there_text.find(what) - QUOTE // 2)
        quote = there_text[place : place + QUOTE].strip()
        yield _found("page-wire-shown", f"{what} stands in {look.where}", Evidence(quote=quote))
        return


def _squeezed(text: str) -> str:
    return "".join(text.split())


# --- the place of the answer


def _likest(heard: Heard, text: str) -> Look | None:
    """The element whose words are most like the answer's; of equals the smallest.

    That it holds all of the answer counts for more than that it holds nothing else (F-measure with beta 2): an answer
    shown twice is more like it than half of one. What held most of its text before the question is the conversation.
    """
    fresh = [look for look in heard.looks if _before(look, heard.began) < 0.4 * len(look.text)]
    looks = fresh or heard.looks
    wanted = Counter(_words(text))
    best: Look | None = None
    best_rank = (0.0, 0)
    for look in looks:
        there = Counter(_words(look.text[:CHARACTERS]))
        both = sum((wanted & there).values())
        rank = (round(5 * both / max(1, 4 * wanted.total() + there.total()), 6), -len(look.text))
        is_part = both >= PART_WORDS and both >= PART * there.total()
        if rank > best_rank and (rank[0] > LIKE or is_part):
            best, best_rank = look, rank
    if best is None:  # not one word: they may all have run into one another
        begin = "".join(line.letters for line in _lines(text)[:5])[:_BEGIN]
        holding = [look for look in looks if begin in _letters(look.text[:CHARACTERS])] if begin else []
        best = min(holding, key=lambda look: len(look.text), default=None)
    return best


def _before(look: Look, began: float) -> int:
    """Characters that an element held before the answer was asked for."""
    return next((length for at, length in reversed(look.samples) if at < began), 0)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


# --- the text


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the answer as far as a page shows it. letters: without all else; starts: where its words begin in them.

    apart: it must stand in a line of its own: what came before it ended a block.
    """

    text: str
    letters: str
    starts: tuple[int, ...]
    apart: bool
    item: bool


class _Page:
    """The text of an element, its letters, and where in them a word or a line begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        letters: list[str] = []
        self.words: list[int] = []
        self.lines: list[int] = []
        count = 0
        for line in text.splitlines():
            self.lines.append(count)
            for word in line.replace("|", " ").split():
                if found := _letters(word):
                    self.words.append(count)
                    letters.append(found)
                    count += len(found)
        self.letters = "".join(letters)

    def begins_word(self, at: int) -> bool:
        return _holds(self.words, at)

    def begins_line(self, at: int) -> bool:
        return _holds(self.lines, at)

    def breaks(self, end: int, begin: int) -> bool:
        """Whether a line ends between two places that follow each other; the number of a list item may stand there."""
        between = self.letters[end:begin]
        found = bisect_left(self.lines, end)
        return bool(between and not between.isdecimal()) or (found < len(self.lines) and self.lines[found] <= begin)


def _holds(places: list[int], at: int) -> bool:
    found = bisect_left(places, at)
    return found < len(places) and places[found] == at


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _lines(text: str) -> list[_Line]:
    """The answer's lines that a page must show."""
    found: list[_Line] = []
    fence, drawn, apart = "", False, True
    for line in _shown(text).splitlines()[: 2 * LINES]:
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not mark[2])):
            fence, drawn = ("", False) if fence else (mark[1], mark[2].lower() in _DRAWN)
            apart = True
            continue
        if drawn:
            continue
        item = bool(_ITEM.match(line)) and not fence
        plain = line if fence else _ITEM.sub("", line, count=1)
        apart = apart or bool(fence) or bool(_BLOCK.match(line))
        parts = [part for text in plain.split(_GAP) if (part := _line(text, apart=apart, item=item)) is not None]
        found += [parts[0], *(replace(part, apart=False, item=False) for part in parts[1:])] if parts else ()
        # After a heading or a blank line a new block begins; a line break inside of one may show as a space.
        apart = not parts or bool(fence) or bool(re.match(r"\s*(#{1,6}\s|\|)", line))
    return found[:LINES]


def _line(text: str, *, apart: bool, item: bool) -> _Line | None:
    words = [letters for word in text.replace("|", " ").split() if (letters := _letters(word))]
    if not words:
        return None
    starts = [0]
    for word in words[:-1]:
        starts.append(starts[-1] + len(word))
    return _Line(text.strip(), "".join(words), tuple(starts), apart, item)


def _shown(text: str) -> str:
    for pattern, instead in _SILENT:
        text = pattern.sub(instead, text)
    return html.unescape(text)


def _text(page: _Page, text: str) -> Iterator[Finding]:
    lines = _lines(text)
    if not lines:
        return
    whole = "".join(line.letters for line in lines)
    if len(whole) >= 20 and page.letters.count(whole) > 1:
        times = page.letters.count(whole)
        yield _found("page-text-doubled", f"the whole answer stands {times} times in one element", times=times - 1)
    places = _places(page, lines, whole)
    missing = [line for line, at in zip(lines, places, strict=True) if at < 0]
    if missing:
        evidence = [Evidence(quote=_quote(_unfound(page, line))) for line in missing[:5]]
        message = f"{len(missing)} of {len(lines)} lines of the answer are not, or not wholly, on the page"
        yield _found("page-text-missing", message, *evidence, times=len(missing))
    glued = [
        (line, start)
        for line, at in zip(lines, places, strict=True)
        if at >= 0
        for start in line.starts[1:]
        if not page.begins_word(at + start)
    ]
    if glued:
        evidence = [Evidence(quote=_around(line, start)) for line, start in glued[:5]]
        message = f"{len(glued)} spaces between words of the answer are not on the page"
        yield _found("page-words-glued", message, *evidence, times=len(glued))
    yield from _joined(page, lines, places)


def _places(page: _Page, lines: Sequence[_Line], whole: str) -> list[int]:
    """Where in the page's letters each line stands; -1 for one that does not."""
    at = page.letters.rfind(whole)  # the last: the element may hold the question, too
    if at >= 0:
        places = []
        for line in lines:
            places.append(at)
            at += len(line.letters)
        return places
    places, after = [], 0
    for line in lines:
        at = page.letters.find(line.letters, after)
        if at < 0:
            at = page.letters.find(line.letters)
        else:
            after = at + len(line.letters)
        places.append(at)
    return places


def _unfound(page: _Page, line: _Line) -> str:
    """The part of a line that is not on the page, from the first word that is not."""
    low, high = 0, len(line.starts)
    while low < high:  # the most words from the line's begin that stand there together
        middle = (low + high + 1) // 2
        end = line.starts[middle] if middle < len(line.starts) else len(line.letters)
        if line.letters[:end] in page.letters:
            low = middle
        else:
            high = middle - 1
    words = [word for word in line.text.replace("|", " ").split() if _letters(word)]
    return " ".join(words[low:])


def _around(line: _Line, start: int) -> str:
    words = [word for word in line.text.replace("|", " ").split() if _letters(word)]
    place = line.starts.index(start)
    return " ".join(words[max(0, place - 3) : place + 3])


def _joined(page: _Page, lines: Sequence[_Line], places: Sequence[int]) -> Iterator[Finding]:
    joined: list[tuple[_Line, _Line]] = []
    items, kept = 0, 0
    for place, line in enumerate(lines):
        items += line.item
        kept += line.item and places[place] >= 0 and page.begins_line(places[place])
        if not place or not line.apart or places[place] < 0 or places[place - 1] < 0:
            continue
        before = lines[place - 1]
        end, begin = places[place - 1] + len(before.letters), places[place]
        if end <= begin <= end + _NUMBER and not page.breaks(end, begin):
            joined.append((before, line))
    if joined:
        evidence = [Evidence(quote=f"{before.text[-60:]} {line.text[:60]}") for before, line in joined[:5]]
        noun = "break between lines" if len(joined) == 1 else "breaks between lines"
        message = f"{len(joined)} {noun} of the answer {'is' if len(joined) == 1 else 'are'} not on the page"
        if items > 1 and kept < items:
            message += f": of {items} list items {kept} begin a line there"
        yield _found("page-lines-joined", message, *evidence, times=len(joined))


def _strange(look: Look, text: str) -> Iterator[Finding]:
    for word in _PLACEHOLDERS:
        if (times := look.text.count(word)) > text.count(word):
            place = max(0, look.text.find(word) - 60)
            message = f"`{word}` stands in {look.where} and did not come over the wire"
            yield _found("page-placeholder-shown", message, Evidence(quote=look.text[place : place + 120]), times=times)
            break
    if (times := look.text.count("\ufffd") - text.count("\ufffd")) > 0:
        place = max(0, look.text.find("\ufffd") - 60)
        message = f"{times} characters of {look.where} are U+FFFD and were whole on the wire"
        yield _found("page-broken-characters", message, Evidence(quote=look.text[place : place + 120]), times=times)


# --- when


def _at_once(heard: Heard, look: Look) -> tuple[tuple[Finding, ...], str]:
    """Whether the page held back what came piece by piece; else, where that cannot be told, why."""
    reads = [(piece.at, len(piece.data)) for piece in heard.tape.pieces if piece.at is not None]
    total = sum(size for _, size in reads)
    span = reads[-1][0] - reads[0][0] if reads else 0.0
    if span < LIVE_SECONDS or len(reads) < 4 or max(size for _, size in reads) > total / 2:
        return (), "whether the page shows text as it comes: the wire brought it within a moment, or in few pieces"
    first, last = reads[0][0], reads[0][0] + 0.8 * span
    grown = [_grown(samples, heard.began + first, heard.began + last) for samples in (look.samples, heard.totals)]
    if max(grown) >= 0.2:
        return (), ""
    shown = look.samples[-1][0] - heard.began if look.samples else heard.tape.ended_at or reads[-1][0]
    message = (
        f"the wire brought the answer in {len(reads)} reads over {span:.1f} s; at {last:.1f} s, when 80 % of that time "
        f"had passed, the page showed {max(grown):.0%} of it; all of it at {shown:.1f} s"
    )
    return (_found("page-shown-at-once", message, Evidence(at=shown)),), ""


def _grown(samples: Sequence[tuple[float, int]], since: float, until: float) -> float:
    """Which part of its growth since a moment a text had behind it at another (seconds since the epoch)."""
    before = next((length for at, length in reversed(samples) if at < since), 0)
    after = [(at, length - before) for at, length in samples if at >= since]
    if not after or after[-1][1] <= 0:
        return 0.0
    by_then = [length for at, length in after if at <= until]
    return max(0.0, by_then[-1] / after[-1][1]) if by_then else 0.0
