"""The end of a completion, its tokens and the shape of its chunks. The assembly that copes with them names them."""

from __future__ import annotations

from motamot.findings.faults.clauses import ANTHROPIC, JSON, OPENAI, OPENAI_USAGE
from motamot.findings.finder import Rule
from motamot.findings.finding import Fault, Level, Promise

__all__ = ["COMPLETION_RULES"]


def _rule(name: str, promise: Promise, level: Level, title: str, clause: str, remedy: str, harm: str) -> Rule:
    fault = Fault(id=name, promise=promise, level=level, title=title, clause=clause, remedy=remedy, harm=harm)
    return Rule(fault)


_CUT = "Several clients take the cut answer for a whole one, and nobody is told."
_SUM = "Clients that add the reports up book several times the tokens."

COMPLETION_RULES = (
    _rule(
        "finish-mismatch",
        Promise.EXACT,
        Level.SHOULD,
        "the finish reason and the tool calls contradict each other",
        f"{OPENAI}: the reason is `tool_calls` if the model called a tool",
        "Say `tool_calls` when tools were called, and only then.",
        "Clients that go by the reason show half an answer and never run the tool.",
    ),
    _rule(
        "finish-repeated",
        Promise.EXACT,
        Level.SHOULD,
        "two different finish reasons",
        f"{OPENAI}: one reason, in the last chunk of a choice",
        "Send the reason once.",
        "Some clients keep the first and some the last: a cut answer passes for a complete one.",
    ),
    _rule(
        "finish-empty-string",
        Promise.EXACT,
        Level.SHOULD,
        'the finish reason is "" instead of null',
        f"{OPENAI}: `finish_reason` is null until the end",
        "Send null, or leave the field out, until the answer ends.",
        "Clients that look whether there is a reason stop after the first piece.",
    ),
    _rule(
        "finish-unknown-word",
        Promise.EXACT,
        Level.NOTE,
        "a finish reason that nobody knows",
        f"{OPENAI}: `stop`, `length`, `tool_calls`, `content_filter` or `function_call`",
        "Translate the engine's reason into one of these.",
        "Typed clients refuse the chunk; others cannot tell a cut answer from a complete one.",
    ),
    _rule(
        "finish-missing",
        Promise.EXACT,
        Level.MUST,
        "no finish reason",
        f"{OPENAI}: the last chunk of a choice has one; {ANTHROPIC}: `message_delta` has `stop_reason`",
        "Send the reason; where the model's stream broke off, send an error instead of closing.",
        _CUT,
    ),
    _rule(
        "done-missing",
        Promise.EXACT,
        Level.SHOULD,
        "no end marker",
        f"{OPENAI}: the stream ends with `data: [DONE]`; {ANTHROPIC}: with `message_stop`",
        "Send the marker as the last event, with its blank line, and only after a whole answer.",
        _CUT,
    ),
    _rule(
        "content-after-finish",
        Promise.EXACT,
        Level.SHOULD,
        "text after the finish reason",
        f"{OPENAI}: the reason comes with the last chunk of a choice",
        "Send the reason after the last piece.",
        "Clients that stop at the reason miss the rest.",
    ),
    _rule(
        "usage-missing",
        Promise.ACCOUNTED,
        Level.SHOULD,
        "no usage",
        f"{OPENAI_USAGE}: a last chunk with the tokens, where it is asked for",
        'Ask with `"stream_options": {"include_usage": true}`, and pass the chunk on.',
        "What the answer cost can only be estimated; some libraries book zero.",
    ),
    _rule(
        "usage-in-every-chunk",
        Promise.ACCOUNTED,
        Level.SHOULD,
        "running totals on each chunk",
        f"{OPENAI_USAGE}: usage is null on all chunks but the last",
        "Send usage once, at the end.",
        _SUM,
    ),
    _rule(
        "usage-nonstandard-place",
        Promise.ACCOUNTED,
        Level.SHOULD,
        "usage elsewhere than at the top of a chunk",
        f"{OPENAI_USAGE}: at the top of the last chunk",
        "Send usage at the top of a chunk, whatever else you send it in.",
        "Clients do not find it: the tokens are not booked.",
    ),
    _rule(
        "usage-incomplete",
        Promise.ACCOUNTED,
        Level.SHOULD,
        "a usage report without one of its counts",
        f"{OPENAI_USAGE}: `prompt_tokens` and `completion_tokens`",
        "Send both counts.",
        "Half the tokens have to be estimated.",
    ),
    _rule(
        "usage-invalid",
        Promise.ACCOUNTED,
        Level.SHOULD,
        "a count of tokens that is none",
        f"{OPENAI_USAGE}: whole numbers, 0 or more",
        "Send whole numbers.",
        "Typed clients refuse the chunk; others book nonsense.",
    ),
    _rule(
        "usage-reasoning-apart",
        Promise.ACCOUNTED,
        Level.NOTE,
        "completion tokens without the reasoning tokens",
        f"{OPENAI_USAGE}: `completion_tokens` holds the reasoning tokens",
        "Count reasoning into `completion_tokens`.",
        "Who books prompt and completion books less than is paid.",
    ),
    _rule(
        "choices-missing",
        Promise.EXACT,
        Level.SHOULD,
        "a chunk without choices",
        f"{OPENAI}: `choices` is required, and may be empty",
        "Send `choices: []` on chunks without a choice; send errors under `error`.",
        "Clients that index `choices[0]` raise in the middle of the answer.",
    ),
    _rule(
        "delta-missing",
        Promise.EXACT,
        Level.SHOULD,
        "a choice without delta",
        f"{OPENAI}: `choices[].delta` is required",
        "Send the new text in `delta.content`, and `delta: {}` where there is none.",
        "Clients raise, or the text is lost.",
    ),
    _rule(
        "content-not-string",
        Promise.EXACT,
        Level.SHOULD,
        "the content of a delta is not a string",
        f"{OPENAI}: `delta.content` is a string or null",
        "Send text as a string.",
        "Pages show `[object Object]`; typed clients refuse the chunk.",
    ),
    _rule(
        "choices-several",
        Promise.EXACT,
        Level.NOTE,
        "more than one choice",
        f"{OPENAI}: `choices[].index` tells them apart",
        "Ask for one choice where a visitor reads along.",
        "Clients that do not look at the index mix two answers word by word.",
    ),
    _rule(
        "error-in-stream",
        Promise.EXACT,
        Level.MUST,
        "an error object among the data",
        f"{OPENAI}: after status 200 an error can only come as an event",
        "Tell the visitor that the answer failed; find the cause in the error's text.",
        "The answer ends there; clients that do not look for it show half an answer as a whole one.",
    ),
    _rule(
        "json-parse",
        Promise.EXACT,
        Level.MUST,
        "data that should be JSON and is not",
        f"{JSON}; the protocol's data is one JSON value an event",
        "Write each event with a JSON serialiser, on one line, in one write.",
        "Clients raise in the middle of the answer, or skip the piece without a word.",
    ),
)
