"""A tape of 50 MB in 3 s, in bounded memory; and nothing hostile takes more than in proportion to its size."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise

import pytest

from motamot.findings import examine
from motamot.tape.tape import Piece, Tape
from tests.findings.tapes import END, delta, text

BIG = """
import resource, sys, time
from motamot.findings import examine
from tests.findings.tapes import END, tape, text

block = text(*(f"word{number} " for number in range(1_000))).encode()
body = block * (50_000_000 // len(block) + 1) + END.encode()
recorded = tape(body)
unit = 1 if sys.platform == "darwin" else 1024
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
began = time.process_time()
examined = examine(recorded)
took = time.process_time() - began
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before
assert examined.findings == () and len(examined.text) > 2_000_000, examined.findings
print(len(body), took, grown)
"""


def test_a_tape_of_50_megabytes_takes_3_seconds_and_little_memory() -> None:
    """CPU time: others use this machine, too. Measured: 0.8 s, 40 MB beside the tape."""
    done = subprocess.run([sys.executable, "-c", BIG], capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr
    size, took, grown = (float(word) for word in done.stdout.split())
    assert size >= 50_000_000
    assert took <= 3
    assert grown <= 150_000_000


HOSTILE = {
    "one line": b"data: " + b"x" * 4_000_000,
    "one line of nothing": b"x" * 4_000_000,
    "blank lines": b"data: a\n\n" + b"\n" * 4_000_000,
    "CR alone": b"data: a\n\n" + b"\r" * 4_000_000,
    "comments": b"data: a\n\n" + b": x\n" * 500_000,
    "comment blocks": b"data: a\n\n" + b": x\n\n" * 500_000,
    "comments in one block": b"data: a\n" + b": x\n" * 300_000 + b"\n",
    "data lines": b"data:\n" * 300_000,
    "data lines with text": b"data: x\n" * 300_000 + b"\n",
    "lines without a colon": b"data: a\n" + b"foo\n" * 300_000,
    "unknown fields": b"data: a\n" + b"foo: bar\n" * 200_000,
    "ids": b"data: a\n\n" + b"id: x\n\n" * 100_000,
    "names": b"data: a\n\n" + b"event: x\n\n" * 100_000,
    "brackets": b"[" * 4_000_000,
    "braces in events": (b"data: " + b'{"a":' * 100_000 + b"\n\n") * 3,
    "spaces": b" " * 4_000_000,
    "JSON lines": b'{"text":"a"}\n' * 100_000,
    "halves of characters": (b'data: {"choices":[{"delta":{"content":"' + b"\\ud83d" * 100_000 + b'"}}]}\n\n') * 3,
    "fragments of calls": delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]).encode() * 20_000,
    "calls": b"".join(
        delta(tool_calls=[{"index": number, "id": str(number), "function": {"name": "f"}}]).encode()
        for number in range(3_000)
    ),
    "growing deltas": "".join(text("x" * number) for number in range(1_500)).encode(),
    "signs of doubling": text("Ã©Ã" * 100_000).encode(),
    "HTML comments": b"<!-- -->" * 200_000,
    "open HTML comments": b"<!--" * 500_000,
}


def took(body: bytes, read: int) -> float:
    pieces = tuple(Piece(None, body[start:stop]) for start, stop in pairwise([*range(0, len(body), read), len(body)]))
    began = time.process_time()
    examine(Tape(pieces=pieces))
    return time.process_time() - began


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_hostile_takes_more_than_in_proportion(name: str) -> None:
    """Whole, and in small reads. A quadratic way through any of these takes minutes."""
    body = HOSTILE[name]
    assert took(body, len(body)) <= 5
    assert took(body, 700) <= 10


def test_messages_of_ag_ui_that_are_never_closed_are_bounded() -> None:
    body = b"".join(b'data: {"type":"TEXT_MESSAGE_START","messageId":"%d"}\n\n' % number for number in range(60_000))
    began = time.process_time()
    examine(Tape(pieces=(Piece(None, body + END.encode()),)), protocol="ag-ui")
    assert time.process_time() - began <= 8
