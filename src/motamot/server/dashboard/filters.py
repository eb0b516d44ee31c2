"""What is looked for: from the fields of an address to a `Filter` of the store, and back."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from motamot.answer import Outcome
from motamot.server.dashboard.markup import Child, Html, bdi, el
from motamot.server.dashboard.visit import Visit
from motamot.store.days import DAY
from motamot.store.views import RUNNING, Facets, Filter

__all__ = ["OUTCOMES", "Wanted", "choice", "day_of", "entry", "search_form", "wanted"]

_MORE = ("outcome", "assistant", "model", "from", "to", "cost_from", "cost_to")

OUTCOMES = (*(str(outcome) for outcome in Outcome), RUNNING)


@dataclass(frozen=True, slots=True)
class Wanted:
    """filter: what the store is asked. fields: those of the address that say so. ignored: what was not understood."""

    filter: Filter
    fields: dict[str, str]
    ignored: list[Html]


def wanted(visit: Visit) -> Wanted:
    """What the address asks for. What cannot be understood is left out, and said."""
    words, query = visit.words, visit.query
    fields: dict[str, str] = {}
    ignored: list[Html] = []

    def refuse(label: str, value: str) -> None:
        told = words.bad_field.format(field=label, value=f"“{value[:100]}”")
        ignored.append(el("p", told, class_="notice note", role="status"))

    def text(name: str) -> str | None:
        value = query.get(name, "").strip()
        if value:
            fields[name] = value
        return value or None

    def day(name: str, label: str, plus: int) -> float | None:
        if not (value := query.get(name, "").strip()):
            return None
        if (found := day_of(value)) is None:
            refuse(label, value)
            return None
        fields[name] = value
        return float(found + plus * DAY)

    def cost(name: str, label: str) -> float | None:
        if not (value := query.get(name, "").strip()):
            return None
        try:
            found = float(value.replace(",", "."))
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or found < 0:
            refuse(label, value)
            return None
        fields[name] = value
        return found

    outcome = text("outcome")
    if outcome is not None and outcome not in OUTCOMES:
        refuse(words.outcome, outcome)
        outcome = None
        del fields["outcome"]
    made = Filter(
        text=text("text"),
        outcome=outcome,
        assistant=text("assistant"),
        model=text("model"),
        visitor=text("visitor"),
        conversation=text("conversation"),
        since=day("from", words.from_day, 0),
        until=day("to", words.to_day, 1),
        cost_from=cost("cost_from", words.cost_from),
        cost_to=cost("cost_to", words.cost_to),
    )
    return Wanted(made, fields, ignored)


def day_of(value: str) -> int | None:
    """The first second of a day told as 2026-01-31, UTC; None for anything else."""
    try:
        day = dt.date.fromisoformat(value)
    except ValueError:
        return None
    if not dt.date(1970, 1, 1) <= day <= dt.date(9000, 1, 1):
        return None
    return (day - dt.date(1970, 1, 1)).days * DAY


def entry(name: str, label: str, value: str, **attributes: str | bool | None) -> Html:
    """A field with its label. value: what it holds."""
    field = el("input", id=f"f-{name}", name=name, value=value, **attributes)
    return el("div", el("label", label, for_=f"f-{name}"), field)


def choice(
    name: str, label: str, value: str, options: Sequence[str], anything: str, told: Mapping[str, str] | None = None
) -> Html:
    """A choice of one or anything. options: the one that is chosen is there in any case. told: words for them."""
    told = {"": anything, **(told or {})}
    offered = dict.fromkeys(("", *options, value))
    made = [el("option", told.get(one, one), value=one, selected=one == value) for one in offered]
    return el("div", el("label", label, for_=f"f-{name}"), el("select", made, id=f"f-{name}", name=name))


def search_form(visit: Visit, found: Wanted, facets: Facets) -> Html:
    """The form that asks for other exchanges."""
    words, fields = visit.words, found.fields

    def of(name: str) -> str:
        return fields.get(name, "")

    search: Child = el("p", words.no_search, class_="help")
    if facets.search:
        about = el("p", words.search_help, class_="help", id="about-words")
        search = [entry("text", words.search_for, of("text"), type="search", aria_describedby="about-words"), about]
    kept: list[Child] = []
    for name, told in (("visitor", words.of_visitor), ("conversation", words.of_conversation)):
        if of(name):
            before, _, after = told.partition("{}")
            hidden = el("input", type="hidden", name=name, value=of(name))
            kept.append(el("p", before, bdi(of(name)), after, hidden, class_="help"))
    more = el(
        "details",
        el("summary", words.more_filters),
        el(
            "div",
            choice("outcome", words.outcome, of("outcome"), OUTCOMES, words.any, words.outcome_words),
            choice("assistant", words.assistant, of("assistant"), facets.assistants, words.any),
            choice("model", words.model, of("model"), facets.models, words.any),
            entry("from", words.from_day, of("from"), type="date"),
            entry("to", words.to_day, of("to"), type="date"),
            entry("cost_from", words.cost_from, of("cost_from"), inputmode="decimal", size="8"),
            entry("cost_to", words.cost_to, of("cost_to"), inputmode="decimal", size="8"),
            class_="filters",
        ),
        open=any(of(name) for name in _MORE) or not facets.search,
    )
    buttons = el(
        "div", el("button", words.search), el("a", words.clear, href=visit.to("conversations")), class_="actions"
    )
    return el(
        "form",
        search,
        kept,
        more,
        buttons,
        class_="card search",
        method="get",
        action=visit.to("conversations"),
        role="search",
    )
