"""Answers that are no longer shown leave nothing behind, and a new one's first text is painted at once."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.widget import scenario

from tests.page.support import Chromium

ANSWERS = 24
PAINTED_MS = 50
NODES_TYPED = 2  # that Chromium keeps of each question typed, in a bare page too: for its Undo
NODES_OF_ONE = 200  # what a single answer that stayed would leave
HEAP_OF_ALL = 300_000  # bytes: less than the text of a few such answers and their nodes


def test_answers_of_earlier_conversations_are_let_go(chromium: Chromium, tmp_path: Path) -> None:
    found, painted = chromium.run(scenario(tmp_path, ANSWERS, ANSWERS // 2, fresh=True))
    before, after = found
    assert after.nodes - before.nodes < NODES_TYPED * ANSWERS // 2 + NODES_OF_ONE
    assert after.listeners == before.listeners
    assert after.heap - before.heap < HEAP_OF_ALL
    assert len(painted) == ANSWERS and median(painted) <= PAINTED_MS
