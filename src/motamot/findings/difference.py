"""What happened to a text on its way: a true difference of two texts, in the words of who lost it.

Not a line diff: lines that stand on one, text that is gone, came twice or elsewhere are told apart, with quotes.
Sans-I/O, and bounded: its time grows with the texts, never with their product, whatever is in them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

__all__ = ["CHARACTERS", "PLACES", "QUOTE", "Difference", "Part", "Place", "difference"]

CHARACTERS = 4 << 20
"""What is compared of each text, in characters; more than the largest answer has."""
PLACES = 20
"""How many places of a kind are kept with their quotes; all are counted."""
QUOTE = 80
"""The longest quote, in characters."""

_CONTEXT = 24  # characters on each side of a place where something is gone
_ANCHOR = 8  # characters; a shorter piece proves nothing by being found
_MOVED = 4  # characters; a whole line or sentence that is gone here and came there proves more
_WINDOW = 1 << 16  # characters: how far ahead a piece is looked for that is no line or sentence by itself
_SEARCHED = 1 << 28  # characters that searches may pass in all: about half a second
_EDITS = 400  # between two anchors; what differs more is taken for replaced as a whole
_STEPS = 2_000_000  # of all comparisons between anchors: about a second
_SEGMENT = re.compile(r"\n|(?<=[.!?])[^\S\n]+")  # what the pieces that are looked for stand between
_BLANKS = re.compile(r"\s+")
_TOKEN = re.compile(r"[0-9A-Za-z]+|[\s\S]")


class Place(NamedTuple):
    """Where the two texts differ.

    at, got_at:    characters from the start of the original, and of what was got.
    original, got: what stands there in each, at most `QUOTE` characters.
    """

    at: int
    got_at: int
    original: str
    got: str


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of difference; false where there is none.

    times: places; characters: in them all; places: the first `PLACES` of them.
    """

    times: int = 0
    characters: int = 0
    places: tuple[Place, ...] = ()

    def __bool__(self) -> bool:
        return self.times > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What became of a text.

    exact:       the two are equal; then there is nothing else.
    glued:       line breaks that are gone, so that two lines stand on one; their characters are the white space lost.
    lost:        text that did not come.
    doubled:     text that came once more than it was written.
    reordered:   text that came, elsewhere.
    added:       text that was never written: `data: `, an error, U+FFFD.
    spacing:     white space that changed otherwise: indentation, spaces between words, blank lines, CR.
    line_breaks: LF in the original less LF in what was got.
    whole:       the texts were compared to their ends, and to the letter; False where they are too long or too
                 different: then `lost` and `added` are coarser than they need be.
    """

    exact: bool = False
    glued: Part = Part()
    lost: Part = Part()
    doubled: Part = Part()
    reordered: Part = Part()
    added: Part = Part()
    spacing: Part = Part()
    line_breaks: int = 0
    whole: bool = True

    @property
    def told(self) -> str:
        """In a few words: `exact`, or `4 line ends glued, 107 characters lost in 1 place`."""
        if self.exact:
            return "exact"
        words = []
        if self.glued:
            words.append(f"{self.glued.times} line end{_s(self.glued.times)} glued")
        for part, done in (
            (self.lost, "lost"),
            (self.doubled, "doubled"),
            (self.reordered, "moved"),
            (self.added, "added"),
        ):
            if part:
                words.append(
                    f"{part.characters} character{_s(part.characters)} {done} in {part.times} place{_s(part.times)}"
                )
        if self.spacing:
            words.append(f"white space changed in {self.spacing.times} place{_s(self.spacing.times)}")
        return ", ".join(words) or "differs"


def difference(original: str, got: str) -> Difference:
    """What became of `original`, of which `got` arrived."""
    if original == got:
        return Difference(exact=True)
    breaks = original.count("\n") - got.count("\n")
    cut = max(len(original), len(got)) > CHARACTERS
    found = _Found(original[:CHARACTERS], got[:CHARACTERS])
    compared = _Comparison(found.original, found.got)
    for region in compared.regions():
        found.sort(region)
    found.pair()
    parts = {kind: gathered.part() for kind, gathered in found.parts.items()}
    return Difference(
        glued=parts["glued"],
        lost=parts["lost"],
        doubled=parts["doubled"],
        reordered=parts["reordered"],
        added=parts["added"],
        spacing=parts["spacing"],
        line_breaks=breaks,
        whole=compared.whole and not cut,
    )


class _Region(NamedTuple):
    """A part of the original, and what stands in its place in what was got; either may be empty."""

    start: int
    end: int
    got_start: int
    got_end: int


class _Gathering:
    """A kind of difference being counted."""

    def __init__(self) -> None:
        self.times = self.characters = 0
        self.places: list[Place] = []

    def add(self, characters: int, place: Callable[[], Place]) -> None:
        self.times += 1
        self.characters += characters
        if len(self.places) < PLACES:
            self.places.append(place())

    def part(self) -> Part:
        return Part(self.times, self.characters, tuple(self.places))


class _Found:
    """Regions sorted into kinds. Text that is gone here and came there is known only once all regions are."""

    def __init__(self, original: str, got: str) -> None:
        self.original, self.got = original, got
        kinds = ("glued", "lost", "doubled", "reordered", "added", "spacing")
        self.parts = {kind: _Gathering() for kind in kinds}
        self._gone: list[_Region] = []
        self._come: list[_Region] = []
        self._searched = 0
        self._lines = {piece for _, piece in _pieces(original) if len(piece) >= _MOVED}

    def sort(self, region: _Region) -> None:
        """What one region is, as far as it can be told from it alone."""
        old = self.original[region.start : region.end]
        new = self.got[region.got_start : region.got_end]
        gone, come = not old.isspace() and bool(old), not new.isspace() and bool(new)
        if gone:
            self._gone.append(region)
        if come:
            self._come.append(region)
        if not come and "\n" in old and "\n" not in new and self._joins(region):
            blanks = len(old) - len(new) if not gone else sum(letter.isspace() for letter in old)
            self.parts["glued"].add(blanks, partial(self._around, region))
        elif not gone and not come:
            self.parts["spacing"].add(abs(len(old) - len(new)) or len(old), partial(self._around, region))

    def pair(self) -> None:
        """What is gone and what has come, matched piece by piece: moved, doubled, or indeed lost and added."""
        came = Counter(
            piece for region in self._come for _, piece in _pieces(self.got[region.got_start : region.got_end])
        )
        moved: Counter[str] = Counter()
        for region in self._gone:
            text = self.original[region.start : region.end]
            here: list[tuple[int, str]] = []
            lost: list[tuple[int, str]] = []
            for start, piece in _pieces(text):
                is_moved = len(piece) >= _MOVED and moved[piece] < came[piece]
                moved[piece] += is_moved
                (here if is_moved else lost).append((start, piece))
            for kind, pieces in (("reordered", here), ("lost", lost)):
                if pieces:
                    start, first = pieces[0]
                    quote = first if here and lost else text[start:].strip()
                    self.parts[kind].add(
                        sum(len(piece) for _, piece in pieces), partial(self._gone_at, region, start, quote)
                    )
        for region in self._come:
            text = self.got[region.got_start : region.got_end]
            left = 0
            for start, piece in [*_pieces(text), (len(text), "")]:
                if piece and moved[piece] <= 0:
                    continue
                moved[piece] -= 1
                if text[left:start].strip():
                    self._came(region, left, text[left:start])
                left = start + len(piece)

    def _came(self, region: _Region, start: int, text: str) -> None:
        """Text that nothing gone explains."""
        stripped = text.strip()
        before = self.original[max(0, region.start - len(text)) : region.start]
        after = self.original[region.end : region.end + len(text)]
        twice = text in (before, after) or self._is_known(text)
        kind = "doubled" if twice else "added"
        self.parts[kind].add(len(stripped), partial(self._come_at, region, start, stripped))

    def _is_known(self, text: str) -> bool:
        """Whether all but a little of it stands in the original, line by line or in pieces."""
        pieces = [piece for _, piece in _pieces(text)]
        known = sum(len(piece) if piece in self._lines else self._known(piece) for piece in pieces)
        return known * 5 >= sum(map(len, pieces)) * 4

    def _known(self, text: str) -> int:
        """How many characters of it stand in the original, in pieces that are long enough to prove something.

        Where each event holds all of the answer so far, what comes again is many pieces of it, one after the other.
        """
        known = at = 0
        while len(text) - at >= _ANCHOR and self._searched <= _SEARCHED:
            if not self._stands(text[at : at + _ANCHOR]):
                at += 1
                continue
            low, high = _ANCHOR, len(text) - at + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self._stands(text[at : at + middle]) else (low, middle)
            known += low
            at += low
        return known

    def _stands(self, text: str) -> bool:
        self._searched += len(self.original)
        return text in self.original

    def _joins(self, region: _Region) -> bool:
        """Whether text stands on both sides of the place, on one line now."""
        before = self.got[region.got_start - 1 : region.got_start] or "\n"
        after = self.got[region.got_end : region.got_end + 1] or "\n"
        return before != "\n" and after != "\n"

    def _around(self, region: _Region) -> Place:
        """The place with what stands before and after it, in both texts."""
        return Place(
            region.start,
            region.got_start,
            _window(self.original, region.start, region.end),
            _window(self.got, region.got_start, region.got_end),
        )

    def _gone_at(self, region: _Region, start: int, text: str) -> Place:
        near = _window(self.got, region.got_start, region.got_end)
        return Place(region.start + start, region.got_start, _quote(text), near)

    def _come_at(self, region: _Region, start: int, text: str) -> Place:
        near = _window(self.original, region.start, region.end)
        return Place(region.start, region.got_start + start, near, _quote(text))


class _Comparison:
    """Finds where two texts differ.

    Pieces between line ends and sentences that the original has once are looked for in what was got; the longest run
    of them that stands in order there is taken for what arrived (as patience diff does with lines). What is left
    between two of them is compared token by token (Myers), as long as it is alike enough.
    """

    def __init__(self, original: str, got: str) -> None:
        self.original, self.got = original, got
        self.whole = True
        self._steps = _STEPS

    def regions(self) -> Iterator[_Region]:
        """The regions that differ, in order, none of them touching the next."""
        open_: _Region | None = None
        for region in self._raw():
            if open_ is not None and open_.end == region.start and open_.got_end == region.got_start:
                open_ = _Region(open_.start, region.end, open_.got_start, region.got_end)
                continue
            if open_ is not None:
                yield open_
            open_ = region
        if open_ is not None:
            yield open_

    def _raw(self) -> Iterator[_Region]:
        start = got_start = 0
        end = (len(self.original), len(self.got), 0)
        for at, got_at, length in [*self._anchors(), end]:
            yield from self._between(_Region(start, at, got_start, got_at))
            start, got_start = at + length, got_at + length

    def _anchors(self) -> list[tuple[int, int, int]]:
        """Pieces that both have, in order in both: place in the original, in what was got, and length."""
        pieces = list(_pieces(self.original))
        often = Counter(text for _, text in pieces)
        places: dict[str, int] = {}
        again: set[str] = set()
        for at, text in _pieces(self.got):
            if places.setdefault(text, at) != at:
                again.add(text)
        pairs: list[tuple[int, int, int]] = []
        near = searched = 0
        for at, text in pieces:
            if often[text] > 1 or (len(text) < _ANCHOR and (text not in places or text in again)):
                continue
            found = places.get(text, -1)
            if found < 0 and searched < _SEARCHED:  # it may stand glued to another
                found = self.got.find(text, near, near + _WINDOW)
                searched += _WINDOW if found < 0 else found - near
            if found >= 0:
                pairs.append((at, found, len(text)))
                near = found + len(text)
        ordered = _increasing(pairs)
        # Two pieces may be found one in the other's place: each begins where the one before it has ended.
        return [pair for before, pair in pairwise([(0, 0, 0), *ordered]) if before[1] + before[2] <= pair[1]]

    def _between(self, region: _Region) -> Iterator[_Region]:
        """What differs between two anchors."""
        old = self.original[region.start : region.end]
        new = self.got[region.got_start : region.got_end]
        same = _common(old, new)
        tail = _common(old[same:][::-1], new[same:][::-1])
        if min(len(old), len(new)) > same + tail:  # something is gone, and something has come: in whole words
            same = _whole_words(old, new, same)
            tail = _whole_words(old[::-1], new[::-1], tail)
        old, new = old[same : len(old) - tail], new[same : len(new) - tail]
        start, got_start = region.start + same, region.got_start + same
        if not old and not new:
            return
        whole = _Region(start, start + len(old), got_start, got_start + len(new))
        if not old or not new:
            yield whole
            return
        if _unspaced(old) == _unspaced(new):
            yield from (
                _Region(start + one.start, start + one.end, got_start + one.got_start, got_start + one.got_end)
                for one in _blanks_apart(old, new)
            )
            return
        edits = self._edits(_TOKEN.findall(old), _TOKEN.findall(new)) if self._steps > 0 else None
        if edits is None:
            self.whole = False
            yield whole
            return
        for one in edits:
            yield _Region(start + one.start, start + one.end, got_start + one.got_start, got_start + one.got_end)

    def _edits(self, old: list[str], new: list[str]) -> list[_Region] | None:
        """The shortest script from one to the other, in characters, or None where it is too long.

        Source: E. W. Myers, An O(ND) Difference Algorithm and Its Variations, 1986.
        """
        furthest = {1: 0}
        past: list[dict[int, int]] = []
        for edits in range(min(_EDITS, len(old) + len(new)) + 1):
            past.append(furthest.copy())
            for diagonal in range(-edits, edits + 1, 2):
                down = diagonal == -edits or (diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1])
                x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
                first = x
                while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                    x += 1
                furthest[diagonal] = x
                self._steps -= 1 + x - first
                if x >= len(old) and x - diagonal >= len(new):
                    return _script(past, old, new)
            if self._steps <= 0:
                return None
        return None


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The lines and sentences of a text, where they start, without the white space around them."""
    start = 0
    for found in _SEGMENT.finditer(text):
        yield from _piece(text, start, found.start())
        start = found.end()
    yield from _piece(text, start, len(text))


