"""How many blocks a page shows of an answer: paragraphs, bullets, tables, code (CommonMark, and tables as on GitHub).

markdown-it-py reads the blocks; Rich, which the command line prints with, brings it along.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from functools import cache

from markdown_it import MarkdownIt

__all__ = ["CHARACTERS", "Blocks", "blocks"]

CHARACTERS = 1 << 17
"""How much of a text is looked at; more than any page shows at once."""

_WORDS = {
    "paragraphs": ("paragraph", "paragraphs"),
    "headings": ("heading", "headings"),
    "bullets": ("bullet", "bullets"),
    "numbered": ("numbered item", "numbered items"),
    "tables": ("table", "tables"),
    "code": ("code block", "code blocks"),
    "quotes": ("quote", "quotes"),
    "rules": ("rule", "rules"),
}
_KINDS = {
    "heading_open": "headings",
    "table_open": "tables",
    "fence": "code",
    "code_block": "code",
    "blockquote_open": "quotes",
    "hr": "rules",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How many there are of each kind; those inside lists and quotes count, too.

    paragraphs: text outside lists. bullets, numbered: items of lists, each a bullet or a number on the page. code: also
    by indentation.
    """

    paragraphs: int = 0
    headings: int = 0
    bullets: int = 0
    numbered: int = 0
    tables: int = 0
    code: int = 0
    quotes: int = 0
    rules: int = 0

    def changes(self, got: Blocks) -> list[str]:
        """What became of them in `got`, kind by kind: `4 bullets → 1`."""
        changed = []
        for kind in fields(self):
            before, after = getattr(self, kind.name), getattr(got, kind.name)
            if before != after:
                changed.append(f"{before} {_WORDS[kind.name][before != 1]} → {after}")
        return changed


def blocks(text: str) -> Blocks:
    """Count the blocks of a Markdown text. HTML in it is text, as on a page that shows strangers' answers."""
    counts: Counter[str] = Counter()
    lists: list[str] = []
    for token in _parser().parse(text[:CHARACTERS]):
        match token.type:
            case "bullet_list_open":
                lists.append("bullets")
            case "ordered_list_open":
                lists.append("numbered")
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
            case "list_item_open":
                counts[lists[-1]] += 1
            case "paragraph_open":
                counts["paragraphs"] += not lists
            case other:
                if other in _KINDS:
                    counts[_KINDS[other]] += 1
    return Blocks(**counts)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # what stands in a line is of no interest
    return parser
