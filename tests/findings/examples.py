"""For each fault a tape that shows it, and one that looks alike and must not be named. docs/findings.md shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from motamot.findings import examine
from motamot.tape.tape import Request, Tape
from tests.findings.tapes import DONE, END, USAGE, call, chunk, delta, events, finish, tape, text, timed


@dataclass(frozen=True, kw_only=True)
class Example:
    """shows, alike: tapes; why: why the second is none, one sentence. whole: the same answer in one piece."""

    shows: Tape
    alike: Tape
    why: str
    protocol: str | None = None
    whole: str | None = None
    whole_alike: str | None = None
    found: set[str] = field(default_factory=set)

    def names(self, one: Tape) -> set[str]:
        """What is found in one of the two."""
        whole = self.whole if one is self.shows else self.whole_alike
        return {finding.id for finding in examine(one, protocol=self.protocol, whole=whole).findings}


ROUTING = {"type": "routing", "agentId": "a", "confidence": 0.9, "routingMethod": "semantic", "trace": None}
HI = text("Hel", "lo")
WORDS = tuple(f"w{number} " for number in range(12))
LONG = "A sentence that a visitor would have liked to read as it was written. " * 4


def arguments(first: str, *rest: str, **more: Any) -> str:
    """A call of `get_weather` in fragments by the book."""
    opened = {"index": 0, "id": "t1", "type": "function", "function": {"name": "get_weather", "arguments": first}}
    return call({**opened, **more}, *({"index": 0, "function": {"arguments": piece}} for piece in rest))


LYON = '{"city": "Lyon"}'
CALLED = finish("tool_calls") + USAGE + DONE


def ui(*parts: dict[str, Any] | str) -> str:
    """Parts of a UI message, with what stands around them."""
    return events({"type": "start"}, {"type": "start-step"}, *parts)


UI_TEXT = ({"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "Hi"})
UI_END = ({"type": "text-end", "id": "1"}, {"type": "finish-step"}, {"type": "finish"}, "[DONE]")


def ag(*kinds: str, **names: str) -> str:
    """AG-UI events of these types."""
    known = {"threadId": "t", "runId": "r", "messageId": "m", "stepName": "s", "delta": "Hi", **names}
    return events(*({"type": kind, **known} for kind in kinds))


AG_TEXT = ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END")
MORCEAUX = "id: x.1\n" + events({"morceau": ""}, {"morceau": "Hi"})
FIN = "event: fin\ndata: fin\n\n"
BASE = 4.0
PRODUCED = tuple(number * 0.3 for number in range(12))


def spread(*times: float) -> list[tuple[float, str]]:
    """A word at each of these times, and the end."""
    told = [(at, text(word)) for at, word in zip(times, WORDS, strict=True)]
    return [*told, (times[-1] + 0.01, END)]


LIVE = timed(*spread(*(at + 0.1 for at in PRODUCED)), upstream_at=PRODUCED)

EXAMPLES: dict[str, Example] = {
    # --- framing
    "missing-blank-line": Example(
        shows=tape(text("Hel")[:-1] + text("lo") + END),
        alike=tape(events(*('{"choices": [{"index": 0,\ndata: "delta": {"content": "Hi"}}]}',)) + END),
        why="One JSON value may stand on several `data:` lines.",
    ),
    "unterminated-last-event": Example(
        shows=tape(HI + finish() + "data: [DONE]"),
        alike=tape(HI + END + ": keep-aliv"),
        why="A comment that is cut is nothing to a reader.",
    ),
    "unknown-field": Example(
        shows=tape("progress: 10\n" + HI + END),
        alike=tape(": progress: 10\nretry: 10\ndata" + "\n\n" + HI + END),
        why="A comment, a known field and a field without a colon are by the standard.",
        protocol="openai",
    ),
    "error-field": Example(
        shows=tape(HI + 'error: {"message": "too long"}\n\n' + DONE),
        alike=tape('event: error\ndata: {"message": "too long"}\n\n'),
        why="An event whose name is `error` is one.",
    ),
    "raw-line-break": Example(
        shows=tape("data: | chord | notes |\n|---|---|\n| Am | A C E |\n\n" + DONE),
        alike=tape("data: | chord | notes |\ndata: |---|---|\ndata: | Am | A C E |\n\n" + DONE),
        why="A `data:` line for each line of the text is how the standard writes it.",
    ),
    "space-eaten": Example(
        shows=tape("data:Hello\n\ndata: world\n\ndata:, and\n\ndata: all\n\n"),
        alike=tape('data:{"text": "Hello"}\n\ndata: {"text": " world"}\n\n'),
        why="In JSON, spaces around the data are nothing.",
    ),
    "event-without-data": Example(
        shows=tape(MORCEAUX + "event: fin\n\n"),
        alike=tape("event: ping\n\n" + MORCEAUX + FIN),
        why="Nobody waits for a ping.",
    ),
    "retry-only-block": Example(
        shows=tape("retry: 3000\n\n" + HI + END),
        alike=tape("retry: 3000\n" + HI + END),
        why="In a block with data it is read by all.",
    ),
    "id-on-foreign-route": Example(
        shows=tape("id: 1\n" + HI + END),
        alike=tape(MORCEAUX + FIN),
        why="Where clients reconnect by id, an id belongs.",
    ),
    "comment-as-data": Example(
        shows=tape(HI + "data: : keep-alive\n\n" + END),
        alike=tape("data: :\n\ndata: ) is a smile\n\n" + DONE),
        why="In raw text a colon may be the answer's.",
    ),
    "keepalive-inside-event": Example(
        shows=tape("event: message\n: keep-alive\n" + HI + END),
        alike=tape(": keep-alive\n" + HI + ": another\n\n" + END),
        why="Before an event, a comment is in no event.",
    ),
    "bom": Example(
        shows=tape("\ufeff" + HI + END),
        alike=tape(text("\ufeffHi") + END),
        why="U+FEFF inside the text is a character.",
    ),
    "crlf-for-lf-only-reader": Example(
        shows=tape("data: Hi\r\n\r\ndata: [DONE]\r\n\r\n"),
        alike=tape((HI + END).replace("\n", "\r\n")),
        why="Clients of this protocol read any line end.",
    ),
    # --- characters
    "replacement-character": Example(
        shows=tape(b'data: {"choices":[{"index":0,"delta":{"content":"caf\xc3"}}]}\n\n' + END.encode()),
        alike=tape([b'data: {"choices":[{"index":0,"delta":{"content":"caf\xc3', b'\xa9"}}]}\n\n' + END.encode()]),
        why="A character that is cut between two reads is whole.",
    ),
    "lone-surrogate": Example(
        shows=tape('data: {"choices":[{"index":0,"delta":{"content":"Hi \\ud83d!"}}]}\n\n' + END),
        alike=tape('data: {"choices":[{"index":0,"delta":{"content":"Hi \\ud83d\\ude00, \\\\ud83d!"}}]}\n\n' + END),
        why="Both halves are there; behind an escaped backslash stands text.",
    ),
    "mojibake": Example(
        shows=tape(text("Un cafÃ© et", " un thÃ©, s’il vous plaÃ®t.") + END),
        alike=tape(text("Écrivez «CAFÉ» en majuscules, pas «Ã©»."), source="raw"),
        why="Capitals before a quotation mark are no broken bytes, and a single pair may be an answer about them.",
    ),
    # --- repeats
    "cumulative-deltas": Example(
        shows=tape(text("Paris", "Paris is", "Paris is the capital") + END),
        alike=tape(text("ha", "ha", "ha", "!", " no", " no") + END),
        why="Honest repetition adds the same again.",
    ),
    "repeated-full-text": Example(
        shows=tape(text("Hel", "lo", "Hello") + END),
        alike=tape(text("bye", "bye") + END),
        why="Two equal short pieces may be the answer.",
    ),
    "glued-pieces": Example(
        shows=tape(events(ROUTING, "Solo over Am.", "- Am: play A, C and E.", "- C: play C, E and G.", "[DONE]")),
        alike=tape(text("Pi", " is", " 3", ".", "14", ".", "\n\n", "It", " goes", " on", ".") + END),
        why="Tokens end where they end.",
    ),
    "wire-in-text": Example(
        shows=tape("data: data: Hello\ndata: \n\ndata: data:  there\ndata: \n\ndata: [DONE]\n\n"),
        alike=tape(events("A stream looks so:", "data: Hello", " and then a blank line.", "[DONE]")),
        why="A text about event streams has such a line now and then.",
    ),
    # --- ends
    "connection-broken": Example(
        shows=tape(events({"text": "Hel"}, {"text": "lo"}), end="reset"),
        alike=tape(events({"text": "Hel"}, {"text": "lo"}, "[DONE]"), end="reset"),
        why="The answer's own end had come before.",
    ),
    "empty-stream": Example(
        shows=tape(": keep-alive\n\n"),
        alike=tape("", status=204),
        why="204 says that there is nothing.",
    ),
    "missing-terminal-event": Example(
        shows=tape(MORCEAUX),
        alike=tape(MORCEAUX, end="left"),
        why="Whoever recorded it left before the end.",
    ),
    "done-in-text": Example(
        shows=tape(MORCEAUX + events({"morceau": "[DONE]"}) + FIN),
        alike=tape(text("if line == ", "[DONE]", ": break") + END),
        why="In the middle of the text the word is the model's.",
    ),
    "foreign-end-mark": Example(
        shows=tape(ag("RUN_STARTED", *AG_TEXT, "RUN_FINISHED") + DONE),
        alike=tape(HI + END),
        why="OpenAI's streams end with it.",
    ),
    "error-as-text": Example(
        shows=tape(events(ROUTING, "partial answer", '{"error":"Failed to process message."}')),
        alike=tape(events(ROUTING, '{"error":"not found"}', " is what such a server says.", "[DONE]")),
        why="Text follows, and the end: the answer shows such an object.",
    ),
    "ag-ui-order": Example(
        shows=tape(ag("RUN_STARTED", "STEP_STARTED", *AG_TEXT, "RUN_FINISHED")),
        alike=tape(ag("RUN_STARTED", "STEP_STARTED", *AG_TEXT, "STEP_FINISHED", "RUN_FINISHED")),
        why="Every step is ended.",
    ),
    "ui-message-unknown-part": Example(
        shows=tape(ui(*UI_TEXT, {"type": "stopped"}, *UI_END)),
        alike=tape(ui(*UI_TEXT, {"type": "data-stopped", "data": {}}, *UI_END)),
        why="Parts of one's own begin with `data-`.",
    ),
    "ui-message-order": Example(
        shows=tape(ui({"type": "text-delta", "id": "1", "delta": "Hi"}, *UI_END)),
        alike=tape(ui(*UI_TEXT, *UI_END)),
        why="The text is started, and ended.",
    ),
    "whole-differs": Example(
        shows=tape(events(ROUTING, "- Am: A C E", "- C: C E G", "[DONE]")),
        whole="- Am: A C E\n- C: C E G",
        alike=tape("data: - Am: A C E\ndata: \n\ndata: - C: C E G\n\n" + DONE),
        whole_alike="- Am: A C E\n- C: C E G",
        why="The line break is in the first piece.",
    ),
    # --- delivery
    "burst-delivery": Example(
        shows=timed(*spread(*(BASE + number * 0.0003 for number in range(12))), upstream_at=PRODUCED),
        alike=timed(*spread(*(BASE + number * 0.0003 for number in range(12))), upstream_at=(3.9, 3.95, 4.0)),
        why="The model itself wrote it at once, after long thought.",
    ),
    "late-first-text": Example(
        shows=timed(*spread(*(BASE + number * 0.03 for number in range(12))), upstream_at=PRODUCED),
        alike=timed(*spread(*(BASE + at for at in PRODUCED)), upstream_at=tuple(BASE - 0.4 + at for at in PRODUCED)),
        why="The model began late; what it wrote left at once.",
    ),
    "batched-delivery": Example(
        shows=timed(*spread(*(0.3 * (number // 4 * 4 + 4) for number in range(12))), upstream_at=PRODUCED),
        alike=timed(*spread(0.1, 0.31, 0.9, 0.9, 1.21, 1.9, 1.9, 2.15, 2.41, 2.75, 3.0, 3.4), upstream_at=PRODUCED),
        why="A network is uneven, and two pieces may share a packet.",
    ),
    "open-after-end": Example(
        shows=timed((0.1, HI + END), ended_at=15.0, end="left"),
        alike=timed((0.1, HI), (15.0, END), ended_at=15.2),
        why="The end came late, and the close with it.",
    ),
    "no-keepalive": Example(
        shows=timed((0.2, text("Let me think.")), (48.0, text(" Yes.")), (48.1, END)),
        alike=timed((0.2, text("Let me think.")), (15.0, ":\n"), (30.0, ":\n"), (48.0, text(" Yes.")), (48.1, END)),
        why="Comments came meanwhile.",
    ),
    # --- the head
    "compressed-stream": Example(
        shows=tape(HI + END, headers=(("content-type", "text/event-stream"), ("content-encoding", "gzip"))),
        alike=tape(HI + END, headers=(("content-type", "text/event-stream"), ("content-encoding", "identity"))),
        why="`identity` is no compression.",
    ),
    "content-length-on-stream": Example(
        shows=tape(HI + END, headers=(("content-type", "text/event-stream"), ("content-length", "811"))),
        alike=tape(
            '{"error": {"message": "no key"}}',
            status=401,
            headers=(("content-type", "application/json"), ("content-length", "32")),
        ),
        why="A document has a length.",
    ),
    "not-an-event-stream": Example(
        shows=tape('{"text": "Hello"}', headers=(("content-type", "application/json"),)),
        alike=tape(
            '{"text": "Hello"}',
            headers=(("content-type", "application/json"),),
            request=Request(method="POST", body=b'{"message": "Hi", "stream": false}'),
        ),
        why="No stream was asked.",
    ),
    "buffering-headers": Example(
        shows=tape(HI + END, headers=(("content-type", "text/event-stream"), ("cache-control", "max-age=60"))),
        alike=tape(HI + END, headers=(("content-type", "text/event-stream"), ("cache-control", "no-cache"))),
        why="`X-Accel-Buffering` is not to be seen behind nginx.",
    ),
    # --- tool calls
    "tool-index-missing": Example(
        shows=tape(call({"id": "t1", "function": {"name": "get_weather", "arguments": LYON}}) + CALLED),
        alike=tape(
            '{"model":"m","message":{"role":"assistant","tool_calls":[{"function":{"name":"w","arguments":{}}}]},'
            '"done":false}\n{"model":"m","message":{"content":""},"done":true,"done_reason":"stop",'
            '"prompt_eval_count":1,"eval_count":2}\n',
            headers=(("content-type", "application/x-ndjson"),),
        ),
        why="Ollama's own API has no index.",
    ),
    "tool-index-reused": Example(
        shows=tape(
            arguments(LYON)
            + call({"index": 0, "id": "t2", "function": {"name": "get_time", "arguments": "{}"}})
            + CALLED
        ),
        alike=tape(
            call({"index": 0, "id": "a", "function": {"name": "x", "arguments": ""}})
            + call({"index": 1, "id": "b", "function": {"name": "y", "arguments": ""}})
            + call({"index": 0, "function": {"arguments": "{}"}}, {"index": 1, "function": {"arguments": "{}"}})
            + CALLED
        ),
        why="Fragments of two calls may take turns.",
    ),
    "tool-name-repeated": Example(
        shows=tape(
            arguments('{"city":')
            + call({"index": 0, "function": {"name": "get_weather", "arguments": ' "Lyon"}'}})
            + CALLED
        ),
        alike=tape(arguments(LYON) + arguments('{"city": "Paris"}', index=1, id="t2").replace('"t1"', '"t2"') + CALLED),
        why="Two calls of one tool have one name.",
    ),
    "tool-id-missing": Example(
        shows=tape(call({"index": 0, "function": {"name": "get_weather", "arguments": LYON}}) + CALLED),
        alike=tape(arguments('{"city":', ' "Lyon"}') + CALLED),
        why="Later fragments have no id by the book.",
    ),
    "tool-id-repeated": Example(
        shows=tape(arguments(LYON) + arguments('{"city": "Paris"}', index=1) + CALLED),
        alike=tape(arguments(LYON) + arguments('{"city": "Paris"}', index=1, id="t2") + CALLED),
        why="Each call has an id of its own.",
    ),
    "tool-args-not-string": Example(
        shows=tape(
            call({"index": 0, "id": "t1", "function": {"name": "get_weather", "arguments": {"city": "Lyon"}}}) + CALLED
        ),
        alike=tape(arguments("") + CALLED),
        why="An empty string is one: no arguments.",
    ),
    "tool-args-duplicated": Example(
        shows=tape(arguments('{"city":', ' "Lyon"}', LYON) + CALLED),
        alike=tape(arguments('{"from": {"city": "Lyon"},', ' "to": {"city": "Lyon"}}') + CALLED),
        why="Inside the arguments an object may stand twice.",
    ),
    "tool-args-invalid-json": Example(
        shows=tape(arguments("{city: Lyon}") + CALLED),
        alike=tape(arguments('{"note": "{city: Lyon}"}') + CALLED),
        why="Inside a string anything may stand.",
    ),
    "tool-args-truncated": Example(
        shows=tape(arguments('{"city": "Ly') + finish("length") + USAGE + DONE),
        alike=tape(arguments(LYON) + finish("length") + USAGE + DONE),
        why="The limit came after the arguments' end.",
    ),
    "tool-fragment-ambiguous": Example(
        shows=tape(
            call(
                {"id": "a", "function": {"name": "x", "arguments": '{"city":'}},
                {"id": "b", "function": {"name": "y", "arguments": '{"zone":'}},
                {"function": {"arguments": '"CET"}'}},
            )
            + CALLED
        ),
        alike=tape(
            call(
                {"id": "a", "function": {"name": "x", "arguments": '{"city":'}},
                {"function": {"arguments": '"Lyon"}'}},
            )
            + CALLED
        ),
        why="Only one call is under way.",
    ),
    "tool-call-not-object": Example(
        shows=tape(delta(tool_calls=["get_weather"]) + END),
        alike=tape(delta(tool_calls=[]) + HI + END),
        why="An empty list calls nothing.",
    ),
    "legacy-function-call": Example(
        shows=tape(delta(function_call={"name": "get_weather", "arguments": LYON}) + finish("function_call") + DONE),
        alike=tape(arguments(LYON) + CALLED),
        why="`tool_calls` is the newer form.",
    ),
    # --- the completion's end, its tokens, its chunks
    "finish-mismatch": Example(
        shows=tape(arguments(LYON) + END),
        alike=tape(HI + END),
        why="No tool was called.",
    ),
    "finish-repeated": Example(
        shows=tape(HI + finish("length") + END),
        alike=tape(HI + finish() + END),
        why="The same reason twice says the same.",
    ),
    "finish-empty-string": Example(
        shows=tape(chunk(choices=[{"index": 0, "delta": {"content": "Hi"}, "finish_reason": ""}]) + END),
        alike=tape(HI + END),
        why="null is by the book.",
    ),
    "finish-unknown-word": Example(
        shows=tape(HI + finish("because") + USAGE + DONE),
        alike=tape(HI + finish("content_filter") + USAGE + DONE),
        why="The word is one of the five.",
    ),
    "finish-missing": Example(
        shows=tape(HI + DONE),
        alike=tape(HI, end="left"),
        why="Whoever recorded it left before the end.",
    ),
    "done-missing": Example(
        shows=tape(HI + finish() + USAGE),
        alike=tape(HI + finish() + USAGE + "data:[DONE]\n\n"),
        why="The space after the colon is free.",
    ),
    "content-after-finish": Example(
        shows=tape(HI + finish() + text("!") + USAGE + DONE),
        alike=tape(chunk(choices=[{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]) + USAGE + DONE),
        why="Text and reason share a chunk.",
    ),
    "usage-missing": Example(
        shows=tape(HI + finish() + DONE),
        alike=tape(HI + END),
        why="The last chunk has it.",
    ),
    "usage-in-every-chunk": Example(
        shows=tape(
            "".join(
                chunk(
                    choices=[{"index": 0, "delta": {"content": "a"}, "finish_reason": None}],
                    usage={"prompt_tokens": 9, "completion_tokens": number},
                )
                for number in (1, 2, 3)
            )
            + END
        ),
        alike=tape(chunk(choices=[{"index": 0, "delta": {"content": "a"}}], usage=None) * 3 + END),
        why="null until the last chunk is by the book.",
    ),
    "usage-nonstandard-place": Example(
        shows=tape(
            HI
            + chunk(
                choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}],
                x_groq={"usage": {"prompt_tokens": 23, "completion_tokens": 19}},
            )
            + DONE
        ),
        alike=tape(HI + finish() + USAGE.replace('"choices"', '"x_trace": {"id": "q"}, "choices"') + DONE),
        why="A vendor's key without tokens in it.",
    ),
    "usage-incomplete": Example(
        shows=tape(HI + finish() + chunk(choices=[], usage={"prompt_tokens": 9}) + DONE),
        alike=tape(HI + finish() + chunk(choices=[], usage={"prompt_tokens": 9, "total_tokens": 12}) + DONE),
        why="The total tells the other count.",
    ),
    "usage-invalid": Example(
        shows=tape(HI + finish() + chunk(choices=[], usage={"prompt_tokens": -1, "completion_tokens": 3}) + DONE),
        alike=tape(HI + finish() + chunk(choices=[], usage={"prompt_tokens": 0, "completion_tokens": 3}) + DONE),
        why="Nought is a count.",
    ),
    "usage-reasoning-apart": Example(
        shows=tape(
            HI
            + finish()
            + chunk(
                choices=[],
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 3,
                    "total_tokens": 17,
                    "completion_tokens_details": {"reasoning_tokens": 5},
                },
            )
            + DONE
        ),
        alike=tape(
            HI
            + finish()
            + chunk(
                choices=[],
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 8,
                    "total_tokens": 17,
                    "completion_tokens_details": {"reasoning_tokens": 5},
                },
            )
            + DONE
        ),
        why="The completion holds them.",
    ),
    "choices-missing": Example(
        shows=tape(HI + chunk(created=1) + END),
        alike=tape(chunk(choices=[], prompt_filter_results=[]) + HI + END),
        why="Azure's first chunk has an empty list.",
    ),
    "delta-missing": Example(
        shows=tape(chunk(choices=[{"index": 0, "text": "Hi"}]) + END),
        alike=tape(chunk(choices=[{"index": 0, "delta": {}}]) + HI + END),
        why="An empty delta is one.",
    ),
    "content-not-string": Example(
        shows=tape(delta(content=[{"type": "text", "text": "Hi"}]) + END),
        alike=tape(delta(content=None) + HI + END),
        why="null is by the book.",
    ),
    "choices-several": Example(
        shows=tape(HI + chunk(choices=[{"index": 1, "delta": {"content": "Salut"}}]) + END),
        alike=tape(HI + END),
        why="All chunks are of choice 0.",
    ),
    "error-in-stream": Example(
        shows=tape(HI + events({"error": {"message": "quota exceeded", "code": 429}})),
        alike=tape(text('{"error": "quota exceeded"}', " is what it says.") + END),
        why="The text shows such an object.",
    ),
    "json-parse": Example(
        shows=tape(HI + 'data: {"choices": [\n\n' + END),
        alike=tape("event: tool.progress\ndata: searching\n\n" + HI + END),
        why="An event of another name is not the protocol's.",
    ),
}
