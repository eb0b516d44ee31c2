"""How a matrix of writers and readers is shown: as a table with what it stands for, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from motamot.cli.console import harmless
from motamot.findings.difference import Difference, Part
from motamot.peers.base import Chunker, PeerReader, PeerWriter
from motamot.peers.dotnet import blank
from motamot.peers.matrix import Cell, Split
from motamot.peers.rendered import Blocks, blocks

__all__ = ["columns", "document", "listing", "table"]

_QUOTES = 2  # of each kind of difference
_LONGEST = 120  # characters of a quote
_WORDS = {
    "glued": "glued",
    "lost": "lost",
    "doubled": "doubled",
    "reordered": "moved",
    "added": "added",
    "spacing": "white space",
}


def table(answer: str, splits: Sequence[Split], rows: Sequence[Sequence[Cell]]) -> str:
    """The table, and below it what became of the answer in each of its cells that is not exact."""
    marks = _marks()
    legend: dict[str, tuple[str, Cell]] = {}
    lines = [("writer", "reader", *(split.title for split in splits))]
    for row in rows:
        told = []
        for cell in row:
            if cell.count.exact and cell.got.threw is None:
                told.append("exact" if cell.got.complete else "exact, but not known to be whole")
                continue
            if cell.got.told not in legend:
                legend[cell.got.told] = (next(marks), cell)
            words = cell.count.told if cell.got.threw is None else "throws"
            told.append(f"{words} [{legend[cell.got.told][0]}]")
        lines.append((row[0].writer.title, row[0].reader.title, *told))
    out = [_of(answer), "", *columns(lines)]
    before = blocks(answer)
    for mark, cell in legend.values():
        out += ["", *_became(mark, cell, before)]
    return harmless("\n".join(out) + "\n")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, two spaces between columns, nothing after the last."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _marks() -> Iterator[str]:
    """a, b, … z, a1, b1, …"""
    for turn in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{turn or ''}"


def _of(answer: str) -> str:
    lines = sum(not blank(line) for line in answer.split("\n"))
    breaks = answer.count("\n")
    return f"answer: {lines} lines of text, {breaks} line breaks, {len(answer)} characters"


def _became(mark: str, cell: Cell, before: Blocks) -> list[str]:
    """What really became of the text, and of what a page shows of it, with quotes."""
    if cell.got.threw is not None:
        shown = f"; shown before: {_quoted(cell.got.text)}" if cell.got.text else ""
        return [f"[{mark}] throws {_quoted(cell.got.threw)}{shown}"]
    told = cell.difference.told + ("" if cell.difference.whole else " (compared coarsely)")
    changes = before.changes(cell.shown)
    lines = [f"[{mark}] {told}"]
    if changes:
        lines.append(f"    on a page: {', '.join(changes)}")
    for kind, word in _WORDS.items():
        part: Part = getattr(cell.difference, kind)
        for place in part.places[:_QUOTES]:
            if kind in ("glued", "spacing"):
                lines.append(f"    {word}: {_quoted(place.original)} came as {_quoted(place.got)}")
            else:
                lines.append(f"    {word}: {_quoted(place.got if kind in ('doubled', 'added') else place.original)}")
        if part.times > _QUOTES:
            lines.append(f"    {word}: … {part.times - _QUOTES} more")
    return lines


def _quoted(text: str) -> str:
    """On one line, as a string of a program; of a long one, its beginning."""
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in text) + '"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def document(answer: str, splits: Sequence[Split], rows: Sequence[Sequence[Cell]]) -> str:
    """Everything, for programs."""
    before = blocks(answer)
    told = {
        "answer": {"characters": len(answer), "line_breaks": answer.count("\n"), "shown": _counts(before)},
        "splits": [{"title": split.title, "pieces": list(split.pieces)} for split in splits],
        "cells": [_cell(cell, place, before) for row in rows for place, cell in enumerate(row)],
    }
    return json.dumps(told, indent=1) + "\n"


def _cell(cell: Cell, split: int, before: Blocks) -> dict[str, Any]:
    return {
        "writer": cell.writer.name,
        "reader": cell.reader.name,
        "split": split,
        "text": cell.got.text,
        "threw": cell.got.threw,
        "complete": cell.got.complete,
        "counted": {
            "told": cell.count.told,
            "missing": cell.count.missing,
            "lines": cell.count.lines,
            "breaks": cell.count.breaks,
        },
        "difference": _difference(cell.difference),
        "shown": {**_counts(cell.shown), "changes": before.changes(cell.shown)},
    }


def _difference(differs: Difference) -> dict[str, Any]:
    parts = {
        kind: {
            "times": part.times,
            "characters": part.characters,
            "places": [place._asdict() for place in part.places],
        }
        for kind in _WORDS
        if (part := getattr(differs, kind))
    }
    return {"told": differs.told, "exact": differs.exact, "whole": differs.whole, **parts}


def _counts(shown: Blocks) -> dict[str, int]:
    return {kind: number for kind in Blocks.__slots__ if (number := getattr(shown, kind))}


def listing(
    writers: Mapping[str, PeerWriter], readers: Mapping[str, PeerReader], chunkers: Mapping[str, Chunker]
) -> str:
    """Every peer: its name, its title, where it comes from, and what it does otherwise than it should."""
    out: list[str] = []
    groups: tuple[tuple[str, Mapping[str, PeerWriter] | Mapping[str, PeerReader] | Mapping[str, Chunker]], ...] = (
        ("Writers", writers),
        ("Readers", readers),
        ("Chunkers", chunkers),
    )
    for head, peers in groups:
        out += [*([""] if out else []), head]
        for name, peer in peers.items():
            of = f", {peer.stream}" if not isinstance(peer, Chunker) and peer.stream != "text" else ""
            out.append(f"  {name}: {peer.title} ({peer.origin}{of})")
            out += [f"    - {habit}" for habit in peer.habits]
    return "\n".join(out) + "\n"
