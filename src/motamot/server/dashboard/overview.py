"""The overview: today, what runs now, and what goes wrong."""

from __future__ import annotations

import time

from starlette.responses import Response

from motamot.answer import By
from motamot.server.dashboard.markup import Child, bdi, el, join
from motamot.server.dashboard.visit import Page, Visit

__all__ = ["page", "stop"]

_DAY = 86_400
_QUESTION_CHARACTERS = 200


async def page(visit: Visit) -> Page:
    """GET /dashboard."""
    words = visit.words
    midnight = time.time() // _DAY * _DAY
    content = join(
        _running(visit),
        await _budgets(visit, midnight),
    )
    return Page(words.overview, content, now="overview")


def _running(visit: Visit) -> Child:
    words = visit.words
    running = sorted(visit.site.exchanges.running, key=lambda exchange: exchange.begun.started_at)
    rows: list[list[Child]] = []
    for exchange in running:
        begun = exchange.begun
        question = begun.question[:_QUESTION_CHARACTERS]
        button = el("button", words.stop, aria_label=words.stop_of.format(question[:60]), class_="small")
        rows.append(
            [
                visit.moment(begun.started_at),
                bdi(begun.assistant),
                bdi(question),
                words.seconds(max(0.0, time.time() - begun.started_at)),
                visit.form(f"exchanges/{exchange.id}/stop", button) if exchange.started else None,
            ]
        )
    heads = [words.since, words.assistant, words.question, words.ran, words.stop]
    shown = visit.table(words.running_now, heads, rows) if rows else el("p", words.nothing_runs)
    return el("section", el("h2", words.running_now), shown)


async def _budgets(visit: Visit, midnight: float) -> Child:
    words = visit.words
    rows: list[list[Child]] = []
    for assistant in visit.site.assistants.values():
        spent = await visit.site.exchanges.store.spent(assistant.name, midnight)
        money = await visit.site.budgets.money(assistant)
        bound = "" if money is None else words.amount(money.limit)
        rows.append(
            [
                bdi(assistant.name),
                words.money_of(spent.cost) or words.nothing,
                words.tokens_split.format(words.count(spent.prompt_tokens), words.count(spent.completion_tokens)),
                bound or words.no_budget,
                words.nothing if money is None else words.amount(money.kept),
                words.amount(max(0.0, money.left)) if money is not None else "",
            ]
        )
    heads = [words.assistant, words.spent, words.tokens, words.budget, words.reserved, words.left]
    return el("section", el("h2", words.budgets), visit.table(words.budgets, heads, rows))


async def stop(visit: Visit) -> Page | Response:
    """POST /dashboard/exchanges/{id}/stop: end an answer, as the operator."""
    words = visit.words
    visit.check_token(await visit.fields())
    wanted = visit.request.path_params["exchange"]
    exchange = next((one for one in visit.site.exchanges.running if one.id == wanted), None)
    if exchange is not None and exchange.started:
        await exchange.stop(by=By.OPERATOR)
        told = words.stopped_it
    else:
        row = await visit.site.exchanges.store.exchange(wanted)
        told = words.not_here if row is not None and row.outcome is None else words.not_running
    content = join(
        el("p", told, class_="notice", role="status"),
        el("p", el("a", words.back, href=visit.to())),
    )
    return Page(words.stop, content)
