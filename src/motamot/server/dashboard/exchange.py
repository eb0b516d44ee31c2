"""One exchange: what was asked, shown, sent and generated; what happened, when, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from starlette.responses import Response

from motamot.answer import (
    AnswerEvent,
    By,
    Cited,
    Ended,
    Reasoning,
    Routed,
    Started,
    Text,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from motamot.errors import NotFound
from motamot.server.dashboard.charts import moments
from motamot.server.dashboard.marks import cost_of, end_of, marks_of, outcome_of, tokens_of
from motamot.server.dashboard.markup import Child, Html, bdi, el, join, written
from motamot.server.dashboard.texts import beside
from motamot.server.dashboard.visit import Page, Visit, attachment
from motamot.server.tapes import tape_of
from motamot.store.records import CompletionRow
from motamot.store.views import Detail
from motamot.tape.saving import dumps

__all__ = ["page", "stop", "tape"]

_ROWS = 1_000  # events on a page, pieces of text in a row counted as one


async def page(visit: Visit) -> Callable[[], Page]:
    """GET /dashboard/exchanges/{id}."""
    return partial(_page, visit, await _wanted(visit))


async def _wanted(visit: Visit) -> Detail:
    found = await visit.site.exchanges.store.detail(visit.request.path_params["exchange"])
    if found is None:
        raise NotFound(visit.words.no_exchange)
    return found


def _page(visit: Visit, found: Detail) -> Page:
    words, row = visit.words, found.row
    end: Child = [end_of(visit, row), [el("br"), bdi(row.message)] if row.message else None]
    if row.question is None:
        said: Child = el("p", words.removed, class_="notice note")
    else:
        question = el(
            "div", written(row.question, visit.site.limits.page_text_characters), class_="text asked", dir="auto"
        )
        texts = beside(visit, row.shown or "", found.sent, row.generated or "", end)
        said = [
            el("section", el("h2", words.question), question),
            el("section", el("h2", words.answer), el("p", words.shown_help, class_="help"), texts),
            _sources(visit, found),
        ]
    content = join(
        _odd(visit, found),
        _facts(visit, found),
        said,
        _time_line(visit, found),
        _happened(visit, found),
        _completions(visit, found),
    )
    return Page(words.exchange, content)


def _odd(visit: Visit, found: Detail) -> Child:
    """What must be seen first: completions that nobody should have paid for."""
    if not found.odd:
        return None
    return el("p", visit.words.odd_title, class_="notice bad")


def _facts(visit: Visit, found: Detail) -> Html:
    words, row = visit.words, found.row
    facts: list[Child] = []

    def fact(name: str, *told: Child) -> None:
        facts.extend((el("dt", name), el("dd", *told)))

    fact(words.outcome, outcome_of(visit, row.outcome, row.code, row.by))
    if row.message:
        fact(words.why, bdi(row.message))
    if row.detail:
        fact(words.detail, bdi(row.detail, 5_000))
    if row.marks:
        fact(words.marks, marks_of(visit, row.marks))
    fact(words.time, visit.moment(row.started_at))
    if row.ended_at is not None:
        fact(words.ran, words.seconds(max(0.0, row.ended_at - row.started_at)))
    fact(words.assistant, bdi(row.assistant), " ", el("span", bdi(row.model, 200), class_="soft"))
    fact(words.conversation, el("a", bdi(row.conversation), href=visit.to(f"conversations/{row.conversation}")))
    fact(words.visitor, el("a", bdi(row.visitor, 100), href=visit.to("visitor", name=row.visitor)))
    if row.replaces:
        fact(words.replaces, el("a", bdi(row.replaces), href=visit.to(f"exchanges/{row.replaces}")))
    cost: dict[str, float] = {}
    for one in found.completions:
        if one.cost is not None:
            cost[one.currency] = cost.get(one.currency, 0.0) + one.cost
    fact(words.cost, cost_of(visit, cost))
    tape: Child = None
    if row.question is not None:
        address = visit.to(f"exchanges/{row.id}/tape")
        tape = el("span", el("a", words.tape, href=address, download=True), " ", words.tape_help)
    stop_it = None
    if row.outcome is None:
        stop_it = visit.form(f"exchanges/{row.id}/stop", el("button", words.stop_this, class_="danger"))
    return join(el("dl", facts, class_="facts"), el("div", tape, stop_it, class_="actions"))


def _sources(visit: Visit, found: Detail) -> Child:
    cited = [event for _, _, event in found.events if isinstance(event, Cited)]
    if not cited:
        return None
    items = []
    for one in cited:
        title: Child = bdi(one.title, 500)
        if one.url and one.url.lower().startswith(("https://", "http://")):
            title = el("a", title, href=one.url[:2_000], rel="noopener noreferrer nofollow", target="_blank")
        quote = el("blockquote", written(one.quote, 2_000), dir="auto") if one.quote else None
        mark: Child = [bdi(one.mark, 50), " "] if one.mark else None
        items.append(el("li", mark, title, [" ", bdi(one.url, 500)] if one.url else None, quote))
    return el("section", el("h2", visit.words.sources), el("ol", items))


def _time_line(visit: Visit, found: Detail) -> Html:
    words, row = visit.words, found.row
    points: list[tuple[str, float | None]] = [(words.question, 0.0)]
    if found.first_text is not None or row.generated:
        points.append((words.first_text, found.first_text))
    if found.stop_asked is not None or row.by:
        points.append((words.stop_asked, found.stop_asked))
        points.append((words.stop_closed, found.stop_closed))
    if row.ended_at is not None:
        points.append((words.end, max(0.0, row.ended_at - row.started_at)))
    points.sort(key=lambda point: (point[1] is None, point[1] or 0.0))
    rows: list[list[Child]] = [
        [name, words.time_unknown if after is None else words.seconds(after)] for name, after in points
    ]
    table = visit.table(words.time_line, [words.event, words.after], rows)
    return el("section", el("h2", words.time_line), moments(words.time_line_of, points, words.seconds), table)


# What happened


def _happened(visit: Visit, found: Detail) -> Html:
    words = visit.words
    rows: list[list[Child]] = []
    for numbers, after, event in _merged(found.events):
        if len(rows) == _ROWS:
            rows.append(["…", None, None, None])
            break
        name, told = _told(visit, event)
        shown = numbers if numbers != "0" else el("span", words.not_numbered, class_="soft")
        rows.append([shown, words.seconds(after) if after is not None else words.time_unknown, name, told])
    heads = [words.number, words.after, words.event, words.what]
    omitted = el("p", words.omitted.format(found.omitted), class_="notice note") if found.omitted else None
    return el("section", el("h2", words.turns), omitted, visit.table(words.turns, heads, rows))


def _merged(
    events: Iterable[tuple[int, float | None, AnswerEvent]],
) -> Iterator[tuple[str, float | None, AnswerEvent]]:
    """Events with their numbers as text; pieces of text, or of reasoning, that follow each other as one."""
    pieces: list[str] = []
    first, last, began = 0, 0, None
    kind: type[Text] | type[Reasoning] | None = None

    def whole() -> Iterator[tuple[str, float | None, AnswerEvent]]:
        if kind is not None:
            yield (str(first) if first == last else f"{first}–{last}"), began, kind("".join(pieces))

    for number, after, event in events:
        if isinstance(event, Text | Reasoning) and type(event) is kind:
            pieces.append(event.text)
            last = number
            continue
        yield from whole()
        kind = None
        if isinstance(event, Text | Reasoning):
            kind, pieces, first, last, began = type(event), [event.text], number, number, after
        else:
            yield str(number), after, event
    yield from whole()


def _told(visit: Visit, event: AnswerEvent) -> tuple[str, Child]:
    """What an event is called, and what is in it."""
    words, most = visit.words, visit.site.limits.page_text_characters
    match event:
        case Started():
            return words.began, bdi(event.model, 200)
        case Routed():
            trace = [_code(visit, _json(event.trace))] if event.trace is not None else None
            method = f" ({event.method}, {words.amount(event.confidence, 2)})" if event.method else None
            return words.routed, [bdi(event.agent, 200), method, trace]
        case Text():
            return words.text, el("div", written(event.text, most), class_="text", dir="auto")
        case Reasoning():
            return words.reasoning, el("div", written(event.text, most), class_="text", dir="auto")
        case ToolCalled():
            given = None if event.arguments is None else _code(visit, _json(event.arguments))
            return words.tool_called, [bdi(event.name, 200), given]
        case ToolReturned():
            result = None if event.result is None else _code(visit, event.result)
            return words.tool_returned, [bdi(event.name, 200), f": {event.status}", result]
        case Cited():
            return words.sources, bdi(event.title, 500)
        case TurnEnded():
            tokens: Child = None
            if (usage := event.usage) is not None:
                tokens = [", ", tokens_of(visit, usage.prompt_tokens, usage.completion_tokens, usage.source)]
            return words.turn.format(event.turn), [f"{words.finish}: {event.finish}", tokens]
        case Ended():
            return words.end, outcome_of(visit, str(event.outcome), event.code, event.by)
        case _:
            return type(event).__name__, None


def _code(visit: Visit, text: str) -> Html:
    return el("div", written(text, visit.site.limits.page_text_characters), class_="text code", dir="auto")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


# Completions


def _completions(visit: Visit, found: Detail) -> Html:
    words = visit.words
    heads = [
        words.turn.format("").strip(),
        words.time,
        words.first_text,
        words.duration,
        words.end,
        words.tokens,
        words.cost,
        words.model,
    ]
    rows = [_completion(visit, found, one) for one in found.completions]
    table = visit.table(words.completions, heads, rows) if rows else el("p", words.none)
    return el("section", el("h2", words.completions), table)


def _completion(visit: Visit, found: Detail, one: CompletionRow) -> list[Child]:
    words = visit.words
    turn: list[Child] = [str(one.turn)]
    if one.attempt > 1:
        turn.append(f" · {words.attempt} {one.attempt}")
    # These sentences are made with the books, in English.
    if (why := found.odd.get(one.id)) is not None:
        turn += [el("br"), el("span", words.should_not_be, class_="mark bad"), " ", el("span", written(why), lang="en")]
    if (why := found.retries.get(one.id)) is not None:
        turn += [el("br"), el("span", words.retry, class_="mark"), " ", el("span", written(why, 500), lang="en")]
    end: list[Child] = [outcome_of(visit, one.outcome, one.code, None)]
    if one.finish:
        end.append(el("div", one.finish, class_="soft"))
    if one.detail:
        end.append(el("div", bdi(one.detail, 2_000)))
    return [
        turn,
        visit.moment(one.opened_at),
        words.seconds(one.first_delta) if one.first_delta is not None else "–",
        words.seconds(one.duration) if one.duration is not None else "–",
        end,
        tokens_of(visit, one.prompt_tokens, one.completion_tokens, one.source, always=True),
        cost_of(visit, {one.currency: one.cost} if one.cost is not None else {}),
        bdi(one.model, 200),
    ]


# Its wire


async def tape(visit: Visit) -> Callable[[], Response]:
    """GET /dashboard/exchanges/{id}/tape: the wire of its native stream, made again from the books."""
    return partial(_tape, await _wanted(visit))


def _tape(found: Detail) -> Response:
    headers = attachment(f"motamot-{found.row.id}.tape")
    return Response(dumps(tape_of(found)), headers=headers, media_type="application/jsonl")


# Stopping


async def stop(visit: Visit) -> Page:
    """POST /dashboard/exchanges/{id}/stop: end an answer, as the operator."""
    words = visit.words
    await visit.fields()  # its token
    wanted = visit.request.path_params["exchange"]
    exchange = next((one for one in visit.site.exchanges.running if one.id == wanted), None)
    if exchange is not None and exchange.started:
        await exchange.stop(by=By.OPERATOR)
        told = words.stopped_it
    else:
        row = await visit.site.exchanges.store.exchange(wanted)
        if row is None:
            raise NotFound(words.no_exchange)
        told = words.not_here if row.outcome is None else words.not_running
    content = join(
        el("p", told, class_="notice", role="status"),
        el("p", el("a", words.exchange, href=visit.to(f"exchanges/{wanted}"))),
        el("p", el("a", words.back, href=visit.to())),
    )
    return Page(words.stop, content)
