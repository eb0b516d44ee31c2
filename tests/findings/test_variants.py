"""Each fault in more forms than its example: what must be named, and what must not be."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from motamot.findings import examine
from motamot.findings.faults import FAULTS
from motamot.tape.tape import Tape
from tests.findings.examples import (
    AG_TEXT,
    CALLED,
    FIN,
    HI,
    LYON,
    MORCEAUX,
    ROUTING,
    UI_END,
    UI_TEXT,
    ag,
    arguments,
    ui,
)
from tests.findings.tapes import DIALECTS, DONE, END, USAGE, call, chunk, delta, events, finish, tape, text

PLAIN = (("content-type", "text/plain"),)
LINES = (("content-type", "application/x-ndjson"),)


class Variant(NamedTuple):
    """dialect: as the shared cases name it, "" where the tape is recognised only. named, not_named: faults."""

    dialect: str
    tape: Tape
    named: str = ""
    not_named: str = ""


def sse(body: str | bytes, named: str = "", not_named: str = "", **more: Any) -> Variant:
    return Variant("sse", tape(body, **more), named, not_named)


def oai(body: str | bytes, named: str = "", not_named: str = "", **more: Any) -> Variant:
    return Variant("openai-chat", tape(body, **more), named, not_named)


def lines(*values: Any, named: str = "", not_named: str = "", end: str = "\n") -> Variant:
    told = [value if isinstance(value, str) else json.dumps(value) for value in values]
    kind = (("content-type", "application/x-ndjson"),)
    return Variant("ollama-ndjson", tape("\n".join(told) + end, headers=kind), named, not_named)


def named_events(*values: dict[str, Any]) -> str:
    """Each value as an event that is named as its type."""
    return "".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n" for value in values)


def anthropic(*values: dict[str, Any], named: str = "", not_named: str = "", cut: int = 0) -> Variant:
    body = named_events(*values)
    return Variant("anthropic-messages", tape(body[: len(body) - cut]), named, not_named)


def visitor(body: str, named: str = "", not_named: str = "", **more: Any) -> Variant:
    return Variant("", tape(body, **more), named, not_named)


START = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
SAY = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
STOP = {"type": "message_stop"}
SAID = {"model": "m", "message": {"content": "Hi"}, "done": False}
OVER = {
    "model": "m",
    "message": {"content": ""},
    "done": True,
    "done_reason": "stop",
    "eval_count": 1,
    "prompt_eval_count": 2,
}
JSON = (("content-type", "application/json"),)
HTML = (("content-type", "text/html"),)


def content(raw: str) -> str:
    """A chunk whose content is that, as it stands on the wire."""
    return 'data: {"choices":[{"index":0,"delta":{"content":"' + raw + '"}}]}\n\n'


def usage_at(**fields: Any) -> str:
    return HI + chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}], **fields) + DONE


TOKENS = {"prompt_tokens": 9, "completion_tokens": 3}
NONE = " ".join(FAULTS)
VARIANTS: dict[str, Variant] = {
    # --- as good servers send it
    "as OpenAI sends it": oai(
        "".join(
            chunk(
                created=1,
                service_tier="default",
                system_fingerprint=None,
                choices=[{"index": 0, "delta": one, "logprobs": None, "finish_reason": None}],
                usage=None,
                obfuscation="x7Kq",
            )
            for one in ({"role": "assistant", "content": "", "refusal": None}, {"content": "Hi"}, {"content": "!"})
        )
        + chunk(choices=[{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}], usage=None)
        + chunk(choices=[], usage={**TOKENS, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 0}})
        + DONE,
        "",
        NONE,
    ),
    "as Azure sends it": oai(
        chunk(id="", object="", model="", choices=[], prompt_filter_results=[{"prompt_index": 0}])
        + HI
        + chunk(
            choices=[
                {
                    "index": 0,
                    "delta": {},
                    "finish_reason": "stop",
                    "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
                }
            ]
        )
        + USAGE
        + DONE,
        "",
        NONE,
    ),
    "as OpenRouter sends it": oai(
        ": OPENROUTER PROCESSING\n\n" * 3
        + delta(role="assistant", content="", reasoning="Hm", reasoning_details=[{"type": "x", "text": "Hm"}])
        + HI
        + chunk(choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}])
        + chunk(choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": None}], usage=TOKENS)
        + DONE,
        "",
        NONE,
    ),
    "as Anthropic sends it": anthropic(
        START,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "Eq"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        SAY,
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"city": "Lyon"}'},
        },
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        STOP,
        not_named=NONE,
    ),
    "as Ollama sends it": lines(
        {**SAID, "message": {"role": "assistant", "content": "", "thinking": "Hm"}},
        {
            **SAID,
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
            },
        },
        OVER,
        not_named=NONE,
    ),
    "as the Responses API sends it": visitor(
        named_events(
            {"type": "response.created", "response": {"usage": None}},
            {"type": "response.output_text.delta", "delta": "Hel"},
            {"type": "response.output_text.delta", "delta": "lo"},
            {"type": "response.output_text.done", "text": "Hello"},
            {"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 2}}},
        ),
        "",
        NONE,
    ),
    # --- the end of the last event
    "one line end at the end": oai(text("a") + 'data: {"x":1}\n', "unterminated-last-event"),
    "one CRLF at the end": oai((HI + finish()).replace("\n", "\r\n") + "data: [DONE]\r\n", "unterminated-last-event"),
    "a cut field name": oai(HI + END + "dat", "unterminated-last-event"),
    "a comment at the end": oai(HI + END + ": x", "", "unterminated-last-event"),
    "a comment line at the end": oai(HI + END + ": x\n", "", "unterminated-last-event"),
    "a retry at the end": sse("data: x\n\nretry: 5\n", "", "unterminated-last-event"),
    "blank lines at the end": oai(HI + END + "\n\n\r\n", "", "unterminated-last-event"),
    "CR as line end": sse(": a\r\rdata: x\r\rdata: y\r\r", "", "unknown-field unterminated-last-event raw-line-break"),
    "a message cut in its last event": anthropic(START, SAY, REASON, STOP, cut=1, named="unterminated-last-event"),
    "a whole message": anthropic(START, SAY, REASON, STOP, not_named=NONE),
    "a line cut": lines(SAID, '{"model":"m","mess', end="", named="unterminated-last-event"),
    "lines without the last line end": lines(SAID, OVER, end="", not_named=NONE),
    # --- events run together
    "the marker behind a chunk": oai(HI + finish().rstrip() + "\n" + DONE, "missing-blank-line", "json-parse"),
    "two chunks on a line": oai(HI + text("a").rstrip() + text("b") + END, "missing-blank-line"),
    "two names in a block": sse("event: a\ndata: 1\nevent: b\ndata: 2\n\n", "missing-blank-line"),
    "two ids in a block": sse("id: 1\ndata: 1\nid: 2\ndata: 2\n\n", "missing-blank-line"),
    "two objects in an event": sse('data: {"a":1}\ndata: {"b":2}\n\n', "missing-blank-line"),
    "text behind routing": visitor(events(ROUTING).rstrip() + "\ndata: Hi\n\n" + DONE, "missing-blank-line"),
    "the marker behind text": visitor(events(ROUTING) + "data: Hi\n" + DONE, "missing-blank-line", "done-in-text"),
    "two pieces": visitor(MORCEAUX.rstrip() + "\n" + events({"morceau": "!"}) + FIN, "missing-blank-line"),
    "a message without blank lines": Variant(
        "anthropic-messages",
        tape("".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n" for one in (START, SAY)) + "\n"),
        "missing-blank-line",
    ),
    "lines of a text": sse("data: a\ndata:\ndata: b\n\n", "", "missing-blank-line comment-as-data"),
    "one value on several lines": oai(
        'data: {\ndata:  "choices":[{"index":0,"delta":{"content":"a"}}]\ndata: }\n\n' + END,
        "",
        "missing-blank-line json-parse",
    ),
    # --- fields
    "a name of one's own": sse("data: x\nfoo: bar\n\n", "unknown-field", "raw-line-break"),
    "a name in capitals": sse("Data: x\n\ndata: y\n\n", "unknown-field"),
    "a space before the name": oai(" data: x\n\n" + HI + END, "unknown-field", "raw-line-break"),
    "known names without a colon": sse("data\n\nid\ndata\ndata\n\n", "", "unknown-field raw-line-break"),
    "no space behind the colon": oai((HI + END).replace("data: ", "data:"), "", "unknown-field json-parse"),
    "spaces that are text": sse("data:  hi\n\ndata:   x\n\n", "", "unknown-field raw-line-break"),
    "an error as a field, CRLF": sse("data: x\r\n\r\nerror: y\r\n\r\n", "error-field", "unknown-field"),
    "an error as a field without a space": oai(
        HI + 'error:{"message":"x"}\n\n' + DONE, "error-field finish-missing", "done-missing"
    ),
    "an event named error": oai(HI + 'event: error\ndata: {"message":"x"}\n\n', "error-in-stream", "error-field"),
    "JSON over lines without data": oai(
        'data: {\n  "choices":[{"index":0,"delta":{"content":"a"}}]\n}\n\n' + END, "raw-line-break"
    ),
    "a list sent as it is": sse("data: Chords:\n- Am: A C E\n- C: C E G\n\n", "raw-line-break"),
    "a paragraph sent as it is": sse("data: One.\n\nTwo has no colon.\n\n", "raw-line-break"),
    "prose like a field": sse("data: One.\nNote: this is lost, too.\n\n", "raw-line-break unknown-field"),
    # --- blocks without data
    "an end without data": sse("data: x\n\nevent: done\n\n", "event-without-data"),
    "a ping, a retry and an id": sse("retry: 3000\n\nid: 5\n\nevent: ping\n\ndata: x\n\n", "", "event-without-data"),
    "the same before chunks": oai(
        "retry: 3000\n\nid: 5\n\nevent: ping\n\n" + HI + END, "retry-only-block", "event-without-data"
    ),
    "an end of a message without data": anthropic(START, SAY, REASON, named="done-missing", not_named="finish-missing"),
    # --- keep-alives
    "ping as data": oai(HI + "data: ping\n\n" + END, "comment-as-data", "json-parse"),
    "a processing note as data": oai(HI + "data: : OPENROUTER PROCESSING\n\n" + END, "comment-as-data", "json-parse"),
    "empty data": oai(HI + "data:\n\n" + END, "comment-as-data"),
    "empty data with a space": oai(HI + "data: \n\n" + END, "comment-as-data"),
    "a comment as a piece": visitor(MORCEAUX + "data: : keep-alive\n\n" + FIN, "comment-as-data", "json-parse"),
    "a comment as text": sse("data: : keep-alive\n\ndata: hello\n\n", "comment-as-data"),
    "an emoticon": sse("data: hello :)\n\ndata: :)\n\n", "", "comment-as-data"),
    "a comment between lines of text": sse("data: a\n: ping\ndata: b\n\n", "keepalive-inside-event"),
    "a comment behind the data": sse("data: a\n: ping\n\n", "keepalive-inside-event"),
    "comments between events": sse(": ping\n\ndata: a\n\n: ping\n\n:\ndata: b\n\n", "", "keepalive-inside-event"),
    "a keep-alive inside a string": oai(
        'data: {"choices":[{"index":0,"delta":{"content":"Hel: keep-alive\n\nlo"}}]}\n\n' + END,
        "keepalive-inside-event",
    ),
    "a keep-alive with its time inside a string": oai(
        text("a") + 'data: {"choices":[{"delta":{"content":"Hel\n: ping - 2026-11-29 10:00:00\n\nlo"}}]}\n\n' + END,
        "keepalive-inside-event",
    ),
    "the same on the line itself": oai(
        text("a") + 'data: {"choices":[{"delta":{"content":"Hel: ping - 2026-11-29 10:00:00\n\nlo"}}]}\n\n' + END,
        "keepalive-inside-event",
    ),
    "an empty keep-alive inside a string": oai(
        text("a") + 'data: {"choices":[{"index":0,"delta":{"content":"Hel:\n\nlo"}}]}\n\n' + END,
        "keepalive-inside-event",
    ),
    "a text that speaks of it": oai(content("at 12: ping") + END, "", "keepalive-inside-event"),
    # --- JSON
    "JSON that is cut": oai(HI + 'data: {"choices": [{]}\n\n' + END, "json-parse"),
    "a page as data": oai(HI + "data: <html>\n\n" + END, "json-parse"),
    "Python as data": oai(HI + "data: {'choices': []}\n\n" + END, "json-parse"),
    "not a number": oai(
        HI + 'data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":NaN}]}\n\n' + END, "json-parse"
    ),
    "a text about it": oai(text("NaN", " Infinity", "\t") + END, "", "json-parse"),
    "a bare tab in a string": oai(content("a\tb") + END, "json-parse"),
    "a tab between tokens": oai(
        'data: {"choices":\t[{"index":0,"delta":{"content":"a"}}]}\n\n' + END, "", "json-parse"
    ),
    "a line separator in a string": oai(content("a\u2028b\u0085c") + END, "", "json-parse missing-blank-line"),
    "a piece that is not JSON": visitor(MORCEAUX + "data: Salut\n\n" + FIN, "json-parse"),
    # --- characters
    "U+FFFD as it is": oai(text("caf\ufffd") + END, "replacement-character"),
    "U+FFFD escaped": oai(content("caf\\ufffd") + END, "replacement-character", "lone-surrogate"),
    "a byte that is no UTF-8": oai(
        b'data: {"choices":[{"delta":{"content":"caf\xff"}}]}\n\n' + END.encode(), "replacement-character"
    ),
    "such a byte in a comment": oai(b": \xff\n\n" + (HI + END).encode(), "", "replacement-character"),
    "halves in two pieces": oai(
        content("\\ud83d") + content("\\ude00") + END, "lone-surrogate", "replacement-character"
    ),
    "halves in capitals": oai(content("\\uD83D\\uDE00") + END, "", "lone-surrogate"),
    "half a character for good": oai(content("Hi \\ud83d!") + END, "lone-surrogate replacement-character"),
    "a high half twice": oai(content("\\ud83d\\ud83d\\ude00") + END, "lone-surrogate"),
    "twice encoded once": oai(text("Ã©tÃ©, dÃ©jÃ\xa0") + END, "mojibake"),
    "twice encoded quotes": oai(text("donâ€™t, wonâ€™t") + END, "mojibake"),
    "twice encoded emoji": oai(text("ðŸšŒ", "ðŸ˜€") + END, "mojibake"),
    "accents": oai(text("à é è ê ç œ Œ É À ¡ ¿ ñ Ñ ß ø Å Ä ö « » “ ” ’ … – — € £ © ®") + END, "", "mojibake"),
    "Cyrillic and Greek": oai(text("Привет, мир. Ð Ñ καλημέρα") + END, "", "mojibake"),
    "a HAR without a charset": visitor(
        text("Ã©tÃ©, dÃ©jÃ\xa0") + END, "", "mojibake", headers=(("content-type", "text/event-stream"),), source="har"
    ),
    "a HAR with a charset": visitor(
        text("Ã©tÃ©, dÃ©jÃ\xa0") + END,
        "mojibake",
        headers=(("content-type", "text/event-stream; charset=utf-8"),),
        source="har",
    ),
    # --- repeats
    "cumulative, the end repeated": oai(
        text("Paris", "Paris is", "Paris is big", "Paris is big") + END, "cumulative-deltas"
    ),
    "two long cumulative pieces": oai(
        text("The capital of France is", "The capital of France is Paris.") + END, "cumulative-deltas"
    ),
    "cumulative lines": lines(
        *({**SAID, "message": {"content": piece}} for piece in ("a", "ab", "abc")), OVER, named="cumulative-deltas"
    ),
    "cumulative pieces": visitor(
        MORCEAUX + events({"morceau": "Hi, you"}, {"morceau": "Hi, you there"}) + FIN, "cumulative-deltas"
    ),
    "no no no": oai(text("no", " no", " no", " no") + END, "", "cumulative-deltas repeated-full-text"),
    "ha ha": oai(text("ha", "haha") + END, "", "cumulative-deltas repeated-full-text"),
    "yes yes": oai(text("Yes.", " Yes.") + END, "", "repeated-full-text"),
    "the whole again with the reason": oai(
        HI + chunk(choices=[{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]) + USAGE + DONE,
        "repeated-full-text",
        "cumulative-deltas",
    ),
    "the whole again as a message": oai(
        HI
        + chunk(choices=[{"index": 0, "delta": {}, "message": {"content": "Hello"}, "finish_reason": "stop"}])
        + DONE,
        "repeated-full-text",
    ),
    "one long piece twice": oai(
        text("Hello there, how are you?", "Hello there, how are you?") + END, "repeated-full-text"
    ),
    "the whole again, trimmed": oai(
        text("Hello there, ", "how are you?\n", "Hello there, how are you?") + END, "repeated-full-text"
    ),
    "the whole again in the last line": lines(
        {**SAID, "message": {"content": "Hel"}},
        {**SAID, "message": {"content": "lo"}},
        {**OVER, "message": {"content": "Hello"}},
        named="repeated-full-text",
    ),
    # --- the head
    "chunks as plain text": oai(HI + END, "not-an-event-stream", headers=(("content-type", "text/plain"),)),
    "chunks as JSON": oai(HI + END, "not-an-event-stream", headers=JSON),
    "a charset": oai(
        HI + END, "", "not-an-event-stream", headers=(("Content-Type", "Text/Event-Stream; charset=UTF-8"),)
    ),
    "an error with its status": oai(
        '{"error":{"message":"slow down"}}', "", "not-an-event-stream error-in-stream", status=429, headers=JSON
    ),
    "a login page": oai("<html><body>Sign in</body></html>", "not-an-event-stream", headers=HTML),
    "a gateway's page": oai("<!doctype html><title>502</title>", "not-an-event-stream", status=502, headers=HTML),
    "JSON as an event stream": oai('{"message":"Internal error"}', "not-an-event-stream"),
    "lines as they are asked": lines(SAID, OVER, not_named="not-an-event-stream"),
    "a deflated stream": oai(
        HI + END, "compressed-stream", headers=(("content-type", "text/event-stream"), ("Content-Encoding", "br"))
    ),
    "a compressed document": oai(
        '{"error":"no"}',
        "",
        "compressed-stream content-length-on-stream",
        status=400,
        headers=(*JSON, ("content-encoding", "gzip"), ("content-length", "14")),
    ),
    # --- tool calls
    "index and id in each fragment": oai(
        arguments('{"city":')
        + call({"index": 0, "id": "t1", "function": {"arguments": '"Lyon"}'}})
        + finish("tool_calls")
        + USAGE
        + DONE,
        "",
        "tool-index-missing tool-index-reused tool-name-repeated tool-id-missing tool-id-repeated",
    ),
    "an empty id": oai(arguments(LYON, id="") + CALLED, "tool-id-missing"),
    "no arguments": oai(arguments("") + CALLED, "", "tool-args-invalid-json tool-args-truncated"),
    "arguments cut with the stream": oai(arguments('{"city": "Ly'), "tool-args-truncated finish-missing done-missing"),
    "arguments that are a list": oai(arguments("[1]") + CALLED, "tool-args-invalid-json"),
    "an old reason for a call": oai(arguments(LYON) + finish("function_call") + USAGE + DONE, "", "finish-mismatch"),
    "a reason for calls without one": oai(HI + CALLED, "finish-mismatch"),
    # --- the end of a completion
    "a reason, then another": oai(HI + finish("stop") + finish("length") + USAGE + DONE, "finish-repeated"),
    "a reason in capitals": oai(HI + finish("STOP") + USAGE + DONE, "", "finish-unknown-word finish-missing"),
    "empty text behind the reason": oai(HI + finish() + text("") + USAGE + DONE, "", "content-after-finish"),
    "usage behind the reason": oai(HI + END, "", "content-after-finish"),
    "text behind the marker": oai(HI + END + text("more"), "done-in-text"),
    "a broken connection": oai(HI, "finish-missing done-missing", end="reset"),
    "an error without the marker": oai(HI + events({"error": "x"}), "error-in-stream", "finish-missing done-missing"),
    "an error of null": oai(chunk(choices=[], error=None) + HI + END, "", "error-in-stream"),
    "an error in a line": lines(SAID, {"error": "out of memory"}, named="error-in-stream"),
    "an error in a message": anthropic(
        START,
        SAY,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        named="error-in-stream",
    ),
    # --- tokens
    "usage in the delta": oai(
        HI + chunk(choices=[{"index": 0, "delta": {"usage": TOKENS}, "finish_reason": "stop"}]) + DONE,
        "usage-nonstandard-place",
        "usage-missing",
    ),
    "usage under another name": oai(usage_at(usageMetadata={"promptTokenCount": 1}), "usage-nonstandard-place"),
    "usage in a vendor's object": oai(usage_at(meta={"billing": {"usage": TOKENS}}), "usage-nonstandard-place"),
    "usage twice, at its place": oai(
        HI + chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}], usage=TOKENS) + USAGE + DONE,
        "",
        "usage-in-every-chunk usage-nonstandard-place usage-missing",
    ),
    "usage without choices": oai(HI + finish() + chunk(usage=TOKENS) + DONE, "choices-missing", "usage-missing"),
    "details of usage": oai(
        HI + finish() + chunk(choices=[], usage={**TOKENS, "prompt_tokens_details": {"cached_tokens": 1}}) + DONE,
        "",
        "usage-nonstandard-place",
    ),
    "a text about usage": oai(text('{"usage": {"prompt_tokens": 1}}') + END, "", "usage-nonstandard-place"),
    "usage of null": oai(HI + finish() + chunk(choices=[], usage=None) + DONE, "usage-missing"),
    # --- chunks
    "a delta of null": oai(chunk(choices=[{"index": 0, "delta": None}]) + HI + END, "delta-missing"),
    "a reason without a delta": oai(
        HI + chunk(choices=[{"index": 0, "finish_reason": "stop"}]) + DONE, "delta-missing"
    ),
    "what Azure's filter found": oai(
        HI
        + chunk(
            choices=[
                {
                    "index": 0,
                    "finish_reason": None,
                    "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
                    "content_filter_offsets": {"check_offset": 44, "start_offset": 44, "end_offset": 198},
                }
            ]
        )
        + END,
        "",
        "delta-missing",
    ),
    "what a filter found, and a choice without delta": oai(
        HI + chunk(choices=[{"index": 0, "content_filter_results": {}}]) + chunk(choices=[{"index": 0}]) + END,
        "delta-missing",
    ),
    "text beside what a filter found": oai(
        chunk(choices=[{"index": 0, "text": "Hi", "content_filter_results": {}}]) + END, "delta-missing"
    ),
    "a number as content": oai(delta(content=7) + END, "content-not-string"),
    "choices of null": oai(HI + chunk(choices=None) + END, "choices-missing"),
    # --- visitors' protocols
    "an error alone": visitor(events({"error": "Service is busy."}), "error-as-text", "missing-terminal-event"),
    "an error as the last piece": visitor(
        MORCEAUX + events({"morceau": '{"error":"overloaded"}'}) + FIN, "error-as-text"
    ),
    "an error at the end of a text": visitor(
        'Once upon a time{"error":"timeout"}', "error-as-text", headers=(("content-type", "text/plain"),)
    ),
    "an answer that is such an object": visitor(events(ROUTING, '{"error":"x"}', "[DONE]"), "", "error-as-text"),
    "a text without its end": visitor(events(ROUTING, "Hi"), "missing-terminal-event"),
    "a page without its end": visitor(ui(*UI_TEXT), "missing-terminal-event", "ui-message-order"),
    "a run without its end": visitor(ag("RUN_STARTED", *AG_TEXT), "missing-terminal-event", "ag-ui-order"),
    "a run that failed": visitor(ag("RUN_STARTED", "TEXT_MESSAGE_START", "RUN_ERROR"), "", "ag-ui-order"),
    "a run that failed at once": visitor(ag("RUN_ERROR"), "", "ag-ui-order missing-terminal-event"),
    "a run with an open text": visitor(
        ag("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "RUN_FINISHED"), "ag-ui-order"
    ),
    "text before the run": visitor(ag(*AG_TEXT, "RUN_FINISHED"), "ag-ui-order"),
    "text after the run": visitor(ag("RUN_STARTED", *AG_TEXT, "RUN_FINISHED", *AG_TEXT), "ag-ui-order"),
    "two runs": visitor(ag("RUN_STARTED", *AG_TEXT, "RUN_FINISHED") * 2, "", "ag-ui-order"),
    "a chunk of text": visitor(ag("RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"), "", "ag-ui-order"),
    "AG-UI with CRLF": visitor(
        ag("RUN_STARTED", *AG_TEXT, "RUN_FINISHED").replace("\n", "\r\n"), "crlf-for-lf-only-reader"
    ),
    "text in two steps": visitor(
        ui(*UI_TEXT, *UI_END[:2], {"type": "start-step"}, *UI_TEXT, *UI_END), "", "ui-message-order"
    ),
    "text that is never ended": visitor(ui(*UI_TEXT, {"type": "finish"}, "[DONE]"), "ui-message-order"),
    "text under another id": visitor(
        ui({"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "2", "delta": "x"}, *UI_END),
        "ui-message-order",
    ),
    "a part without a type": visitor(ui(*UI_TEXT, {"text": "x"}, *UI_END), "ui-message-unknown-part"),
    "events wrapped twice": oai(events(text("a").strip(), text("b").strip()), "wire-in-text"),
    "a head without events": visitor("", "empty-stream"),
    "a document without events": visitor("{}", "", "empty-stream", headers=JSON),
    "items that are glued": visitor(
        events(ROUTING, "First we play Am.", "Then we play a C.", "And at last G.", "[DONE]"), "glued-pieces"
    ),
    "messages of their own": sse(
        events("Step one is done.", "Step two is done.", "Step three is done."), "", "glued-pieces"
    ),
    "items that are not": visitor(
        events(ROUTING, "First we play Am. ", "Then we play a C. ", "And at last G.", "[DONE]"), "", "glued-pieces"
    ),
    # --- the standard's space
    "pieces as Spring writes them": visitor("data:Hello\n\ndata: world\n\ndata:[DONE]\n\n", "space-eaten"),
    "pieces with CRLF": visitor("data:Hello\r\n\r\ndata: world\r\n\r\n", "space-eaten"),
    "named pieces": visitor("event:token\ndata:Hello\n\nevent:token\ndata: world\n\n", "space-eaten"),
    "a piece of two lines": visitor("data:Hello\ndata: world\n\n", "space-eaten"),
    "pieces without any space": visitor("data:Hello\n\ndata:world\n\ndata:[DONE]\n\n", "", "space-eaten"),
    "pieces with their own space": visitor("data: Hello\n\ndata:  world\n\ndata:[DONE]\n\n", "", "space-eaten"),
    "blank lines between": visitor("data: Hello\ndata:\ndata: world\n\n" + DONE, "", "space-eaten"),
    "a status before the pieces": visitor("event:status\ndata:open\n\ndata: Hello\n\n" + DONE, "", "space-eaten"),
    "a routing object before the pieces": visitor(
        f"data:{json.dumps(ROUTING)}\n\n" + events("Hello", "world", "[DONE]"), "", "space-eaten"
    ),
    # --- broken connections
    "a text that broke off": visitor("Hello, wor", "connection-broken", headers=PLAIN, end="reset"),
    "a text that was closed": visitor("Hello, world", "", "connection-broken", headers=PLAIN),
    "lines that broke off": visitor('{"text":"Hel"}\n{"text":"lo"}\n', "connection-broken", headers=LINES, end="reset"),
    "lines that were left": visitor(
        '{"text":"Hel"}\n{"text":"lo"}\n', "", "connection-broken", headers=LINES, end="left"
    ),
    "lines that broke off behind their end": visitor(
        '{"text":"Hel"}\n{"type":"done"}\n', "", "connection-broken", headers=LINES, end="reset"
    ),
    "a document that broke off": visitor('{"text":"Hel', "connection-broken", headers=JSON, end="reset"),
    "a head that nothing followed": visitor("", "connection-broken", end="reset"),
    "a known protocol that broke off": visitor(
        events(ROUTING, "Hi"), "connection-broken missing-terminal-event", end="reset"
    ),
    "a run that broke off behind its end": visitor(
        ag("RUN_STARTED", *AG_TEXT, "RUN_FINISHED"), "", "connection-broken", end="reset"
    ),
    "a flag that never came true": sse(
        events({"text": "Hel", "done": False}, {"text": "lo", "done": False}), "missing-terminal-event"
    ),
    "a flag that came true": sse(
        events({"text": "Hel", "done": False}, {"text": "lo", "done": True}), "", "missing-terminal-event"
    ),
    "a flag of a stream that was left": sse(
        events({"text": "Hel", "done": False}), "", "missing-terminal-event", end="left"
    ),
    "an end of its own name": sse(
        events({"text": "Hi"}) + "event: done\ndata: {}\n\n", "", "connection-broken", end="reset"
    ),
    "items on lines": visitor(
        "".join(f"data: - Item number {n}.\ndata: \n\n" for n in range(5)) + DONE, "", "glued-pieces raw-line-break"
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_form_of_a_fault_is_named_and_what_looks_like_it_is_not(name: str) -> None:
    dialect, recorded, named, not_named = VARIANTS[name]
    assert named or not_named
    assert set(named.split()) | set(not_named.split()) <= FAULTS.keys()
    for protocol in {None, DIALECTS.get(dialect)}:
        found = {finding.id for finding in examine(recorded, protocol=protocol).findings}
        assert set(named.split()) <= found, protocol
        assert not set(not_named.split()) & found, protocol
