"""Articles in HTML: the text a reader came for, without navigation, scripts and what else stands around it. Pure.

No tree is built: pages that are deep, broken or unending cost no more than others.
"""

from __future__ import annotations

import re
from collections import Counter

from motamot.knowledge import bounds
from motamot.knowledge.article import Block, Page, address, in_time, line, passages
from motamot.knowledge.tags import End, Start, attributes, tokens

__all__ = ["read"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VOID = _set("area base br col embed hr img input link meta param source track wbr")
_AROUND = _set(
    "script style noscript template svg math nav form button select textarea iframe object canvas audio video dialog "
    "footer head"
)
"""Never the article's own text."""
_AROUND_OUTSIDE = frozenset(("header", "aside"))
"""Nor these, outside of the main part: inside it they hold titles and remarks."""
_ROLES = _set("navigation banner contentinfo search complementary dialog alertdialog menu menubar toolbar")
_CLASSES = _set(
    "sidebar toc table-of-contents table-of-content breadcrumb breadcrumbs pagination navbar headerlink skip-link "
    "skip-to-content cookie-banner cookie-notice theme-doc-toc-mobile theme-doc-toc-desktop edit-this-page "
    "wp-block-navigation sharedaddy prev-next footer edit-post-link"
)
"""By which the common makers of help sites name what is around: Docusaurus, Sphinx, MkDocs, WordPress."""
_MAIN_CLASSES = frozenset(("markdown", "markdown-body", "md-content", "entry-content", "rst-content"))
_BLOCKS = _set(
    "address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure footer "
    "h1 h2 h3 h4 h5 h6 header hgroup hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul"
)
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_OFTEN = 256  # tags and texts between two looks at the clock
_FOREIGN = frozenset(("svg", "math", "path", "use", "g", "circle", "rect"))
_BLANKS = re.compile(r"\s+")
_SIGNS = re.compile(r"\s*[¶#§🔗]+\s*$")


def read(text: str) -> Page:
    """The article in `text`.

    Raises: Unreadable where it takes more than `PAGE_CPU_SECONDS`.
    """
    reader = _Reader()
    for token in in_time(tokens(text), _OFTEN):
        reader.take(token)
    reader.flush()
    blocks = reader.chosen()
    first = next((block.text for block in blocks if block.level == 1), "") or reader.heading
    # A site's own name is often an h1 outside of all parts: the page's title says more then.
    titled = line("".join(reader.title), bounds.TITLE_CHARACTERS)
    heading = next((block.text for block in blocks if block.level), "")
    if not first and heading and titled.startswith(heading):  # `Prices - Help of Bus`
        first = heading
    title = line(first, bounds.TITLE_CHARACTERS) or titled
    url = address(reader.canonical)
    return Page(title=title, url=url, passages=passages(blocks, line(first, bounds.HEADING_CHARACTERS)))


class _Reader:
    def __init__(self) -> None:
        self.title: list[str] = []
        self.canonical: str | None = None
        self.heading = ""  # the first of level 1 in the main part, or in an article around it
        self._found: list[tuple[Block, int]] = []  # with how surely it is the article's: 2 main, 1 article, 0 neither
        self._open: list[str] = []
        self._opened: Counter[str] = Counter()
        self._beyond = 0  # tags opened beyond the bound, which are not minded
        self._skipping = 0  # how many were open where what is skipped began; 0: nothing is
        self._main: list[int] = []  # likewise, of the main part
        self._article: list[int] = []
        self._text: list[str] = []
        self._level = 0
        self._pre = 0
        self._in_title = False
        self._item = ""

    def take(self, token: Start | End | str) -> None:
        """The next tag or text of the page."""
        if isinstance(token, str):
            self._data(token)
        elif isinstance(token, End):
            self._end(token.name)
        else:
            self._start(token)
            if token.empty and token.name in _FOREIGN:  # elsewhere HTML reads `<div/>` as `<div>`
                self._end(token.name)

    def _start(self, token: Start) -> None:
        tag = token.name
        if tag in _VOID:
            if tag == "link" and self.canonical is None:
                given = attributes(token.written)
                self.canonical = given.get("href") if "canonical" in given.get("rel", "").lower().split() else None
            elif tag in ("br", "hr") and not self._skipping:
                self._text.append("\n" if tag == "br" else "\n\n")
            return
        if len(self._open) >= bounds.OPEN_TAGS:
            self._beyond += 1
            return
        if tag in ("body", "main"):  # whatever was left open before
            self._skipping = 0
        self._in_title = tag == "title" and not self.title and not self._opened["svg"]
        self._open.append(tag)
        self._opened[tag] += 1
        if self._skipping:
            return
        if tag in _BLOCKS:
            self._begin_block(tag)
        given = attributes(token.written)
        if _is_around(tag, given, inside=bool(self._main or self._article)):
            self._skipping = len(self._open)
        elif tag == "main" or given.get("role") == "main" or _MAIN_CLASSES & set(given.get("class", "").split()):
            self._main.append(len(self._open))
        elif tag == "article":
            self._article.append(len(self._open))

    def _end(self, tag: str) -> None:
        if tag in ("body", "html") or tag in _VOID:
            return
        if self._beyond:  # which tag it ends cannot be told any more
            self._beyond -= 1
            return
        if not self._opened[tag]:
            return
        while self._open:
            ended = self._open.pop()
            self._opened[ended] -= 1
            self._ended(ended)
            if ended == tag:
                break

    def _data(self, text: str) -> None:
        if self._in_title:
            self.title.append(text[: bounds.TITLE_CHARACTERS])
            self._in_title = False
        elif not self._skipping:
            self._text.append(text if self._pre else _BLANKS.sub(" ", text))

    # What is made of it

    def _begin_block(self, tag: str) -> None:
        if tag in ("td", "th"):
            if any(part.strip() for part in self._text):
                self._text.append(" | ")
            return
        self.flush()
        self._level = _LEVELS.get(tag, self._level)
        if tag == "pre":
            self._pre += 1
        if tag == "li":
            self._item = "- "

    def _ended(self, tag: str) -> None:
        depth = len(self._open) + 1
        if self._skipping:
            if self._skipping >= depth:
                self._skipping = 0
            return
        if tag in _BLOCKS and tag not in ("td", "th"):
            self.flush()
            if tag in _LEVELS:
                self._level = 0
            elif tag == "pre":
                self._pre = max(self._pre - 1, 0)
        for regions in (self._main, self._article):
            if regions and regions[-1] >= depth:
                regions.pop()

    def flush(self) -> None:
        """What came since the last block is one."""
        text = "".join(self._text)
        self._text.clear()
        text = text.strip("\n") if self._pre else "\n".join(part.strip() for part in text.split("\n")).strip()
        if not text.strip():
            return
        if self._level:
            text = _SIGNS.sub("", text)
        elif self._item:
            text, self._item = self._item + text, ""
        if text:
            sure = 2 if self._main else 1 if self._article else 0
            self._found.append((Block(text, self._level), sure))
            if self._level == 1 and sure and not self.heading:
                self.heading = text

    def chosen(self) -> list[Block]:
        """The blocks of the surest part that has any: what stands beside it is the site's, not the article's."""
        sure = max((sure for _, sure in self._found), default=0)
        return [block for block, of in self._found if of >= sure]


def _is_around(tag: str, given: dict[str, str], *, inside: bool) -> bool:
    if tag in ("html", "body", "main", "article"):
        return False
    role = given.get("role")
    if tag in _AROUND or (role in _ROLES and not (inside and role == "complementary")):
        return True
    if tag in _AROUND_OUTSIDE and not inside:
        return True
    if given.get("aria-hidden") == "true" or ("hidden" in given and role != "tabpanel"):
        return True
    return bool(_CLASSES & set(given.get("class", "").lower().split()))
