"""`for line in response.iter_lines()` of httpx or requests: lines as `str.splitlines` cuts them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from motamot.peers.base import Got, PeerReader
from motamot.peers.building import Building

__all__ = ["READER"]

_LINE_END = re.compile("[\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]")  # of str.splitlines


def read(reads: Iterable[bytes]) -> Got:
    """`if line.startswith("data: "): print(line[6:], end="")`, until `[DONE]`."""
    built = Building()
    for at, line in _lines(reads):
        if line == "data: [DONE]":
            built.other("done", "[DONE]", at)
            return built.got()
        if line.startswith("data: "):
            built.text(line[6:], at)
    return built.got()


def _lines(reads: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Lines as they are finished; the last counts also where nothing has ended it.

    A CR at the end of a read waits for the LF that may follow.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    parts: list[str] = []  # of the line under way
    count = 0
    for at, data in enumerate(reads):
        count = at + 1
        text = decoder.decode(data)
        if _LINE_END.search(text) or (text and parts and parts[-1].endswith("\r")):
            *lines, last = "".join([*parts, text]).splitlines(keepends=True)
            if _LINE_END.search(last) and not last.endswith("\r"):
                lines.append(last)
                last = ""
            parts = [last] if last else []
            yield from ((at, line.splitlines()[0]) for line in lines)
        elif text:
            parts.append(text)
    yield from ((count, line) for line in "".join([*parts, decoder.decode(b"", True)]).splitlines())


READER = PeerReader(
    name="naive-iter-lines",
    title="naive: iter_lines",
    origin="httpx and requests, Response.iter_lines",
    read=read,
    habits=(
        "Lines, not events: every line break of the answer is gone.",
        "A line ends at U+2028, U+2029, U+0085, VT, FF and U+001C to U+001E too: what follows in the text is lost.",
    ),
)
