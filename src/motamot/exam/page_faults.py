"""What can be wrong with a page whose wire is right: the faults that `exam/compare.py` names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from motamot.findings import Evidence, Fault, Finding, Level, Promise

__all__ = ["PAGE_FAULTS", "QUOTE", "page_finding", "quoted"]

QUOTE = 200  # characters of a page, or of the wire, that one piece of evidence shows

_SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html"
_INTERPRETATION = f"[WHATWG HTML, Interpreting an event stream]({_SSE}#event-stream-interpretation)"

_FAULTS = (
    Fault(
        id="page-text-missing",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="text came over the wire and is not on the page",
        clause=_INTERPRETATION,
        remedy="Join all data lines of an event with LF, take off one space after the colon, trim nothing, and keep "
        "the bytes of a read that ends inside a line or a character for the next read; or use a reader that does.",
        harm="A visitor reads an answer with holes in it, and cannot know.",
    ),
    Fault(
        id="page-words-glued",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the spaces between words are not on the page",
        clause=_INTERPRETATION,
        remedy="Take off one space after `data:` and no more: the space that begins a token is the model's. Do not "
        "trim pieces.",
        harm="Words and sentences run into one another.",
    ),
    Fault(
        id="page-lines-joined",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="lines of the answer stand in one line on the page",
        clause="[CommonMark, List items](https://spec.commonmark.org/0.31.2/#list-items), "
        "[CSS Text, White space processing](https://www.w3.org/TR/css-text-3/#white-space-processing)",
        remedy="Keep the line breaks from the event to the element: join data lines with LF, render the Markdown of "
        "the whole text so far and not of each piece, or give plain text `white-space: pre-wrap`.",
        harm="A list of four is one bullet, a table one paragraph.",
    ),
    Fault(
        id="page-text-doubled",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the page shows the answer twice",
        clause=f"{_INTERPRETATION}: each event is dispatched once",
        remedy="Append each event once: one listener, removed when the component goes; no state updater that pushes "
        "to an array it was given; nothing appended again at the end or after a reconnection.",
        harm="A visitor reads everything twice.",
    ),
    Fault(
        id="page-error-shown",
        promise=Promise.SAFE,
        level=Level.MUST,
        title="an error object of the wire stands on the page as an answer",
        clause=f"{_INTERPRETATION}: a stream has no errors of its own, to tell one from text is the reader's part",
        remedy="Parse the event before it is appended: an error ends the stream, is said in words, and does not go "
        "into the history of the next request.",
        harm="A visitor sees JSON in a bubble, and the next request tells the model that it said so.",
    ),
    Fault(
        id="page-wire-shown",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="what is for the reader alone stands on the page",
        clause=_INTERPRETATION,
        remedy="Show only the text of events; drop what is left without its blank line at the end of the stream.",
        harm="`data:`, `[DONE]` or the JSON of events stand in the answer.",
    ),
    Fault(
        id="page-placeholder-shown",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="the page shows `undefined` or `[object Object]` that nobody sent",
        clause="[OpenAI, Chat completion chunk](https://platform.openai.com/docs/api-reference/chat-streaming): "
        "`content` is optional",
        remedy='Append `delta.content ?? ""`, and look into the object for its text.',
        harm="`undefined` stands at an end of the answer.",
    ),
    Fault(
        id="page-broken-characters",
        promise=Promise.EXACT,
        level=Level.MUST,
        title="characters that were whole on the wire are broken on the page",
        clause="[WHATWG Encoding, TextDecoder](https://encoding.spec.whatwg.org/#dom-textdecoder-decode): `stream`",
        remedy="Decode with one TextDecoder for the whole stream and `{stream: true}`: a read ends inside a "
        "character as often as not.",
        harm="Accents and emoji become \ufffd.",
    ),
    Fault(
        id="page-shown-at-once",
        promise=Promise.LIVE,
        level=Level.SHOULD,
        title="the answer came piece by piece, and the page showed it all at once",
        clause="[WHATWG Fetch, Bodies](https://fetch.spec.whatwg.org/#concept-body): a response's body is a stream",
        remedy="Read `response.body` with a reader and show each piece; `await response.text()` and "
        "`response.json()` wait for the end, as does state that is only set after the loop.",
        harm="A visitor waits in front of an empty bubble for an answer that is already there.",
    ),
    Fault(
        id="page-asked-twice",
        promise=Promise.ONCE,
        level=Level.MUST,
        title="the page asked the same thing more than once",
        clause=f"[WHATWG HTML, Processing model]({_SSE}#sse-processing-model): an EventSource reconnects by itself; "
        "[React, StrictMode](https://react.dev/reference/react/StrictMode): effects run twice",
        remedy="Ask in the handler of the click, not in an effect; close an EventSource at the answer's end event; "
        "give a key with the question, by which the server joins what it is already answering.",
        harm="Each answer is generated, and paid, more than once.",
    ),
)

PAGE_FAULTS: Mapping[str, Fault] = MappingProxyType({fault.id: fault for fault in _FAULTS})
"""By name."""


def page_finding(name: str, message: str, *evidence: Evidence, times: int = 1) -> Finding:
    """A finding of one of these faults."""
    return Finding(fault=PAGE_FAULTS[name], message=message, evidence=evidence[:5], times=times)


def quoted(text: str) -> str:
    """`text` as evidence shows it."""
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"
