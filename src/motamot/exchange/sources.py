"""Which sources an answer rests on: those that the model was given in this exchange, and that its text cites. Pure.

The list is computed, and never taken from the model's word: a mark that it was not given stands for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from motamot.answer import Cited

__all__ = ["Given", "Library", "Sourced", "cited"]


@dataclass(frozen=True, slots=True)
class Sourced:
    """What a tool gives back where its result has sources: they are shown to the visitor once the answer cites them.

        return Sourced(text, sources=[Cited(title="Timetable", url="https://bus.example/timetable", mark="[7]")])

    content: what the model is told: text, or what JSON can carry. It should show each source's mark or address, so
             that the model can cite it.
    sources: an answer cites one by its `mark`, or by its `url`; one that has neither cannot be cited.
    """

    content: Any
    sources: Sequence[Cited] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """A source that the model was given, when the answer had `after` characters: what came before rests on nothing."""

    source: Cited
    after: int = 0


class Library(Protocol):
    """What an assistant knows from somewhere: told to its model beside the system prompt."""

    reads_first: bool  # it looks the question up itself, before the model is asked; else the model has a tool for it

    def instructions(self) -> str:
        """What follows the system prompt. Called for each exchange: it is quick, and does not raise."""
        ...

    async def look_up(self, question: str) -> Sourced | None:
        """What stands before the question, where it `reads_first`; None for nothing that fits. Does not raise."""
        ...


def cited(text: str, given: Sequence[Given]) -> list[Cited]:
    """The sources of `given` that `text` cites, in the order in which it does so first, each of them once.

    A mark in brackets is cited in any of the ways models write it: `[12]`, `[12, 15]`, `[^12]`, 【12】. What stands in
    code cites nothing (`row[12]`), unless the code is the mark alone.
    """
    marks: dict[str, list[int]] = {}
    if known := {one.source.mark for one in given if one.source.mark}:
        for mark, at in _marks(_without_code(text), known):
            marks.setdefault(mark, []).append(at)
    found: dict[tuple[str | None, str], tuple[int, Cited]] = {}
    for one in given:
        places = [*_of_mark(one.source.mark, text, marks), *_of_address(one.source.url, text, one.after)]
        places = [at for at in places if at >= one.after]
        if places:
            source = one.source
            name = source.mark, source.url or source.title
            first, _ = found.get(name, (len(text), source))
            found[name] = min(first, *places), source
    return [source for _, source in sorted(found.values(), key=_place)]


def _place(found: tuple[int, Cited]) -> int:
    return found[0]


_GROUP = re.compile(r"\[([^\[\]\n]{1,200})\]|【([^【】\n]{1,200})】")
_BETWEEN = re.compile(r"[\s,;&†\\^]+")
_BESIDE = frozenset(("and", "article", "et", "page", "passage", "see", "source", "sources", "voir"))
"""Words that stand beside marks in one pair of brackets."""


def _marks(text: str, known: Collection[str]) -> Iterator[tuple[str, int]]:
    """Every mark in brackets that stands in `text`, as `[12]`, with its place."""
    for group in _GROUP.finditer(text):
        inside = group[1] or group[2]
        names = {name for name in _BETWEEN.split(inside) if name.lower() not in _BESIDE} - {""}
        if any(name.isalpha() and f"[{name}]" not in known for name in names):  # words of the answer: `[in 12 days]`
            names.clear()
        for name in {inside.strip(), *names}:
            yield f"[{name}]", group.start()


def _of_mark(mark: str | None, text: str, marks: dict[str, list[int]]) -> Iterable[int]:
    if not mark:
        return ()
    if mark.startswith("[") and mark.endswith("]"):
        return marks.get(mark, ())
    return (found.start() for found in re.finditer(rf"(?<!\w){re.escape(mark)}(?!\w)", text))  # a mark of its own kind


def _of_address(url: str | None, text: str, after: int) -> Iterable[int]:
    """Where the whole address stands; a part of it may follow (`#prices`), another page's address may not."""
    address = (url or "").rstrip("/")
    if not address or address not in text:
        return ()
    whole = re.compile(rf"{re.escape(address)}/?(?![\w/%?&=~+-])(?!\.\w)")
    return (found.start() for found in whole.finditer(text, after))


# In a quotation or a list, too.
_FENCE = re.compile(r"^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t]){0,20}(`{3,}|~{3,})")
_CODE = re.compile(r"(?<!`)(`{1,4})(?!`)((?:[^\n]|\n(?![ \t>]{0,200}\n)){1,500}?)(?<!`)\1(?!`)")
_MARK_ALONE = re.compile(r"\s*[\[【][^\[\]【】]+[\]】]\s*")


def _without_code(text: str) -> str:
    """`text` with blanks in the place of code (CommonMark 4.5 and 6.1), so that nothing else changes its place."""
    if "`" not in text and "~~~" not in text:
        return text
    lines = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        closes = found is not None and found[1].startswith(fence) and line.strip(" \t>") == found[1] if fence else False
        if fence or found:
            lines.append(" " * len(line))
            fence = "" if closes else fence or (found[1] if found else "")
        else:
            lines.append(line)
    return _CODE.sub(_blank, "\n".join(lines))


def _blank(code: re.Match[str]) -> str:
    return code[0] if _MARK_ALONE.fullmatch(code[2]) else " " * len(code[0])
