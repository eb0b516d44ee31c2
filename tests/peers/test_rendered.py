"""What a page shows of an answer, counted in blocks."""

from __future__ import annotations

import time

import pytest

from motamot.peers.answers import IMPROVISATION, VOICINGS
from motamot.peers.rendered import Blocks, blocks

TABLE = "| a | b |\n| - | - |\n| 1 | 2 |\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IMPROVISATION, Blocks(paragraphs=2, bullets=4)),
        (VOICINGS, Blocks(paragraphs=1, bullets=2, code=2)),
        ("# T\n\na\nb\n\nc", Blocks(headings=1, paragraphs=2)),
        ("1. a\n2. b\n   - c\n", Blocks(numbered=2, bullets=1)),
        (TABLE, Blocks(tables=1)),
        (TABLE.replace("\n", ""), Blocks(paragraphs=1)),
        ("> q\n\n---\n\n    code", Blocks(quotes=1, paragraphs=1, rules=1, code=1)),
        ("```py\n- a\n```", Blocks(code=1)),
        ("<b>- a</b>\n<script>x</script>", Blocks(paragraphs=1)),  # no page shows a stranger's HTML
        ("", Blocks()),
    ],
)
def test_it_counts(text: str, expected: Blocks) -> None:
    assert blocks(text) == expected


def test_changes_are_told_kind_by_kind() -> None:
    glued = IMPROVISATION.replace(").\n", ").").replace("\nEach", "Each")
    assert blocks(IMPROVISATION).changes(blocks(glued)) == ["2 paragraphs → 1", "4 bullets → 1"]
    assert blocks(VOICINGS).changes(blocks("")) == ["1 paragraph → 0", "2 bullets → 0", "2 code blocks → 0"]


@pytest.mark.parametrize("unit", ["- a\n", "a\n", "> ", "- ", "`", "a|b\n-|-\n", "[a]: b\n", "1. "])
def test_no_text_takes_long(unit: str) -> None:
    began = time.process_time()
    blocks(unit * (2_000_000 // len(unit)))
    assert time.process_time() - began < 20
