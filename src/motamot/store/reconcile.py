"""A provider's own account beside the ledger: tokens and money by day and model, and where they differ. No I/O.

Known are the exports of OpenAI's dashboard (Usage, "Activity" and "Cost") and of Anthropic's console (Usage and Cost),
as CSV; of any other file the operator says which column is which. Days are UTC, as the providers' are.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from motamot.errors import InvalidRequest
from motamot.store.views import Day

__all__ = [
    "COLUMNS",
    "FILE_BYTES",
    "ROWS",
    "Account",
    "Difference",
    "Usages",
    "differences",
    "read_usage",
    "same_model",
]

FILE_BYTES = 20_000_000
ROWS = 200_000
GROUPS = 20_000  # days and models
TOGETHER = 20  # columns that are one figure of ours
MODEL_CHARACTERS = 200
MOST = 10**15  # of tokens or money in a line

COLUMNS = ("day", "model", "prompt_tokens", "completion_tokens", "requests", "cost", "currency")
"""What a file may say. A mapping gives for each the name of its column, or several with `+` between."""

_KINDS: dict[str, dict[str, str]] = {
    "OpenAI usage": {
        "day": "start_time_iso",
        "model": "model",
        "prompt_tokens": "input_tokens",
        "completion_tokens": "output_tokens",
        "requests": "num_model_requests",
    },
    "OpenAI cost": {
        "day": "start_time_iso",
        "model": "line_item",
        "cost": "amount_value",
        "currency": "amount_currency",
    },
    "Anthropic usage": {
        "day": "usage_date_utc",
        "model": "model_version",
        "prompt_tokens": "usage_input_tokens_no_cache+usage_input_tokens_cache_write_5m"
        "+usage_input_tokens_cache_write_1h+usage_input_tokens_cache_read",
        "completion_tokens": "usage_output_tokens",
    },
    "Anthropic usage, before 2025-10": {
        "day": "usage_date_utc",
        "model": "model_version",
        "prompt_tokens": "usage_input_tokens_no_cache+usage_input_tokens_cache_write+usage_input_tokens_cache_read",
        "completion_tokens": "usage_output_tokens",
    },
    "Anthropic cost": {"day": "usage_date_utc", "model": "model", "cost": "cost_usd"},
}
"""By name, the columns of the exports that are known. The first whose columns are all there is taken."""

_NUMBER = re.compile(r"[-+]?\d{1,24}(\.\d{1,40})?([eE][-+]?\d{1,2})?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d{1,2}|[-+]?0,\d+|[-+]?\d+,\d{4,}", re.ASCII)  # "1,234" may be thousands
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP"}
_DATED = re.compile(r"-(20\d\d-\d\d-\d\d|20\d{6}|latest)$")


@dataclass(slots=True)
class Account:
    """What was used and spent. None: nothing is said about it. cost: by currency, in capitals."""

    requests: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: dict[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usages:
    """A provider's export, summed by day and model ("" where it does not tell models apart).

    kind: which export it is. first, last: the days that it speaks of.
    """

    kind: str
    first: dt.date
    last: dt.date
    accounts: Mapping[tuple[dt.date, str], Account]

    @property
    def by_model(self) -> bool:
        """Whether it tells models apart."""
        return any(model for _, model in self.accounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A day and model on either side. What the export tells nothing about is None in `theirs`."""

    day: dt.date
    model: str
    ours: Account
    theirs: Account

    @property
    def requests(self) -> int | None:
        """Theirs less ours; None where the export does not say."""
        return _less(self, "requests")

    @property
    def prompt_tokens(self) -> int | None:
        """Theirs less ours; None where the export does not say."""
        return _less(self, "prompt_tokens")

    @property
    def completion_tokens(self) -> int | None:
        """Theirs less ours; None where the export does not say."""
        return _less(self, "completion_tokens")

    @property
    def cost(self) -> dict[str, Decimal]:
        """Theirs less ours, by each currency that the export charges in."""
        return {
            currency: amount - self.ours.cost.get(currency, Decimal(0)) for currency, amount in self.theirs.cost.items()
        }


