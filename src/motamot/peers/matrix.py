"""Each writer with each reader, over an answer cut into pieces, and what became of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from motamot.findings.difference import Difference, difference
from motamot.peers.base import Got, PeerReader, PeerWriter
from motamot.peers.counting import Count, count
from motamot.peers.rendered import Blocks, blocks

__all__ = ["Cell", "Split", "cells", "reads_of"]

_EVENT_END = re.compile(rb"\n\n|\r\n\r\n|\r\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """An answer cut into pieces. title: as the column is headed."""

    title: str
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One writer, one reader, one way to cut.

    got: what the reader made of the stream. count: by the course's rule. difference: the true one. shown: the blocks
    that a page shows of it. What was thrown is compared as text, as the course does.
    """

    writer: PeerWriter
    reader: PeerReader
    split: Split
    got: Got
    count: Count
    difference: Difference
    shown: Blocks


def cells(
    answer: str,
    splits: Sequence[Split],
    writers: Iterable[PeerWriter],
    readers: Iterable[PeerReader],
    *,
    read_bytes: int | None = None,
    all_pairs: bool = False,
) -> Iterator[list[Cell]]:
    """A row for each pair of writer and reader, a cell in it for each split.

    read_bytes: what one network read holds; without, one event, as servers flush them.
    all_pairs:  also those that speak of different kinds of data.
    """
    readers = list(readers)
    judged: dict[str, tuple[Count, Difference, Blocks]] = {}  # most pairs come to one of a few texts
    for writer in writers:
        reads = [list(reads_of(writer.write(split.pieces), read_bytes)) for split in splits]
        for reader in readers:
            if not all_pairs and writer.stream != reader.stream:
                continue
            row = []
            for split, given in zip(splits, reads, strict=True):
                got = reader.read(given)
                told = got.told
                if told not in judged:
                    judged[told] = (count(answer, told), difference(answer, told), blocks(told))
                counted, differs, shown = judged[told]
                row.append(
                    Cell(
                        writer=writer,
                        reader=reader,
                        split=split,
                        got=got,
                        count=counted,
                        difference=differs,
                        shown=shown,
                    )
                )
            yield row


def reads_of(stream: bytes, size: int | None = None) -> Iterator[bytes]:
    """A stream as network reads: of `size` bytes, or one event each."""
    if size is not None:
        for start in range(0, len(stream), size):
            yield stream[start : start + size]
        return
    start = 0
    for found in _EVENT_END.finditer(stream):
        yield stream[start : found.end()]
        start = found.end()
    if start < len(stream):
        yield stream[start:]
