"""The overview: today, what runs now, and what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from motamot.server.dashboard.conversations import listing
from motamot.server.dashboard.figures import Total, outcome_list, total_of
from motamot.server.dashboard.markup import Child, Html, bdi, el, join
from motamot.server.dashboard.visit import Page, Visit
from motamot.store.days import DAY
from motamot.store.reading import Spent
from motamot.store.views import RUNNING, Filter, Listed

__all__ = ["page"]

_QUESTION_CHARACTERS = 200
_FAILURES = 5
_ELSEWHERE = 200  # running exchanges looked at for those of other processes


async def page(visit: Visit) -> Page:
    """GET /dashboard."""
    words, store = visit.words, visit.site.exchanges.store
    midnight = time.time() // DAY * DAY
    today = total_of(await store.days(midnight, midnight + DAY))
    failures = (await store.browse(Filter(outcome="failed"), limit=_FAILURES)).rows
    running = (await store.browse(Filter(outcome=RUNNING), limit=_ELSEWHERE)).rows
    spent = {name: await store.spent(name, midnight) for name in visit.site.assistants}
    content = join(
        _troubles(visit),
        _today(visit, today, midnight, sum(one.unpriced for one in spent.values())),
        _running(visit, running),
        await _budgets(visit, spent),
        el(
            "section",
            el("h2", words.last_failures),
            listing(visit, words.last_failures, failures) if failures else el("p", words.no_failures),
        ),
    )
    return Page(words.overview, content, now="overview")


def _troubles(visit: Visit) -> Child:
    """What this server knows to be wrong; nothing where nothing is."""
    words, site = visit.words, visit.site
    told: list[Child] = []
    if site.ending:
        told.append(words.ending)
    if (failing := site.exchanges.store.failing) is not None:
        told.append(words.store_fails.format(failing.message))
    for trouble in site.troubles.seen:
        code = words.code_words.get(str(trouble.code), str(trouble.code))
        at = words.moment(trouble.last_at)
        told.append(words.failing.format(assistant=trouble.assistant, code=code, count=trouble.count, at=at))
    if not told:
        return None
    items = el("ul", [el("li", one) for one in told])
    return el("section", el("h2", words.troubles), el("div", items, class_="notice bad"))


def _today(visit: Visit, today: Total, midnight: float, unpriced: int) -> Html:
    words = visit.words
    day = words.moment(midnight)[:10]
    everything = el("a", words.count(today.exchanges), href=visit.to("conversations", **{"from": day, "to": day}))

    def figure(name: str, big: Child, *more: str) -> Html:
        return el("div", el("dt", name), el("dd", big, class_="big"), [el("dd", one, class_="soft") for one in more])

    tokens = [words.tokens_split.format(words.count(today.prompt_tokens), words.count(today.completion_tokens))]
    if today.estimated_tokens:
        tokens.append(words.estimated.format(words.count(today.estimated_tokens)))
    if today.unknown:
        tokens.append(words.unknown_completions.format(words.count(today.unknown)))
    waited = []
    if today.first_text is not None:
        waited.append(f"{words.most} {words.seconds(today.first_text.p95)}")
    figures = el(
        "dl",
        figure(words.exchanges, everything, outcome_list(words, today.outcomes)),
        figure(words.tokens, words.count(today.prompt_tokens + today.completion_tokens), *tokens),
        figure(
            words.money,
            words.money_of(today.cost) or (words.unknown if unpriced else words.nothing),
            *([words.unpriced.format(words.count(unpriced))] if unpriced else []),
        ),
        figure(
            words.first_text,
            words.seconds(today.first_text.p50) if today.first_text is not None else "–",
            *waited,
        ),
        class_="figures",
    )
    return el("section", el("h2", f"{words.today}, {day}"), figures)


def _running(visit: Visit, booked: Sequence[Listed]) -> Html:
    """Ours, with a button each; and those that the books know of other processes."""
    words, now = visit.words, time.time()
    ours = sorted(visit.site.exchanges.running, key=lambda exchange: exchange.begun.started_at)
    rows: list[list[Child]] = []
    for exchange in ours:
        begun = exchange.begun
        question = begun.question[:_QUESTION_CHARACTERS]
        button = el("button", words.stop, aria_label=words.stop_of.format(question[:60]), class_="small")
        can_stop = visit.form(f"exchanges/{begun.id}/stop", button) if exchange.started else None
        rows.append(_line(visit, begun.id, begun.started_at, begun.assistant, question, now, can_stop))
    known = {exchange.id for exchange in ours}
    for row in booked:
        if row.exchange not in known:
            elsewhere = el("span", words.running_elsewhere, class_="soft")
            rows.append(_line(visit, row.exchange, row.started_at, row.assistant, row.question, now, elsewhere))
    heads = [words.since, words.assistant, words.question, words.ran, words.stop]
    shown = visit.table(words.running_now, heads, rows) if rows else el("p", words.nothing_runs)
    return el("section", el("h2", words.running_now), shown)


def _line(
    visit: Visit, exchange: str, since: float, assistant: str, question: str | None, now: float, last: Child
) -> list[Child]:
    return [
        el("a", visit.moment(since), href=visit.to(f"exchanges/{exchange}")),
        bdi(assistant),
        bdi(question) if question is not None else el("em", visit.words.removed),
        visit.words.seconds(max(0.0, now - since)),
        last,
    ]


async def _budgets(visit: Visit, today: Mapping[str, Spent]) -> Html:
    words = visit.words
    rows: list[list[Child]] = []
    for assistant in visit.site.assistants.values():
        spent = today[assistant.name]
        money = await visit.site.budgets.money(assistant)
        cost: list[Child] = [words.money_of(spent.cost) or (words.unknown if spent.unpriced else words.nothing)]
        if spent.unpriced:
            cost.append(el("div", words.unpriced.format(spent.unpriced), class_="soft"))
        rows.append(
            [
                bdi(assistant.name),
                cost,
                words.amount(money.limit) if money is not None else words.no_budget,
                words.amount(money.kept) if money is not None else "–",
                words.amount(money.left) if money is not None else "–",
            ]
        )
    heads = [words.assistant, words.spent, words.budget, words.reserved, words.left]
    return el("section", el("h2", words.budgets), visit.table(words.budgets, heads, rows))
