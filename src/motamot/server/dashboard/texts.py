"""One answer three times: as the visitor saw it, as it was sent, as it was generated; what differs is marked."""

from __future__ import annotations

from motamot.server.dashboard.markup import Child, Html, el, written
from motamot.server.dashboard.visit import Visit
from motamot.store.redaction import common_characters

__all__ = ["beside"]

_BEFORE = 300  # characters shown before a difference that is far into the text


def beside(visit: Visit, shown: str, sent: str, generated: str, end: Child) -> Html:
    """The three, next to each other. end: how it ended, said below what the visitor saw."""
    words, most = visit.words, visit.site.limits.page_text_characters
    saw = el("div", written(shown, most), class_="text", dir="auto") if shown else el("p", words.empty, class_="soft")
    return el(
        "div",
        _column(words.shown, saw, el("p", end)),
        _column(words.sent, _against(visit, shown, sent, words.same_as_shown, words.not_seen)),
        _column(words.generated, _against(visit, sent, generated, words.same_as_sent, words.not_sent)),
        class_="beside",
    )


def _column(title: str, *content: Child) -> Html:
    return el("div", el("h3", title), *content)


def _against(visit: Visit, before: str, text: str, same: str, more: str) -> Child:
    """`text` with what it has beyond `before` marked. same, more: words for no difference, and for the rest."""
    words, most = visit.words, visit.site.limits.page_text_characters
    if text == before:
        return el("p", same, class_="soft")
    if not text:
        return el("p", words.empty, class_="soft")
    common = common_characters(before, text)
    rest = text[common:]
    told = more if common == len(before) else words.otherwise
    if common > most:  # what both have is cut, never the difference
        near = common - _BEFORE
        begin: list[Child] = [*written(text[:near], max(0, most - _BEFORE)), *written(text[near:common])]
    else:
        begin = written(text[:common])
    marked = el("mark", written(rest, most)) if rest else None
    note = el("p", el("span", told, class_="mark note"))
    return [el("div", begin, marked, class_="text", dir="auto"), note]
