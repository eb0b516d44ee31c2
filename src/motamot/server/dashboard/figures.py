"""Figures by day, assistant and model: how exchanges ended, how long people waited, tokens and money."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from motamot.server.dashboard.charts import Series, bars, lines
from motamot.server.dashboard.filters import OUTCOMES, choice, day_of, entry
from motamot.server.dashboard.markup import Child, Html, bdi, el, join
from motamot.server.dashboard.visit import Page, Visit
from motamot.server.dashboard.words import Words
from motamot.store.days import DAY
from motamot.store.views import Day, Facets, Spread

__all__ = ["Total", "outcome_list", "page", "total_of"]

N = TypeVar("N", int, float)

_DAYS = 30  # shown where nothing is asked for
_MOST_DAYS = 366
_MOST_SERIES = 8  # colours
_COLOURS = dict(zip(OUTCOMES, (1, 2, 4, 3, 5, 6, 8, 7), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Some days, assistants and models together."""

    exchanges: int
    outcomes: Mapping[str, int]
    first_text: Spread | None
    stop: Spread | None
    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int
    unknown: int
    cost: Mapping[str, float]
    completions: int


def total_of(days: Sequence[Day | Total]) -> Total:
    """The sum of days, or of sums; percentiles of all together."""
    return Total(
        exchanges=sum(day.exchanges for day in days),
        outcomes=_sums(day.outcomes for day in days),
        first_text=Spread.together([day.first_text for day in days]),
        stop=Spread.together([day.stop for day in days]),
        prompt_tokens=sum(day.prompt_tokens for day in days),
        completion_tokens=sum(day.completion_tokens for day in days),
        estimated_tokens=sum(day.estimated_tokens for day in days),
        unknown=sum(day.unknown for day in days),
        cost=_sums(day.cost for day in days),
        completions=sum(day.completions for day in days),
    )


def _sums(many: Iterable[Mapping[str, N]]) -> dict[str, N]:
    sums: dict[str, N] = {}
    for one in many:
        for name, number in one.items():
            sums[name] = sums[name] + number if name in sums else number
    return sums


