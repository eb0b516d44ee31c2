"""A provider's export beside the ledger."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from motamot.errors import InvalidRequest
from motamot.store.reconcile import FILE_BYTES, Account, differences, read_usage, same_model
from motamot.store.views import Day

DAY = dt.date(2026, 11, 28)
NEXT = dt.date(2026, 11, 29)

OPENAI_USAGE = """\
start_time,end_time,start_time_iso,end_time_iso,project_id,num_model_requests,user_id,api_key_id,model,batch,\
service_tier,input_tokens,output_tokens,input_cached_tokens
1795824000,1795910400,2026-11-28T00:00:00+00:00,2026-11-29T00:00:00+00:00,proj_1,3.0,,,gpt-4o-mini-2024-07-18,FALSE,\
default,300.0,120.0,64.0
1795824000,1795910400,2026-11-28T00:00:00+00:00,2026-11-29T00:00:00+00:00,proj_2,1,,,gpt-4o-mini-2024-07-18,FALSE,\
default,100,30,0
1795824000,1795910400,2026-11-28T00:00:00+00:00,2026-11-29T00:00:00+00:00,proj_2,1,,,gpt-4o-2024-08-06,FALSE,\
default,50,5,0
1795910400,1795996800,2026-11-29T00:00:00+00:00,2026-11-30T00:00:00+00:00,,,,,,,,,,
"""
OPENAI_COST = """\
start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id,organization_id
1795824000,1795910400,2026-11-28T00:00:00+00:00,2026-11-29T00:00:00+00:00,0.003000000000000000,usd,\
"gpt-4o-mini-2024-07-18, input",,org
1795824000,1795910400,2026-11-28T00:00:00+00:00,2026-11-29T00:00:00+00:00,1.5e-03,usd,\
"gpt-4o-mini-2024-07-18, output",,org
1795910400,1795996800,2026-11-29T00:00:00+00:00,2026-11-30T00:00:00+00:00,,,,,
"""
ANTHROPIC_USAGE = """\
usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,\
usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,\
web_search_count,inference_geo,speed
2026-11-28,claude-haiku-4-5-20251001,key,Default,standard,≤ 200k,100,20,3,4000,50,0,global,
"""
ANTHROPIC_COST = """\
usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type
2026-11-28,Claude Haiku 4.5,Default,key,message,≤ 200k,input_no_cache,0.25,0.25,token
2026-11-28,Claude Haiku 4.5,Default,key,message,≤ 200k,output,0.50,0.50,token
"""


def ledger(day: dt.date, model: str, *, assistant: str = "bus", **figures: object) -> Day:
    known: dict[str, object] = {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "completions": 0,
        "cost": {},
        "estimated_tokens": 0,
        "unknown": 0,
        "exchanges": 0,
        "outcomes": {},
        "first_text": None,
        "stop": None,
    }
    return Day(day=day, assistant=assistant, model=model, **(known | figures))  # type: ignore[arg-type]


def test_openais_usage_is_summed_by_day_and_model() -> None:
    usages = read_usage(OPENAI_USAGE.encode())
    assert (usages.kind, usages.first, usages.last) == ("OpenAI usage", DAY, NEXT)
    assert usages.accounts == {
        (DAY, "gpt-4o-mini"): Account(requests=4, prompt_tokens=400, completion_tokens=150),
        (DAY, "gpt-4o"): Account(requests=1, prompt_tokens=50, completion_tokens=5),
    }


def test_openais_cost_is_by_model_where_the_export_was_grouped() -> None:
    usages = read_usage(OPENAI_COST.encode())
    assert usages.kind == "OpenAI cost"
    assert usages.accounts == {(DAY, "gpt-4o-mini"): Account(cost={"USD": Decimal("0.0045")})}
    whole = read_usage(
        OPENAI_COST.replace('"gpt-4o-mini-2024-07-18, input"', "")
        .replace('"gpt-4o-mini-2024-07-18, output"', "")
        .encode()
    )
    assert not whole.by_model
    assert whole.accounts == {(DAY, ""): Account(cost={"USD": Decimal("0.0045")})}


def test_anthropics_usage_counts_what_was_cached_too() -> None:
    usages = read_usage(ANTHROPIC_USAGE.encode())
    assert usages.accounts == {(DAY, "claude-haiku-4-5"): Account(prompt_tokens=4_123, completion_tokens=50)}
    older = ANTHROPIC_USAGE.replace(
        "usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h", "usage_input_tokens_cache_write"
    ).replace("100,20,3,", "100,23,")
    assert read_usage(older.encode()).accounts == usages.accounts


def test_anthropics_cost_names_models_as_people_do() -> None:
    usages = read_usage(ANTHROPIC_COST.encode())
    assert usages.accounts == {(DAY, "claude-haiku-4-5"): Account(cost={"USD": Decimal("0.75")})}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("Claude Haiku 4.5", "claude-haiku-4-5-20251001"),
        ("anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
        ("mistral-small-latest", "Mistral Small"),
    ],
)
def test_one_model_is_the_same_under_both_its_names(one: str, other: str) -> None:
    assert same_model(one) == same_model(other)


def test_models_of_other_sizes_and_versions_are_others() -> None:
    assert (
        len({same_model(name) for name in ("gpt-4o", "gpt-4o-mini", "gpt-4", "claude-haiku-4-5", "claude-haiku-4")})
        == 5
    )


def test_any_other_file_is_read_by_the_columns_that_the_operator_names() -> None:
    text = "Datum;Modell;Ein;Cache;Aus;Preis\n2026-11-28;m;10;5;2;€0.5\n2026-11-28 23:30:00+00:00;m;1;;;€0.25\n"
    columns = {
        "day": "Datum",
        "model": "Modell",
        "prompt_tokens": "Ein+Cache",
        "completion_tokens": "Aus",
        "cost": "Preis",
    }
    usages = read_usage(text.encode(), columns)
    assert usages.accounts == {(DAY, "m"): Account(None, 16, 2, {"EUR": Decimal("0.75")})}


def test_tabs_a_byte_order_mark_and_windows_line_ends_are_read() -> None:
    text = "\ufeff" + OPENAI_USAGE.replace(",", "\t").replace("\n", "\r\n")
    assert read_usage(text.encode()).accounts == read_usage(OPENAI_USAGE.encode()).accounts


def test_days_are_utc_whatever_zone_the_file_is_in() -> None:
    text = "d,t\n2026-11-28T23:30:00-05:00,1\n1795823999,2\n"
    usages = read_usage(text.encode(), {"day": "d", "requests": "t"})
    assert {day: account.requests for (day, _), account in usages.accounts.items()} == {
        NEXT: 1,
        dt.date(2026, 11, 27): 2,
    }


def test_differences_are_theirs_less_ours_for_all_that_either_side_has() -> None:
    days = [
        ledger(DAY, "gpt-4o-mini", prompt_tokens=390, completion_tokens=150, completions=4),
        ledger(DAY, "gpt-4o-mini", assistant="aide", prompt_tokens=10, completion_tokens=1, completions=1),
        ledger(DAY, "llama", prompt_tokens=7, completion_tokens=8, completions=1),
        ledger(NEXT, "gpt-4o", prompt_tokens=1, completion_tokens=1, completions=1),
        ledger(dt.date(2026, 11, 30), "gpt-4o", prompt_tokens=9_999),  # the export does not speak of this day
    ]
    found = {(one.day, one.model): one for one in differences(days, read_usage(OPENAI_USAGE.encode()))}
    told = {key: (one.requests, one.prompt_tokens, one.completion_tokens) for key, one in found.items()}
    assert told == {
        (DAY, "gpt-4o"): (1, 50, 5),  # billed, and not in our books
        (DAY, "gpt-4o-mini"): (-1, 0, -1),
        (DAY, "llama"): (-1, -7, -8),  # booked, and not billed
        (NEXT, "gpt-4o"): (-1, -1, -1),
    }
    assert all(one.cost == {} for one in found.values())  # this export says nothing about money


def test_costs_differ_by_currency_and_without_models_by_day_alone() -> None:
    text = "day,cost,currency\n2026-11-28,0.30,usd\n2026-11-28,1.00,EUR\n"
    usages = read_usage(text.encode(), {"day": "day", "cost": "cost", "currency": "currency"})
    days = [ledger(DAY, "a", cost={"USD": 0.1}), ledger(DAY, "b", cost={"USD": 0.2, "GBP": 4.0})]
    [one] = differences(days, usages)
    assert (one.model, one.cost) == ("", {"USD": Decimal(0), "EUR": Decimal("1.00")})
    assert one.prompt_tokens is None


@pytest.mark.parametrize(
    ("written", "amount"), [("0,125", "0.125"), ("12,5", "12.5"), ("-3,0625", "-3.0625"), ("7", "7")]
)
def test_a_spreadsheets_decimal_comma_is_one(written: str, amount: str) -> None:
    usages = read_usage(f"day;cost\n2026-11-28;{written}\n".encode(), {"day": "day", "cost": "cost"})
    assert usages.accounts[DAY, ""].cost == {"USD": Decimal(amount)}


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("", None, "no export that is known"),
        ("a,b\n1,2\n", None, "it has 'a', 'b'"),
        ("d,t\n", None, "no lines below"),
        ("d,t\n2026-13-01,1\n", "d", "line 2, column 'd': '2026-13-01' is no day"),
        ("d,t\nyesterday,1\n", "d", "is no day"),
        ("d,t\n\n2026-11-28,1\n2026-11-28,many\n", "t", "line 4, column 't': 'many' is no number"),
        ("d,t\n2026-11-28,NaN\n", "t", "is no number"),
        ("d,t\n2026-11-28,Infinity\n", "t", "is no number"),
        ("d,t\n2026-11-28,1e99\n", "t", "is no number"),
        ('d,t\n2026-11-28,"1,234"\n', "t", "is no number"),
        ("d;t\n2026-11-28;1,234\n", "t", "is no number"),  # a thousand, or a little more than one
        ("d,t\n2026-11-28,1.5\n", "t", "line 2: 1.5 requests are no whole number"),
        ("d,t\n2026-11-28,1_000\n", "t", "is no number"),
        ("d,t\n2026-11-28,٣\n", "t", "is no number"),
        ("d,t\n2026-11-28,1,2,3\n", None, "line 2 has 4 fields"),
        ('d,t\n2026-11-28,"1\n', None, "line 2 cannot be read as CSV"),
        ('d,t\n2026-11-28,"1"x\n', None, "cannot be read as CSV"),
        ("d,t\n2026-11-28," + "9" * 200_000 + "\n", None, "cannot be read as CSV"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_line_and_column(text: str, field: str | None, words: str) -> None:
    columns = {"day": "d", "requests": "t"} if text.startswith(("d,t", "d;t")) else None
    with pytest.raises(InvalidRequest) as told:
        read_usage(text.encode(), columns)
    assert words in told.value.message
    assert told.value.field == field
    assert len(told.value.message) < 1_000


def test_a_file_that_is_too_large_or_no_text_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="bytes"):
        read_usage(b"x" * (FILE_BYTES + 1))
    with pytest.raises(InvalidRequest, match="line 2 is not UTF-8"):
        read_usage(b"d,t\n\xff\xfe,1\n")
    many = b"d,m,t\n" + b"".join(b"2026-11-28,model%d,1\n" % n for n in range(20_001))
    with pytest.raises(InvalidRequest, match="days and models"):
        read_usage(many, {"day": "d", "model": "m", "requests": "t"})
    with pytest.raises(InvalidRequest, match="200000 lines"):
        read_usage(b"d,t\n" + b"2026-11-28,1\n" * 200_001, {"day": "d", "requests": "t"})


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"day": "d"}, "of tokens, requests or cost"),
        ({"requests": "t"}, "the column of the day"),
        ({"day": "d", "requests": "missing"}, "no column 'missing'"),
        ({"day": "d", "tokens": "t"}, "there is no 'tokens'"),
        ({"day": "d", "requests": "+".join("t" * 21)}, "at most 20 columns"),
    ],
)
def test_columns_that_are_named_wrong_are_told(columns: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        read_usage(b"d,t\n2026-11-28,1\n", columns)


@given(st.text() | st.text(alphabet='dt,;"\n\r\t0189-:TeE.+$€\0'))
def test_whatever_comes_is_read_or_refused_in_words(text: str) -> None:
    try:
        usages = read_usage(("d,t\n" + text).encode("utf-8", "replace"), {"day": "d", "requests": "t"})
    except InvalidRequest as error:
        assert error.message
    else:
        assert differences([], usages) is not None
