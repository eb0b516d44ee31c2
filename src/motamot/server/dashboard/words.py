"""Every word of the dashboard's pages has its name here; a language that lacks one is refused by the type checker."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Words", "moment_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of one language. Those with braces are filled in by `str.format`."""

    language: str
    other: str  # how the link to the other language is called, in that language
    thousands: str
    decimal: str

    # Everywhere
    to_content: str
    pages: str
    overview: str
    conversations: str
    figures: str
    reconcile: str
    sign_out: str
    utc: str
    nothing: str
    none: str
    unknown: str
    more: str
    error: str
    back: str
    scroll: str

    # Sign-in
    sign_in: str
    key: str
    key_help: str
    wrong_key: str
    signed_out: str
    not_set: str
    how_to_set: str
    form_old: str

    # Overview
    today: str
    exchanges: str
    completions: str
    outcomes: str
    tokens: str
    tokens_split: str
    estimated: str
    unknown_completions: str
    money: str
    unpriced: str
    budgets: str
    spent: str
    reserved: str
    budget: str
    left: str
    no_budget: str
    running_now: str
    running_elsewhere: str
    nothing_runs: str
    stop: str
    stop_of: str
    troubles: str
    store_fails: str
    ending: str
    failing: str
    last_failures: str
    no_failures: str

    # Lists and exchanges
    time: str
    question: str
    answer: str
    outcome: str
    end: str
    assistant: str
    model: str
    cost: str
    visitor: str
    conversation: str
    exchange: str
    odd: str
    odd_title: str
    removed: str
    since: str
    ran: str

    # Search
    search: str
    search_for: str
    search_help: str
    more_filters: str
    no_search: str
    any: str
    from_day: str
    to_day: str
    cost_from: str
    cost_to: str
    clear: str
    found_none: str
    older: str
    newest: str
    export_these: str
    of_visitor: str
    of_conversation: str
    bad_field: str

    unsearchable: str

    # Conversation and exchange
    no_conversation: str
    no_exchange: str
    what: str
    latest_only: str
    shown: str
    shown_help: str
    sent: str
    generated: str
    same_as_shown: str
    same_as_sent: str
    not_seen: str
    not_sent: str
    otherwise: str
    empty: str
    why: str
    detail: str
    marks: str
    sources: str
    turns: str
    turn: str
    reasoning: str
    routed: str
    tool_called: str
    tool_returned: str
    status: str
    text: str
    omitted: str
    time_line: str
    time_unknown: str
    time_line_of: str
    first_text: str
    stop_asked: str
    stop_closed: str
    after: str
    event: str
    number: str
    not_numbered: str
    attempt: str
    finish: str
    duration: str
    retry: str
    should_not_be: str
    tape: str
    tape_help: str
    replaces: str
    stop_this: str
    stopped_it: str
    not_here: str
    not_running: str

    # Figures
    others: str
    show: str
    outcomes_a_day: str
    first_text_a_day: str
    stop_a_day: str
    tokens_a_day: str
    money_a_day: str
    day: str
    half: str
    most: str
    of_which_estimated: str
    by_assistant: str
    whole_time: str
    no_figures: str
    chart_of: str
    too_long: str
    prompt_tokens: str
    completion_tokens: str

    # Visitor
    visitor_help: str
    last_asked: str
    began: str
    deleted: str
    export_visitor: str
    delete_visitor: str
    delete_warning: str
    delete_confirm: str
    delete_unsure: str
    deleted_so_many: str
    no_visitor: str

    # Reconcile
    reconcile_help: str
    file: str
    choose_file: str
    compare: str
    theirs: str
    ours: str
    difference: str
    only_theirs: str
    only_ours: str
    columns: str
    total: str
    beyond: str
    column_help: str
    reads: str
    at_most: str
    all_equal: str

    outcome_words: Mapping[str, str]
    code_words: Mapping[str, str]
    by_words: Mapping[str, str]
    source_words: Mapping[str, str]
    mark_words: Mapping[str, str]
    column_words: Mapping[str, str]

    def count(self, number: float) -> str:
        """A whole number, its thousands apart."""
        return f"{number:,.0f}".replace(",", self.thousands)

    def amount(self, number: float, places: int = 6) -> str:
        """A number, to so many places, with two at least."""
        whole, _, part = f"{number:,.{places}f}".partition(".")
        part = part.rstrip("0").ljust(min(2, places), "0")
        return whole.replace(",", self.thousands) + (self.decimal + part if part else "")

    def money_of(self, costs: Mapping[str, float]) -> str:
        """Money by currency; several are not added up."""
        return " + ".join(f"{self.amount(cost)}\u00a0{currency}" for currency, cost in sorted(costs.items()))

    def seconds(self, seconds: float | None) -> str:
        """A time span, to three digits: `2.5 ms`, `0.25 s`, `3 min 20 s`."""
        if seconds is None:
            return self.unknown
        if seconds < 59.95:
            number, unit = (seconds * 1000, "ms") if 0 < seconds < 0.1 else (seconds, "s")
            return f"{number:.3g}".replace(".", self.decimal) + f"\u00a0{unit}"
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}\u00a0h\u00a0{minutes}\u00a0min" if hours else f"{minutes}\u00a0min\u00a0{rest}\u00a0s"

    def moment(self, at: float) -> str:
        """A time, UTC."""
        return moment_of(at).strftime("%Y-%m-%d %H:%M:%S")


def moment_of(at: float) -> dt.datetime:
    """Seconds since the epoch as a time in UTC; what no calendar has is its first day."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC)
    except (OverflowError, OSError, ValueError):
        return dt.datetime.fromtimestamp(0, dt.UTC)