async def page(visit: Visit) -> Callable[[], Page]:
    """GET /dashboard/figures: some days, all assistants and models or one."""
    words, query, store = visit.words, visit.query, visit.site.exchanges.store
    today = int(time.time() // DAY) * DAY
    last = day_of(query.get("to", ""))
    last = today if last is None else last
    first = day_of(query.get("from", ""))
    first = last - (_DAYS - 1) * DAY if first is None else min(first, last)
    notice = None
    if last - first >= _MOST_DAYS * DAY:
        first = last - (_MOST_DAYS - 1) * DAY
        notice = el("p", words.too_long.format(_MOST_DAYS), class_="notice note")
    assistant, model = query.get("assistant") or None, query.get("model") or None
    found = await store.days(float(first), float(last + DAY), assistant=assistant, model=model)
    facets = await store.facets()
    form = _form(visit, facets, _iso(first), _iso(last), assistant or "", model or "")
    return partial(_page, visit, join(form, notice), (first, last), found)


def _page(visit: Visit, above: Html, span: tuple[int, int], found: Sequence[Day]) -> Page:
    """above: what stands above the figures. span: the first and the last day."""
    words, (first, last) = visit.words, span
    if not found:
        return Page(words.figures, join(above, el("p", words.no_figures)), now="figures")
    by_day: dict[str, list[Day]] = {_iso(day): [] for day in range(first, last + DAY, DAY)}
    for one in found:
        by_day[one.day.isoformat()].append(one)
    totals = {day: total_of(rows) for day, rows in by_day.items()}
    charts = [
        _outcomes(visit, totals),
        _waits(visit, words.first_text_a_day, {day: one.first_text for day, one in totals.items()}),
        _waits(visit, words.stop_a_day, {day: one.stop for day, one in totals.items()}),
        _tokens(visit, totals),
        *_money(visit, by_day),
    ]
    shown = {day: one for day, one in reversed(totals.items()) if one.exchanges or one.completions}
    tables = join(
        el("section", el("h2", words.by_assistant), _groups(visit, found, list(totals.values()))),
        el("section", el("h2", words.day), _table(visit, words.day, words.day, [(d, d, t) for d, t in shown.items()])),
    )
    return Page(words.figures, join(above, el("div", charts, class_="charts"), tables), now="figures")


def _iso(day: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days=day // DAY)).isoformat()


def _form(visit: Visit, facets: Facets, first: str, last: str, assistant: str, model: str) -> Html:
    words = visit.words
    return el(
        "form",
        entry("from", words.from_day, first, type="date"),
        entry("to", words.to_day, last, type="date"),
        choice("assistant", words.assistant, assistant, facets.assistants, words.any),
        choice("model", words.model, model, facets.models, words.any),
        el("div", el("button", words.show), class_="actions"),
        class_="card filters",
        method="get",
        action=visit.to("figures"),
    )


# Charts


def _chart(
    visit: Visit,
    draw: Callable[..., Html],
    title: str,
    days: Sequence[str],
    series: list[Series],
    tell: Callable[[float], str],
) -> Html:
    return draw(title, visit.words.chart_of.format(title), days, series, tell)


def _outcomes(visit: Visit, totals: Mapping[str, Total]) -> Html:
    words = visit.words
    series = [
        Series(words.outcome_words[outcome], values, _COLOURS[outcome])
        for outcome in OUTCOMES
        if any(values := [float(one.outcomes.get(outcome, 0)) for one in totals.values()])
    ]
    return _chart(visit, bars, words.outcomes_a_day, list(totals), series, words.count)


def _waits(visit: Visit, title: str, spreads: Mapping[str, Spread | None]) -> Child:
    words = visit.words
    if not any(spreads.values()):
        return None
    series = [
        Series(words.half, [one.p50 if one else None for one in spreads.values()], 1),
        Series(words.most, [one.p95 if one else None for one in spreads.values()], 2),
    ]
    return _chart(visit, lines, title, list(spreads), series, words.seconds)


def _tokens(visit: Visit, totals: Mapping[str, Total]) -> Html:
    words = visit.words
    series = [
        Series(words.prompt_tokens, [float(one.prompt_tokens) for one in totals.values()], 3),
        Series(words.completion_tokens, [float(one.completion_tokens) for one in totals.values()], 1),
    ]
    return _chart(visit, bars, words.tokens_a_day, list(totals), series, words.count)


def _money(visit: Visit, by_day: Mapping[str, Sequence[Day]]) -> list[Html]:
    """A chart for each currency, by assistant and model: those that cost the most have a colour of their own."""
    words = visit.words
    charts = []
    currencies = sorted({currency for rows in by_day.values() for row in rows for currency in row.cost})
    for currency in currencies:
        sums = _sums({_name(row): row.cost.get(currency, 0.0)} for rows in by_day.values() for row in rows)
        ranked = sorted((name for name, cost in sums.items() if cost), key=lambda name: -sums[name])
        if not ranked:
            continue
        own = ranked if len(ranked) <= _MOST_SERIES else ranked[: _MOST_SERIES - 1]
        daily = [_sums({_name(row): row.cost.get(currency, 0.0)} for row in rows) for rows in by_day.values()]
        series = [Series(name, [day.get(name, 0.0) for day in daily], n + 1) for n, name in enumerate(own)]
        if len(own) < len(ranked):
            others = [sum(cost for name, cost in day.items() if name not in own) for day in daily]
            series.append(Series(words.others, others, _MOST_SERIES))
        charts.append(_chart(visit, bars, words.money_a_day.format(currency), list(by_day), series, words.amount))
    return charts


def _name(row: Day) -> str:
    return f"{row.assistant} · {row.model}"[:80]


# Tables


def _groups(visit: Visit, found: Sequence[Day], totals: Sequence[Total]) -> Html:
    groups: dict[tuple[str, str], list[Day]] = {}
    for one in found:
        groups.setdefault((one.assistant, one.model), []).append(one)
    rows: list[tuple[Child, str, Total]] = [
        ([bdi(assistant), " ", el("span", bdi(model, 80), class_="soft")], "", total_of(days))
        for (assistant, model), days in sorted(groups.items())
    ]
    if len(groups) > 1:
        rows.append((visit.words.whole_time, "", total_of(totals)))
    return _table(visit, visit.words.by_assistant, visit.words.assistant, rows)


def _table(visit: Visit, caption: str, head: str, rows: Iterable[tuple[Child, str, Total]]) -> Html:
    """A line for each total. rows: what it is, the day it is of (linked) or "", the total."""
    words = visit.words
    heads = [
        head,
        words.exchanges,
        words.outcomes,
        f"{words.first_text}: {words.half}",
        words.most,
        f"{words.stop}: {words.half}",
        words.most,
        words.prompt_tokens,
        words.completion_tokens,
        words.of_which_estimated,
        words.money,
    ]
    return visit.table(caption, heads, [_line(visit, what, day, total) for what, day, total in rows])


def _line(visit: Visit, what: Child, day: str, total: Total) -> list[Child]:
    words = visit.words
    if day:
        what = el("a", what, href=visit.to("conversations", **{"from": day, "to": day}))
    return [
        what,
        words.count(total.exchanges),
        outcome_list(words, total.outcomes),
        *_spread(words, total.first_text),
        *_spread(words, total.stop),
        words.count(total.prompt_tokens),
        words.count(total.completion_tokens),
        words.count(total.estimated_tokens) + (f" (+ {total.unknown} {words.unknown})" if total.unknown else ""),
        words.money_of(total.cost) or "–",
    ]


def _spread(words: Words, spread: Spread | None) -> tuple[str, str]:
    return ("–", "–") if spread is None else (words.seconds(spread.p50), words.seconds(spread.p95))


def outcome_list(words: Words, outcomes: Mapping[str, int]) -> str:
    """`12 complete, 1 stopped`."""
    told = [f"{words.count(n)} {words.outcome_words.get(name, name)}" for name, n in sorted(outcomes.items()) if n]
    return ", ".join(told) or words.nothing
