"""A text against what a page shows of it: what is missing, glued, joined or doubled. Pure.

A page may show an answer as plain text or as rendered Markdown. So letters and digits are compared, and where words
and lines end. Where not all of it stands there as it is written, what Markdown writes and does not show (the address of
a link, the number of a list item, the language of a code block, formulas and diagrams) is not asked for.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from motamot.exam.page_faults import page_finding, quoted
from motamot.findings import Evidence, Finding

__all__ = ["LINES", "first_letters", "letters_of", "lost"]

LINES = 5_000  # of an answer that are looked for
TRIES = 2_000_000  # letters that are compared in looking for an answer each piece of which stands there twice
DOUBLED = 20  # letters: a shorter answer may stand somewhere twice by chance
_NUMBER = 9  # digits of a list item's number

_FENCE = re.compile(r"\s*(?:>\s*)*(?:[-*+]\s+)?(`{3,}|~{3,})\s*([\w+.#-]*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_BLOCK = re.compile(r"\s*(?:[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s|>|\|)")
_QUOTED = re.compile(r"\s*(?:>\s?)+")
# Languages of code blocks that pages draw.
_DRAWN = frozenset(
    ("mermaid", "vextab", "abc", "plantuml", "dot", "graphviz", "math", "latex", "tex", "katex", "svg", "vega")
)
_TARGET = r"\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)"  # of a link: parentheses within it come in pairs
_GAP = "\0"  # here a page may show something, or nothing: what stands around it is looked for by itself
# Bounded repetitions: a text of nothing but openings is not searched to its end for each of them.
_SILENT = (
    (re.compile(r"<!--.{0,2000}?-->", re.DOTALL), _GAP),
    (re.compile(rf"!\[[^\]\n]{{0,500}}\]{_TARGET}"), _GAP),
    (re.compile(rf"\[([^\]\n]{{0,500}})\]{_TARGET}"), rf"\1{_GAP}"),
    (re.compile(r"\[\^[^\]\n]{0,100}\]:?"), _GAP),
    (re.compile(r"^[ \t]{0,8}\[[^\]\n]{1,500}\]:[ \t]*\S+.*$", re.MULTILINE), _GAP),
    (re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>"), _GAP),
    (re.compile(r"\$\$.{0,500}?\$\$|\\\(.{0,500}?\\\)|\\\[.{0,500}?\\\]", re.DOTALL), _GAP),
    (re.compile(r"\$(?=[^$\n]{0,300}[\\^_{])[^$\n]{1,300}\$"), _GAP),
    (re.compile(r"\$[^$\n]{1,100}=[^$\n]{1,100}\$"), _GAP),
)


def lost(text: str, shown: str) -> Iterator[Finding]:
    """What a page does to a text.

    text: as it came; shown: of the element that holds it, as laid out.
    """
    page = _Page(shown)
    lines = _lines(text, written=letters_of(text) in page.letters)
    if not lines:
        return
    whole = "".join(line.letters for line in lines)
    if len(whole) >= DOUBLED and page.letters.count(whole) > 1:
        times = page.letters.count(whole)
        yield page_finding(
            "page-text-doubled", f"the whole answer stands {times} times in one element", times=times - 1
        )
    elif any(_stutters(page.letters, sent) for sent in (letters_of(text), whole)):
        yield page_finding("page-text-doubled", "each piece of the answer stands there twice, one behind the other")
        return  # no line of it stands there as it was sent, and nothing of it is missing
    places = _places(page, lines, whole)
    missing = [line for line, at in zip(lines, places, strict=True) if at < 0]
    if missing:
        evidence = [Evidence(quote=quoted(_unfound(page, line))) for line in missing[:5]]
        message = f"{len(missing)} of {len(lines)} lines of the answer are not, or not wholly, on the page"
        yield page_finding("page-text-missing", message, *evidence, times=len(missing))
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
        yield page_finding("page-words-glued", message, *evidence, times=len(glued))
    yield from _joined(page, lines, places)


def _stutters(shown: str, sent: str) -> bool:
    """Whether `shown` holds `sent` cut into pieces, each of them twice, one behind the other."""
    if len(sent) < DOUBLED:
        return False
    tries = TRIES
    for start in range(len(shown) - 2 * len(sent) + 1):
        reached, seen = [0], {0}  # letters of `sent` that are behind; as many twice are so in `shown`
        while reached and tries > 0:
            done = reached.pop()
            if done == len(sent):
                return True
            first = start + 2 * done
            for length in range(1, len(sent) - done + 1):
                tries -= 1
                if tries < 0 or shown[first + length - 1] != sent[done + length - 1]:
                    break
                if done + length in seen or not shown.startswith(sent[done], first + length):
                    continue
                tries -= length
                if shown.startswith(sent[done : done + length], first + length):
                    seen.add(done + length)
                    reached.append(done + length)
        if tries <= 0:
            return False
    return False


def first_letters(text: str, most: int) -> str:
    """The letters that a text begins with, as far as a page must show them."""
    return "".join(line.letters for line in _lines(text[: 4 * most])[:5])[:most]


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
                if found := letters_of(word):
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


def letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _lines(text: str, *, written: bool = False) -> list[_Line]:
    """The answer's lines that a page must show: of Markdown what is left when rendered; written: each as it stands."""
    found: list[_Line] = []
    fence, drawn, apart, depth = "", False, True, 0
    for line in (text if written else _shown(text)).splitlines()[: 2 * LINES]:
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1].startswith(fence) and not mark[2])):
            fence, drawn = ("", False) if fence else (mark[1], mark[2].lower() in _DRAWN)
            apart = True
            if not written:
                continue
        if drawn and not written:
            continue
        point = None if fence else _ITEM.match(line)
        plain = line[point.end() :] if point and not (written and letters_of(point[0])) else line
        quote = _QUOTED.match(line)
        before, depth = depth, quote[0].count(">") if quote else 0
        # Inside of a quotation, too, a line break may show as a space: there its lines begin blocks as others do.
        block = _BLOCK.match(line[quote.end() :] if quote and depth <= before else line)
        apart = apart or bool(fence) or bool(block)
        parts = [part for text in plain.split(_GAP) if (part := _line(text, apart=apart, item=bool(point))) is not None]
        found += [parts[0], *(replace(part, apart=False, item=False) for part in parts[1:])] if parts else ()
        # After a heading or a blank line a new block begins; a line break inside of one may show as a space.
        apart = not parts or bool(fence) or bool(re.match(r"\s*(#{1,6}\s|\|)", line))
    return found[:LINES]


def _line(text: str, *, apart: bool, item: bool) -> _Line | None:
    words = [letters for word in text.replace("|", " ").split() if (letters := letters_of(word))]
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
    words = [word for word in line.text.replace("|", " ").split() if letters_of(word)]
    return " ".join(words[low:])


def _around(line: _Line, start: int) -> str:
    words = [word for word in line.text.replace("|", " ").split() if letters_of(word)]
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
        yield page_finding("page-lines-joined", message, *evidence, times=len(joined))
