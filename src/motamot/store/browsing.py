"""Lists of exchanges, and one exchange whole. Runs in reader threads.

A list is made in two steps: which exchanges, from an index that holds all that is filtered by (a full scan of it takes
about 10 ms for 100,000 of them, whatever the filter); then the rows of one page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, func, literal_column, select, text

from motamot.answer import AnswerEvent, By, Code, Ended, Outcome, Started, Text, Usage
from motamot.errors import InvalidRequest
from motamot.store import searching
from motamot.store.details import Details, unpacked
from motamot.store.oddities import judge
from motamot.store.reading import completions_of, exchange_by_id
from motamot.store.records import CompletionRow, ExchangeRow
from motamot.store.schema import completions, conversations, details, exchanges
from motamot.store.views import RUNNING, Detail, Facets, Filter, Found, Listed, VisitorConversation

__all__ = [
    "EXCERPT",
    "MOST_LISTED",
    "ended_of",
    "exchange_detail",
    "export_page",
    "facets",
    "found",
    "started_of",
    "visitor_conversations",
    "visitor_page",
]

EXCERPT = 200  # characters of a question and an answer in a list
MOST_LISTED = 200  # exchanges on a page
MOST_FACETS = 1_000  # assistants, and models: a model's name may come from a stranger
MOST_CONVERSATIONS = 1_000
EXPORTED_AT_ONCE = 10  # exchanges of a visitor, with all their details, held at a time
EXPORT_BYTES = 8_000_000  # of text held at a time while a whole book is exported; one exchange may hold more

_e, _c, _v = exchanges.c, completions.c, conversations.c

_LINE = [
    _e.number,
    _e.id,
    _e.conversation,
    _e.assistant,
    _e.model,
    _e.visitor,
    _e.outcome,
    _e.code,
    _e.by,
    _e.marks,
    _e.started_at,
    _e.ended_at,
    _e.first_text,
]
_shown = func.coalesce(_e.shown, _e.generated)


def found(connection: Connection, wanted: Filter, before: int | None, limit: int) -> Found:
    """A page of what fits, newest first. Raises: InvalidRequest, and StoreError where no text can be looked for."""
    if not 1 <= limit <= MOST_LISTED:
        raise InvalidRequest(f"a page has 1 to {MOST_LISTED} lines", field="limit", limit=MOST_LISTED)
    numbers = _numbers(connection, wanted, before, limit + 1)
    rows = listed(connection, numbers[:limit], EXCERPT)
    return Found(rows=tuple(rows), before=numbers[limit - 1] if len(numbers) > limit else None)


def _numbers(connection: Connection, wanted: Filter, before: int | None, limit: int) -> list[int]:
    query = _fitting(wanted)
    if before is not None:
        query = query.where(_e.number < before)
    given = {}
    if wanted.text is not None:
        given["match"] = searching.match(wanted.text)
        query = query.where(_e.number.in_(text("SELECT rowid FROM search WHERE search MATCH :match")))
    # SQLite would read the rows from the newest on until a page is full: right where many fit, slow where few do.
    # With a plus before the number it takes the index that holds all of this, and sorts what fits.
    few = wanted.text is None and (
        wanted.outcome == RUNNING or wanted.cost_from is not None or wanted.cost_to is not None
    )
    number = literal_column("+exchanges.number") if few else _e.number
    return list(connection.scalars(query.order_by(number.desc()).limit(limit), given))


def _fitting(wanted: Filter) -> Select[Any]:
    query = select(_e.number)
    if wanted.outcome is not None:
        query = query.where(_e.outcome.is_(None) if wanted.outcome == RUNNING else _e.outcome == wanted.outcome)
    for column, value in (
        (_e.assistant, wanted.assistant),
        (_e.model, wanted.model),
        (_e.visitor, wanted.visitor),
        (_e.conversation, wanted.conversation),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.since is not None:
        query = query.where(_e.started_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(_e.started_at < wanted.until)
    if wanted.cost_from is not None:
        query = query.where(_e.cost >= wanted.cost_from)
    if wanted.cost_to is not None:
        query = query.where(_e.cost <= wanted.cost_to)
    return query


def listed(connection: Connection, numbers: Sequence[int], characters: int | None) -> list[Listed]:
    """These exchanges as lines, in the order of `numbers`. characters: how much of their texts; None: all of it."""
    question: Any = _e.question if characters is None else func.substr(_e.question, 1, characters)
    answer: Any = _shown if characters is None else func.substr(_shown, 1, characters)
    lines = connection.execute(
        select(*_LINE, question.label("question"), answer.label("answer")).where(_e.number.in_(numbers))
    ).all()
    theirs: dict[str, list[CompletionRow]] = {}
    for row in completions_of(connection, [line.id for line in lines]):
        theirs.setdefault(row.exchange, []).append(row)
    made = {line.number: _line(line, theirs.get(line.id, [])) for line in lines}
    return [made[number] for number in numbers if number in made]


def _line(row: Any, theirs: list[CompletionRow]) -> Listed:
    usage = _usage(theirs)
    odd, _ = judge(theirs, row.ended_at)
    return Listed(
        number=row.number,
        exchange=row.id,
        conversation=row.conversation,
        assistant=row.assistant,
        model=row.model,
        visitor=row.visitor,
        question=row.question,
        answer=row.answer if row.question is not None else None,
        outcome=row.outcome,
        code=row.code,
        by=row.by,
        marks=tuple(row.marks.split("\n")) if row.marks else (),
        started_at=row.started_at,
        ended_at=row.ended_at,
        first_text=row.first_text,
        prompt_tokens=usage.prompt_tokens if usage else 0,
        completion_tokens=usage.completion_tokens if usage else 0,
        source=usage.source if usage else None,
        cost=_cost(theirs),
        completions=len(theirs),
        odd=bool(odd),
    )


def _usage(theirs: Sequence[CompletionRow]) -> Usage | None:
    """The sum over those that are closed; None where none is."""
    closed = [
        Usage(
            prompt_tokens=row.prompt_tokens or 0,
            completion_tokens=row.completion_tokens or 0,
            cached_tokens=row.cached_tokens or 0,
            reasoning_tokens=row.reasoning_tokens or 0,
            source=row.source,
        )
        for row in theirs
        if row.source is not None
    ]
    return sum(closed[1:], closed[0]) if closed else None


def _cost(theirs: Sequence[CompletionRow]) -> dict[str, float]:
    cost: dict[str, float] = {}
    for row in theirs:
        if row.cost is not None:
            cost[row.currency] = cost.get(row.currency, 0.0) + row.cost
    return cost


def export_page(connection: Connection, wanted: Filter, before: int | None) -> Found:
    """A page of what fits, with the whole texts: as many as fit into `EXPORT_BYTES`, at least one."""
    numbers = _numbers(connection, wanted, before, MOST_LISTED)
    sizes = dict(
        connection.execute(
            select(_e.number, func.coalesce(func.length(_e.question), 0) + func.coalesce(func.length(_shown), 0)).where(
                _e.number.in_(numbers)
            )
        ).all()
    )
    taken: list[int] = []
    held = 0
    for number in numbers:
        held += sizes.get(number, 0)
        if taken and held * 4 > EXPORT_BYTES:  # a character has four bytes at most
            break
        taken.append(number)
    more = len(taken) < len(numbers) or len(numbers) == MOST_LISTED
    return Found(rows=tuple(listed(connection, taken, None)), before=taken[-1] if taken and more else None)


def exchange_detail(connection: Connection, exchange: str) -> Detail | None:
    """One exchange with all that the books know of it."""
    row = exchange_by_id(connection, exchange)
    if row is None:
        return None
    theirs = tuple(completions_of(connection, [exchange]))
    timing = connection.execute(
        select(_e.first_text, _e.stop_asked, _e.stop_closed, details.c.times, details.c.events, details.c.sent)
        .join_from(exchanges, details, details.c.number == _e.number, isouter=True)
        .where(_e.id == exchange)
    ).one()
    kept = Details() if timing.times is None else unpacked(timing.times, timing.events)
    odd, retries = judge(theirs, row.ended_at)
    last = max(row.sent, timing.sent or 0)
    sent = max((end for number, end in row.boundaries if number <= last), default=0)
    return Detail(
        row=row,
        sent=(row.generated or "")[:sent],
        completions=theirs,
        events=tuple(_events(row, kept, _usage(theirs))),
        omitted=kept.omitted,
        first_text=timing.first_text,
        stop_asked=timing.stop_asked,
        stop_closed=timing.stop_closed,
        odd=odd,
        retries=retries,
    )


def started_of(row: ExchangeRow) -> Started:
    """The first event of a stored exchange."""
    return Started(exchange=row.id, conversation=row.conversation, assistant=row.assistant, model=row.model)


def ended_of(row: ExchangeRow, usage: Usage | None = None) -> Ended:
    """The last event of a stored exchange; one that has not ended counts as interrupted."""
    outcome = Outcome(row.outcome or Outcome.INTERRUPTED)
    stopped = outcome in (Outcome.STOPPED, Outcome.ABANDONED)
    return Ended(
        outcome=outcome,
        code=Code(row.code) if row.code else None,
        message=row.message,
        by=By(row.by) if row.by else None,
        shown=(row.sent if row.seen is None else row.seen) if stopped else max(row.events - 1, 0),
        usage=usage,
        marks=row.marks,
    )


def _events(row: ExchangeRow, kept: Details, usage: Usage | None) -> list[tuple[int, float | None, AnswerEvent]]:
    """All events in the order in which they came: numbered ones, and hidden ones between them."""
    if row.question is None:
        return []
    numbered: dict[int, AnswerEvent] = {1: started_of(row)}
    generated, at = row.generated or "", 0
    for number, end in row.boundaries:
        if generated[at:end]:
            numbered[number] = Text(generated[at:end])
        at = max(at, end)
    if rest := generated[at:]:  # what is kept without boundaries
        numbered[max(numbered) + 1] = Text(rest)
    hidden: list[tuple[int, float | None, AnswerEvent]] = []
    for noted in kept.events:
        if noted.numbered:
            numbered[noted.after + 1] = noted.event
        else:
            hidden.append((noted.after, noted.at, noted.event))
    if row.outcome is not None:
        numbered[max(row.events, max(numbered) + 1)] = ended_of(row, usage)
    times = dict(enumerate(kept.times, 1))
    ordered = [((number, 0), (number, times.get(number), event)) for number, event in numbered.items()]
    ordered += [((after, 1 + n), (0, when, event)) for n, (after, when, event) in enumerate(hidden)]
    return [entry for _, entry in sorted(ordered, key=lambda pair: pair[0])]


def facets(connection: Connection) -> Facets:
    """What there is to filter by: the assistants and models of all exchanges, `MOST_FACETS` of each at most."""
    pairs = connection.execute(select(_e.assistant, _e.model).distinct()).all()
    return Facets(
        assistants=tuple(sorted({pair.assistant for pair in pairs})[:MOST_FACETS]),
        models=tuple(sorted({pair.model for pair in pairs if pair.model})[:MOST_FACETS]),
        search=searching.available(),
        unsearchable=searching.waiting(connection),
    )


def visitor_conversations(connection: Connection, visitor: str) -> tuple[VisitorConversation, ...]:
    """A visitor's latest conversations, newest first, at most `MOST_CONVERSATIONS`."""
    last = select(func.max(_e.started_at)).where(_e.conversation == _v.id).scalar_subquery()
    number = select(func.count()).where(_e.conversation == _v.id).scalar_subquery()
    query = (
        select(_v.id, _v.assistant, _v.created_at, _v.deleted_at, last.label("last"), number.label("exchanges"))
        .where(_v.visitor == visitor)
        .order_by(_v.created_at.desc())
        .limit(MOST_CONVERSATIONS)
    )
    return tuple(
        VisitorConversation(
            id=row.id,
            assistant=row.assistant,
            created_at=row.created_at,
            last_asked_at=row.last if row.last is not None else row.created_at,
            exchanges=row.exchanges,
            deleted=row.deleted_at is not None,
        )
        for row in connection.execute(query)
    )


def visitor_page(connection: Connection, visitor: str, before: int | None) -> tuple[list[Detail], int | None]:
    """A visitor's exchanges with all that is kept of them, newest first; and what to give for those behind these."""
    query = select(_e.number, _e.id).where(_e.visitor == visitor).order_by(_e.number.desc()).limit(EXPORTED_AT_ONCE)
    rows = connection.execute(query if before is None else query.where(_e.number < before)).all()
    found = [detail for row in rows if (detail := exchange_detail(connection, row.id)) is not None]
    return found, rows[-1].number if len(rows) == EXPORTED_AT_ONCE else None
