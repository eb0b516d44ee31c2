"""A provider's usage export beside the books, by day and model: what either has that the other has not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial

from motamot.errors import InvalidRequest
from motamot.server.dashboard.filters import choice, entry
from motamot.server.dashboard.markup import Child, Html, bdi, el, join
from motamot.server.dashboard.visit import Page, Visit
from motamot.store.days import DAY
from motamot.store.reconcile import COLUMNS, Account, Difference, Usages, differences, read_usage
from motamot.store.views import Day, Facets

__all__ = ["page"]

_ROWS = 1_000
_COUNTS = ("prompt_tokens", "completion_tokens", "requests")


async def page(visit: Visit) -> Page | Callable[[], Page]:
    """GET and POST /dashboard/reconcile: the form, and what the file in it says beside the books."""
    words, store = visit.words, visit.site.exchanges.store
    facets = await store.facets()
    if visit.request.method != "POST":
        return Page(words.reconcile, _form(visit, facets, {}), now="reconcile")
    fields, data = await visit.upload()
    columns = {name: column for name in COLUMNS if (column := fields.get(f"column_{name}", "").strip())}
    if not data.strip():
        return _refused(visit, facets, fields, words.choose_file)
    try:
        usages = await visit.aside(read_usage, data, columns or None)
    except InvalidRequest as error:
        return _refused(visit, facets, fields, error.message)
    since, until = _second(usages.first), _second(usages.last) + DAY
    days = await store.days(since, until, assistant=fields.get("assistant") or None)
    return partial(_compared, visit, facets, fields, usages, days)


def _second(day: dt.date) -> float:
    return dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()


def _refused(visit: Visit, facets: Facets, fields: Mapping[str, str], told: str) -> Page:
    notice = el("p", bdi(told, 1_000), class_="notice bad", role="alert")
    content = join(notice, _form(visit, facets, fields))
    return Page(visit.words.reconcile, content, now="reconcile", status=400)


def _form(visit: Visit, facets: Facets, fields: Mapping[str, str]) -> Html:
    words = visit.words
    columns = [
        entry(f"column_{name}", words.column_words[name], fields.get(f"column_{name}", ""), size="16")
        for name in COLUMNS
    ]
    file = el("input", id="f-file", name="file", type="file", accept=".csv,text/csv", aria_describedby="about-file")
    return visit.form(
        "reconcile",
        el("p", words.reconcile_help),
        el("div", el("label", words.file, for_="f-file"), file),
        el("p", words.at_most.format(words.count(visit.site.limits.body_bytes)), class_="help", id="about-file"),
        choice("assistant", words.assistant, fields.get("assistant", ""), facets.assistants, words.any),
        el(
            "details",
            el("summary", words.columns),
            el("p", words.column_help, class_="help"),
            el("div", columns, class_="filters"),
            open=any(fields.get(f"column_{name}") for name in COLUMNS),
        ),
        el("div", el("button", words.compare), class_="actions"),
        class_="card search",
        enctype="multipart/form-data",
    )


def _compared(visit: Visit, facets: Facets, fields: Mapping[str, str], usages: Usages, days: Sequence[Day]) -> Page:
    words = visit.words
    found = differences(days, usages)
    said = el("p", words.reads.format(usages.kind), " · ", f"{usages.first} – {usages.last}", class_="help")
    beyond = el("p", words.beyond.format(_ROWS), class_="notice note") if len(found) > _ROWS else None
    content = join(said, _equal(visit, found), beyond, _table(visit, found), _form(visit, facets, fields))
    return Page(words.reconcile, content, now="reconcile")


def _equal(visit: Visit, found: Sequence[Difference]) -> Child:
    if any(any(getattr(one, name) for name in _COUNTS) or any(one.cost.values()) for one in found):
        return None
    return el("p", visit.words.all_equal, class_="notice", role="status")


def _table(visit: Visit, found: Sequence[Difference]) -> Html:
    """A line for each day and model, and one for all; columns only for what the export tells."""
    words = visit.words
    counts = [name for name in _COUNTS if any(_count(one.theirs, name) is not None for one in found)]
    currencies = sorted({currency for one in found for currency in one.theirs.cost})
    heads = [words.day, words.model]
    for name in (*(words.column_words[count] for count in counts), *currencies):
        heads += [f"{name}: {words.theirs}", words.ours, words.difference]
    rows = [[*_of(visit, one), *_line(visit, [one.theirs], [one.ours], counts, currencies)] for one in found[:_ROWS]]
    theirs, ours = [one.theirs for one in found], [one.ours for one in found]
    rows.append([el("strong", words.total), None, *_line(visit, theirs, ours, counts, currencies)])
    return visit.table(words.difference, heads, rows)


def _of(visit: Visit, one: Difference) -> list[Child]:
    words = visit.words
    note = words.only_ours if _is_empty(one.theirs) else words.only_theirs if _is_empty(one.ours) else None
    return [
        el("a", str(one.day), href=visit.to("conversations", **{"from": str(one.day), "to": str(one.day)})),
        [bdi(one.model, 100), [" ", el("span", note, class_="mark note")] if note else None],
    ]


def _is_empty(account: Account) -> bool:
    return not any(_count(account, name) for name in _COUNTS) and not any(account.cost.values())


def _count(account: Account, name: str) -> int | None:
    value: int | None = getattr(account, name)
    return value


def _line(
    visit: Visit, theirs: Sequence[Account], ours: Sequence[Account], counts: Iterable[str], currencies: Iterable[str]
) -> list[Child]:
    """The sums of both sides, and how they differ."""
    cells: list[Child] = []
    for name in counts:
        known = [count for one in theirs if (count := _count(one, name)) is not None]
        cells += _cells(sum(known) if known else None, sum(_count(one, name) or 0 for one in ours), visit.words.count)
    for currency in currencies:
        charged, booked = (
            sum((one.cost.get(currency, Decimal(0)) for one in side), Decimal(0)) for side in (theirs, ours)
        )
        cells += _cells(charged, booked, visit.words.amount)
    return cells


def _cells(theirs: int | Decimal | None, ours: int | Decimal, tell: Callable[[float], str]) -> list[Child]:
    """What they say, what the books say, and theirs less ours; a dash where they say nothing."""
    number = el("span", tell(float(ours)), class_="number")
    if theirs is None:
        return ["–", number, "–"]
    less = float(theirs) - float(ours)
    sign = "+" if less > 0 else "−" if less < 0 else ""
    differs = el("span", f"{sign}{tell(abs(less))}", class_="mark bad" if sign else "number")
    return [el("span", tell(float(theirs)), class_="number"), number, differs]