def read_usage(data: bytes, columns: Mapping[str, str] | None = None) -> Usages:
    """A provider's export.

    data:    CSV in UTF-8, with commas, semicolons or tabs, its first line the columns' names; at most `FILE_BYTES`.
    columns: for another file than the known ones: by our name (`COLUMNS`), the column's, as {"day": "Date", …}.
    Raises:  InvalidRequest with the line, and the column as its `field`.
    """
    if len(data) > FILE_BYTES:
        raise InvalidRequest(f"the file has more than {FILE_BYTES} bytes; export fewer days", limit=FILE_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"line {line} is not UTF-8; save the file as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    rows = _rows(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    _, names = next(rows, (1, []))
    named = [name.strip() for name in names]
    kind, wanted = _recognized(named, columns)
    places = {ours: [named.index(name) for name in theirs.split("+")] for ours, theirs in wanted.items()}
    return _summed(kind, rows, places, named)


def _rows(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the line each ends on. Raises: InvalidRequest."""
    number = 0
    while True:
        line = reader.line_num + 1  # type: ignore[attr-defined]  # csv's own reader, which has no public name
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidRequest(f"line {line} cannot be read as CSV: {error}") from None
        if not any(row):
            continue
        number += 1
        if number > ROWS:
            raise InvalidRequest(f"the file has more than {ROWS} lines; export fewer days", limit=ROWS)
        yield line, row


def _recognized(named: Sequence[str], columns: Mapping[str, str] | None) -> tuple[str, Mapping[str, str]]:
    if columns:
        for ours, theirs in columns.items():
            if ours not in COLUMNS:
                raise InvalidRequest(f"there is no {ours!r} to say a column for; there are {', '.join(COLUMNS)}")
            if theirs.count("+") >= TOGETHER:
                raise InvalidRequest(f"for {ours!r} at most {TOGETHER} columns are added up", limit=TOGETHER)
            for name in theirs.split("+"):
                if name not in named:
                    raise InvalidRequest(f"the file has no column {name!r}; it has {_told(named)}", field=name)
        if "day" not in columns or not {"prompt_tokens", "completion_tokens", "cost", "requests"} & set(columns):
            raise InvalidRequest("say the column of the day, and of tokens, requests or cost")
        return "columns as said", columns
    for kind, known in _KINDS.items():
        if all(name in named for theirs in known.values() for name in theirs.split("+")):
            return kind, known
    raise InvalidRequest(
        f"this is no export that is known here ({', '.join(_KINDS)}): say which column is which; it has {_told(named)}"
    )


def _told(named: Sequence[str]) -> str:
    most = 20
    more = f", and {len(named) - most} more" if len(named) > most else ""
    return (", ".join(repr(name[:40]) for name in named[:most]) or "none") + more


def _summed(
    kind: str, rows: Iterable[tuple[int, list[str]]], places: Mapping[str, list[int]], named: Sequence[str]
) -> Usages:
    accounts: dict[tuple[dt.date, str], Account] = {}
    days: set[dt.date] = set()
    for line, row in rows:
        if len(row) > len(named):
            raise InvalidRequest(f"line {line} has {len(row)} fields, and there are {len(named)} columns")
        row += [""] * (len(named) - len(row))

        def text(ours: str, row: list[str] = row) -> list[tuple[str, str]]:
            return [(row[place].strip(), named[place]) for place in places.get(ours, ())]

        [(day, column)] = text("day") if len(places["day"]) == 1 else [("", "day")]
        at = _day(day, line, column)
        days.add(at)
        numbers = {
            name: [_number(value, line, column) for value, column in text(name) if value]
            for name in ("requests", "prompt_tokens", "completion_tokens", "cost")
        }
        if not any(numbers.values()):
            continue  # a day on which nothing was used
        model = "".join(value for value, _ in text("model"))
        if kind == "OpenAI cost":
            model = model.partition(",")[0]  # "gpt-4o-2024-08-06, input"
        key = (at, same_model(model[:MODEL_CHARACTERS]))
        if key not in accounts and len(accounts) >= GROUPS:
            raise InvalidRequest(f"the file tells more than {GROUPS} days and models apart", limit=GROUPS)
        account = accounts.setdefault(key, Account())
        for name in ("requests", "prompt_tokens", "completion_tokens"):
            if numbers[name]:
                count = sum(numbers[name])
                if count != int(count):
                    raise InvalidRequest(
                        f"line {line}: {count} {name} are no whole number", field=named[places[name][0]]
                    )
                setattr(account, name, (getattr(account, name) or 0) + int(count))
        if numbers["cost"]:
            currency = "".join(value for value, _ in text("currency")).upper()[:10] or _sign(text("cost")) or "USD"
            account.cost[currency] = account.cost.get(currency, Decimal(0)) + sum(numbers["cost"])
    if not days:
        raise InvalidRequest("the file has no lines below its columns' names")
    return Usages(kind=kind, first=min(days), last=max(days), accounts=accounts)


def _day(value: str, line: int, column: str) -> dt.date:
    try:
        if re.fullmatch(r"\d{9,11}", value, re.ASCII):
            return dt.datetime.fromtimestamp(int(value), dt.UTC).date()
        if re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
            return dt.date.fromisoformat(value)
        if re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", value, re.ASCII):
            moment = dt.datetime.fromisoformat(value)
            return (moment if moment.tzinfo is None else moment.astimezone(dt.UTC)).date()
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidRequest(f"line {line}, column {column!r}: {value[:40]!r} is no day; write 2026-11-30", field=column)


def _number(value: str, line: int, column: str) -> Decimal:
    plain = value.strip("$€£ ")
    if _DECIMAL_COMMA.fullmatch(plain):  # a spreadsheet of where a comma stands before the decimals
        plain = plain.replace(",", ".")
    if not _NUMBER.fullmatch(plain) or abs(Decimal(plain)) > MOST:
        raise InvalidRequest(f"line {line}, column {column!r}: {value[:40]!r} is no number; write 1234.5", field=column)
    return Decimal(plain)


def _sign(given: Sequence[tuple[str, str]]) -> str | None:
    return next((_CURRENCIES[value[0]] for value, _ in given if value[:1] in _CURRENCIES), None)


def same_model(name: str) -> str:
    """A model's name as both sides have it: `gpt-4o-2024-08-06` and `gpt-4o`, `Claude Haiku 4.5` and
    `claude-haiku-4-5-20251001` are the same; who serves it does not count."""
    plain = re.sub(r"[\s._]+", "-", name.strip().lower()).rpartition("/")[2]
    return _DATED.sub("", plain)


def differences(days: Sequence[Day], usages: Usages) -> tuple[Difference, ...]:
    """Each day and model that either side has, within the days of the export, in order.

    days: the ledger's (`Store.days`), of all assistants that ask this provider.
    """
    ours: dict[tuple[dt.date, str], Account] = {}
    for day in days:
        if not usages.first <= day.day <= usages.last:
            continue
        account = ours.setdefault((day.day, same_model(day.model) if usages.by_model else ""), Account(0, 0, 0))
        account.requests = (account.requests or 0) + day.completions
        account.prompt_tokens = (account.prompt_tokens or 0) + day.prompt_tokens
        account.completion_tokens = (account.completion_tokens or 0) + day.completion_tokens
        for currency, amount in day.cost.items():
            cost = account.cost
            cost[currency.upper()] = cost.get(currency.upper(), Decimal(0)) + Decimal(str(amount))
    nothing = _nothing(usages.accounts.values())
    return tuple(
        Difference(
            day=day,
            model=model,
            ours=ours.get((day, model), Account(0, 0, 0)),
            theirs=usages.accounts.get((day, model), nothing),
        )
        for day, model in sorted(ours.keys() | usages.accounts.keys())
    )


def _nothing(accounts: Collection[Account]) -> Account:
    """What an export says of a model that it does not name: none of what it tells of others."""

    def none(name: str) -> int | None:
        return 0 if any(getattr(account, name) is not None for account in accounts) else None

    return Account(
        requests=none("requests"),
        prompt_tokens=none("prompt_tokens"),
        completion_tokens=none("completion_tokens"),
        cost=dict.fromkeys((currency for account in accounts for currency in account.cost), Decimal(0)),
    )


def _less(difference: Difference, name: str) -> int | None:
    theirs: int | None = getattr(difference.theirs, name)
    ours: int | None = getattr(difference.ours, name)
    return None if theirs is None else theirs - (ours or 0)
