"""Tool calls whose fragments are not by the book. The assembly that copes with them names them."""

from __future__ import annotations

from motamot.findings.faults.clauses import JSON, OPENAI_TOOLS
from motamot.findings.finder import Rule
from motamot.findings.finding import Fault, Level, Promise

__all__ = ["TOOL_RULES"]


def _rule(name: str, level: Level, title: str, clause: str, remedy: str, harm: str) -> Rule:
    fault = Fault(id=name, promise=Promise.EXACT, level=level, title=title, clause=clause, remedy=remedy, harm=harm)
    return Rule(fault)


_MELT = "Clients that gather fragments by index melt calls together, or raise."

TOOL_RULES = (
    _rule(
        "tool-index-missing",
        Level.SHOULD,
        "a fragment of a tool call has no index",
        f"{OPENAI_TOOLS}: `index` is required",
        "Number the calls of a completion from 0, and send the number with each fragment.",
        "Four of ten client libraries raise; with two calls at once most of them get neither.",
    ),
    _rule(
        "tool-index-reused",
        Level.MUST,
        "an index is taken by another call",
        f"{OPENAI_TOOLS}: fragments with one `index` are one call",
        "Give each call of a completion its own index.",
        _MELT,
    ),
    _rule(
        "tool-name-repeated",
        Level.SHOULD,
        "the name comes again with later fragments",
        f"{OPENAI_TOOLS}: strings of the fragments are joined",
        "Send `name` with the first fragment of a call only.",
        "Clients that join strings call a tool named twice over, which does not exist.",
    ),
    _rule(
        "tool-id-missing",
        Level.SHOULD,
        "a tool call has no id",
        f"{OPENAI_TOOLS}: `id` names the call that a result answers",
        "Send an id, unique in the conversation, with the first fragment of each call.",
        "The result cannot be given back: the next request is refused, or the call vanishes.",
    ),
    _rule(
        "tool-id-repeated",
        Level.SHOULD,
        "one id for two calls, or two ids for one",
        f"{OPENAI_TOOLS}: `id` names one call",
        "Give each call one id of its own.",
        "Results are given to the wrong call.",
    ),
    _rule(
        "tool-args-not-string",
        Level.SHOULD,
        "the arguments are not a string",
        f"{OPENAI_TOOLS}: `function.arguments` is a string of JSON",
        "Send the arguments as JSON text, cut as you like.",
        "Typed clients refuse the chunk; others raise when they join strings.",
    ),
    _rule(
        "tool-args-duplicated",
        Level.MUST,
        "the whole arguments come twice",
        f"{OPENAI_TOOLS}: strings of the fragments are joined",
        "Send the arguments once; no placeholder before, no summary after.",
        "The joined arguments are no JSON: the tool does not run, or runs twice.",
    ),
    _rule(
        "tool-args-invalid-json",
        Level.MUST,
        "the arguments are broken",
        f"{JSON}: the arguments of a call are one JSON object",
        "Check the template of the model's server; ask the model again with the error as the call's result.",
        "The tool cannot run.",
    ),
    _rule(
        "tool-args-truncated",
        Level.MUST,
        "the arguments are cut off",
        f"{OPENAI_TOOLS}: the strings of all fragments together are JSON",
        "Raise `max_tokens`; never run a call of a turn that ended with `length`.",
        "Half a call: a mail with half its text, if somebody runs it.",
    ),
    _rule(
        "tool-fragment-ambiguous",
        Level.MUST,
        "a fragment belongs to no call, or to several",
        f"{OPENAI_TOOLS}: `index` says which call a fragment belongs to",
        "Send `index`, or at least `id`, with each fragment.",
        _MELT,
    ),
    _rule(
        "tool-call-not-object",
        Level.MUST,
        "an entry of `tool_calls` is no object",
        f"{OPENAI_TOOLS}: a list of objects",
        "Send each fragment as an object with `index` and `function`.",
        "Clients raise, or the call vanishes.",
    ),
    _rule(
        "legacy-function-call",
        Level.NOTE,
        "the call comes as `function_call`",
        f"{OPENAI_TOOLS} took the place of `function_call`",
        "Send `tool_calls`.",
        "Newer clients do not look there: the tool never runs.",
    ),
)
