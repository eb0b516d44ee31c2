"""Lists of exchanges: what was looked for, the latest failures; and one conversation as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from motamot.errors import InvalidRequest, NotFound, StoreError
from motamot.server.dashboard.filters import Wanted, search_form, wanted
from motamot.server.dashboard.marks import cost_of, end_of, outcome_of, tokens_of
from motamot.server.dashboard.markup import Child, Html, bdi, el, join, written
from motamot.server.dashboard.visit import Page, Visit
from motamot.store.records import ConversationRow, ExchangeRow
from motamot.store.views import Facets, Found, Listed

__all__ = ["conversation", "listing", "page"]

_ROWS = 50
_HISTORY = 200  # exchanges of one conversation on a page
_TEXT_CHARACTERS = 10_000  # of one of them: its own page has more


async def page(visit: Visit) -> Callable[[], Page]:
    """GET /dashboard/conversations: exchanges, newest first, as far as they fit what is looked for."""
    words, store = visit.words, visit.site.exchanges.store
    look = wanted(visit)
    before = visit.query.get("before", "")
    cursor = int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None
    facets = await store.facets()
    notices: list[Child] = list(look.ignored)
    try:
        found = await store.browse(look.filter, before=cursor, limit=_ROWS)
    except (InvalidRequest, StoreError) as error:
        if isinstance(error, StoreError) and look.filter.text is None:
            raise
        notices.append(el("p", error.message, class_="notice bad", role="alert"))
        found = Found(rows=(), before=None)
    if facets.unsearchable and look.filter.text is not None:
        notices.append(el("p", words.unsearchable.format(words.count(facets.unsearchable)), class_="notice note"))
    return partial(_page, visit, look, facets, notices, found)


def _page(visit: Visit, look: Wanted, facets: Facets, notices: list[Child], found: Found) -> Page:
    words = visit.words
    if found.rows:
        shown: Child = listing(visit, words.conversations, found.rows)
    else:
        shown = el("p", words.found_none)
    pages = el(
        "p",
        el("a", words.newest, href=visit.to("conversations", **look.fields)) if "before" in visit.query else None,
        " ",
        el("a", words.older, href=visit.to("conversations", **look.fields, before=found.before), rel="next")
        if found.before is not None
        else None,
        class_="actions",
    )
    exports = el(
        "p",
        words.export_these,
        " ",
        el("a", "CSV", href=visit.to("export.csv", **look.fields)),
        " ",
        el("a", "JSON Lines", href=visit.to("export.jsonl", **look.fields)),
        class_="actions",
    )
    return Page(
        words.conversations,
        join(search_form(visit, look, facets), notices, shown, pages, exports),
        now="conversations",
    )


def listing(visit: Visit, caption: str, rows: Sequence[Listed]) -> Html:
    """Exchanges as a table: when, what was asked, how it ended, what it took."""
    words = visit.words
    lines: list[list[Child]] = []
    for row in rows:
        question: Child = el("em", words.removed) if row.question is None else bdi(row.question)
        lines.append(
            [
                el("a", visit.moment(row.started_at), href=visit.to(f"exchanges/{row.exchange}")),
                [question, el("div", bdi(row.answer, 120), class_="soft") if row.answer else None],
                [
                    end_of(visit, row),
                    [" ", el("span", words.odd, class_="mark bad", title=words.odd_title)] if row.odd else None,
                ],
                tokens_of(visit, row.prompt_tokens, row.completion_tokens, row.source),
                cost_of(visit, row.cost),
                [bdi(row.assistant), el("div", bdi(row.model, 60), class_="soft")],
                el("a", words.conversation, href=visit.to(f"conversations/{row.conversation}")),
            ]
        )
    heads = [words.time, words.question, words.end, words.tokens, words.cost, words.assistant, words.more]
    return visit.table(caption, heads, lines)


async def conversation(visit: Visit) -> Callable[[], Page]:
    """GET /dashboard/conversations/{id}: all of one conversation, as its visitor saw it, oldest first."""
    words, store = visit.words, visit.site.exchanges.store
    wanted_id = visit.request.path_params["conversation"]
    kept = await store.conversation(wanted_id)
    if kept is None:
        raise NotFound(words.no_conversation)
    return partial(_conversation, visit, kept, await store.history(kept.id, kept.visitor, limit=_HISTORY))


def _conversation(visit: Visit, kept: ConversationRow, rows: Sequence[ExchangeRow]) -> Page:
    words = visit.words
    facts = el(
        "dl",
        el("dt", words.assistant),
        el("dd", bdi(kept.assistant)),
        el("dt", words.visitor),
        el("dd", el("a", bdi(kept.visitor, 100), href=visit.to("visitor", name=kept.visitor))),
        el("dt", words.began),
        el("dd", visit.moment(kept.created_at)),
        class_="facts",
    )
    notice = el("p", words.removed, class_="notice note") if kept.deleted_at else None
    latest = None
    if len(rows) == _HISTORY:
        all_of_it = el("a", words.conversations, href=visit.to("conversations", conversation=kept.id))
        latest = el("p", words.latest_only.format(_HISTORY), " ", all_of_it)
    return Page(words.conversation, join(facts, notice, latest, [_said(visit, row) for row in rows]))


def _said(visit: Visit, row: ExchangeRow) -> Html:
    words = visit.words
    heading = el("h2", el("a", visit.moment(row.started_at), href=visit.to(f"exchanges/{row.id}")))
    if row.question is None:
        return el("section", heading, el("p", outcome_of(visit, row.outcome, row.code, row.by)))
    question = el("div", *written(row.question, _TEXT_CHARACTERS), class_="text asked", dir="auto")
    answer = el("div", *written(row.shown, _TEXT_CHARACTERS), class_="text", dir="auto") if row.shown else None
    return el(
        "section",
        heading,
        el("h3", words.question, class_="unseen"),
        question,
        el("h3", words.answer, class_="unseen"),
        answer,
        el("p", end_of(visit, row)),
    )
