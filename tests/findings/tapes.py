"""Tapes for tests: bodies cut as one likes, chunks of OpenAI's dialect, the shared cases as tapes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from motamot.tape.tape import Piece, Request, Tape

DATA = Path(__file__).parents[1] / "data"
CASES = [json.loads(line) for line in (DATA / "cases.jsonl").read_text("utf-8").splitlines()]
JUDGED = [case for case in CASES if {"findings", "no_findings"} & case["expect"].keys()]
EVENTS = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"))
DIALECTS = {
    "sse": "event-stream",
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
    "ollama-ndjson": "ollama",
}


def tape(body: bytes | str | Iterable[bytes], **more: Any) -> Tape:
    """A tape of one read, or of those given, that the server closed."""
    raw = body.encode() if isinstance(body, str) else body
    reads = [raw] if isinstance(raw, bytes) else list(raw)
    known = {"headers": EVENTS, "status": 200, "end": "closed", **more}
    return Tape(pieces=tuple(Piece(None, read) for read in reads if read), **known)


def timed(*pieces: tuple[float, str], **more: Any) -> Tape:
    """A tape whose reads have times, in seconds."""
    known = {"headers": EVENTS, "status": 200, "end": "closed", "source": "own", **more}
    return Tape(pieces=tuple(Piece(at, text.encode()) for at, text in pieces), **known)


def delta(**fields: Any) -> str:
    """A chunk with that delta."""
    return chunk(choices=[{"index": 0, "delta": fields, "finish_reason": None}])


def chunk(**fields: Any) -> str:
    """A chunk with these fields, as an event."""
    return f"data: {json.dumps({'id': 'c1', 'object': 'chat.completion.chunk', 'model': 'm', **fields})}\n\n"


def text(*pieces: str) -> str:
    """A chunk for each piece."""
    return "".join(delta(content=piece) for piece in pieces)


def finish(reason: Any = "stop") -> str:
    """The chunk with the finish reason."""
    return chunk(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])


USAGE = chunk(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12})
DONE = "data: [DONE]\n\n"
END = finish() + USAGE + DONE


def call(*fragments: dict[str, Any]) -> str:
    """A chunk for each fragment of a tool call."""
    return "".join(delta(tool_calls=[fragment]) for fragment in fragments)


def events(*values: Any) -> str:
    """Each value as an event: a string as it is, anything else as JSON."""
    told = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(f"data: {value}\n\n" for value in told)


def cut(body: bytes, at: Iterable[int]) -> list[bytes]:
    """The body in reads that begin at these offsets."""
    edges = [0, *at, len(body)]
    return [body[start:stop] for start, stop in pairwise(edges)]


def of_case(case: dict[str, Any]) -> list[tuple[str, Tape]]:
    """The tapes of a shared case, each with the protocol it is said to be."""
    given = case["given"]
    protocol = DIALECTS[given["dialect"]]
    if given["type"] == "upstream":
        return [(protocol, _of_script(script)) for script in given["requests"]]
    if given["type"] == "timed_stream":
        pieces = tuple(Piece(one["at_ms"] / 1000, one["text"].encode()) for one in given["chunks"])
        upstream = tuple(at / 1000 for at in given.get("upstream_at_ms", ()))
        return [(protocol, Tape(pieces=pieces, upstream_at=upstream, end="closed", source="own", **_head(given)))]
    body = base64.b64decode(given["base64"]) if "base64" in given else given["text"].encode("utf-8", "surrogatepass")
    reads = given.get("reads", [])
    at = range(1, len(body)) if reads == "every_byte" else reads
    pieces = tuple(Piece(None, read) for read in cut(body, at))
    return [(protocol, Tape(pieces=pieces, end="closed", **_head(given)))]


def _head(given: dict[str, Any]) -> dict[str, Any]:
    response = given.get("response", {})
    headers = response.get("headers", {"content-type": "text/event-stream"})
    return {"status": response.get("status", 200), "headers": tuple(headers.items())}


def _of_script(script: list[dict[str, Any]]) -> Tape:
    """What a script of the model's server sends, with the times its waits give."""
    at, status, headers, end = 0.0, 200, {"content-type": "text/event-stream"}, "left"
    pieces: list[Piece] = []
    for step in _steps(script):
        if "status" in step:
            status, headers = step["status"], step.get("headers", headers)
        at += step.get("wait_ms", step.get("hold_open_ms", 0)) / 1000
        data = step["send"].encode() if "send" in step else b""
        data += base64.b64decode(step["send_base64"]) if "send_base64" in step else b""
        data += step["send_repeat"].encode() * step["times"] if "send_repeat" in step else b""
        if data:
            pieces.append(Piece(at, data))
        if "close" in step:
            end = "reset" if step["close"] == "reset" else "closed"
    request = Request(method="POST", body=b'{"stream": true}')
    return Tape(
        pieces=tuple(pieces), status=status, headers=tuple(headers.items()), request=request, end=end, ended_at=at
    )


def _steps(script: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in script:
        if "repeat" in step:
            for _ in range(step["repeat"]):
                yield from _steps(step["steps"])
        else:
            yield step


HEAD_ONLY = tape(
    "", headers=(("content-type", "text/event-stream"), ("content-encoding", "br"), ("server", "cloudflare"))
)
"""A stream that was compressed, and brought nothing."""
