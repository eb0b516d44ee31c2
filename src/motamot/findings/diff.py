"""What became of a text: lost, glued, doubled, added or in another place; in bounded time, whatever the texts.

Where a text had white space and has none, its words were glued: the commonest loss of streams, and the one that a
count of lines does not see.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

__all__ = ["Difference", "compare"]

_TOKEN = re.compile(r"\r\n|\n|[^\S\r\n]+|\w+|[^\w\s]|\r", re.UNICODE)
_EDITS_MOST = 1_000  # edits that are followed word for word: at most half a million steps
_TOKENS_MOST = 2_000_000
_MOVED_MIN = 3  # words in a row that were lost here and came there, to say that they moved
_CONTEXT = 30  # characters on either side of the first difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How `got` differs from `original`.

    at:      characters of `original` before the first difference.
    breaks:  line breaks that are missing; spaces: runs of other white space that are missing or shorter.
    lost, doubled, moved, added: words that are missing; that came twice; that came in another place; that are new.
    exact:   whether the counts are of a word-by-word comparison; False: the texts differ too much, and their words
             were only counted.
    before, after: the original, and what came instead, about the first difference.
    """

    at: int
    breaks: int = 0
    spaces: int = 0
    lost: int = 0
    doubled: int = 0
    moved: int = 0
    added: int = 0
    exact: bool = True
    before: str = ""
    after: str = ""

    @property
    def sentence(self) -> str:
        """The counts in words: `6 line breaks missing, 2 words lost`."""
        told = [
            _count(self.breaks, "line break", "missing"),
            _count(self.spaces, "space", "missing"),
            _count(self.lost, "word", "lost"),
            _count(self.doubled, "word", "doubled"),
            _count(self.moved, "word", "in another place"),
            _count(self.added, "word", "added"),
        ]
        said = ", ".join(part for part in told if part)
        return said or "white space differs"


def compare(original: str, got: str) -> Difference | None:
    """How `got` differs from `original`; None if it does not.

    Takes time in proportion to the texts and to the square of the number of edits up to a thousand; beyond that
    words are counted, and not put in order.
    """
    if original == got:
        return None
    start = _common(original, got)
    before = original[max(start - _CONTEXT, 0) : start + _CONTEXT]
    after = got[max(start - _CONTEXT, 0) : start + _CONTEXT]
    if len(original) + len(got) > _TOKENS_MOST * 4:
        return Difference(at=start, exact=False, before=before, after=after)
    # Begin at a word's start: cut inside a word, the rest of it would count as another one.
    cut = start
    while cut and (original[cut - 1].isalnum() or original[cut - 1] in "_\r"):
        cut -= 1
    a, b = _TOKEN.findall(original[cut:]), _TOKEN.findall(got[cut:])
    script = _edits(a, b)
    if script is None:
        gone, new = Counter(a) - Counter(b), Counter(b) - Counter(a)
        return Difference(
            at=start,
            breaks=gone["\n"] + gone["\r\n"],
            spaces=sum(count for token, count in gone.items() if _is_blank(token)),
            lost=sum(count for token, count in gone.items() if _is_word(token)),
            added=sum(count for token, count in new.items() if _is_word(token)),
            exact=False,
            before=before,
            after=after,
        )
    return _told(a, b, script, start, before, after)


def _told(
    a: list[str], b: list[str], script: list[tuple[int, int, int, int]], start: int, before: str, after: str
) -> Difference:
    """The counts of an edit script: (from, to) in `a` was replaced by (from, to) in `b`."""
    gone = [a[i:j] for i, j, _, _ in script]
    came = [b[k:m] for _, _, k, m in script]
    breaks = sum(max(_breaks(old) - _breaks(new), 0) for old, new in zip(gone, came, strict=True))
    spaces = sum(max(_spaces(old) - _spaces(new), 0) for old, new in zip(gone, came, strict=True))
    lost = Counter(token for run in gone for token in run if _is_word(token))
    added_words = [[token for token in run if _is_word(token)] for run in came]
    gone_words = [[token for token in run if _is_word(token)] for run in gone]
    moved = doubled = added = 0
    for words in added_words:
        if not words:
            continue
        if len(words) >= _MOVED_MIN and any(_holds(run, words) for run in gone_words if len(run) >= len(words)):
            moved += len(words)
            lost.subtract(words)
        elif _follows(a, words):
            doubled += len(words)
        else:
            added += len(words)
    return Difference(
        at=start,
        breaks=breaks,
        spaces=spaces,
        lost=sum(count for count in lost.values() if count > 0),
        doubled=doubled,
        moved=moved,
        added=added,
        before=before,
        after=after,
    )


def _holds(run: list[str], words: list[str]) -> bool:
    joined = "\0".join(run)
    return "\0".join(words) in joined


def _follows(a: list[str], words: list[str]) -> bool:
    """Whether these words stand in the original, in this order: then they came twice."""
    return f"\0{chr(0).join(words)}\0" in "\0" + "\0".join(token for token in a if _is_word(token)) + "\0"


def _edits(a: list[str], b: list[str]) -> list[tuple[int, int, int, int]] | None:
    """The shortest way from `a` to `b`, replaced runs in order; None if it takes more than `_EDITS_MOST` edits.

    Source: E. W. Myers, An O(ND) Difference Algorithm and Its Variations (1986), the greedy one.
    """
    tail = 0
    while tail < min(len(a), len(b)) and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    n, m = len(a) - tail, len(b) - tail
    reach = {1: 0}
    trace: list[dict[int, int]] = []
    for d in range(min(n + m, _EDITS_MOST) + 1):
        trace.append(dict(reach) if d < 64 else {k: reach[k] for k in range(-d - 1, d + 2) if k in reach})
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            y = x - k
            while x < n and y < m and a[x] == b[y]:
                x, y = x + 1, y + 1
            reach[k] = x
            if x >= n and y >= m:
                return _script(trace, n, m)
    return None


def _script(trace: list[dict[int, int]], n: int, m: int) -> list[tuple[int, int, int, int]]:
    """Walk back from the end; edits that touch become one run."""
    x, y = n, m
    runs: list[list[int]] = []
    for d in range(len(trace) - 1, 0, -1):
        reach, k = trace[d], x - y
        down = k == -d or (k != d and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        px = reach[before]
        py = px - before
        sx, sy = (px, py + 1) if down else (px + 1, py)  # where the snake after the edit begins
        if runs and runs[-1][0] == sx and runs[-1][2] == sy:
            runs[-1][0], runs[-1][2] = px, py
        else:
            runs.append([px, sx, py, sy])
        x, y = px, py
    return [(i, j, k, m) for i, j, k, m in reversed(runs)]


def _common(a: str, b: str) -> int:
    """The length of what two texts begin with alike."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # halving: comparing slices is a hundred times as fast as comparing characters
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _breaks(run: list[str]) -> int:
    return sum(token in ("\n", "\r\n", "\r") for token in run)


def _spaces(run: list[str]) -> int:
    return sum(len(token) for token in run if _is_blank(token))


def _is_blank(token: str) -> bool:
    return token.isspace() and token not in ("\n", "\r\n", "\r")


def _is_word(token: str) -> bool:
    return not token.isspace()


def _count(number: int, what: str, how: str) -> str:
    if not number:
        return ""
    return f"{number:,} {what}{'s' if number != 1 else ''} {how}"
