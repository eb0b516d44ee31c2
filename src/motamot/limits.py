"""Every bound on what a stranger, a model or a tool can make us hold or wait for.

Sizes are bytes of UTF-8 (kB = 1000), times are seconds. docs/limits.md is made from this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Limits"]


def _limit(default: float, unit: str, why: str) -> float:
    return field(default=default, metadata={"unit": unit, "why": why})


def _count(default: int, unit: str, why: str) -> int:
    return field(default=default, metadata={"unit": unit, "why": why})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one assistant. Raise or lower any of them: `Limits(tool_seconds=5)`."""

    connect_seconds: float = _limit(10, "s", "a model's server that does not take a connection by then is down")
    local_start_seconds: float = _limit(120, "s", "loading the embedded model takes 2 to 8 s; a slow disk, a minute")
    first_delta_seconds: float = _limit(60, "s", "a long prompt on a small machine takes most of a minute")
    silence_seconds: float = _limit(60, "s", "reasoning counts as a delta, comments as life")
    exchange_seconds: float = _limit(600, "s", "an answer nobody waits for any more")
    answer_timeout: float | None = field(
        default=None,
        metadata={"unit": "s", "why": "a whole answer's own time limit, none until set"},
    )
    usage_grace_seconds: float = _limit(2, "s", "the usage chunk follows the finish reason at once or never")
    retry_wait_seconds: float = _limit(5, "s", "Retry-After is honoured up to this in all, a visitor waits no longer")
    attempts: int = _count(3, "attempts", "each attempt is a ledger row")
    tool_seconds: float = _limit(30, "s", "a tool that hangs becomes a result that says so")
    tool_result_bytes: int = _count(256_000, "bytes", "a tool's result is paid for as prompt tokens")
    tool_calls_per_turn: int = _count(32, "calls", "a turn that asks for more is broken")
    sources_per_exchange: int = _count(200, "sources", "given to the model for one answer; later ones are not shown")
    max_turns: int = _count(8, "turns", "a model that calls tools for ever stops paying here")
    max_tokens: int = _count(
        2_000, "tokens", "always sent: without it a small model can loop until its context is full"
    )
    message_bytes: int = _count(32_000, "bytes", "one question")
    key_bytes: int = _count(200, "bytes", "a key names an exchange, it holds no content")
    json_depth: int = _count(64, "levels", "deeper is an attack; the deepest tool schemas hold a dozen")
    history_tokens: int = _count(8_000, "tokens", "older exchanges are left out whole, never cut")
    redirects: int = _count(3, "redirections", "of one request, within its origin; more is a loop")
    response_head_bytes: int = _count(256 << 10, "bytes", "a reply's headers; the largest seen have 8 kB")
    error_body_bytes: int = _count(16_000, "bytes", "what is read of a refusal, to tell the operator why")
    error_body_seconds: float = _limit(5, "s", "a refusal that trickles in is not waited for")
    linger_seconds: float = _limit(0.5, "s", "after the end mark, for the body's own end: then the connection is kept")
    event_bytes: int = _count(1 << 20, "bytes", "one event of the model's stream")
    answer_bytes: int = _count(4 << 20, "bytes", "one answer")
    answer_events: int = _count(100_000, "events", "one answer")
    details_bytes: int = _count(
        1_000_000, "bytes", "what tools were given and gave, and reasoning, kept of one answer; more is left out"
    )
    live_bytes: int = _count(256 << 20, "bytes", "answers held in memory by all running exchanges; full: 503")
    exchanges_running: int = _count(1_000, "exchanges", "under way in one process; full: 503")
    readers_per_exchange: int = _count(
        16, "readers", "of one answer at a time: tabs, and connections not yet seen dead"
    )
    exchanges_per_visitor: int = _count(4, "exchanges", "under way for one visitor")
    resume_seconds: float = _limit(15, "s", "how long an exchange runs on without its reader (resume_window)")
    replay_seconds: float = _limit(600, "s", "how long an ended exchange can be read again from memory")
    stop_memory_seconds: float = _limit(30, "s", "a stop that comes before its begin is remembered so long")
    stops_remembered: int = _count(10_000, "stops", "what strangers can make us remember")
    chats_remembered: int = _count(10_000, "chats", "of the AI SDK: which answer is under way in each; 2 kB at most")
    connections: int = _count(10_000, "connections", "open at a time; more are told 503")
    head_bytes: int = _count(64_000, "bytes", "a request's line and headers; browsers send 8 kB with many cookies")
    head_seconds: float = _limit(10, "s", "a request's head that trickles in holds a connection")
    stall_seconds: float = _limit(60, "s", "a client that takes nothing of what waits for it is let go")
    body_bytes: int = _count(1_000_000, "bytes", "a request's body")
    bodies_bytes: int = _count(32 << 20, "bytes", "all bodies that are still coming in; full: 503")
    bodies_address_bytes: int = _count(4 << 20, "bytes", "those of one address, which cannot fill it alone; full: 429")
    body_seconds: float = _limit(10, "s", "a body that trickles in holds a connection")
    heartbeat_seconds: float = _limit(15, "s", "a comment after so much silence: proxies close idle streams")
    opening_bytes: int = _count(2_000, "bytes", "the question of /flux stands in an address: proxies cut a long one")
    lease_seconds: float = _limit(15, "s", "an owner that has not renewed its lease by then is dead")
    sign_in_failures: int = _count(10, "keys", "wrong operator's keys of one address, or one browser; then 429")
    sign_in_failures_all: int = _count(200, "keys", "of all addresses; browsers that were let in once are not held")
    sign_in_seconds: float = _limit(900, "s", "how long a wrong operator's key counts")
    sessions: int = _count(100, "sessions", "browsers signed in to the dashboard; the one unused longest goes")
    page_text_characters: int = _count(100_000, "characters", "of one text on a dashboard's page; exports have all")
    session_idle_seconds: float = _limit(3_600, "s", "a dashboard that nobody looks at any more asks for the key again")
    session_seconds: float = _limit(43_200, "s", "however much it is used: a working day")
    shutdown_seconds: float = _limit(5, "s", "running exchanges are ended and booked within this time")
    stop_seconds: float = _limit(0.1, "s", "from a stop to the upstream connection closed")
    checkpoint_seconds: float = _limit(1, "s", "a killed process loses at most so much shown text")
    store_seconds: float = _limit(5, "s", "a question that cannot be booked by then is refused: nothing runs unbooked")