def _piece(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        yield start + len(piece) - len(piece.lstrip()), stripped


def _unspaced(text: str) -> str:
    return "".join(text.split())


def _blanks_apart(old: str, new: str) -> Iterator[_Region]:
    """The regions that differ of two texts that are equal but for white space."""
    runs = [{at - blanks: (at, end) for at, end, blanks in _runs(text)} for text in (old, new)]
    shifts = [0, 0]  # white space so far: where a run that only the other has would stand
    for place in sorted(runs[0].keys() | runs[1].keys()):
        spans = [of.get(place, (place + shift, place + shift)) for of, shift in zip(runs, shifts, strict=True)]
        (start, end), (got_start, got_end) = spans
        shifts = [span[1] - place for span in spans]
        if old[start:end] != new[got_start:got_end]:
            yield _Region(start, end, got_start, got_end)


def _runs(text: str) -> Iterator[tuple[int, int, int]]:
    """Each run of white space: start, end, and how much of it is before."""
    blanks = 0
    for found in _BLANKS.finditer(text):
        yield *found.span(), blanks
        blanks += found.end() - found.start()


def _script(past: list[dict[int, int]], old: list[str], new: list[str]) -> list[_Region]:
    """The way back through what Myers' algorithm has seen, as regions in characters."""
    at, got_at = [0], [0]
    for token in old:
        at.append(at[-1] + len(token))
    for token in new:
        got_at.append(got_at[-1] + len(token))
    regions = []
    x, y = len(old), len(new)
    for edits in range(len(past) - 1, 0, -1):
        furthest, diagonal = past[edits], x - y
        down = diagonal == -edits or (diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        from_x = furthest[before]
        from_y = from_x - before
        to_x, to_y = (from_x, from_y + 1) if down else (from_x + 1, from_y)
        regions.append(_Region(at[from_x], at[to_x], got_at[from_y], got_at[to_y]))
        x, y = from_x, from_y
    return regions[::-1]


def _increasing(pairs: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The longest run of pairs, which are in order of the first place, that is in order of the second, too."""
    tails: list[int] = []  # second places
    last: list[int] = []  # index of the pair that ends the best run of each length
    before: list[int] = []
    for index, (_, found, _) in enumerate(pairs):
        length = bisect_left(tails, found)
        before.append(last[length - 1] if length else -1)
        if length == len(tails):
            tails.append(found)
            last.append(index)
        else:
            tails[length], last[length] = found, index
    run = []
    index = last[-1] if last else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _whole_words(one: str, other: str, common: int) -> int:
    """So much of `common` that no word is cut there."""
    while common and (_in_word(one, common) or _in_word(other, common)):
        common -= 1
    return common


def _in_word(text: str, at: int) -> bool:
    pair = text[at - 1 : at + 1]
    return len(pair) == 2 and pair.isascii() and pair.isalnum()


def _window(text: str, start: int, end: int) -> str:
    """What stands in a place and around it; of a long place, its two ends."""
    before = text[max(0, start - _CONTEXT) : start]
    after = text[end : end + _CONTEXT]
    inside = text[start:end]
    room = QUOTE - len(before) - len(after)
    if len(inside) > room:
        inside = f"{inside[: room // 2]}…{inside[-(room // 2 - 1) :]}"
    return before + inside + after


def _quote(text: str) -> str:
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
